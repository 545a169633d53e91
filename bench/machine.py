"""What the figures were measured on."""

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The machine, the software and the moment; nothing that names a host or a person."""

    date: str
    system: str
    cores: int
    memory_bytes: int
    load_before: float
    """Processes that were busy before the measurement began, over one minute; above one half others disturb it."""
    python: str
    sfumato: str
    duckdb: str
    ibis: str
    numpy: str
    pyarrow: str

    @classmethod
    def now(cls) -> "Machine":
        """This machine, before anything is measured."""
        return cls(
            date=datetime.now(UTC).date().isoformat(),
            system=f"{platform.system()} {platform.machine()}",
            cores=os.cpu_count() or 1,
            memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            load_before=round(os.getloadavg()[0], 2),
            python=platform.python_version(),
            sfumato=version("sfumato"),
            duckdb=version("duckdb"),
            ibis=version("ibis-framework"),
            numpy=version("numpy"),
            pyarrow=version("pyarrow"),
        )

    def __str__(self) -> str:
        busy = " The machine was not idle: take the figures as preliminary." if self.load_before > 0.5 else ""
        return (
            f"{self.date}, {self.system}, {self.cores} cores, {self.memory_bytes / 1e9:.0f} GB; Python {self.python}, "
            f"DuckDB {self.duckdb}, Ibis {self.ibis}, NumPy {self.numpy}, PyArrow {self.pyarrow}; "
            f"load before the run {self.load_before:.2f}.{busy}"
        )
