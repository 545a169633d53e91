"""Assess a release: tabulate the true cells again and compare them with the answers that were published."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.agree.published import agreeing, nested_sums
from sfumato.assess.report import write_report
from sfumato.assess.risk import Exposure, measure_exposure
from sfumato.assess.utility import Utility, measure_utility
from sfumato.assess.views import views, with_true_values
from sfumato.bundle.structure import unit
from sfumato.cells import Cells
from sfumato.check import Progress, checked, stored_answers
from sfumato.durable import write_durably
from sfumato.engine.data import OpenJobs, OpenRecords
from sfumato.errors import LedgerError, ReleaseError
from sfumato.laid_out import as_asked
from sfumato.method import STATUSES
from sfumato.noise.factors import ONE
from sfumato.plan import MOST_CELLS, Plan, PlannedTable
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release
from sfumato.statistics.cube.assess import CubeAssessment, assess_cube, published_cube
from sfumato.statistics.cube.assess_measures import replicates_of
from sfumato.statistics.jobs.attacks import AttackResult
from sfumato.statistics.panel.attacks import attack_factors, attack_indicators
from sfumato.statistics.panel.indicators import BEHIND, CODES
from sfumato.statistics.panel.tabulate_graph import Network, measure_network
from sfumato.statistics.people.assess import PeopleAssessment, assess_people
from sfumato.statistics.people.question import SampleQuestion
from sfumato.statistics.totals.attacks import attack_totals

# Every cell of a table protected by a key, true beside published, with its expected error: confidential.


def write_cells(planned: PlannedTable, counted: Cells, answer: Cells, path: Path) -> None:
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


def _convergence(planned: PlannedTable, counted: Cells) -> dict[str, pa.Array]:
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
    report: Path
    cubes: tuple[CubeAssessment, ...] = ()
    people: tuple[PeopleAssessment, ...] = ()
    """Of tables of predictions, means and percentiles of people."""


def assess(release: Release, report: Path | None = None, progress: Progress = lambda _: None) -> Assessment:
    """Write the confidential report of a release that was published; it charges nothing and publishes nothing."""
    with checked(release, progress) as ready:
        answers = stored_answers(release)
        history = Ledger.open(release.ledger).history() if release.ledger.exists() else ()
        plan = ready.plan
        planned = {table.table.name: table for table in plan.tables}
        _refuse_too_large(plan)
        answered = {entry.question: entry.answer for entry in history if entry.kind == "answer"}
        kept = {}
        for part in plan.parts:
            question = ready.identity.charge(part).question
            if question not in answered:
                raise LedgerError(
                    f"{'table' if part.name in planned else 'cube'} '{part.name}'",
                    expected="a table that was published from these data",
                    found="no stored answer",
                    do="publish the release first: sfumato run",
                )
            kept[part.name] = (question, answered[question])
        given = {name: as_asked(answers.read(*kept[name]), table) for name, table in planned.items()}
        given, shown = nested_sums(plan, given), agreeing(plan, given)  # as they are published
        progress("tabulate")
        counted = ready.count(planned) if planned else {}
        progress("assess")
        path = report or release.bundle.with_name(f"{release.bundle.name}-confidential") / "report.html"
        utilities, exposures = [], []
        estimated = {name: table for name, table in planned.items() if _is_estimated(table)}
        clipped = _clipped(ready.opened, estimated)
        units = {name: unit(ready.plan, table.table) for name, table in planned.items()}
        people = [
            assess_people(table, counted[name], given[name], clipped, unit=units[name])
            for name, table in estimated.items()
        ]
        cells = {name: found for name, found in counted.items() if isinstance(found, Cells) and name not in estimated}
        for name, true in cells.items():
            table = planned[name]
            attacks = _attacks(table, true, given[name], plan)
            for place, view in enumerate(views(table, true, given[name], agreed=shown[name], unit=units[name])):
                utilities.append(measure_utility(view, plan.codelists))
                exposure = measure_exposure(view)
                exposures.append(replace(exposure, attacks=attacks) if attacks and place == 0 else exposure)
            if "status" in given[name].columns:
                write_cells(table, with_true_values(table, true), given[name], path.with_name(f"{name}.parquet"))
        network = _network(ready.opened, planned.values())
        cubes = [
            assess_cube(
                cube,
                *ready.cube(cube),
                published_cube(cube, answers.read_file(*kept[cube.name])),
                replicates_of(ready.opened, cube) if isinstance(ready.opened, OpenRecords) else None,
            )
            for cube in plan.cubes
        ]
        return Assessment(
            plan=plan,
            utilities=tuple(utilities),
            exposures=tuple(exposures),
            network=network,
            report=write_report(plan, utilities, exposures, network, path, cubes=cubes, people=people),
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


def _is_estimated(planned: PlannedTable) -> bool:
    return isinstance(planned.question, SampleQuestion) and bool(planned.question.at)


def _clipped(opened: OpenJobs | OpenRecords, planned: Mapping[str, PlannedTable]) -> dict[str, int]:
    asked = {name: table.question for name, table in planned.items()}
    return opened.clipped(asked) if isinstance(opened, OpenRecords) else {}


def _network(opened: OpenJobs | OpenRecords, planned: Iterable[PlannedTable]) -> Network | None:
    """The graph of workers and employers, when a table is about it."""
    if not isinstance(opened, OpenJobs) or all(table.table.graph is None for table in planned):
        return None
    return measure_network(opened.frame, opened.tables)


def _attacks(planned: PlannedTable, counted: Cells, answer: Cells, plan: Plan) -> tuple[AttackResult, ...]:
    """The attacks on a table of indicators, which need all of them at once, or on totals of records."""
    if planned.table.total is not None:
        return attack_totals(counted, answer)
    if planned.table.indicators is None:
        return ()
    period, bases, secret = plan.release.period, planned.roundings, plan.secret
    if period is None or bases is None or secret is None:
        raise ValueError("indicators are about a panel, and protected by factors")
    ends = (int((secret.a - 1) * ONE), int((secret.b - 1) * ONE))
    return (
        *attack_indicators(counted, answer, period=period, rounding=bases[1]),
        attack_factors(counted, answer, bases=bases, period=period, within=ends),
    )
