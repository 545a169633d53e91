"""What the figures were measured on."""

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import sleep

_STAT = Path("/proc/stat")
_WATCHED = 2.0
"""Seconds."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The machine, the software and the moment; nothing that names a host or a person."""

    date: str
    system: str
    cores: int
    memory_bytes: int
    busy_before: float
    """Processors that others kept busy just before the measurement; above a tenth of one they disturb it."""
    python: str
    sfumato: str
    duckdb: str
    numpy: str
    pyarrow: str
    ibis: str | None = None
    """Of figures that were measured when queries were made with it."""

    @classmethod
    def now(cls) -> "Machine":
        """This machine, before anything is measured."""
        return cls(
            date=datetime.now(UTC).date().isoformat(),
            system=f"{platform.system()} {platform.machine()}",
            cores=os.cpu_count() or 1,
            memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            busy_before=round(_busy(), 2),
            python=platform.python_version(),
            sfumato=version("sfumato"),
            duckdb=version("duckdb"),
            numpy=version("numpy"),
            pyarrow=version("pyarrow"),
        )

    def __str__(self) -> str:
        ibis = "" if self.ibis is None else f"Ibis {self.ibis}, "
        disturbed = " The machine was not idle: take the figures as preliminary." if self.busy_before > 0.1 else ""
        return (
            f"{self.date}, {self.system}, {self.cores} cores, {self.memory_bytes / 1e9:.0f} GB; Python {self.python}, "
            f"DuckDB {self.duckdb}, {ibis}NumPy {self.numpy}, PyArrow {self.pyarrow}; "
            f"processors busy before the run {self.busy_before:.2f}.{disturbed}"
        )


def _busy() -> float:
    """Processors that are busy while this process waits; the load average still tells of the part that ran before."""
    if not _STAT.exists():
        return os.getloadavg()[0]
    before = _spent()
    sleep(_WATCHED)
    return (_spent() - before) / _WATCHED


def _spent() -> float:
    """Seconds that all processors together have worked since the machine started: all but idle and waiting."""
    user, nice, system, _, _, *others = map(int, _STAT.read_text(encoding="ascii").splitlines()[0].split()[1:])
    return (user + nice + system + sum(others[:3])) / os.sysconf("SC_CLK_TCK")
