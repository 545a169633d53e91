"""A method of another package is named, charged and published like those of this one; a bad one is refused by name."""

import json
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from sfumato.errors import SfumatoError
from sfumato.statistics.registry import METHODS
from tests.cli.call import call
from tests.statistics.methods.plugging import install, wheel

METHOD = """
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from sfumato.noise.geometric import Geometric
from sfumato.statistics.jobs.laplace import Laplace as Single


@dataclass(frozen=True, kw_only=True)
class Laplace(Single):
    name: ClassVar[str] = "multijob-laplace"
    description: ClassVar[str] = "random whole numbers, enough to hide several jobs of one person, were added"
    jobs: int = 2

    @cached_property
    def noise(self) -> Geometric:
        return Geometric(epsilon=self.epsilon / self.jobs)
"""
BAD = {
    "no class at all": ("Laplace = 7", "Laplace", "lacks @dataclass(frozen=True"),
    "a name that is taken": (METHOD.replace("multijob-laplace", "smooth-gamma"), "Laplace", "of sfumato itself has"),
    "a column nobody counts": (
        METHOD.replace("jobs: int = 2", 'jobs: int = 2\n    needs: ClassVar[frozenset[str]] = frozenset({"wages"})'),
        "Laplace",
        "lacks `needs`, a frozenset of some of count,",
    ),
    "an option that must be said": (METHOD.replace("jobs: int = 2", "jobs: int"), "Laplace", "a default of `jobs`"),
    "only half a method": (
        "from dataclasses import dataclass\n\n@dataclass(frozen=True)\nclass Half:\n    name = 'half'\n    alpha: int",
        "Half",
        "`guarantee`; `planned_error`",
    ),
    "a class that is not there": ("", "Laplace", "an error of type AttributeError"),
    "a module with a mistake": ("import nothing_of_this_name", "Laplace", "an error of type ModuleNotFoundError"),
}


def package(folder: Path, text: str, attribute: str = "Laplace", *, name: str = "office-methods") -> Path:
    """The source of a package with one module."""
    folder.mkdir()
    module = name.replace("-", "_")
    (folder / f"{module}.py").write_text(text, encoding="utf-8")
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "{name}"\nversion = "1"\n\n'
        f'[project.entry-points."sfumato.methods"]\nmultijob = "{module}:{attribute}"\n',
        encoding="utf-8",
    )
    return folder


def release_by(folder: Path, protect: str, *, method: str = "multijob-laplace") -> Path:
    """The release of an economy with one table that this method protects."""
    text = (folder / "release.toml").read_text(encoding="utf-8")
    start, sections = (
        text.split("[[table]]", 1)[0],
        '[[table]]\nname = "jobs_by_place"\ncount = "jobs"\nby = ["place"]\n',
    )
    path = folder / "plugged.toml"
    budget = 'budget = { definition = "individuals", alpha = 0.1, epsilon = 4 }'
    lines = [budget if line.startswith("budget") else line for line in start.splitlines()]
    path.write_text(
        "\n".join(lines) + f'\n{sections}protect = {{ method = "{method}", {protect} }}\n', encoding="utf-8"
    )
    return path


@pytest.mark.slow
def test_a_method_of_another_package_is_charged_and_published(release_folder: Path, tmp_path: Path) -> None:
    path = install(package(tmp_path / "source", METHOD), tmp_path / "site")
    release = release_by(release_folder, "epsilon = 1, jobs = 3")
    refused = call("check", release, refused=True).stderr
    assert "multijob-laplace" in refused, "without the package there is no such method"

    planned = json.loads(call("check", release, "--json", PYTHONPATH=path).stdout)["tables"][0]
    assert planned["method"] == "multijob-laplace"
    assert planned["planned_error"]["floor"] > 2.9, "three jobs need three times the noise of one"
    first = json.loads(call("run", release, "--json", PYTHONPATH=path).stdout)
    assert first["charged"] == ["jobs_by_place"]
    bundle = Path(first["bundle"])
    table = json.loads((bundle / "structure.json").read_text(encoding="utf-8"))["tables"][0]
    assert table["method"] == "multijob-laplace"
    statement = (bundle / "statement.md").read_text(encoding="utf-8")
    assert "enough to hide several jobs of one person" in statement
    assert "What multijob-laplace guarantees is the claim of the package office-methods 1." in statement
    assert "proved in the documentation" not in statement.split("What multijob-laplace guarantees")[1]
    assert "multijob-laplace of office-methods 1" in call("budget", "--ledger", release).stdout
    again = json.loads(call("run", release, "--json", PYTHONPATH=path).stdout)
    assert again["charged"] == [], "asked again it is the same question"

    release_by(release_folder, "epsilon = 1, jobs = 4")
    other = json.loads(call("run", release, "--json", PYTHONPATH=path).stdout)
    assert other["charged"] == ["jobs_by_place"], "another option is another question"
    release_by(release_folder, "epsilon = 1", method="laplace")
    own = json.loads(call("run", release, "--json", PYTHONPATH=path).stdout)
    assert own["charged"] == ["jobs_by_place"], "a class of the same name is another method"


@pytest.mark.parametrize("why", BAD)
def test_a_plug_in_that_is_no_method_is_refused_with_the_name_of_its_package(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, attribute, found = BAD[why]
    ZipFile(wheel(package(tmp_path / "source", text, attribute), tmp_path)).extractall(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(sys.modules, "office_methods", raising=False)
    with pytest.raises(SfumatoError) as refusal:
        type(METHODS)()["multijob-laplace"]  # as a release that names a method of another package
    assert refusal.value.where == "plug-in 'multijob' of office-methods 1"
    assert found in refusal.value.found


@pytest.mark.slow
def test_two_packages_with_one_name_for_a_method_are_both_named(release_folder: Path, tmp_path: Path) -> None:
    install(package(tmp_path / "one", METHOD), tmp_path / "site")
    path = install(package(tmp_path / "two", METHOD, name="other-methods"), tmp_path / "site")
    release = release_by(release_folder, "epsilon = 1")
    refused = call("check", release, "--no-data", refused=True, PYTHONPATH=path).stderr
    assert "office-methods 1" in refused
    assert "other-methods 1" in refused
    assert "expected: a method with a name of its own" in refused
    assert "uninstall one of the two packages" in refused


@pytest.mark.slow
def test_a_broken_plug_in_stops_no_release_that_names_another_method(release_folder: Path, tmp_path: Path) -> None:
    path = install(package(tmp_path / "source", "import nothing_of_this_name"), tmp_path / "site")
    release = release_by(release_folder, "epsilon = 1", method="laplace")
    call("check", release, "--no-data", PYTHONPATH=path)


def test_a_plug_in_without_a_guarantee_is_refused(release_folder: Path, tmp_path: Path) -> None:
    text = METHOD.replace(
        "    @cached_property",
        "    def guarantee(self):\n        return NoFormalGuarantee(statement='none')\n\n    @cached_property",
    ).replace("from sfumato.noise", "from sfumato.privacy.guarantee import NoFormalGuarantee\nfrom sfumato.noise", 1)
    path = install(package(tmp_path / "source", text), tmp_path / "site")
    release = release_by(release_folder, "epsilon = 1")
    refused = call("check", release, "--no-data", refused=True, PYTHONPATH=path).stderr
    assert "a guarantee that a budget can limit" in refused
