"""The gate of a nation: every published table is compared with what DuckDB alone counted."""

from collections.abc import Mapping
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.nation.releases import RELEASES, Nation
from bench.shared.gate import WrongResultError, check_counts, manifest_of, sorted_positions, table_file
from sfumato.arrays import Integers
from sfumato.cells import Cells, Dimension
from sfumato.checking import checked
from sfumato.release import load
from sfumato.statistics.published import PublishedTable


def check_release(nation: Nation, release: str, *, jobs: int) -> dict[str, tuple[float, float]]:
    """Refuse a bundle that is not whole, not charged once, or whose errors are not those of the noise.

    The floor, which is the truth here, must have counted every job in every table.
    Returns the observed and the expected mean error of every table.
    """
    described = load(nation.file(release))
    manifest_of(described, RELEASES[release])
    with checked(described) as ready:
        plan = ready.plan
    return {
        planned.name: _check_table(nation.folder, planned, table_file(described, planned.name), jobs=jobs)
        for planned in plan.tables
    }


def _check_table(folder: Path, planned: PublishedTable, file: Path, *, jobs: int) -> tuple[float, float]:
    listed = _listed(folder, planned)
    cells = Cells(dimensions=planned.question.by, positions=listed, columns=_true_columns(folder, planned, listed))
    if (counted := int(cells["count"].sum())) != jobs:
        raise WrongResultError(f"{planned.name}: the floor counted {counted:,} jobs; the economy has {jobs:,}")
    errors = check_counts(file, planned, cells)
    return errors.observed, errors.expected


def _true_columns(folder: Path, planned: PublishedTable, positions: Integers) -> Mapping[str, Integers]:
    """What the floor counted, laid over the published cells; the largest employer is that of the workplace cell."""
    by = planned.question.by
    columns = _laid_over(folder / f"{planned.name}.true.parquet", by, positions, ("count", "largest"))
    public = tuple(dimension for dimension in by if dimension.public)
    if len(public) < len(by):
        names = tuple(dimension.name for dimension in public)
        source = next(table for table, found in RELEASES["seven"].items() if found == names)
        cells = Cells(dimensions=by, positions=positions)
        blocks = np.ravel_multi_index(tuple(cells.codes(name) for name in names), tuple(map(len, public)))
        unique, inverse = np.unique(blocks, return_inverse=True)
        employers = _laid_over(folder / f"{source}.true.parquet", public, unique, ("largest",))
        columns["largest_employer"] = employers["largest"][inverse]
    return columns


def _laid_over(
    path: Path, by: tuple[Dimension, ...], positions: Integers, names: tuple[str, ...]
) -> dict[str, Integers]:
    table = pq.read_table(path)
    order, found = sorted_positions(table, by)
    at = np.searchsorted(positions, found)
    if not np.array_equal(positions[np.minimum(at, len(positions) - 1)], found):
        raise WrongResultError(f"{path.name}: the floor counted cells that have no establishment")
    columns = {name: np.zeros(len(positions), dtype=np.int64) for name in names}
    for name, column in columns.items():
        column[at] = table[name].to_numpy()[order]
    return columns


def _listed(folder: Path, planned: PublishedTable) -> Integers:
    """The cells that ought to be published: all combinations of worker codes wherever an establishment is."""
    by = planned.question.by
    public = [dimension.name for dimension in by if dimension.public]
    source = duckdb.read_parquet(str(folder / "workplaces.parquet"))
    found = source.project(", ".join(public)).distinct().to_arrow_table()
    for dimension in by:
        if not dimension.public:
            codes = pa.table({dimension.name: pa.array(dimension.codes)})
            rows, repeats = found.num_rows, len(dimension)
            found = found.take(np.repeat(np.arange(rows), repeats))
            found = found.append_column(dimension.name, codes.take(np.tile(np.arange(repeats), rows))[dimension.name])
    return sorted_positions(found, by)[1]
