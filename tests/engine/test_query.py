"""Queries in SQL: whatever columns, codes and tables are called, on both engines."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest

from sfumato.engine.connect import open_tables
from sfumato.engine.query import Engine, is_text, texts, times, total
from tests.conftest import tiny_frame
from tests.docs.blocks import ROOT

HOSTILE = ('a"b', "x'y; --", "back`quote", "select", "${env:HOME}", "back\\slash", "näme", "two words")
"""Names of columns, and codes, that mean something to a parser of SQL."""


@pytest.fixture
def open_engine(tiny: Path, engine: str) -> Iterator[Engine]:
    with open_tables(tiny_frame(tiny, engine=engine)) as (opened, _, _):
        yield opened


def test_any_name_and_any_code_is_only_a_text(open_engine: Engine) -> None:
    rows = open_engine.lend(pa.table({name: list(HOSTILE) for name in HOSTILE}))
    for name in HOSTILE:
        chosen = rows.where(open_engine.among(open_engine.q(name), [name])).select(**texts(rows, HOSTILE))
        assert chosen.fetch().to_pylist() == [dict.fromkeys(HOSTILE, name)], name
        assert rows.group([name], _rows="count(*)").number("max(_rows)") == 1


def test_rows_are_grouped_joined_and_chosen_as_by_hand(open_engine: Engine) -> None:
    left = open_engine.lend(pa.table({"_key": [1, 1, 2, 3], "_jobs": [10, 20, 30, 40]}))
    right = open_engine.lend(pa.table({"_key": [1, 2, 4], "_name": ["one", "two", "four"]}))
    sums = left.group(["_key"], _jobs=total("_jobs"), _many=times("_jobs > 15"))
    assert sorted(map(tuple, (row.values() for row in sums.fetch().to_pylist()))) == [
        (1, 30, 1),
        (2, 30, 1),
        (3, 40, 1),
    ]
    assert sums.join(right, ["_key"]).number() == 2
    assert sums.join(right, ["_key"], "left").where("_name IS NULL").number() == 1
    assert sums.join(right, ["_key"], "semi").number("sum(_key)") == 3
    assert sums.join(right, ["_key"], "anti").number("sum(_key)") == 3
    assert left.union(left).distinct().number() == 4
    assert open_engine.among("_key", []) == "false"


def test_what_is_lent_or_kept_for_a_while_is_forgotten(open_engine: Engine) -> None:
    with open_engine.lending():
        lent = open_engine.lend(pa.table({"_a": [1, 2]}))
        with lent.kept() as kept:
            assert kept.number("sum(_a)") == 3
        with pytest.raises(Exception, match=r"(?i)kept|exist|found"):
            kept.number()
    with pytest.raises(Exception, match=r"(?i)lent|exist|found"):
        lent.number()


def test_what_is_kept_may_outlive_what_it_was_made_of(open_engine: Engine) -> None:
    with ExitStack() as stack:
        with open_engine.lending():
            kept = stack.enter_context(open_engine.lend(pa.table({"_a": [1, 2]})).kept())
            assert kept.number("sum(_a)") == 3
        assert kept.number() == 2


def test_no_bars_are_drawn_among_what_commands_print(tiny: Path) -> None:
    """DuckDB draws them where there is no script."""
    program = f"""
from pathlib import Path
from sfumato.engine.connect import open_tables
from tests.conftest import tiny_frame
with open_tables(tiny_frame(Path({str(tiny)!r}))) as (engine, _, _):
    print(engine.con.execute("SELECT current_setting('enable_progress_bar')").fetchone())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "(False,)\n"


def test_a_query_in_the_middle_of_another_is_refused_instead_of_ending_it(tiny: Path) -> None:
    with open_tables(tiny_frame(tiny)) as (duckdb, tables, _):
        with duckdb.batches(tables["jobs"], 2), pytest.raises(RuntimeError, match="still being fetched"):
            tables["jobs"].number()
        assert tables["jobs"].number() == 8


def test_a_uuid_is_no_text(tiny: Path) -> None:
    with open_tables(tiny_frame(tiny)) as (duckdb, _, _):
        duckdb.con.execute("CREATE VIEW odd AS SELECT uuid() AS a")
        assert not is_text(duckdb.table("odd").types["a"])
