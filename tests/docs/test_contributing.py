"""CONTRIBUTING.md is done as it is written: in a copy of the checkout, a method is added in both ways."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import CONTRIBUTING, ROOT, Block, blocks, run_block
from tests.statistics.methods.plugging import install

COPIED = ("src", "tests", "bench", "docs", "pyproject.toml", "Makefile", "README.md")
MODULES = {"python": [], "pytest": ["-m", "pytest", "-p", "no:cacheprovider"], "ruff": ["-m", "ruff"]}
MODULES |= {"sfumato": ["-m", "sfumato"]}
WIDE = {"COLUMNS": "200", "NO_COLOR": "1"}


class Checkout:
    """A copy of the checkout in the current folder, in which commands are run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.site = folder, folder.parent / "site"
        ignored = shutil.ignore_patterns("__pycache__", ".*", "images", "results")
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, folder / name, **({"ignore": ignored} if (ROOT / name).is_dir() else {}))

    def run(self, block: Block, words: list[str]) -> str:
        """Run a command as a contributor would; what would install from elsewhere is only checked."""
        if words[:2] == ["pip", "install"]:
            return install(self.folder / words[2], self.site)
        if words[:2] == ["pip", "uninstall"]:
            shutil.rmtree(self.site)
            return ""
        if words[0] == "make":
            words = ["make", "--dry-run", *words[1:]]
        elif words[0] in MODULES:
            words = [sys.executable, *MODULES[words[0]], *words[1:]]
        path = [str(self.site), str(self.folder / "src"), os.environ.get("PYTHONPATH", "")]
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, path)),
                "PYTHONDONTWRITEBYTECODE": "1",
                **WIDE,
            },
        )
        assert done.returncode == 0, f"{block.where}: {shlex.join(words)}\n{done.stdout[-5000:]}{done.stderr[-5000:]}"
        return done.stdout


@pytest.mark.slow
def test_every_command_and_block_works_in_a_fresh_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "checkout"
    folder.mkdir()
    checkout, said = Checkout(folder), {}
    monkeypatch.chdir(folder)
    for block in blocks(CONTRIBUTING):
        if block.kind == "sh":
            for line in block.text.splitlines():
                words = shlex.split(line, comments=True)
                said[shlex.join(words)] = checkout.run(block, words)
        else:
            run_block(block, {})
    assert "multijob-laplace of multijob 1.0" in said["sfumato budget --ledger economy/multijob.toml"]
    assert "multijob-laplace" in (folder / "economy/multijob_bundle/statement.md").read_text(encoding="utf-8")
    assert " passed" in said["pytest -q tests/contracts -k multijob-laplace"]


def test_nothing_on_the_page_is_left_out() -> None:
    for block in blocks(CONTRIBUTING):
        assert block.kind in ("sh", "python") or block.note.startswith(("file: ", "edit: ")), block.where
