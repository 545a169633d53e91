"""A measure by its name and by what makes its values: two meanings of one name are two measures."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

_BARE = re.compile(r"[\w.-]+( [\w.-]+)*")
"""Columns that are written without quotation marks."""
_TYPED = re.compile(r'\s*(?P<name>[^\W_][\w -]*?)\s*(\[(?P<rule>(?:[^"\]]|"(?:[^"\\]|\\.)*")*)\])?\s*')
_PART = re.compile(r'\s*(?P<key>\w+)\s*=\s*(?P<value>"(?:[^"\\]|\\.)*"|[^",=]*?)\s*(?:,|$)')
_PLAIN: Final[Mapping[str, Any]] = {"factor": 1, "fractions": "refuse"}
"""What changes nothing, and is left out."""


def measured(name: str, rule: Mapping[str, Any]) -> str:
    """A measure with what makes its values; the name alone where it is a column as it is.

    >>> measured("earnings", {}), measured("earnings", {"factor": 100, "column": "pay2"})
    ('earnings', 'earnings[column=pay2, factor=100]')
    >>> measured("earnings", {"column": "pay, gross"})
    'earnings[column="pay, gross"]'
    """
    return f"{name}[{', '.join(f'{key}={_spelled(rule[key])}' for key in sorted(rule))}]" if rule else name


JOBS = "jobs"
"""What is counted where nothing else is added up: a measure that is 1 for each job."""
_POPULATIONS: Final[Mapping[str, str]] = {
    "beginning": "jobs at the beginning of a period",
    "end": "jobs at the end of a period",
    "full_quarter": "jobs held the whole period",
}
"""Populations of a panel in words; that of all jobs is the workforce itself, and limits nothing more."""


def population_words(population: str) -> str:
    """The jobs of a population of a panel, in words.

    >>> population_words("end"), population_words("any")
    ('jobs at the end of a period', 'all jobs with earnings in a period')
    """
    return _POPULATIONS.get(population, "all jobs with earnings in a period")


def jobs_of(population: str) -> str:
    """The number of jobs of a population of a panel, as a measure.

    >>> jobs_of("beginning")
    'jobs[population=beginning]'
    """
    return measured(JOBS, {"population": population})


def population_of(measure: str) -> str | None:
    """The population of a panel whose jobs a measure is of, in words; None where it is of all jobs.

    >>> population_of("earnings[factor=100, population=end]"), population_of("earnings")
    ('jobs at the end of a period', None)
    """
    found = _TYPED.fullmatch(measure)
    parts = {} if found is None else {part["key"]: part["value"] for part in _PART.finditer(found["rule"] or "")}
    return _POPULATIONS.get(parts.get("population", ""))


def _spelled(value: Any) -> str:
    text = str(value)
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def read_measured(text: str) -> str:
    """A measure that somebody typed, as `measured` writes it; ValueError where it is none.

    >>> read_measured("earnings[factor=100,column=pay2]"), read_measured("earnings[column=earnings, factor=1]")
    ('earnings[column=pay2, factor=100]', 'earnings')
    """
    found = _TYPED.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no measure")
    name, typed = found["name"], found["rule"] or ""
    rule: dict[str, Any] = {}
    while typed.strip():
        part = _PART.match(typed)
        if part is None or part["key"] in rule:
            raise ValueError(f"{typed!r} is no column, factor, fractions, empty, population or unit, each once")
        rule[part["key"]] = _read(part["key"], part["value"])
        typed = typed[part.end() :]
    plain = {"column": name, **_PLAIN}
    return measured(name, {key: value for key, value in rule.items() if plain.get(key) != value})


def _read(key: str, value: str) -> Any:
    """What a key of a measure is set to."""
    said = str(json.loads(value)) if value.startswith('"') else value
    match key:
        case "column" | "unit" if said:
            return said
        case "factor" if int(said) >= 1:
            return int(said)
        case "fractions" if said in ("refuse", "round"):
            return said
        case "empty":
            return int(said)
        case "population" if said in _POPULATIONS:
            return said
    raise ValueError(f"{key} = {value} makes no values of a measure")
