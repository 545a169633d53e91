"""Risk and loss of given magnitudes for a cell of a given shape, and the magnitudes that cost least."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path

import numpy as np

from sfumato.charts.plots import Axis, Mark, Panel, draw_panels
from sfumato.charts.svg import percent, write_drawing
from sfumato.errors import MethodError
from sfumato.statistics.totals.calibration import (
    ATTACKS,
    LARGEST,
    SPREAD,
    STEP,
    Attack,
    Evaluation,
    Search,
    Tried,
    evaluate,
    frontier,
    optimum,
    tradeoff,
)
from sfumato.statistics.totals.perturbation import LEAST_RELIEF, NoiseSum, Shape, magnitudes_by_shape

TOP = 3
"""How many contributors are perturbed unless something else is said; the paper finds little use in more."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A shape, the attacks it is to withstand, and the rules by which it is perturbed."""

    shape: Shape
    top: int = TOP
    withstand: tuple[float, ...] = (1, 2, 3)
    """The numbers of the attacks whose limits are to be kept; the others are only reported."""
    attacks: tuple[Attack, ...] = ATTACKS
    parity: bool = False
    spread: float = SPREAD
    step: float = STEP
    largest: float = LARGEST
    falling: bool = False
    weight: float = 1.0
    """The weight of the contributors, by the root of which `weight_relief` divides magnitudes."""
    sampling_error: float = 0.0
    """The relative standard error of the total by sampling, which `sampling_relief` counts as protection."""

    def __post_init__(self) -> None:
        if not (self.weight >= 1 and 0 <= self.sampling_error <= 1):
            raise MethodError(
                "relief",
                expected="a weight from 1 on, and a sampling error from 0 to 1, as a share of the total",
                found=f"{self.weight:g} and {self.sampling_error:g}",
                do="write --weight 16, or --sampling-error 0.05 for five percent",
            )
        known = {attack.number for attack in self.attacks}
        if not self.withstand or not set(self.withstand) <= known:
            raise MethodError(
                "attacks",
                expected="some of 1, 2 and 3",
                found=", ".join(f"{number:g}" for number in self.withstand) or "none",
                do="name the attacks with commas between them, such as 1,2,3",
            )
        if not 0 < self.spread < 1:
            raise MethodError(
                "spread",
                expected="a number above 0 and below 1",
                found=f"{self.spread:g}",
                do="choose 0.3, as the paper does, or less for a noise that is nearer to its magnitude",
            )

    @property
    def binding(self) -> tuple[Attack, ...]:
        """The attacks whose limits are to be kept."""
        return tuple(attack for attack in self.attacks if attack.number in self.withstand)

    @property
    def search(self) -> Search:
        """Which magnitudes are tried."""
        return Search(top=self.top, step=self.step, largest=self.largest, falling=self.falling)

    def evaluate(self, magnitudes: Sequence[float], *, parity: bool | None = None) -> Evaluation:
        """What magnitudes do under all attacks, with the parity rule or without."""
        by_parity = self.parity if parity is None else parity
        return evaluate(self.shape, magnitudes, attacks=self.attacks, parity=by_parity, spread=self.spread)


@dataclass(frozen=True, kw_only=True)
class Relieved:
    """What is left of magnitudes where weights or sampling error reduce them, and what readers then find."""

    evaluation: Evaluation
    """By readers who know that the target was sampled, and its weight."""
    weight_unknown: float
    """The risk of attack 1 by a reader who takes the weight for one."""
    sample_unknown: tuple[float, ...]
    """The risks of readers who do not know whether the target was sampled: it is with a probability of 1/weight."""


def relieved(question: Question, magnitudes: Sequence[float]) -> Relieved:
    """Reduce magnitudes as `weight_relief` and `sampling_relief` do, and evaluate them.

    A reader who knows the weight divides by it, so that the risk is that of the reduced magnitudes.
    """
    shape, weight = question.shape, question.weight
    reduced = np.asarray(magnitudes, dtype=np.float64) / sqrt(weight)
    sizes = shape.to_largest(len(reduced)) * (shape.sizes[0] / shape.total)
    wanted = (1 + question.spread**2 / 6) * float(((reduced * sizes) ** 2).sum())
    if wanted > 0:
        left = max(wanted - question.sampling_error**2, 0.0) / wanted
        reduced = reduced * (max(sqrt(left), LEAST_RELIEF) if question.sampling_error else 1.0)
    found = question.evaluate(reduced.round(6).tolist())
    first = question.attacks[0]
    # Of the weighted total, the target itself is one part in so many: all else lies between guess and target.
    near = first.within * abs(shape.sizes[0])
    off = shape.sizes[0] - weight * shape.total
    scales = weight * (reduced * shape.to_largest(len(reduced)) * shape.sizes[0])[None, :]
    noise = NoiseSum(own=scales, other=np.zeros_like(scales), spread=question.spread)
    return Relieved(
        evaluation=found,
        weight_unknown=float(noise.probability(off - near, off + near)[0]),
        sample_unknown=tuple(verdict.risk / weight for verdict in found.verdicts),
    )


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What was asked about, what the given magnitudes do, and the best ones where there are any."""

    question: Question
    given: Evaluation | None
    optimal: Evaluation | None
    refusal: MethodError | None
    """Why there are no best ones; raised where nothing else was asked."""
    tried: Tried
    """Loss and risk of every set of magnitudes on a grid, for the curve."""
    by_shape: Evaluation
    """What `by_shape` gives a cell of this shape: the published optima, interpolated."""
    relieved: Relieved | None = None
    """What weights or sampling error leave of the given magnitudes, or of the best ones."""


def tune_contributors(question: Question, magnitudes: Sequence[float] | None = None) -> Answer:
    """Evaluate the given magnitudes, if any, and find the ones with the least loss that withstand the attacks."""
    optimal, refusal = None, None
    try:
        best = optimum(
            question.shape,
            question.search,
            attacks=question.binding,
            parity=question.parity,
            spread=question.spread,
        )
        optimal = question.evaluate(best.magnitudes)
    except MethodError as error:
        if magnitudes is None:
            raise
        refusal = error
    given = None if magnitudes is None else question.evaluate(magnitudes)
    own, without = magnitudes_by_shape(question.shape)
    reduces = question.weight > 1 or question.sampling_error > 0
    used = given or optimal
    return Answer(
        question=question,
        given=given,
        by_shape=evaluate(
            question.shape,
            own,
            attacks=question.attacks,
            parity=question.parity,
            spread=question.spread,
            without=without,
        ),
        relieved=relieved(question, used.magnitudes) if reduces and used is not None else None,
        optimal=optimal,
        refusal=refusal,
        tried=tradeoff(
            question.shape,
            question.search,
            attacks=question.binding,
            parity=question.parity,
            spread=question.spread,
        ),
    )


def attacks_with(*, within: Sequence[float], limits: Sequence[float]) -> tuple[Attack, ...]:
    """The three attacks with another nearness V and another acceptable risk R for each."""
    if len(within) != len(ATTACKS) or len(limits) != len(ATTACKS):
        raise MethodError(
            "attacks",
            expected="three shares for V and three for R, one for each attack",
            found=f"{len(within)} and {len(limits)}",
            do="write them with commas between them, such as .18,.11,.11",
        )
    return tuple(replace(attack, within=v, limit=r) for attack, v, r in zip(ATTACKS, within, limits, strict=True))


# The curve of risk against loss for one cell.

_MOST_POINTS = 2_000


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """Magnitudes to be pointed out in a chart."""

    label: str
    loss: float
    risk: float


def risk_against_loss(tried: Tried, *, title: str, shown: Sequence[Tuned] = ()) -> str:
    """Draw every set of magnitudes by its mean loss and its worst risk, and a line through those that nothing beats."""
    best = frontier(tried)
    farthest = max([float(best.loss.max()) * 1.5, *(one.loss * 1.2 for one in shown)])
    near = np.flatnonzero(tried.loss <= farthest)
    some = near[np.unique(np.linspace(0, len(near) - 1, min(len(near), _MOST_POINTS)).astype(int))]
    limits = sorted({attack.limit for attack in tried.attacks})
    marks = [
        Mark(kind="points", x=tried.loss[some], y=tried.worst_risk[some], series=1),
        Mark(kind="steps", x=best.loss, y=best.worst_risk, series=0),
        *(Mark(kind="line", x=(-np.inf, np.inf), y=(limit, limit), dash="4 3") for limit in limits),
        Mark(
            kind="points",
            x=[one.loss for one in shown],
            y=[one.risk for one in shown],
            texts=[one.label for one in shown],
        ),
    ]
    loss = Axis(title="mean loss, share of the total", text=percent)
    risk = Axis(title="probability of disclosure", holds=(0, 1))
    series = ("the least risk for a loss", "magnitudes tried")
    return draw_panels([Panel(loss, risk, marks)], title=title, series=series, size=(380, 260))


def write_chart(answer: Answer, file: Path) -> Path:
    """Draw the curve with the given and the optimal magnitudes on it: an SVG picture, or an HTML page with it."""
    asked = answer.question
    shown = [
        Tuned(label=label, loss=found.loss, risk=max(v.risk for v in found.verdicts if v.attack in asked.binding))
        for label, found in (("given", answer.given), ("optimal", answer.optimal))
        if found is not None
    ]
    numbers = ", ".join(str(attack.number) for attack in asked.binding)
    title = f"Contributors {asked.shape}: the worst of attacks {numbers}"
    return write_drawing(risk_against_loss(answer.tried, title=title, shown=shown), file, title=title)
