"""Assess a release: tabulate the true cells again and compare them with the answers that were published."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.cells import Cells
from sfumato.checking import Progress
from sfumato.durable import write_durably
from sfumato.engine.data import OpenJobs, OpenRecords
from sfumato.errors import ReleaseError
from sfumato.measures.attacks import AttackResult
from sfumato.measures.risk import Exposure, measure_exposure
from sfumato.measures.utility import Utility, measure_utility
from sfumato.measures.views import Strata
from sfumato.method import STATUSES
from sfumato.plan import Plan
from sfumato.release import Release
from sfumato.report.page import write_report
from sfumato.report.published import OtherTable, PublishedRelease, other_tables, published_release
from sfumato.statistics.cube.assess import CubeAssessment, assess_cube, published_cube
from sfumato.statistics.cube.assess_measures import replicates_of
from sfumato.statistics.jobs.assess_sparse import SparseAssessment
from sfumato.statistics.kinds import by_kind
from sfumato.statistics.panel.indicators import BEHIND, CODES
from sfumato.statistics.panel.network import NetworkComparison
from sfumato.statistics.panel.tabulate_graph import Network, measure_network
from sfumato.statistics.people.assess import PeopleAssessment, assess_people
from sfumato.statistics.people.statistic import People
from sfumato.statistics.published import PublishedTable
from sfumato.statistics.totals.growth import GrowthUtility
from sfumato.statistics.views import views

MOST_STRATA = 100
"""An attribute with more codes makes a table that nobody reads."""

# Every cell of a table protected by a key, true beside published, with its expected error: confidential.


def write_cells(planned: PublishedTable, counted: Cells, answer: Cells, path: Path) -> None:
    """Write the cells as a Parquet file that only its owner can read."""
    places = np.unravel_index(counted.positions, tuple(map(len, counted.dimensions)))
    columns: dict[str, pa.Array] = {
        dimension.name: pa.DictionaryArray.from_arrays(place.astype(np.int32), list(dimension.codes))
        for dimension, place in zip(counted.dimensions, places, strict=True)
    }
    columns |= {
        "true": pa.array(counted["count"]),
        "published": pa.array(answer["value"]),
        "status": pa.DictionaryArray.from_arrays(answer["status"].astype(np.int32), list(STATUSES)),
        "expected_error": pa.array(planned.method.expected_error(counted)),
    }
    columns |= {name: pa.array(risk, from_pandas=True) for name, risk in planned.cell_risks(counted, answer).items()}
    if "factors" in counted.columns:
        columns |= _convergence(planned, counted)
    content = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), content, compression="zstd")
    write_durably(path, content.getvalue().to_pybytes())
    path.chmod(0o600)


def _convergence(planned: PublishedTable, counted: Cells) -> dict[str, pa.Array]:
    """The number of observations for each distinct factor in a statistic.

    Above 1, distortions average out more slowly than those of as many independent observations.
    """
    factors, observed = counted["factors"], counted["count"]
    if planned.table.indicators is not None:
        observed = observed.reshape(-1, len(CODES))[:, BEHIND].reshape(-1)
    ratio = np.divide(observed, factors, out=np.zeros(len(factors)), where=factors > 0)
    return {"distinct_factors": pa.array(factors), "convergence_ratio": pa.array(ratio, mask=factors == 0)}


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """The confidential findings about a release, and the page that shows them."""

    plan: Plan
    utilities: tuple[Utility, ...]
    exposures: tuple[Exposure, ...]
    network: Network | None
    """Of workers and employers, when a table is about their graph."""
    networks: tuple[NetworkComparison, ...]
    """Of the classes of every flow and graph."""
    report: Path
    cubes: tuple[CubeAssessment, ...] = ()
    people: tuple[PeopleAssessment, ...] = ()
    """Of tables of predictions, means and percentiles of people."""
    together: tuple[AttackResult, ...] = ()
    """Attacks that use several tables."""
    growth: tuple[GrowthUtility, ...] = ()
    """Of totals by period."""
    sparse: tuple[SparseAssessment, ...] = ()
    """Of tables that list values from a threshold on."""


def assess(
    release: Release,
    report: Path | None = None,
    progress: Progress = lambda _: None,
    *,
    strata: Sequence[str] = (),
    earlier: Release | None = None,
    reference: Release | None = None,
) -> Assessment:
    """Write the confidential report of a release that was published; it charges nothing and publishes nothing.

    Errors of counts of jobs are broken down by the public attributes `strata` too, whatever the tables are by.
    `earlier` is the release of another period, whose tables of the same names are used to attack growth, and
    `reference` one of the same data with another protection, whose errors are compared.
    """
    if earlier is not None and earlier.about.period == release.about.period:
        raise ReleaseError(
            "--earlier",
            expected=f"the release of another period than {release.about.period}: growth is read off two periods",
            found=f"a release of {earlier.about.period}",
            do="name the release file of an earlier period; --reference compares another protection of the same data",
        )
    with published_release(release, progress) as found:
        ready, plan, given, counted = found.ready, found.plan, found.given, found.counted
        planned = {table.table.name: table for table in plan.tables}
        before = {} if earlier is None else other_tables(earlier, plan.tables, progress, option="--earlier")
        others = {} if reference is None else other_tables(reference, plan.tables, progress, option="--reference")
        if others and all(_is_same(found, other, name) for name, other in others.items()):
            raise ReleaseError(
                "--reference",
                expected="a release of the same data that was protected otherwise",
                found="the same published values, as in this release itself",
                do="name the release file of the other protection, with a ledger and a bundle of its own",
            )
        progress("assess")
        path = report or release.bundle.with_name(f"{release.bundle.name}-confidential") / "report.html"
        utilities, exposures, networks = [], [], []
        estimated = {name: table for name, table in planned.items() if table.estimates}
        clipped: dict[str, int] = {}
        for kind, batch in by_kind(estimated).items():
            clipped |= kind.clipped(batch, ready.opened)
        units = {name: table.unit(release.data) for name, table in planned.items()}
        people = [
            assess_people(cast(People, table), counted[name], given[name], clipped, unit=units[name])
            for name, table in estimated.items()
        ]
        cells = {name: true for name, true in counted.items() if name not in estimated}
        listings = [table.listing(found.tabulated[name], given[name]) for name, table in planned.items()]
        sparse = [made for made in listings if made is not None]
        classes = _strata(found, strata)
        for name, true in cells.items():
            table = planned[name]
            attacks = table.attacks(true, given[name], plan.secret)
            for place, view in enumerate(views(table, true, given[name], agreed=found.shown[name], unit=units[name])):
                seen = replace(
                    view,
                    strata=classes.get(name, ()),
                    reference=others[name].reference(table, view.counted) if name in others else None,
                )
                utilities.append(measure_utility(seen, plan.codelists))
                exposure = measure_exposure(seen)
                exposure = replace(exposure, attacks=attacks) if attacks and place == 0 else exposure
                growth = before[name].growth(table, view.counted, view.shown) if name in before else None
                more = () if growth is None else (growth,)
                exposures.append(replace(exposure, attacks=(*exposure.attacks, *more)))
            networks += [made for made in [table.network(true, given[name])] if made is not None]
            if "status" in given[name].columns:
                write_cells(table, table.with_true_values(true), given[name], path.with_name(f"{name}.parquet"))
        by_period = (planned[name].growth(cells[name], given[name]) for name in cells)
        grown = [measured for measured in by_period if measured is not None]
        together: list[AttackResult] = []
        for kind, batch in by_kind({name: planned[name] for name in cells}).items():
            together += kind.attacks_together(
                {name: (table, cells[name], given[name]) for name, table in batch.items()}
            )
        network = _network(ready.opened, planned.values())
        cubes = [
            assess_cube(
                cube,
                true,
                sampling,
                published_cube(cube, found.answers.read_file(*found.kept[cube.name])),
                replicates_of(cast(OpenRecords, ready.opened), cube),
            )
            for cube in plan.cubes
            for _, (true, sampling) in ready.tabulate({cube.name: cube})
        ]
        return Assessment(
            plan=plan,
            utilities=tuple(utilities),
            exposures=tuple(exposures),
            network=network,
            networks=tuple(networks),
            report=write_report(
                plan,
                utilities,
                exposures,
                network,
                path,
                networks=networks,
                cubes=cubes,
                people=people,
                together=together,
                growth=grown,
                sparse=sparse,
            ),
            growth=tuple(grown),
            together=tuple(together),
            cubes=tuple(cubes),
            people=tuple(people),
            sparse=tuple(sparse),
        )


def _is_same(found: PublishedRelease, other: OtherTable, name: str) -> bool:
    """Whether another release publishes the same values of a table."""
    planned = next(table for table in found.plan.tables if table.name == name)
    shown = planned.shown_values(found.shown[name])
    return np.array_equal(other.reference(planned, found.counted[name]), shown)


def _strata(found: PublishedRelease, attributes: Sequence[str]) -> dict[str, tuple[Strata, ...]]:
    """The strata of every table that has some, by attributes that need not be its own."""
    data, plan = found.plan.release.data, found.plan
    for name in attributes:
        codes = len(plan.codelists[name].codes) if name in data.public else 0
        if not 1 < codes <= MOST_STRATA:
            raise ReleaseError(
                f"strata '{name}'",
                expected=f"a public attribute of workplaces with 2 to {MOST_STRATA} codes; public are: "
                f"{', '.join(data.public) or 'none'}",
                found=f"one with {codes:,}" if codes else f"'{name}', which is none",
                do="describe a coarser attribute of workplaces, such as a class of population of the place, under "
                "`public` of [data]",
            )
    opened = found.ready.opened
    made = {
        table.name: tuple(
            filter(
                None,
                (table.strata(name, plan.codelists[name], opened, found.counted[table.name]) for name in attributes),
            )
        )
        for table in plan.tables
    }
    if attributes and not any(made.values()):
        raise ReleaseError(
            f"strata '{attributes[0]}'",
            expected="a release with a count of jobs, whose cells have establishments with public attributes",
            found="none",
            do="leave it out, or put the attribute into `by`",
        )
    return made


def _network(opened: OpenJobs | OpenRecords, planned: Iterable[PublishedTable]) -> Network | None:
    """The graph of workers and employers, when a table is about it."""
    if all(table.table.graph is None and table.table.degrees is None for table in planned):
        return None
    jobs = cast(OpenJobs, opened)
    return measure_network(jobs.frame, jobs.tables)
