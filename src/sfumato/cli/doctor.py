"""`sfumato doctor`: whether this machine, a release file and what it names are fit for a run, and what to mend."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import distributions, requires, version
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from sfumato import __version__
from sfumato.cli.screen import AsJson, near, printed_table, show
from sfumato.cli.series import PeriodOption
from sfumato.errors import DataError, EngineError, LedgerError, SfumatoError

if TYPE_CHECKING:  # only names for types
    from sfumato.release import Release

GIGABYTE = 1024**3
_LEAST_MEMORY, _LEAST_ROOM = 2 * GIGABYTE, GIGABYTE
_SHOWN = ("duckdb", "pyarrow", "numpy", "pydantic", "sqlalchemy")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was looked at, whether a run can do with it, and what to mend."""

    name: str
    state: str
    """Sound, doubtful or broken: only what is broken stops a run."""
    found: str
    do: str = ""
    exit_code: int = 0


def _sound(name: str, found: str) -> Finding:
    return Finding(name=name, state="sound", found=found)


def _doubtful(name: str, found: str, do: str) -> Finding:
    return Finding(name=name, state="doubtful", found=found, do=do)


def _broken(name: str, error: SfumatoError) -> Finding:
    return Finding(name=name, state="broken", found=error.found, do=error.do, exit_code=error.exit_code)


def installation() -> Iterator[Finding]:
    """What sfumato stands on: versions, memory, and room for what does not fit into it."""
    yield _sound("sfumato", __version__)
    yield _sound("Python", sys.version.split()[0])
    needed = _packages("")
    for package in _missing(needed):
        do = "install sfumato once more"
        yield _broken(package, EngineError(package, expected="an installed package", found="none", do=do))
    yield from (_sound(package, version(package)) for package in needed if package in _SHOWN)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    words = f"{memory / GIGABYTE:.1f} GB"
    yield (
        _sound("memory", words)
        if memory >= _LEAST_MEMORY
        else _doubtful("memory", words, "large tables will be slow: they are worked on in the temporary folder")
    )
    yield _temporary(_LEAST_ROOM)


def _packages(extra: str) -> list[str]:
    """What sfumato needs: always, or for something that not everybody wants."""
    lines = requires("sfumato") or ()
    wanted = [line for line in lines if (extra in line if extra else "extra ==" not in line)]
    return [re.split(r"[^\w.-]", line)[0] for line in wanted]


def _missing(packages: list[str]) -> list[str]:
    return [name for name in packages if not any(distributions(name=name))]


def _temporary(least: int) -> Finding:
    folder = gettempdir()
    room = shutil.disk_usage(folder).free
    words = f"{folder}, {room / GIGABYTE:.1f} GB free"
    enough = f"have at least {max(least / GIGABYTE, 0.1):.1f} GB there, or set TMPDIR to a folder on a larger disk"
    return _sound("temporary folder", words) if room >= least else _doubtful("temporary folder", words, enough)


def of_release(file: Path, period: str | None) -> Iterator[Finding]:
    """The release file and everything that it names; data files are looked for and not read."""
    from sfumato.release import load

    try:
        release = load(file, period)
    except SfumatoError as error:
        yield Finding(
            name="release file",
            state="broken",
            found=f"{error.where}: {error.found}",
            do=f"{error.do} (expected: {error.expected})",
            exit_code=error.exit_code,
        )
        return
    yield _sound("release file", f"{near(file.resolve())}: {release.about.title}")
    yield from _data(release)
    looked_at: dict[str, Callable[[Release], str]] = {
        "tables and codelists": _plan,
        **({"key file": _key} if release.key is not None else {}),
        "ledger": _ledger,
        "bundle": _bundle,
        **({"Spark": _spark} if release.data.engine == "spark" else {}),
    }
    for name, look in looked_at.items():
        try:
            yield _sound(name, look(release))
        except SfumatoError as error:
            yield _broken(name, error)
    yield from _clock(release)


def _data(release: "Release") -> Iterator[Finding]:
    from sfumato.engine.data_files import data_files

    try:
        files = data_files(release.data)
    except SfumatoError as error:
        yield _broken("data", error)
        return
    size = 0
    for name, listed in files.items():
        local = [Path(file.address) for file in listed if Path(file.address).exists()]
        closed = [path for path in local if not os.access(path, os.R_OK)]
        size += sum(path.stat().st_size for path in local)
        if closed:
            closed_one = DataError(
                name,
                expected="files that you may read",
                found=f"{near(closed[0])} is closed to you",
                do="have its owner give you the permission to read it",
            )
            yield _broken(f"data: {name}", closed_one)
        else:
            words = near(local[0]) if len(listed) == 1 and local else f"{len(listed):,} files"
            yield _sound(f"data: {name}", words)
    if size > _LEAST_ROOM:
        yield _temporary(size)


def _plan(release: "Release") -> str:
    from sfumato.checking import check

    seen = [name for name in release.data.attributes if release.data.declared_codes(name) is None]
    if seen:  # public, and known only with the data, which are not read here
        return f"codelists are whole; codes of {', '.join(seen)} are read off the data, which `sfumato check` does"
    return f"{len(check(release, data=False).plan.statistics):,} to publish"


def _key(release: "Release") -> str:
    from sfumato.keys import describe_key

    generations = describe_key(release.key or Path())
    return f"{near(release.key or Path())}, in force {generations[-1].fingerprint}"


def _ledger(release: "Release") -> str:
    from sfumato.privacy.ledger import Ledger

    path = release.ledger
    folder = next(parent for parent in path.absolute().parents if parent.is_dir())
    for place in (path, release.store, folder):
        if place.exists() and not os.access(place, os.W_OK):
            raise LedgerError(
                f"ledger {path}",
                expected="a ledger in a folder that you may write to",
                found=f"no permission to write to {near(place)}",
                do="have its owner give you the permission, or name another ledger",
            )
    if not path.exists():
        return f"{near(path)}: not there yet, the first run makes it"
    ledger = Ledger.open(path)
    ledger.verify()
    return f"{near(path)}: {len(ledger.history()):,} entries, the chain is whole"


def _bundle(release: "Release") -> str:
    from sfumato.bundle.write import refuse_foreign

    refuse_foreign(release.bundle)
    return f"{near(release.bundle)}: {'published' if release.bundle.exists() else 'not there yet'}"


def _spark(_: "Release") -> str:
    java = shutil.which("java") or os.environ.get("JAVA_HOME")
    missing = [*_missing(_packages("extra == 'spark'")), *([] if java else ["Java"])]
    if missing:
        raise EngineError(
            "Spark",
            expected="the packages of sfumato[spark], and Java",
            found=f"no {' and no '.join(missing)}",
            do="install them, or set JAVA_HOME",
        )
    return "its packages and Java are there"


def _clock(release: "Release") -> Iterator[Finding]:
    """The clock, by the ledger: an entry from the future says that one of the two is wrong."""
    from sfumato.privacy.ledger import Ledger

    now = datetime.now(UTC)
    words = f"{now:%Y-%m-%d %H:%M} UTC"
    try:
        times = [entry.time for entry in Ledger.open(release.ledger).history()] if release.ledger.exists() else []
    except SfumatoError:
        return  # what is wrong with the ledger was said
    ahead = times and datetime.fromisoformat(max(times)) > now + timedelta(minutes=5)
    late = "set it: the ledger has entries of a later time"
    yield _doubtful("clock", words, late) if ahead else _sound("clock", words)


def doctor(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="A release file, to look at it too.")] = None,
    period: PeriodOption = None,
    as_json: AsJson = False,
) -> None:
    """Look at this machine, and at a release file and all it names: what is sound, what is not, and what to mend.

    Versions, memory, room on the disk, data files, codelists, key file, ledger, permissions, clock. Nothing is written
    and no record is read: `sfumato check` does that. Ends with 0 unless something would stop a run.
    """
    findings = [*installation(), *(of_release(file, period) if file is not None else ())]
    table = printed_table("", "state", "found")
    for one in findings:
        table.add_row(one.name, Text(one.state, style={"sound": "green"}.get(one.state, "bold red")), one.found)
    lines: list[RenderableType] = [table]
    lines += [Text(f"{one.name}: {one.do}.".replace("..", "."), style="yellow") for one in findings if one.do]
    broken = [one for one in findings if one.state == "broken"]
    alone = "The machine is sound. Name a release file to look at it too."
    lines.append(Text("Something would stop a run." if broken else "All is sound." if file else alone))
    show((Group(*lines), {"sound": not broken, "findings": [asdict(one) for one in findings]}), as_json)
    if broken:
        raise typer.Exit(broken[0].exit_code)
