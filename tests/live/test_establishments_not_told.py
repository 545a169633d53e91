"""Ad-hoc counts of jobs tell no more of where there are establishments than the tables of their release do."""

from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from sfumato.bundle.statement import compared, statement
from sfumato.checking import check
from sfumato.errors import ReleaseError
from sfumato.live import open_charged
from sfumato.release import load
from sfumato.serve.live.answer_table import answer_table
from tests.release.test_establishments_not_told import MORE, SILENT
from tests.release.test_release_file import written

LIVE = "\n[live]\nbudget = 4\n"


def answer(folder: Path, text: str) -> pa.Table:
    with open_charged(load(written(folder, text))) as live:
        return live.ask(by=("place", "industry"), epsilon=Fraction(1))


@pytest.mark.parametrize("text", [SILENT + LIVE, SILENT + MORE + LIVE + "establishments = false\n"])
def test_an_answer_without_the_number_has_a_row_for_every_combination(tiny: Path, text: str) -> None:
    table = answer(tiny, text)
    assert "establishments" not in table.column_names
    assert len(table) == 6
    assert table["high"].null_count == 0
    assert min(table["high"].to_pylist()) > 0  # no zero is exact


@pytest.mark.parametrize("text", [SILENT + MORE + LIVE, SILENT + LIVE + "establishments = true\n"])
def test_answers_that_tell_the_number_are_said_to_by_check_and_statement(tiny: Path, text: str) -> None:
    assert "establishments" in answer(tiny, text).column_names
    plan = check(load(written(tiny, text))).plan
    assert any("establishments = false under [live]" in note for note in plan.operator_notes())
    assert "Answers to ad-hoc questions tell it" in statement(plan)
    assert all(comparison.about != "establishment" for comparison in compared(plan))


def test_an_answer_does_not_claim_to_hide_what_published_tables_tell(tiny: Path) -> None:
    with open_charged(load(written(tiny, SILENT + MORE + LIVE + "establishments = false\n"))) as live:
        statistic = live.plan(by=("place", "industry"), epsilon=Fraction(1))
        notes = answer_table(live, statistic, live.answer(statistic)).notes
    assert any("published tables do" in note and "told" in note for note in notes)


def test_a_silent_release_needs_no_words_about_its_answers(tiny: Path) -> None:
    plan = check(load(written(tiny, SILENT + LIVE))).plan
    assert plan.operator_notes() == []
    assert "ad-hoc" not in statement(plan)


def test_codes_that_would_be_read_off_workplaces_are_refused_when_the_data_are_opened(tiny: Path) -> None:
    text = SILENT.replace('by = ["place", "industry"]', 'by = ["place"]').replace(
        'industry = { codes = ["11", "62"] }\n', ""
    )
    with pytest.raises(ReleaseError, match="read off the workplaces"):
        answer(tiny, text + LIVE)
