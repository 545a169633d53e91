"""Tuning: the smallest epsilon that meets an accuracy, from the method and public assumptions alone."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sfumato.errors import MethodError, ReleaseError, SfumatoError
from sfumato.method import Method
from sfumato.noise.randomness import Seeded
from sfumato.release import load
from sfumato.statistics.jobs.tune import EXAMPLES, Accuracy, Assumption, Tuned, read_accuracy, tune, tune_table
from sfumato.statistics.registry import METHODS, build, for_people, is_free
from tests.cli.test_cli import call

ALPHA = Fraction("0.1")
ESTIMATES = {name for statistic in ("mean", "predict", "quantiles", "total") for name in for_people(statistic).values()}
TELLING = sorted(name for name in METHODS if not is_free(name) and name not in ESTIMATES | {"sparse-laplace"})
"""Methods whose error follows from the parameters; that of `sparse-laplace` is refused, and told by its thresholds."""


def tuned(name: str, sentence: str, worker_cells: int = 0, **more: Fraction) -> Tuned:
    def at(epsilon: Fraction) -> Method:
        return build(name, alpha=ALPHA, epsilon=epsilon, worker_cells=worker_cells)

    return tune(at, accuracy=read_accuracy(sentence), worker_cells=worker_cells, **more)


@pytest.mark.slow
@pytest.mark.parametrize("name", TELLING)
def test_the_epsilon_meets_the_mean_error_and_a_smaller_one_does_not(name: str) -> None:
    found = tuned(name, "mean error below 2 jobs in cells of at most 50 jobs")
    cells = found.assumption.cells(found.method, 1)
    assert found.method.expected_error(cells)[0] <= 2
    smaller = build(name, alpha=ALPHA, epsilon=found.epsilon * Fraction("0.98"))
    assert smaller.expected_error(cells)[0] > 2


@pytest.mark.slow
@pytest.mark.parametrize("worker_cells", [0, 8])
@pytest.mark.parametrize("name", ["smooth-pareto", "log-laplace", "vector-pareto", "log-box", "smooth-box", "auto"])
def test_the_stated_share_of_cells_is_within_the_limit_when_drawn_anew(name: str, worker_cells: int) -> None:
    found = tuned(name, "90% of cells of at least 100 jobs within 10%", worker_cells)
    cells = found.assumption.cells(found.method, 20_000)
    drawn = found.method.protect(cells, Seeded(9))["value"]
    assert np.mean(np.abs(drawn - 100) <= 10) == pytest.approx(0.9, abs=0.012)


def test_the_curve_falls_with_epsilon_and_turns_at_the_one_that_is_found() -> None:
    found = tuned("smooth-pareto", "mean error below 5%")
    figures = [point.figure for point in found.curve if point.figure is not None]
    assert figures == sorted(figures, reverse=True)
    assert [point.meets for point in found.curve] == [point.epsilon >= found.epsilon for point in found.curve]


@pytest.mark.slow
def test_a_cell_shared_by_several_establishments_needs_less() -> None:
    worst = tuned("smooth-pareto", EXAMPLES[2])
    shared = tuned("smooth-pareto", EXAMPLES[2], largest_share=Fraction(1, 2))
    assert shared.epsilon < worst.epsilon
    assert tuned("laplace", EXAMPLES[2], largest_share=Fraction(1, 2)).epsilon == tuned("laplace", EXAMPLES[2]).epsilon


@pytest.mark.parametrize("sentence", EXAMPLES)
def test_a_method_whose_error_is_secret_is_refused(sentence: str) -> None:
    with pytest.raises(MethodError, match="only the data can tell"):
        tuned("noise-infusion", sentence)


def test_a_method_that_leaves_out_large_establishments_cannot_promise_relative_accuracy() -> None:
    with pytest.raises(MethodError, match="may lose all its jobs"):
        tuned("node-laplace", EXAMPLES[1])


def test_an_accuracy_no_epsilon_gives_is_refused() -> None:
    with pytest.raises(MethodError, match="no epsilon up to 9990"):
        tuned("node-laplace", "mean error below 2 jobs in cells of at most 500 jobs")


@pytest.mark.parametrize("sentence", EXAMPLES)
def test_an_accuracy_reads_back_as_it_was_written(sentence: str) -> None:
    assert str(read_accuracy(sentence)) == sentence


@pytest.mark.parametrize(
    ("sentence", "meant"),
    [
        ("mean error 2", Accuracy(limit=Fraction(2), relative=False, jobs=100)),
        ("Mean error  under 2.5 %", Accuracy(limit=Fraction(1, 40), relative=True, jobs=100)),
        ("90% within 10%", Accuracy(limit=Fraction(1, 10), relative=True, jobs=100, share=Fraction(9, 10))),
        (
            "99.5% within 3 jobs in cells of at most 1,000 jobs",
            Accuracy(limit=Fraction(3), relative=False, jobs=1000, share=Fraction(199, 200)),
        ),
    ],
)
def test_accuracy_may_be_said_shortly(sentence: str, meant: Accuracy) -> None:
    assert read_accuracy(sentence) == meant


@pytest.mark.parametrize(
    "sentence",
    [
        "",
        "good",
        "within 10%",
        "100% within 10%",
        "mean error below 0 jobs",
        "mean error below 5% in cells of at most 20 jobs",
        "mean error below 2 jobs in cells of at least 20 jobs",
    ],
)
def test_an_accuracy_that_is_not_understood_or_cannot_be_kept_is_refused_with_an_example(sentence: str) -> None:
    with pytest.raises(SfumatoError, match="cells of at least 100 jobs within 10%"):
        read_accuracy(sentence)


def test_the_assumption_is_said_in_words_and_its_share_is_a_share() -> None:
    assumed = Assumption(jobs=100, largest_share=Fraction(1, 3), worker_cells=8)
    assert str(assumed) == (
        "a cell of 100 jobs in which the largest establishment has 34, as in each of the 8 worker cells of its "
        "workplace cell"
    )
    with pytest.raises(MethodError, match="at most 1"):
        Assumption(jobs=100, largest_share=Fraction(3, 2))


def test_a_table_of_a_release_is_tuned_without_its_data(release_folder: Path) -> None:
    for data in release_folder.glob("*.parquet"):
        data.unlink()
    release = load(release_folder / "release.toml")
    found = tune_table(release, "jobs_by_place", accuracy=read_accuracy(EXAMPLES[1]))
    assert found.epsilon == tuned("smooth-pareto", EXAMPLES[1]).epsilon
    other = tune_table(release, "jobs_by_place", accuracy=read_accuracy(EXAMPLES[1]), method="log-laplace")
    assert other.epsilon == tuned("log-laplace", EXAMPLES[1]).epsilon
    assert not release.ledger.exists()
    for name in (None, "nowhere"):
        with pytest.raises(ReleaseError, match="jobs_by_place"):
            tune_table(release, name, accuracy=read_accuracy(EXAMPLES[1]))


@pytest.mark.slow
def test_the_command_prints_the_epsilon_its_assumption_and_a_curve(release_folder: Path) -> None:
    words = (release_folder / "release.toml", "--table", "jobs_by_place", "--accuracy", "mean error below 5%")
    text = call("tune", *words).stdout
    assert "epsilon = 2.09 is the least that meets: mean error below 5% in cells of at least 100 jobs." in text
    assert "a cell of 100 jobs in which the largest establishment has 100" in text
    assert "█" in text
    found = json.loads(call("tune", *words, "--largest-share", "1/2", "--json").stdout)
    assert found["epsilon"] < 2.09
    assert found["assumption"]["largest_share"] == 0.5
    assert any(point["meets"] for point in found["curve"])


def test_the_command_refuses_what_it_does_not_understand(release_folder: Path) -> None:
    refused = call("tune", release_folder / "release.toml", "--accuracy", "very good", "--json", refused=True)
    assert "a sentence such as" in json.loads(refused.stdout)["error"]["expected"]


@pytest.mark.slow
def test_the_least_epsilon_of_a_method_that_changes_its_mechanism_is_found_from_below() -> None:
    from fractions import Fraction

    from sfumato.statistics.jobs.tune import read_accuracy, tune
    from sfumato.statistics.registry import build

    def auto(epsilon: Fraction) -> object:
        return build("auto", alpha=Fraction("0.1"), epsilon=epsilon, worker_cells=8)

    found = tune(auto, accuracy=read_accuracy("mean error below 15 jobs"), worker_cells=8)
    assert not any(point.meets and point.epsilon < found.epsilon * Fraction(19, 20) for point in found.curve)


@pytest.mark.parametrize(
    "text",
    [
        "mean error below 5% in cells of at least 99999999999999999999 jobs",
        "mean error below 1,0 jobs",
        "mean error below 5,,,.5 jobs",
        "mean error below 2 jobs in cells of at most 1.9 jobs",
        "99.99999999999999999% within 10%",
    ],
)
def test_numbers_that_are_no_numbers_are_refused(text: str) -> None:
    from sfumato.errors import SfumatoError
    from sfumato.statistics.jobs.tune import read_accuracy

    with pytest.raises(SfumatoError, match="a sentence such as"):
        read_accuracy(text)


@pytest.mark.parametrize(
    ("protect", "method", "use"),
    [
        ("epsilon = 2.0", "vector-pareto", 'method = "vector-pareto"'),
        ('epsilon = 2.0, form = "scalar"', "smooth-pareto", 'form = "scalar"'),
        ('method = "smooth-gamma", epsilon = 2.0, tight = true', "smooth-gamma", "tight = true"),
        ('method = "node-laplace", epsilon = 2.0, threshold = 1000', "node-laplace", "threshold = 1000"),
    ],
)
def test_the_mechanism_that_run_would_use_is_tuned_and_its_options_are_kept(
    tiny: Path, protect: str, method: str, use: str
) -> None:
    from io import StringIO

    from rich.console import Console

    from sfumato.cli.tune_summaries import tuned_summary
    from sfumato.release import load
    from sfumato.statistics.jobs.tune import read_accuracy, tune_table
    from tests.release.test_release_file import GOOD, written

    text = GOOD.replace('by = ["place"]', 'by = ["place", "sex"]').replace("epsilon = 2.0", protect)
    release = load(written(tiny, text))
    tuned = tune_table(release, "by_place", accuracy=read_accuracy("mean error below 30 jobs"))
    assert tuned.method.name == method
    console = Console(file=StringIO(), width=200)
    console.print(tuned_summary(tuned, "by_place")[0])
    assert use in console.file.getvalue()
