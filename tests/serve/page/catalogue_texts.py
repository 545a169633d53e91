"""Every text that the page says, as templates and code have it: what catalogues of languages translate."""

import ast
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import sfumato.serve
from sfumato.charts import maps, plots
from sfumato.method import LARGEST
from sfumato.serve.core import model, status
from sfumato.serve.core.bundle import _KINDS, _OF_MEANS, _OF_TRUE_NUMBERS
from sfumato.serve.page import changes, charts, language, question, site, table_page, view
from sfumato.serve.page.table_page import DOWNLOADS, FILTERS

SERVE = Path(sfumato.serve.__file__).parent
TEMPLATES = sorted(SERVE.glob("*/templates/*.html"))
_SAID = re.compile(r'\bsay\(\s*"((?:[^"\\]|\\.)*)"')
SAYING = ("say", "said", "Said")
"""What code calls to say something: pages their texts, errors what readers are told of them."""
_ALSO = re.compile(r'"((?:[^"\\]|\\.)+)"')


def in_templates() -> Iterator[str]:
    for file in TEMPLATES:
        text = file.read_text(encoding="utf-8")
        yield from _SAID.findall(text)
        for chosen in re.findall(r"say\(\{(.*?)\}\[", text):  # one of several texts
            yield from _ALSO.findall(re.sub(r'"\w+": ', "", chosen))
    yield from ("Total of {measure}", "Mean of {measure}")


def nouns() -> set[str]:
    found: set[str] = set()
    for file in TEMPLATES:
        found |= set(re.findall(r'say\.count\([^"]*?"([^"]+)"', file.read_text(encoding="utf-8")))
    for file in SERVE.glob("*/*.py"):
        for call in calls(file, "count"):
            texts = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            found |= set(texts) if "say" in ast.unparse(call.func) else set()
    return found | {"row", "column", "figure"}


def calls(file: Path, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called == name:
                yield node


def in_code() -> Iterator[str]:
    others = (SERVE.parent / "live", Path(plots.__file__).parent)
    files = (*SERVE.glob("*.py"), *SERVE.glob("*/*.py"), *(file for one in others for file in one.glob("*.py")))
    for file, name in product(files, SAYING):
        for call in calls(file, name):
            for node in ast.walk(call.args[0]) if call.args else ():
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def in_tables() -> Iterator[str]:
    for words in (question.CHARTS, question.PERCENTAGES, question.ORDERS, question.ERRORS):
        yield from words.values()
    for words in (question.UNITS, question.DIGITS, question.UNSURE, FILTERS):
        yield from words.values()
    yield from (hint for _, _, hint in DOWNLOADS)
    yield from (*site._SENTENCES.values(), model._NONE_HERE, model._OTHER_GROUPS)
    yield from (*site._TITLES.values(), site._OTHERS, "All tables", "Sign in", "Ad-hoc tables", "Steward")
    yield from ("Chart", "Show", "Row order", "Unit", "Errors", "Digits", "Too uncertain figures")
    for one in (*status.STATUSES[1:], *status.RELIABILITY[1:], status.NO_FIGURE, status.BEYOND):
        if one is not status.STATUSES[status.NUMBERS[status.APART["mostly perturbation"]]]:
            yield from (one.text, one.meaning)
    yield from (label for of in (_KINDS, _OF_MEANS, _OF_TRUE_NUMBERS) for _, label in of.values())
    yield from ("Value", "Standard error of the protection", "Error", "Standard error", "Difference", "total", "mean")
    yield from ("thousands", "millions", "million", "billion", "trillion")
    yield from (plots.OPEN, charts._UNCERTAIN, *maps.HATCHED.values(), maps.NOT_PUBLISHED, maps.NOT_CHOSEN)
    yield from (changes._INDEPENDENT, changes._FIRST, changes.NO_PERIODS, view._TOTAL)
    yield from (view._NOT_PARTS, view._OF_TOTALS, view._OF_SUMS, view._ERRORS)
    yield from (LARGEST, "the largest establishment of its workplace cell", "its count", "the cell's count")
    yield from (*language.MADE, "Records")
    yield from ("In words", "BibTeX", "For a page of your own")
    yield from (
        "In Excel: Data, Get Data, From Other Sources, Blank Query, Advanced Editor. Refresh brings new figures.",
    )


def texts() -> list[str]:
    """All of them, once each."""
    assert table_page
    found = (*in_templates(), *in_code(), *in_tables())
    return list(dict.fromkeys(text.replace('\\"', '"') for text in found if text.strip()))
