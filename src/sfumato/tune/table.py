"""Tune a table of a release file: its attributes, its method and its alpha, with another epsilon."""

from fractions import Fraction

from sfumato.cells import Dimension
from sfumato.engine.question import Question
from sfumato.errors import ReleaseError
from sfumato.frame import Frame
from sfumato.methods.method import Method
from sfumato.methods.registry import KEYED, build
from sfumato.microdata import Microdata
from sfumato.release import Release
from sfumato.table import Table
from sfumato.tune.accuracy import Accuracy
from sfumato.tune.tune import Tuned, tune


def tune_table(
    release: Release,
    name: str | None = None,
    *,
    accuracy: Accuracy,
    method: str | None = None,
    largest_share: Fraction = Fraction(1),
) -> Tuned:
    """The smallest epsilon for one table of a release; only the release file is opened, no data and no ledger."""
    table = find_table(release, name)
    if isinstance(release.data, Microdata):
        raise ReleaseError(
            f"table '{table.name}'",
            expected="a count of jobs",
            found="a statistic of records",
            do="see `sfumato tune report` for counts and means of people, and `sfumato tune percentiles`",
        )
    protect = table.protect
    if (method or protect.method) in KEYED:
        raise ReleaseError(
            f"table '{table.name}', method '{method or protect.method}'",
            expected="a method with an epsilon to be found",
            found="one without a formal guarantee",
            do="choose another table, or see `sfumato tune top-contributors` for magnitudes",
        )
    worker_cells = _worker_cells(release.frame, table)
    name_used = method or release.method_name(table)
    options = {option: value for option, value in protect.options.items() if option != "form"}

    budget = release.about.budget
    alpha = budget.alpha if protect.alpha is None and budget is not None else protect.alpha

    def build_at(epsilon: Fraction) -> Method:
        return build(
            name_used,
            alpha=alpha,
            epsilon=epsilon,
            worker_cells=worker_cells,
            options=options if method in (None, protect.method) else {},
        )

    return tune(build_at, accuracy=accuracy, largest_share=largest_share, worker_cells=worker_cells)


def find_table(release: Release, name: str | None) -> Table:
    """The named table, or the only one."""
    names = [table.name for table in release.tables]
    if name is None and len(names) == 1:
        return release.tables[0]
    if name not in names:
        raise ReleaseError(
            "table",
            expected=f"one of {', '.join(names)}",
            found="none named" if name is None else repr(name),
            do="name the table with --table",
        )
    return release.tables[names.index(name)]


def _worker_cells(frame: Frame, table: Table) -> int:
    """The number of worker cells in a workplace cell; the codes of workplaces do not matter to it."""
    by = []
    for name in table.by:
        declared = None if frame.is_public(name) else frame.declared_codes(name)
        codes = declared.codes if declared is not None else ("any",)
        kept = tuple(code for code in codes if name not in table.where or code in table.where[name])
        by.append(Dimension(name=name, codes=kept or codes, public=frame.is_public(name)))
    return Question(by=tuple(by), where=table.where).worker_cells(frame)
