"""What keyed perturbation withstands, in the words of the privacy statement: risks of stated attacks, rounded up."""

from collections.abc import Sequence
from math import ceil

from sfumato.methods.contributor_optima import PUBLISHED_OPTIMA
from sfumato.methods.contributor_risk import ATTACKS, risks
from sfumato.methods.contributor_shape import Shape

_STEP = 5  # percent: finer figures would tell the magnitudes
_WORDS = {
    1: "who takes a published total for its largest contributor comes within {within:.0%} of it",
    2: "who subtracts the totals of two cells that differ by that contributor, within {within:.0%},",
    3: "who is the second largest and subtracts the own figure, within {within:.0%},",
}


def risk_statement(magnitudes: Sequence[float] | None, *, spread: float, parity: bool) -> str:
    """How often each attack succeeds at most, over cells of nine shapes; None takes the best magnitudes of each shape.

    Weights are one, so the figures are for units that were taken for sure.
    """
    worst = {}
    for attack in ATTACKS:
        found = [
            risks(Shape.read(shape), best if magnitudes is None else magnitudes, attack, parity=parity, spread=spread)
            for shape, best in PUBLISHED_OPTIMA.items()
        ]
        worst[attack.number] = min(_STEP * ceil(100 * max(float(risk[0]) for risk in found) / _STEP), 100)
    sentences = (
        f"{_WORDS[attack.number].format(within=attack.within)} in at most {worst[attack.number]} % of cases"
        for attack in ATTACKS
    )
    return "in cells of nine shapes, from one dominant contributor to four equal ones, someone " + "; someone ".join(
        sentences
    )
