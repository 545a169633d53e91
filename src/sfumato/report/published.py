"""What was published of a release, read again beside its true cells: confidential."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.agree.published import agreed_answers, nested_sums
from sfumato.arrays import Integers
from sfumato.cells import Cells
from sfumato.checking import Checked, Progress, Step, checked, stored_answers
from sfumato.engine.chunks import MOST_CELLS
from sfumato.errors import LedgerError, ReleaseError
from sfumato.measures.attacks import AttackResult
from sfumato.measures.risk import attack_growth
from sfumato.plan import Plan
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release
from sfumato.statistic import decided_together
from sfumato.statistics.cube.assess import published_cube
from sfumato.statistics.cube.published_cube import PublishedCube
from sfumato.statistics.cube.statistic import CubeStatistic
from sfumato.statistics.published import PublishedTable


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedRelease:
    """A release with its answers, stored ones or those of a trial, its data being open."""

    ready: Checked
    cube: Callable[[CubeStatistic, Any], PublishedCube]
    """A cube as it is published, from its true numbers where it is drawn on trial."""
    given: Mapping[str, Cells]
    """The answers of tables, as they are published where one lies in a finer one."""
    shown: Mapping[str, Cells]
    """The same after tables were made to agree."""
    counted: Mapping[str, Any]
    """The true numbers of tables, about the same cells as the answers."""
    tabulated: Mapping[str, Any]
    """What these were made of."""

    @property
    def plan(self) -> Plan:
        """The plan of the release."""
        return self.ready.plan


@contextmanager
def published_release(release: Release, progress: Progress) -> Iterator[PublishedRelease]:
    """Open the data of a release that was published, tabulate its tables, and read what was answered."""
    with checked(release, progress, everything=True, remember=False) as ready:
        answers = stored_answers(release)
        history = Ledger.open(release.ledger).history() if release.ledger.exists() else ()
        plan = ready.plan
        planned = {table.name: table for table in plan.tables}
        refuse_too_large(plan)
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
        read = {name: table.laid_out(answers.read(*kept[name])) for name, table in planned.items()}
        progress("tabulate")
        tabulated = ready.count({name: table.to_assess() for name, table in planned.items()})
        yield as_published(
            ready, tabulated, read, lambda cube, _: published_cube(cube, answers.read_file(*kept[cube.name]))
        )


def as_published(
    ready: Checked,
    tabulated: Mapping[str, Any],
    answered: Mapping[str, Cells],
    cube: Callable[[CubeStatistic, Any], PublishedCube],
) -> PublishedRelease:
    """What readers get of some answers, beside the true numbers."""
    plan = ready.plan
    planned = {table.name: table for table in plan.tables}
    given = nested_sums(plan.tables, answered)
    aligned = {name: table.aligned(tabulated[name], given[name]) for name, table in planned.items()}
    shown = agreed_answers(plan, answered)
    return PublishedRelease(
        ready=ready,
        cube=cube,
        given={name: answer for name, (_, answer) in aligned.items()},
        shown={name: aligned[name][1] if table.sparse else shown[name] for name, table in planned.items()},
        counted={name: true for name, (true, _) in aligned.items()},
        tabulated=tabulated,
    )


def on_trial(
    ready: Checked,
    counted: list[tuple[PublishedTable, Any]],
    progress: Progress = lambda _: None,
    *,
    draw: Callable[[PublishedTable, Any], Cells] | None = None,
) -> PublishedRelease:
    """The same of answers that are drawn here, looked at and thrown away: nothing is charged, and nothing is kept.

    Formal noise is drawn from the operating system, as a run draws it, and a run draws anew. What follows from a key is
    what a run would publish. `counted` has the true numbers of earlier trials, and gets those of this one. A comparison
    answers tables that are not decided together by a `draw` of its own.
    """
    plan = ready.plan
    refuse_too_large(plan)
    tables = {table.name: table for table in plan.tables}
    asked = {name: table.to_assess() for name, table in tables.items()}
    tabulated = {
        name: true
        for name, table in asked.items()
        for other, true in counted
        if type(other) is type(table) and other.question == table.question
    }
    more = {name: table for name, table in asked.items() if name not in tabulated}
    tabulated |= ready.count(more)
    counted += [(table, tabulated[name]) for name, table in more.items()]
    drawn: dict[str, Cells] = {}
    distinct: dict[str, str] = {}
    for name, table in tables.items():  # in the order of a run, which equally near numbers depend on
        distinct.setdefault(table.digest(""), name)
    decided = decided_together(
        {name: tables[name] for name in distinct.values()},
        plan.known_before,
        lambda asked: (
            {n: tabulated[n] for n in asked if n in tabulated}
            | ready.count({n: one for n, one in asked.items() if n not in tabulated})
        ),
        plan.secret,
        lambda words, share: progress(Step(words, share)),
    )
    drawn |= {tables[name].digest(""): answer for name, answer in decided.items()}
    for name, table in tables.items():
        question = table.digest("")  # two tables that ask the same are answered once
        if question not in drawn:
            true = tabulated[name]
            drawn[question] = table.answer(true, plan.secret) if draw is None else draw(table, true)
    answered = {name: table.as_asked(table.content(drawn[table.digest("")])) for name, table in tables.items()}

    def cube(planned: CubeStatistic, counted: Any) -> PublishedCube:
        return published_cube(planned, planned.content(planned.answer(counted, plan.secret)))

    return as_published(ready, tabulated, answered, cube)


def refuse_too_large(plan: Plan) -> None:
    """Refuse tables that fit into memory in parts only: an assessment looks at all cells at once."""
    for planned in plan.tables:
        if planned.cells > MOST_CELLS and not planned.sparse:
            raise ReleaseError(
                f"table '{planned.name}'",
                expected=f"at most {MOST_CELLS:,} cells, to be assessed as a whole",
                found=f"{planned.cells:,}",
                do="assess a trial of it that counts some places or industries only (`where = …`), with a ledger and a "
                "bundle of its own that nobody else gets",
            )


# The same table in another release: of an earlier period, or of the same data under another protection.


@dataclass(frozen=True, kw_only=True, eq=False)
class OtherTable:
    """A table of another release, true and as it was published."""

    planned: PublishedTable
    counted: Cells
    shown: Integers
    answer: Cells

    def growth(self, planned: PublishedTable, counted: Cells, shown: Integers) -> AttackResult | None:
        """What two periods of the table tell of growth; None where the number of establishments is not known."""
        if not all("establishments" in cells.columns for cells in (counted, self.counted)):
            return None
        bases = (base for table in (planned, self.planned) for base in table.roundings or (0,))
        return attack_growth(
            before=self.counted.laid_out(counted.dimensions),
            after=counted,
            published_before=self._laid_out(counted),
            published_after=shown,
            rounding=max(bases),
        )

    def reference(self, planned: PublishedTable, counted: Cells) -> Integers:
        """Its values at the cells of the table that it is a reference for; what it does not list is exactly 0."""
        own = self.counted.laid_out(counted.dimensions)
        _, there, here = np.intersect1d(own.positions, counted.positions, assume_unique=True, return_indices=True)
        true, values = np.zeros(len(counted), dtype=np.int64), np.zeros(len(counted), dtype=np.int64)
        true[here], values[here] = own["count"][there], self._laid_out(counted)[there]
        if not np.array_equal(true, counted["count"]):
            raise ReleaseError(
                f"table '{planned.name}' of the reference",
                expected="the same table of the same data, protected otherwise",
                found="other true cells",
                do="name a release of the same data files",
            )
        return values

    def _laid_out(self, counted: Cells) -> Integers:
        """The published values in the order of another table's dimensions."""
        return self.counted.with_column("_shown", self.shown).laid_out(counted.dimensions)["_shown"]


def other_tables(
    release: Release, like: Sequence[PublishedTable], progress: Progress, *, option: str, exact: bool = False
) -> dict[str, OtherTable]:
    """The counts of jobs that two releases have: of the same name, with the same attributes and codes.

    With `exact`, other tables of true numbers as well: all of them, which are one system of sums.
    """
    wanted = {table.name: _asked(table) for table in like if _compares(table, exact)}
    with published_release(release, progress) as found:
        tables = {table.name: table for table in found.plan.tables if _compares(table, exact)}
        same = {
            name: OtherTable(
                planned=table,
                counted=found.counted[name],
                shown=table.shown_values(found.shown[name]),
                answer=found.given[name],
            )
            for name, table in tables.items()
            if wanted.get(name) == _asked(table) or (exact and table.decided_by() is not None)
        }
    if not same:
        raise ReleaseError(
            option,
            expected="a release with a count of jobs of the same name, attributes and codes as one of these: "
            f"{', '.join(wanted) or 'there is none'}",
            found=", ".join(tables) or "no count of jobs",
            do="give the table the same name, `by` and `where` in both releases, and the attributes the same codes",
        )
    return same


def _compares(table: PublishedTable, exact: bool) -> bool:
    """Whether a table can be set beside that of another release; with `exact` true numbers of all kinds too."""
    return table.table.count == "jobs" or (exact and table.decided_by() is not None)


def _asked(table: PublishedTable) -> object:
    """What a table counts, in whatever order it is written."""
    by = {dimension.name: frozenset(dimension.codes) for dimension in table.by}
    return by, {name: frozenset(codes) for name, codes in table.where.items()}
