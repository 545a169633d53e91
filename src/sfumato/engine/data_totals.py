"""How much was read: confidential totals for the eyes of whoever runs a release, in no bundle."""

from dataclasses import asdict, dataclass

from sfumato.errors import DataError
from sfumato.frame import NO_JOBS, ONE_JOB_EACH, Data
from sfumato.microdata import NO_RECORDS


@dataclass(frozen=True, kw_only=True)
class DataTotals:
    """Totals of the data of a release, counted while they were validated; None is what such data do not have."""

    jobs: int | None = None
    """Of a panel, each worker at each employer once."""
    establishments: int | None = None
    empty_establishments: int | None = None
    """Establishments without any job; not known where jobs and workplaces are one table."""
    workers: int | None = None
    records: int | None = None
    """Rows of a table of records, or of a panel of jobs."""
    units: int | None = None
    periods: int | None = None
    """Periods that have rows."""

    def figures(self) -> dict[str, int]:
        """The totals that there are, by name."""
        return {name: number for name, number in asdict(self).items() if number is not None}

    def in_words(self) -> str:
        """The totals as a sentence.

        >>> DataTotals(jobs=8, establishments=4, empty_establishments=1, workers=7).in_words()
        'Read: 8 jobs, 4 establishments (1 of them without jobs), 7 workers.'
        """
        empty = "" if self.empty_establishments is None else f" ({self.empty_establishments:,} of them without jobs)"
        listed = [
            f"{number:,} {name if number != 1 else name.removesuffix('s')}{empty if name == 'establishments' else ''}"
            for name, number in self.figures().items()
            if name != "empty_establishments"
        ]
        return f"Read: {', '.join(listed)}."

    def refuse_unlikely(self, data: Data) -> None:
        """Refuse no rows at all, and one job at every workplace, unless the description says that this is meant."""
        if 0 in (self.jobs, self.records) and data.accepted not in (NO_JOBS, NO_RECORDS):
            what, accept = ("records", NO_RECORDS) if self.jobs is None else ("jobs", NO_JOBS)
            raise DataError(
                what,
                expected=f"{what} in {data.sources()[what]}",
                found="none at all",
                do=f'write the file again, or correct `path`; if there are none, write accept = "{accept}" in '
                f"{what} = {{ … }}",
            )
        several = self.jobs is not None and self.jobs > 1
        if several and self._at_workplaces() == self.jobs and data.accepted != ONE_JOB_EACH:
            raise DataError(
                "jobs",
                expected=f"one row a job in {data.sources()['jobs']}, and several jobs at some workplace",
                found=f"{self.jobs:,} jobs at {self.jobs:,} workplaces, one at each, as in a file of establishments",
                do="give the file with one row a job: a column with a number of jobs is not added up; if every "
                f'workplace has one job, write accept = "{ONE_JOB_EACH}" in jobs = {{ … }}',
            )

    def _at_workplaces(self) -> int:
        """The workplaces that have a job."""
        return (self.establishments or 0) - (self.empty_establishments or 0)
