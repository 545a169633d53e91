"""The workloads of an evaluation: tabulated once through the engine, then only arrays."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato.cells import Cells, Dimension
from sfumato.engine.connect import connect
from sfumato.engine.contributions import Contributions, contributions
from sfumato.engine.question import Question
from sfumato.engine.tabulate import tabulate
from sfumato.engine.validate import read_public_codes
from sfumato.errors import DataError
from sfumato.methods.node_laplace import NodeLaplace
from sfumato.release import Release

PUBLIC = ("place", "industry", "ownership")
WORKERS = ("sex", "education")
STRATUM = "place_size"
ALL = "all"
GRADUATES = {"sex": "F", "education": "college"}
"""The second ranking orders cells by the number of women with a college degree."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One set of counts to protect; `worker_cells` is what a method must know about its attributes."""

    number: int
    title: str
    cells: Cells
    worker_cells: int
    strata: NDArray[np.intp]
    """The stratum of every cell, by the population of its place."""
    ranked: NDArray[np.intp]
    """The cells that the ranking of the same number orders; none where there is no such ranking."""


@dataclass(frozen=True, kw_only=True)
class Tabulated:
    """Everything the evaluation needs to know about the economy: confidential if the economy were real."""

    workloads: Mapping[int, Workload]
    contributions: Contributions
    """Of every establishment to the cells of workloads 2 and 3."""
    strata: tuple[str, ...]

    @property
    def jobs(self) -> int:
        """The jobs of the economy."""
        return int(self.contributions.jobs.sum())


def tabulate_workloads(release: Release) -> Tabulated:
    """Count the three workloads of an economy that `sfumato economy` wrote."""
    lacking = [name for name in (*PUBLIC, STRATUM, *WORKERS) if name not in release.frame.attributes]
    if lacking or release.frame.joined:
        raise DataError(
            f"data {release.frame.folder}",
            expected="an economy as `sfumato economy` writes it, with place, industry, ownership, sex and education",
            found=f"no attribute {', '.join(lacking)}" if lacking else "one joined table",
            do="name such a folder with --data, or leave --data out",
        )
    frame = release.frame
    with connect(frame) as tables:
        codelists = read_public_codes(frame, tables)

        def question(*names: str) -> Question:
            by = tuple(Dimension(name=n, codes=codelists[n].codes, public=frame.is_public(n)) for n in names)
            return Question(by=by, needs=frozenset({"largest_employer"}))

        full = question(*PUBLIC, *WORKERS)
        asked = {"workplaces": question(*PUBLIC), "workers": full, "places": question(PUBLIC[0], STRATUM)}
        cells = tabulate(frame, tables, asked)
        contributed = contributions(frame, tables, full, cells["workers"])
    strata = asked["places"].by[1].codes
    return Tabulated(
        workloads=_workloads(cells["workplaces"], cells["workers"], _stratum_of_place(cells["places"]), contributed),
        contributions=contributed,
        strata=strata,
    )


def _workloads(
    workplaces: Cells, workers: Cells, stratum: NDArray[np.intp], contributed: Contributions
) -> dict[int, Workload]:
    place = PUBLIC[0]
    kept = (contributed.sizes < NodeLaplace.threshold).astype(np.int64)
    below = contributed.sums(kept)
    inside = prod(len(d) for d in workers.dimensions if not d.public)
    # The worker cells of a workplace cell stand side by side, because their dimensions come last.
    workplaces = workplaces.with_column("count_below_threshold", below.reshape(-1, inside).sum(axis=1))
    workers = workers.with_column("count_below_threshold", below)
    graduates = np.ones(len(workers), dtype=bool)
    for dimension in workers.dimensions:
        if dimension.name in GRADUATES:
            graduates &= workers.codes(dimension.name) == dimension.codes.index(GRADUATES[dimension.name])
    none = np.zeros(0, dtype=np.intp)
    found = (
        Workload(
            number=1,
            title="place × industry × ownership",
            cells=workplaces,
            worker_cells=0,
            strata=stratum[workplaces.codes(place)],
            ranked=np.arange(len(workplaces)),
        ),
        Workload(
            number=2,
            title="single cells of place × industry × ownership × sex × education",
            cells=_each_alone(workers),
            worker_cells=1,
            strata=stratum[workers.codes(place)],
            ranked=np.flatnonzero(graduates),
        ),
        Workload(
            number=3,
            title="place × industry × ownership × sex × education, all cells together",
            cells=workers,
            worker_cells=inside,
            strata=stratum[workers.codes(place)],
            ranked=none,
        ),
    )
    return {workload.number: workload for workload in found}


def _each_alone(cells: Cells) -> Cells:
    """Every cell as a query by itself: no method is to see the other worker cells of its workplace cell."""
    dimensions = tuple(replace(dimension, public=True) for dimension in cells.dimensions)
    return Cells(dimensions=dimensions, positions=cells.positions, columns=cells.columns)


def _stratum_of_place(places: Cells) -> NDArray[np.intp]:
    """The stratum of every place that has an establishment; the others have no cells."""
    stratum = np.zeros(len(places.dimensions[0]), dtype=np.intp)
    stratum[places.codes(PUBLIC[0])] = places.codes(STRATUM)
    return stratum
