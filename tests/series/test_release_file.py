"""A release file for many periods: one way to write a period, and errors that say what to do."""

import json
from pathlib import Path

import pytest

from sfumato.errors import ReleaseError, SfumatoError
from sfumato.frame.periods import Period, in_time
from sfumato.release import Release, load, load_any_period
from tests.series.office import RELEASE


def written(folder: Path, text: str = RELEASE) -> Path:
    (folder / "release.toml").write_text(text, encoding="utf-8")
    return folder / "release.toml"


@pytest.mark.parametrize("typed", ["2026Q3", "2026-Q3", "2026q3", " 2026-q3 "])
def test_a_quarter_is_the_same_however_it_is_typed(tmp_path: Path, typed: str) -> None:
    release = load(written(tmp_path), typed)
    assert release.about.period == "2026-Q3"
    assert release.about.title == "Jobs, 2026-Q3"
    assert release.data.sources()["jobs"].path == "jobs_2026-Q3.csv"


def test_every_way_of_writing_a_period_is_read_as_that_period() -> None:
    for typed in ("2026", "2026-Q3", "2026-07", "2026-11"):
        assert {Period.read(text) for text in Period.read(typed).writings()} == {Period.read(typed)}


def test_periods_follow_each_other_over_the_turn_of_a_year() -> None:
    assert [str(Period.read(last).next) for last in ("2025", "2025-Q4", "2025-12")] == ["2026", "2026-Q1", "2026-01"]


def test_codes_are_in_time_only_if_they_are_written_alike_and_go_up() -> None:
    assert in_time(("2026-01", "2026-03"))
    assert not in_time(("2026-Q1", "2026Q2"))
    assert not in_time(("2026-Q2", "2026-Q1"))
    assert not in_time(("A", "B"))


def refused(folder: Path, text: str, period: str | None) -> ReleaseError:
    with pytest.raises(ReleaseError) as refusal:
        load(written(folder, text), period)
    return refusal.value


@pytest.mark.parametrize(
    ("change", "period", "words"),
    [
        (("", ""), None, "2026-Q1"),
        (("", ""), "2025-Q4", "from 2026-Q1 on"),
        (("", ""), "2026-07", "a quarter of this series"),
        (("", ""), "soon", "2026-Q3"),
        (('first = "2026-Q1"', 'first = "2026-Q1"\nlast = "2025-Q1"'), "2026-Q1", "last"),
        (('first = "2026-Q1"', 'first = "2026-Q1"\ndimension = "place"'), "2026-Q1", "dimension"),
        (('first = "2026-Q1"', 'frist = "2026-Q1"'), "2026-Q1", "did you mean 'first'"),
        (('population = "jobs"', 'population = "jobs {period}"'), "2026-Q1", "{period} may stand in"),
        (('population = "jobs"', 'period = "2026-Q1"'), "2026-Q1", "leave it out"),
        (('population = "jobs"', 'bundle = "bundle_{period}"'), "2026-Q1", "one population, key, ledger and bundle"),
        (('[series]\nfirst = "2026-Q1"', ""), "2026-Q1", "[series]"),
    ],
)
def test_a_mistake_is_told_with_what_to_do(
    tmp_path: Path, change: tuple[str, str], period: str | None, words: str
) -> None:
    assert words in str(refused(tmp_path, RELEASE.replace(*change) if change[0] else RELEASE, period))


def test_data_with_a_time_of_their_own_are_no_series(tmp_path: Path) -> None:
    panel = 'workplace = "workplace", period = "quarter", first = "2026-Q1", last = "2026-Q2", earnings = "pay"'
    assert "period" in str(refused(tmp_path, RELEASE.replace('workplace = "workplace" }', f"{panel} }}", 1), "2026-Q1"))


def test_without_a_period_the_newest_that_is_published_and_the_next_are_named(tmp_path: Path) -> None:
    assert refused(tmp_path, RELEASE, None).do.startswith("name one: --period 2026-Q1 is the next")
    (tmp_path / "bundle").mkdir()
    versions = [{"period": "2026-Q1"}, {"period": "2026-Q2"}, {"period": "2026-Q1"}]
    (tmp_path / "bundle" / "manifest.json").write_text(json.dumps({"series": {"versions": versions}}))
    do = refused(tmp_path, RELEASE, None).do
    assert do.startswith("name one: --period 2026-Q2 is the newest that is published, and --period 2026-Q3 is the next")


def test_all_periods_share_the_ledger_and_the_bundle(tmp_path: Path) -> None:
    file = written(tmp_path)
    one, other, whichever = load(file, "2026-Q1"), load(file, "2027-Q4"), load_any_period(file)

    def shared(release: Release) -> tuple[Path, Path]:
        return release.ledger, release.bundle

    assert shared(one) == shared(other) == shared(whichever)
    assert one.account != other.account
    assert one.confidential != other.confidential


def test_a_period_may_have_a_budget_of_its_own(tmp_path: Path) -> None:
    text = RELEASE.replace("[data]\n", '[series.budgets."2026Q2"]\nalpha = 0.1\nepsilon = 9\n\n[data]\n')
    file = written(tmp_path, text)
    budgets = [load(file, quarter).budget for quarter in ("2026-Q1", "2026-Q2")]
    assert [budget.epsilon for budget in budgets if budget] == [6, 9]


WINDOWED = RELEASE.replace("epsilon = 6 }", "epsilon = 6, window = { periods = 4, epsilon = 9 } }")


def test_a_window_takes_from_the_budget_what_it_does_not_say(tmp_path: Path) -> None:
    file = written(tmp_path, WINDOWED.replace("epsilon = 6,", "epsilon = 6, delta = 1e-6,"))
    window = load(file, "2026Q3").window
    assert window is not None
    assert str(window) == "any 4 consecutive quarters: strong, alpha = 0.1, epsilon = 9, delta = 4e-06"
    said = 'window = { periods = 4, epsilon = 9, delta = 1e-6, alpha = 0.2, definition = "weak", first = "2026Q2" }'
    file = written(tmp_path, WINDOWED.replace("window = { periods = 4, epsilon = 9 }", said))
    window = load(file, "2026Q3").window
    assert window is not None
    assert str(window) == "any 4 consecutive quarters from 2026-Q2 on: weak, alpha = 0.2, epsilon = 9, delta = 1e-06"


def test_a_period_with_a_budget_of_its_own_keeps_the_window_of_all(tmp_path: Path) -> None:
    own = '\n[series.budgets."2026-Q2"]\nalpha = 0.2\nepsilon = 8\ndefinition = "weak"\n'
    file = written(tmp_path, WINDOWED + own)
    one, other = load(file, "2026-Q1"), load(file, "2026-Q2")
    assert one.window == other.window
    assert one.budget != other.budget
    file = written(tmp_path, WINDOWED + own + "window = { periods = 2, epsilon = 9 }\n")
    assert str(load(file, "2026-Q2").window) == "any 2 consecutive quarters: weak, alpha = 0.2, epsilon = 9"


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ("window = { periods = 1, epsilon = 9 }", "greater than or equal to 2"),
        ("window = { periods = 4, epsilon = 0 }", "greater than 0"),
        ("window = { periods = 4 }", "the key 'epsilon'"),
        ("window = { periods = 4, epsilon = 9, last = 3 }", "one of the keys periods, epsilon"),
        ('window = { periods = 4, epsilon = 9, first = "2026" }', "a quarter, such as 2026-Q1"),
        ('window = { periods = 4, epsilon = 9, first = "soon" }', "a year such as 2026"),
    ],
)
def test_a_window_that_means_nothing_is_refused(tmp_path: Path, stated: str, said: str) -> None:
    file = written(tmp_path, WINDOWED.replace("window = { periods = 4, epsilon = 9 }", stated))
    with pytest.raises(SfumatoError, match=said):
        load(file, "2026-Q1")


def test_a_window_needs_a_period_that_has_a_place_in_time(tmp_path: Path) -> None:
    text = WINDOWED.replace('[series]\nfirst = "2026-Q1"\n', "").replace("{period}", "x")
    for period, said in (("this spring", "a year such as 2026"), ("2026", "any 4 consecutive years")):
        file = written(tmp_path, text.replace('population = "jobs"', f'population = "jobs"\nperiod = "{period}"'))
        if period == "2026":
            assert said in str(load(file).window)
            continue
        with pytest.raises(ReleaseError, match=said):
            load(file)


def test_a_window_is_refused_where_one_run_publishes_all_periods(tmp_path: Path) -> None:
    text = WINDOWED.replace('[series]\nfirst = "2026-Q1"\n', "").replace("{period}", "x")
    text = text.replace('population = "jobs"', 'period = "2026"').replace(
        'worker = "worker",',
        'worker = "worker", period = "quarter", first = "2025-Q1", last = "2026-Q4", earnings = "pay",',
    )
    file = written(tmp_path, text)
    with pytest.raises(ReleaseError, match="data of one period at a time"):
        load(file)
