"""What columns a question is made of, and by which rules, is part of its name: no answer is given to another one."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato.checking import _declared_codes
from sfumato.frame.data import Data
from sfumato.plan import Plan, make_plan
from tests.identity.every_kind import FILES, planned

RULES: dict[str, Any] = {
    "column": "another",
    "digits": 1,
    "classes": {"few": Fraction(0), "many": Fraction(10)},
    "recode": {"A": ("x", "y"), "B": ("*",)},
    "empty": "unknown",
}
OF_MEASURES: dict[str, Any] = {"column": "another", "factor": 100, "fractions": "round", "empty": 0}
OF_SOURCES: dict[str, Any] = {
    "jobs": {
        "jobs": {"workplace": "another", "worker": "another"},
        "workplaces": {"key": "another"},
        "workers": {"key": "another"},
    },
    "pay": {"jobs": {"workplace": "another", "worker": "another"}, "workplaces": {"key": "another"}},
    "panel": {"jobs": {"workplace": "another", "worker": "another", "earnings": "another"}},
    "at_periods": {
        "jobs": {"workplace": "another", "worker": "another", "earnings": "another", "population": "any"},
        "workplaces": {"key": "another"},
    },
    "businesses": {"records": {"unit": "another", "levels": ("another",), "weight": "another", "consent": "another"}},
    "people": {"records": {"unit": "another"}},
    "people_sums": {"records": {"unit": "another"}},
    "histories": {
        "jobs": {"workplace": "another", "worker": "another"},
        "workplaces": {"key": "another"},
    },
    "cubes": {"records": {"unit": "another", "weight": "another"}},
    "months": {"records": {"unit": "another", "weight": "another"}},
    "values": {"records": {"unit": "another", "levels": ("another",), "weight": "another"}},
    "true_jobs": {"jobs": {"workplace": "another", "worker": "another"}, "workplaces": {"key": "another"}},
    "true_records": {"records": {"unit": "another", "levels": ("another",), "weight": "another", "consent": "another"}},
}


def again(plan: Plan, data: Data) -> dict[str, str]:
    """The names of all questions with other data described."""
    other = make_plan(plan.release.model_copy(update={"data": data}), _declared_codes(plan.release))
    return {one.name: one.digest("da7a") for one in other.statistics}


def described(data: Data, part: str, name: str, rule: str, value: Any) -> Data:
    """Data in which one attribute or measure is made otherwise."""
    all_of = getattr(data, part)
    return data.model_copy(update={part: {**all_of, name: all_of[name].model_copy(update={rule: value})}})


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_every_rule_that_makes_an_attribute_or_measure_is_in_the_name_of_all_that_look_at_it(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(tmp_path, FILES[file], monkeypatch)
    names, data = {one.name: one.digest("da7a") for one in plan.statistics}, plan.release.data
    tried = 0
    for part, rules in (("attributes", RULES), ("measures", OF_MEASURES)):
        # Payrolls of indicators are of the column of earnings as it is: a measure that is made otherwise is refused.
        for name in () if (file, part) == ("histories", "measures") else getattr(data, part):
            users = {one.name for one in plan.statistics if name in {*one.looks_at, *one.classified_by}}
            for rule, value in rules.items():
                found = again(plan, described(data, part, name, rule, value))
                assert {one for one in names if found[one] != names[one]} == users, (name, rule)
                tried += len(users)
    assert tried


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_two_columns_that_are_swapped_make_other_questions(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(tmp_path, FILES[file], monkeypatch)
    one, other = list(plan.release.data.attributes)[:2]
    straight = described(plan.release.data, "attributes", one, "column", "first")
    straight = described(straight, "attributes", other, "column", "second")
    swapped = described(plan.release.data, "attributes", one, "column", "second")
    swapped = described(swapped, "attributes", other, "column", "first")
    users = {s.name for s in plan.statistics if {one, other} & {*s.looks_at, *s.classified_by}}
    before, after = again(plan, straight), again(plan, swapped)
    assert {name for name in before if before[name] != after[name]} == users


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_another_key_link_or_weight_makes_other_questions(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(tmp_path, FILES[file], monkeypatch)
    names, data = {one.name: one.digest("da7a") for one in plan.statistics}, plan.release.data
    for table, columns in OF_SOURCES[file].items():
        for field, column in columns.items():
            found = again(
                plan, data.model_copy(update={table: getattr(data, table).model_copy(update={field: column})})
            )
            assert all(found[name] != names[name] for name in names), (table, field)
