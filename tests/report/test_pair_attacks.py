"""What one factor gives away of a pair of employers that has the cells of two classes to itself, and what hides it."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.cells import Cells, Dimension
from sfumato.measures.attacks import AttackResult
from sfumato.noise.factors import ONE, Factors, least_base
from sfumato.noise.keyed import CellWords, Keyed, hashes
from sfumato.statistics.panel.attack_pairs import attack_pairs
from sfumato.statistics.panel.infused_sums import InfusedSums
from sfumato.statistics.panel.question import BEHIND, PairQuestion

STATES, QUARTERS = 3, 40


def factors(low: str, high: str) -> Factors:
    return Factors(key=bytes(range(16)), least=Fraction(low), most=Fraction(high))


def flows(*, scale: float, made: Factors, seed: int = 1, alone: bool = True) -> tuple[PairQuestion, Cells]:
    """Moves between states with one employer each, by quarter and sex; or with two, where no pair is alone."""
    rng = np.random.default_rng(seed)
    states = tuple(f"S{n}" for n in range(STATES))
    by = (
        *(Dimension(name=f"{end}_state", codes=states) for end in ("origin", "destination")),
        Dimension(name="quarter", codes=tuple(map(str, range(QUARTERS)))),
        Dimension(name="sex", codes=("F", "M"), public=False),
    )
    asked = PairQuestion(by=by, attributes=("state",), kind="flow", weight="multiplicity", directed=True)
    first, second = np.divmod(np.arange(STATES * STATES), STATES)
    lower, upper = np.minimum(first, second), np.maximum(first, second)
    employers = [f"{a}-{b}" for a, b in zip(lower, upper, strict=True)]
    one, other = (made.of(hashes([f"{name}{of}" for name in employers])) for of in ("x", "y"))
    shape = (STATES * STATES, QUARTERS, 2)
    count = rng.poisson(scale * rng.lognormal(0, 0.5, (STATES * STATES, 1, 2)), shape)
    count[first == second] = 0
    part = np.zeros(shape, np.int64) if alone else rng.binomial(count, 0.5)
    micro = (count - part) * one[:, None, None] + part * other[:, None, None]
    columns = {
        "count": count,
        "distorted": micro // ONE,
        "remainder": micro % ONE,
        "factors": (count > part).astype(np.int64) + (part > 0),
        "deviation": np.ones(shape, np.int64),
        "available": np.ones(shape, np.int64),
        BEHIND: micro // ONE,
    }
    flat = {name: column.ravel() for name, column in columns.items()}
    return asked, Cells(dimensions=by, positions=np.arange(count.size), columns=flat)


def attacked(asked: PairQuestion, cells: Cells, made: Factors, **options: Any) -> dict[str, AttackResult]:
    method = InfusedSums(**{"minimum": 3, **options})
    chance = CellWords(keyed=Keyed(key=made.key), cells=cells, topic="flows", where={})
    base = method.earnings_rounding if method.earnings else method.rounding
    ends = (int(made.least * ONE), int(made.most * ONE))
    found = attack_pairs(asked, cells, method.protect(cells, chance), period="quarter", base=base, within=ends)
    return {result.attack: result for result in found}


USUAL = factors("0.15", "0.25")


def test_a_pair_that_is_alone_gives_away_shares_growth_both_ways_and_all_once_one_figure_is_known() -> None:
    found = attacked(*flows(scale=5_000, made=USUAL), USUAL, rounding=2)
    assert set(found) == {"shape", "growth", "there and back", "size", "factor"}
    for name in ("shape", "growth", "there and back", "size"):
        assert found[name].targets > 5, name
        assert found[name].success_rate == 1, name
        assert found[name].baseline_rate < 0.2, name


def test_small_flows_are_below_what_the_threshold_and_the_base_let_through() -> None:
    found = attacked(*flows(scale=4, made=USUAL), USUAL, rounding=least_base(24 * 100))
    assert all(result.successes == 0 for result in found.values())
    assert found["shape"].targets == found["growth"].targets == found["there and back"].targets == 0


def test_pairs_that_share_their_cells_are_no_targets() -> None:
    found = attacked(*flows(scale=5_000, made=USUAL, alone=False), USUAL, rounding=2)
    assert all(result.targets == 0 for result in found.values())


def test_large_earnings_of_a_pair_that_is_alone_are_as_exposed_as_large_counts() -> None:
    found = attacked(*flows(scale=5_000_000, made=USUAL), USUAL, rounding=5, earnings_rounding=500, earnings=True)
    assert found["there and back"].targets > 100
    assert found["there and back"].success_rate == 1


WIDE = factors("0.87", "0.9")


def test_wide_factors_are_found_in_whole_numbers_and_not_in_multiples_of_the_base() -> None:
    values = 2 * STATES * 2 * 100
    asked, cells = flows(scale=200_000, made=WIDE)
    whole = attacked(asked, cells, WIDE, rounding=1)["factor"]
    assert whole.successes > 0
    assert attacked(asked, cells, WIDE, rounding=least_base(values))["factor"].successes == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_no_factor_of_a_flow_is_found_in_multiples_of_the_base_whatever_the_seed(seed: int) -> None:
    for made in (USUAL, WIDE):
        asked, cells = flows(scale=200_000, made=made, seed=seed)
        assert attacked(asked, cells, made, rounding=least_base(2400))["factor"].successes == 0
