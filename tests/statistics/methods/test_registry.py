from decimal import Decimal
from fractions import Fraction

import pytest

from sfumato.errors import ReleaseError, SfumatoError
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


@pytest.mark.parametrize(
    ("method", "option", "near", "taken"),
    [
        (
            "smooth-pareto",
            "epsilom",
            "epsilon",
            "method, epsilon, alpha, or an option of the method: error_epsilon, form",
        ),
        ("smooth-pareto", "Alpha", "alpha", "method, epsilon, alpha, or an option of the method: error_epsilon, form"),
        ("smooth-box", "methode", "method", "method, epsilon, alpha, or an option of the method: it takes none"),
        (
            "smooth-laplace",
            "dleta",
            "delta",
            "method, epsilon, alpha, or an option of the method: delta, error_epsilon",
        ),
    ],
)
def test_a_misspelt_key_is_answered_with_the_nearest_of_all_that_may_stand_there(
    method: str, option: str, near: str, taken: str
) -> None:
    with pytest.raises(ReleaseError) as refusal:
        build(method, alpha=Fraction("0.1"), epsilon=Fraction(2), options={option: 3})
    assert refusal.value.expected == taken
    assert refusal.value.do == f"did you mean '{near}'?"


@pytest.mark.parametrize(
    ("options", "expected", "found"),
    [
        ({"dominance": [1, 75]}, "a list of lists, such as [[1, 75], [2, 90]]", "[1, 75]"),
        ({"minimum_units": Decimal("2.5")}, "a whole number", "2.5"),
        ({"minimum_units": 3, "cost": "cell"}, 'cost = "cells" or "value"', "cost = 'cell'"),
        ({"pq": 10}, "a list of numbers", "10"),
    ],
)
def test_an_option_of_true_numbers_that_is_wrong_is_shown_beside_what_is_right(
    options: dict[str, object], expected: str, found: str
) -> None:
    with pytest.raises(SfumatoError) as refusal:
        build("suppression", options=options)
    assert (refusal.value.expected, refusal.value.found) == (expected, found)
