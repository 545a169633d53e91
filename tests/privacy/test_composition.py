"""What guarantees promise together."""

from collections.abc import Callable, Iterable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import MethodError
from sfumato.privacy.account import parallel, sequential
from sfumato.privacy.guarantee import Definition, EmployerEmployee

Compose = Callable[[Iterable[EmployerEmployee]], EmployerEmployee]


def guarantee(
    epsilon: str, *, delta: str = "0", alpha: str = "1/10", definition: Definition = "strong"
) -> EmployerEmployee:
    return EmployerEmployee(
        definition=definition, alpha=Fraction(alpha), epsilon=Fraction(epsilon), delta=Fraction(delta)
    )


guarantees = st.lists(
    st.builds(
        EmployerEmployee,
        definition=st.sampled_from(["strong", "weak", "individuals"]),
        alpha=st.just(Fraction(1, 10)),
        epsilon=st.fractions(0, 4, max_denominator=100),
        delta=st.fractions(0, Fraction(1, 100), max_denominator=1000),
    ),
    min_size=1,
    max_size=6,
)


def test_epsilon_and_delta_add_up_in_sequence() -> None:
    assert sequential([guarantee("1", delta="1/1000"), guarantee("1/2")]) == guarantee("3/2", delta="1/1000")


def test_disjoint_establishments_cost_the_largest() -> None:
    assert parallel([guarantee("1", delta="1/1000"), guarantee("2")]) == guarantee("2", delta="1/1000")


@given(parts=guarantees)
def test_ten_tenths_are_one_and_order_does_not_matter(parts: list[EmployerEmployee]) -> None:
    assert sequential([guarantee("1/10")] * 10).epsilon == 1
    assert sequential(parts) == sequential(reversed(parts))
    assert parallel(parts) == parallel(reversed(parts))


@given(parts=guarantees)
def test_parallel_never_costs_more_than_sequential(parts: list[EmployerEmployee]) -> None:
    assert parallel(parts).epsilon <= sequential(parts).epsilon
    assert parallel(parts).delta <= sequential(parts).delta


@pytest.mark.parametrize("compose", [sequential, parallel])
def test_one_weak_part_makes_the_whole_weak(compose: Compose) -> None:
    assert compose([guarantee("1"), guarantee("1", definition="weak")]).definition == "weak"
    assert compose([guarantee("1"), guarantee("1")]).definition == "strong"


@pytest.mark.parametrize("compose", [sequential, parallel])
@pytest.mark.parametrize("other", ["strong", "weak", "individuals"])
def test_one_part_for_individuals_only_makes_the_whole_so(compose: Compose, other: Definition) -> None:
    parts = [guarantee("1", definition=other), guarantee("1", definition="individuals")]
    assert compose(parts).definition == "individuals"


@pytest.mark.parametrize("compose", [sequential, parallel])
def test_different_alpha_are_refused_until_brought_to_one(compose: Compose) -> None:
    narrow, wide = guarantee("1", alpha="1/20"), guarantee("1", alpha="1/10")
    with pytest.raises(MethodError, match=r"\.at\(alpha\)"):
        compose([narrow, wide])
    assert compose([narrow.at(wide.alpha), wide]).alpha == wide.alpha


@pytest.mark.parametrize("compose", [sequential, parallel])
def test_nothing_cannot_be_composed(compose: Compose) -> None:
    with pytest.raises(MethodError, match="no guarantee"):
        compose([])
