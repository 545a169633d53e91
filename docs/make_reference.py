"""Regenerate the reference in docs/release-file.md and docs/cli.md from the code: python docs/make_reference.py."""

import inspect
import re
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import typer.main
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from sfumato.cli import app, command, known_commands
from sfumato.cli.usage import EXIT_CODES
from sfumato.description import UNWRITTEN
from sfumato.frame.attributes import Attribute, Measure
from sfumato.frame.codelist_files import Columns
from sfumato.frame.codelists import Codelist, CodelistFile
from sfumato.frame.data import Frame
from sfumato.frame.jobs import Jobs
from sfumato.frame.records import Microdata, Records, Replicates
from sfumato.frame.sources import Unit
from sfumato.geography.read import MapFile
from sfumato.privacy.guarantee import plain
from sfumato.sections import About, Budget, BudgetWindow, LiveSettings, Series
from sfumato.statistics.cube.section import ControlSection, CubeSection, RulesSection, SamplingSection
from sfumato.statistics.panel.section import Degrees, Flow, Graph
from sfumato.statistics.people.section import Bins, Predict, Quantiles
from sfumato.statistics.table import Protection, Table
from sfumato.statistics.totals.section import GrowthOf

DOCS = Path(__file__).parent
SECTIONS: dict[str, type[BaseModel]] = {
    "release": About,
    "budget": Budget,
    "window": BudgetWindow,
    "data": Frame,
    "microdata": Microdata,
    "records": Records,
    "replicates": Replicates,
    "jobs": Jobs,
    "units": Unit,
    "attribute": Attribute,
    "codelist": CodelistFile,
    "columns": Columns,
    "map": MapFile,
    "measure": Measure,
    "table": Table,
    "flow": Flow,
    "graph": Graph,
    "degrees": Degrees,
    "growth": GrowthOf,
    "predict": Predict,
    "quantiles": Quantiles,
    "bins": Bins,
    "cube": CubeSection,
    "control": ControlSection,
    "sampling": SamplingSection,
    "rules": RulesSection,
    "series": Series,
    "live": LiveSettings,
    "protect": Protection,
}
"""The marker of each section in docs/release-file.md, and the model it documents."""


def release_file(page: str) -> str:
    """The page about the release file with every table of keys made anew."""
    for marker, model in SECTIONS.items():
        page = _between(page, marker, "\n".join(_keys(model)))
    return page


def cli(page: str) -> str:
    """The page about the command line with the reference made anew."""
    codes = [f"| {code} | {word} | {meaning} |" for code, (word, meaning) in EXIT_CODES.items()]
    page = _between(page, "exit codes", "\n".join(["| | in a word | meaning |", "|---|---|---|", *codes]))
    return _between(page, "commands", "\n".join(_commands(typer.main.get_command(app), "sfumato")).strip())


PAGES = {DOCS / "release-file.md": release_file, DOCS / "cli.md": cli}


def main() -> None:
    """Write every page whose generated parts have changed."""
    for path, regenerate in PAGES.items():
        before = path.read_text(encoding="utf-8")
        after = regenerate(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
        sys.stdout.write(f"{path.name}: {'unchanged' if after == before else 'written'}\n")


def _between(page: str, marker: str, content: str) -> str:
    begin, end = f"<!-- generated: {marker} -->", "<!-- end -->"
    pattern = re.compile(rf"({re.escape(begin)}\n).*?(\n{re.escape(end)})", re.DOTALL)
    page, times = pattern.subn(lambda found: f"{found[1]}\n{content}\n{found[2]}", page)
    if times != 1:
        raise ValueError(f"the page needs the marker {begin!r} and after it {end!r}, once")
    return page


def _keys(model: type[BaseModel]) -> Iterator[str]:
    yield from ("| key | type | default | meaning |", "|---|---|---|---|")
    for name, field in model.model_fields.items():
        if name not in UNWRITTEN:
            yield f"| `{field.alias or name}` | {_type(field.annotation)} | {_default(field)} | {field.description} |"


def _default(field: FieldInfo) -> str:
    value = field.default
    if field.default_factory is not None:
        return "as described"
    if value is PydanticUndefined:
        return "required"
    if value is None or value in ((), {}, ""):
        return "none"
    if isinstance(value, Fraction):
        return f"`{plain(value)}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`" if isinstance(value, int) else f'`"{value}"`'


def _type(annotation: Any) -> str:
    """A type in the words of someone who writes TOML."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " or ".join(f'`"{word}"`' for word in inside)
    if origin in (tuple, dict):
        return f"list of {_type(inside[0])}" if origin is tuple else f"table: name = {_type(inside[1])}"
    if origin is Annotated or NoneType in inside:
        return _type(inside[0])  # an optional value is written value | None
    words = {
        str: "text",
        int: "whole number",
        bool: "true or false",
        Path: "path",
        Fraction: "number",
        Codelist: "list, or table of text",
    }
    if annotation in words:
        return words[annotation]
    marker = next(name for name, model in SECTIONS.items() if model is annotation)
    return f"[{marker}](#{marker})"


def _commands(described: Any, name: str) -> Iterator[str]:
    """A command and those below it; only what every version of the parser calls by the same name is used."""
    yield from (f"## {name}", "", inspect.cleandoc(described.help or ""), "")
    below = getattr(described, "commands", {}) or {
        word: command(word) for word in known_commands() if name == "sfumato"
    }
    arguments = [p for p in described.params if p.param_type_name == "argument"]
    options = [p for p in described.params if p.param_type_name == "option" and p.name != "help"]
    places = [(p.metavar or p.name.upper(), p.required) for p in arguments]
    words = [name, *(word if needed else f"[{word}]" for word, needed in places), *(["[OPTIONS]"] if options else [])]
    if below:
        below_name = described.subcommand_metavar.removesuffix(" [ARGS]...")
        words.append(f"[{below_name}]" if described.invoke_without_command else below_name)
    yield from ("```text", " ".join(words), "```", "")
    if arguments or options:
        yield from ("| | default | meaning |", "|---|---|---|")
        for argument in arguments:
            needed = "required" if argument.required else "none"
            yield f"| `{argument.metavar or argument.name.upper()}` | {needed} | {argument.help} |"
        for option in options:
            flags = " / ".join(f"`{flag}`" for flag in (*option.opts, *option.secondary_opts))
            yield f"| {flags} | {_option_default(option)} | {option.help} |"
        yield ""
    for word, inner in below.items():
        yield from _commands(inner, f"{name} {word}")


def _option_default(option: Any) -> str:
    default = option.default
    if option.required:
        return "required"
    if isinstance(default, bool):
        return f"`{option.opts[0] if default else option.secondary_opts[0]}`" if option.secondary_opts else "off"
    if default is None or default == "":
        return "none"
    return f"`{getattr(default, 'value', default)}`"


if __name__ == "__main__":
    main()
