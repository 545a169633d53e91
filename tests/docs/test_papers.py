"""The pages about the papers are whole and not stale: each item has a row, and what a row names is there."""

import ast
import importlib.util
import re
import shlex
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
import typer.main
from pydantic import BaseModel

from sfumato.cli import app, command, known_commands
from sfumato.release import Release
from sfumato.statistics.registry import METHODS, options_of
from sfumato.statistics.table import Protection
from tests.docs.blocks import ROOT

PAPERS = ROOT / "docs/papers"
HEAD = ["in the paper", "what it describes", "here", "figure"]
NOT_HERE = "not here: "


def numbered(kind: str, *numbers: object) -> set[str]:
    return {f"{kind} {number}" for number in numbers}


ITEMS = {
    "haney2017": numbered("Figure", *range(1, 7))
    | numbered("Table", 1, 2)
    | numbered("Algorithm", 1, 2, 3)
    | numbered("Definition", 2.1, 2.2, 2.3, 2.4, 2.5, 4.1, 4.2, 4.3, 7.1, 7.2, 7.3, 7.4, 8.1, 8.2, 8.3, 9.1)
    | numbered("Theorem", 2.1, 7.1, 7.2, 7.3, 7.4, 7.5, 8.1, 8.3, 8.4)
    | numbered("Lemma", 8.2, 8.5, 8.6, 8.7, 8.8, 9.1, 9.2, 9.3)
    | numbered("Workload", 1, 2, 3)
    | numbered("Ranking", 1, 2)
    | numbered("Section", 3.1, 3.2, 5.1, 5.2, 6, 7.2, 7.3, 10.1, 11),
    "li2020": numbered("Figure", 1) | numbered("Table", 1, 2, 3, 4) | numbered("Section", 3.1, 3.2, 3.3, 3.4),
    "abowd2016": numbered("Figure", *range(1, 6))
    | numbered("Table", 1)
    | numbered("Section", 2.1, 2.2, 3, 4, 5, 6.1, 6.2, 6.3, 7),
    "schmutte2020": numbered("Algorithm", 1, 2, 3)
    | {"Opportunity Atlas", "MOSE", "LODES", "Employee reports", "PSEO", "VEO"},
    "chipperfield2019": numbered("Table", *range(1, 8))
    | numbered("Figure", "1A", "1B", "1C", "1D")
    | numbered("Attack", 1, 2, 3)
    | numbered("Approach", "I", "II", "III"),
}
"""What each paper numbers, or the systems that it presents: none of it may lack a row."""


def generator() -> ModuleType:
    specification = importlib.util.spec_from_file_location("make_papers", ROOT / "docs/make_papers.py")
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def rows(paper: str) -> list[list[str]]:
    """The rows of all tables of a page that have its head, as texts of their columns."""
    found, inside = [], False
    for line in (PAPERS / f"{paper}.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        inside = bool(cells) and (inside or cells == HEAD)
        if inside and cells != HEAD and not set("".join(cells)) <= set("-:"):
            found.append(cells)
    return found


def test_every_paper_has_a_page() -> None:
    assert {page.stem for page in PAPERS.glob("*.md")} == set(ITEMS)


@pytest.mark.parametrize("paper", ITEMS)
def test_every_item_of_a_paper_has_a_row(paper: str) -> None:
    named = ", ".join(row[0] for row in rows(paper))
    missing = [item for item in ITEMS[paper] if not re.search(rf"\b{re.escape(item)}(?![\w.]*\w)", named)]
    assert not missing, f"docs/papers/{paper}.md has no row for {', '.join(sorted(missing))}"


@pytest.mark.parametrize("paper", ITEMS)
def test_what_a_row_names_is_there(paper: str) -> None:
    wrong = []
    for row in rows(paper):
        assert len(row) == len(HEAD), row
        named = re.findall(r"`([^`]+)`", row[2])
        if not row[2].startswith(NOT_HERE) and not any(_is_reference(word) for word in named):
            wrong.append(f"{row[0]}: nothing in {row[2]!r} can be looked up")
        wrong += [f"{row[0]}: {word}" for word in named + re.findall(r"`([^`]+)`", row[3]) if _is_missing(word)]
    assert not wrong, f"docs/papers/{paper}.md: " + "; ".join(wrong)


@pytest.mark.parametrize("paper", ITEMS)
def test_a_row_without_a_figure_says_so(paper: str) -> None:
    empty = [row[0] for row in rows(paper) if not row[3] or not (re.search(r"\d|`", row[3]) or row[3] in ("-", "–"))]
    assert not empty, f"docs/papers/{paper}.md: {', '.join(empty)}"


@pytest.mark.slow
@pytest.mark.parametrize("paper", ITEMS)
def test_the_figures_are_those_of_the_evaluation(paper: str) -> None:
    made, page = generator(), (PAPERS / f"{paper}.md").read_text(encoding="utf-8")
    assert made.figures(page), "a page without a figure"
    assert made.with_figures(page, made.evaluated(paper)) == page, "run make docs"


def test_a_figure_is_taken_from_the_row_that_is_meant() -> None:
    measured = [{"quantity": "loss", "b": 0.3, "ours": 0.1349}, {"quantity": "loss", "b": 0.4, "ours": None}]
    page = "| 1.4% <!-- quantity=loss b=0.30 --> of .2 <!-- quantity=loss b=0.3 -->, 9 <!-- quantity=loss b=0.4 --> |"
    assert generator().with_figures(page, measured) == (
        "| 13.5% <!-- quantity=loss b=0.30 --> of .1 <!-- quantity=loss b=0.3 -->, none <!-- quantity=loss b=0.4 --> |"
    )


@pytest.mark.parametrize("keys", ["quantity=loss", "quantity=gain"])
def test_a_figure_that_names_no_row_or_several_is_refused(keys: str) -> None:
    measured = [{"quantity": "loss", "b": 0.3, "ours": 1}, {"quantity": "loss", "b": 0.4, "ours": 2}]
    with pytest.raises(ValueError, match="expected one row"):
        generator().with_figures(f"1 <!-- {keys} -->", measured)


@pytest.mark.parametrize(
    "reference",
    [
        "src/sfumato/nowhere.py",
        "tests/docs/test_papers.py::test_that_is_not_there",
        "sfumato nothing",
        "sfumato check --nothing",
        "[[table]] nothing",
        '[[table]] method = "nothing"',
        "[nothing] name",
    ],
)
def test_a_reference_to_nothing_is_noticed(reference: str) -> None:
    assert _is_reference(reference)
    assert _is_missing(reference)


@pytest.mark.parametrize(
    "reference",
    [
        "src/sfumato/statistic.py::Statistic",
        "sfumato tune --help",
        "[[cube]] cap",
        '[[table]] method = "smooth-pareto"',
        "[budget] epsilon",
    ],
)
def test_a_reference_to_something_is_found(reference: str) -> None:
    assert _is_reference(reference)
    assert not _is_missing(reference)


# What can be looked up: files and what they define, commands, keys of a release file.


def _is_reference(word: str) -> bool:
    return word.startswith(("src/", "docs/", "tests/", "examples/", "bench/", "sfumato ", "["))


def _is_missing(word: str) -> bool:
    if word.startswith("sfumato "):
        return not _is_command(shlex.split(word)[1:])
    if word.startswith("["):
        return not _is_key(word)
    if not _is_reference(word):
        return False
    path, _, name = word.partition("::")
    if not any(ROOT.glob(path)):
        return True
    return bool(name) and name.partition("[")[0] not in _defined(ROOT / path)


@cache
def _defined(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return frozenset(named | {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})


def _is_command(words: list[str]) -> bool:
    found: Any = typer.main.get_command(app)
    below = {word: command(word) for word in known_commands()}
    for place, word in enumerate(words):
        if word.startswith("-"):
            flags = {"--help"}.union(*((*option.opts, *option.secondary_opts) for option in found.params))
            return all(word.partition("=")[0] in flags for word in words[place:] if word.startswith("-"))
        if below:
            if word not in below:
                return False
            found = below[word]
            below = getattr(found, "commands", {})
    return True


def _is_key(word: str) -> bool:
    """Whether a release file has a key in a section, or in one below it; a method that is named has to exist."""
    written = re.fullmatch(r"\[+(?P<section>[\w.]+)\]+ (?P<key>\w+)(?: = (?P<value>.+))?", word)
    if written is None:
        return False
    if written["key"] == "method" and written["value"]:
        return written["value"].strip('"') in METHODS
    models = _models(Release)
    for name in written["section"].split("."):
        models = {inner for model in models for inner in _below(model, name)}
    below = {inner for model in models for inner in {model} | _models(model)}
    keys = {field.alias or name for model in below for name, field in model.model_fields.items()}
    options = {key for name in METHODS for key in options_of(name)} if Protection in below else set()
    return written["key"] in keys | options


def _below(model: type[BaseModel], name: str) -> set[type[BaseModel]]:
    fields = {field.alias or key: field for key, field in model.model_fields.items()}
    return _models(fields[name].annotation) if name in fields else set()


def _models(annotation: Any) -> set[type[BaseModel]]:
    """The models inside a type, and for a model those inside its fields."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}.union(*(_models(field.annotation) for field in annotation.model_fields.values()))
    return set().union(*map(_models, get_args(annotation)))
