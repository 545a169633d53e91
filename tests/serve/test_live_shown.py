"""The guard of ad-hoc tables looks at the cells that are shown, and at no other: the same cells get the same answer."""

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.live import GuardedSession, open_guarded
from sfumato.release import load
from sfumato.serve.core.model import ServedTable, TableAnswer
from sfumato.serve.core.selection import everything
from sfumato.serve.core.status import APART, NUMBERS
from sfumato.serve.live.answer_table import answer_table, few_units_apart, live_tables
from sfumato.serve.live.question import LiveQuestion
from tests.live.test_live_tables import one_less
from tests.serve.live_serving import live_serving, of_businesses
from tests.serve.test_live import rows

TABLE = "live_total_employees"
Cell = tuple[str, ...]
Codes = Mapping[str, tuple[str, ...]]
Units = tuple[frozenset[int], ...]


@dataclass(frozen=True, kw_only=True)
class Records:
    """Records that are asked with and without a guard, and which units are in which cell."""

    guarded: dict[str, GuardedSession]
    frame: pd.DataFrame
    folder: Path
    table: ServedTable
    """Of totals of employees, by any attributes."""
    _units: dict[tuple[tuple[str, str], ...], Units] = field(default_factory=dict)
    _stores: Iterator[int] = field(default_factory=lambda: iter(range(1_000_000)))

    def fresh(self, guard: str) -> GuardedSession:
        """The same records, of which nothing was answered yet."""
        live, path = self.guarded[guard], self.folder / f"{next(self._stores)}/live.cells"
        return replace(live, guard=replace(live.guard, path=path, _read={}))

    def units(self, cell: Mapping[str, str]) -> Units:
        """The businesses and the enterprises in a cell."""
        codes = tuple((name, code) for name, code in cell.items() if code != "total")
        if codes not in self._units:
            inside = self.frame
            for name, code in codes:
                inside = inside[inside[name] == code]
            self._units[codes] = tuple(frozenset(inside[level]) for level in ("business", "enterprise"))
        return self._units[codes]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Records]:
    folder = tmp_path_factory.mktemp("shown")
    path = of_businesses(folder / "business", guard="off")
    text = path.read_text(encoding="utf-8")
    paths = {guard: path.with_name(f"{guard}.toml") for guard in ("off", "refuse", "flag")}
    for guard, one in paths.items():
        one.write_text(text.replace('guard = "off"', f'guard = "{guard}"'), encoding="utf-8")
    frame = pq.read_table(path.parent / "businesses.parquet").to_pandas()
    frame = frame.astype({"state": str, "industry": str, "size": str})
    with (
        open_guarded(load(paths["off"])) as off,
        open_guarded(load(paths["refuse"])) as refuse,
        open_guarded(load(paths["flag"])) as flag,
    ):
        guarded = {"off": off, "refuse": refuse, "flag": flag}
        table = next(table for table in live_tables(off) if table.id == TABLE)
        yield Records(guarded=guarded, frame=frame, folder=folder / "stores", table=table)


def asked(records: Records, live: GuardedSession, codes: Codes) -> TableAnswer:
    """The values of some codes, as PxWebApi asks for them."""
    table = replace(records.table, source=replace(records.table.source, live=live))  # type: ignore[type-var]
    places = (
        tuple(sorted(dimension.places[code] for code in codes[dimension.name])) if dimension.name in codes else None
        for dimension in table.dimensions
    )
    return table.answer(replace(everything(table), places=tuple(places), metrics=(0,)))


def cells(answer: TableAnswer) -> dict[Cell, Any]:
    """By its codes the value of every cell, None where there is none, and whether it is marked for its neighbour."""
    column = answer.columns[0]
    size = column.values.size
    missing = [False] * size if column.missing is None else column.missing.ravel().tolist()
    status = [0] * size if column.status is None else column.status.ravel().tolist()
    marks = {NUMBERS[text] for text in APART.values()}
    keys = product(*(dimension.codes for dimension in answer.dimensions))
    found = zip(column.values.ravel().tolist(), missing, status, strict=True)
    values = ((None if lacks else value, one in marks) for value, lacks, one in found)
    return dict(zip(keys, values, strict=True))


FEW = 2
"""Cells of so many units are not published."""


def near(some: "Shown", other: "Shown") -> bool:
    """Whether two cells differ by few units or by none, though they are about different codes."""
    both = some.codes.keys() & other.codes.keys()
    if some.codes == other.codes or any(some.codes[name] != other.codes[name] for name in both):
        return False  # the same cell, or none that shares a record
    levels = list(zip(some.units, other.units, strict=True))
    if len(both) == min(len(some.codes), len(other.codes)):  # one lies within the other
        return any(abs(len(ours) - len(theirs)) <= FEW for ours, theirs in levels)
    if len(levels[0][0] ^ levels[0][1]) <= FEW:
        return True
    return any(len(o ^ t) <= 1 and (len(o ^ t) == 0 or abs(len(o) - len(t)) == 1) for o, t in levels)


CODES = {
    "state": ("NSW", "QLD", "TAS", "NT", "ACT", "total"),
    "industry": ("A", "B", "C", "D", "E", "total"),
    "size": ("0-4", "5-19", "20-199", "200+", "total"),
}


@st.composite
def chosen(draw: st.DrawFn) -> Codes:
    """Some codes of some attributes, their totals among them or not."""
    names = draw(st.sets(st.sampled_from([*CODES]), min_size=1))
    some = {name: st.lists(st.sampled_from(CODES[name]), min_size=1, unique=True) for name in CODES if name in names}
    return {name: tuple(draw(codes)) for name, codes in some.items()}


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A cell that has a value: what it is about, but for totals, and its businesses and enterprises."""

    codes: Mapping[str, str]
    units: Units


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a question may tell without a guard, and which of its cells are next to others."""

    values: dict[Cell, int | None]
    shown: dict[Cell, Shown]
    """The cells that have a value."""
    near: set[Cell]

    @classmethod
    def of(cls, records: Records, codes: Codes, given_before: list[Shown]) -> "Expected":
        """Every cell that is shown, compared with all others that are and with all that were given."""
        names = [name for name in CODES if name in codes]
        values = {cell: value for cell, (value, _) in cells(asked(records, records.guarded["off"], codes)).items()}
        shown = {}
        for cell, value in values.items():
            about = {name: code for name, code in zip(names, cell, strict=True) if code != "total"}
            if value is not None:
                shown[cell] = Shown(codes=about, units=records.units(about))
        others, known = [*shown.values(), *given_before], [one.codes for one in given_before]
        new = {cell: one for cell, one in shown.items() if one.codes not in known}
        close = {cell for cell, one in new.items() if any(near(one, other) for other in others)}
        return cls(values=values, shown=shown, near=close)


@pytest.mark.slow  # the same for marks, below, is in every round
@settings(max_examples=15)
@given(questions=st.lists(chosen(), min_size=1, max_size=3))
def test_a_cell_is_withheld_for_one_that_is_shown_or_was_given_and_for_no_other(
    records: Records, questions: list[Codes]
) -> None:
    live = records.fresh("refuse")
    given_before: list[Shown] = []
    for codes in questions:
        expected = Expected.of(records, codes, given_before)
        assert cells(asked(records, live, codes)) == {
            cell: (None if cell in expected.near else value, False) for cell, value in expected.values.items()
        }
        given_before += [one for cell, one in expected.shown.items() if cell not in expected.near]


@pytest.mark.slow
@settings(max_examples=15)
@given(codes=chosen())
def test_a_cell_is_marked_for_one_that_is_shown_and_for_no_other(records: Records, codes: Codes) -> None:
    expected = Expected.of(records, codes, [])
    answer = asked(records, records.fresh("flag"), codes)
    assert cells(answer) == {cell: (value, cell in expected.near) for cell, value in expected.values.items()}
    assert [note for note in answer.notes if "by few units" in note] == [*few_units_apart(len(expected.near))]


@pytest.mark.slow
@pytest.mark.parametrize("guard", ["refuse", "flag"])
@pytest.mark.parametrize(
    ("codes", "totals"),
    [({}, True), ({}, False), ({"size": ("20-199", "200+")}, False), ({"state": ("NT", "ACT")}, False)],
)
def test_the_same_cells_get_the_same_answer_at_every_address(
    records: Records, guard: str, codes: Codes, totals: bool
) -> None:
    def programs(live: GuardedSession) -> dict[Cell, Any]:
        question = LiveQuestion(
            statistic="total", measure="employees", by=[*CODES], where={name: [*some] for name, some in codes.items()},
            totals=totals,
        )  # fmt: skip
        statistic = question.plan(live)
        table = answer_table(live, statistic, live.answer(statistic))
        return cells(table.answer(replace(everything(table), metrics=(0,))))

    def pxweb(live: GuardedSession) -> dict[Cell, Any]:
        every = {name: (*codelist.codes, *["total"] * totals) for name, codelist in live.codelists.items()}
        return cells(asked(records, live, {**every, **codes}))

    one, other = records.fresh(guard), records.fresh(guard)
    assert programs(one) == pxweb(one) == pxweb(other) == programs(other)


@pytest.mark.slow
def test_cells_that_are_not_shown_are_neither_given_nor_remembered(records: Records) -> None:
    live = records.fresh("refuse")
    statistic = live.plan(by=("state", "size"), where={}, totals=True, total="employees")
    answer = live.answer(statistic, shown={"state": ("NSW", "total"), "size": ("5-19",)}).to_pylist()
    assert {(row["state"], row["size"]) for row in answer if row["value"] is not None} == {
        ("NSW", "5-19"),
        ("total", "5-19"),
    }
    remembered = [json.loads(line) for line in live.guard.file.read_text().splitlines()]
    assert [len(b64decode(line["positions"])) // 8 for line in remembered] == [2], "the two cells that were shown"


@pytest.mark.slow
def test_what_pxwebapi_did_not_show_withholds_nothing(tmp_path: Path) -> None:
    release = of_businesses(tmp_path / "business")
    # The release publishes nothing by state: what is remembered of states was asked for.
    heading, *tables, live = release.read_text(encoding="utf-8").replace("[live]", "[[table]][live]").split("[[table]]")
    by_industry = next(table for table in tables if "profit_by_industry_size" in table)
    release.write_text("[[table]]".join((heading, by_industry)) + live, encoding="utf-8")
    where = one_less(release.parent)
    other = "NSW" if where["state"] != ["NSW"] else "VIC"
    question = {"statistic": "total", "measure": "employees", "by": ["state"], "where": where}
    path, shown = f"/live/api/v2/tables/{TABLE}/data", {"valueCodes[state]": f"{other},total"}
    with live_serving(release) as server, server.client() as client:
        given = rows(client.get(path, params=shown | {"valueCodes[contents]": "value"}))
        assert None not in given.values()
        assert None not in rows(server.ask(question)).values()
        next_to_it = rows(client.get(path, params={"valueCodes[state]": "*", "valueCodes[contents]": "value"}))
        assert next_to_it[(where["state"][0],)] is None, "what was shown is remembered"
