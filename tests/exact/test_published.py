"""Tables that others published with their patterns: the optimum is theirs, and ours costs at most a tenth more."""

from collections.abc import Callable

import numpy as np
import pytest

from sfumato.exact.attacks import bounds
from sfumato.exact.optimum import cheapest
from sfumato.exact.pattern import withhold
from sfumato.exact.proof import prove
from tests.exact.published import INSTANCES, Instance, at, recomputed, vignette
from tests.exact.tables import unprotected

SLOW = [pytest.param(one, marks=pytest.mark.slow) if one is vignette else one for one in INSTANCES]


@pytest.mark.parametrize("made", SLOW, ids=lambda made: made.__name__)
def test_the_optimum_is_the_published_one(made: Callable[[], Instance]) -> None:
    one = made()
    best = cheapest(one.system, one.needs, cost=one.cost, seconds=300)
    assert unprotected(one.system, best, one.needs) == []
    assert one.price(best) == pytest.approx(one.published)


@pytest.mark.parametrize("made", INSTANCES, ids=lambda made: made.__name__)
def test_the_quick_pattern_costs_at_most_a_tenth_more_than_the_published_one(made: Callable[[], Instance]) -> None:
    one = made()
    pattern = withhold(one.system, one.needs, cost=one.cost)
    assert unprotected(one.system, pattern.withheld, one.needs) == []
    assert prove(one.system, pattern.withheld, one.needs).holds
    assert one.price(pattern.withheld) <= 1.1 * one.published


def test_a_cell_that_two_withheld_ones_in_every_line_do_not_hide_is_found_and_then_has_the_published_interval() -> None:
    """sdcTable's own test: its old heuristic is content, although one cell follows from the others."""
    one = recomputed()
    told = np.flatnonzero(at((4, 4), (0, 1)))
    open_pattern = prove(one.system, one.needs.sensitive, one.needs, readers=False)
    assert np.flatnonzero(open_pattern.unprotected).tolist() == told.tolist()
    low, high = bounds(one.system, one.needs.sensitive | at((4, 4), (1, 3)))
    assert (low[told].tolist(), high[told].tolist()) == ([0.0], [78.0])
