"""Risk and loss of given magnitudes for a cell of a given shape, and the magnitudes that cost least."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from sfumato.statistics.totals.perturbation import Shape

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

    def __post_init__(self) -> None:
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
class Answer:
    """What was asked about, what the given magnitudes do, and the best ones where there are any."""

    question: Question
    given: Evaluation | None
    optimal: Evaluation | None
    refusal: MethodError | None
    """Why there are no best ones; raised where nothing else was asked."""
    tried: Tried
    """Loss and risk of every set of magnitudes on a grid, for the curve."""


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
    return Answer(
        question=question,
        given=None if magnitudes is None else question.evaluate(magnitudes),
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
