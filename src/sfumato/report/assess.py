"""Assess a release: tabulate the true cells again and compare them with the answers that were published."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.agree.published import agreed_answers, nested_sums
from sfumato.cells import Cells
from sfumato.checking import Progress, checked, stored_answers
from sfumato.durable import write_durably
from sfumato.engine.data import OpenJobs, OpenRecords
from sfumato.errors import LedgerError, ReleaseError
from sfumato.measures.risk import Exposure, measure_exposure
from sfumato.measures.utility import Utility, measure_utility
from sfumato.method import STATUSES
from sfumato.plan import MOST_CELLS, Plan
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release
from sfumato.report.page import write_report
from sfumato.statistics.cube.assess import CubeAssessment, assess_cube, published_cube
from sfumato.statistics.cube.assess_measures import replicates_of
from sfumato.statistics.kinds import by_kind
from sfumato.statistics.panel.indicators import BEHIND, CODES
from sfumato.statistics.panel.network import NetworkComparison
from sfumato.statistics.panel.tabulate_graph import Network, measure_network
from sfumato.statistics.people.assess import PeopleAssessment, assess_people
from sfumato.statistics.people.statistic import People
from sfumato.statistics.published import PublishedTable
from sfumato.statistics.views import views

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


def assess(release: Release, report: Path | None = None, progress: Progress = lambda _: None) -> Assessment:
    """Write the confidential report of a release that was published; it charges nothing and publishes nothing."""
    with checked(release, progress, everything=True, remember=False) as ready:
        answers = stored_answers(release)
        history = Ledger.open(release.ledger).history() if release.ledger.exists() else ()
        plan = ready.plan
        planned = {table.table.name: table for table in plan.tables}
        _refuse_too_large(plan)
        answered = {entry.question: entry.answer for entry in history if entry.kind == "answer"}
        kept = {}
        for part in plan.statistics:
            question = ready.identity.charge(part).question
            if question not in answered:
                raise LedgerError(
                    f"{'table' if part.name in planned else 'cube'} '{part.name}'",
                    expected="a table that was published from these data",
                    found="no stored answer",
                    do="publish the release first: sfumato run",
                )
            kept[part.name] = (question, answered[question])
        given = {name: table.laid_out(answers.read(*kept[name])) for name, table in planned.items()}
        given, shown = (
            nested_sums(plan.tables, given),
            agreed_answers(plan.tables, plan.reconciled, given),
        )  # as published
        progress("tabulate")
        counted = ready.count(planned)
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
        cells = {name: found for name, found in counted.items() if name not in estimated}
        for name, true in cells.items():
            table = planned[name]
            attacks = table.attacks(true, given[name], plan.secret)
            for place, view in enumerate(views(table, true, given[name], agreed=shown[name], unit=units[name])):
                utilities.append(measure_utility(view, plan.codelists))
                exposure = measure_exposure(view)
                exposures.append(replace(exposure, attacks=attacks) if attacks and place == 0 else exposure)
            networks += [found for found in [table.network(true, given[name])] if found is not None]
            if "status" in given[name].columns:
                write_cells(table, table.with_true_values(true), given[name], path.with_name(f"{name}.parquet"))
        network = _network(ready.opened, planned.values())
        cubes = [
            assess_cube(
                cube,
                true,
                sampling,
                published_cube(cube, answers.read_file(*kept[cube.name])),
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
                plan, utilities, exposures, network, path, networks=networks, cubes=cubes, people=people
            ),
            cubes=tuple(cubes),
            people=tuple(people),
        )


def _refuse_too_large(plan: Plan) -> None:
    """Refuse tables that fit into memory in parts only: an assessment looks at all cells at once."""
    for planned in plan.tables:
        if planned.cells > MOST_CELLS:
            raise ReleaseError(
                f"table '{planned.name}'",
                expected=f"at most {MOST_CELLS:,} cells, to be assessed as a whole",
                found=f"{planned.cells:,}",
                do="assess a trial of it that counts some places or industries only (`where = …`), with a ledger and a "
                "bundle of its own that nobody else gets",
            )


def _network(opened: OpenJobs | OpenRecords, planned: Iterable[PublishedTable]) -> Network | None:
    """The graph of workers and employers, when a table is about it."""
    if all(table.table.graph is None for table in planned):
        return None
    jobs = cast(OpenJobs, opened)
    return measure_network(jobs.frame, jobs.tables)
