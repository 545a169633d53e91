"""The rows of anything with a guarantee come from the release file: no record adds one, and none is shown."""

from pathlib import Path

import pytest

from sfumato.checking import check
from sfumato.errors import DataError, ReleaseError
from sfumato.keys import new_key
from sfumato.release import load
from sfumato.running import run
from tests.conftest import write
from tests.release.people import EARNINGS, EMPLOYMENT, HEAD, PERCENTILES, SCORES, people, written
from tests.statistics.cube import survey

YEAR, TITLE, SECTOR = (
    'year = { codes = ["2001", "2002"] }\n',
    'title = { codes = ["faculty", "staff"] }\n',
    'sector = { codes = ["a", "b", "c"] }\n',
)
BY_SECTOR = SCORES.replace('"title", "sector"', '"sector"')
TABLES = {
    "counts": (EMPLOYMENT, SECTOR),
    "counts by period": (EMPLOYMENT, YEAR),
    "means of mose": (EARNINGS, TITLE),
    "predictions of mose": (SCORES, SECTOR),
    "predictions of noisy regression": (SCORES.replace("mose", "noisy-regression"), SECTOR),
    "predictions of theil-sen": (SCORES.replace("mose", "theil-sen"), SECTOR),
    "percentiles": (PERCENTILES, TITLE),
    "the period of a filter": (SCORES, YEAR),
    "a filter": (EMPLOYMENT.replace('by = ["title", ', 'where = { title = "staff" }\nby = ['), TITLE),
    "classes": (BY_SECTOR, TITLE),
}


def undeclared(line: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Leave the codes of an attribute to the records."""
    return (line, ""), ("\n[data.attributes]", f'public = ["{line.partition(" ")[0]}"]\n\n[data.attributes]')


@pytest.mark.parametrize("case", TABLES)
def test_a_table_with_a_guarantee_declares_the_codes_of_every_attribute_it_uses(tmp_path: Path, case: str) -> None:
    table, line = TABLES[case]
    name = line.partition(" ")[0]
    with pytest.raises(ReleaseError, match=f"attribute '{name}'\n.*its codes in the release file") as error:
        run(load(written(tmp_path, HEAD + table, *undeclared(line))))
    assert f"give {name} its `codes` or a `codelist`" in error.value.do
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.parametrize("name", survey.CODES)
def test_a_cube_declares_the_codes_of_all_its_attributes(tmp_path: Path, name: str) -> None:
    (line,) = (line + "\n" for line in survey.RELEASE.splitlines() if line.startswith(f"{name} = "))
    with pytest.raises(ReleaseError, match=f"cube 'people', attribute '{name}'"):
        run(load(survey.release(tmp_path, *undeclared(line))))
    assert not (tmp_path / "ledger.sqlite").exists()


def test_attributes_that_no_table_with_a_guarantee_uses_need_no_codes(tmp_path: Path) -> None:
    line = 'place = { codes = ["north", "south"] }\n'
    assert run(load(written(tmp_path, HEAD + EMPLOYMENT, *undeclared(line)))).charged == ("employment",)


def test_a_record_with_another_code_is_refused_before_any_charge_and_not_shown(tmp_path: Path) -> None:
    columns = people()
    write(tmp_path / "people.parquet", columns | {"sector": [*columns["sector"][:-1], "ZZ"]})
    public = ("\n[data.attributes]", '\npublic = ["sector"]\n[data.attributes]')
    with pytest.raises(DataError, match="1 rows with 1 other values") as error:
        run(load(written(tmp_path, HEAD + EMPLOYMENT, public)))
    assert "ZZ" not in str(error.value)
    assert not (tmp_path / "ledger.sqlite").exists()


def test_keyed_tables_may_read_codes_off_the_records_and_ask_the_same_question_as_with_declared_ones(
    tmp_path: Path,
) -> None:
    new_key(tmp_path / "sfumato.key")
    table = '[[table]]\nname = "pay"\ntotal = "pay"\nby = ["region"]\nprotect = { method = "top-contributors" }\n'
    key = ('period = "2025"\n', 'period = "2025"\nkey = "sfumato.key"\n')
    line, ascending = 'region = { codes = ["N", "E", "S", "W"] }\n', 'region = { codes = ["E", "N", "S", "W"] }\n'
    found = []
    for changes in (undeclared(line), [(line, ascending)]):
        plan = check(load(survey.release(tmp_path, key, *changes, text=survey.RELEASE + table))).plan
        found.append(plan.tables[0].digest("data"))
    assert found[0] == found[1]
