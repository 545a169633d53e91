"""Every example is published and assessed as its comments say."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.bundle.manifest import read_manifest
from sfumato.checking import check
from sfumato.privacy.guarantee import NoFormalGuarantee
from sfumato.release import load, load_any_period
from sfumato.report.assess import assess
from sfumato.running import run
from tests.docs.blocks import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))
OF_ONE_PERIOD = [path for path in EXAMPLES if "[series]" not in path.read_text(encoding="utf-8")]
SERIES = [path for path in EXAMPLES if path not in OF_ONE_PERIOD]
"""They are also run period by period on their pages, by `test_pages.py`."""


@pytest.mark.slow
@pytest.mark.parametrize("example", OF_ONE_PERIOD, ids=lambda path: path.name)
def test_an_example_is_published_within_its_budget(
    example: Path, release_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(release_folder.parent)  # where the comments of the example suppose we are
    text = example.read_text(encoding="utf-8")
    of_its_own = re.findall(r"^# +sfumato (economy [a-z]+ economy .+)$", text, flags=re.MULTILINE)
    for command in of_its_own:
        subprocess.run([sys.executable, "-m", "sfumato", *shlex.split(command), "--overwrite"], check=True)
    assert f"cp examples/{example.name} economy/" in text
    assert f"sfumato run economy/{example.name}" in text
    shutil.copy(example, release_folder)
    for command in re.findall(r"^# +python (.+)$", text, flags=re.MULTILINE):
        subprocess.run([sys.executable, *shlex.split(command)], check=True)
    for command in re.findall(r"^# +sfumato (keys .+)$", text, flags=re.MULTILINE):
        subprocess.run([sys.executable, "-m", "sfumato", *shlex.split(command)], check=True)

    release = load(release_folder / example.name)
    plan, budget = check(release).plan, release.about.budget
    published = run(release)
    if budget is None:
        assert isinstance(plan.guarantee, NoFormalGuarantee)
        assert published.balance is None
    else:
        assert plan.guarantee.definition == budget.definition
        assert published.balance.remaining_epsilon == 0, "an example spends what it states, no less"
    named = {part.name for part in (*release.tables, *release.cubes)}
    assert set(read_manifest(published.bundle)["charges"]) == named
    assert assess(release).report.exists()
    assert run(release).charged == ()


@pytest.mark.slow
@pytest.mark.parametrize("example", SERIES, ids=lambda path: path.name)
def test_an_example_of_a_series_runs_as_its_comments_say(
    example: Path, release_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(release_folder.parent)
    text = example.read_text(encoding="utf-8")
    assert f"cp examples/{example.name} economy/" in text
    shutil.copy(example, release_folder)
    python, run_it = re.findall(r"^# +(python .+|sfumato run .+)$", text, flags=re.MULTILINE)
    subprocess.run([sys.executable, *shlex.split(python)[1:]], check=True)
    subprocess.run([sys.executable, "-m", *shlex.split(run_it)], check=True)
    for quarter in ("2026Q2", "2026Q3", "2026Q4"):
        assert check(load(release_folder / example.name, period=quarter)).refusal is None


def test_examples_can_be_run_in_one_folder(release_folder: Path) -> None:
    releases = [load(release_folder / "release.toml"), *map(load_any_period, EXAMPLES)]
    for what in ("ledger", "bundle"):
        names = [getattr(release.about, what) for release in releases]
        assert len(set(names)) == len(names), f"two examples share a {what}"


def test_the_readme_lists_every_example() -> None:
    listed = re.findall(r"\]\(([\w-]+\.toml)\)", (ROOT / "examples/README.md").read_text(encoding="utf-8"))
    assert listed
    assert sorted(listed) == [path.name for path in EXAMPLES]
