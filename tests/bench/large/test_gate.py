"""The gate of tables in parts: cells twice or lost, and values that are not those of their cells, are refused."""

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from bench.large.data import METHODS, WORKER_CELLS, Large, write_large
from bench.large.measure import check_cells, check_large
from bench.shared.gate import WrongResultError
from sfumato.release import load
from sfumato.running import run
from sfumato_lab.economy.jobs.generate import generate
from tests.conftest import same_key
from tests.running.same_draws import same_draws

BLOCKS = np.array([3, 5, 9, 9, 12])
WIDTH = 4
PARTS = 12


def cells(*blocks: int) -> NDArray[np.int64]:
    return (np.array(blocks)[:, None] * WIDTH + np.arange(WIDTH)).reshape(-1)


def test_every_cell_of_the_register_once_passes() -> None:
    check_cells([cells(9, 12), cells(3, 5)], BLOCKS, width=WIDTH)


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ([cells(3, 5), cells(3, 5)], "8 cells were published twice"),
        ([cells(3, 5), cells(9)], "4 cells are missing"),
        ([cells(3, 5), cells(9, 11)], "without an establishment"),
        ([cells(5, 3), cells(9, 12)], "in order"),
        ([cells(3, 5), cells(9, 12)[::-1]], "in order"),
        ([cells(3, 5), cells(9, 12)[:-1]], "in order"),
        ([cells(3, 5), cells(9, 12) + 1], "in order"),
        ([cells(3, 5), cells(9, 9, 12)], "in order"),
    ],
    ids=["a part twice", "lost", "not in the register", "blocks", "reversed", "cut", "shifted", "a block twice"],
)
def test_other_cells_are_refused(parts: list[NDArray[np.int64]], says: str) -> None:
    with pytest.raises(WrongResultError, match=says):
        check_cells(parts, BLOCKS, width=WIDTH)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Large:
    """A small table in parts, by both methods."""
    folder = tmp_path_factory.mktemp("large")
    generate(folder, jobs=30_000)
    large = write_large(folder, cells=200_000)
    (folder / "sfumato.key").unlink()
    same_key(folder / "sfumato.key")
    for name in METHODS:
        file = folder / f"{name}.toml"
        zeros = 'structural_zeros = "implied"'
        file.write_text(file.read_text(encoding="utf-8").replace(zeros, f"{zeros}\nparts = {PARTS}"), encoding="utf-8")
        with same_draws():
            run(load(file))
    return large


@pytest.fixture
def large(published: Large, tmp_path: Path) -> Large:
    """A copy that a test may spoil."""
    shutil.copytree(published.folder, tmp_path / "large")
    return Large(folder=tmp_path / "large", cells=published.cells)


def changed(large: Large, name: str, change: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> None:
    """Change the values of every part, and the manifest with them."""
    for file in parts_of(large, name):
        table = pq.read_table(file)
        values = pa.array(change(table["value"].to_numpy()))
        pq.write_table(table.set_column(table.column_names.index("value"), "value", values), file)
    listed_anew(large, name)


def parts_of(large: Large, name: str) -> list[Path]:
    return sorted((large.folder / f"{name}.bundle" / "tables").rglob("*.parquet"))


def listed_anew(large: Large, name: str) -> None:
    bundle = large.folder / f"{name}.bundle"
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    for file, entry in manifest["files"].items():
        content = (bundle / file).read_bytes()
        entry |= {"sha256": sha256(content).hexdigest(), "bytes": len(content)}
    (bundle / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_a_right_result_passes(name: str, large: Large) -> None:
    found = check_large(large, name)
    assert found["parts"] == PARTS
    assert found["compared"] <= large.cells
    assert found["error"] == pytest.approx(found["expected_error"], rel=0.2)


@pytest.mark.parametrize("name", METHODS)
def test_worker_cells_in_reverse_are_refused(name: str, large: Large) -> None:
    changed(large, name, lambda values: values.reshape(-1, WORKER_CELLS)[:, ::-1].reshape(-1))
    with pytest.raises(WrongResultError):
        check_large(large, name)


@pytest.mark.parametrize("name", METHODS)
def test_permuted_values_are_refused(name: str, large: Large) -> None:
    def permute(values: NDArray[np.int64]) -> NDArray[np.int64]:
        occupied = np.flatnonzero(values)
        permuted = values.copy()
        permuted[occupied] = np.random.default_rng(1).permutation(values[occupied])
        return permuted

    changed(large, name, permute)
    with pytest.raises(WrongResultError):
        check_large(large, name)


@pytest.mark.parametrize("name", METHODS)
def test_errors_of_one_sign_are_refused(name: str, large: Large) -> None:
    changed(large, name, lambda values: values + (values > 0))
    with pytest.raises(WrongResultError):
        check_large(large, name)


@pytest.mark.parametrize("name", METHODS)
def test_a_part_that_replaces_another_is_refused(name: str, large: Large) -> None:
    first, second = parts_of(large, name)[1:3]
    shutil.copy(first, second)
    listed_anew(large, name)
    with pytest.raises(WrongResultError, match="twice"):
        check_large(large, name)
