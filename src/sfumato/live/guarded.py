"""Answer ad-hoc tables over records that were opened once, through the same method as a release."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Flags
from sfumato.cells import Cells
from sfumato.checking import checked
from sfumato.durable import alone, private_folder
from sfumato.engine.data import OpenRecords
from sfumato.engine.limits import stopped_after
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.live.differencing import CodeSets, DifferencingGuard
from sfumato.live.session import Session, Where, live_table
from sfumato.method import SUPPRESSED
from sfumato.noise.randomness import OperatingSystem
from sfumato.plan import plan_table
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release
from sfumato.safeguards import refuse_another_key
from sfumato.statistics.published import PublishedTable
from sfumato.statistics.table import Table
from sfumato.statistics.totals.statistic import Totals
from sfumato.statistics.totals.tabulate import Prepared, guard_words, prepare

Progress = Callable[[str], None]

FLAGGED = "differs by few units, or by none, from a cell answered before"


@dataclass(frozen=True, kw_only=True, eq=False)
class GuardedSession(Session):
    """Records in memory, and the cells that were answered; it shows nothing of either."""

    prepared: Prepared = field(repr=False)
    guard: DifferencingGuard = field(repr=False)
    _one_at_a_time: Lock = field(default_factory=Lock, repr=False)  # an engine's connection answers one question

    def answer(self, statistic: PublishedTable, *, shown: Mapping[str, Sequence[str]] | None = None) -> pa.Table:
        """The protected table, as a release would publish it.

        A cell that differs from one answered before by no more units than a cell must have to be published, or by none,
        is suppressed, or marked in the column `differencing`, as the `[live]` section of the release says. A cell that
        was answered is answered again.

        `shown` has the codes that will be shown, by attribute, where these are not all. Every other cell is withheld,
        and the guard neither compares nor remembers it: nobody learns anything of it.
        """
        with self._one_at_a_time, stopped_after(self.prepared.tables.engine, self.release.live.most_seconds):
            asked = cast(Totals, statistic)
            counted = self.prepared.answer(asked.question)
        protected = asked.method.protect(counted, OperatingSystem())
        protected = _suppress(protected, ~_within(protected, shown or {}))
        settings = self.release.live
        if settings.guard == "off" or not asked.method.guarded:
            return statistic.rows(protected)
        near = self._too_near(asked, counted, protected)
        if settings.guard == "refuse":
            return statistic.rows(_suppress(protected, near))
        table = statistic.rows(protected)
        return table.append_column("differencing", pa.array(np.where(near, FLAGGED, "")))

    def remember_release(self) -> None:
        """Remember the cells that the release publishes by itself."""
        for table in self.release.tables:
            if not Totals.fits(table, self.release.data):
                continue  # statistics of people have noise of their own
            statistic = self._statistic(table)
            if not statistic.method.guarded:
                continue  # a difference of cells is a perturbed value, as it may be
            counted = self.prepared.answer(statistic.question)
            protected = statistic.method.protect(counted, OperatingSystem())
            seen = np.flatnonzero(protected["status"] != SUPPRESSED)
            with self._alone():
                self._remember(statistic, counted, seen)

    def _too_near(self, statistic: Totals, counted: Cells, protected: Cells) -> Flags:
        """Notice cells that differ by few units from those answered before, and remember all that are answered now.

        A cell that is only marked has been answered: later answers mark it no more and no less, so that a question that
        is asked again has the same answer. Where cells are withheld, none that is too near is ever remembered.
        """
        near = np.zeros(len(counted), dtype=np.bool_)
        seen = np.flatnonzero(protected["status"] != SUPPRESSED)
        refuse = self.release.live.guard == "refuse"
        with self._alone():
            near[seen] = self.guard.near(
                self.guard.cells(counted, statistic.question.where, seen),
                within=_few(statistic),
                count=self._count,
                first=not refuse,
            )
            self._remember(statistic, counted, seen[~near[seen]] if refuse else seen)
        return near

    def _remember(self, statistic: Totals, counted: Cells, chosen: NDArray[np.intp]) -> None:
        where = statistic.question.where
        cells = self.guard.cells(counted, where, chosen)
        self.guard.remember(cells, counted.dimensions, where, counted.positions[chosen])

    def _count(self, filters: Sequence[Mapping[str, Sequence[str]]]) -> NDArray[np.int64]:
        with self._one_at_a_time:
            return self.prepared.records_within(filters)

    def _alone(self) -> AbstractContextManager[None]:
        """Of two questions at a time the second sees the cells of the first."""
        private_folder(self.guard.path.parent)
        return alone(self.guard.path.with_suffix(".lock"))

    def plan(  # type: ignore[override]  # the question that this session takes
        self, *, by: Sequence[str], where: Where | None = None, totals: bool = False, **statistic: str | None
    ) -> Totals:
        """What is asked and how it is protected; a question that makes no sense is refused here."""
        release, where = self.release, {} if where is None else where
        if isinstance(by, str) or not isinstance(where, Mapping) or not isinstance(totals, bool):
            raise ReleaseError(
                "live table",
                expected="`by` as a list of attributes, `where` as codes by attribute, `totals` as true or false",
                found="another question",
                do="correct the question",
            )
        table = live_table(
            release,
            self.codelists,
            by=tuple(by),
            where={name: (codes,) if isinstance(codes, str) else tuple(codes) for name, codes in where.items()},
            totals=totals,
            protect=release.tables[0].protect,
            **statistic,
        )
        return self._statistic(table)

    def _statistic(self, table: Table) -> Totals:
        return cast(Totals, plan_table(self.release, table, self.codelists))


@contextmanager
def open_guarded(release: Release, progress: Progress = lambda _: None) -> Iterator[GuardedSession]:
    """Open and validate the records of a release, give every unit its keys, and be ready for questions."""
    with checked(release, progress, everything=True) as ready:
        if release.data.of_jobs or ready.plan.secret is None:
            raise SfumatoError(
                "live tables",
                expected="a release of records, protected by top-contributors or perturbed-values",
                found="another release",
                do="describe records = { … } under [data]",
            )
        if any(table.method.parity for table in ready.plan.of_kind(Totals)):
            raise ReleaseError(
                "live tables",
                expected="a perturbation without the parity rule",
                found="parity = true",
                do="leave it out: directions that turn with the number of units are averaged away by asking often",
            )
        if release.ledger.exists():  # ad-hoc tables are of the same units as published ones
            refuse_another_key(ready.plan, ready.identity, Ledger.open(release.ledger))
        progress("prepare")
        opened = cast(OpenRecords, ready.opened)
        opened.tables.engine.limit_memory(release.live.most_memory)
        prepared = prepare(opened.data, opened.tables, ready.plan.secret, ordered=True)
        words = tuple(guard_words(prepared, level) for level in range(len(opened.data.units)))
        codelists = opened.codelists()
        code_sets = CodeSets(codes={name: codelists[name].codes for name in codelists})
        guard = DifferencingGuard(
            path=release.store / "live.cells",
            words=words,
            code_sets=code_sets,
            topics=("records", *release.data.measures),
        )
        live = GuardedSession(release=release, codelists=codelists, prepared=prepared, guard=guard)
        live.remember_release()
        yield live


def _few(statistic: Totals) -> int:
    """By how many units cells must not differ: a cell of so many is not published."""
    return max(statistic.method.suppress, 1)


def _within(cells: Cells, shown: Mapping[str, Sequence[str]]) -> Flags:
    """Which cells have only codes that are shown."""
    within = np.ones(len(cells), dtype=np.bool_)
    for dimension in cells.dimensions:
        if dimension.name in shown:
            places = [dimension.places[code] for code in shown[dimension.name]]
            within &= np.isin(cells.codes(dimension.name), places)
    return within


def _suppress(protected: Cells, withheld: Flags) -> Cells:
    """The same answer without the cells that are withheld."""
    hidden = {
        "value": 0,
        "status": SUPPRESSED,
        "rse": -1,
        "low": np.iinfo(np.int64).min,
        "high": np.iinfo(np.int64).min,
    }
    columns = {name: np.where(withheld, hidden[name], column) for name, column in protected.columns.items()}
    return Cells(dimensions=protected.dimensions, positions=protected.positions, columns=columns)
