"""The lecture on statistics from small samples, done again: every figure, every erratum, the page and the command."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sfumato.errors import DataError
from sfumato.statistics.people.mose import Mose
from sfumato.statistics.people.noisy_regression import LineSums
from sfumato.statistics.people.sensitivity import prediction_reach
from sfumato.statistics.people.tails import suppressed
from sfumato_lab.reproduce.schmutte2020 import Reproduction, reproduce
from sfumato_lab.reproduce.schmutte2020.atlas import AT, THRESHOLDS, chance_beyond, corner_sensitivity
from sfumato_lab.reproduce.schmutte2020.by_size import Earned, read_earned
from sfumato_lab.reproduce.schmutte2020.page import errata, findings, reproduction_summary, write_reproduction
from tests.cli.call import call
from tests.lab.reproduce.figures import rows, written
from tests.statistics.methods.groups import RANKS, drawn_ranks, exact_prediction, sums, sums_of

TRACTS = 150


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("schmutte2020") / "data"


@pytest.fixture(scope="module")
def found(folder: Path) -> Reproduction:
    return reproduce(data=folder, tracts=TRACTS, draws=2)


def test_the_line_of_every_class_is_above_all_its_groups_and_touches_none_by_much(found: Reproduction) -> None:
    edge = found.envelope
    assert np.all(edge.sensitivity <= edge.line)
    assert edge.largest_share > 0.5
    chis = {row["class"]: row for row in rows(found, "chi")}
    assert len(chis) > 100
    for row in chis.values():
        assert row["ours"] <= row["rounded"] <= 5 / 3 * row["ours"] + 1e-9
    for row in rows(found, "sensitivity"):
        assert row["ours"] <= row["line"]
        assert row["people"] * row["line"] == pytest.approx(chis[row["class"]]["rounded"])


def test_corners_are_fitted_by_definition_and_never_beyond_the_worst_record() -> None:
    people = [(0, 3_000), (2_000, 9_000), (9_000, 4_000), (5_000, 5_000)]
    method = Mose(epsilon=Fraction(8), **RANKS | {"at": (AT,)})
    before = exact_prediction(people, AT)
    corners = [(x, y) for x in (0, 10_000) for y in (0, 10_000)]
    worst = max(
        abs(min(max(float(exact_prediction([*people, c], AT) or 0), 0), 10_000) - float(before or 0)) for c in corners
    )
    assert corner_sensitivity(method, sums_of(people))[0] == pytest.approx(worst)
    sizes = np.repeat([5, 20, 200], 300)
    cells = sums(sizes, *drawn_ranks(sizes, 3))
    reach = prediction_reach(LineSums.of(cells), AT, low_x=0, high_x=10_000, low_y=0, high_y=10_000)
    whole = reach.clipped(LineSums.of(cells).prediction(AT), 0, 10_000).sensitivity()
    of_corners = corner_sensitivity(method, cells)
    assert np.all(of_corners <= whole * (1 + 1e-9))
    missed = of_corners < whole * (1 - 1e-9)
    assert missed[sizes == 5].mean() > 0.1
    assert not missed[sizes == 200].any()


def test_the_chance_to_exceed_epsilon_falls_with_the_people_of_a_group() -> None:
    chances = [chance_beyond(people, epsilon=8 / 3, excess=0.1) for people in (10, 20, 50)]
    assert chances == pytest.approx([0.1928, 0.01309, 4.33e-6], rel=0.01)
    assert chance_beyond(10, epsilon=8, excess=0.1) == pytest.approx(chances[0])


def test_noise_finds_more_of_the_tails_than_hiding_small_groups(found: Reproduction) -> None:
    hidden = [found.tails.of(suppressed(threshold)) for threshold in THRESHOLDS]
    assert [line.right for line in hidden] == [1.0] * 3
    shares = [line.found for line in hidden]
    assert shares == sorted(shares, reverse=True)
    mose, formal = found.tails.of("mose"), found.tails.of("noisy-regression")
    assert shares[1] < 0.6 * mose.found
    assert mose.published == 1
    assert 0.5 < formal.published < 1
    assert formal.found > shares[1]


def test_noisy_sums_have_the_least_error_in_all_groups_that_are_not_tiny(found: Reproduction) -> None:
    for size_class in ("20-49", "50-99", "100-199"):
        errors = {row["method"]: row["ours"] for row in rows(found, "mean_error", size_class=size_class)}
        assert errors["noisy-regression"] < min(errors["mose"], errors["theil-sen"]) / 2
        assert rows(found, "recommended_method", size_class=size_class)[0]["ours"] == "noisy-regression"
    assert rows(found, "recommended_method", size_class="3-9")[0]["ours"] is None


def test_noise_for_any_data_is_hopeless_and_noise_for_these_data_leaks(found: Reproduction) -> None:
    for size_class in ("10-19", "20-49", "50-99"):
        errors = {row["method"]: row["ours"] for row in rows(found, "mean_error", size_class=size_class)}
        assert errors["global-sensitivity"] > errors["mose"] > errors["local-sensitivity"]
        assert errors["global-sensitivity"] > 30
    leaks = {row["scale"]: row["ours"] for row in rows(found, "local_scale_leak")}
    assert leaks["told"] > 0.99
    assert 0 < leaks["not told"] < leaks["told"]


def test_more_epsilon_finds_more_of_the_tails(found: Reproduction) -> None:
    for method in ("mose", "noisy-regression"):
        shares = [row["ours"] for row in rows(found, "tail_found_at_epsilon", method=method)]
        assert shares == sorted(shares)
    (atlas,) = rows(found, "tail_found_at_epsilon", method="mose", epsilon=8.0)
    assert atlas["ours"] == found.tails.of("mose").found


def test_years_with_fewer_people_get_more_epsilon_and_the_years_add_up(found: Reproduction) -> None:
    years = rows(found, "epsilon_tuned", division="each year")
    (total,) = rows(found, "epsilon_tuned_in_all", division="each year")
    assert total["ours"] == pytest.approx(sum(row["ours"] for row in years))
    employment = [row["ours"] for row in years if row["statistic"] == "employment"]
    assert len(employment) == 10
    assert len(set(employment)) > 1


def test_medians_of_veterans_are_as_near_as_those_of_graduates(found: Reproduction) -> None:
    (median,) = rows(found, "veterans_median_error")
    assert median["ours"] < 0.06


def test_percentiles_of_people_and_their_bins_are_those_of_the_definition(folder: Path) -> None:
    earned = read_earned(folder / "graduates")
    assert earned.people.min() >= 30
    true, bins = earned.true(), earned.bins(20)
    counts = earned.counted(bins)
    for cell in (0, 17, len(earned.people) - 1):
        own = earned.earnings[earned.starts[cell] : earned.starts[cell + 1]]
        assert true[cell] == pytest.approx(np.quantile(own, [0.25, 0.5, 0.75], method="hazen"))
        assert counts[cell].tolist() == np.histogram(own, bins=bins.edges)[0].tolist()


def test_a_percentile_between_two_ranks_is_in_the_middle() -> None:
    held = Earned(
        earnings=np.array([1.0, 2.0, 4.0, 8.0, 5.0, 6.0, 7.0]),
        starts=np.array([0, 4, 7]),
        at=(Fraction(50),),
        guess={},
    )
    assert held.true().ravel().tolist() == [3.0, 6.0]


def test_the_improved_curve_beats_the_plain_sum_by_fifteen_percent_and_medians_are_near(found: Reproduction) -> None:
    (mean,) = rows(found, "improvement", size_class="mean")
    assert mean["ours"] > 0.15
    by_size = [row["ours"] for row in rows(found, "improvement") if row["size_class"] != "mean"]
    assert np.mean(by_size) == pytest.approx(mean["ours"])
    (median,) = rows(found, "median_error")
    assert median["ours"] < 0.05
    about = {"curve": "plain", "bins": 20, "size_class": "30-49"}
    (plain,) = rows(found, "percentile_error", percentile="all", **about)
    parts = [row["ours"] for row in rows(found, "percentile_error", **about) if row["percentile"] != "all"]
    assert np.mean(parts) == pytest.approx(plain["ours"])
    for row in rows(found, "recommended_curve"):
        errors = [r["ours"] for r in rows(found, "percentile_error", percentile="all", size_class=row["size_class"])]
        (best,) = rows(
            found,
            "percentile_error",
            percentile="all",
            size_class=row["size_class"],
            curve=row["ours"],
            bins=row["bins"],
        )
        assert best["ours"] == min(errors)


def test_the_budget_of_the_report_is_ten_years_of_a_quarter_and_one(found: Reproduction) -> None:
    years = rows(found, "epsilon_of_year")
    assert [row["ours"] for row in years if row["statistic"] == "employment"] == [0.25] * 10
    assert [row["ours"] for row in years if row["statistic"] == "earnings"] == [1] * 10
    assert rows(found, "epsilon_of_report")[0]["ours"] == 10 * (0.25 + 1) == 12.5
    assert rows(found, "epsilon_charged")[0]["ours"] == 12.5
    assert rows(found, "epsilon_without_parallel_composition")[0]["ours"] == 12.5 * 5 * 3
    for statistic in ("employment", "earnings"):
        within = [row["ours"] for row in rows(found, "share_within_threshold", statistic=statistic)]
        assert within == sorted(within)


def test_the_attack_on_shared_draws_gets_nothing_beyond_what_is_published(found: Reproduction) -> None:
    attacks = rows(found, "attack_success")
    assert len(attacks) == 3
    for row in attacks:
        assert row["ours"] <= row["as_published"] + 0.005


def test_what_was_published_stands_only_where_the_lecture_prints_a_number(found: Reproduction) -> None:
    stated = {row["quantity"]: row["published"] for row in found.rows() if row["published"] is not None}
    assert stated == {"epsilon_of_estimate": 8, "sectors": 3, "years": 10, "titles_by_sectors": 9}
    assert rows(found, "epsilon_of_estimate")[0]["ours"] == 8


def test_errata_say_what_does_not_hold(found: Reproduction) -> None:
    text = "\n".join(errata(found))
    for words in ("twice its square", "19%", "four corners", "independent draws", "ln(1 + α)"):
        assert words in text
    verdicts = {line.what: line.holds for line in findings(found)}
    assert [what for what, holds in verdicts.items() if holds is False] == [
        "given χ, ε is never exceeded by 10% in groups of 10"
    ]


def test_the_object_for_machines_the_csv_and_the_page_hold_every_row(found: Reproduction, tmp_path: Path) -> None:
    data, text = written(found, write_reproduction, reproduction_summary, tmp_path, paper="schmutte2020", charts=4)
    assert data["errata"] == errata(found)
    assert "χ/n" in text


def test_the_same_seed_gives_the_same_figures_and_another_one_others(folder: Path, found: Reproduction) -> None:
    again, other = (list(reproduce(data=folder, tracts=TRACTS, draws=2, seed=seed).rows()) for seed in (1, 2))
    assert list(found.rows()) == again
    assert again != other


def test_the_command_takes_data_that_are_there_and_refuses_others(
    folder: Path, found: Reproduction, tmp_path: Path
) -> None:
    asked = ("--quick", "--data", folder, "--out", tmp_path / "out", "--json")
    done = json.loads(call("reproduce", "schmutte2020", *asked).stdout)
    assert [row["ours"] for row in done["rows"] if row["quantity"] == "chi"] == [r["ours"] for r in rows(found, "chi")]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["schmutte2020.csv", "schmutte2020.html"]
    (tmp_path / "data").mkdir()
    for name, other in (("children", "graduates"), ("graduates", "children")):
        (tmp_path / "data" / name).symlink_to(folder / other)
    with pytest.raises(DataError, match="sfumato economy opportunity"):
        reproduce(data=tmp_path / "data", tracts=TRACTS, draws=1)
