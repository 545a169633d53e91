"""Totals and means of the values of units with a guarantee: from the release file to the bundle."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.checking import check, checked
from sfumato.cli import app
from sfumato.errors import BudgetError, DataError, ReleaseError, SfumatoError
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from tests.conftest import write

BUSINESSES: dict[str, list[Any]] = {
    "business": [1, 2, 3, 4, 5, 6],
    "enterprise": ["one", "one", "one", "two", "two", "three"],
    "state": ["A", "A", "B", "A", "B", "B"],
    "industry": ["X", "Y", "X", "X", "X", "X"],
    "turnover": [100, 20, 300, 5, 0, 60],
    "profit": [10, -4, -30, 5, 0, -6],
    "weight": [1.0, 2.5, 1.0, 4.25, 3.0, 1.5],
    "year": ["2001"] * 6,
    "asks": [True, True, False, True, True, True],
}
RELEASE = """
[release]
title = "Turnover"
population = "businesses"
period = "2025"
budget = { definition = "units", alpha = 0.1, epsilon = 1000000, totals = ["turnover", "profit"] }

[data]
engine = "duckdb"
records = { path = "records.parquet", unit = "business", public = true }
public = ["state", "industry"]

[data.attributes]
state = { codes = ["A", "B", "C"] }
industry = { codes = ["X", "Y"] }
year = { codes = ["2001", "2002"] }

[data.measures]
turnover = { unit = "dollars", floor = 2 }
profit = { unit = "dollars", minimum = -1000, floor = 2 }

"""
SURE = 100_000
"""An epsilon at which the noise is below half a dollar, all but surely."""
LARGER = 'unit = "business", levels = ["enterprise"]'


def asked(
    statistic: str = 'total = "turnover"', by: str = '"state"', protect: str = f"epsilon = {SURE}", more: str = ""
) -> str:
    return f'[[table]]\nname = "asked"\n{statistic}\nby = [{by}]\n{more}\nprotect = {{ {protect} }}\n'


def release(folder: Path, *tables: str, change: tuple[tuple[str, str], ...] = (), **columns: list[Any]) -> Path:
    write(folder / "records.parquet", BUSINESSES | columns)
    text = RELEASE + "".join(tables or (asked(),))
    for old, new in change:
        assert old in text
        text = text.replace(old, new)
    path = folder / "release.toml"
    path.write_text(text, encoding="utf-8")
    return path


def rows(path: Path, table: str = "asked") -> list[dict[str, Any]]:
    return pq.read_table(run(load(path)).bundle / "tables" / f"{table}.parquet").to_pylist()


def values(path: Path, column: str = "value") -> list[Any]:
    return [row[column] for row in rows(path)]


def counted(path: Path) -> dict[str, list[int]]:
    with checked(load(path)) as ready:
        ((_, cells),) = ready.tabulate({"asked": ready.plan.tables[0]})
        return {name: column.tolist() for name, column in cells.columns.items()}


# What is added up.


def test_values_and_the_largest_unit_are_counted_by_cell(tmp_path: Path, engine: str) -> None:
    found = counted(release(tmp_path, change=(("duckdb", engine),)))
    assert found == {"count": [125, 360, 0], "largest": [100, 300, 0], "records": [3, 3, 0]}


def test_a_larger_unit_adds_what_all_its_records_in_the_cell_have(tmp_path: Path, engine: str) -> None:
    change = (("duckdb", engine), ('unit = "business"', LARGER))
    found = counted(release(tmp_path, asked(protect=f"epsilon = {SURE}, most_cells = 2"), change=change))
    assert found == {"count": [125, 360, 0], "largest": [120, 300, 0], "records": [3, 3, 0]}


def test_values_above_and_below_zero_are_added_up_apart(tmp_path: Path, engine: str) -> None:
    found = counted(release(tmp_path, asked('total = "profit"', '"industry"'), change=(("duckdb", engine),)))
    assert (found["count"], found["largest"]) == ([15, 0], [10, 0])
    assert (found["negative_count"], found["negative_largest"]) == ([36, 4], [30, 4])


def test_weighted_values_are_rounded_down_and_the_largest_up(tmp_path: Path, engine: str) -> None:
    change = (("duckdb", engine), ('unit = "business"', 'unit = "business", weight = "weight"'))
    found = counted(release(tmp_path, change=change, turnover=[101, 21, 300, 5, 0, 61]))
    assert found["count"] == [int(101 + 2.5 * 21 + 4.25 * 5), int(300 + 1.5 * 61), 0]
    assert (found["largest"], found["heaviest"]) == ([101, 300, 0], [5, 3, 1])
    assert found["records"] == [7_750_000, 5_500_000, 0]
    several = (*change[:1], ('unit = "business"', f'{LARGER}, weight = "weight"'))
    again = counted(release(tmp_path, asked(protect="epsilon = 9, most_cells = 2"), change=several))
    assert again["largest"] == [150, 300, 0]


# What is published.


def test_totals_are_published_with_their_errors_and_every_combination_is_protected(tmp_path: Path) -> None:
    found = rows(release(tmp_path))
    assert [row["value"] for row in found] == [125, 360, 0]
    assert [*found[0]] == ["state", "value", "error", "low", "high"]
    assert all(row["low"] <= row["value"] <= row["high"] for row in found)
    drawn = {values(release(tmp_path / str(at), asked(protect="epsilon = 1")))[2] for at in _folders(tmp_path, 8)}
    assert len(drawn) > 1


def _folders(folder: Path, number: int) -> range:
    for at in range(number):
        (folder / str(at)).mkdir()
    return range(number)


def test_means_are_over_the_public_number_of_records(tmp_path: Path) -> None:
    found = rows(release(tmp_path, asked('mean = "turnover"', more="decimals = 1")))
    assert [row["value"] for row in found] == [41.7, 120.0, None]
    assert [(row["total"], row["records"], row["status"]) for row in found] == [
        (125, 3, ""),
        (360, 3, ""),
        (0, 0, "not available"),
    ]
    assert all(row["low"] <= row["value"] <= row["high"] for row in found[:2])
    assert found[2]["error"] is None


def test_weighted_means_are_over_what_records_weigh(tmp_path: Path) -> None:
    change = (('unit = "business"', 'unit = "business", weight = "weight"'),)
    found = rows(release(tmp_path, asked('mean = "turnover"'), change=change))
    assert abs(found[0]["value"] - (100 + 2.5 * 20 + 4.25 * 5) / 7.75) < 1
    assert [row["records"] for row in found] == [7.75, 5.5, 0]


def test_profits_are_published_as_the_difference_of_two_sums(tmp_path: Path) -> None:
    found = rows(release(tmp_path, asked('total = "profit"', '"industry"')))
    assert [(row["value"], row["positive"], row["negative"]) for row in found] == [(-21, 15, 36), (-4, 0, 4)]
    assert all(row["low"] <= row["value"] <= row["high"] for row in found)
    (tmp_path / "noisy").mkdir()
    noisy = rows(release(tmp_path / "noisy", asked('mean = "profit"', '"industry"', "epsilon = 0.2")))
    assert all(row["total"] == row["positive"] - row["negative"] for row in noisy)
    assert all(row["low"] is None or row["low"] <= row["value"] for row in noisy)


def test_a_unit_that_is_absent_and_one_with_nothing_give_the_same_totals(tmp_path: Path) -> None:
    change = ((", public = true", ""),)
    without = {name: [*column[:4], *column[5:]] for name, column in BUSINESSES.items()}
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    there, gone = counted(release(one, change=change)), counted(release(other, change=change, **without))
    assert {name: there[name] for name in ("count", "largest")} == {name: gone[name] for name in ("count", "largest")}
    assert there.keys() - {"records"} == {"count", "largest"}


def test_what_is_described_names_the_unit_and_the_floor(tmp_path: Path) -> None:
    path = release(tmp_path, change=(('unit = "business"', LARGER),), state=["A", "A", "A", "B", "B", "B"])
    bundle = run(load(path)).bundle
    (about,) = json.loads((bundle / "structure.json").read_text(encoding="utf-8"))["tables"]
    assert about["measure"] == {"name": "turnover", "label": "turnover", "floor": 2, "unit": "enterprise"}
    assert about["guarantee"]["definition"] == "units"
    assert about["guarantee"]["caps"] == [{"measure": "turnover[unit=enterprise]", "cap": 2}]
    assert about["most_cells"] == 1
    statement = (bundle / "statement.md").read_text(encoding="utf-8")
    assert "to which enterprise each belongs" in statement
    assert "hidden whole" in statement


# Cells of larger units.


def test_a_unit_in_more_cells_than_declared_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    change = (('unit = "business"', LARGER),)
    path = release(tmp_path, change=change)
    with pytest.raises(ReleaseError, match="most_cells = 2"):
        run(load(path))
    assert not (tmp_path / "ledger.sqlite").exists()
    allowed = release(tmp_path, asked(protect=f"epsilon = {SURE}, most_cells = 2"), change=change)
    assert values(allowed) == [125, 360, 0]


def test_each_cell_of_a_unit_has_a_share_of_epsilon(tmp_path: Path) -> None:
    tables = asked(protect="epsilon = 4, most_cells = 2")
    with checked(load(release(tmp_path, tables, change=(('unit = "business"', LARGER),)))) as ready:
        (one,) = ready.plan.tables
        assert one.guarantee.epsilon == 4
        assert one.noise_of.cell_guarantee().epsilon == 2
    signed = asked('total = "profit"', protect="epsilon = 4, most_cells = 2")
    with checked(load(release(tmp_path, signed, change=(('unit = "business"', LARGER),)))) as ready:
        assert ready.plan.tables[0].noise_of.cell_guarantee().epsilon == 1
    with checked(load(release(tmp_path, asked('total = "profit"', protect="epsilon = 4")))) as ready:
        assert ready.plan.tables[0].noise_of.cell_guarantee().epsilon == 4


def test_the_periods_of_a_unit_are_cells_of_it(tmp_path: Path) -> None:
    change = (('unit = "business"', 'unit = "business", period = "year"'),)
    columns = {"business": [1, 1, 3, 4, 5, 6], "year": ["2001", "2002", *["2001"] * 4]}
    by = '"state", "year"'
    with pytest.raises(ReleaseError, match="most_cells = 2"):
        run(load(release(tmp_path, asked(by=by), change=change, **columns)))
    path = release(tmp_path, asked(by=by, protect=f"epsilon = {SURE}, most_cells = 2"), change=change, **columns)
    assert values(path) == [105, 20, 360, 0, 0, 0]
    one_year = release(tmp_path, asked(more='where = { year = "2002" }'), change=change, **columns)
    assert values(one_year) == [20, 0, 0]


# The budget.


def test_the_ledger_keeps_whose_values_are_hidden_and_up_to_what(tmp_path: Path) -> None:
    run(load(release(tmp_path)))
    (charge,) = [entry for entry in Ledger.open(tmp_path / "ledger.sqlite").history() if entry.kind == "charge"]
    guarantee = charge.guarantee
    assert (guarantee.definition, guarantee.caps) == ("units", (("turnover[unit=business]", 2),))
    assert guarantee.epsilon == SURE


def test_a_budget_for_one_kind_of_unit_pays_for_no_other(tmp_path: Path) -> None:
    run(load(release(tmp_path)))
    other = release(tmp_path, change=(('unit = "business"', LARGER),), state=["A", "A", "A", "B", "B", "B"])
    with pytest.raises(BudgetError, match="unit=enterprise"):
        run(load(other))
    floor = release(tmp_path, change=(("floor = 2 }\nprofit", "floor = 3 }\nprofit"),))
    with pytest.raises(BudgetError, match="turnover"):
        run(load(floor))


def test_totals_of_units_and_counts_of_people_do_not_share_a_budget(tmp_path: Path) -> None:
    counts = asked('count = "records"', protect='method = "laplace", epsilon = 1').replace("asked", "counted")
    with pytest.raises(BudgetError, match="under the units definition"):
        check(load(release(tmp_path, asked(), counts)))
    people = 'budget = { definition = "individuals", epsilon = 9 }'
    stated = RELEASE[RELEASE.index("budget") :].split("\n", maxsplit=1)[0]
    with pytest.raises(BudgetError, match='definition = "units"'):
        check(load(release(tmp_path, change=((stated, people),))))


def test_an_officer_sets_a_budget_for_units(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.sqlite")
    options = ["--population", "businesses", "--period", "2025", "--alpha", "0.1", "--epsilon", "1000000"]
    totals = ["--totals", "turnover[unit=business]=2", "--totals", "profit[unit=business]=2"]
    command = ["budget", "set", *options, "--definition", "units", *totals, "--ledger", ledger]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert values(release(tmp_path)) == [125, 360, 0]


def test_a_window_bounds_units_over_periods(tmp_path: Path) -> None:
    window = ("epsilon = 1000000", "epsilon = 3, window = { periods = 4, epsilon = 5 }")
    table = asked(protect="epsilon = 3")
    first = run(load(release(tmp_path, table, change=(window,))))
    statement = (first.bundle / "statement.md").read_text(encoding="utf-8")
    assert "A unit that is in the data of 4 years in a row" in statement
    facts = json.loads((first.bundle / "structure.json").read_text(encoding="utf-8"))
    assert [one["periods"] for one in _comparisons(facts) if "periods" in one] == [4] * 8
    with pytest.raises(SfumatoError, match="5"):
        run(load(release(tmp_path, table, change=(window, ("2025", "2026")))))


def test_what_is_bounded_is_told_in_steps(tmp_path: Path) -> None:
    text = CliRunner().invoke(app, ["check", str(release(tmp_path, asked(protect="epsilon = 1")))]).output
    assert "values of units" in text
    bundle = run(load(release(tmp_path, asked(protect="epsilon = 1")))).bundle
    told = json.loads((bundle / "structure.json").read_text(encoding="utf-8"))
    found = [(one["one"], one["other"], one["steps"]) for one in _comparisons(told)]
    assert found == [(0, 2, 1), (200, 220, 1), (200, 242, 2), (0, 200, 37)]


def _comparisons(told: Any) -> list[dict[str, Any]]:
    """The comparisons of values, wherever they are in a structure."""
    if isinstance(told, dict):
        if told.get("about") == "value":
            return [told]
        return [one for part in told.values() for one in _comparisons(part)]
    return [one for part in told for one in _comparisons(part)] if isinstance(told, list) else []


# Refusals.

REFUSED = {
    "an attribute that is not public": (asked(by='"state", "year"'), (), "not in `public`"),
    "a filter that is not public": (asked(more='where = { year = "2001" }'), (), "not in `public`"),
    "a class of what is protected": (
        asked(by='"state", "size"'),
        (
            ('["state", "industry"]', '["state", "industry", "size"]'),
            (
                "[data.measures]",
                'size = { column = "profit", classes = { small = 0, large = 100 } }\n\n[data.measures]',
            ),
        ),
        "made of a measure with a floor",
    ),
    "totals of rows": (asked(more="totals = true"), (), "fewer attributes"),
    "a measure without a floor": (asked(), ((", floor = 2 }\nprofit", " }\nprofit"),), "floor"),
    "values that are clipped": (
        asked(),
        (("floor = 2 }\nprofit", 'floor = 2, outside = "clip", maximum = 9 }\nprofit'),),
        "clip",
    ),
    "consent": (asked(), (("public = true", 'public = true, consent = "asks"'),), "consent"),
    "larger units that are not public": (asked(), (('unit = "business", public = true', LARGER),), "public = true"),
    "weights that are not public": (asked(), (("public = true", 'weight = "weight"'),), "public = true"),
    "a mean of records that are not public": (asked('mean = "turnover"'), ((", public = true", ""),), "public = true"),
    "unknown errors": (asked('mean = "turnover"', more='unknown_errors = "published"'), (), "unknown_errors"),
    "growth": (
        asked('growth = { of = "turnover" }', '"state", "year"'),
        (("public = true", 'public = true, period = "year"'),),
        "top-contributors",
    ),
    "a bought scale": (asked(protect="epsilon = 2, error_epsilon = 1"), (), "error_epsilon"),
    "parts": (asked(more="parts = 2"), (), "parts"),
    "a wider alpha": (asked(protect="epsilon = 2, alpha = 0.05"), (), "alpha"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_proof_covers_is_refused_with_advice(tmp_path: Path, name: str) -> None:
    tables, change, expected = REFUSED[name]
    with pytest.raises((SfumatoError, ValueError), match=expected):
        run(load(release(tmp_path, tables, change=change)))
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ((('definition = "units", ', ""),), "definition"),
        (((', totals = ["turnover", "profit"]', ""),), "definition"),
        ((('["turnover", "profit"]', '["turnover", "sales"]'),), "no measure of this name"),
        (
            (("epsilon = 1000000", 'epsilon = 9, window = { periods = 2, epsilon = 9, definition = "weak" }'),),
            "definition",
        ),
    ],
)
def test_a_budget_that_cannot_be_meant_is_refused(
    tmp_path: Path, change: tuple[tuple[str, str], ...], expected: str
) -> None:
    with pytest.raises(ReleaseError, match=expected):
        load(release(tmp_path, change=change))


def test_amounts_beyond_64_bits_are_refused_before_anything_is_charged(tmp_path: Path) -> None:
    change = (("alpha = 0.1", "alpha = 0.100001"),)
    with pytest.raises(DataError, match="larger unit"):
        run(load(release(tmp_path, change=change, turnover=[3 * 10**12, 1, 1, 1, 1, 1])))
    assert not (tmp_path / "ledger.sqlite").exists()


def test_sums_of_larger_units_beyond_64_bits_are_refused_before_anything_is_charged(tmp_path: Path) -> None:
    weighted = 'unit = "business", levels = ["enterprise"], weight = "weight"'
    change, tables = (('unit = "business"', weighted),), asked(protect="epsilon = 9, most_cells = 3")
    with pytest.raises(DataError, match="where larger units are protected"):
        run(load(release(tmp_path, tables, change=change, turnover=[7 * 10**11] * 6)))
    assert not (tmp_path / "ledger.sqlite").exists()


def test_values_below_zero_are_refused_where_the_measure_has_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="turnover"):
        run(load(release(tmp_path, turnover=[-1, 1, 1, 1, 1, 1])))


# Assessment.


def test_an_assessment_attacks_totals_of_units(tmp_path: Path) -> None:
    tables = (
        asked(protect="epsilon = 2"),
        asked('total = "profit"', '"industry"', "epsilon = 2").replace("asked", "made"),
    )
    path = release(tmp_path, *tables, asked('mean = "turnover"', protect="epsilon = 2").replace("asked", "average"))
    run(load(path))
    found = assess(load(path))
    attacks = {(title, one.attack): one for title, one in found.attacks()}
    total = attacks["asked", "total (within 18 %)"]
    assert (total.targets, total.guessed) == (2, 0)
    known = attacks["asked", "all other units known (within 11 %)"]
    assert known.targets == known.guessed == 2
    assert 0 < known.risk < 1
    assert attacks["made", "total (within 18 %), below 0"].targets == 2
    assert attacks["all totals together", "turnover: difference of two cells (within 11 %)"].targets == 0


def test_two_cells_that_differ_by_one_unit_are_subtracted(tmp_path: Path) -> None:
    less = asked('total = "turnover"', '"industry"', "epsilon = 2", 'where = { state = "A" }').replace("asked", "less")
    columns = {"industry": ["X", "X", "X", "X", "X", "X"], "turnover": [100, 20, 300, 5, 0, 0], "state": [*"AABAAA"]}
    path = release(tmp_path, asked(by='"industry"', protect="epsilon = 2"), less, **columns)
    run(load(path))
    (found,) = (one for title, one in assess(load(path)).attacks() if "difference" in one.attack)
    assert found.targets == 1
    assert 0 < found.risk < 1


# Names.


def test_the_order_of_codes_and_dimensions_makes_no_other_question(tmp_path: Path) -> None:
    with checked(load(release(tmp_path, asked(by='"state", "industry"')))) as ready:
        one = ready.plan.tables[0].digest("da7a")
    with checked(load(release(tmp_path, asked(by='"industry", "state"')))) as ready:
        assert ready.plan.tables[0].digest("da7a") == one
    with checked(load(release(tmp_path, asked(by='"industry", "state"'), change=((", public = true", ""),)))) as ready:
        assert ready.plan.tables[0].digest("da7a") == one
    change = (("floor = 2 }\nprofit", "floor = 3 }\nprofit"),)
    with checked(load(release(tmp_path, asked(by='"industry", "state"'), change=change))) as ready:
        assert ready.plan.tables[0].digest("da7a") != one


def test_a_narrower_alpha_of_the_budget_is_no_other_table(tmp_path: Path) -> None:
    table = asked(protect="epsilon = 2, alpha = 0.2")
    with checked(load(release(tmp_path, table))) as ready:
        assert ready.plan.guarantee.alpha == Fraction(1, 10)
        assert ready.plan.tables[0].guarantee.alpha == Fraction(1, 5)
