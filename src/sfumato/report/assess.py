"""Assess a release: tabulate the true cells again and compare them with the answers that were published."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.agree.published import finest_of
from sfumato.cells import Cells
from sfumato.checking import Progress
from sfumato.durable import write_durably
from sfumato.engine.data import OpenJobs, OpenRecords
from sfumato.engine.units import records_of_units, within_limit
from sfumato.errors import ReleaseError
from sfumato.frame.records import UnitLimit
from sfumato.measures.limits import LimitCost, limit_cost
from sfumato.measures.risk import measure_exposure
from sfumato.measures.usability import ACCURACY, usability_of
from sfumato.measures.utility import measure_utility
from sfumato.measures.views import Strata
from sfumato.method import STATUSES
from sfumato.paths import refuse_other
from sfumato.release import Release
from sfumato.report.assessment import Assessment
from sfumato.report.candidates import refuse_strange
from sfumato.report.page import BEGINS, write_report
from sfumato.report.published import OtherTable, PublishedRelease, other_tables, published_release
from sfumato.statistics.cube.assess import CubeAssessment, assess_cube, limit_of_cube
from sfumato.statistics.cube.assess_measures import replicates_of
from sfumato.statistics.cube.cube import Cube
from sfumato.statistics.cube.figures import Sampling
from sfumato.statistics.cube.statistic import CubeStatistic
from sfumato.statistics.cube.tabulate import tabulated_cube
from sfumato.statistics.kinds import by_kind
from sfumato.statistics.panel.indicators import BEHIND, CODES
from sfumato.statistics.panel.statistic import with_roundings
from sfumato.statistics.panel.tabulate_graph import Network, measure_network
from sfumato.statistics.people.assess import assess_people
from sfumato.statistics.people.statistic import People
from sfumato.statistics.published import PublishedTable
from sfumato.statistics.views import views

MOST_STRATA = 100
"""An attribute with more codes makes a table that nobody reads."""

# Every cell of a table protected by a key, true beside published, with its expected error: confidential.


def write_cells(
    planned: PublishedTable, counted: Cells, answer: Cells, path: Path, more: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """Write the cells as a Parquet file that only its owner can read."""
    places = np.unravel_index(counted.positions, tuple(map(len, counted.dimensions)))
    columns: dict[str, pa.Array] = {
        dimension.name: pa.DictionaryArray.from_arrays(place.astype(np.int32), list(dimension.codes))
        for dimension, place in zip(counted.dimensions, places, strict=True)
    }
    columns |= {
        "true": pa.array(counted["count"]),
        "published": pa.array(planned.shown_values(answer)),
        "status": pa.DictionaryArray.from_arrays(answer["status"].astype(np.int32), list(STATUSES)),
        "expected_error": pa.array(planned.expected_errors(counted)),
    }
    columns |= {name: pa.array(risk, from_pandas=True) for name, risk in planned.cell_risks(counted, answer).items()}
    columns |= {name: pa.array(column) for name, column in more.items()}
    if "factors" in counted.columns:
        columns |= _convergence(planned, counted)
    if path.exists() and "expected_error" not in pq.read_schema(path).names:
        raise ReleaseError(
            f"--report {path.with_suffix('.html').name}",
            expected=f"a folder in which {path.name} is from an earlier report, or not there",
            found="other data of that name, which the cells of the report would take the place of",
            do="name a report in a folder of its own",
        )
    content = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), content, compression="zstd")
    write_durably(path, content.getvalue().to_pybytes())
    path.chmod(0o600)


def true_cells(found: PublishedRelease, table: PublishedTable) -> Cells:
    """The true cells; where a table is published as sums of a finer one, with how many values each is a sum of."""
    finest, true = finest_of(table, found.plan.tables), found.counted[table.name]
    return true if finest is table else with_roundings(true, found.counted[finest.name])


def _convergence(planned: PublishedTable, counted: Cells) -> dict[str, pa.Array]:
    """The number of observations for each distinct factor in a statistic.

    Above 1, distortions average out more slowly than those of as many independent observations.
    """
    factors, observed = counted["factors"], counted["count"]
    if planned.table.indicators is not None:
        observed = observed.reshape(-1, len(CODES))[:, BEHIND].reshape(-1)
    ratio = np.divide(observed, factors, out=np.zeros(len(factors)), where=factors > 0)
    return {"distinct_factors": pa.array(factors), "convergence_ratio": pa.array(ratio, mask=factors == 0)}


def assess(
    release: Release,
    report: Path | None = None,
    progress: Progress = lambda _: None,
    *,
    strata: Sequence[str] = (),
    earlier: Release | None = None,
    reference: Release | None = None,
    accuracy: float = ACCURACY,
    change: float = 5.0,
) -> Assessment:
    """Write the confidential report of a release that was published; it charges nothing and publishes nothing.

    Errors of counts of jobs are broken down by the public attributes `strata` too, whatever the tables are by.
    `earlier` is the release of another period, whose tables of the same names are used to attack growth, and true
    numbers: readers take it that no cell changed by more than `change` percent. `reference` is one of the same data
    with another protection, whose errors are compared. Cells can be used that are expected to be off by no more than
    the share `accuracy` of their value.
    """
    refuse_strange("--accuracy", [accuracy])
    if not 0 <= change < inf:
        raise ReleaseError("--change", expected="a percentage of at least 0", found=f"{change:g}", do="write 5, say")
    if earlier is not None and earlier.about.period == release.about.period:
        raise ReleaseError(
            "--earlier",
            expected=f"the release of another period than {release.about.period}: growth is read off two periods",
            found=f"a release of {earlier.about.period}",
            do="name the release file of an earlier period; --reference compares another protection of the same data",
        )
    place = report or release.confidential / "report.html"
    path = refuse_other(place, "--report", "report", BEGINS, planned=release.bundle)
    with published_release(release, progress) as found:
        plan = found.plan
        before = {} if earlier is None else other_tables(earlier, plan.tables, progress, option="--earlier", exact=True)
        others = {} if reference is None else other_tables(reference, plan.tables, progress, option="--reference")
        if others and all(_is_same(found, other, name) for name, other in others.items()):
            raise ReleaseError(
                "--reference",
                expected="a release of the same data that was protected otherwise",
                found="the same published values, as in this release itself",
                do="name the release file of the other protection, with a ledger and a bundle of its own",
            )
        progress("assess")
        assessment = assess_answers(
            found, path, strata=strata, before=before, others=others, accuracy=accuracy, change=change
        )
        for table in plan.tables:
            answer, true = found.given[table.name], true_cells(found, table)
            if "status" in answer.columns and not table.estimates:
                cells, more = table.with_true_values(true), assessment.told.get(table.name, {})
                write_cells(table, cells, answer, path.with_name(f"{table.name}.parquet"), more)
        write_report(assessment)
        return assessment


def _with_known(
    found: PublishedRelease, kind: Any, batch: Mapping[str, PublishedTable]
) -> dict[str, tuple[PublishedTable, Cells, Cells]]:
    """The tables of a kind with their true cells and answers, and those of earlier releases that they are linked to."""
    known = {name: one for name, one in found.plan.known_before.items() if type(one[0]) is kind}
    own = {name: (table, found.counted[name], found.given[name]) for name, table in batch.items()}
    if not known:
        return own
    tables = {**batch, **{name: cast(PublishedTable, one) for name, (one, _) in known.items()}}
    counted = found.ready.count({name: table.to_assess() for name, table in tables.items()})
    answers = {name: answer for name, (_, _, answer) in own.items()} | {name: one for name, (_, one) in known.items()}
    return {name: (table, *table.aligned(counted[name], answers[name])) for name, table in tables.items()}


def assess_answers(
    found: PublishedRelease,
    report: Path,
    *,
    strata: Sequence[str] = (),
    before: Mapping[str, OtherTable] | None = None,
    others: Mapping[str, OtherTable] | None = None,
    accuracy: float = ACCURACY,
    change: float = 5.0,
) -> Assessment:
    """Compare the answers of a release, stored ones or those of a trial, with the true numbers; nothing is written.

    `before` are tables of an earlier period, and `others` those of another protection.
    """
    ready, plan, given, counted = found.ready, found.plan, found.given, found.counted
    before, others = before or {}, others or {}
    planned = {table.name: table for table in plan.tables}
    utilities, exposures, networks, usability = [], [], [], []
    estimated = {name: table for name, table in planned.items() if table.estimates}
    clipped: dict[str, int] = {}
    for kind, batch in by_kind(estimated).items():
        clipped |= kind.clipped(batch, ready.opened)
    units = {name: table.unit(plan) for name, table in planned.items()}
    people = [
        assess_people(cast(People, table), counted[name], given[name], clipped, unit=units[name], accuracy=accuracy)
        for name, table in estimated.items()
    ]
    cells = {name: true for name, true in counted.items() if name not in estimated}
    listings = [table.listing(found.tabulated[name], given[name]) for name, table in planned.items()]
    sparse = [made for made in listings if made is not None]
    classes = _strata(found, strata)
    for name, true in cells.items():
        table = planned[name]
        attacks = table.attacks(true, given[name], plan.secret)
        whole = true_cells(found, table)
        for place, view in enumerate(views(table, whole, given[name], agreed=found.shown[name], unit=units[name])):
            seen = replace(
                view,
                strata=classes.get(name, ()),
                reference=others[name].reference(table, view.counted) if name in others else None,
            )
            utilities.append(measure_utility(seen, plan.codelists))
            if not table.relative:
                usability.append(usability_of(seen, accuracy))
            exposure = measure_exposure(seen)
            exposure = replace(exposure, attacks=attacks) if attacks and place == 0 else exposure
            growth = before[name].growth(table, view.counted, view.shown) if name in before else None
            more = () if growth is None else (growth,)
            exposures.append(replace(exposure, attacks=(*exposure.attacks, *more)))
        networks += [made for made in [table.network(true, given[name])] if made is not None]
    by_period = (planned[name].growth(cells[name], given[name]) for name in cells)
    together = []
    for kind, batch in by_kind({name: planned[name] for name in cells}).items():
        earlier = {n: (one.planned, one.counted, one.answer) for n, one in before.items() if type(one.planned) is kind}
        known = _with_known(found, kind, batch)
        releases = [some & known.keys() for some in (frozenset(batch), *plan.released_before)]
        together.append(kind.together(known, earlier, change, releases))
    cubes = [
        _assess_cube(found, cube, true, sampling, cast(OpenRecords, ready.opened))
        for cube in plan.cubes
        for _, (true, sampling) in ready.tabulate({cube.name: cube})
    ]
    usability += [one.usability for one in people]
    usability += [part for cube in cubes for part in cube.usability(accuracy)]
    return Assessment(
        plan=plan,
        utilities=tuple(utilities),
        exposures=tuple(exposures),
        network=_network(ready.opened, planned.values()),
        networks=tuple(networks),
        report=report,
        growth=tuple(chain.from_iterable(by_period)),
        together=tuple(one for one in together if one is not None),
        cubes=tuple(cubes),
        people=tuple(people),
        sparse=tuple(sparse),
        limits=tuple(_limits(found, counted, given, ready.opened)),
        usability=tuple(usability),
    )


def _limits(
    found: PublishedRelease, counted: Mapping[str, Cells], given: Mapping[str, Cells], opened: Any
) -> Iterator[tuple[str, LimitCost]]:
    """What is left out of tables that hide whole units, beside hiding one record."""
    for table in (one for one in found.plan.tables if one.chooses_records):
        people = cast(People, table)
        everyone = replace(people, question=replace(people.question, limit=None))
        ((_, everything),) = People.tabulate({table.name: everyone}, opened, None)
        method, limit = people.method, cast(UnitLimit, people.question.limit)
        weights = None if people.question.weight is None else (counted[table.name]["count"], everything["count"])
        yield (
            table.title,
            limit_cost(
                limit,
                records_of_units(opened.tables, limit),
                everything=everything["count"],
                counted=counted[table.name]["count"],
                published=given[table.name]["value"].astype(np.float64),
                noise=partial(_noise_hiding, method),
                weights=None if weights is None else (int(weights[0].sum()), int(weights[1].sum())),
            ),
        )


def _noise_hiding(method: Any, most: int) -> float:
    """The mean absolute noise of a count that hides so many records of a unit."""
    protects = "record" if most == 1 else "unit"
    return float(replace(method, protects=protects, most_records=most).noise.expected_magnitude)


def _assess_cube(
    found: PublishedRelease, cube: CubeStatistic, true: Cube, sampling: Sampling | None, opened: OpenRecords
) -> CubeAssessment:
    """The findings about one cube; where whole units are hidden, with what is left out for that."""
    published, limit = found.cube(cube, (true, sampling)), cube.question.limit
    with within_limit(opened, limit, found.plan.secret) as kept:
        made = assess_cube(cube, true, sampling, published, replicates_of(kept, cube))
    if limit is None:
        return made
    everything = tabulated_cube(opened.data, opened.tables, cube.question)
    sizes = records_of_units(opened.tables, limit)
    return replace(made, limit=limit_of_cube(cube, everything, true, published, sizes))


def _is_same(found: PublishedRelease, other: OtherTable, name: str) -> bool:
    """Whether another release publishes the same values of a table."""
    planned = next(table for table in found.plan.tables if table.name == name)
    shown = planned.shown_values(found.shown[name])
    return np.array_equal(other.reference(planned, found.counted[name]), shown)


def _strata(found: PublishedRelease, attributes: Sequence[str]) -> dict[str, tuple[Strata, ...]]:
    """The strata of every table that has some, by attributes that need not be its own."""
    data, plan = found.plan.release.data, found.plan
    for name in attributes:
        codes = len(plan.codelists[name].codes) if data.is_public(name) else 0
        if not 1 < codes <= MOST_STRATA:
            raise ReleaseError(
                f"strata '{name}'",
                expected=f"a public attribute of workplaces with 2 to {MOST_STRATA} codes; public are: "
                f"{', '.join(data.public_attributes) or 'none'}",
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
