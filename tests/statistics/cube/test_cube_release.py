"""A release with a cube: refused before anything is charged, charged before anything is read, published as it says."""

import json
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sfumato.bundle.manifest import read_manifest
from sfumato.bundle.statement import compared, statement
from sfumato.checking import check
from sfumato.errors import BudgetError, BundleError, DataError, MethodError, SfumatoError
from sfumato.keys import new_key
from sfumato.privacy.account import sequential
from sfumato.privacy.guarantee import NoFormalGuarantee
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.meaning import odds
from sfumato.release import load
from sfumato.running import run
from tests.statistics.cube.survey import CODES, CUBE, RELEASE, records, release

CONTROLS = 'controls = [{ by = ["region"], epsilon = 0.5 }, { by = ["level", "job"], epsilon = 0.5 }]'
TABLE = """
[[table]]
name = "pay"
total = "pay"
by = ["region"]
protect = { method = "top-contributors" }
"""

REFUSED = {
    "epsilon of zero": ("epsilon = 2\n", "epsilon = 0\n", "epsilon above 0"),
    "negative epsilon": ("epsilon = 2\n", "epsilon = -1\n", "epsilon above 0"),
    "cap of zero": ("cap = 7", "cap = 0", "cap of 1 or more"),
    "enormous cap": ("cap = 7", "cap = 1000000", "cap from 1 to"),
    "control variable not in the cube": ('by = ["region"], epsilon', 'by = ["place"], epsilon', "'place'"),
    "control with epsilon 0": ("epsilon = 0.5", "epsilon = 0", "epsilon above 0"),
    "control exact and noisy": ("epsilon = 0.5 }", "epsilon = 0.5, exact = true }", "one of them"),
    "control neither exact nor noisy": ("epsilon = 0.5 }", "exact = false }", "one of them"),
    "two controls by the same": ('by = ["level", "job"]', 'by = ["region"]', "two controls are by region"),
    "attribute that is none": ('"job", "level"]', '"job", "level", "levels"]', "did you mean 'level'"),
    "measure that is none": ('measures = ["pay"]', 'measures = ["pays"]', "did you mean 'pay'"),
    "strict without a largest weight": ("cap = 7", 'cap = 7\nsensitivity = "weight"', "largest_weight"),
    "stratum not in the cube": ("cap = 7", 'cap = 7\nweights = "place"', "an attribute of the cube"),
    "share of empty cells above one": ("cap = 7", "cap = 7\nempty_cells = 1.5", "up to 1"),
    "share of empty cells of zero": ("cap = 7", "cap = 7\nempty_cells = 0", "above 0"),
    "nonnegative raking": ("cap = 7", 'cap = 7\nnonnegative = true\ncalibration = "raking"', "least-squares"),
    "misspelt key": ("cap = 7", "cup = 7", "did you mean 'cap'"),
    "no budget": (RELEASE[RELEASE.index("budget") : RELEASE.index("\n\n[data]")], "", "a budget"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_cube_that_makes_no_sense_is_refused_before_anything_is_charged(tmp_path: Path, case: str) -> None:
    old, new, words = REFUSED[case]
    file = release(tmp_path, (old, new))
    with pytest.raises(SfumatoError, match=words):
        run(load(file))
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.parametrize("weight", [None, 0.0, -1.0, float("nan"), float("inf")])
def test_missing_and_non_positive_weights_are_refused_before_anything_is_charged(
    tmp_path: Path, weight: float | None
) -> None:
    weights = [*records()["weight"][:-1], weight]
    with pytest.raises(DataError, match="weight"):
        run(load(release(tmp_path, weight=weights)))
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_weight_above_the_largest_one_allowed_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    strict = ('measures = ["pay"]', 'sensitivity = "weight"\nlargest_weight = 30')
    with pytest.raises(DataError, match="no weight above largest_weight = 30"):
        run(load(release(tmp_path, strict)))
    assert not (tmp_path / "ledger.sqlite").exists()


def test_numbers_that_a_cube_cannot_add_up_exactly_are_refused_before_anything_is_charged(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cube 'people', weighted\n.*2\^62"):
        run(load(release(tmp_path, pay=[1] * 400, weight=[7e9] * 400)))
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_cube_is_for_records(release_folder: Path) -> None:
    file = release_folder / "release.toml"
    text = CUBE.replace('["region", "job", "level"]', '["place"]').split("controls")[0]
    file.write_text(file.read_text(encoding="utf-8") + "\n" + text, encoding="utf-8")
    with pytest.raises(SfumatoError, match="records = "):
        load(file)


def test_the_budget_must_allow_a_guarantee_for_individuals_and_its_delta(tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="individuals"):
        run(load(release(tmp_path / "a", (', definition = "individuals"', ""))))
    with pytest.raises(BudgetError, match="at most what remains"):
        run(load(release(tmp_path / "b", ("delta = 0.01", "delta = 1e-9"))))


def test_a_cube_is_charged_once_with_its_controls_and_published_again_for_nothing(tmp_path: Path) -> None:
    file = release(tmp_path)
    found = check(load(file))
    published = run(load(file))
    assert found.plan.guarantee == published.plan.guarantee
    assert published.charged == ("people",)
    assert published.balance is not None
    assert published.balance.spent_epsilon == Fraction(3)
    assert 0 < published.balance.spent_delta == published.plan.cubes[0].guarantee.delta < Fraction(1, 10**5)
    before = (published.bundle / "cubes/people.parquet").read_bytes()
    again = run(load(file))
    assert again.charged == ()
    assert (again.bundle / "cubes/people.parquet").read_bytes() == before
    kinds = [entry.kind for entry in Ledger.open(tmp_path / "ledger.sqlite").history()]
    assert kinds == ["budget", "data", "charge", "answer"]


@pytest.mark.parametrize(
    "change",
    [
        ("cap = 7", "cap = 8"),
        ("cap = 7", "cap = 7\nnonnegative = true"),
        ("epsilon = 2\n", "epsilon = 3\n"),
        ("cap = 7", 'cap = 7\ncalibration = "raking"'),
        ("cap = 7", "cap = 7\nempty_cells = 0.5"),
        ('measures = ["pay"]', ""),
        ("epsilon = 0.5", "exact = true"),
    ],
)
def test_another_cube_of_the_same_records_is_another_question(tmp_path: Path, change: tuple[str, str]) -> None:
    first = run(load(release(tmp_path)))
    second = run(load(release(tmp_path, change)))
    assert first.charged == second.charged == ("people",)


def test_rules_and_titles_change_no_answer(tmp_path: Path) -> None:
    before = (run(load(release(tmp_path))).bundle / "cubes/people.parquet").read_bytes()
    after = run(load(release(tmp_path, ("cap = 7", "cap = 7\nleast_count = 5"), ("by region, job", "by job"))))
    assert after.charged == ()
    assert (after.bundle / "cubes/people.parquet").read_bytes() == before


def test_the_file_of_a_cube_lists_every_cell_with_its_codes_and_whole_numbers(tmp_path: Path) -> None:
    bundle = run(load(release(tmp_path))).bundle
    table = pq.read_table(bundle / "cubes/people.parquet")
    assert table.num_rows == 24
    assert table.column_names == ["region", "job", "level", "count", "weighted", "pay"]
    rows = list(zip(*(table[name].to_pylist() for name in CODES), strict=True))
    assert rows == [(r, j, v) for r in CODES["region"] for j in CODES["job"] for v in CODES["level"]]
    assert all(str(table.schema.field(name).type) == "int64" for name in ("count", "weighted", "pay"))
    described = json.loads((bundle / "structure.json").read_text())["cubes"][0]
    assert described["cells"] == 24
    assert described["parts"] == {"count": 1_000_000, "weighted": 1_000_000, "pay": 1_000}
    assert described["guarantee"]["epsilon"] == 3
    assert described["guarantee_covers"] == "counts only"
    assert described["file"] in read_manifest(bundle)["files"]
    assert set(read_manifest(bundle)["charges"]) == {"people"}


def test_a_cube_that_was_changed_is_refused(tmp_path: Path) -> None:
    from sfumato.bundle.read import open_cube

    bundle = run(load(release(tmp_path))).bundle
    open_cube(bundle, "people")
    with pytest.raises(SfumatoError, match="one of its cubes: people"):
        open_cube(bundle, "persons")
    file = bundle / "cubes/people.parquet"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(BundleError, match=r"people\.parquet was changed"):
        open_cube(bundle, "people")
    with pytest.raises(BundleError, match="was changed"):
        read_manifest(bundle)


def test_the_statement_says_what_is_not_covered(tmp_path: Path) -> None:
    text = (run(load(release(tmp_path))).bundle / "statement.md").read_text()
    assert "Weighted counts and totals of measures are not covered" in text
    assert "average weight" in text
    assert "disclosed as they are" not in text
    assert "level × job (epsilon 0.5)" in text
    exact = ('{ by = ["region"], epsilon = 0.5 }', '{ by = ["region"], exact = true }')
    text = (run(load(release(tmp_path / "b", exact))).bundle / "statement.md").read_text()
    assert "disclosed as they are, without noise: region." in text
    assert "Apart from the tables that are disclosed" in text
    strict = ('measures = ["pay"]', 'sensitivity = "weight"\nlargest_weight = 500\nempty_cells = 0.5')
    file = release(tmp_path / "c", strict, ("epsilon = 8", "epsilon = 80"))
    published = run(load(file))
    text = (published.bundle / "statement.md").read_text()
    assert "Weighted counts and totals of measures are not covered" not in text
    assert "largest weight allowed, 500" in text
    assert "a share of 0.5" in text
    assert published.plan.guarantee.epsilon > 6


def test_tables_and_cubes_can_be_published_together_or_alone(tmp_path: Path) -> None:
    new_key(tmp_path / "sfumato.key")
    key = ('period = "2025"\n', 'period = "2025"\nkey = "sfumato.key"\n')
    both = run(load(release(tmp_path, key, text=RELEASE + CUBE + TABLE)))
    assert both.charged == ("pay", "people")
    assert isinstance(both.plan.guarantee, NoFormalGuarantee)
    assert set(read_manifest(both.bundle)["charges"]) == {"pay", "people"}
    assert {"tables/pay.parquet", "cubes/people.parquet"} <= set(read_manifest(both.bundle)["files"])
    text = (both.bundle / "statement.md").read_text()
    assert "**no formal guarantee**: nothing bounds what pay may reveal" in text
    assert "Weighted counts and totals of measures are not covered" in text
    with pytest.raises(SfumatoError, match="are called 'people'"):
        load(release(tmp_path, key, text=RELEASE + CUBE + TABLE.replace('name = "pay"', 'name = "people"')))
    with pytest.raises(SfumatoError, match="something to publish"):
        load(release(tmp_path, text=RELEASE))


def test_both_engines_make_the_same_true_cube(tmp_path: Path, engine: str) -> None:
    from sfumato.checking import checked

    found = []
    for name in ("duckdb", engine):
        with checked(load(release(tmp_path / name, ('engine = "duckdb"', f'engine = "{name}"')))) as ready:
            found.append(next(iter(ready.count({"": ready.plan.cubes[0]}).values())))
    (first, sampling), (second, other) = found
    assert first.equals(second)
    assert sampling == other


def test_a_plan_without_data_states_the_same_guarantee(tmp_path: Path) -> None:
    file = release(tmp_path)
    assert check(load(file), data=False).plan.guarantee == check(load(file)).plan.guarantee


def test_a_cap_so_large_that_its_delta_is_nothing_is_refused_with_advice_that_can_be_followed(tmp_path: Path) -> None:
    """A cube has no delta that could be chosen: its cap decides."""
    with pytest.raises(MethodError) as refusal:
        check(load(release(tmp_path, ("cap = 7", "cap = 1000"))))
    assert "cap = 1,000" in refusal.value.found
    assert refusal.value.do == "lower `cap`"
    check(load(release(tmp_path, ("cap = 7", "cap = 100"))))


def test_a_record_in_another_cell_is_stated_at_two_epsilons(tmp_path: Path) -> None:
    made = check(load(release(tmp_path))).plan
    epsilon = sequential([cube.guarantee for cube in made.cubes])
    assert epsilon is not None
    found = {each.about: each.loss for each in compared(made)}
    assert found["record"].epsilon == epsilon.epsilon
    assert found["description of a record"].epsilon == 2 * epsilon.epsilon
    assert found["description of a record"].delta == 2 * epsilon.delta
    text = statement(made)
    assert f"which is one record less and one more: {odds(found['description of a record'])}." in text
