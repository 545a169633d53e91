"""Workforce indicators of a panel: as worked out by hand, exact, and the same on every engine."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sfumato.cells import Cells
from sfumato.frame.periods import Span
from sfumato.noise.factors import ONE
from sfumato.noise.keyed import hashes
from sfumato.statistics.panel.indicators import CODES, INDICATORS
from tests.conftest import write
from tests.engine.panels import (
    BY_STATE,
    EMPLOYERS,
    FACTORS,
    QUARTERS,
    WORKERS,
    Panel,
    answer,
    as_dict,
    by_hand,
    counted_plainly,
    factor_of,
    millionths,
    question,
)

ADDITIVE = tuple(indicator.code for indicator in INDICATORS if indicator.additive)


def questions(periods: tuple[str, ...]) -> dict[str, Any]:
    middle = periods[len(periods) // 3 :: 2]
    return {
        "quarter alone": question(periods, "quarter"),
        "workplaces": question(periods, "state", "agency", "quarter"),
        "quarter first": question(periods, "quarter", "state"),
        "worker attribute": question(periods, "state", "quarter", "sex"),
        "attribute of the history": question(periods, "grade", "quarter"),
        "workers and history": question(periods, "sex", "agency", "quarter", "grade"),
        "where public": question(periods, "agency", "quarter", state=("A",)),
        "where of workers": question(periods, "state", "quarter", sex=("F",), grade=("a",)),
        "where of its own dimensions": question(periods, "state", "quarter", "sex", sex=("M",), state=("B",)),
        "where of periods": question(periods, "state", "quarter", quarter=middle),
    }


def test_every_indicator_is_as_worked_out_by_hand(tmp_path: Path, engine: str) -> None:
    frame = by_hand().write(tmp_path, engine=engine)
    cells = answer(frame, {"q": question(QUARTERS, "state", "quarter")})["q"]
    expected = {
        (state, quarter, code): (0 if value is None else value, int(value is not None), 2)
        for code, states in BY_STATE.items()
        for state, values in states.items()
        for quarter, value in zip(QUARTERS, values, strict=True)
    }
    assert as_dict(cells, "count", "available", "establishments") == expected


def test_jobs_are_created_and_destroyed_within_a_cell_of_workers(tmp_path: Path) -> None:
    """Employer 10 replaces a man by a woman in 2025-Q1: no change in all, but one job created and one destroyed."""
    frame = by_hand().write(tmp_path)
    asked = {"all": question(QUARTERS, "agency", "quarter"), "sex": question(QUARTERS, "agency", "quarter", "sex")}
    found = {name: as_dict(cells, "count") for name, cells in answer(frame, asked).items()}
    # Agency X also has employer 30, to which a woman comes back in that quarter.
    assert found["all"]["X", "2025-Q1", "job_creation"] == 1
    assert found["all"]["X", "2025-Q1", "job_destruction"] == 0
    assert found["sex"]["X", "2025-Q1", "F", "job_creation"] == 2
    assert found["sex"]["X", "2025-Q1", "M", "job_destruction"] == 1


def test_the_attribute_of_a_history_is_that_of_the_period_and_ends_no_job(tmp_path: Path) -> None:
    """Worker 1 rises from grade a to grade b in 2024-Q3: the job goes on, counted in b."""
    frame = by_hand().write(tmp_path)
    found = as_dict(answer(frame, {"q": question(QUARTERS, "state", "quarter", "grade")})["q"], "count")
    assert found["A", "2024-Q3", "b", "beginning"] == 1
    assert found["A", "2024-Q3", "b", "accessions"] == 0
    assert found["A", "2024-Q2", "a", "separations"] == 0


def test_a_cell_of_one_employer_is_multiplied_by_its_factor_exactly(tmp_path: Path) -> None:
    cells = answer(by_hand().write(tmp_path), {"q": question(QUARTERS, "state", "agency", "quarter")})
    true, distorted = as_dict(cells["q"], "count"), millionths(cells["q"])
    for key, value in true.items():
        employer = EMPLOYERS["employer"][list(zip(EMPLOYERS["state"], EMPLOYERS["agency"], strict=True)).index(key[:2])]
        if key[-1] in ADDITIVE:
            assert distorted[key] == factor_of(employer) * value
        else:
            assert distorted[key] == 0


def test_engines_agree_in_every_column_and_keys_may_be_text(tmp_path: Path, engine: str) -> None:
    asked = questions(QUARTERS)
    expected = answer(by_hand().write(tmp_path), asked)
    found = answer(by_hand().as_text().write(tmp_path, engine=engine), asked)
    assert all(found[name].equals(expected[name]) for name in asked)


def test_engines_agree_on_a_larger_panel_with_large_earnings(tmp_path: Path, engine: str) -> None:
    """An employer's payroll in millionths, and the sum of its squares, are beyond 64 bits."""
    panel = at_random(seed=5, workers=150, largest=5 * 10**11)
    asked = question(panel.periods, "state", "quarter", "sex")
    found = answer(panel.write(tmp_path, engine=engine), {"q": asked})["q"]
    assert max(millionths(found).values()) > 2**63
    assert_as_plainly(found, counted_plainly(panel, asked))


@pytest.mark.parametrize("name", questions(QUARTERS))
def test_a_question_alone_is_answered_as_among_others(tmp_path: Path, name: str) -> None:
    frame = by_hand().write(tmp_path)
    asked = questions(QUARTERS)
    assert answer(frame, {name: asked[name]})[name].equals(answer(frame, asked)[name])


@st.composite
def panels(draw: st.DrawFn) -> Panel:
    """Small panels, in some of which the periods need two whole numbers of 63 bits."""
    periods = Span(first="2001Q1", last=draw(st.sampled_from(["2001Q1", "2001Q3", "2002Q4", "2017Q3"]))).codes()
    last = len(periods) - 1
    row = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(max(0, last - 9), last))
    rows = draw(st.lists(row, unique=True, min_size=1, max_size=60))
    amounts = st.sampled_from([0, 1, 3, 500, 6 * 10**12])
    return Panel(
        periods=periods,
        employers=EMPLOYERS | {"employer": [1, 2, 3, 4], "state": draw(st.sampled_from([list("AABB"), list("AAAA")]))},
        workers={"worker": [1, 2, 3, 4], "sex": list("FMFM")},
        jobs=[(*key, draw(amounts), draw(st.sampled_from("ab"))) for key in rows],
    )


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(panels(), st.sets(st.sampled_from(sorted(questions(QUARTERS))), min_size=1, max_size=3))
@example(by_hand(), set(questions(QUARTERS)))
def test_random_panels_are_answered_as_plainly_counted(tmp_path: Path, panel: Panel, names: set[str]) -> None:
    asked = {name: q for name, q in questions(panel.periods).items() if name in names}
    found = answer(panel.write(tmp_path), asked)
    for name, q in asked.items():
        assert_as_plainly(found[name], counted_plainly(panel, q))


def test_years_have_twelve_months_and_may_be_whole_numbers(tmp_path: Path, engine: str) -> None:
    panel = by_hand()
    years = Panel(periods=tuple(map(str, range(2019, 2025))), employers=EMPLOYERS, workers=WORKERS, jobs=panel.jobs)
    frame = years.write(tmp_path, engine=engine)
    numbers = years.columns()
    numbers["quarter"] = list(map(int, numbers["quarter"]))
    asked = question(years.periods, "state", "quarter")
    as_text = answer(frame, {"q": asked})["q"]
    write(tmp_path / "jobs.parquet", numbers)
    as_numbers = answer(frame, {"q": asked})["q"]
    assert as_numbers.equals(as_text)
    assert_as_plainly(as_numbers, counted_plainly(years, asked, months=12))
    assert as_dict(as_numbers, "count")["A", "2021", "average_monthly_earnings"] == 5  # 120 / (12·2)


@pytest.mark.parametrize("whole", [True, False], ids=["true sums", "distorted sums"])
def test_the_identities_of_jobs_and_flows_hold_exactly(tmp_path: Path, whole: bool) -> None:
    panel = at_random(seed=6, workers=400, largest=50_000)
    cells = answer(panel.write(tmp_path), {"q": question(panel.periods, "state", "quarter", "sex")})["q"]
    value = as_dict(cells, "count") if whole else millionths(cells)
    for key in {key[:-1] for key in value}:
        of = {code: value[*key, code] for code in CODES}
        if panel.periods.index(key[1]) not in range(1, len(panel.periods) - 1):
            continue
        assert of["end"] - of["beginning"] == of["accessions"] - of["separations"]
        assert of["employment"] == of["beginning"] + of["accessions"] == of["end"] + of["separations"]
        assert of["job_creation"] - of["job_destruction"] == of["end"] - of["beginning"]
        assert min(of["job_creation"], of["job_destruction"], of["recalls"]) >= 0
        if panel.periods.index(key[1]) >= 4:
            assert of["accessions"] == of["new_hires"] + of["recalls"]
    assert any(value[*key[:-1], "recalls"] for key in value)


@pytest.mark.parametrize("whole", [True, False], ids=["true sums", "distorted sums"])
@pytest.mark.parametrize("by", ["agency", "sex", "grade"])
def test_parts_add_up_to_the_whole_exactly(tmp_path: Path, by: str, whole: bool) -> None:
    panel = at_random(seed=7, workers=300, largest=10**12)
    asked = {
        "whole": question(panel.periods, "state", "quarter"),
        "parts": question(panel.periods, by, "state", "quarter"),
    }
    found = answer(panel.write(tmp_path), asked)
    value = {name: as_dict(cells, "count") if whole else millionths(cells) for name, cells in found.items()}
    of_employers = by == "agency"
    for key, total in value["whole"].items():
        parts = sum(amount for part, amount in value["parts"].items() if part[1:] == key)
        if key[-1] in ADDITIVE and (of_employers or not key[-1].startswith("job_")):
            assert parts == total


def test_where_gives_the_part_of_the_larger_table(tmp_path: Path) -> None:
    panel = at_random(seed=8, workers=200, largest=1000)
    asked = {
        "all": question(panel.periods, "state", "quarter", "grade", "sex"),
        "part": question(
            panel.periods, "state", "quarter", "grade", "sex", quarter=panel.periods[2:5], grade=("b",), sex=("M",)
        ),
    }
    columns = ("count", "distorted", "remainder", "factors", "deviation", "available", "establishments")
    found = {name: as_dict(cells, *columns) for name, cells in answer(panel.write(tmp_path), asked).items()}
    assert found["part"]
    assert found["part"].items() <= found["all"].items()


def test_the_deviation_is_that_of_the_statistic_over_factors(tmp_path: Path) -> None:
    panel = at_random(seed=9, workers=400, largest=50_000)
    asked = question(panel.periods, "quarter")
    cells = as_dict(answer(panel.write(tmp_path), {"q": asked})["q"], "deviation")
    draws = 20_000
    plain = counted_plainly(panel, asked)
    for code in ("beginning", "payroll", "average_monthly_earnings"):
        of = plain[panel.periods[4], code]
        names = [f"{draw}/{employer}" for draw, employer in product(range(draws), of.contributions)]
        factors = FACTORS.of(hashes(names)).reshape(draws, -1)
        value = factors @ np.array(list(of.contributions.values())) / ONE
        if of.jobs:
            value /= of.months * (factors @ np.array(list(of.jobs.values()))) / ONE
        # The standard deviation of 20,000 draws is known to about 0.5%.
        assert cells[panel.periods[4], code] / ONE == pytest.approx(np.std(value), rel=0.03)


def test_a_deviation_beyond_64_bits_is_cut_and_the_sums_stay_exact(tmp_path: Path) -> None:
    panel = Panel(periods=("2024-Q1",), employers=EMPLOYERS, workers=WORKERS, jobs=[(1, 10, 0, 2**59, "a")])
    cells = answer(panel.write(tmp_path), {"q": question(panel.periods, "quarter")})["q"]
    payroll = ("2024-Q1", "payroll")
    assert as_dict(cells, "count")[payroll] == 2**59
    assert millionths(cells)[payroll] == 2**59 * factor_of(10)
    assert as_dict(cells, "deviation")[payroll] == 2**63 - 2**10


def assert_as_plainly(cells: Cells, plain: dict[tuple[str, ...], Any]) -> None:
    assert as_dict(cells, "count", "available", "establishments", "factors") == {
        key: (of.count(), int(of.available), of.establishments, len(of.contributions)) for key, of in plain.items()
    }
    assert millionths(cells) == {key: of.distorted() for key, of in plain.items()}
    assert np.all((cells["remainder"] >= 0) & (cells["remainder"] < ONE))
    for key, found in as_dict(cells, "deviation").items():
        # Differences of squares lose half of the digits in the deviation of an average.
        lost = 1e-7 * sum(plain[key].contributions.values()) * ONE if plain[key].jobs else 0
        assert found == pytest.approx(plain[key].deviation(), rel=1e-12, abs=max(lost, 0.51))


def at_random(*, seed: int, workers: int, largest: int) -> Panel:
    """A panel of eight quarters in which jobs end, begin again, and overlap."""
    rng = np.random.default_rng(seed)
    periods = Span(first="2022-Q1", last="2023-Q4").codes()
    employers = 12
    jobs = []
    for worker in range(workers):
        for employer in rng.choice(employers, size=rng.integers(1, 3), replace=False):
            on = rng.random(len(periods)) < 0.7
            earned, grades = rng.integers(0, largest, size=len(periods)), rng.choice(["a", "b"], size=len(periods))
            jobs += [(worker, int(employer), int(t), int(earned[t]), str(grades[t])) for t in np.flatnonzero(on)]
    return Panel(
        periods=periods,
        employers={
            "employer": list(range(employers)),
            "state": list(rng.choice(["A", "B"], size=employers)),
            "agency": list(rng.choice(["X", "Y"], size=employers)),
        },
        workers={"worker": list(range(workers)), "sex": list(rng.choice(["F", "M"], size=workers))},
        jobs=jobs,
    )
