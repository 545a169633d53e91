"""Data for tests: a tiny frame typed by hand, a small synthetic economy, and what is published and served of such."""

import os
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, settings

from sfumato.frame.data import Frame
from sfumato.noise.randomness import OperatingSystem, Seeded
from sfumato_lab.economy.jobs.generate import Economy, generate
from tests.tiny import TINY

if TYPE_CHECKING:
    from sfumato.serve.core.catalogue import Catalogue
    from tests.serve.running import Server

settings.register_profile(
    "sfumato",
    deadline=None,  # how long an example takes says nothing about whether it is right
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("CI") == "true",  # what is submitted is held to the same examples; at home, to new ones
)
settings.register_profile(  # for `tests.mutants`: a failure is enough, its smallest example is of no interest
    "mutants", deadline=None, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("sfumato")

ON_SPARK = "test_all_questions_are_answered_as_by_hand_in_one_scan"
"""What runs on Spark in every round; all else on Spark is slow, and runs in `make test-all`."""
IN_FULL = frozenset({"reproduce"})
"""Folders whose tests take minutes: the papers' evaluations done again."""
WHOLE = frozenset({"golden", "contracts", "test_architecture.py", "test_quartic.py"})
"""Folders and files whose grids run whole in every round."""
_PATCHED = pytest.StashKey[pytest.MonkeyPatch]()
OF_A_GRID = 2
"""So many cases of a test run in every round, spread over its parameters; the whole grid runs in `make test-all`."""


@pytest.hookimpl(tryfirst=True)  # before the slow ones are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Decide what runs in every round: a few cases of every grid, one test on Spark, nothing that takes minutes."""
    grids: dict[object, list[pytest.Item]] = {}
    for item in items:
        if hasattr(item, "callspec") and not WHOLE & {item.path.name, item.path.parent.name}:
            grids.setdefault((item.path, getattr(item, "cls", None), item.originalname), []).append(item)  # type: ignore[attr-defined]
        if item.path.parent.name in IN_FULL or (
            item.get_closest_marker("spark") and getattr(item, "originalname", "") != ON_SPARK
        ):
            item.add_marker(pytest.mark.slow)
    for cases in grids.values():
        kept = {round(place * (len(cases) - 1) / (OF_A_GRID - 1)) for place in range(OF_A_GRID)}
        for place, case in enumerate(cases):
            if len(cases) > OF_A_GRID and place not in kept:
                case.add_marker(pytest.mark.slow)


@pytest.hookimpl(tryfirst=True)  # before fixtures that publish
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let noise and new keys in this process be the same in every run of a test: chance is no reason to fail.

    What a scale, a distribution or a guarantee is, other tests prove with many draws. A test marked `fresh_draws` has
    those of the operating system, and so has every command that a test starts as a process of its own.
    """
    patch = item.stash[_PATCHED] = pytest.MonkeyPatch()
    if item.get_closest_marker("fresh_draws") is None:
        seed = int.from_bytes(sha256(item.nodeid.encode()).digest()[:8])
        stream, keys = Seeded(seed), Random(seed)
        patch.setattr(OperatingSystem, "words", lambda _self, n, /: stream.words(n))
        patch.setattr("sfumato.keys.secrets", SimpleNamespace(token_bytes=keys.randbytes, randbelow=keys.randrange))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Give the operating system's draws back."""
    item.stash[_PATCHED].undo()


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A folder with three tables: four workplaces, one of them without jobs, and eight jobs."""
    for name, columns in TINY.items():
        write(tmp_path / f"{name}.parquet", columns)
    return tmp_path


@pytest.fixture(scope="session")
def economy(tmp_path_factory: pytest.TempPathFactory) -> Economy:
    """An economy of 10,000 jobs; tests that publish work on a copy."""
    return generate(tmp_path_factory.mktemp("economy"), jobs=10_000)


@pytest.fixture(scope="session")
def bundles(economy: Economy, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A bundle of jobs, of businesses, of a federal workforce and of a survey with a cube, published once."""
    from tests.serve.bundles import published

    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own  # a worker's folder is beside the others'
    return published(shared / "bundles", economy.folder)


@pytest.fixture(scope="session")
def catalogue(bundles: dict[str, Path]) -> "Catalogue":
    """The tables of all bundles."""
    from sfumato.serve.core.catalogue import BundleSource, open_catalogue

    return open_catalogue([BundleSource(folder=folder) for folder in bundles.values()])


@pytest.fixture(scope="session")
def server(bundles: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Server]":
    """`sfumato serve` with all bundles, in a process of its own."""
    from tests.serve.running import serving

    state = tmp_path_factory.mktemp("serving") / "state"
    said = ("--source", "Office", "--licence", "CC-BY-4.0", "--rate", "1000000/10")  # all tests are one client to it
    with serving(*bundles.values(), "--state", state, *said) as running:
        yield running


@pytest.fixture
def release_folder(economy: Economy, tmp_path: Path) -> Path:
    """A fresh copy of the economy with its release file and no ledger."""
    return Path(shutil.copytree(economy.folder, tmp_path / "economy"))


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine in turn; Spark is left out where there is no Java, except under CI."""
    if request.param == "spark":
        need_java()
    os.environ["PYSPARK_SUBMIT_ARGS"] = "--conf spark.sql.shuffle.partitions=2 pyspark-shell"  # the data are tiny
    return str(request.param)


def need_java() -> None:
    """Leave a test out where there is no Java, except under CI."""
    if shutil.which("java") is None and os.environ.get("CI") != "true":
        pytest.skip("Spark needs Java 17 or 21: install a Java runtime to run this test")


def same_key(path: Path, seed: int = 18) -> Path:
    """A new key file that is the same in every run: what holds under nine keys of ten is a claim about one of them."""
    from sfumato.keys import new_key

    drawn = Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.keys.secrets", SimpleNamespace(token_bytes=drawn.randbytes, randbelow=drawn.randrange))
        new_key(path)
    return path


def write(path: Path, columns: dict[str, list[Any]]) -> Path:
    """Write columns to a Parquet file."""
    pq.write_table(pa.table(columns), path)
    return path


def tiny_frame(folder: Path, **changes: Any) -> Frame:
    """The frame of the tiny data, with changes."""
    described: dict[str, Any] = {
        "jobs": {"path": "jobs.parquet", "worker": "worker", "workplace": "workplace"},
        "workplaces": {"path": "workplaces.parquet", "key": "workplace"},
        "workers": {"path": "workers.parquet", "key": "worker"},
        "public": ["place", "industry"],
        "attributes": {
            "place": {"codes": {"A": "Aville", "B": "Btown"}},
            "industry": {"codes": {"11": "Farms", "62": "Health"}},
            "sex": {"codes": {"F": "Female", "M": "Male"}},
            "age": {"codes": ["1", "2", "3"]},
        },
        "measures": {"earnings": {"unit": "dollars"}},
        "folder": folder,
    }
    return Frame(**(described | changes))
