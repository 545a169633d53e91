"""Jobs as a CSV file: read by sfumato, exactly and checked, and by DuckDB alone; and the whole commands."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from bench.shared.gate import WrongResultError
from bench.shared.processes import SFUMATO, Tell, in_turn, make_economy, seconds_of, timed
from bench.shared.report import Results
from sfumato.engine.guesses import OnDisk, Wanted
from sfumato.engine.texts import Texts
from sfumato.frame.sources import Role, Source

CASES = {
    "keys": "SELECT worker, workplace, earnings FROM {jobs}",
    "codes": """
        SELECT worker, workplace, lpad(CAST(workplace % 97 AS VARCHAR), 2, '0') AS code,
        CASE WHEN worker % 2 = 0 THEN 'F' ELSE 'M' END AS sex, CAST(worker % 100000 AS DOUBLE) / 100 AS pay FROM {jobs}
    """,
}
"""Keys and earnings, all whole numbers; and keys beside codes with leading zeros and numbers with decimals."""
ROLES: dict[str, Role] = {
    "worker": "text",
    "workplace": "text",
    "code": "text",
    "sex": "text",
    "pay": "number",
    "earnings": "number",
}


def measure_files(folder: Path, *, jobs: int, repeat: int, tell: Tell) -> Results:
    """Everything about reading texts; a wrong result ends it."""
    tell("making an economy")
    economy = folder / "economy"
    make_economy(economy, jobs=jobs)
    files = {name: _written(economy, name, query) for name, query in CASES.items()}
    turns: dict[str, Callable[[], float]] = {}
    for name, file in files.items():
        turns |= {f"{name} floor": partial(_seconds, _floor, file), f"{name} read": partial(_seconds, _read, file)}
    seconds = in_turn(turns, repeat=repeat, tell=tell, what="reading")
    tell("whole commands")
    commands = {}
    release = (economy / "release.toml").read_text(encoding="utf-8")
    for kind, path in {"parquet": "jobs.parquet", "csv": files["keys"].name}.items():
        own = economy / f"{kind}.toml"
        own.write_text(release.replace('"jobs.parquet"', f'"{path}"'), encoding="utf-8")
        (economy / "ledger.sqlite").unlink(missing_ok=True)
        commands[kind] = seconds_of(SFUMATO, "check", own)
    return {
        "jobs": jobs,
        "bytes": {name: file.stat().st_size for name, file in files.items()},
        "seconds": seconds,
        "command_seconds": commands,
    }


def _written(folder: Path, name: str, query: str) -> Path:
    file = folder / f"{name}.csv"
    jobs = f"read_parquet('{folder / 'jobs.parquet'}')"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query.format(jobs=jobs)}) TO '{file}' (HEADER)")
    _check(file)
    return file


def _seconds(work: Callable[[Path], None], file: Path) -> float:
    return timed(partial(work, file))[0]


def _floor(file: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE jobs AS FROM read_csv('{file}')")


def _read(file: Path, check: Callable[[Path], None] = lambda _: None) -> None:
    with TemporaryDirectory(dir=file.parent) as folder, duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = false")  # as data are opened
        target = Path(folder) / "jobs.parquet"
        source = Source.model_validate({"path": file.name})
        Texts(
            connection, source, [OnDisk(named=file.name, path=file)], Wanted(named="jobs", roles=ROLES), target
        ).read()
        check(target)


def _check(file: Path) -> None:
    """Refuse a reading that is not, value for value, what the file has as text."""

    def compare(read: Path) -> None:
        digest = "count(*), sum(hash(t)::HUGEINT)"
        plain = f"read_csv('{file}', all_varchar = true)"
        columns = duckdb.sql(f"SELECT * FROM {plain} LIMIT 0").columns
        shown = {c: f"CAST({c} AS DOUBLE)" if ROLES[c] == "number" else f"CAST({c} AS VARCHAR)" for c in columns}
        chosen = ", ".join(f"{value} AS {column}" for column, value in shown.items())
        sums = [
            duckdb.sql(f"SELECT {digest} FROM (SELECT {chosen} FROM {rows}) t").fetchall()
            for rows in (plain, f"read_parquet('{read}')")
        ]
        if sums[0] != sums[1]:
            raise WrongResultError(f"{file.name}: what was read is not what the file has")

    _read(file, compare)
