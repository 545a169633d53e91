"""The gate of the peers: a run counts when it finished and its result is as far from the truth as its own noise says.

Whatever a contestant claims about its noise predicts the mean of its absolute errors and of its signed ones. With as
many cells as there are, chance moves these means by little: a result is refused when one is beyond 4.5 standard errors.
What the cell with the largest noise adds to a mean is allowed for beside them.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np
from gate import Errors, WrongResultError
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers

CHANCE = 4.5
"""Standard errors that are left to chance: beyond them by chance once in 150,000 times."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Expected:
    """What noise does to every cell: the means of the error's size and of the error, and their standard deviations."""

    size: Floats
    size_deviation: Floats
    bias: Floats
    deviation: Floats
    block: int | Integers = 1
    """So many neighbouring cells share a draw, or the label of each cell's group; their errors may go together."""
    changeable: NDArray[np.bool_] | None = None
    """Cells that the noise can change, where sizes were found by drawing, which may miss what is rare."""


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


def check_noisy(values: Floats, true: Floats, expected: Expected) -> Errors:
    """Refuse errors that are not those of the noise: in size and in sign, also with every cell counting alike."""
    if np.isnan(values).any():
        raise WrongResultError("values are missing")
    error = values - true
    sizes = np.abs(error)
    errors = Errors(observed=float(sizes.mean()), expected=float(expected.size.mean()))
    _refuse_unlikely("errors", sizes, expected.size, expected.size_deviation, expected.block)
    _refuse_unlikely("signed errors", error, expected.bias, expected.deviation, expected.block)
    uncertain = expected.size > 0
    if sizes[~(uncertain if expected.changeable is None else expected.changeable)].any():
        raise WrongResultError("cells that are published as they are were changed")
    weight = np.divide(1, expected.size, out=np.zeros_like(sizes), where=uncertain)
    _refuse_unlikely(
        "errors in units of what is expected",
        sizes * weight,
        uncertain.astype(np.float64),
        expected.size_deviation * weight,
        expected.block,
    )
    # A few large cells carry the mean of signed errors, too; this one does not depend on them.
    _refuse_unlikely(
        "signed errors in units of what is expected",
        error * weight,
        expected.bias * weight,
        expected.deviation * weight,
        expected.block,
    )
    return errors


def check_in_place(values: Floats, true: Floats, expected: Expected) -> None:
    """Refuse values of other cells than their own, such as when they were permuted.

    Where the noise is larger than the counts, the errors of permuted values are hardly larger than those of the noise.
    But they are negative where the true value is large: the mean of errors that count by the true value finds it. The
    noise of different cells must be uncorrelated.
    """
    weight = np.divide(true, expected.deviation**2, out=np.zeros_like(true), where=expected.deviation > 0)
    _refuse_unlikely(
        "signed errors that count by the true value",
        (values - true) * weight,
        expected.bias * weight,
        expected.deviation * weight,
        1,
    )


def _refuse_unlikely(what: str, found: Floats, mean: Floats, deviation: Floats, block: int | Integers) -> None:
    """Cells of a block are taken to go together entirely, which allows them most.

    One block more is allowed for: where a few cells carry the mean, its tails are theirs, not those of a normal one.
    """
    blocks = deviation.reshape(-1, block).sum(axis=1) if isinstance(block, int) else np.bincount(block, deviation)
    chance = float(np.linalg.norm(blocks) + blocks.max(initial=0)) / len(found)
    observed, expected = float(found.mean()), float(mean.mean())
    # What adding up in floating point can lose, for noise that is not random at all.
    # Written so that what is no number does not pass.
    if not abs(observed - expected) <= CHANCE * chance + 1e-9 * (1 + abs(expected)):
        raise WrongResultError(
            f"the {what} are {observed:.4g} on average, where {expected:.4g} ± {CHANCE * chance:.2g} is expected"
        )


def _source(result: Path) -> str:
    """One file, or the folder of them that Spark writes."""
    return f"read_parquet('{result}/*.parquet')" if result.is_dir() else f"read_parquet('{result}')"
