"""What a method of protection has to say and do, its parameters, and how errors are published."""

from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.noise.randomness import Randomness
from sfumato.noise.sums import NoiseParts
from sfumato.privacy.guarantee import Guarantee

# The parameters every method takes: their ranges, and the nearest ones that are admissible.

LARGEST_ALPHA = 10
LEAST_EPSILON, LARGEST_EPSILON = Fraction(1, 10**9), 10**6
LARGEST_DENOMINATOR = 10**6  # of alpha: scales are whole multiples of 1/denominator and must fit 64 bits

PRECISE = Context(prec=100, rounding=ROUND_HALF_EVEN)
"""Decimal arithmetic for calibrations."""
MARGIN = Decimal("1e-60")
"""Far above the rounding of a few operations at 100 digits, far below what one step of the grid changes."""
GRID = 10**9
"""Parameters are whole billionths, short enough to be printed in full in a privacy statement."""


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that no interval can have."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, not {confidence}")


def check_parameters(method: str, *, alpha: Fraction, epsilon: Fraction, worker_cells: int) -> None:
    """Refuse parameters outside the ranges that every method keeps to."""
    if not (isinstance(alpha, Fraction) and isinstance(epsilon, Fraction)):
        raise MethodError(
            method,
            expected="alpha and epsilon as exact fractions",
            found=f"alpha = {alpha!r}, epsilon = {epsilon!r}",
            do="write Fraction('0.1'), not 0.1",
        )
    if not 0 < alpha <= LARGEST_ALPHA or alpha.denominator > LARGEST_DENOMINATOR:
        raise MethodError(
            method,
            expected=f"0 < alpha ≤ {LARGEST_ALPHA}, with a denominator of at most {LARGEST_DENOMINATOR}",
            found=f"alpha = {alpha}",
            do="choose an alpha such as 0.1: establishments within ten per cent of each other look alike",
        )
    if not LEAST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise MethodError(
            method,
            expected=f"{float(LEAST_EPSILON):g} ≤ epsilon ≤ {LARGEST_EPSILON}",
            found=f"epsilon = {epsilon}",
            do="choose an epsilon such as 2",
        )
    if worker_cells < 0:
        raise MethodError(
            method,
            expected="worker_cells ≥ 0",
            found=f"worker_cells = {worker_cells}",
            do="give the number of worker-attribute cells in a workplace cell, 0 for none",
        )


def smallest_from(bound: Decimal, admissible: Callable[[Fraction], bool]) -> Decimal:
    """The smallest admissible number of two digits that is not below the bound."""
    with localcontext(PRECISE):
        step = Decimal(1).scaleb(bound.adjusted() - 1)
        value = bound.quantize(step, rounding=ROUND_CEILING)
        while not admissible(Fraction(value)):
            value += step
    return value


def largest_alpha_to(bound: Decimal, admissible: Callable[[Fraction], bool]) -> Decimal | None:
    """The largest admissible α of two digits that is not above the bound; None where it is too fine."""
    with localcontext(PRECISE):
        bound = min(bound, Decimal(LARGEST_ALPHA))
        step = Decimal(1).scaleb(bound.adjusted() - 1)
        alpha = bound.quantize(step, rounding=ROUND_FLOOR)
        while alpha > 0 and not admissible(Fraction(alpha)):
            alpha -= step
    return alpha if alpha > 0 and Fraction(alpha).denominator <= LARGEST_DENOMINATOR else None


def log_growth(alpha: Fraction) -> Decimal:
    """g = ln(1 + α), how far one neighbour step moves the logarithm of a size; asked within PRECISE."""
    return (1 + decimal(alpha)).ln()


def decimal(value: Fraction) -> Decimal:
    """A fraction to the digits of the context in force."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def on_grid(value: Decimal, rounding: str) -> Fraction:
    """A number as whole billionths, rounded to the side that is asked for."""
    return Fraction(int((value * GRID).to_integral_value(rounding)), GRID)


# Published quality: relative errors on a coarse scale, so that they tell little of what made them.

STEPS = np.array([0.01, 0.02, 0.03, 0.05, 0.075, 0.10, 0.15, 0.20, 0.25, 0.30, 0.40, 0.50, 0.75, 1.0])
"""Relative errors are rounded up to one of these; larger ones are not told."""


def rounded_up(relative: Floats, steps: Floats = STEPS) -> Floats:
    """The next step of the scale; infinite beyond its end, and where nothing is defined.

    A finer figure would reveal the size of the largest contributors: without sampling error the variance of a cell is
    theirs alone.

    >>> rounded_up(np.array([0.004, 0.11, 3.0])).tolist()
    [0.01, 0.15, inf]
    """
    padded = np.append(steps, np.inf)
    places = np.searchsorted(steps, np.where(np.isnan(relative), np.inf, relative), side="left")
    found: Floats = padded[places]
    return found


# What the column `status` of a protected table says of a cell.

STATUSES = (
    "",
    "suppressed",
    "synthesised",
    "not available",
    "mostly perturbation",
    "below",
    "above",
    "error unknown",
)
"""By its number: nothing to say, or why a value is missing, made up, a bound, or to be used with care.

Stored answers hold these numbers: new ones come last."""
SUPPRESSED, SYNTHESISED, NOT_AVAILABLE, MOSTLY_PERTURBATION, BELOW, ABOVE, ERROR_UNKNOWN = range(1, len(STATUSES))
HIDDEN = (SUPPRESSED, NOT_AVAILABLE, ERROR_UNKNOWN)
"""Cells of which no value is published."""
BOUNDS = (BELOW, ABOVE)
"""Cells whose value is an edge that a percentile is below, or at and above: it has no error."""


LARGEST = "its largest establishment"
OF_TABLE = "of_table"
"""Marks a parameter of a method that follows from its table, in the metadata of the field."""


ADDED = "added"
"""Marks a parameter that earlier versions did not have, in the metadata of the field."""


def of_table(default: Any) -> Any:
    """A parameter that follows from the table a method protects, and that no release file can set."""
    return field(default=default, metadata={OF_TABLE: True})


def added(default: Any, *, of_table: bool = False) -> Any:
    """A parameter that earlier versions did not have: at its default a question keeps the name it had without it."""
    return field(default=default, repr=False, metadata={ADDED: True, OF_TABLE: of_table})


@dataclass(frozen=True, kw_only=True)
class PlannedError:
    """The mean absolute error of a cell, as far as it can be known before any data are read.

    It is `floor` where the largest establishment of the cell has at most `floor_size` workers, and above that
    at most `share` times the workers of the largest establishment, or of what `of` names instead.
    """

    floor: float
    floor_size: int
    share: float | None
    """None where it is confidential."""
    of: str = LARGEST

    @property
    def in_a_small_cell(self) -> str:
        """The floor in two digits, without powers of ten.

        >>> PlannedError(floor=147.2, floor_size=0, share=0.0).in_a_small_cell
        '150'
        """
        return f"{float(f'{self.floor:.2g}'):,.10g}"

    @property
    def in_a_large_cell(self) -> str:
        """The error above the floor, in words."""
        if self.share is None:
            return "confidential"
        return f"{self.share:.1%} of {self.of}" if self.share else "the same"


class Method(Protocol):
    """A method of protection with its parameters; `sfumato.statistics.registry` lists those that exist.

    A method is a frozen value: it reads no file, no clock and no randomness but what `protect` is handed.
    What `guarantee`, `planned_error`, `published_error` and `published_interval` return may be published;
    what `expected_error` returns may not.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]]
    """The columns that tabulation must supply for every cell."""

    @property
    def description(self) -> str:
        """What is done to the counts, as a clause of the privacy statement."""
        ...

    def guarantee(self) -> Guarantee:
        """What the whole protected table reveals at most, computed from the parameters alone."""
        ...

    def planned_error(self) -> PlannedError:
        """The mean absolute error of a cell, as far as the parameters alone tell."""
        ...

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of every cell, computed from the true columns: confidential."""
        ...

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """The same dimensions and positions with the single column `value`, which may be published."""
        ...

    def published_error(self, values: Integers) -> Floats:
        """An estimate of the mean absolute error of every cell, computed from published values only.

        NaN where nothing may be told.
        """
        ...

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """The least and the greatest true value of every cell that its published value is consistent with.

        Both hold whole numbers. The second is NaN where the published value sets no upper limit.
        """
        ...


@runtime_checkable
class Biased(Protocol):
    """A method whose published values may be off on average, and that says by how much.

    Methods that do not satisfy it are unbiased: sums of their published values are right on average.
    """

    @property
    def unbiased(self) -> bool:
        """Whether these parameters leave no bias but that of rounding."""
        ...

    def expected_bias(self, cells: Cells) -> Floats:
        """The mean of the published value less the true one, from the true columns: confidential."""
        ...


class MethodClass(Protocol):
    """A class of methods, as the registry holds it: a name, the needed columns, and a constructor."""

    @property
    def name(self) -> str:
        """The name a release file uses."""
        ...

    @property
    def needs(self) -> frozenset[str]:
        """The columns that tabulation must supply for every cell."""
        ...

    def __call__(self, *, alpha: Fraction, epsilon: Fraction, worker_cells: int = 0, **options: Any) -> Method:
        """The method at these parameters, or a MethodError that names the ones that exist."""
        ...


def method_words(method: Method) -> str:
    """A method with its parameters as digests have it for ever: of this package by its class, of others by its name.

    Two packages may have classes of one name; methods of one name are refused.
    """
    if type(method).__module__.partition(".")[0] == __name__.partition(".")[0]:
        return repr(method) + _unspoken(method)
    known = [part for part in fields(cast(Any, method)) if not _as_before(method, part)]
    found = {part.name: getattr(method, part.name) for part in known}
    return f"{method.name}: {sorted(found.items())!r}"


def _unspoken(method: Method) -> str:
    """The parameters that the text of a method leaves out because they are secret: they decide the answer too."""
    known = [part for part in fields(cast(Any, method)) if not part.repr]
    found = {part.name: getattr(method, part.name) for part in known}
    earlier = {part.name for part in known if _as_before(method, part)}
    hidden = {name: value for name, value in found.items() if name not in earlier}
    return repr(sorted(hidden.items())) if hidden else ""


def _as_before(method: Method, part: Field[Any]) -> bool:
    """Whether a parameter that earlier versions did not have is at its default."""
    return bool(part.metadata.get(ADDED)) and bool(getattr(method, part.name) == part.default)


@dataclass(frozen=True, kw_only=True)
class PublishedFigures:
    """The mean absolute error of every cell and the interval of its true value, from published numbers only."""

    error: Floats
    low: Floats
    high: Floats

    def beside(self, values: Integers) -> "PublishedFigures":
        """The same figures widened until they do not contradict these values of counts, which stand beside them.

        The error is at least the way from the value to the nearest count of the interval: all of a negative value. The
        interval then holds the value and one other count at least. Where the value is negative it reaches as far above
        zero as the value lies below: noise that took it there may have taken it from there. It only grows, so it holds
        the true count no less often than before.
        """
        y = values.astype(np.float64)
        away = np.maximum(self.low - y, np.where(np.isnan(self.high), 0.0, y - self.high))
        low, high = np.minimum(self.low, np.maximum(y, 0.0)), np.maximum(self.high, np.abs(y))
        lone = low == high
        return PublishedFigures(
            error=np.maximum(self.error, away),
            low=np.where(lone, np.maximum(low - 1, 0.0), low),
            high=np.where(lone, high + 1, high),
        )


@runtime_checkable
class WholeTableFigures(Protocol):
    """A method whose figures need all published values of a workplace cell, or its number of establishments."""

    def published_figures(self, answer: Cells, confidence: float) -> PublishedFigures:
        """The figures of an answer with its column `value`, and `establishments` where they are public."""
        ...


CONFIDENCE = 0.9
"""How often a published interval holds the true value, at the least."""


@runtime_checkable
class KnownVariance(Protocol):
    """A method whose noise has one scale in all cells of a workplace cell, of which it knows the variance."""

    alpha: Fraction

    @property
    def variance(self) -> float | None:
        """Of the noise of a cell in units of max(αx, 1)², x being the workers of the largest establishment.

        None where squares of the noise have no variance themselves, so that nothing can be learnt from them.
        """
        ...


FOR_THE_LARGEST = 0.02
"""Of the probability with which an interval may miss, what is spent on how large an establishment can be."""


@runtime_checkable
class FollowsLargest(Protocol):
    """A method whose noise follows the largest establishment of a cell, so that it is less where that is smaller.

    What finer published tables say of it narrows the figures; docs/errors.md has the proofs.
    """

    def most_jobs(self, answer: Cells, miss: float) -> Floats:
        """The most jobs that each workplace cell can have, one number for every row of `answer.blocks()`.

        Each is missed with a probability of `miss` at most. Infinite where there is no limit.
        """
        ...

    def figures_within(self, answer: Cells, confidence: float, largest: Floats) -> PublishedFigures:
        """The figures where no establishment of a cell has more workers than `largest`, of which so much is sure.

        `largest` is missed with a probability of `FOR_THE_LARGEST` at most, which the intervals make up for.
        """
        ...


SCALE = "scale"
"""The column of an answer that has the bought scale of the noise of every cell, in steps."""


@runtime_checkable
class MeasuresLargest(Protocol):
    """A method that can release how large the largest establishment of a cell is, for error figures."""

    error_epsilon: Fraction
    """What that costs on top of the values; 0 where it is not released."""

    @property
    def bought_steps(self) -> int:
        """How many steps of the released scale a factor of 1 + α is; 0 where no scale is bought."""
        ...

    @property
    def bought_widening(self) -> float:
        """By what the largest establishment that intervals suppose is above the one that errors do; 1 without any."""
        ...

    def measured_largest(self, answer: Cells, miss: float) -> Floats | None:
        """The most workers that an establishment of each cell has, missed with `miss`; None where it is not bought."""
        ...

    def estimated_largest(self, answer: Cells) -> Floats | None:
        """The workers of the largest establishment of each cell, as often too few as too many; None likewise."""
        ...


@runtime_checkable
class AddsUp(Protocol):
    """A method of which published numbers tell what noise sums of its cells have; docs/errors.md says how."""

    def noise_parts(self, answer: Cells, sums: Integers, error: Floats) -> NoiseParts:
        """The independent pieces of noise in sums of cells, given the sum that each is in, or −1 where in none.

        `answer` has whole workplace cells, and `error` the mean absolute error of every cell, as it is published.
        """
        ...


def public_parameters(method: Method) -> dict[str, Any]:
    """The parameters of a method as JSON writes them, fractions exactly; a method without secrets is built of them."""
    found = {
        part.name: getattr(method, part.name) for part in fields(cast(Any, method)) if not _as_before(method, part)
    }
    return {name: str(value) if isinstance(value, Fraction) else value for name, value in found.items()}


def published_figures(
    method: Method, answer: Cells, confidence: float, largest: Floats | None = None
) -> PublishedFigures:
    """The published figures of any method: of the whole table where it asks for that, else value by value.

    `largest` is the most workers that an establishment of each cell can have, where finer tables tell.
    """
    largest = measured_largest(method, answer, FOR_THE_LARGEST) if largest is None else largest
    if largest is not None and isinstance(method, FollowsLargest):
        return method.figures_within(answer, confidence, largest)
    if isinstance(method, WholeTableFigures):
        return method.published_figures(answer, confidence)
    low, high = method.published_interval(answer["value"], confidence)
    return PublishedFigures(error=method.published_error(answer["value"]), low=low, high=high)


def with_bought_scale(method: Method) -> MeasuresLargest | None:
    """A method as one whose scale is released for error figures; None where that was not bought."""
    return method if isinstance(method, MeasuresLargest) and method.error_epsilon else None


def measured_largest(method: Method, answer: Cells, miss: float) -> Floats | None:
    """The most workers that an establishment of each cell has by what was bought; None where nothing was."""
    return None if (bought := with_bought_scale(method)) is None else bought.measured_largest(answer, miss)


def estimated_largest(method: Method, answer: Cells) -> Floats | None:
    """The workers of the largest establishment of each cell by what was bought; None where nothing was."""
    return None if (bought := with_bought_scale(method)) is None else bought.estimated_largest(answer)


def bought_steps(method: Method) -> int:
    """How many steps of the released scale of its noise a factor of 1 + α is; 0 where no scale is bought."""
    return 0 if (bought := with_bought_scale(method)) is None else bought.bought_steps


def bought_widening(method: Method) -> float:
    """By what the largest establishment that intervals suppose is above the one that errors do; 1 without a scale."""
    return 1.0 if (bought := with_bought_scale(method)) is None else bought.bought_widening


def bought_epsilon(method: Method) -> Fraction:
    """What the released scale of its noise costs on top of the values; 0 where none is bought."""
    return Fraction(0) if (bought := with_bought_scale(method)) is None else bought.error_epsilon


def most_jobs(method: Method, answer: Cells, miss: float) -> Floats:
    """The most jobs that each workplace cell can have by its published values, missed with `miss` at most.

    One number for every row of `answer.blocks()`, infinite where there is no limit.
    """
    if isinstance(method, FollowsLargest):
        return method.most_jobs(answer, miss)
    high = published_figures(method, answer, 1 - miss / answer.worker_cells).high
    total: Floats = np.where(np.isnan(high), np.inf, high)[answer.blocks()].sum(axis=1)
    return total
