"""The smallest epsilon that meets an accuracy, for a table of a release file; docs/tune.md has the assumptions."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from sfumato.cells import Cells, Dimension
from sfumato.description import exact
from sfumato.errors import MethodError, ReleaseError, SfumatoError
from sfumato.frame.data import Frame
from sfumato.method import Method
from sfumato.noise.randomness import Repeatable
from sfumato.privacy.guarantee import Guarantee, plain
from sfumato.statistics.jobs.laplace import NodeLaplace
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.jobs.statistic import SPARSE, JobCounts
from sfumato.statistics.registry import build, is_free
from sfumato.statistics.table import Table

# Accuracy as people state it: `mean error below 2 jobs in cells of at most 20 jobs`, and the like.

EXAMPLES = (
    "mean error below 2 jobs in cells of at most 50 jobs",
    "mean error below 5% in cells of at least 100 jobs",
    "90% of cells of at least 100 jobs within 10%",
    "95% of cells of at most 20 jobs within 5 jobs",
)
DEFAULT_JOBS = 100
"""The size of the cells that are meant when none is stated."""

_NUMBER = r"(?:\d[\d,]*(?:\.\d+)?|\.\d+)"
_SIZE = (
    r"(?:(?:in|of|with)\s+)?(?:cells?\s+)?(?:of|with)\s+"
    rf"(?P<{{0}}bound>at least|at most)\s+(?P<{{0}}jobs>{_NUMBER})\s+(?:jobs?|records?)"
)
_LIMIT = rf"(?P<limit>{_NUMBER})\s*(?P<unit>%|jobs?|records?)?"
_MEAN = re.compile(rf"mean error\s+(?:of\s+)?(?:below|under|up to|at most)?\s*{_LIMIT}(?:\s+{_SIZE.format('')})?")
_SHARE = re.compile(
    rf"(?P<share>{_NUMBER})\s*%(?:\s+(?:of\s+(?:all\s+)?)?cells)?(?:\s+{_SIZE.format('')})?\s+within\s+{_LIMIT}"
    rf"(?:\s+{_SIZE.format('after_')})?"
)


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """How close published counts are to be: on average, or for a share of cells."""

    limit: Fraction
    """Jobs, or a share of the count."""
    relative: bool
    jobs: int
    """Relative accuracy is meant for cells of at least so many jobs, accuracy in jobs for cells of at most so many."""
    share: Fraction | None = None
    """The share of cells within the limit; None asks for the mean error to be below it."""
    counted: str = "jobs"
    """What is counted: jobs, or the records of a cube."""

    def __post_init__(self) -> None:
        if self.limit <= 0 or self.jobs < 1 or (self.share is not None and not 0 < self.share < 1):
            raise _not_understood(str(self), self.counted)

    def __str__(self) -> str:
        limit = f"{plain(100 * self.limit)}%" if self.relative else f"{plain(self.limit)} {self.counted}"
        cells = f"cells of {'at least' if self.relative else 'at most'} {self.jobs:,} {self.counted}"
        if self.share is None:
            return f"mean error below {limit} in {cells}"
        return f"{plain(100 * self.share)}% of {cells} within {limit}"

    @property
    def tolerance(self) -> float:
        """The limit in jobs, for a cell of exactly `jobs` jobs."""
        return float(self.limit * self.jobs if self.relative else self.limit)


def read_accuracy(text: str, counted: str = "jobs") -> Accuracy:
    """Understand a sentence about accuracy, of jobs or of what else is counted.

    >>> print(read_accuracy("90% within 10%"))
    90% of cells of at least 100 jobs within 10%
    """
    words = " ".join(text.lower().split())
    found = _MEAN.fullmatch(words) or _SHARE.fullmatch(words)
    if found is None or ("records" if counted == "jobs" else "jobs").rstrip("s") in words:
        raise _not_understood(text, counted)
    parts = found.groupdict()
    relative = parts["unit"] == "%"
    bound = parts["bound"] or parts.get("after_bound")
    if bound and bound != ("at least" if relative else "at most"):
        raise SfumatoError(
            f"accuracy {text!r}",
            expected=f"cells of at least so many {counted} with a limit in %, or of at most so many with a limit in "
            f"{counted}",
            found=f"{bound} so many {counted} with a limit in {'%' if relative else counted}, which no method can keep",
            do=f"say it as in: {EXAMPLES[2].replace('jobs', counted)}",
        )
    jobs = parts["jobs"] or parts.get("after_jobs")
    limit = _number(parts["limit"], counted)
    return Accuracy(
        limit=limit / 100 if relative else limit,
        relative=relative,
        jobs=_whole(jobs, counted) if jobs else DEFAULT_JOBS,
        share=_number(parts["share"], counted) / 100 if parts.get("share") else None,
        counted=counted,
    )


def _number(text: str, counted: str) -> Fraction:
    if not re.fullmatch(r"\d{1,3}(,\d{3}){0,4}(\.\d{1,6})?|\d{1,15}(\.\d{1,6})?", text):
        raise _not_understood(text, counted)
    return Fraction(text.replace(",", ""))


def _whole(text: str, counted: str) -> int:
    number = _number(text, counted)
    if number.denominator != 1 or number < 1:
        raise _not_understood(f"{text} {counted}", counted)
    return int(number)


def _not_understood(text: str, counted: str) -> SfumatoError:
    return SfumatoError(
        f"accuracy {text!r}",
        expected="a sentence such as: " + "; or: ".join(EXAMPLES).replace("jobs", counted),
        found="something else",
        do="say it in one of these ways",
    )


# The public assumption behind a tuned epsilon: one cell that stands for all it is meant for.


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """A cell of so many jobs, in which the largest establishment has this share.

    With worker attributes all worker cells of the workplace cell are taken to be alike, and the largest establishment
    to have the same share in each. A share of 1 is the worst case: one establishment has all jobs.
    """

    jobs: int
    largest_share: Fraction = Fraction(1)
    worker_cells: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.largest_share <= 1:
            raise MethodError(
                "largest share",
                expected="a share above 0 and at most 1",
                found=plain(self.largest_share),
                do="give the share of the largest establishment of a cell; 1 is the worst case",
            )

    def __str__(self) -> str:
        words = f"a cell of {self.jobs:,} jobs in which the largest establishment has {self.largest:,}"
        if self.worker_cells > 1:
            words += f", as in each of the {self.worker_cells} worker cells of its workplace cell"
        return words

    @property
    def consequence(self) -> str:
        """What the assumption means for cells that are otherwise."""
        if self.worker_cells > 1:
            return (
                "A cell beside others that hold more jobs of its largest establishment may come out worse, where the "
                "method protects all worker cells together."
            )
        return "A cell in which the largest establishment has a smaller share comes out no worse."

    @property
    def largest(self) -> int:
        """The jobs of the largest establishment in the cell, rounded up."""
        return ceil(self.jobs * self.largest_share)

    def cells(self, method: Method, copies: int) -> Cells:
        """So many workplace cells as assumed, with every column the method needs."""
        inside = max(self.worker_cells, 1)
        number = copies * inside
        values = {
            "count": self.jobs,
            "largest": self.largest,
            "largest_employer": self.largest * inside,
            # As few as there can be: what depends on their number is then chosen for the case that is assumed.
            "establishments": ceil(1 / self.largest_share),
        }
        if isinstance(method, NodeLaplace):
            values["count_below_threshold"] = self.jobs if self.largest * inside < method.threshold else 0
        lacking = method.needs - values.keys()
        if lacking:
            raise cannot_tell(method, f"it needs {', '.join(sorted(lacking))}, which only the data can tell")
        dimensions = [Dimension(name="copy", codes=tuple(map(str, range(copies))))]
        if self.worker_cells > 1:
            codes = tuple(map(str, range(self.worker_cells)))
            dimensions.append(Dimension(name="workers", codes=codes, public=False))
        columns = {name: np.full(number, value, dtype=np.int64) for name, value in values.items()}
        return Cells(dimensions=tuple(dimensions), positions=np.arange(number, dtype=np.int64), columns=columns)


def cannot_tell(method: Method, why: str) -> MethodError:
    """The refusal of a method whose accuracy cannot be known before the data are."""
    return MethodError(
        method.name,
        expected="a method whose error is known without the data",
        found=f"{method.name}: {why}",
        do="choose another method, or state the accuracy for cells of at most so many jobs",
    )


Build = Callable[[Fraction], Method]
"""The method at an epsilon; a MethodError where it does not exist."""

DRAWS = 100_000
"""A share of cells is found by drawing from the method itself: to within 0.3 points, 99 times in 100."""

LADDER = tuple(Fraction(digits) * Fraction(10) ** power for power in range(-5, 2) for digits in range(100, 1000))
"""Epsilons of three digits, from 0.001 to 9,990."""
_STRIDE = 45  # 140 rungs, each at most half as large again as the one before
_CURVE = (-6, 7)
_STEP = 1.3


@dataclass(frozen=True, kw_only=True)
class Point:
    """What one epsilon gives; `figure` is None where the method does not exist."""

    epsilon: Fraction
    figure: float | None
    """The mean error, as stated in jobs or as a share; or the share of cells within the limit."""
    meets: bool


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """The smallest epsilon that meets the accuracy, and the curve around it."""

    accuracy: Accuracy
    assumption: Assumption
    method: Method
    epsilon: Fraction
    figure: float
    curve: tuple[Point, ...]

    @property
    def guarantee(self) -> Guarantee:
        """What a table protected with this epsilon reveals at most."""
        return self.method.guarantee()


def tune(build: Build, *, accuracy: Accuracy, largest_share: Fraction = Fraction(1), worker_cells: int = 0) -> Tuned:
    """Find the smallest epsilon of three digits that meets the accuracy under the assumption; no data are read."""
    assumption = Assumption(jobs=accuracy.jobs, largest_share=largest_share, worker_cells=worker_cells)

    def at(epsilon: Fraction) -> Point:
        try:
            method = build(epsilon)
        except MethodError:
            return Point(epsilon=epsilon, figure=None, meets=False)
        figure = measure(method, accuracy, assumption)
        return Point(epsilon=epsilon, figure=figure, meets=meets(figure, accuracy))

    last = build(LADDER[-1])  # refuses parameters at which the method never exists
    if not at(LADDER[-1]).meets:
        raise cannot_tell(last, f"no epsilon up to {float(LADDER[-1]):g} meets: {accuracy}")
    best, curve = searched(at)
    assert best.figure is not None
    return Tuned(
        accuracy=accuracy,
        assumption=assumption,
        method=build(best.epsilon),
        epsilon=best.epsilon,
        figure=best.figure,
        curve=curve,
    )


def searched(at: Callable[[Fraction], Point]) -> tuple[Point, tuple[Point, ...]]:
    """The smallest epsilon of three digits that will do, and the curve around it; the largest of all must do."""
    # Some methods change their mechanism with epsilon, so that more of it may be worse: the first rung that will do is
    # looked for from below, and only between it and the one before is the interval halved.
    rungs = [*range(0, len(LADDER), _STRIDE), len(LADDER) - 1]
    high = next(rung for rung in rungs if at(LADDER[rung]).meets)
    low = max((rung for rung in rungs if rung < high), default=-1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if at(LADDER[middle]).meets else (middle, high)
    best = at(LADDER[high])
    around = sorted({_digits(float(best.epsilon) * _STEP**step) for step in range(*_CURVE)} | {best.epsilon})
    return best, tuple(at(epsilon) for epsilon in around)


def measure(method: Method, accuracy: Accuracy, assumption: Assumption) -> float:
    """The mean error, or the share of cells within the limit, of the assumed cell."""
    if isinstance(method, NodeLaplace) and accuracy.relative:
        raise cannot_tell(method, "it leaves out large establishments, so a large cell may lose all its jobs")
    if accuracy.share is None:
        error = float(method.expected_error(assumption.cells(method, 1)).mean())
        return error / assumption.jobs if accuracy.relative else error
    copies = max(DRAWS // max(assumption.worker_cells, 1), DRAWS // 5)
    cells = assumption.cells(method, copies)
    # The same stream at every epsilon, so that the search is not led astray by chance.
    drawn = method.protect(cells, Repeatable(1, "tune"))["value"]
    return float(np.mean(np.abs(drawn - cells["count"]) <= accuracy.tolerance))


def meets(figure: float, accuracy: Accuracy) -> bool:
    """Whether a mean error, or a share of cells within the limit, is as good as asked for."""
    return figure <= float(accuracy.limit) if accuracy.share is None else figure >= float(accuracy.share)


def _digits(epsilon: float) -> Fraction:
    """An epsilon to two digits, for a chart."""
    return Fraction(f"{epsilon:.2g}")


# Tune a table of a release file: its attributes, its method and its alpha, with another epsilon.


def tune_table(
    release: Any,
    name: str | None = None,
    *,
    accuracy: Accuracy,
    method: str | None = None,
    largest_share: Fraction = Fraction(1),
) -> Tuned:
    """The smallest epsilon for one table of a release; only the release file is opened, no data and no ledger."""
    table = find_table(release, name)
    if not release.data.of_jobs:
        raise ReleaseError(
            f"table '{table.name}'",
            expected="a count of jobs",
            found="a statistic of records",
            do="see `sfumato tune report` for counts and means of people, and `sfumato tune percentiles`",
        )
    protect = table.protect
    if is_free(method or protect.method):
        raise ReleaseError(
            f"table '{table.name}', method '{method or protect.method}'",
            expected="a method with an epsilon to be found",
            found="one without a formal guarantee",
            do="choose another table, or see `sfumato tune top-contributors` for magnitudes",
        )
    if (method or protect.method) == SPARSE:
        raise ReleaseError(
            f"table '{table.name}', method '{SPARSE}'",
            expected="a method that publishes every cell",
            found="one that lists values from a threshold on, which is public",
            do="see `sfumato tune thresholds` for the threshold at every epsilon",
        )
    if table.statistic in ("indicators", "flow"):
        raise ReleaseError(
            f"table '{table.name}'",
            expected="a count, total or mean of jobs",
            found=table.statistic,
            do="docs/methods/formal-indicators.md tells errors by epsilon; `sfumato preview` tries some on your data",
        )
    _refuse_several_periods(release.frame, table)
    worker_cells = _worker_cells(release.frame, table)
    name_used = method or JobCounts.method_name(table, release.frame)
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


def find_table(release: Any, name: str | None) -> Table:
    """The named table, or the only one."""
    tables: tuple[Table, ...] = release.tables
    names = [table.name for table in tables]
    if name is None and len(names) == 1:
        return tables[0]
    if name not in names:
        raise ReleaseError(
            "table",
            expected=f"one of {', '.join(names)}",
            found="none named" if name is None else repr(name),
            do="name the table with --table",
        )
    return tables[names.index(name)]


def _refuse_several_periods(frame: Frame, table: Table) -> None:
    """Refuse a table of several periods of a panel: an epsilon is found for one, and they add up."""
    span, period = frame.span, frame.panel_period or ""
    if span is None or frame.period_of_series is not None:
        return
    asked = table.where.get(period, span.codes() if period in table.by else ())
    if len(asked) != 1:
        raise ReleaseError(
            f"table '{table.name}', {period}",
            expected="a table at one period of a panel: an epsilon is found for one, and those of all periods add up",
            found=f"{len(asked)} periods",
            do="choose one with `where`, and multiply what is found by the number of periods",
        )


def _worker_cells(frame: Frame, table: Table) -> int:
    """The number of worker cells in a workplace cell; the codes of workplaces do not matter to it."""
    by = []
    for name in table.by:
        declared = None if frame.is_known(name) else frame.declared_codes(name)
        codes = declared.codes if declared is not None else ("any",)
        kept = tuple(code for code in codes if name not in table.where or code in table.where[name])
        by.append(Dimension(name=name, codes=kept or codes, public=frame.is_known(name)))
    return Question(by=tuple(by), where=table.where).worker_cells(frame)


# The lines of a release file that use what was found.


def protect_line(method: str, epsilon: Fraction | Mapping[str, Fraction], options: Mapping[str, Any]) -> str:
    """How a table is protected, with the options of the method that are set; `epsilon` may be one for each period.

    >>> protect_line("mose", Fraction(10), {"count_epsilon": Decimal("0.2"), "classes": ["state"], "clip": False})
    'protect = { method = "mose", epsilon = 10, count_epsilon = 0.2, classes = ["state"], clip = false }'
    """
    written = {"method": method, "epsilon": epsilon, **options}
    return f"protect = {{ {', '.join(f'{name} = {in_toml(value)}' for name, value in written.items())} }}"


def budget_line(epsilon: Fraction, *, conditional: bool) -> str:
    """The budget of a release about people.

    >>> budget_line(Fraction("4.5"), conditional=False)
    'budget = { epsilon = 4.5, definition = "individuals" }'
    """
    accepted = ", conditional = true" if conditional else ""
    return f'budget = {{ epsilon = {in_toml(epsilon)}, definition = "individuals"{accepted} }}'


def in_toml(value: Any) -> str:
    """A value as a release file writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{in_toml(str(name))} = {in_toml(part)}' for name, part in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(in_toml, value))}]"
    if isinstance(value, int | float | Decimal | Fraction):
        text = plain(exact(value))
        return f'"{text}"' if "/" in text else text
    return f'"{value}"'
