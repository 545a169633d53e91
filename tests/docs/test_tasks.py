"""A page about a task is complete: from an empty folder to a published release, with nothing but what it shows."""

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyreadstat
import pytest

from sfumato.checking import check
from sfumato.errors import ReleaseError
from sfumato.release import load
from sfumato.running import run
from tests.docs.blocks import ROOT, Block, blocks, run_block

TASKS = sorted(page for page in (ROOT / "docs/tasks").glob("*.md") if page.name != "README.md")


def release_files(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.kind == "toml"]


@pytest.mark.slow
@pytest.mark.parametrize("page", TASKS, ids=lambda page: page.stem)
def test_a_task_is_done_from_an_empty_folder(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for block in blocks(page):
        run_block(block, namespace)
    for block in release_files(page):
        folder = tmp_path / Path(block.note.removeprefix("file: ")).parent
        named = re.search(r'^bundle = "(.+)"$', block.text, flags=re.MULTILINE)
        assert (folder / (named[1] if named else "bundle") / "manifest.json").exists(), block.where


@pytest.mark.parametrize("page", TASKS, ids=lambda page: page.stem)
def test_every_release_file_of_a_task_is_complete_and_run(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert release_files(page), "a task without a release file"
    for block in release_files(page):
        file = block.note.removeprefix("file: ")
        assert block.note.startswith("file: "), f"{block.where}: which file is it?"
        assert f"`{file}`" in text, f"{block.where}: a reader cannot see that it is {file}"
        for section in ("[release]", "[data]", "\nprotect = "):
            assert section in block.text or (section == "\nprotect = " and "[[cube]]" in block.text), block.where
        for command in ("check", "run"):
            assert re.search(
                rf"^\$? ?sfumato {command} {re.escape(file)}(?: --period .+)?$", text, flags=re.MULTILINE
            ), block.where


@pytest.mark.parametrize("page", TASKS, ids=lambda page: page.stem)
def test_the_pages_of_tasks_have_one_shape(page: Path) -> None:
    headings = re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [heading for heading in headings if heading in SHAPE] == SHAPE


SHAPE = ["The method, and why", "Try it", "What readers see", "Then, with your own data"]


# Files of other formats, which pages name and cannot make without further packages.


def _semicolons(rows: pd.DataFrame, file: Path) -> None:
    rows.to_csv(file, sep=";", decimal=",", index=False, encoding="latin-1")


WRITERS: dict[str, Callable[[pd.DataFrame, Path], object]] = {
    "csv": _semicolons,
    "dta": pyreadstat.write_dta,
    "parquet": lambda rows, file: rows.to_parquet(file),
    "sav": pyreadstat.write_sav,
    "xlsx": lambda rows, file: rows.to_excel(file, index=False),
}


@pytest.mark.slow
@pytest.mark.parametrize("ending", WRITERS)
def test_a_panel_in_another_format_gives_the_same_tables(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks(ROOT / "docs/tasks/panel.md"):
        if block.kind != "console":
            run_block(block, {})
    first = run(load(tmp_path / "release.toml"))
    with sqlite3.connect("panel.sqlite") as database:
        for table in ("employers", "workers", "histories"):
            WRITERS[ending](pd.read_sql(f"SELECT * FROM {table}", database), tmp_path / f"{table}.{ending}")
    text = (tmp_path / "release.toml").read_text(encoding="utf-8")
    text = re.sub(r'path = "panel.sqlite"(?:, |\n)table = "(\w+)"', rf'path = "\1.{ending}"', text)
    assert "sqlite" not in text
    (tmp_path / "other.toml").write_text(
        text.replace("[release]", f'[release]\nbundle = "other"\nledger = "other.{ending}"'), encoding="utf-8"
    )
    second = run(load(tmp_path / "other.toml"))
    for table in ("workforce", "workforce_by_sex"):
        published = [(bundle / f"tables/{table}.csv").read_bytes() for bundle in (first.bundle, second.bundle)]
        assert published[0] == published[1]


@pytest.mark.slow
def test_the_period_of_a_panel_has_words_and_is_no_attribute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks(ROOT / "docs/tasks/panel.md"):
        if block.kind != "console":
            run_block(block, {})
    text = (tmp_path / "release.toml").read_text(encoding="utf-8")
    asked = [table.digest("") for table in check(load(tmp_path / "release.toml")).plan.tables]
    labelled = tmp_path / "labelled.toml"
    labelled.write_text(
        text.replace('period = "quarter"', 'period = "quarter"\nperiod_label = "Reference date"'), "utf-8"
    )
    plan = check(load(labelled)).plan
    assert plan.label("quarter") == "Reference date"
    assert [table.digest("") for table in plan.tables] == asked  # words change no number
    for described in ('{ label = "Date" }', '{ codes = ["2024-Q1"] }'):
        labelled.write_text(text.replace("[data.attributes]", f"[data.attributes]\nquarter = {described}"), "utf-8")
        with pytest.raises(ReleaseError, match="period_label"):
            load(labelled)
