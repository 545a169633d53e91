"""Totals of businesses with a guarantee beside top contributors at equal risk: the table of formal-records.md."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from bench.totals.equal_risk import SHARES, compared, economy, page, read

PAGE = Path(__file__).parents[2] / "docs" / "methods" / "formal-records.md"


def test_the_page_has_what_was_measured() -> None:
    found, text = read(), PAGE.read_text(encoding="utf-8")
    assert page(found) in text
    assert f"epsilon = {found.epsilon:g}" in text
    assert f"{100 * found.risk:.0f} %" in text


def test_epsilon_is_where_both_have_one_risk_and_the_best_guess_is_better_than_the_published_total() -> None:
    small = economy(2_000)
    found = compared(small)
    assert small.risk(Fraction(str(found.epsilon)) + Fraction(1, 50)) > found.risk
    assert small.risk(Fraction(str(found.epsilon)) - Fraction(1, 50)) < found.risk
    assert np.isclose(small.keyed_risk(SHARES).mean(), found.risk)
    assert found.naive < found.risk


@pytest.mark.slow
def test_the_figures_are_measured_again() -> None:
    found, before = compared(economy(100_000)), read()
    assert np.isclose(found.epsilon, before.epsilon, atol=0.02)
    for one, other in zip(found.rows, before.rows, strict=True):
        assert one.number == other.number
        assert np.allclose([one.formal, one.keyed], [other.formal, other.keyed], rtol=0.05)
