"""A comparison charges nothing, leaves nothing to publish, and says what each protection loses and tells."""

import json
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato import running
from sfumato.bundle.read import open_bundle
from sfumato.charts.shares import share_text
from sfumato.checking import check
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.keys import rotate_key
from sfumato.release import load
from sfumato.report import published
from sfumato.report.candidates import Wanted, candidates_in
from sfumato.report.compare import compare
from sfumato.report.compare_page import CHOOSING, NOTE, Comparison
from sfumato.report.trials import SIZE, Outcome, TableLoss
from sfumato.running import run
from sfumato_lab.economy.business.generate import generate_business
from tests.cli.call import call
from tests.golden.cases import CASES, KEY, Case, jobs
from tests.report.test_preview import trace
from tests.statistics.exact.records import release_file, write_records

BUDGET = "budget = { alpha = 0.1, epsilon = 4 }"
TWO = """
jobs | count = "jobs"; by = ["place", "industry", "owner"] | epsilon = 3
by_place | count = "jobs"; by = ["place"] | epsilon = 1
"""
FORMAL = jobs(BUDGET, TWO)
INFUSED = jobs(KEY, 'jobs | count = "jobs"; by = ["place", "industry"] | method = "noise-infusion"')
ROUNDED = jobs(
    "",
    """
jobs | count = "jobs"; by = ["place", "industry", "owner"] | method = "rounding"
by_place | count = "jobs"; by = ["place"] | method = "rounding"
""",
)
LEVELLED = Case(
    data="jobs",
    text=FORMAL.text.replace(
        'industry = { codes = ["62", "11", "81"] }',
        'industry = { codes = ["62", "11", "81"], levels = { sector = { services = ["62", "81"], goods = ["11"] } } }\n'
        '"industry@sector" = { label = "Sector" }',
    ),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("office")
    LEVELLED.written(made)
    return made


@pytest.fixture(scope="module")
def before(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """What is there before anything is compared, of a release that was published."""
    run(load(folder / "release.toml"))
    return trace(folder)


@pytest.fixture(scope="module")
def made(folder: Path, before: dict[str, object]) -> Comparison:  # noqa: ARG001 (it was published before)
    """One of each way to protect two tables of jobs that lie in each other."""
    return compare(load(folder / "release.toml"), by=["owner"], trials=3, seed=7)


def outcome(made: Comparison, method: str) -> Outcome:
    return next(one for one in made.outcomes if one.method == method and one.label != "as written")


def table(found: Outcome, name: str = "jobs") -> TableLoss:
    return next(one for one in found.tables if one.name == name)


def reached(value: Any) -> Iterator[Any]:
    """Everything that can be reached from a value through its fields and members."""
    yield value
    inner: list[Any] = []
    if is_dataclass(value) and not isinstance(value, type):
        inner = [getattr(value, one.name) for one in fields(value)]
    elif isinstance(value, dict):
        inner = list(value.values())
    elif isinstance(value, list | tuple):
        inner = list(value)
    for one in inner:
        yield from reached(one)


# Nothing of it is kept, and nothing can be published.


def test_ledger_store_key_and_bundle_stay_as_they_are_to_the_byte(
    folder: Path, before: dict[str, object], made: Comparison
) -> None:
    assert trace(folder) == before
    assert made.report.stat().st_mode & 0o077 == 0
    assert made.report.parent.name == "bundle-confidential"
    assert [path.name for path in made.report.parent.iterdir()] == ["compare.html"], "no cells beside the page"


def test_a_comparison_holds_figures_and_no_cells_answers_keys_or_releases(made: Comparison) -> None:
    kinds = {type(one).__name__ for one in reached(made)}
    plain = {"str", "int", "float", "NoneType", "dict", "list", "tuple", "Fraction", "PosixPath"}
    assert kinds - plain == {"Comparison", "Outcome", "TableLoss", "Loss", "Disclosed", "AttackResult"}


def test_what_a_comparison_writes_can_neither_be_loaded_nor_opened_nor_run(made: Comparison, tmp_path: Path) -> None:
    kept = tmp_path / "kept.toml"
    kept.write_text(json.dumps(made.data()), encoding="utf-8")
    for path in (made.report, kept):
        with pytest.raises(SfumatoError):
            load(path)
    with pytest.raises(SfumatoError):
        open_bundle(made.report.parent)


def test_the_key_of_the_office_is_never_used(tmp_path: Path) -> None:
    release = load(INFUSED.written(tmp_path))
    first, again = (
        _figures(compare(release, methods=["rounding"], trials=2)),
        rotate_key(release.folder / "sfumato.key"),
    )
    assert again is not None
    assert _figures(compare(release, methods=["rounding"], trials=2)) == first


def _figures(made: Comparison) -> Any:
    return json.dumps({**made.data(), "report": ""})


# What it says.


def test_the_page_says_first_that_it_is_confidential_and_what_choosing_means(made: Comparison) -> None:
    page = made.report.read_text(encoding="utf-8")
    assert page.index(NOTE) < page.index(CHOOSING) < page.index("<table")
    assert page.count("<svg") >= 3 * len(made.tables)
    assert all(label in page for label in (one.label for one in made.outcomes))


def test_the_first_picture_of_a_table_has_what_readers_get_and_attackers_find_of_every_candidate(
    made: Comparison,
) -> None:
    page = made.report.read_text(encoding="utf-8")
    pictures = re.findall(r'<svg[^>]*aria-label="What readers get.*?<desc>(.*?)</desc>', page, re.DOTALL)
    assert len(pictures) == len(made.tables)
    for name, said in zip(made.tables, pictures, strict=True):
        for one, told in zip(made.outcomes, said.rstrip(".").split("; "), strict=True):
            loss = table(one, name)
            assert told.startswith(one.label)
            assert f"can be used: off by at most 10 % {share_text(loss.all.usable)}" in told
            assert f"withheld, or merged into a coarser one {share_text(loss.all.withheld)}" in told
            assert all(one.rate is None or f" {share_text(one.rate)}" in told for one in loss.attacks)


def test_one_of_each_way_is_compared_unless_methods_are_named(made: Comparison) -> None:
    methods = [one.method for one in made.outcomes]
    assert set(methods) == {"smooth-pareto", "noise-infusion", "suppression", "rounding", "coarsening"}
    spent = sorted(one.epsilon or 0 for one in made.outcomes if one.method == "smooth-pareto")
    assert spent == [1, 1, 4, 4], "two alphas by two epsilons, of which one is as written"
    assert made.legacy == "noise-infusion"
    assert not made.not_made


def test_true_numbers_are_exact_or_withheld_and_withheld_cells_cannot_be_used(made: Comparison) -> None:
    for method in ("suppression", "coarsening"):
        loss = table(outcome(made, method)).all
        assert loss.withheld > 0
        assert loss.usable == pytest.approx(1 - loss.withheld)
        assert loss.mean_error in (0, None)
        assert loss.loss_ratio is not None
        assert loss.loss_ratio > 0 == (loss.error_ratio or 0), "what is withheld is no error, and is lost"
    rounded = table(outcome(made, "rounding")).all
    assert rounded.withheld == 0
    assert rounded.mean_error is not None
    assert 0 < rounded.mean_error < 5


def test_errors_are_ratios_to_the_legacy_and_more_epsilon_is_better(made: Comparison) -> None:
    legacy = table(outcome(made, "noise-infusion")).all
    assert legacy.error_ratio == legacy.loss_ratio == 1
    formal = {one.label: table(one).all for one in made.outcomes if one.method == "smooth-pareto"}
    one, four = (formal[f"smooth-pareto, alpha 0.05, epsilon {epsilon}"] for epsilon in (1, 4))
    assert one.error_ratio is not None
    assert four.error_ratio is not None
    assert one.error_ratio > four.error_ratio


def test_a_trial_decides_tables_in_the_order_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several roundings that are equally near, the order of the tables decides which one is found."""
    release = load(ROUNDED.written(tmp_path))
    orders = []
    for module in (running, published):

        def noted(statistics: Any, *rest: Any, decide: Any = module.decided_together, **more: Any) -> Any:
            orders.append([*statistics])
            return decide(statistics, *rest, **more)

        monkeypatch.setattr(module, "decided_together", noted)
    run(release)
    compare(release, methods=["suppression, p = 10"], trials=1)
    assert orders[0] == orders[1] == ["jobs", "by_place"]


def test_strata_and_sizes_divide_the_cells_of_every_candidate(made: Comparison) -> None:
    for found in made.outcomes:
        for one in found.tables:
            assert set(one.losses) == {"", SIZE, "owner"}
            for what in (SIZE, "owner"):
                assert sum(part.cells for part in one.losses[what]) >= one.all.cells
    assert sum(part.cells for part in table(made.outcomes[0]).losses["owner"]) == table(made.outcomes[0]).all.cells


def test_the_same_attacks_are_tried_on_all_and_rules_keep_what_rounding_tells(made: Comparison) -> None:
    rates = {found.method: [one.rate or 0 for one in table(found).attacks] for found in made.outcomes}
    assert {len(one) for one in rates.values()} == {3}, "also by subtraction from the table that it lies in"
    targets = {tuple(one.targets for one in table(found).attacks) for found in made.outcomes}
    assert len(targets) == 1, "of the same cells"
    assert rates["coarsening"] == [0, 0, 0]
    assert sum(rates["suppression"]) < sum(rates["rounding"])
    assert any("linear program" in attack.attack for _, attack in outcome(made, "suppression").attacks)


def test_the_same_seed_gives_the_same_figures_and_another_one_others(folder: Path, made: Comparison) -> None:
    release = load(folder / "release.toml")
    asked: dict[str, Any] = {"methods": ["smooth-pareto, alpha = 0.05, epsilon = 1", "noise-infusion"], "trials": 3}
    one, same, other = (compare(release, seed=seed, **asked) for seed in (7, 7, 8))
    assert _figures(one) == _figures(same)
    assert table(outcome(one, "smooth-pareto")).all == table(made.outcomes[1]).all, "whatever stands beside it"
    for method in ("smooth-pareto", "noise-infusion"):
        assert table(outcome(one, method)).all != table(outcome(other, method)).all


def test_a_file_of_candidates_names_them_and_the_tables_they_are_for(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "candidates.toml"
    path.write_text(
        '[[candidate]]\nname = "our rules"\nmethod = "suppression"\nminimum_units = 4\ntables = ["by_place"]\n\n'
        '[[candidate]]\nmethod = "smooth-pareto"\nalpha = 0.1\nepsilon = 2\n'
    )
    listed = candidates_in(path)
    assert listed[1].epsilon == 2
    found = compare(load(folder / "release.toml"), methods=listed, trials=1, legacy="our rules")
    assert [one.label for one in found.outcomes] == ["as written", "our rules", "smooth-pareto, alpha 0.1, epsilon 2"]
    assert found.outcomes[1].left_out == {"jobs": "it was not asked for"}
    assert found.outcomes[2].epsilon == 2, "of both tables together"


def test_options_of_methods_with_a_key_are_not_shown() -> None:
    assert Wanted.read({"method": "top-contributors", "magnitudes": [0.5]}).label == "top-contributors"
    assert "0.5" not in repr(Wanted.read({"method": "top-contributors", "magnitudes": [0.5]}))
    assert Wanted.read("suppression, p = 15, dominance = [[1, 75]]").label == "suppression, p 15, dominance 1/75"


def test_records_are_compared_and_tables_that_cannot_be_are_left_out_with_the_reason(tmp_path: Path) -> None:
    release = load(CASES["businesses"].written(tmp_path))
    found = compare(release, methods=["suppression, minimum_units = 3", "perturbed-values"], trials=1)
    suppressed = outcome(found, "suppression")
    means = [one.name for one in release.tables if one.mean]
    assert means
    assert all("true numbers that add up" in suppressed.left_out[name] for name in means)
    assert {one.name for one in suppressed.tables} == {one.name for one in release.tables} - suppressed.left_out.keys()
    assert found.legacy == "as written", "which is by top contributors"


def test_suppressed_tables_with_totals_are_compared_with_noise_cell_by_cell(tmp_path: Path) -> None:
    write_records(tmp_path)
    path = release_file(tmp_path, ['number; count = "records"; by = ["place", "sector"]; totals = true'])
    found = compare(load(path), methods=["laplace"], alphas=[Fraction(1, 20), Fraction(1, 10)], trials=1)
    written, *noisy = found.outcomes
    assert [one.label for one in noisy] == ["laplace, epsilon 1", "laplace, epsilon 4"], "alpha plays no part there"
    assert all(table(one, "number").all.cells == table(written, "number").all.cells == 12 for one in noisy)


def test_a_release_without_a_budget_is_compared_with_noise_of_any_definition(tmp_path: Path) -> None:
    found = compare(load(ROUNDED.written(tmp_path)), methods=["laplace", "smooth-pareto"], epsilons=[Fraction(4)])
    assert {one.method for one in found.outcomes} == {"rounding", "laplace", "smooth-pareto"}


@pytest.mark.slow
def test_the_command_says_the_same_as_the_page_in_json_too(folder: Path, made: Comparison) -> None:
    asked = ("compare", folder / "release.toml", "--by", "owner", "--trials", "3", "--seed", "7", "--within", "10")
    assert json.loads(call(*asked, "--json").stdout) == json.loads(json.dumps(made.data()))
    shown = call("compare", folder / "release.toml", "--method", "rounding", "--legacy", "as written").stdout
    assert shown.startswith("CONFIDENTIAL COMPARISON")
    assert "rounding" in shown
    assert "Nothing was charged" in shown


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_comparisons_of_every_kind_leave_no_trace_and_lose_no_table_silently(name: str, tmp_path: Path) -> None:
    release = load(CASES[name].written(tmp_path))
    start = trace(tmp_path)
    if not release.tables:
        with pytest.raises(ReleaseError, match="counts or totals"):
            compare(release, trials=1)
        return
    found = compare(release, trials=1)
    assert trace(tmp_path) == start
    every = {one.name for one in (*release.tables, *release.cubes)}
    for one in found.outcomes:
        assert {part.name.split("/")[0] for part in one.tables} | one.left_out.keys() == every
        assert all(one.left_out.values())
    assert all(found.not_made.values())


def test_tables_whose_share_of_epsilon_is_beyond_the_method_are_left_out_and_others_keep_theirs(folder: Path) -> None:
    release = load(folder / "release.toml")
    found = compare(release, methods=["smooth-pareto, alpha = 0.3, epsilon = 0.5"], trials=1).outcomes[1]
    assert [one.name for one in found.tables] == ["jobs"]
    assert "epsilon = 0.125" in found.left_out["by_place"]
    assert found.epsilon == Fraction(3, 8), "three quarters of it, as the release shares it out"


# What cannot be compared is refused before any data are read.


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"methods": ["supression, p = 15"]}, "did you mean 'suppression'"),
        ({"methods": ["suppression, minimun_units = 3"]}, "did you mean 'minimum_units'"),
        ({"methods": ["suppression, p = = 3"]}, "key = value"),
        ({"methods": ["suppression, epsilon = 3, p = 15"]}, "no formal guarantee"),
        ({"methods": ["smooth-pareto, epsilon = 0"]}, "above 0"),
        ({"methods": [{"method": "rounding", "tables": ["job"]}]}, "did you mean 'jobs'"),
        ({"methods": ["rounding, base = 1"]}, "a base from 2 to"),
        ({"methods": ["top-contributors"]}, "top-contributors"),
        ({"alphas": [Fraction(0)]}, "numbers above 0"),
        ({"accuracy": 0}, "--within 10"),
        ({"accuracy": float("inf")}, "a percentage above 0"),
        ({"accuracy": float("nan")}, "a percentage above 0"),
        ({"methods": [{"method": ["rounding"]}]}, "did you mean 'rounding'"),
        ({"methods": [{"methd": "rounding"}]}, "with methd"),
        ({"methods": [{"method": "rounding", "tables": 3}]}, "a list of names"),
        ({"by": ["sex"]}, "confidential"),
        ({"trials": 0}, "1 to 1,000 trials"),
        ({"epsilons": [Fraction(n) for n in range(1, 30)]}, "at most 20"),
        ({"by": ["colour"]}, "place, industry"),
        ({"legacy": "infusion"}, "did you mean 'noise-infusion'"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_to_do(folder: Path, asked: dict[str, Any], words: str) -> None:
    FORMAL.written(folder / "refused") if not (folder / "refused").exists() else None
    release = load(folder / "refused" / "release.toml")
    with pytest.raises(SfumatoError, match=words):
        compare(release, **asked)
    assert not (folder / "refused" / "bundle-confidential").exists()


def test_the_page_of_a_comparison_is_refused_in_the_folder_that_the_bundle_will_have(tmp_path: Path) -> None:
    release = load(FORMAL.written(tmp_path))
    for place in (release.bundle / "compare.html", release.bundle / "more" / "compare.html", tmp_path):
        with pytest.raises(SfumatoError, match="--report"):
            compare(release, place)
    assert not release.bundle.exists()


@pytest.mark.parametrize("text", ["candidate = [3]", 'candidate = ["rounding"]', '[candidate]\nmethod = "rounding"'])
def test_a_file_of_candidates_without_sections_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "candidates.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ReleaseError, match=r"\[\[candidate\]\]"):
        candidates_in(file)


def test_a_release_of_other_kinds_is_refused(tmp_path: Path) -> None:
    case = CASES["cubes"]
    with pytest.raises(ReleaseError, match="counts or totals"):
        compare(load(case.written(tmp_path)), methods=[])


@pytest.mark.slow
def test_weighted_amounts_of_many_digits_are_suppressed(tmp_path: Path) -> None:
    made = generate_business(tmp_path / "economy", businesses=2_000)
    text = made.release.read_text(encoding="utf-8").replace(
        "top-contributors", 'suppression", minimum_units = 3, p = "15'
    )
    path = made.release.with_name("suppressed.toml")
    kept = [part for part in text.split("[[table]]") if "mean =" not in part]
    path.write_text("[[table]]".join(kept).replace('key = "sfumato.key"', ""), encoding="utf-8")
    found = check(load(path)).foreseen
    assert all(one.withheld >= one.sensitive > 0 for one in found.values())
