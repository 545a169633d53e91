"""Zeros of true numbers: tables of nothing else, and those that somebody knows beforehand."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.checking import check
from sfumato.errors import SfumatoError
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from tests.statistics.exact.records import release_file, write_records


@pytest.mark.parametrize(
    "rules",
    [
        'method = "suppression", minimum_units = 3, p = 15',
        'method = "suppression", minimum_units = 3, zeros = "protected"',
        'method = "rounding", base = 5, minimum_units = 3',
        'method = "rounding", base = 5, form = "plain"',
        'method = "ranges", classes = [1, 5, 10], minimum_units = 3',
    ],
)
def test_a_table_of_zeros_is_published_or_refused_in_words(tmp_path: Path, rules: str) -> None:
    write_records(tmp_path)
    register = pq.read_table(tmp_path / "records.parquet")
    at = register.schema.get_field_index("turnover")
    pq.write_table(register.set_column(at, "turnover", pa.array([0] * len(register))), tmp_path / "records.parquet")
    table = 'turnover; total = "turnover"; by = ["place", "sector"]; totals = true'
    release = load(release_file(tmp_path, [table], rules=rules))
    check(release)
    run(release)
    assess(release)
    published = pq.read_table(tmp_path / "release_bundle" / "tables" / "turnover.parquet")
    assert set(published["value"].to_pylist()) == ({None} if "protected" in rules else {0})


ALONE = {
    "suppression": 'method = "suppression", minimum_units = 3, zeros = "protected"',
    "ranges": 'method = "ranges", classes = [0, 1, 5, 10, 20], minimum_units = 3, zeros = "protected"',
}


def with_one_business_in_a_place(folder: Path) -> None:
    """Place D has a business in sector 1, and no other."""
    write_records(folder)
    register = pq.read_table(folder / "records.parquet")
    places = register["place"].to_pylist()
    kept = [place != "D" for place in places]
    kept[places.index("D")] = True
    pq.write_table(register.filter(pa.array(kept)), folder / "records.parquet")


@pytest.mark.parametrize("method", ALONE)
def test_who_is_alone_in_a_sum_knows_its_zeros_beforehand_and_nothing_is_refused_for_it(
    tmp_path: Path, method: str
) -> None:
    with_one_business_in_a_place(tmp_path)
    table = 'number; count = "records"; by = ["place", "sector"]; totals = true'
    release = load(release_file(tmp_path, [table], rules=ALONE[method]))
    run(release)
    found = pq.read_table(tmp_path / "release_bundle/tables/number.parquet").to_pylist()
    assert {row["value"] for row in found if row["place"] == "D"} == {None}
    (together,) = assess(release).together
    assert not [one for one in together.attacks if "closer than the rules allow" in one.attack and one.successes]


def test_a_zero_that_somebody_can_work_out_from_what_is_published_is_still_protected(tmp_path: Path) -> None:
    with_one_business_in_a_place(tmp_path)
    sectors = 'sectors; count = "records"; by = ["sector"]; where = { place = ["D"] }'
    places = 'places; count = "records"; by = ["place"]'
    rules = 'method = "suppression", zeros = "protected"'
    run(load(release_file(tmp_path, [places], rules=rules)))
    with pytest.raises(SfumatoError, match="whatever is withheld"):  # one business in D, who knows that it is in 1
        run(load(release_file(tmp_path, [sectors], name="later", rules=rules, about='earlier = ["release.toml"]')))
