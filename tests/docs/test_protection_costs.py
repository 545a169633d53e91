"""The page "what each protection costs" is what the command makes of the synthetic economies, today as well."""

import importlib.util
import re
from types import ModuleType
from typing import Any

import pytest

from tests.docs.blocks import ROOT


def generator() -> ModuleType:
    specification = importlib.util.spec_from_file_location("made", ROOT / "docs/make_protection_costs.py")
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def candidate(label: str, **figures: Any) -> dict[str, Any]:
    told = {"withheld": 0.5, "value_withheld": 0.04, "usable": 0.25, "median_relative": None, "error_ratio": 0.001}
    attacks = [{"rate": 0.5}, {"rate": None}]
    return {
        "candidate": label,
        "method": "rounding",
        "epsilon": None,
        "tables": [{"table": "jobs_by_place_industry", "loss_ratio": 1.234, "attacks": attacks, **told, **figures}],
    }


def test_every_part_of_the_page_is_made_and_nothing_else_of_it_changes() -> None:
    made, page = generator(), (generator().PAGE).read_text(encoding="utf-8")
    assert re.findall(r"<!-- made: (\w+) -->", page) == list(made.PARTS)
    assert page.count("<!-- end -->") == len(made.PARTS)
    by_hand = made._PART.sub("", page)
    empty = {part.file: {"candidates": []} for part in made.PARTS.values()}
    assert made._PART.sub("", made.with_figures(page, empty)) == by_hand


def test_figures_are_shown_in_as_many_digits_as_they_bear() -> None:
    made = generator()
    found = {"economy/release.toml": {"candidates": [candidate("as written"), candidate("other", usable=1.0)]}}
    lines = made._table(made.PARTS["jobs"], found).splitlines()
    assert lines[2] == "| as written: rounding | 50 % | 4.0 % | **25 %** | – | under 0.01 | 1.23 | 50 % | – |"
    assert "**100 %**" in lines[3]


@pytest.mark.slow
def test_the_page_and_its_picture_are_what_the_command_makes() -> None:
    made = generator()
    page, found = made.PAGE.read_text(encoding="utf-8"), made.compared()
    assert made.with_figures(page, found) == page, "run make docs"
    assert made.picture(found) == made.PICTURE.read_text(encoding="utf-8"), "run make docs"
