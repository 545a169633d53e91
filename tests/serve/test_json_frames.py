"""The text that answers about one table share is kept; what each has of its own is not."""

import json
from typing import Any

import pytest

from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.model import ServedTable, TableAnswer
from sfumato.serve.core.selection import select
from sfumato.serve.formats import json_stat
from sfumato.serve.formats.json_stat import dataset, write_json_stat
from sfumato.serve.formats.layout import Options


def answers(table: ServedTable) -> list[TableAnswer]:
    """Answers that share dimensions and metrics, and some that do not."""
    first = table.dimensions[0]
    asked: list[dict[str, list[str]]] = [{d.name: ["*"] for d in table.dimensions}]
    asked += [{**asked[0], first.name: [code]} for code in first.codes[:3]]
    asked += [{**one, "contents": [table.metrics[0].code]} for one in asked]
    return [table.answer(select(table, one)) for one in asked]


def whole(answer: TableAnswer, options: Options) -> dict[str, Any]:
    """A dataset without anything kept."""
    content = dataset(answer.table, answer.axes, answer.metrics, options, notes=answer.notes)
    content["value"] = answer.values()
    if symbols := answer.symbols():
        content["status"] = {str(place): symbol for place, symbol in symbols.items()}
    return content


@pytest.mark.parametrize("name", ["people", "turnover_by_state_industry", "jobs_by_place_industry", "indicators"])
def test_every_answer_has_its_own_codes_figures_and_status(name: str, catalogue: Catalogue) -> None:
    for options in (Options(), Options(url="https://elsewhere.example")):
        for answer in answers(catalogue[name]):
            found = json.loads(write_json_stat(answer, options))
            told = found["extension"].pop("status", {"label": {}})["label"]
            symbols = [found["note"].pop(len(answer.notes))] if told else []
            assert all(f"{part} " in symbols[0] for symbol in told for part in symbol.split())
            assert found == whole(answer, options)
            assert set(told) == set(found.get("status", {}).values())


def test_what_is_kept_of_a_table_is_bounded(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stat, "_MOST_FRAMES", 2)
    table = catalogue["people"]
    for answer in answers(table):
        for number in range(5):
            write_json_stat(answer, Options(source=f"source {number}"))
    assert len(json_stat._FRAMES[table]) <= 2
