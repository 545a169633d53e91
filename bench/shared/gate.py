"""The gate: no figure is shown for a run that did not finish, or whose result is wrong.

What a method says about its noise predicts the mean of the absolute errors and of the signed ones. With as many cells
as there are, chance moves these means by little: a result is refused when one is beyond 4.5 standard errors. What the
cell with the largest noise adds to a mean is allowed for beside them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.shared.expected import Expected, pareto_of
from sfumato.arrays import Floats, Integers
from sfumato.bundle.manifest import read_manifest
from sfumato.cells import Cells, Dimension
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release
from sfumato.statistics.published import PublishedTable

CHANCE = 4.5
"""Standard errors that are left to chance: beyond them by chance once in 150,000 times."""


class WrongResultError(Exception):
    """A run whose result is not the right one; its time means nothing."""


@dataclass(frozen=True, kw_only=True)
class Errors:
    """The mean absolute error of published values, and what the method expects it to be."""

    observed: float
    expected: float


def manifest_of(release: Release, tables: Iterable[str]) -> dict[str, Any]:
    """The manifest of a bundle that is whole; refused unless the run was charged for each of these tables once."""
    manifest = read_manifest(release.bundle)
    history = Ledger.open(release.ledger).history(release.account)
    charged, wanted = sorted(entry.table for entry in history if entry.kind == "charge"), sorted(tables)
    if charged != wanted:
        raise WrongResultError(f"the run should have charged {wanted}, each once; it charged {charged}")
    return manifest


def table_file(release: Release, name: str) -> Path:
    """The file of a published table."""
    return release.bundle / "tables" / f"{name}.parquet"


def check_counts(file: Path, planned: PublishedTable, cells: Cells) -> Errors:
    """Refuse published counts of other cells than the true ones, or whose errors are not those of the noise."""
    published = pq.read_table(file)
    order, positions = sorted_positions(published, cells.dimensions)
    values, listed = published["value"].to_numpy()[order].astype(np.float64), np.isin(positions, cells.positions)
    if not np.array_equal(positions[listed], cells.positions) or values[~listed].any():
        raise WrongResultError(f"{planned.name}: the published cells are not the cells that have an establishment")
    return check_noisy(values[listed], cells["count"].astype(np.float64), pareto_of(planned.method, cells))


def sorted_positions(found: pa.Table, by: Sequence[Dimension]) -> tuple[Integers, Integers]:
    """The order that sorts the rows by their place in the product of the dimensions, and these places, sorted."""
    positions = positions_of(found, by)
    order = np.argsort(positions, kind="stable")
    return order, positions[order]


def positions_of(found: pa.Table, by: Sequence[Dimension]) -> Integers:
    """The place of every row in the product of the dimensions, the last one fastest; unknown codes are refused."""
    return reduce(
        lambda left, dimension: left * len(dimension) + _places(found[dimension.name], dimension),
        by,
        np.zeros(found.num_rows, dtype=np.int64),
    )


def _places(column: pa.ChunkedArray, dimension: Dimension) -> Integers:
    """The place of every code in its codelist; each code of a column is looked up once."""
    encoded = column.combine_chunks() if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    known = pc.index_in(encoded.dictionary.cast(pa.string()), value_set=pa.array(dimension.codes, pa.string()))
    places = known.take(encoded.indices)
    if places.null_count:
        raise WrongResultError(f"{places.null_count:,} rows have no code of '{dimension.name}'")
    return places.to_numpy().astype(np.int64)


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
