"""Dependencies point one way, importing is quick, and files hold one idea."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato
from sfumato.statistics.registry import METHODS

PACKAGE = Path(sfumato.__file__).parent
ORDER = (
    "errors",
    "paths",
    "toml",
    "arrays",
    "geography",
    "durable",
    "charts",
    "content",
    "cells",
    "chunks",
    "keys",
    "description",
    "frame",
    "noise",
    "engine",
    "privacy",
    "measures",
    "method",
    "agree",
    "exact",
    "surroundings",
    "statistic",
    "statistics",
    "sections",
    "release",
    "plan",
    "wishes",
    "bundle",
    "identity",
    "earlier",
    "safeguards",
    "checking",
    "running",
    "report",
    "live",
    "serve",
    "starting",
    "cli",
)
"""Each room imports only from itself and from the rooms before it."""

SERVE = {
    "core": (),
    "formats": ("core",),
    "context": ("core", "formats"),
    "sdmx": ("core", "formats", "context"),
    "pxweb": ("core", "formats", "context"),
    "dcat": ("core", "formats", "context"),
    "page": ("core", "formats", "context", "pxweb", "dcat"),
    "live": ("core", "formats", "context", "pxweb", "page"),
    "steward": ("core", "context", "page", "live"),
    "mcp": ("core", "context"),
    "app": ("core", "formats", "context", "sdmx", "pxweb", "dcat", "page", "live", "steward", "mcp"),
    "run": ("core", "page", "live", "app"),
}
"""What each folder of serve imports beside itself: only folders before it, and only the application sees all."""


def room(module: str) -> str:
    return module.removeprefix("sfumato").removeprefix(".").split(".")[0]


def imported(path: Path) -> set[str]:
    """The rooms that a file imports, but for names that only types need."""
    tree, rooms = ast.parse(path.read_text(encoding="utf-8")), set()
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path} imports relatively"
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "sfumato" else [node.module]
            )
        assert not any(name.split(".")[0] == "sfumato_lab" for name in names), f"{path} imports the laboratory"
        rooms |= {room(name) for name in names if name.split(".")[0] == "sfumato"}
    return rooms - {"", "__version__"}


def test_every_room_is_in_the_order() -> None:
    rooms = {path.stem if path.is_file() else path.name for path in PACKAGE.iterdir() if path.name[0] not in "_."}
    assert rooms - {"py"} == set(ORDER)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_dependencies_point_one_way(path: Path) -> None:
    here = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if here == "__init__":
        assert imported(path) == set(), "the doors open when they are used"
        return
    if here == "__main__":
        assert imported(path) == {"cli"}
        return
    allowed = set(ORDER[: ORDER.index(here) + 1])
    assert imported(path) <= allowed, f"{here} must not import {imported(path) - allowed}"


def test_duckdb_and_spark_are_named_in_the_engine_alone() -> None:
    for path in PACKAGE.rglob("*.py"):
        inside = path.relative_to(PACKAGE).parts
        if inside[0] == "engine":
            continue
        text = path.read_text(encoding="utf-8")
        assert "import duckdb" not in text, path
        assert "pyspark" not in text, path


def pure_files() -> list[Path]:
    """Methods of protection, what makes tables agree, and what withholds cells."""
    methods = {Path(sys.modules[method.__module__].__file__ or "") for method in METHODS.values()}
    methods = {path for path in methods if path.is_relative_to(PACKAGE)}  # others may have plugged in
    rooms = ("agree", "exact", "measures")
    return sorted([*methods, *(path for room in rooms for path in (PACKAGE / room).glob("*.py"))])


@pytest.mark.parametrize("path", pure_files(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_methods_and_agreements_see_neither_engine_nor_files_nor_clock_nor_chance(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    roots = {module.split(".")[0] for module in modules}
    assert not roots & {"os", "io", "pathlib", "time", "datetime", "random", "secrets", "tempfile", "socket"}
    assert not imported(path) & {"engine", "durable"}
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and hasattr(node.func, "id")}
    assert "open" not in called


KINDS = (
    *("Question", "IndicatorQuestion", "PairQuestion", "ContributorQuestion", "SampleQuestion", "CubeQuestion"),
    *("JobCounts", "SparseCounts", "Indicators", "Pairs", "Totals", "People", "CubeStatistic", "Frame", "Microdata"),
    *("OpenJobs", "OpenRecords", "EmployerEmployee", "NoFormalGuarantee"),
)
"""What is asked, of which data, and with which guarantee: each says of itself what follows from that."""


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_nobody_asks_a_statistic_data_or_a_guarantee_of_which_kind_it_is(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            asked = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
            assert not asked & set(KINDS), f"{path}:{node.lineno}"


def test_importing_sfumato_imports_no_engine_and_nothing_heavy() -> None:
    code = "import sys, sfumato; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"duckdb", "pyspark", "pyarrow", "numpy", "pandas", "sqlalchemy", "pydantic", "typer"}
    assert not (heavy | {"fastapi", "uvicorn", "xlsxwriter"}) & set(loaded)


def test_planning_without_data_imports_no_engine(release_folder: Path) -> None:
    code = (
        "import sys; from sfumato.release import load; from sfumato.checking import check; "
        f"check(load({str(release_folder / 'release.toml')!r}), data=False); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"duckdb", "pyspark"} & set(loaded)


def test_seeded_randomness_cannot_be_reached_from_a_release() -> None:
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).parts[0] != "noise":
            assert "Seeded" not in path.read_text(encoding="utf-8"), path


def test_trials_from_a_seed_are_drawn_where_figures_alone_come_out() -> None:
    named = {path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if "noise.trial" in path.read_text("utf-8")}
    assert named == {Path("report/trials.py")}, "a run must not be able to draw from a seed"


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_file_holds_one_idea(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 500


def imported_within_serve(path: Path) -> set[str]:
    """The folders and loose modules of serve that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    within = (name.split(".") for name in names if name.startswith("sfumato.serve."))
    return {parts[2] for parts in within}


def test_folders_of_serve_have_no_cycles() -> None:
    found = {path.stem for path in (PACKAGE / "serve").iterdir() if path.name[0] not in "_."}
    assert found == set(SERVE)
    order = list(SERVE)
    for name, others in SERVE.items():
        assert set(others) <= set(order[: order.index(name)]), f"{name} comes before what it imports"


@pytest.mark.parametrize("name", SERVE)
def test_a_folder_of_serve_imports_only_what_is_allowed(name: str) -> None:
    place = PACKAGE / "serve" / name
    for path in sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]:
        more = imported_within_serve(path) - {name, *SERVE[name]}
        assert not more, f"{path.relative_to(PACKAGE)} must not import {', '.join(sorted(more))}"


def test_a_release_of_jobs_loads_no_other_kind_of_statistic(release_folder: Path) -> None:
    code = (
        "import sys; from sfumato.release import load; from sfumato.running import run; "
        f"run(load({str(release_folder / 'release.toml')!r})); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    others = [name for name in loaded if re.match(r"sfumato\.statistics\.(panel|totals|people|cube)\.", name)]
    kinds = ("cube", "panel", "people", "totals")
    sections = {f"sfumato.statistics.{kind}.section" for kind in kinds}  # what a release file may say
    assert set(others) <= {*sections, "sfumato.statistics.panel.indicators"}
