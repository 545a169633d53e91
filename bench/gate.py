"""The gate: no figure is shown for a run that did not finish, or whose result is wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sfumato.arrays import Integers
from sfumato.bundle.manifest import read_manifest
from sfumato.cells import Cells, Dimension
from sfumato.checking import checked
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release, load
from sfumato.statistics.jobs.smooth import SmoothPareto
from sfumato.statistics.published import PublishedTable

TOLERANCE = 0.1
"""How far the mean error of the published values may be from the expected one, as a share of it."""
_CHANCE = 4.5
"""In a small economy a few large establishments carry the mean error: so many standard errors are allowed there."""


class WrongResultError(Exception):
    """A run whose result is not the right one; its time means nothing."""


@dataclass(frozen=True, kw_only=True)
class Errors:
    """The mean absolute error of published values, and what the method expects it to be."""

    observed: float
    expected: float


@dataclass(frozen=True, kw_only=True)
class Truth:
    """The true cells of the table, as sfumato tabulates them."""

    planned: PublishedTable
    cells: Cells

    @classmethod
    def of(cls, file: Path, *, jobs: int) -> "Truth":
        """Tabulate the one table of a release, which must hold every job of the economy."""
        with checked(load(file)) as ready:
            (planned,) = ready.plan.tables
            cells = ready.count({planned.table.name: planned})[planned.table.name]
        if (total := int(cells["count"].sum())) != jobs:
            raise WrongResultError(f"the true table holds {total:,} jobs; the economy was asked for {jobs:,}")
        return cls(planned=planned, cells=cells)

    def check_floor(self, found: pa.Table) -> None:
        """Refuse an answer of the floor that is not, number for number, the true table."""
        order, positions = sorted_positions(found, self.cells.dimensions)
        occupied = self.cells["count"] > 0
        if not (
            np.array_equal(positions, self.cells.positions[occupied])
            and np.array_equal(found["count"].to_numpy()[order], self.cells["count"][occupied])
            and np.array_equal(found["largest"].to_numpy()[order], self.cells["largest"][occupied])
        ):
            raise WrongResultError("the floor and sfumato do not count the same cells")

    def check_published(self, release: Release) -> Errors:
        """Refuse a bundle that is not whole, was not charged once, or is further from the truth than it should be."""
        published = pq.read_table(published_file(release, self.planned.table.name))
        order, positions = sorted_positions(published, self.cells.dimensions)
        values = published["value"].to_numpy()[order]
        listed = np.isin(positions, self.cells.positions)
        if not np.array_equal(positions[listed], self.cells.positions) or values[~listed].any():
            raise WrongResultError("the published cells are not the cells that have an establishment")
        return self._check_errors(np.abs(values[listed] - self.cells["count"]))

    def _check_errors(self, found: Integers) -> Errors:
        """Refuse errors that are not of the expected size: on average, and with every cell counting alike."""
        method = self.planned.method
        assert isinstance(method, SmoothPareto)
        expected = method.expected_error(self.cells)
        errors = Errors(observed=float(np.mean(found)), expected=float(np.mean(expected)))
        tail = float(method.noise.tail)
        chance = np.sqrt(tail / (tail - 2)) * np.linalg.norm(expected) / np.sum(expected)
        apart = abs(errors.observed / errors.expected - 1)
        apart_alike = abs(float(np.mean(found / expected)) - 1)
        if apart > max(TOLERANCE, _CHANCE * chance) or apart_alike > TOLERANCE:
            raise WrongResultError(
                f"the published values are {errors.observed:.3f} jobs from the truth on average, where "
                f"{errors.expected:.3f} was expected; with every cell counting alike they are {apart_alike:.1%} apart"
            )
        return errors


def published_file(release: Release, name: str) -> Path:
    """The file of a table in a bundle that is whole; refused unless the run was charged for it once."""
    read_manifest(release.bundle)
    history = Ledger.open(release.ledger).history(release.account)
    charged = [entry.table for entry in history if entry.kind == "charge"]
    if charged != [name]:
        raise WrongResultError(f"the run should have charged '{name}' once; it charged {charged}")
    return release.bundle / "tables" / f"{name}.parquet"


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
