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
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from tests.docs.blocks import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
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
    assert set(read_manifest(published.bundle)["charges"]) == {table.name for table in release.tables}
    assert assess(release).report.exists()
    assert run(release).charged == ()


def test_examples_can_be_run_in_one_folder(release_folder: Path) -> None:
    releases = [load(release_folder / "release.toml"), *map(load, EXAMPLES)]
    for what in ("ledger", "bundle"):
        names = [getattr(release.about, what) for release in releases]
        assert len(set(names)) == len(names), f"two examples share a {what}"


def test_the_readme_lists_every_example() -> None:
    listed = re.findall(r"\]\(([\w-]+\.toml)\)", (ROOT / "examples/README.md").read_text(encoding="utf-8"))
    assert listed
    assert sorted(listed) == [path.name for path in EXAMPLES]
