"""The shape of an economy, in the figures published about the real one."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato_lab.economy import files
from sfumato_lab.economy.frame import need_files
from sfumato_lab.economy.jobs.codelists import PLACE_SIZE
from sfumato_lab.economy.jobs.draws import Establishments, Places

LARGE: Final = 1_000
DOMINANT: Final = 0.65
_BATCH = 1 << 21


@dataclass(frozen=True, kw_only=True)
class Cellwise:
    """Figures of the non-empty cells by place, industry and ownership, in all places or those of one size."""

    cells: int
    jobs: int
    dominated: float
    """Share of cells in which one establishment has more than 65% of the jobs."""
    below_thousand: float
    """Share of cells with fewer than 1,000 jobs."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What was published about the real economy, and a little more."""

    jobs: int
    establishments: int
    """Establishments with at least one job."""
    without_jobs: int
    """Establishments without any."""
    thousand_plus: int
    """Establishments with 1,000 or more workers."""
    largest: int
    """Workers of the largest establishment."""
    places: int
    """Places with an establishment."""
    combinations: int
    """Combinations of place, industry and ownership with an establishment, with jobs or without."""
    overall: Cellwise
    by_place_size: Mapping[str, Cellwise]
    """The same by population of the place; a size without any job is left out."""

    @property
    def mean_size(self) -> float:
        """Workers per establishment with jobs."""
        return self.jobs / self.establishments

    def rows(self) -> tuple[tuple[str, str, str], ...]:
        """What, ours, and the figure published for 10.9 million jobs: the lines of a table for reading."""
        return (
            ("jobs", f"{self.jobs:,}", "10.9 million"),
            ("establishments with jobs", f"{self.establishments:,}", "about 527,000"),
            ("workers per establishment", f"{self.mean_size:.1f}", "20.7"),
            (f"establishments with {LARGE:,} or more workers", f"{self.thousand_plus:,}", "740 to 815"),
            ("cells where one establishment has over 65%", f"{self.overall.dominated:.1%}", "at least 50%"),
            (f"cells below {LARGE:,} jobs", f"{self.overall.below_thousand:.1%}", "over 93%"),
            ("cells with jobs", f"{self.overall.cells:,}", "not published"),
            ("establishments without jobs", f"{self.without_jobs:,}", "not published"),
            ("largest establishment", f"{self.largest:,}", "not published"),
            ("places with an establishment", f"{self.places:,}", "not published"),
        )


def measure(folder: Path) -> Shape:
    """The shape of the economy in a folder, from its register and its jobs, in bounded memory."""
    folder = Path(folder)
    need_files(folder, (files.WORKPLACES, files.JOBS), what="an economy", command="sfumato economy jobs")
    register = pq.read_table(folder / files.WORKPLACES).unify_dictionaries()
    place, industry, ownership, place_size = (
        register[name].combine_chunks() for name in ("place", "industry", "ownership", "place_size")
    )
    stratum = np.array([PLACE_SIZE.codes.index(code) for code in place_size.dictionary.to_pylist()])
    return _shape(
        place=place.indices.to_numpy(),
        cell=np.ravel_multi_index(
            [attribute.indices.to_numpy() for attribute in (place, industry, ownership)],
            [len(attribute.dictionary) for attribute in (place, industry, ownership)],
        ),
        stratum=stratum[place_size.indices.to_numpy()],
        size=_sizes(folder / files.JOBS, establishments=len(register)),
    )


def shape_of(establishments: Establishments, places: Places) -> Shape:
    """The shape an economy will have, before any worker is drawn."""
    return _shape(
        place=establishments.place,
        cell=establishments.cell.astype(np.int64),
        stratum=places.strata[establishments.place].astype(np.int64),
        size=establishments.size,
    )


def _sizes(path: Path, *, establishments: int) -> Integers:
    """Jobs by establishment; keys run from 1 on without a gap, so that counting needs no join."""
    sizes = np.zeros(establishments + 1, dtype=np.int64)
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_BATCH, columns=["workplace"]):
            sizes += np.bincount(batch["workplace"].to_numpy(), minlength=establishments + 1)
    return sizes[1:]


def _shape(*, place: NDArray[np.int32], cell: Integers, stratum: Integers, size: Integers) -> Shape:
    # A dictionary lists codes as they appear, so that cells may not ascend as they do in the register.
    order = np.argsort(cell, kind="stable")
    cell, stratum, size = cell[order], stratum[order], size[order]
    start = np.flatnonzero(np.diff(cell, prepend=-1))
    count, largest = np.add.reduceat(size, start), np.maximum.reduceat(size, start)
    by_place_size = {
        code: _cellwise(count, largest, among)
        for number, code in enumerate(PLACE_SIZE.codes)
        if np.any(count[among := stratum[start] == number])
    }
    return Shape(
        jobs=int(size.sum()),
        establishments=int(np.count_nonzero(size)),
        without_jobs=int(np.count_nonzero(size == 0)),
        thousand_plus=int(np.count_nonzero(size >= LARGE)),
        largest=int(size.max()),
        places=len(np.unique(place)),
        combinations=len(start),
        overall=_cellwise(count, largest, np.full(len(count), fill_value=True)),
        by_place_size=MappingProxyType(by_place_size),
    )


def _cellwise(count: Integers, largest: Integers, among: NDArray[np.bool_]) -> Cellwise:
    among = among & (count > 0)
    count, largest = count[among], largest[among]
    return Cellwise(
        cells=len(count),
        jobs=int(count.sum()),
        dominated=float(np.mean(largest > DOMINANT * count)),
        below_thousand=float(np.mean(count < LARGE)),
    )
