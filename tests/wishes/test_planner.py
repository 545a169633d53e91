"""Plans from wishes: as good as any split that can be tried, from public numbers alone, and written down."""

import json
from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import sfumato
from bench.agreement.plan import mean_errors, measure, true_cells
from sfumato.cli.plan import assumed
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.statistics.wish import EXAMPLES, Wish
from sfumato.wishes.allocation import Allocation, Allotment, rewritten
from sfumato.wishes.planner import Planner
from sfumato_lab.economy.jobs.generate import Economy, generate
from tests.cli.call import call

FINE, INDUSTRY, PLACE = "jobs_by_place_industry", "jobs_by_industry", "jobs_by_place"
WISHES = {FINE: "30%", INDUSTRY: "1%", PLACE: "5%"}
LOOSE = {FINE: "60%", INDUSTRY: "5%", PLACE: "10%"}


@pytest.fixture(scope="module")
def planner(economy: Economy) -> Planner:
    """Three tables of the small economy, with a wish each."""
    return Planner.of(sfumato.load(economy.release), WISHES)


def all_splits(planner: Planner, total: float, steps: int = 16) -> list[np.ndarray]:
    """Every way to give tables so many parts of a total, none included where it leaves something to be known."""
    parts = [one for one in product(range(steps + 1), repeat=len(planner.tables)) if sum(one) == steps]
    splits = [np.array(one) * total / steps for one in parts]
    exist = [[one.at(value) is not None or value == 0 for one, value in zip(planner.tables, split, strict=True)]
             for split in splits]  # fmt: skip
    return [split for split, works in zip(splits, exist, strict=True) if all(works)]


@pytest.mark.parametrize("total", [Fraction(4), Fraction("1.5")])
def test_no_split_on_a_grid_is_better(planner: Planner, total: Fraction) -> None:
    found = planner.at(total)
    assert found.total == total == sum(one.epsilon for one in found.tables)
    best = min(planner.worst(split) for split in all_splits(planner, float(total)))
    # One table alone is taken unless several are better by more than a tenth.
    assert found.worst <= best * (1.01 if all(one.epsilon for one in found.tables) else 1.12)
    assert found.worst <= min(found.others.values()) * (1 + 1e-9)


@pytest.fixture(scope="module")
def least(planner: Planner) -> Allocation:
    """The least total that meets the wishes."""
    return planner.least()


def test_the_least_total_meets_all_wishes_and_a_smaller_one_does_not(planner: Planner, least: Allocation) -> None:
    found = least
    assert 0.97 < found.worst <= 1
    less = float(found.total) * 0.93
    assert min(planner.worst(split) for split in all_splits(planner, less)) > 1


@pytest.mark.slow
def test_more_epsilon_is_never_worse(planner: Planner) -> None:
    worst = [planner.at(Fraction(total)).worst for total in (1, 2, 4, 8, 16)]
    assert worst == sorted(worst, reverse=True)


@pytest.mark.slow
def test_looser_wishes_need_less(economy: Economy, least: Allocation) -> None:
    loose = Planner.of(sfumato.load(economy.release), LOOSE)
    assert loose.least().total < least.total


def test_errors_are_foreseen_within_a_factor_of_three(economy: Economy, planner: Planner) -> None:
    release = sfumato.load(economy.release)
    truth = true_cells(release)
    found = planner.at(Fraction(4))
    even = dict.fromkeys(WISHES, 4 / 3)
    for split in ({one.name: float(one.epsilon) for one in found.tables}, even):
        predicted = planner.errors(np.array([split[one.name] for one in planner.tables]))
        measured = mean_errors(planner, truth, split, draws=10)
        ratios = [error / measured[one.name] for one, error in zip(planner.tables, predicted, strict=True)]
        assert 1 / 3 < min(ratios) <= max(ratios) < 3


def test_only_the_register_is_read_and_nothing_is_charged(release_folder: Path) -> None:
    for name in ("jobs", "workers"):
        (release_folder / f"{name}.parquet").unlink()
    before = {path.name for path in release_folder.iterdir()}
    assert Planner.of(sfumato.load(release_folder / "release.toml"), WISHES).at(Fraction(4)).register
    assert {path.name for path in release_folder.iterdir()} == before


def test_without_a_register_all_cells_are_alike_and_it_is_said(release_folder: Path) -> None:
    text = (release_folder / "release.toml").read_text(encoding="utf-8")
    joined = "\n".join(line for line in text.splitlines() if not line.startswith("workplaces ="))
    (release_folder / "joined.toml").write_text(joined, encoding="utf-8")
    (release_folder / "workplaces.parquet").unlink()
    found = Planner.of(sfumato.load(release_folder / "joined.toml"), {PLACE: "50%"}).at(Fraction(4))
    assert {one.name: one.cells for one in found.tables}[PLACE] == 50
    assert not found.register
    assert "there is no public register" in assumed(found)


def test_tables_without_a_wish_keep_their_epsilon(economy: Economy) -> None:
    release = sfumato.load(economy.release)
    found = Planner.of(release, {PLACE: "5%", INDUSTRY: "1%"}).at(Fraction(4))
    kept = next(one for one in found.tables if one.name == FINE)
    assert (kept.epsilon, kept.wish, kept.normalised) == (2, None, None)
    assert found.total == 4


def test_a_wish_changes_no_question(release_folder: Path) -> None:
    file = release_folder / "release.toml"
    names = [one.digest("data") for one in sfumato.check(sfumato.load(file), data=False).plan.tables]
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('count = "jobs"\n', 'count = "jobs"\nwish = "within 5 %"\n'), encoding="utf-8")
    release = sfumato.load(file)
    assert [table.wish for table in release.tables] == ["5%"] * 3
    assert [one.digest("data") for one in sfumato.check(release, data=False).plan.tables] == names


@pytest.mark.parametrize("text", EXAMPLES)
def test_wishes_are_written_as_they_are_read(text: str) -> None:
    assert str(Wish.read(text)) == text


def test_a_wish_may_be_about_some_cells_in_jobs(economy: Economy) -> None:
    release = sfumato.load(economy.release)
    whole, small = (
        Planner.of(release, {PLACE: wish}).least() for wish in ("5 jobs", "5 jobs in cells of at most 200 jobs")
    )
    assert 3 <= small.total < whole.total
    assert max(small.worst, whole.worst) <= 1


def test_a_table_is_not_measured_where_others_tell_enough(economy: Economy) -> None:
    found = Planner.of(sfumato.load(economy.release), {PLACE: "30%"}).least()
    assert found.total == 3
    assert [(one.epsilon, one.sum_of) for one in found.tables if one.wish] == [(0, FINE)]
    assert Planner.of(sfumato.load(economy.release), {PLACE: "30%"}).at(Fraction("3.01")).total == 3


@pytest.mark.parametrize(
    ("wishes", "total", "words"),
    [
        ({}, "4", "no wish of any table"),
        ({"jobs_by_colour": "5%"}, "4", "'jobs_by_colour'"),
        ({PLACE: "very exact"}, "4", "an error above 0"),
        ({PLACE: "0%"}, "4", "an error above 0"),
        ({PLACE: "5% in cells of at least 9,000,000 jobs"}, "4", "cells that it is about"),
        ({PLACE: "5%"}, "3", "more than the 3 that"),
        (WISHES, "0.05", "enough for a table"),
    ],
)
def test_what_cannot_be_planned_is_refused(economy: Economy, wishes: Mapping[str, str], total: str, words: str) -> None:
    with pytest.raises(SfumatoError, match=words):
        Planner.of(sfumato.load(economy.release), wishes).at(Fraction(total))


def test_wishes_that_no_epsilon_meets_are_refused_by_the_table(economy: Economy) -> None:
    with pytest.raises(SfumatoError, match=INDUSTRY):
        Planner.of(sfumato.load(economy.release), {**WISHES, INDUSTRY: "0.0000001%"}).least()


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ('method = "node-laplace", epsilon = 1', "not right on average"),
        ('method = "sparse-laplace", epsilon = 1', "threshold"),
    ],
)
def test_tables_whose_error_is_not_known_may_not_have_a_wish(release_folder: Path, method: str, words: str) -> None:
    file = release_folder / "release.toml"
    text = file.read_text(encoding="utf-8")
    head, _, tail = text.rpartition('method = "smooth-pareto", epsilon = 1.0')
    file.write_text(f"{head}{method}{tail}", encoding="utf-8")
    with pytest.raises(ReleaseError, match=words):
        Planner.of(sfumato.load(file), {PLACE: "5%"})


def test_a_wish_that_is_not_understood_is_refused_with_its_line(release_folder: Path) -> None:
    file = release_folder / "release.toml"
    text = file.read_text(encoding="utf-8").replace('count = "jobs"\n', 'count = "jobs"\nwish = "some"\n', 1)
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ReleaseError, match=r"line \d+: .*wish"):
        sfumato.load(file)


def test_the_command_writes_a_release_that_runs_and_never_over_another(release_folder: Path) -> None:
    wishes = [part for name, text in {FINE: "30%", PLACE: "30%"}.items() for part in ("--wish", f"{name}={text}")]
    planned = release_folder / "planned.toml"
    arguments = ("plan", release_folder / "release.toml", *wishes, "--epsilon", "3", "--write", planned)
    said = json.loads(call(*arguments, "--json").stdout)
    epsilons = {one["name"]: one["epsilon"] for one in said["tables"]}
    assert epsilons[PLACE] == 0
    assert next(one["sum_of"] for one in said["tables"] if one["name"] == PLACE) == FINE
    assert (said["epsilon"], epsilons[FINE], epsilons[INDUSTRY]) == (3, 2, 1)
    release = sfumato.load(planned)
    assert {table.name: table.protect.epsilon for table in release.tables} == {FINE: 2, INDUSTRY: 1}
    assert release.about.reconcile
    text = planned.read_text(encoding="utf-8")
    assert "# Known to everyone about an establishment" in text
    assert '# name = "jobs_by_place"' in text
    assert not release.ledger.exists()
    assert sfumato.run(release).bundle.is_dir()
    assert "does not exist yet" in call(*arguments, refused=True).stderr


def buying(file: Path, epsilon: str) -> None:
    """Have all tables of a release buy their scale."""
    head, start, tables = file.read_text(encoding="utf-8").partition("[[table]]")
    file.write_text(head + start + tables.replace(".0 }", f".0, error_epsilon = {epsilon} }}"), encoding="utf-8")


@pytest.mark.parametrize("epsilon", ["3", None])
def test_scales_are_charged_of_measured_tables_alone_and_are_shown(release_folder: Path, epsilon: str | None) -> None:
    file, planned = release_folder / "release.toml", release_folder / "planned.toml"
    buying(file, "0.2")
    wishes = [part for name, wish in {FINE: "30%", PLACE: "30%"}.items() for part in ("--wish", f"{name}={wish}")]
    total = () if epsilon is None else ("--epsilon", epsilon)
    said = json.loads(call("plan", file, *wishes, *total, "--write", planned, "--json").stdout)
    spent = {one["name"]: (one["epsilon"], one["error_epsilon"]) for one in said["tables"]}
    assert spent[PLACE] == (0, 0)
    assert spent[INDUSTRY] == (1, 0.2)
    assert spent[FINE][1] == 0.2
    assert sum(map(sum, spent.values())) == pytest.approx(said["epsilon"])
    release = sfumato.load(planned).model_copy(update={"folder": release_folder})
    assert float(sfumato.check(release, data=False).plan.epsilon()) == pytest.approx(said["epsilon"])
    shown = call("plan", file, *wishes, *total).stdout
    assert f"as error_epsilon says: {FINE} 0.2, {INDUSTRY} 0.2." in " ".join(shown.split())


def test_a_total_that_scales_use_up_is_not_enough(release_folder: Path) -> None:
    file = release_folder / "release.toml"
    buying(file, "5")
    with pytest.raises(SfumatoError, match="enough for a table"):
        Planner.of(sfumato.load(file), WISHES).at(Fraction(4))


@pytest.mark.slow
def test_the_chart_has_a_line_for_every_table(release_folder: Path) -> None:
    wishes = [part for name, text in WISHES.items() for part in ("--wish", f"{name}={text}")]
    chart = release_folder / "plan.svg"
    call("plan", release_folder / "release.toml", *wishes, "--epsilon", "4", "--chart", chart)
    drawn = chart.read_text(encoding="utf-8")
    assert all(name in drawn for name in WISHES)


@pytest.mark.slow
def test_plans_are_better_than_an_even_split_and_the_finest_table_alone(tmp_path: Path) -> None:
    made = generate(tmp_path / "demo", jobs=1_000_000)
    text = made.release.read_text(encoding="utf-8").replace('by = ["industry", "place_size"]', 'by = ["industry"]')
    made.release.write_text(text, encoding="utf-8")
    found = measure(made.release, {FINE: "30%", INDUSTRY: "0.2%", PLACE: "15%"}, Fraction(4), 20.0, 20)["splits"]
    worst = {words: max(row["measured"].values()) for words, row in found.items()}
    assert worst["plan"] < 1
    assert worst["plan"] < 0.7 * worst["even split"]
    assert worst["plan"] < 0.95 * worst["finest only"]
    for row in found.values():
        for name, error in row["measured"].items():
            assert 1 / 1.6 < row["predicted"][name] / error < 1.6


# Tables of several levels.

LEVELS = """
[[table]]
name = "owners"
title = "Jobs by place and owner"
count = "jobs"
by = ["place", "ownership"]
levels = { place = ["total", "place"], ownership = ["sector", "ownership"] }  # four tables
nonnegative = false
protect = { method = "smooth-pareto", epsilon = 2 }
"""
NAMES = tuple(f"owners_by_{words}" for words in ("ownership_sector", "ownership", "place_ownership_sector",
                                                  "place_ownership"))  # fmt: skip


def with_levels(folder: Path) -> Path:
    """The release of the small economy with one section of four tables in place of its tables."""
    text = (folder / "release.toml").read_text(encoding="utf-8")
    owners = 'codelist = "codelists/ownership.csv"'
    sectors = 'levels = { sector = { private = ["private"], public = ["federal", "state", "local"] } }'
    text = text.replace(owners, f"{owners}, {sectors}")
    file = folder / "levels.toml"
    file.write_text(text[: text.index("[[table]]")] + LEVELS, encoding="utf-8")
    return file


def allocation(scale: str = "0", **epsilons: int | str) -> Allocation:
    """A plan for the four tables, all with a wish; measured ones may have a bought scale."""
    tables = [
        Allotment(
            name=name, wish=Wish.read("5%"), cells=4, epsilon=Fraction(epsilons[name]), alone=None, agreed=1.0,
            sum_of="" if Fraction(epsilons[name]) else NAMES[3],
            scale=Fraction(scale) if Fraction(epsilons[name]) else Fraction(0),
        )
        for name in NAMES
    ]  # fmt: skip
    total = sum((one.epsilon for one in tables), Fraction(0))
    return Allocation(tables=tuple(tables), total=total, budget=total, others={}, register=True, workers=20)


def epsilons_of(file: Path, text: str) -> dict[str, Fraction]:
    planned = file.with_name("planned.toml")
    planned.write_text(text, encoding="utf-8")
    return {table.name: table.protect.epsilon for table in sfumato.load(planned).tables}


def test_a_plan_writes_an_epsilon_for_each_level(release_folder: Path) -> None:
    file = with_levels(release_folder)
    found = dict(zip(NAMES, ["0.1", "0.2", "0.3", "1.4"], strict=True))
    text = rewritten(file.read_text(encoding="utf-8"), allocation(**found))
    assert "epsilon = { ownership_sector = 0.1, ownership = 0.2, place_ownership_sector = 0.3, place_owne" in text
    assert "# four tables" in text
    assert epsilons_of(file, text) == {name: Fraction(epsilon) for name, epsilon in found.items()}
    again = {name: Fraction(epsilon) * 2 for name, epsilon in found.items()}
    assert epsilons_of(file, rewritten(text, allocation(**again))) == again


def test_a_plan_that_leaves_levels_out_writes_a_table_for_each_that_is_measured(release_folder: Path) -> None:
    file = with_levels(release_folder)
    found = dict(zip(NAMES, [0, "0.5", 0, "1.5"], strict=True))
    text = rewritten(file.read_text(encoding="utf-8"), allocation(**found))
    assert epsilons_of(file, text) == {NAMES[1]: Fraction("0.5"), NAMES[3]: Fraction("1.5")}
    assert f"# Not measured: {NAMES[0]} is what {NAMES[3]} adds up to." in text
    before = {table.name: table for table in sfumato.load(file).tables}
    for table in sfumato.load(file.with_name("planned.toml")).tables:
        same = before[table.name].model_copy(update={"protect": table.protect})
        assert table == same, "the same question under the same name, but for its epsilon"
    nothing = rewritten(file.read_text(encoding="utf-8"), allocation(**dict.fromkeys(NAMES, 0)))
    assert '# name = "owners"' in nothing


@pytest.mark.parametrize(
    "written", ["0.4", "{ ownership_sector = 0.3, ownership = 0.1, place_ownership_sector = 0, place_ownership = 0.1 }"]
)
def test_scales_of_levels_that_are_left_out_are_not_bought(release_folder: Path, written: str) -> None:
    file = with_levels(release_folder)
    text = file.read_text(encoding="utf-8").replace("epsilon = 2 }", f"error_epsilon = {written}, epsilon = 2 }}")
    file.write_text(text, encoding="utf-8")
    found = dict(zip(NAMES, [0, "0.5", 0, "1.5"], strict=True))
    assert epsilons_of(file, rewritten(text, allocation("0.1", **found))) == {
        NAMES[1]: Fraction("0.5"),
        NAMES[3]: Fraction("1.5"),
    }
    for table in sfumato.load(file.with_name("planned.toml")).tables:
        assert Fraction(str(table.protect.options["error_epsilon"])) == Fraction("0.1")


def test_levels_that_are_written_in_another_way_are_refused(release_folder: Path) -> None:
    file = with_levels(release_folder)
    other = (
        file.read_text(encoding="utf-8").replace(
            'levels = { place = ["total", "place"], ownership = ["sector", "ownership"] }  # four tables\n', ""
        )
        + '[table.levels]\nplace = ["total", "place"]\nownership = ["sector", "ownership"]\n'
    )
    every = dict(zip(NAMES, ["0.1", "0.2", "0.3", "1.4"], strict=True))
    assert epsilons_of(file, rewritten(other, allocation(**every)))[NAMES[3]] == Fraction("1.4")
    with pytest.raises(ReleaseError, match="write the lines that are shown into it yourself"):
        rewritten(other, allocation(**(every | {NAMES[0]: 0})))


def test_the_command_writes_a_plan_for_levels_that_passes_its_check(release_folder: Path) -> None:
    file, planned = with_levels(release_folder), release_folder / "planned.toml"
    wishes = [part for name in NAMES[1:] for part in ("--wish", f"{name}=20%")]
    said = json.loads(call("plan", file, *wishes, "--epsilon", "3", "--write", planned, "--json").stdout)
    measured = {one["name"]: Fraction(str(one["epsilon"])) for one in said["tables"] if one["measured"]}
    assert NAMES[0] in measured, "what nothing is wished of keeps its epsilon"
    assert {table.name: table.protect.epsilon for table in sfumato.load(planned).tables} == measured
    call("check", planned)
