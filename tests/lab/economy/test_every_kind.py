"""Whatever its kind, an economy is the same for the same seed, is written whole or not at all, and measures itself."""

import hashlib
import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sfumato.errors import DataError, SfumatoError
from sfumato.frame.codelists import Codelist
from sfumato_lab.economy.business.generate import generate_business
from sfumato_lab.economy.business.shape import measure_business
from sfumato_lab.economy.federal.generate import generate_federal
from sfumato_lab.economy.federal.shape import measure_federal
from sfumato_lab.economy.frame import Made
from sfumato_lab.economy.graduates.generate import generate_graduates
from sfumato_lab.economy.graduates.shape import measure_graduates
from sfumato_lab.economy.jobs.generate import generate
from sfumato_lab.economy.jobs.shape import measure
from sfumato_lab.economy.opportunity.generate import generate_opportunity
from sfumato_lab.economy.opportunity.shape import measure_opportunity
from sfumato_lab.economy.requirements.generate import generate_requirements
from sfumato_lab.economy.requirements.shape import measure_requirements
from sfumato_lab.economy.university.generate import generate_university
from sfumato_lab.economy.university.shape import measure_university
from tests.cli.call import call
from tests.lab.economy.memory import peak


@dataclass(frozen=True)
class Kind:
    """A kind of economy at its smallest: what makes it, what measures it, and what is counted."""

    words: str
    generate: Callable[..., Made]
    measure: Callable[[Path], Any]
    counted: str
    fewest: int
    same: int
    """Codelists that are the same whatever the seed."""
    more: dict[str, Any] = field(default_factory=dict)

    def make(self, folder: Path, **arguments: Any) -> Made:
        return self.generate(folder, **{self.counted: self.fewest, **self.more, **arguments})


KINDS = {
    kind.words: kind
    for kind in (
        Kind("jobs", generate, measure, "jobs", 10_000, 8),
        Kind("federal", generate_federal, measure_federal, "persons", 5_000, 6),
        Kind("business", generate_business, measure_business, "businesses", 1_000, 5),
        Kind("requirements", generate_requirements, measure_requirements, "quotes", 1_000, 18),
        Kind("opportunity", generate_opportunity, measure_opportunity, "tracts", 100, 4),
        Kind("university", generate_university, measure_university, "employees", 1_000, 3),
        Kind("graduates", generate_graduates, measure_graduates, "people", 1_000, 4),
        Kind("graduates --veterans", generate_graduates, measure_graduates, "people", 1_000, 3, {"veterans": True}),
    )
}


@pytest.fixture(params=KINDS, scope="module")
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture(scope="module")
def made(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The smallest economy of the kind; tests leave it as it is."""
    return kind.make(tmp_path_factory.mktemp("made"))


def digests(made: Made) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made.paths}


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_its_folder_holds_the_files_it_names_and_no_others(made: Made) -> None:
    assert {path for path in made.folder.rglob("*") if path.is_file()} == set(made.paths)
    assert made.release.suffix == ".toml"


def test_the_same_seed_gives_the_same_files_and_another_one_other_records(
    kind: Kind, made: Made, tmp_path: Path
) -> None:
    assert digests(kind.make(tmp_path / "again")) == digests(made)
    other = digests(kind.make(tmp_path / "other", seed=2))
    same = {name for name, digest in digests(made).items() if other[name] == digest}
    assert not [name for name in same if name.endswith(".parquet") and "employer" not in name]
    assert len([name for name in same if name.endswith(".csv")]) == kind.same


def test_it_is_not_overwritten_unasked_and_a_failure_keeps_it(kind: Kind, tmp_path: Path) -> None:
    made = kind.make(tmp_path)
    before = digests(made)
    with pytest.raises(SfumatoError, match="a folder without an economy"):
        kind.make(tmp_path, seed=2)
    with pytest.raises(KeyboardInterrupt):
        kind.make(tmp_path, seed=2, overwrite=True, progress=interrupt)
    assert digests(made) == before
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set(made.paths)
    assert digests(kind.make(tmp_path, seed=2, overwrite=True)) != before


@pytest.mark.parametrize("wrong", ["too few", "too many", "seed"])
def test_a_request_out_of_range_is_refused_before_anything_is_written(kind: Kind, tmp_path: Path, wrong: str) -> None:
    asked = {"too few": {kind.counted: kind.fewest - 1}, "too many": {kind.counted: 10**12}, "seed": {"seed": -1}}
    with pytest.raises(SfumatoError, match="a whole number from") as refusal:
        kind.make(tmp_path / "new", **asked[wrong])
    assert next(iter(asked[wrong])) in refusal.value.where
    assert not (tmp_path / "new").exists()


def test_progress_rises_to_all(kind: Kind, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    kind.make(tmp_path, progress=lambda done, total: told.append((done, total)))
    done = [done for done, _ in told]
    assert done == sorted(done)
    assert {total for _, total in told} == {done[-1]}


def test_a_folder_without_one_has_no_shape(kind: Kind, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"make one first: `sfumato economy {kind.words.split()[0]}`"):
        kind.measure(tmp_path)


def test_the_release_file_describes_every_column_that_it_reads(made: Made) -> None:
    for path in (path for path in made.paths if path.suffix == ".toml"):
        data = tomllib.loads(path.read_text(encoding="utf-8"))["data"]
        tables = [part for part in data.values() if isinstance(part, dict) and "path" in part]
        columns = {name for table in tables for name in pq.read_schema(made.folder / table["path"]).names}
        named = {value for table in tables for value in table.values() if isinstance(value, str)}
        described = {*data["attributes"], *data.get("measures", {}), *named}
        described |= {level for table in tables for level in table.get("levels", ())}
        assert {name for name in columns if not name.startswith("rw_")} - described <= {"consent"}
        for attribute in data["attributes"].values():
            assert len(Codelist.read(made.folder / attribute["codelist"]).codes) > 1


@pytest.mark.slow
def test_the_command_makes_one_and_shows_its_shape(kind: Kind, made: Made, tmp_path: Path) -> None:
    words = ("economy", *kind.words.split(), "there", f"--{kind.counted}", str(kind.fewest))
    data = json.loads(call(*words, "--shape", "--json", cwd=tmp_path).stdout)
    assert data["release"] == f"there/{made.release.name}"
    places = ("folder", "release", "releases")
    numbers = {name: value for name, value in made.data().items() if name not in places}
    assert {name: data[name] for name in numbers} == numbers
    rows = kind.measure(made.folder).rows()
    assert [tuple(row.values()) for row in data["shape"]] == list(rows)
    text = call(*words, "--overwrite", "--shape", cwd=tmp_path).stdout
    assert made.words in text
    assert all(row[0] in text for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "few", "many", "records"),
    [
        (("opportunity", "--tracts"), 3_000, 30_000, 300),
        (("university", "--employees"), 200_000, 2_000_000, 4),
        (("graduates", "--people"), 500_000, 5_000_000, 2),
    ],
)
def test_memory_grows_by_far_less_than_the_records(
    words: tuple[str, str], few: int, many: int, records: int, tmp_path: Path
) -> None:
    def needed(count: int) -> int:
        command = ("economy", words[0], tmp_path / str(count), words[1], count, "--json")
        return peak("from sfumato.cli import main; main()", *command)[1]

    two_columns = (many - few) * records * 2 * 8
    assert needed(many) - needed(few) < two_columns
