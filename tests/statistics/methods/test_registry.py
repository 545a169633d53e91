from fractions import Fraction

import pytest

from sfumato.errors import ReleaseError
from sfumato.statistics.jobs.smooth import SmoothPareto
from sfumato.statistics.registry import METHODS, build


def test_a_method_is_built_by_its_name() -> None:
    built = build("smooth-pareto", alpha=Fraction(1, 10), epsilon=Fraction(2), worker_cells=3)
    assert built == SmoothPareto(alpha=Fraction(1, 10), epsilon=Fraction(2), worker_cells=3)


def test_every_method_is_listed_under_its_own_name() -> None:
    assert all(name == method.name for name, method in METHODS.items())


def test_a_misspelt_name_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(ReleaseError) as refusal:
        build("smoth_pareto", alpha=Fraction(1, 10), epsilon=Fraction(2))
    assert "smooth-pareto" in refusal.value.expected
    assert refusal.value.do == "did you mean 'smooth-pareto'?"


def test_an_unknown_name_is_answered_with_all_names() -> None:
    with pytest.raises(ReleaseError) as refusal:
        build("swap", alpha=Fraction(1, 10), epsilon=Fraction(2))
    assert all(name in refusal.value.expected for name in METHODS)
