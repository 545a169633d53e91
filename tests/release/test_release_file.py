"""A release file with a mistake is refused with its line, what was expected and what to do."""

from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.checking import check
from sfumato.description import line_of
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.release import load

GOOD = """\
[release]
title = "Jobs"
period = "2025"
budget = { alpha = 0.1, epsilon = 4.0 }

[data]
jobs = { path = "jobs.parquet", worker = "worker" }
workplaces = { path = "workplaces.parquet", key = "workplace" }
workers = { path = "workers.parquet", key = "worker" }
public = ["place", "industry"]

[data.attributes.sex]
codes = { F = "Female", M = "Male" }

[[table]]
name = "by_place"
count = "jobs"
by = ["place"]
protect = { epsilon = 2.0 }

[[table]]
name = "by_industry"
count = "jobs"
by = ["industry"]
protect = { method = "smooth-pareto", epsilon = "1/3", alpha = 0.2 }
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "release.toml"
    path.write_text(text)
    return path


def test_numbers_are_the_fractions_that_were_typed(tmp_path: Path) -> None:
    release = load(written(tmp_path, GOOD))
    assert release.about.budget.alpha == Fraction(1, 10)
    assert release.tables[1].protect.epsilon == Fraction(1, 3)


def test_paths_are_relative_to_the_release_file(tmp_path: Path) -> None:
    release = load(written(tmp_path, GOOD))
    assert release.ledger == tmp_path / "ledger.sqlite"
    assert release.bundle == tmp_path / "bundle"
    assert release.frame.folder == tmp_path


MISTAKES = {
    "misspelt key": ('period = "2025"', 'periode = "2025"', "line 3", "did you mean 'period'?"),
    "misspelt key in a table": ('by = ["place"]', 'bye = ["place"]', "line 18", "did you mean 'by'?"),
    "misspelt key in protect": ("protect = { epsilon = 2.0 }", "protect = { epsilom = 2.0 }", "line 19", "'epsilon'"),
    "missing title": ('title = "Jobs"\n', "", "line 1", "the key 'title'"),
    "misspelt method": ("epsilon = 2.0", 'method = "supression", p = 15', "line 19", "did you mean 'suppression'?"),
    "missing epsilon": ("protect = { epsilon = 2.0 }", "protect = { }", "line 19", "the key 'epsilon'"),
    "not a number": ("epsilon = 2.0", 'epsilon = "two"', "line 19", "a number such as 0.1"),
    "true is no number": ("epsilon = 2.0", "epsilon = true", "line 19", "a number is needed"),
    "budget of zero": ("epsilon = 4.0", "epsilon = 0", "line 4", "a number above 0"),
    "unknown engine": ("[data]", '[data]\nengine = "oracle"', "line 7", "'duckdb' or 'spark'"),
    "unknown attribute": ('by = ["place"]', 'by = ["town"]', "table 'by_place'", "an attribute: place, industry, sex"),
    "attribute twice": ('by = ["place"]', 'by = ["place", "place"]', "line 18", "'place' is listed twice"),
    "no attribute": ('by = ["place"]', "by = []", "line 15", "at least one attribute"),
    "two tables of one name": ('"by_industry"', '"by_place"', "line 1", "two tables are called 'by_place'"),
    "table name as a path": ('"by_place"', '"../by_place"', "line 16", "lower-case letters"),
    "count of something else": (
        'count = "jobs"\nby = ["place"]',
        'count = "cats"\nby = ["place"]',
        "line 17",
        "'jobs'",
    ),
    "confidential attribute without codes": (
        'codes = { F = "Female", M = "Male" }',
        "",
        "line 6",
        "cannot be read off",
    ),
    "code twice": ('codes = { F = "Female", M = "Male" }', 'codes = ["F", "F"]', "line 13", "repeated: F"),
    "no code": ('codes = { F = "Female", M = "Male" }', "codes = []", "line 13", "at least one code"),
    "reserved name": (
        "[data.attributes.sex]",
        "[data.attributes.value]",
        "line 12",
        "a column of every published table",
    ),
    "workers without a link": (', worker = "worker"', "", "line 6", "the column that names the worker"),
    "no tables": (GOOD[GOOD.index("[[table]]") :], "", "line 1", "the key 'table'"),
    "empty title": ('title = "Jobs"', 'title = " "', "line 2", "not empty"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_reported_with_its_line_and_remedy(tmp_path: Path, case: str) -> None:
    old, new, line, said = MISTAKES[case]
    assert old in GOOD
    with pytest.raises(ReleaseError) as error:
        load(written(tmp_path, GOOD.replace(old, new, 1)))
    assert line in error.value.where
    assert said in str(error.value)


def test_a_file_that_is_not_toml_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="line 2"):
        load(written(tmp_path, "[release]\ntitle = \n"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"nowhere\.toml"):
        load(tmp_path / "nowhere.toml")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("epsilon = 2.0", 'method = "smooth-paretto", epsilon = 2.0', "did you mean 'smooth-pareto'?"),
        ("epsilon = 2.0", "epsilon = 0.05", "ln(1"),
        ("epsilon = 2.0", "epsilon = 2.0, alpha = -1", "alpha"),
        ('by = ["place"]', 'by = ["place"]\nwhere = { place = ["Nowhere"] }', "codes of place, such as A, B"),
        ('by = ["place"]', 'by = ["place"]\nwhere = { place = [] }', "found:    none"),
    ],
)
def test_a_table_that_cannot_be_protected_is_refused_by_name(tiny: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(SfumatoError, match="by_place") as error:
        check(load(written(tiny, GOOD.replace(old, new, 1))))
    assert said in str(error.value)


def test_a_codelist_file_is_read_and_its_mistakes_are_named(tiny: Path) -> None:
    with_file = GOOD.replace('codes = { F = "Female", M = "Male" }', 'codelist = "sex.csv"')
    release = load(written(tiny, with_file))
    (tiny / "sex.csv").write_text("code,label\nF,Female\nM,Male\n")
    codelist = release.frame.declared_codes("sex")
    assert codelist is not None
    assert codelist.labels == ("Female", "Male")
    for content, said in (("code\nF\nF\n", "repeated: F"), ("sex\nF\n", "the columns sex"), ("", "no lines")):
        (tiny / "sex.csv").write_text(content)
        with pytest.raises(ReleaseError, match=said):
            release.frame.declared_codes("sex")
    (tiny / "sex.csv").unlink()
    with pytest.raises(ReleaseError, match=r"sex\.csv"):
        release.frame.declared_codes("sex")


def test_a_table_too_large_for_memory_is_refused_before_any_charge(tiny: Path) -> None:
    many = ", ".join(f'"{i}"' for i in range(8_000))
    text = GOOD.replace('codes = { F = "Female", M = "Male" }', f"codes = [{many}]")
    text = text.replace("[[table]]", f"[data.attributes.age]\ncodes = [{many}]\n\n[[table]]", 1)
    text = text.replace('by = ["place"]', 'by = ["sex", "age"]').replace("epsilon = 2.0", "epsilon = 1000000")
    with pytest.raises(ReleaseError, match="at most 20,000,000 worker cells in a workplace cell"):
        check(load(written(tiny, text)))


def test_the_line_of_a_key_in_an_inline_table_is_found() -> None:
    assert line_of(GOOD, ("table", 1, "protect", "alpha")) == 25
    assert line_of(GOOD, ("data", "attributes", "sex", "codes")) == 13


@pytest.mark.parametrize("text", ['folder = "x"\n' + GOOD, GOOD.replace("[data]", '[data]\nfolder = "x"')])
def test_the_folder_cannot_be_set_by_the_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(ReleaseError, match="paths are relative to this file"):
        load(written(tmp_path, text))


@pytest.mark.parametrize(("old", "new"), [("[[table]]", "[[tables]]"), ("[data]", "[frame]"), ("[release]", "[about]")])
def test_only_the_documented_names_of_sections_are_known(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(ReleaseError, match=f"one of the keys release, data, table(.|\n)*'{new.strip('[]')}'"):
        load(written(tmp_path, GOOD.replace(old, new)))


def test_a_misspelt_key_below_a_named_attribute_is_recognised(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="did you mean 'codes'"):
        load(written(tmp_path, GOOD.replace("codes = {", "code = {")))
