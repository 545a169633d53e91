"""Who is found in the tails, what hiding small groups would leave of them, and the envelope: on one's own data."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sfumato.checking import check
from sfumato.cli.release import assessment_summary
from sfumato.errors import MethodError
from sfumato.release import load
from sfumato.report.assess import Assessment, assess
from sfumato.running import run
from sfumato.statistics.people.tails import SIZES, Tails
from sfumato.statistics.people.tune_tails import tailed, tune_tails
from sfumato_lab.economy.opportunity.generate import generate_opportunity
from tests.cli.call import call
from tests.running.same_draws import same_draws


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate_opportunity(tmp_path_factory.mktemp("tails") / "children", tracts=100).release


@pytest.fixture(scope="module")
def found(file: Path) -> Assessment:
    release = load(file)
    with same_draws():
        run(release)
    return assess(release)


def groups(n: int = 1_000) -> Tails:
    rng = np.random.default_rng(1)
    return Tails(true=rng.normal(0, 1, (n, 2)), people=rng.integers(1, 400, n))


def test_true_values_find_everybody_in_the_tails_and_nobody_else() -> None:
    tails = groups()
    exact = tails.classified("exact", tails.true, np.ones(tails.true.shape, dtype=bool))
    assert (exact.found, exact.right, exact.published) == (1, 1, 1)
    inside = (tails.true <= tails.limits[0]) | (tails.true >= tails.limits[1])
    assert (inside & tails.taken).sum() == pytest.approx(0.2 * tails.taken.sum(), abs=4)


def test_a_coin_finds_as_many_as_it_names() -> None:
    tails = groups(20_000)
    other = np.random.default_rng(2).normal(0, 1, tails.true.shape)
    by_chance = tails.classified("chance", other, np.ones(tails.true.shape, dtype=bool))
    assert by_chance.found == pytest.approx(0.1, abs=0.01)
    assert by_chance.right == pytest.approx(0.1, abs=0.01)


def test_suppression_is_right_about_those_it_shows_and_silent_about_the_others() -> None:
    tails = groups()
    rules = [tails.suppressed(least) for least in (10, 50, 200)]
    assert [rule.right for rule in rules] == [1, 1, 1]
    assert rules[0].found == 1
    assert rules[0].found > rules[1].found > rules[2].found
    assert rules[1].by_size[SIZES.index((20, 49))] == 0
    assert rules[1].by_size[SIZES.index((50, 99))] == 1


def test_groups_below_the_least_size_take_no_part() -> None:
    few = Tails(true=np.arange(100.0)[:, None], people=np.repeat([5, 50], 50))
    assert few.groups == 50
    assert few.limits[0] >= 50


def test_the_report_tells_who_is_found_at_other_epsilons_and_under_suppression(found: Assessment) -> None:
    (table,) = found.people
    assert table.tails is not None
    shares = [line.found for _, line in table.tails.by_epsilon]
    assert shares[-1] > shares[0] + 0.2
    again = next(line for epsilon, line in table.tails.by_epsilon if epsilon == Fraction(17))
    assert again.found == pytest.approx(table.tails.published.found, abs=0.1)  # the same noise, drawn anew
    assert table.tails.suppression[-1].found < table.tails.published.found
    page = found.report.read_text(encoding="utf-8")
    assert "Who is in the tails" in page
    assert "suppress below 100" in page


def test_the_report_draws_the_envelope_which_no_group_leaves(found: Assessment) -> None:
    (table,) = found.people
    assert [place for place, _ in table.envelopes] == ["2500", "7500"]
    for _, edge in table.envelopes:
        assert np.all(edge.sensitivity <= edge.line * (1 + 1e-9))
        assert 0.5 < edge.largest_share <= 1
    assert "χ/n of the class" in found.report.read_text(encoding="utf-8")


def test_the_object_for_machines_has_the_tails_and_the_envelope(found: Assessment) -> None:
    _, data = assessment_summary(found)
    (table,) = json.loads(json.dumps(data, allow_nan=False))["people"]
    assert table["tails"]["classified"][0]["by"] == "published"
    assert {"class", "groups", "observed", "used"} == set(table["envelopes"]["2500"]["classes"][0])


@pytest.mark.slow
def test_the_least_epsilon_finds_the_share_and_half_of_it_does_not(file: Path) -> None:
    told = json.loads(call("tune", "tails", file, "--found", "0.5", "--from-confidential-data", "--json").stdout)
    assert told["confidential"]
    assert 0.5 <= told["found"] < 0.55
    half = next(point for point in told["curve"] if point["epsilon"] == pytest.approx(told["epsilon"] / 2))
    assert half["found"] < 0.5
    assert f"epsilon = {told['epsilon']:g}" in told["lines"]["ranks"]


def test_tails_are_not_tuned_without_the_word_that_data_may_be_looked_at(file: Path) -> None:
    assert "--from-confidential-data" in call("tune", "tails", file, "--found", "0.5", refused=True).stderr


def test_a_share_that_nothing_finds_is_refused_before_any_noise_is_drawn(file: Path) -> None:
    planned = tailed(check(load(file), data=False).plan, None)
    with pytest.raises(MethodError, match="below 1"):
        tune_tails(planned, None, wanted=Fraction(3, 2), tail=Fraction(1, 10), least=10)
