"""Children of tracts have what predictions from small groups must cope with: few in a group, and lines that differ."""

import csv
import tomllib
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.release import load
from sfumato.running import run
from sfumato_lab.economy.federal.codes import STATE
from sfumato_lab.economy.opportunity import states
from sfumato_lab.economy.opportunity.draws import FEWEST_CHILDREN, MOST_RANK, SLOPES, Tracts, draw_children, draw_tracts
from sfumato_lab.economy.opportunity.generate import CHUNK, FEWEST, MOST, OpportunityEconomy, generate_opportunity
from sfumato_lab.economy.opportunity.groups import GENDER, GROUPS, RACE
from sfumato_lab.economy.opportunity.shape import measure_opportunity

TRACTS = 2_000  # four chunks of tracts, the last one cut short


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> OpportunityEconomy:
    return generate_opportunity(tmp_path_factory.mktemp("opportunity"), tracts=TRACTS)


@pytest.fixture(scope="module")
def query(small: OpportunityEconomy):
    connection = duckdb.connect()
    connection.execute(f"create view children as select * from read_parquet('{small.folder / 'children.parquet'}')")
    yield lambda sql: connection.execute(sql).fetchall()
    connection.close()


def test_children_are_numbered_without_a_gap_and_ranks_are_whole_hundredths(query, small: OpportunityEconomy) -> None:
    assert TRACTS % CHUNK
    assert query("select count(*), count(distinct child), min(child), max(child) from children") == [
        (small.children, small.children, 1, small.children)
    ]
    types = {field.name: str(field.type) for field in pq.read_schema(small.folder / "children.parquet")}
    assert types["parent_rank"] == types["kid_rank"] == types["child"] == "int64"
    for rank in ("parent_rank", "kid_rank"):
        ((least, most),) = query(f"select min({rank}), max({rank}) from children")
        assert (least, most) <= (20, MOST_RANK)
        assert least >= 0


def test_a_tract_lies_in_one_state_whose_digits_its_code_begins_with(query, small: OpportunityEconomy) -> None:
    assert query("select max(states) from (select count(distinct state) as states from children group by tract)") == [
        (1,)
    ]
    with (small.folder / "codelists" / "tract.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({row["code"] for row in rows}) == TRACTS
    numbers = dict(zip(STATE.codes, states.numbers(), strict=True))
    for row in rows:
        assert len(row["code"]) == 11
        assert row["code"].isdigit()
        assert row["code"].startswith(numbers[row["state"]])
    listed = {row["code"]: row["state"] for row in rows}
    assert dict(query("select distinct tract, state from children")) == listed


@given(st.integers(FEWEST, MOST), st.integers(0, 3))
@settings(max_examples=10, deadline=None)
def test_every_state_has_a_tract_and_all_are_dealt_out(count: int, seed: int) -> None:
    tracts = draw_tracts(count, seed)
    by_state = np.bincount(tracts.state, minlength=len(STATE))
    assert by_state.sum() == count
    assert by_state.min() >= 1
    assert np.all(np.abs(by_state - (1 + (count - len(STATE)) * states.tract_shares())) <= 1)
    assert np.all(np.diff(tracts.state) >= 0)


def test_groups_are_small_and_half_of_them_have_about_thirty_children(small: OpportunityEconomy) -> None:
    shape = measure_opportunity(small.folder)
    assert (shape.tracts, shape.children, shape.states) == (TRACTS, small.children, len(STATE))
    assert 25 <= shape.median <= 40
    assert 0.3 < shape.small < 0.5
    assert shape.low < 5
    assert shape.high > 100


def test_the_measured_shape_is_that_of_the_children(query, small: OpportunityEconomy) -> None:
    shape = measure_opportunity(small.folder)
    sizes = np.array([n for (n,) in query("select count(*) from children group by tract, race, gender")])
    assert (shape.groups, shape.median) == (len(sizes), np.median(sizes))
    assert shape.small == pytest.approx(np.mean(sizes < 20))
    for line in shape.lines:
        ranks = query(
            f"select parent_rank, kid_rank from children where race = '{line.race}' and gender = '{line.gender}'"
        )
        slope, intercept = np.polyfit(*np.array(ranks, dtype=float).T, 1)
        assert line.slope == pytest.approx(slope)
        assert line.at(25) == pytest.approx((intercept + 2500 * slope) / 100)


def test_slopes_lie_where_real_ones_do_and_races_differ(small: OpportunityEconomy) -> None:
    tracts = draw_tracts(TRACTS, small.seed)
    assert tracts.slope.shape == (TRACTS, len(RACE), len(GENDER))
    assert SLOPES[0] <= tracts.slope.min() < tracts.slope.max() <= SLOPES[1]
    lines = {(line.race, line.gender): line for line in measure_opportunity(small.folder).lines}
    assert len(lines) == GROUPS
    assert all(0.2 < line.slope < 0.45 for line in lines.values())
    for gender in GENDER.codes:
        assert lines["white", gender].at(25) > lines["black", gender].at(25) + 5


def one_tract(children: int, *, intercept: float, slope: float) -> Tracts:
    shape = (1, len(RACE), len(GENDER))
    return Tracts(
        state=np.zeros(1, dtype=np.int64),
        children=np.array([children]),
        race=np.full((1, len(RACE)), 1 / len(RACE)),
        affluence=np.zeros(1),
        intercept=np.full(shape, intercept),
        slope=np.full(shape, slope),
    )


@pytest.mark.parametrize(("intercept", "slope"), [(0.3, 0.2), (0.35, 0.3), (0.4, 0.45)])
def test_the_mean_rank_of_children_follows_the_line_of_their_group_exactly(intercept: float, slope: float) -> None:
    drawn = draw_children(one_tract(400_000, intercept=intercept, slope=slope), slice(None), np.random.default_rng(1))
    x, y = drawn.parent_rank / MOST_RANK, drawn.kid_rank / MOST_RANK
    # Errors of 400,000 children: 0.0016 for the slope, 0.0005 for the mean; four of them, less than 5% of a slope.
    found, _ = np.polyfit(x, y, 1)
    assert found == pytest.approx(slope, abs=0.0065)
    assert y.mean() == pytest.approx(intercept + slope * x.mean(), abs=0.002)
    low, high = (np.mean(y[part] - intercept - slope * x[part]) for part in (x < 0.1, x > 0.9))
    assert max(abs(low), abs(high)) < 0.01


def test_no_tract_is_empty_even_of_a_race_that_a_state_hardly_has() -> None:
    tracts = draw_tracts(MOST, 5)
    assert tracts.children.min() >= FEWEST_CHILDREN
    np.testing.assert_allclose(tracts.race.sum(axis=1), 1)
    assert not np.isnan(tracts.race).any()


def test_more_tracts_are_other_children_of_the_same_country(tmp_path: Path, small: OpportunityEconomy) -> None:
    few = measure_opportunity(generate_opportunity(tmp_path, tracts=FEWEST).folder)
    many = measure_opportunity(small.folder)
    assert few.states == many.states == len(STATE)
    assert few.slope == pytest.approx(many.slope, abs=0.06)


def test_the_release_spends_eight_on_each_prediction_and_one_on_counts(small: OpportunityEconomy) -> None:
    text = tomllib.loads(small.release.read_text(encoding="utf-8"))
    (table,) = text["table"]
    protect = table["protect"]
    assert protect["epsilon"] == 8 * len(table["predict"]["at"]) + protect["count_epsilon"]
    assert protect["epsilon"] == text["release"]["budget"]["epsilon"]
    assert sorted(protect["classes"]) == ["gender", "race", "state"]


def test_the_release_file_publishes_predictions_on_a_condition(tmp_path: Path) -> None:
    made = generate_opportunity(tmp_path, tracts=FEWEST)
    published = run(load(made.release))
    assert published.charged == ("ranks",)
    assert published.balance.remaining_epsilon == 0
    guarantee = published.plan.guarantee
    assert isinstance(guarantee, EmployerEmployee)
    assert "not differentially private" in guarantee.condition
    table = pq.read_table(published.bundle / "tables" / "ranks.parquet")
    assert len(table) == FEWEST * GROUPS * 2
    assert set(table["at"].to_pylist()) == {"2500", "7500"}
