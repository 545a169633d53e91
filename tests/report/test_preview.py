"""A preview charges nothing, leaves no trace, and says what a run would cost, lose and reveal."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato.errors import ReleaseError
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.report.preview import CHOOSING, NOTE, preview
from sfumato.running import run
from tests.cli.call import call
from tests.golden.cases import CASES
from tests.running.same_draws import same_draws
from tests.series.office import QUARTERS, make_office

KEYED = "businesses"


def trace(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file and folder, with its permissions, its time and its content; the confidential pages left out."""
    found = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        name = path.relative_to(folder).as_posix()
        if "confidential" in name:
            continue
        state = path.stat()
        # A new page makes a new folder beside the bundle, which is seen in the time of the folder around both.
        time = 0 if path == folder else state.st_mtime_ns
        found[name] = (state.st_mode, time, path.read_bytes() if path.is_file() else b"")
    return found


def written(name: str, folder: Path) -> Path:
    return CASES[name].written(folder)


def test_the_page_says_first_that_it_is_confidential_and_what_choosing_means(tmp_path: Path) -> None:
    path = written(KEYED, tmp_path)
    before = trace(tmp_path)
    found = preview(load(path))
    assert trace(tmp_path) == before, "no ledger, no store, no bundle"
    page = found.report.read_text(encoding="utf-8")
    assert page.index(NOTE) < page.index(CHOOSING) < page.index("<table")
    assert found.report.stat().st_mode & 0o077 == 0
    assert found.report.parent.name == "bundle-confidential"
    (candidate,) = found.candidates
    assert candidate.findings.due == 0
    assert {one.name for one in candidate.assessment.usability} == {
        table.name for table in candidate.findings.plan.tables
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_previews_of_every_kind_leave_no_trace_before_or_after_a_run(name: str, tmp_path: Path) -> None:
    release = load(written(name, tmp_path))
    before = trace(tmp_path)
    for _ in range(2):
        (found,) = preview(release).candidates
        assert trace(tmp_path) == before
    told = {one.name.split("/")[0] for one in found.assessment.usability}
    assert told == {one.name for one in found.findings.plan.statistics}
    run(release)
    if name == "panel_quarters":
        return  # one of its tables is there in two roundings, which is refused once they were published
    before = trace(tmp_path)
    (again,) = preview(release).candidates
    assert trace(tmp_path) == before
    assert again.findings.due == 0, "it was paid by the run"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["jobs_weak", "people", "cubes"])
def test_a_run_after_previews_draws_what_it_would_have_drawn(name: str, tmp_path: Path) -> None:
    bundles = []
    for previews in (0, 2):
        folder = tmp_path / str(previews)
        folder.mkdir()
        release = load(written(name, folder))
        for _ in range(previews):
            preview(release)
        with same_draws():  # also the parts of a table one after the other
            bundles.append(run(release).bundle)
    one, other = ({p.relative_to(b): p for b in [bundle] for p in b.rglob("*.parquet")} for bundle in bundles)
    assert one.keys() == other.keys()
    assert all(pq.read_table(path).equals(pq.read_table(other[name])) for name, path in one.items())


@pytest.mark.slow
def test_methods_with_a_key_are_previewed_as_they_are_published(tmp_path: Path) -> None:
    release = load(written(KEYED, tmp_path))
    (found,) = preview(release).candidates
    run(release)
    published = assess(release)
    for before, after in zip(found.assessment.utilities, published.utilities, strict=True):
        assert np.array_equal(before.protected, after.protected)
        assert before.by_size == after.by_size


@pytest.mark.slow
def test_trial_draws_of_formal_methods_are_not_what_is_published(release_folder: Path) -> None:
    release = load(release_folder / "release.toml")
    trials = [preview(release).candidates[0].assessment.utilities for _ in range(2)]
    run(release)
    drawn = [*trials, assess(release).utilities]
    for place in range(len(drawn[0])):
        values = [found[place].protected for found in drawn]
        assert not any(np.array_equal(values[a], values[b]) for a, b in ((0, 1), (0, 2), (1, 2)))


@pytest.mark.slow
def test_candidates_cost_what_they_say_keep_shares_and_are_better_with_more_epsilon(release_folder: Path) -> None:
    release = load(release_folder / "release.toml")
    allowed = release.budget.epsilon
    chosen = [allowed / 4, allowed, 2 * allowed]
    found = preview(release, epsilons=chosen, alphas=[Fraction("0.05"), Fraction("0.1")])
    assert len(found.candidates) == 6
    assert [one.epsilon for one in found.candidates] == chosen * 2
    assert [one.would_run for one in found.candidates] == [True, True, False] * 2
    assert [bool(one.why_not) for one in found.candidates] == [False, False, True] * 2
    shares = {
        tuple(one.guarantee.bound.epsilon / one_of.epsilon for one in one_of.findings.plan.statistics)
        for one_of in found.candidates[3:]
    }
    assert len(shares) == 1
    for title in found.titles:
        errors = [one.all.expected_error for _, one in found.usability(title)]
        usable = [one.all.usable for _, one in found.usability(title)]
        assert errors[0] > errors[1] > errors[2]
        assert usable[0] <= usable[1] <= usable[2]
        assert all(strict < loose for strict, loose in zip(errors[:3], errors[3:], strict=True)), (
            "the larger alpha, the more sizes must look alike"
        )
    assert not release.ledger.exists()


@pytest.mark.slow
def test_what_cannot_be_used_follows_from_the_accuracy_that_is_stated(release_folder: Path) -> None:
    release = load(release_folder / "release.toml")
    strict, loose = (
        {one.name: one.all for one in preview(release, accuracy=accuracy).candidates[0].assessment.usability}
        for accuracy in (0.01, 10.0)
    )
    for name, found in strict.items():
        assert found.cells == loose[name].cells
        assert found.unusable > loose[name].unusable
        assert found.usable == (found.cells - found.withheld - found.unusable) / found.cells


@pytest.mark.slow
def test_the_command_puts_release_files_side_by_side(tmp_path: Path) -> None:
    path = written(KEYED, tmp_path)
    other = tmp_path / "other.toml"
    text = path.read_text(encoding="utf-8")
    assert text.count('method = "top-contributors"') > 0
    other.write_text(text.replace('method = "top-contributors"', 'method = "perturbed-values"'), encoding="utf-8")
    other.write_text("".join(line for line in other.read_text().splitlines(keepends=True) if "suppress" not in line))
    done = call("preview", path, "--beside", other, "--accuracy", "0.2", "--json")
    told = json.loads(done.stdout)
    assert [one["candidate"] for one in told["candidates"]] == ["as written", "other"]
    assert told["confidential"] is True
    assert "2 candidates" in told["choosing"]
    shown = call("preview", path).stdout
    assert shown.startswith("CONFIDENTIAL PREVIEW")
    assert "withheld" in shown
    assert "Nothing was charged" in shown


@pytest.mark.slow
def test_one_period_of_a_series_is_previewed_before_it_is_published(tmp_path: Path) -> None:
    file = make_office(tmp_path / "office")
    run(load(file, QUARTERS[0]))
    before = trace(file.parent)
    found = preview(load(file, QUARTERS[1]))
    assert trace(file.parent) == before
    assert found.report.parent.name == QUARTERS[1]
    (candidate,) = found.candidates
    assert candidate.findings.due > 0
    assert candidate.findings.due == candidate.epsilon, "of this period nothing was paid"


def test_what_cannot_be_chosen_is_refused_before_any_data_are_counted(tmp_path: Path) -> None:
    keyed, people = (load(written(name, tmp_path / name)) for name in (KEYED, "people"))
    with pytest.raises(ReleaseError, match="only methods with a key"):
        preview(keyed, epsilons=[Fraction(1)])
    with pytest.raises(ReleaseError, match="plays no part"):
        preview(people, alphas=[Fraction(1, 10)])
    with pytest.raises(ReleaseError, match="numbers above 0"):
        preview(keyed, epsilons=[Fraction(0)])
    with pytest.raises(ReleaseError, match="at most 20"):
        preview(people, epsilons=[Fraction(n) for n in range(1, 30)])
