"""Rows with the keys of their units: the same answers, whichever way the rows came to the engine."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.engine.factors import unit_keys
from sfumato.engine.records import connect_records
from sfumato.frame.records import Microdata
from sfumato.statistics.totals.question import ContributorQuestion
from sfumato.statistics.totals.tabulate import prepare
from tests.engine.businesses import (
    KEYED,
    RECORDS,
    SECRET,
    SURVEY,
    Columns,
    by_hand,
    cell,
    counted_plainly,
    microdata,
    question,
)

WAYS: dict[str, dict[str, Any]] = {
    "lent to the engine": {"few": True},
    "copied into the engine": {},
    "put in order by the engine": {"ordered": True},
}
ASKED = (question("state", "industry", margins=True), question("state", measure=None), question("industry", most=1))


def profitable() -> Columns:
    """The businesses as if none had lost anything."""
    columns = by_hand()
    return columns | {"profit": [abs(profit) for profit in columns["profit"]]}


def answers_plainly(data: Microdata, columns: Columns, *asked: ContributorQuestion, **way: Any) -> list[str]:
    """Compare answers with a plain count; the columns of the rows are returned."""
    with connect_records(data) as opened:
        prepared = prepare(data, opened, SECRET, **way)
        for each in asked:
            cells = prepared.answer(each)
            for codes, expected in counted_plainly(data, columns, each).items():
                assert cell(cells, *codes) == expected, codes
        return list(prepared.rows.columns)


@pytest.mark.parametrize("memory", [None, 1])
@pytest.mark.parametrize("way", WAYS)
def test_records_answer_alike_whichever_way_they_came(tmp_path: Path, way: str, memory: int | None) -> None:
    for columns, records in ((profitable(), RECORDS), (by_hand(), RECORDS), (by_hand(), SURVEY)):
        data = microdata(tmp_path, columns, records=records, memory=memory)
        answers_plainly(data, columns, *ASKED, **WAYS[way])


def test_units_named_by_text_answer_as_well(tmp_path: Path) -> None:
    columns = profitable()
    columns["business"] = [f"business {name}" for name in columns["business"]]
    answers_plainly(microdata(tmp_path, columns, records=RECORDS), columns, *ASKED, few=True)


def test_units_need_numbers_only_where_key_and_value_do_not_say_everything(tmp_path: Path) -> None:
    def numbered(columns: Columns, records: dict[str, Any]) -> bool:
        return "_unit_0" in answers_plainly(microdata(tmp_path, columns, records=records), columns, *ASKED, few=True)

    assert not numbered(profitable(), RECORDS)
    assert numbered(by_hand(), RECORDS), "a loss and a profit of one size differ"
    assert numbered(profitable(), RECORDS | {"weight": "weight"})
    assert numbered(profitable(), RECORDS | {"consent": "asked"})


@pytest.mark.parametrize("largest", [2**31 - 3, 2**31 - 2, 2**31, 2**60])
def test_values_are_ranked_however_large_they_are(tmp_path: Path, largest: int) -> None:
    columns = profitable()
    columns["profit"] = [largest, largest - 1, largest, 0, 1, largest, 2]
    answers_plainly(microdata(tmp_path, columns, records=RECORDS), columns, *ASKED, few=True)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, 1)])
def test_units_that_share_a_key_and_the_size_of_their_value_are_ranked_alike_every_way(
    tmp_path: Path, way: str, signs: tuple[int, int]
) -> None:
    keys = unit_keys(pa.array(range(200_000)), level="business", keyed=KEYED).keys
    order = np.argsort(keys)
    (first, *_) = np.flatnonzero(np.diff(keys[order].astype(np.int64)) == 0)
    columns = profitable()
    columns["business"][:2] = [int(name) for name in order[first : first + 2]]
    columns["profit"][:2] = [90 * sign for sign in signs]
    assert columns["state"][0] == columns["state"][1], "both are in one cell, or this shows nothing"
    data = microdata(tmp_path, columns, records=RECORDS)
    answers_plainly(data, columns, *(question("state", most=most) for most in (1, 2, 3)), **WAYS[way])
