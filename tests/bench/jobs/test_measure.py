"""Every case can be run again and again, and a wrong table of the floor or of a bundle has no figures."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bench.jobs.cases import Case, write_cases
from bench.jobs.floor import floor
from bench.jobs.measure import Truth
from bench.shared.gate import WrongResultError
from sfumato.cells import Cells
from sfumato_lab.economy.jobs.generate import generate
from tests.running.same_draws import same_draws

JOBS = 30_000


@pytest.fixture(scope="module")
def economy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("economy")
    generate(folder, jobs=JOBS)
    return folder


@pytest.fixture(scope="module")
def cases(economy: Path) -> dict[str, Case]:
    return {case.name: case for case in write_cases(economy)}


@pytest.fixture(scope="module")
def truth(cases: dict[str, Case]) -> Truth:
    return Truth.of(cases["seen"].file, jobs=JOBS)


def test_a_case_is_published_anew_in_every_round_and_remembers_files_only_where_it_says_so(
    cases: dict[str, Case], truth: Truth
) -> None:
    with same_draws():
        for name in ("first", "seen", "seen", "first"):
            release = cases[name].prepare()
            assert (release.store / "memory.json").exists() == (name == "seen")
            cases[name].publish()
            truth.check_published(release)


def test_files_that_were_never_validated_are_not_taken_for_known(cases: dict[str, Case]) -> None:
    with pytest.raises(FileNotFoundError, match="validate them first"):
        cases["workers_seen"].prepare()


def test_a_floor_that_counts_one_job_less_is_refused(economy: Path, truth: Truth) -> None:
    found = floor(economy)
    truth.check_floor(found)
    counts = found["count"].to_numpy().copy()
    counts[0] -= 1
    with pytest.raises(WrongResultError, match="do not count the same"):
        truth.check_floor(found.set_column(found.column_names.index("count"), "count", pa.array(counts)))


def test_a_published_cell_without_an_establishment_is_refused(cases: dict[str, Case], truth: Truth) -> None:
    release = cases["first"].prepare()
    cases["first"].publish()
    counts = truth.cells["count"]
    largest = int(counts.argmax())  # published with a value that is not 0
    kept = np.arange(len(counts)) != largest
    fewer = Cells(
        dimensions=truth.cells.dimensions,
        positions=truth.cells.positions[kept],
        columns={name: truth.cells[name][kept] for name in ("count", "largest")},
    )
    with pytest.raises(WrongResultError, match="not the cells that have an establishment"):
        replace(truth, cells=fewer).check_published(release)
