"""The gate of the peers: a run counts when it finished, with every cell in its place, and its result is right."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np

from bench.shared.gate import Errors, WrongResultError
from sfumato.arrays import Floats


@dataclass(frozen=True, kw_only=True)
class Run:
    """What became of a contestant: its figures, or why there are none."""

    seconds: tuple[float, ...] = ()
    inner_seconds: tuple[float, ...] = ()
    peak_bytes: int = 0
    errors: Errors | None = None
    withheld: int = 0
    """Cells that are not published."""
    failure: str = ""

    @property
    def right(self) -> bool:
        """Whether it finished every time with a result that passed the gate."""
        return not self.failure and bool(self.seconds)

    def told(self) -> dict[str, Any]:
        """For the file of results."""
        return asdict(self)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """The ratio of medians; none unless both have a time."""
    return median(ours) / median(theirs) if ours and theirs else None


def refused(run: Run, failure: str) -> Run:
    """The same contestant without figures: nothing of a run that is wrong or unfinished is kept but the reason."""
    return Run(failure=run.failure or failure)


def values_of(result: Path, truth: Path, by: Sequence[str]) -> Floats:
    """The published values in the order of the true cells; a value that is withheld is not a number.

    Every true cell must be there once. Others may be there, as sfumato lists every combination, but with 0 or withheld.
    """
    keys, source = ", ".join(by), _source(result)
    codes = ", ".join(f"{name}::varchar as {name}" for name in by)
    with duckdb.connect() as connection:
        connection.execute(f"create view found as select {codes}, value::double as value, true as there from {source}")
        connection.execute(f"create view cells as select * from read_parquet('{truth}')")
        twice = connection.execute(
            f"select count(*) from (select 1 from found group by {keys} having count(*) > 1)"
        ).fetchone()
        beside = connection.execute(
            f"select count(*) from found anti join cells using ({keys}) where value <> 0"
        ).fetchone()
        joined = connection.execute(
            f"select found.value, there from cells left join found using ({keys}) order by cell"
        ).fetchnumpy()
    if twice != (0,) or beside != (0,):
        raise WrongResultError("cells were published twice, or where nothing is to be published")
    missing = int(np.ma.count_masked(joined["there"]))
    if missing:
        raise WrongResultError(f"{missing:,} cells are missing")
    return np.ma.filled(np.ma.asarray(joined["value"], dtype=np.float64), np.nan)


def withheld(result: Path, truth: Path, by: Sequence[str]) -> int:
    """How many of the true cells have no value."""
    with duckdb.connect() as connection:
        (count,) = connection.execute(
            f"select count(*) from {_source(result)} as found semi join read_parquet('{truth}') as cells "
            f"using ({', '.join(by)}) where value is null"
        ).fetchone() or (0,)
    return int(count)


def check_floor(result: Path, truth: Path, by: Sequence[str]) -> Errors:
    """Refuse an answer of the floor that is not, number for number, the true table; it has no cells without jobs."""
    keys = ", ".join(by)
    with duckdb.connect() as connection:
        apart = connection.execute(
            f"select count(*) from read_parquet('{result}') f full join "
            f"(from read_parquet('{truth}') where value > 0) t using ({keys}) where f.value is distinct from t.value"
        ).fetchone()
    if apart != (0,):
        raise WrongResultError("the floor does not count the true cells")
    return Errors(observed=0.0, expected=0.0)


def check_exact(values: Floats, true: Floats) -> Errors:
    """Refuse anything but the true numbers; what is not a number must be so in both."""
    if not np.array_equal(values, true, equal_nan=True):
        raise WrongResultError("the values are not the true ones")
    return Errors(observed=0.0, expected=0.0)


def _source(result: Path) -> str:
    """One file, or the folder of them that Spark writes."""
    return f"read_parquet('{result}/*.parquet')" if result.is_dir() else f"read_parquet('{result}')"
