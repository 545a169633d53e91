"""Risk and loss of perturbed totals, computed from the distribution and compared with the method itself, drawn."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import MethodError
from sfumato.noise.factors import ONE, directions, triangular
from sfumato.noise.randomness import Seeded
from sfumato.statistics.totals.calibration import ATTACKS, Attack, evaluate, losses, risk_statement, risks
from sfumato.statistics.totals.perturbation import (
    ACCURACY,
    PUBLISHED_OPTIMA,
    NoiseSum,
    Shape,
    magnitudes_by_shape,
    parity,
    perturbation,
)
from sfumato.statistics.totals.tune import Question, relieved

DRAWS = 200_000
CASES = [
    ("90,5,5", 0.0, (0.15, 0.1, 0.1), 0.3),
    ("70,20,10", 0.0, (0.45, 0.9, 0.65), 0.3),
    ("60,40", 0.0, (0.25, 0.15), 0.3),
    ("30,30,30,10", 0.0, (0.4, 0.3, 0.2), 0.3),
    ("25,25,25,25", 0.0, (0.5, 0.4, 0.3, 0.2), 0.1),
    ("40,-30,20,-5,1", 3.0, (0.3, 0.2), 0.6),
    ("-50,20,10", 15.0, (0.2, 0.1, 0.3), 0.3),
]


def simulated(shape: Shape, magnitudes: tuple[float, ...], spread: float, by_parity: bool) -> dict[str, np.ndarray]:
    """The published totals of a cell and of the cell without its largest contributor, drawn by the method."""
    units = len(shape.sizes)
    turned = directions(Seeded(11).words(DRAWS * units)).reshape(DRAWS, units)  # one for a unit, in both cells
    totals = {}
    for name, first in (("whole", 0), ("without", 1)):
        values = np.array(shape.sizes[first:][: len(magnitudes)])
        top = len(values)
        words = Seeded(12 + first).words(DRAWS * top).reshape(DRAWS, top)  # another cell key: all noise anew
        sign = parity(np.array([units - first]))[0] if by_parity else 1
        moved = perturbation(
            values=np.broadcast_to(values, (DRAWS, top)),
            weights=np.ones((DRAWS, top)),
            magnitudes=np.array(magnitudes[:top]),
            directions=sign * turned[:, first : first + top],
            noise=triangular(words, spread=int(spread * ONE)),
        )
        totals[name] = shape.total - sum(shape.sizes[:first]) + moved
    return totals


@pytest.mark.parametrize("by_parity", [False, True])
@pytest.mark.parametrize(("sizes", "rest", "magnitudes", "spread"), CASES)
def test_risks_and_loss_are_those_of_the_method_when_it_is_drawn(
    sizes: str, rest: float, magnitudes: tuple[float, ...], spread: float, by_parity: bool
) -> None:
    shape = Shape.read(sizes, rest=rest)
    drawn = simulated(shape, magnitudes, spread, by_parity)
    found = evaluate(shape, magnitudes, parity=by_parity, spread=spread)
    first, second = shape.sizes[:2]
    estimates = (drawn["whole"], drawn["whole"] - drawn["without"], drawn["whole"] - second)
    for verdict, estimate in zip(found.verdicts, estimates, strict=True):
        hits = np.mean(np.abs(estimate - first) <= verdict.attack.within * abs(first))
        assert verdict.risk == pytest.approx(hits, abs=4 * np.sqrt(0.25 / DRAWS))
    off = np.abs(drawn["whole"] - shape.total) / abs(shape.total)
    assert found.loss == pytest.approx(off.mean(), abs=5 * off.std() / np.sqrt(DRAWS) + 1e-9)


@settings(max_examples=50, deadline=None)
@given(
    own=st.lists(st.floats(0, 1), min_size=1, max_size=4),
    spread=st.sampled_from([0.05, 0.3, 0.9]),
    middle=st.floats(-1, 1),
)
def test_a_sum_lies_somewhere_and_as_often_above_as_below(own: list[float], spread: float, middle: float) -> None:
    terms = np.array([own])
    noise = NoiseSum(own=terms, other=np.zeros_like(terms), spread=spread)
    far = float(noise.reach[0]) + 1
    low, high = noise.probability(-far, middle)[0], noise.probability(middle, far)[0]
    assert noise.probability(-far, far)[0] == pytest.approx(1, abs=ACCURACY)
    if any(own):
        assert low + high == pytest.approx(1, abs=3 * ACCURACY)
    assert noise.probability(-far, -middle)[0] == pytest.approx(high, abs=2 * ACCURACY)
    assert 0 <= noise.mean_magnitude()[0] <= noise.reach[0]


def test_one_contributor_has_the_triangular_distribution_on_either_side() -> None:
    noise = NoiseSum(own=np.array([[0.5]]), other=np.zeros((1, 1)), spread=0.2)
    assert noise.reach[0] == pytest.approx(0.6)
    assert noise.probability(-0.4, 0.4)[0] == pytest.approx(0, abs=ACCURACY)
    assert noise.probability(0.4, 0.45)[0] == pytest.approx(0.5 / 8, abs=ACCURACY)  # half of half, squared, by two
    assert noise.probability(0.5, 2)[0] == pytest.approx(0.25, abs=ACCURACY)
    assert noise.mean_magnitude()[0] == pytest.approx(0.5, abs=1e-6)


def test_without_magnitudes_everything_is_disclosed_and_nothing_lost() -> None:
    found = evaluate(Shape.read("100"), (0.0,))
    assert found.loss == 0
    assert [verdict.risk for verdict in found.verdicts] == [1, 1, 1]


def test_risks_depend_on_proportions_alone() -> None:
    one, other = (evaluate(Shape.read(sizes), (0.3, 0.2, 0.1)) for sizes in ("50,20,20,10", "5e6,2e6,2e6,1e6"))
    assert [v.risk for v in one.verdicts] == pytest.approx([v.risk for v in other.verdicts])
    assert one.loss == pytest.approx(other.loss)


def test_the_second_contributor_is_no_worse_informed_than_an_outsider_at_the_same_nearness() -> None:
    third = replace(ATTACKS[2], within=ATTACKS[0].within)
    for sizes in ("90,5,5", "80,15,5", "95,5"):
        risk = [risks(Shape.read(sizes), (0.15, 0.1), attack)[0] for attack in (ATTACKS[0], third)]
        assert risk[1] >= risk[0] - ACCURACY


def test_many_magnitudes_at_once_are_evaluated_like_one() -> None:
    shape, many = Shape.read("60,20,10,10"), np.random.default_rng(2).random((2_000, 3))
    assert losses(shape, many)[1234] == pytest.approx(losses(shape, many[1234])[0], abs=1e-12)
    for attack in ATTACKS:
        assert risks(shape, many, attack)[1234] == pytest.approx(risks(shape, many[1234], attack)[0], abs=1e-12)


@pytest.mark.parametrize("text", ["", "0,0", "90,five", "90,inf", "5,-5"])
def test_contributors_that_make_no_cell_are_refused(text: str) -> None:
    with pytest.raises(MethodError, match="90,5,5"):
        Shape.read(text)


@pytest.mark.parametrize("magnitudes", [(), (-0.1,), (float("nan"),), (0.1,) * 7])
def test_magnitudes_that_make_no_sense_are_refused(magnitudes: tuple[float, ...]) -> None:
    with pytest.raises(MethodError, match="not negative"):
        evaluate(Shape.read("90,5,5"), magnitudes)


@pytest.mark.parametrize(("within", "limit"), [(0.0, 0.15), (11.0, 15.0), (0.1, -0.1)])
def test_an_attack_needs_shares(within: float, limit: float) -> None:
    with pytest.raises(MethodError, match="not percentages"):
        Attack(number=2, words="", within=within, limit=limit)


def test_magnitudes_by_shape_are_others_without_the_target_and_their_risk_says_so() -> None:
    shape = Shape.read("70,20,10")
    own, without = magnitudes_by_shape(shape)
    assert own == pytest.approx(PUBLISHED_OPTIMA["70,20,10"], abs=1e-6)
    assert without[0] > own[0], "two contributors of 20 and 10 are a more even cell"
    alike, apart = (evaluate(shape, own, without=other).verdicts[1].risk for other in (None, without))
    rng = np.random.default_rng(1)
    draws = 200_000
    d = rng.choice([-1, 1], (draws, 3))
    h, again = (1 + rng.triangular(-0.3, 0, 0.3, (draws, 3)) for _ in range(2))
    sizes = np.array(shape.sizes)
    second = np.array([0.0, without[0], without[1]])
    difference = (np.array(own) * d * h * sizes).sum(axis=1) - (second * d * again * sizes).sum(axis=1)
    assert apart == pytest.approx((np.abs(difference) <= 0.11 * sizes[0]).mean(), abs=0.005)
    assert alike == pytest.approx(0.052, abs=0.001)
    assert apart > 0.15, "what the statement of such a release says"
    assert "25 %" in risk_statement(None, spread=0.3, parity=False)


def test_relief_by_weight_and_sampling_error_is_told_with_its_risk() -> None:
    question = Question(shape=Shape.read("90,5,5"), weight=16.0)
    found = relieved(question, (0.4, 0.3, 0.2))
    assert found.evaluation.magnitudes == pytest.approx((0.1, 0.075, 0.05))
    assert found.evaluation.verdicts[0].risk > 0.5, "who knows the weight divides by it"
    assert found.weight_unknown == 0, "who does not, is off by fifteen times the target"
    assert found.sample_unknown[0] == pytest.approx(found.evaluation.verdicts[0].risk / 16)
    sampled = relieved(Question(shape=Shape.read("90,5,5"), sampling_error=0.9), (0.4, 0.3, 0.2))
    assert sampled.evaluation.magnitudes == pytest.approx((0.2, 0.15, 0.1)), "never by more than half"
    with pytest.raises(MethodError, match="a weight from 1 on"):
        Question(shape=Shape.read("90,5,5"), weight=0.5)
