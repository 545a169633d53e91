"""Which cells are sensitive, and how much protection each needs, by the formulas of the handbooks."""

import numpy as np
import pytest

from sfumato.errors import MethodError
from sfumato.exact.rules import Contributions, Protection, Reason, Rules


def cells(*each: tuple[float, ...], **columns: object) -> Contributions:
    """Cells by their contributions."""
    ordered = [sorted(one, reverse=True) for one in each]
    return Contributions(
        value=np.array([float(sum(one)) for one in ordered]),
        units=np.array([len(one) for one in ordered]),
        largest=np.array([float(([*one, 0])[0]) for one in ordered]),
        second=np.array([float(([*one, 0, 0])[1]) for one in ordered]),
        **columns,  # type: ignore[arg-type]
    )


def test_percent_rule_protects_the_largest_from_the_second() -> None:
    found = Rules(percent=10).protection(cells((90, 8, 2), (90, 9, 9), (90, 20, 10), (50, 50)))
    assert found.sensitive.tolist() == [True, False, False, True]
    assert found.up.tolist() == [7.0, 0.0, 0.0, 5.0]
    assert found.down.tolist() == found.up.tolist()
    assert found.reasons[0] == Reason.PERCENT


def test_a_coalition_knows_more_than_one_contributor() -> None:
    one = cells((90, 8, 6, 5), top=np.array([104.0]))
    assert not Rules(percent=10).protection(one).sensitive[0]
    assert Rules(percent=10, coalition=2).protection(one).sensitive[0]
    assert Rules(percent=10, coalition=2).protection(one).up[0] == 4.0


def test_dominance_protects_up_to_where_the_share_would_be_allowed() -> None:
    found = Rules(dominance=(1, 75)).protection(cells((90, 10), (75, 25), (60, 40)))
    assert found.sensitive.tolist() == [True, False, False]
    assert found.up[0] == pytest.approx(90 / 0.75 - 100)
    two = Rules(dominance=(2, 85)).protection(cells((60, 30, 10)))
    assert two.up[0] == pytest.approx(90 / 0.85 - 100)


def test_prior_knowledge_makes_more_cells_sensitive() -> None:
    one = cells((90, 12, 10))
    assert not Rules(percent=10).protection(one).sensitive[0]
    assert Rules(prior=(10, 50)).protection(one).sensitive[0]
    assert Rules(prior=(10, 50)).protection(one).up[0] == pytest.approx(0.2 * 90 - 10)


def test_few_units_and_small_counts_are_hidden_up_to_the_minimum() -> None:
    found = Rules(units=3).protection(cells((10, 10), (10, 10, 10), ()))
    assert found.sensitive.tolist() == [True, False, False]
    assert found.up.tolist() == [6.0, 0.0, 0.0]
    counts = Rules(count=5).protection(cells((1, 1), (1, 1, 1, 1, 1)))
    assert counts.sensitive.tolist() == [True, False]
    assert (counts.down[0], counts.up[0]) == (1.0, 3.0)


def test_zeros_and_full_cells_are_sensitive_by_choice() -> None:
    both = cells((), (4,), full=np.array([False, True]))
    assert not Rules(units=1).protection(both).sensitive.any()
    found = Rules(zeros=True, full=True).protection(both)
    assert found.sensitive.tolist() == [True, True]
    assert found.down.tolist() == [0.0, 1.0]
    assert found.up.tolist() == [1.0, 1.0]


def test_consent_waives() -> None:
    waived = cells((90, 8, 2), waived=np.array([True]))
    assert not Rules(percent=10, dominance=(1, 50), units=5).protection(waived).sensitive.any()


def test_weights_put_the_published_sum_against_true_contributions() -> None:
    true = cells((90, 8, 2))
    weighted = Contributions(value=np.array([130.0]), units=true.units, largest=true.largest, second=true.second)
    assert Rules(percent=10).protection(true).sensitive[0]
    assert not Rules(percent=10).protection(weighted).sensitive[0]


def test_a_holding_under_many_units_counts_as_one() -> None:
    by_establishment = Rules(units=3, percent=10).protection(cells((30, 30, 30, 10)))
    by_holding = Rules(units=3, percent=10).protection(cells((90, 10)))
    assert not by_establishment.sensitive[0]
    both = Protection.joined([by_establishment, by_holding])
    assert both.sensitive[0]
    assert both.up[0] == by_holding.up[0] == 30.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"units": 0},
        {"count": 0},
        {"dominance": (0, 50)},
        {"dominance": (1, 101)},
        {"percent": 0},
        {"prior": (50, 10)},
        {"coalition": 0},
    ],
)
def test_rules_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(MethodError, match="rules of sensitive cells"):
        Rules(**wrong)  # type: ignore[arg-type]


def test_every_reason_has_words() -> None:
    assert all(reason.words for reason in Reason)
