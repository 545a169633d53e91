"""Distorted sums become whole numbers whose identities hold exactly and that are right on average."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cells import Cells, Dimension
from sfumato.errors import MethodError
from sfumato.method import NOT_AVAILABLE, STATUSES, SUPPRESSED, SYNTHESISED
from sfumato.noise.randomness import Seeded
from sfumato.statistics.panel.indicators import CODES, NAME
from sfumato.statistics.panel.infused_sums import InfusedSums

ONE = 1_000_000
FACTORS = (750_000, 812_345, 1_150_001, 1_249_999)


def employer(draw: Any) -> dict[str, int]:
    """The indicators of one employer: jobs that stayed, left, came, did both; hires among those that came."""
    stayed, left, came, brief = (draw(st.integers(0, 40)) for _ in range(4))
    hires = draw(st.integers(0, came + brief))
    pay, full_pay = draw(st.integers(0, 10**12)), draw(st.integers(0, 10**11))
    net = came - left
    return {
        "employment": stayed + left + came + brief,
        "beginning": stayed + left,
        "end": stayed + came,
        "full_quarter": stayed,
        "accessions": came + brief,
        "separations": left + brief,
        "new_hires": hires,
        "recalls": came + brief - hires,
        "job_creation": max(net, 0),
        "job_destruction": max(-net, 0),
        "payroll": pay + full_pay,
        "full_quarter_payroll": full_pay if stayed else 0,
        "average_monthly_earnings": 0,
    }


@st.composite
def tables(draw: Any) -> Cells:
    """A few cells of a few employers each, with their factors."""
    cells = draw(st.integers(1, 4))
    true = np.zeros((cells, len(CODES)), dtype=object)
    distorted = np.zeros((cells, len(CODES)), dtype=object)
    for cell in range(cells):
        for _ in range(draw(st.integers(0, 3))):
            factor, figures = draw(st.sampled_from(FACTORS)), employer(draw)
            row = np.array([figures[code] for code in CODES], dtype=object)
            true[cell] += row
            distorted[cell] += factor * row
    return indicator_cells(true, distorted)


def indicator_cells(true: Any, distorted: Any, available: int = 1) -> Cells:
    cells = len(true)
    columns = {
        "count": true,
        "distorted": distorted // ONE,
        "remainder": distorted % ONE,
        "factors": np.ones_like(true),
        "deviation": np.ones_like(true),
        "available": np.full_like(true, available),
    }
    place = Dimension(name="place", codes=tuple(map(str, range(cells))))
    return Cells(
        dimensions=(place, Dimension(name=NAME, codes=CODES)),
        positions=np.arange(cells * len(CODES)),
        columns={name: column.astype(np.int64).reshape(-1) for name, column in columns.items()},
    )


def by_code(protected: Cells) -> dict[str, Any]:
    return dict(zip(CODES, protected["value"].reshape(-1, len(CODES)).T, strict=True))


BASES = st.sampled_from([1, 3, 10])


def method_of(base: int) -> InfusedSums:
    return InfusedSums(rounding=base, earnings_rounding=100 * base if base > 1 else 1)


@given(cells=tables(), seed=st.integers(0, 10_000), base=BASES)
def test_identities_hold_exactly_in_the_published_numbers(cells: Cells, seed: int, base: int) -> None:
    v = by_code(method_of(base).protect(cells, Seeded(seed)))
    assert np.array_equal(v["end"] - v["beginning"], v["accessions"] - v["separations"])
    assert np.array_equal(v["employment"], v["beginning"] + v["accessions"])
    assert np.array_equal(v["employment"], v["end"] + v["separations"])
    assert np.array_equal(v["accessions"], v["new_hires"] + v["recalls"])
    assert np.array_equal(v["end"] - v["beginning"], v["job_creation"] - v["job_destruction"])
    assert all(np.all(values >= 0) for values in v.values())
    assert np.all(v["full_quarter"] <= np.minimum(v["beginning"], v["end"]))
    assert np.all(v["full_quarter_payroll"] <= v["payroll"])
    units = {code: 1 if code == "average_monthly_earnings" else 100 * base if "payroll" in code else base for code in v}
    assert all(np.all(values % (units[code] if base > 1 else 1) == 0) for code, values in v.items())


@given(cells=tables(), seed=st.integers(0, 10_000), base=BASES)
def test_no_number_is_further_from_its_distorted_sum_than_rounding_together_explains(
    cells: Cells, seed: int, base: int
) -> None:
    protected = method_of(base).protect(cells, Seeded(seed))
    off = np.abs(protected["value"] - (cells["distorted"] + cells["remainder"] / ONE)).reshape(-1, len(CODES))
    stocks, flows = (
        [CODES.index(code) for code in codes]
        for codes in (("beginning", "end", "full_quarter"), ("accessions", "separations"))
    )
    assert np.all(off[:, stocks] < base)
    assert np.all(off[:, flows] < 2 * base)
    # Raised where it falls short of the three stocks, which one chance moves together and thresholds by themselves.
    assert np.all(off[:, CODES.index("employment")] < (3 * base if base > 1 else 2))


@given(cells=tables(), seed=st.integers(0, 10_000), base=BASES)
def test_a_stock_or_flow_that_is_empty_is_published_as_empty(cells: Cells, seed: int, base: int) -> None:
    protected, true = by_code(method_of(base).protect(cells, Seeded(seed))), cells["count"].reshape(-1, len(CODES)).T
    for code, counted in zip(CODES, true, strict=True):
        if code not in ("job_creation", "job_destruction", "average_monthly_earnings"):
            assert np.all(protected[code][counted == 0] == 0), code


def one_employer(count: int, factor: int, cells: int) -> Cells:
    place = Dimension(name="origin_state", codes=tuple(map(str, range(cells))))
    other = Dimension(name="destination_state", codes=("x",))
    product = count * factor
    columns = {
        "count": count,
        "distorted": product // ONE,
        "remainder": product % ONE,
        "factors": 1,
        "deviation": 200_000 * count,
        "available": 1,
        "edges": count,
    }
    return Cells(
        dimensions=(place, other),
        positions=np.arange(cells),
        columns={name: np.full(cells, value, dtype=np.int64) for name, value in columns.items()},
    )


@pytest.mark.parametrize(("count", "factor"), [(1, 1_200_000), (2, 760_000), (7, 1_170_000)])
def test_small_cells_add_up_to_the_distorted_sum_and_not_to_the_true_one(count: int, factor: int) -> None:
    cells = one_employer(count, factor, 40_000)
    mean = InfusedSums().protect(cells, Seeded(1))["value"].mean()
    deviation = 0.5 / np.sqrt(len(cells))
    assert abs(mean - count * factor / ONE) < 5 * deviation
    assert abs(mean - count) > 20 * deviation


def test_cells_below_the_minimum_are_suppressed_and_marked_zeros_too() -> None:
    cells = one_employer(0, ONE, 2)
    assert InfusedSums(minimum=3).protect(cells, Seeded(1))["status"].tolist() == [SUPPRESSED, SUPPRESSED]
    assert InfusedSums(minimum=0).protect(cells, Seeded(1))["status"].tolist() == [0, 0]


def test_cells_below_the_minimum_can_be_synthesised_and_are_marked() -> None:
    protected = InfusedSums(minimum=3, below="synthesised").protect(one_employer(1, 1_200_000, 6), Seeded(1))
    assert set(protected["status"].tolist()) == {SYNTHESISED}
    assert np.all((protected["value"] >= 0) & (protected["value"] < 3))
    assert STATUSES[SYNTHESISED] == "synthesised"


def test_of_indicators_the_number_of_jobs_decides_and_all_are_suppressed_together() -> None:
    true = np.zeros((2, len(CODES)), dtype=object)
    true[0, CODES.index("employment")] = true[0, CODES.index("beginning")] = 2
    true[0, CODES.index("separations")] = 2
    cells = indicator_cells(true, 1_200_000 * true)
    status = InfusedSums(minimum=5).protect(cells, Seeded(1))["status"].reshape(2, -1)
    assert np.all(status[0] == SUPPRESSED)
    assert np.all(status[1] == 0), "an empty cell is known to be empty"


def test_what_the_panel_does_not_tell_is_marked_and_holds_no_number() -> None:
    true = np.full((1, len(CODES)), 10, dtype=object)
    protected = InfusedSums().protect(indicator_cells(true, 1_200_000 * true, available=0), Seeded(1))
    assert set(protected["status"].tolist()) == {NOT_AVAILABLE}
    assert not protected["value"].any()


def test_average_earnings_are_the_ratio_of_the_distorted_sums() -> None:
    true = np.zeros((1, len(CODES)), dtype=object)
    for code in ("employment", "beginning", "end", "full_quarter"):
        true[0, CODES.index(code)] = 10
    true[0, CODES.index("payroll")] = true[0, CODES.index("full_quarter_payroll")] = 90_000
    cells = indicator_cells(true, 1_200_000 * true)
    assert by_code(InfusedSums(months=3).protect(cells, Seeded(1)))["average_monthly_earnings"].tolist() == [3_000]
    assert by_code(InfusedSums(months=12).protect(cells, Seeded(1)))["average_monthly_earnings"].tolist() == [750]


@pytest.mark.parametrize("options", [{"minimum": -1}, {"below": "hidden"}])
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(MethodError):
        InfusedSums(**options)
