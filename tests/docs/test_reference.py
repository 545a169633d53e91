"""The reference is generated and up to date, and nothing a user can set is left undocumented."""

import importlib.util
from types import ModuleType
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from sfumato.frame.codelists import Codelist
from sfumato.release import Release
from sfumato.statistics.registry import METHODS, is_exact, options_of
from tests.docs.blocks import ROOT

EXACT = {name for name in METHODS if is_exact(name)}


def generator() -> ModuleType:
    specification = importlib.util.spec_from_file_location("make_reference", ROOT / "docs/make_reference.py")
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def models(annotation: Any) -> set[type[BaseModel]]:
    """The models inside a type, and those inside their fields."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}.union(*(models(field.annotation) for field in annotation.model_fields.values()))
    return set().union(*map(models, get_args(annotation)))


@pytest.mark.parametrize("page", ["release-file.md", "cli.md"])
def test_the_reference_is_up_to_date(page: str) -> None:
    path = ROOT / "docs" / page
    text = path.read_text(encoding="utf-8")
    regenerate = {made.name: function for made, function in generator().PAGES.items()}[page]
    assert regenerate(text) == text, f"docs/{page} is behind the program: run make docs"


def test_every_key_of_a_release_file_has_a_description() -> None:
    lacking = [
        f"{model.__name__}.{name}"
        for model in models(Release) - {Codelist}
        for name, field in model.model_fields.items()
        if not field.description
    ]
    assert not lacking, f"give a Field(description=…) to {', '.join(sorted(lacking))}"


def test_every_section_of_a_release_file_is_in_the_reference() -> None:
    assert set(generator().SECTIONS.values()) == models(Release) - {Codelist, Release}


def test_every_method_of_true_numbers_is_in_the_table_of_methods_with_all_its_options() -> None:
    page = (ROOT / "docs/release-file.md").read_text(encoding="utf-8")
    rows = {name: line for line in page.splitlines() for name in EXACT if line.startswith(f"| [`{name}`](methods/")}
    assert rows.keys() == EXACT
    rules = options_of("suppression") & options_of("rounding")
    for name, row in rows.items():
        lacking = [one for one in options_of(name) if one not in rules and f"`{one}`" not in row]
        assert not lacking, f"{name}: {', '.join(lacking)}"
    assert all(f"`{rule}`" in rows["suppression"] for rule in rules)
