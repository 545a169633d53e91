"""Counts and totals of jobs and of records as true numbers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from sfumato.cells import Cells
from sfumato.engine.data import OpenJobs, OpenRecords
from sfumato.errors import ReleaseError
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Frame
from sfumato.frame.records import Microdata
from sfumato.keys import Secret
from sfumato.measures.views import Strata
from sfumato.statistics.column_texts import ESTABLISHMENTS_KNOWN
from sfumato.statistics.exact.table import ExactTable
from sfumato.statistics.fitting import need_one_period
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.registry import is_exact
from sfumato.statistics.table import Table
from sfumato.surroundings import Surroundings


@dataclass(frozen=True, kw_only=True)
class ExactJobs(ExactTable):
    """Jobs counted, or a measure of them added up, as true numbers."""

    @classmethod
    def fits(cls, table: Table, data: Any) -> bool:
        """Whether a table of these data is of this kind."""
        return bool(data.of_jobs) and is_exact(table.protect.method)

    @classmethod
    def counted(cls) -> str:
        """Jobs."""
        return "jobs"

    @classmethod
    def _refuse(cls, table: Table, data: Frame) -> None:
        super()._refuse(table, data)
        if data.span is not None:
            raise ReleaseError(
                f"table '{table.name}'",
                expected="jobs of one period: the rows of a panel are jobs in a period, not jobs",
                found="a panel",
                do="publish indicators of the panel, or describe the jobs of one period",
            )

    @classmethod
    def units_of(cls, data: Frame, method: Any) -> tuple[str, ...]:
        """Establishments, and the larger units that attributes name."""
        return (data.jobs.workplace, *_listed(method))

    @classmethod
    def holdings_of(cls, table: Table, data: Frame, method: Any) -> tuple[str, ...]:
        """The attributes of workplaces that name larger units."""
        for name in method.levels:
            if data.joined or not data.is_public(name):
                raise ReleaseError(
                    f"table '{table.name}', levels",
                    expected=f"public attributes of a table of workplaces: {', '.join(data.public_attributes)}",
                    found=f"'{name}'",
                    do="list the column that names the larger unit in `public` of [data]",
                )
        return _listed(method)

    @classmethod
    def tabulate(cls, batch: Mapping[str, Self], data: OpenJobs, secret: Secret | None) -> Iterator[tuple[str, Cells]]:  # noqa: ARG003
        """The true cells of every table with the largest contributions of establishments."""
        from sfumato.statistics.exact.tabulate import count_jobs

        yield from count_jobs(data, {name: one.question for name, one in batch.items()}).items()

    @classmethod
    def refuse_unsuitable(cls, batch: Mapping[str, Self], data: OpenJobs) -> None:
        """Refuse tables that cannot be linked."""
        from sfumato.statistics.exact.tabulate import refuse_unlinkable

        refuse_unlinkable(data, {name: one.question for name, one in batch.items()})

    def strata(self, attribute: str, codelist: Codelist, data: OpenJobs, counted: Cells) -> Strata | None:
        """The class of a public attribute that every cell belongs to, whether it is a dimension of the table or not."""
        from sfumato.statistics.jobs.tabulate import strata_by

        asked = Question(by=self.question.inner, where=self.question.where)
        return strata_by(data, asked, attribute, codelist, counted)

    @property
    def of_records(self) -> bool:
        """It is about jobs."""
        return False

    @property
    def counted_in(self) -> str:
        """What its values are numbers of."""
        return "jobs" if self.question.measure is None else self.question.measure

    def structural_zeros(self, plan: Surroundings, *, listed: bool) -> str:
        """What is known of combinations that are not listed."""
        if self.question.merged:
            return "none: what is not available was merged into the code above, or is shown by those below"
        if plan.release.frame.joined:
            return super().structural_zeros(plan, listed=listed)
        return ESTABLISHMENTS_KNOWN[self.table.establishments, listed]


def _listed(method: Any) -> tuple[str, ...]:
    """The larger units that rules look at, in the same order however they were written."""
    return tuple(sorted(set(method.levels)))


@dataclass(frozen=True, kw_only=True)
class ExactRecords(ExactTable):
    """Records counted, or a measure of them added up, as true numbers, weighted where they are."""

    @classmethod
    def fits(cls, table: Table, data: Any) -> bool:
        """Whether a table of these data is of this kind."""
        return not data.of_jobs and is_exact(table.protect.method)

    @classmethod
    def counted(cls) -> str:
        """Records."""
        return "records"

    @classmethod
    def _refuse(cls, table: Table, data: Microdata) -> None:
        super()._refuse(table, data)
        need_one_period(table, data)

    @classmethod
    def tells_public(cls) -> bool:
        """Records have no workplaces."""
        return False

    @classmethod
    def units_of(cls, data: Microdata, method: Any) -> tuple[str, ...]:  # noqa: ARG003 (jobs look at it)
        """The units of records, and larger ones."""
        return data.units

    @property
    def lacking_columns(self) -> frozenset[str]:
        """Records have no workplaces to count."""
        return super().lacking_columns | {"establishments"}

    @classmethod
    def tabulate(
        cls,
        batch: Mapping[str, Self],
        data: OpenRecords,
        secret: Secret | None,  # noqa: ARG003
    ) -> Iterator[tuple[str, Cells]]:
        """The true cells of every table with the largest contributions of units."""
        from sfumato.statistics.exact.tabulate import count_records

        yield from count_records(data, {name: one.question for name, one in batch.items()}).items()

    @classmethod
    def refuse_unsuitable(cls, batch: Mapping[str, Self], data: OpenRecords) -> None:
        """Refuse tables that cannot be linked."""
        from sfumato.statistics.exact.tabulate import refuse_unlinkable

        refuse_unlinkable(data, {name: one.question for name, one in batch.items()})
