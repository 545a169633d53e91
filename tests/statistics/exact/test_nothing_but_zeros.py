"""Tables of true numbers in which there is nothing: nobody has any of the measure."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.checking import check
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
