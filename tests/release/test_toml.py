"""Mistakes in a release file are named by line, with what to write instead; other files are named for what they are."""

from pathlib import Path

import pytest

from sfumato.errors import ReleaseError
from sfumato.release import load
from tests.release.test_release_file import GOOD, written

LINE = 'period = "2025"'


def said(path: Path) -> ReleaseError:
    with pytest.raises(ReleaseError) as caught:
        load(path)
    return caught.value


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_files_from_any_editor_are_read(mark: str, ends: str, tmp_path: Path) -> None:
    file = written(tmp_path, GOOD)
    file.write_bytes((mark + GOOD.replace(" = ", "\t=  ").replace("\n", ends)).encode())
    assert load(file).about.title == load(written(tmp_path, GOOD)).about.title


@pytest.mark.parametrize(("coding", "word"), [("latin-1", "'ä' in Latin-1"), ("cp1252", "'ä'"), ("utf-16", "UTF-16")])
def test_an_encoding_that_is_not_utf_8_is_named_with_its_line(coding: str, word: str, tmp_path: Path) -> None:
    file = written(tmp_path, GOOD)
    file.write_bytes('[release]\ntitle = "Beschäftigte"\n'.encode(coding))
    error = said(file)
    assert word in error.found
    assert "UTF-8" in error.do
    assert coding == "utf-16" or "line 2" in error.found


@pytest.mark.parametrize(
    ("mistake", "do"),
    [
        ("period = “2025”", 'replace “ ” by straight quotes "'),
        ("period = „2025“", "straight quotes"),
        ("period\u00a0= '2025'", "type the blanks of this line again"),
        ('period: "2025"', "write = where the line has :"),
        ('period = "2025', 'add the missing "'),
        ("period = 2025-Q1", 'write period = "2025-Q1"'),
        ("period = Winter", 'write period = "Winter"'),
        ('period = "2025"\nperiod = "2026"', "remove one of the two lines"),
        ("period = '2025'\nreconcile = True", "write true or false"),
        ("period = '2025'\nx = 0,1", "write numbers with a point"),
        ('ledger = "C:\\data\\l.sqlite"', "C:/data/l.sqlite"),
        ("budget = {\nalpha = 1 }", "write it on one line"),
        ("budget = { alpha = 1, }", "write it on one line"),
        ("by = ['place'\nx = 1", "add the missing ]"),
        ("[release]", "join the two"),
        ("[table]\nx = 1\n[[table]]\nx = 2", "write [[table]] where the file has [table]"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_what_to_write(mistake: str, do: str, tmp_path: Path) -> None:
    file = tmp_path / "release.toml"
    file.write_text(f'[release]\ntitle = "Jobs"\n{mistake}\n', encoding="utf-8")
    error = said(file)
    assert do in error.do
    assert f"{file}, line " in error.where
    assert int(error.where.rsplit(" ", 1)[1]) in range(3, 7)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ('period = "2025"', "period = 2025", 'a text between quotes, such as "2025"'),
        (GOOD[GOOD.index("[[table]]") :], "[table]\nname = 'x'", "a section with two brackets, such as [[table]]"),
        ("[[table]]", "[[tabel]]", "table"),
    ],
)
def test_a_value_of_the_wrong_kind_is_answered_in_the_words_of_the_file(
    before: str, after: str, expected: str, tmp_path: Path
) -> None:
    assert before in GOOD
    assert expected in said(written(tmp_path, GOOD.replace(before, after))).expected


def test_a_missing_file_is_answered_with_those_near_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"  # beside tmp_path are folders of other tests
    folder.mkdir()
    file = written(folder, GOOD)
    for wrong in (folder / "relaese.toml", folder, folder / "nowhere" / "release.toml", folder.parent / "x"):
        assert str(file.name) in said(wrong).do
    (folder / "other.toml").touch()
    near = said(folder / "relase.toml").do
    assert near.index("release.toml") < near.index("other.toml")
    empty = folder / "empty"
    empty.mkdir()
    file.unlink()
    (folder / "other.toml").unlink()
    assert said(empty / "release.toml").found == "no such file or folder"


def test_a_file_that_is_no_release_file_is_not_quoted(tmp_path: Path) -> None:
    secret = "Meyer & Sons;4711"
    for name in ("jobs.csv", "jobs.txt", "jobs.toml", "jobs"):
        file = tmp_path / name
        file.write_text(f"employer;jobs\n{secret}\n")
        assert "Meyer" not in str(said(file))
        assert "employer" not in str(said(file))
    (tmp_path / "ledger.sqlite").write_bytes(b"SQLite format 3\0\xff")
    assert "as a ledger is" in said(tmp_path / "ledger.sqlite").found
    (tmp_path / "jobs.parquet").write_bytes(b"PAR1\xff")
    assert said(tmp_path / "jobs.parquet").found == "a data file (Parquet)"


def test_a_bundle_is_told_from_other_folders(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    for name in ("manifest.json", "structure.json"):
        (bundle / name).write_text("{}")
    assert "`sfumato run` published" in said(bundle).found
    assert "sfumato query" in said(bundle).do
