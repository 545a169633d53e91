"""Which tables are made in parts, so that they need not fit into memory; public facts alone decide."""

from sfumato.engine.chunks import IN_ONE_PIECE
from sfumato.errors import ReleaseError
from sfumato.release import Release
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.panel.question import PairQuestion
from sfumato.statistics.people.question import SampleQuestion
from sfumato.statistics.people.tabulate import is_plain_count
from sfumato.statistics.questions import Asked
from sfumato.statistics.table import Table
from sfumato.statistics.totals.question import ContributorQuestion


def is_in_parts(release: Release, table: Table, question: Asked) -> bool:
    """Whether a table is made in parts: when the release asks for it, when it is large, and always on a cluster."""
    whole = why_whole(release, table, question)
    if whole is not None and table.parts is not None:
        raise ReleaseError(
            f"table '{table.name}', parts",
            expected="a table whose cells are protected without a look at the others",
            found=whole,
            do="leave `parts` out; docs/large-tables.md says which tables can be made in parts, and why others cannot",
        )
    large = table.parts is not None or question.cells > IN_ONE_PIECE or release.data.engine == "spark"
    return large and whole is None


def why_whole(release: Release, table: Table, question: Asked) -> str | None:
    """Why a table cannot be made in parts, as words that follow "found"; None when it can."""
    people = isinstance(question, SampleQuestion) and is_plain_count(question)
    if not (people or isinstance(question, Question)):
        return _whole_statistics(question, table)
    if release.about.reconcile:
        return "reconcile = true: each cell is changed by the values of all others, in all tables that are to agree"
    if table.structural_zeros == "listed" and not people:  # which list every combination of codes in any case
        return 'structural_zeros = "listed": a table in parts lists the cells that have an establishment'
    if not table.establishments:
        return "establishments = false: a table in parts lists the cells that have an establishment"
    return None


def _whole_statistics(question: Asked, table: Table) -> str:
    if isinstance(question, PairQuestion):
        return f"a {table.statistic}: cells below the minimum may be made up from a model of all others"
    if table.indicators is not None:
        return "indicators: tables that lie inside one another are published as sums of the finest"
    if isinstance(question, ContributorQuestion):
        return f"a {table.statistic} of records: the largest contributors are found for all cells together"
    return f"the statistic {table.statistic} of people: only counts of people are tabulated in parts"
