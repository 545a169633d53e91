"""Where workers live: near where they work, in few of all places, and without a change of anything else."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato.arrays import Integers
from sfumato_lab.economy.jobs.generate import generate
from sfumato_lab.economy.maps import island_positions

JOBS = 100_000


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("residence")
    without = generate(root / "without", jobs=JOBS, seed=5)
    return without.folder, generate(root / "with", jobs=JOBS, seed=5, residence=True).folder


def test_all_else_is_the_same(folders: tuple[Path, Path]) -> None:
    for name in ("jobs.parquet", "workplaces.parquet", "codelists/place.csv"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()
    without, beside = (pq.read_table(folder / "workers.parquet") for folder in folders)
    assert beside.drop_columns("residence").equals(without)


def places(folder: Path) -> tuple[Integers, Integers, int]:
    """The home and the place of the first job of every worker, as numbers, and how many places there are."""
    jobs, workers, register = (pq.read_table(folder / f"{name}.parquet") for name in ("jobs", "workers", "workplaces"))
    _, first = np.unique(
        jobs["worker"].to_numpy(), return_index=True
    )  # workers are numbered in the order of their jobs
    workplace = jobs["workplace"].to_numpy()[first] - 1
    homes, works = (
        np.array([int(code[1:]) - 1 for code in table[name].cast("string").to_pylist()])
        for table, name in ((workers, "residence"), (register, "place"))
    )
    return homes, works[workplace], len((folder / "codelists/place.csv").read_text().splitlines()) - 1


def test_most_live_near_and_pairs_are_sparse(folders: tuple[Path, Path]) -> None:
    homes, works, count = places(folders[1])
    at = island_positions(count)
    distance = np.hypot(*(at[homes] - at[works]).T)
    by_chance = np.hypot(*(at[np.random.default_rng(1).permutation(homes)] - at[works]).T)
    assert distance.mean() < 0.5 * by_chance.mean()
    assert 0.2 < (homes == works).mean() < 0.9
    pairs, often = np.unique(homes * count + works, return_counts=True)
    assert len(pairs) < 0.4 * count**2
    assert np.median(often) < 10
