"""True numbers are noted in the ledger, so that later ones of the same data are linked to them or refused."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sfumato.errors import ReleaseError, SfumatoError
from sfumato.keys import new_key
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.running import run
from tests.statistics.exact.records import release_file, write_records

NUMBER = 'number; count = "records"; by = ["place", "sector"]'
PLACES = 'places; count = "records"; by = ["place"]'
EARLIER = 'earlier = ["release.toml"]'
KEY = 'key = "sfumato.key"'
METHODS = {
    "suppression": 'method = "suppression", minimum_units = 3',
    "rounding": 'method = "rounding", base = 3',
    "random": 'method = "rounding", base = 3, form = "random"',
    "coarsening": 'method = "coarsening", minimum_units = 3',
    "ranges": 'method = "ranges", classes = [1, 5, 10], minimum_units = 3',
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_records(tmp_path)
    new_key(tmp_path / "sfumato.key")
    return tmp_path


def written(folder: Path, name: str, tables: list[str], method: str, about: str = "") -> Path:
    key = KEY if method == "random" else ""
    path = release_file(folder, tables, name=name, rules=METHODS[method], about=f"{about}\n{key}")
    text = path.read_text(encoding="utf-8").replace("sector = {", '"place@region" = {}\nsector = {', 1)
    path.write_text(text, encoding="utf-8")
    return path


def charges(folder: Path) -> list[tuple[str, str]]:
    return [(one.table, one.note) for one in Ledger.open(folder / "ledger.sqlite").history() if one.kind == "charge"]


@pytest.mark.parametrize("method", METHODS)
def test_a_second_release_is_linked_to_the_first_or_refused_before_anything_is_noted(folder: Path, method: str) -> None:
    run(load(written(folder, "release", [NUMBER], method)))
    before = charges(folder)
    assert [table for table, _ in before] == ["number"]
    assert "exact" in before[0][1]
    with pytest.raises(ReleaseError, match="earlier"):
        run(load(written(folder, "apart", [PLACES], method)))
    assert charges(folder) == before
    assert not (folder / "apart_bundle").exists()
    later = load(written(folder, "later", [PLACES], method, EARLIER))
    if method == "rounding":  # what was published stays, and rounded with the new table it would not
        with pytest.raises(SfumatoError, match="publish tables that share sums in one release"):
            run(later)
        assert charges(folder) == before
        return
    run(later)
    assert [table for table, _ in charges(folder)] == ["number", "places"]


def test_a_later_release_has_the_groups_of_the_first_or_is_refused(folder: Path) -> None:
    rows = pq.read_table(folder / "records.parquet").to_pylist()
    assert sum((row["place"], row["sector"]) == ("A", "1") for row in rows) == 2
    run(load(written(folder, "release", [PLACES], "coarsening")))
    with pytest.raises(SfumatoError, match="groups that were published before"):
        run(load(written(folder, "later", [NUMBER], "coarsening", EARLIER)))
    assert [table for table, _ in charges(folder)] == ["places"]
    of_three = 'of_three; count = "records"; by = ["place"]; where = { sector = ["3"] }'
    run(load(written(folder, "filtered", [of_three], "coarsening", EARLIER)))
    of_one = of_three.replace("of_three", "of_one").replace('"3"', '"1"')
    both = 'earlier = ["release.toml", "filtered.toml"]'
    with pytest.raises(SfumatoError, match="groups that were published before"):
        run(load(written(folder, "again", [of_one], "coarsening", both)))


def test_true_numbers_of_another_method_are_refused_beside_those_of_the_first(folder: Path) -> None:
    run(load(written(folder, "release", [PLACES], "suppression")))
    before = charges(folder)
    for method in ("rounding", "coarsening", "ranges"):
        with pytest.raises(SfumatoError, match="the method that was used first"):
            run(load(written(folder, "later", [NUMBER], method, EARLIER)))
    assert charges(folder) == before


@pytest.mark.parametrize("without", ["release", "later"])
def test_codes_are_merged_into_the_same_levels_as_before(folder: Path, without: str) -> None:
    earlier = written(folder, "release", [PLACES], "coarsening")
    later = written(folder, "later", [NUMBER], "coarsening", EARLIER)
    path = {"release": earlier, "later": later}[without]
    path.write_text(path.read_text(encoding="utf-8").replace('"place@region" = {}\n', ""), encoding="utf-8")
    run(load(earlier))
    with pytest.raises(ReleaseError, match="described otherwise here or not at all"):
        run(load(later))
    assert [table for table, _ in charges(folder)] == ["places"]


def test_levels_with_other_codes_are_refused_where_codes_are_merged(folder: Path) -> None:
    run(load(written(folder, "release", [PLACES], "coarsening")))
    later = written(folder, "later", [NUMBER], "coarsening", EARLIER)
    text = later.read_text(encoding="utf-8").replace('N = ["A", "B"], S = ["C", "D"]', 'N = ["A", "C"], S = ["B", "D"]')
    later.write_text(text, encoding="utf-8")
    with pytest.raises(ReleaseError, match="described otherwise"):
        run(load(later))
