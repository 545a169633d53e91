"""The privacy statement says what is protected, and as plainly what is not."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from sfumato.check import check
from sfumato.methods.noise_infusion import NoiseInfusion
from sfumato.plan import Plan
from sfumato.privacy.guarantee import NoFormalGuarantee
from sfumato.publish.statement import meaning, statement
from sfumato.release_file import load
from tests.release.test_release_file import GOOD, written


@dataclass(frozen=True, kw_only=True)
class Change:
    budget: str
    protect: str


def plan(folder: Path, change: Change) -> Plan:
    text = GOOD.replace("epsilon = 4.0 }", f"epsilon = 4.0{change.budget} }}")
    return check(load(written(folder, text.replace("epsilon = 2.0 }", f"epsilon = 2.0{change.protect} }}", 1)))).plan


INDIVIDUALS = Change(budget=', definition = "individuals"', protect=', method = "laplace"')


def test_individuals_only_says_that_sizes_and_shapes_of_establishments_are_not_protected(tiny: Path) -> None:
    text = statement(plan(tiny, INDIVIDUALS))
    assert "**The sizes of establishments and the composition of their workforces are not protected**" in text
    assert "whether a given person held a given job" in text
    assert "more closely than within about" not in text
    assert "| `by_place` | laplace | individuals |" in text


def test_without_individuals_only_tables_nothing_of_the_kind_is_said(tiny: Path) -> None:
    text = statement(plan(tiny, Change(budget="", protect="")))
    assert "are not protected**" not in text
    assert "more closely than within about 10 %" in text


def test_a_table_without_a_guarantee_leaves_the_release_without_one_and_the_statement_says_so(tiny: Path) -> None:
    made = plan(tiny, Change(budget="", protect=""))
    legacy = replace(made.tables[0], method=NoiseInfusion())
    mixed = replace(made, tables=(legacy, *made.tables[1:]))
    assert isinstance(mixed.guarantee, NoFormalGuarantee)
    text = statement(mixed)
    assert "**no formal guarantee**: nothing bounds what by_place may reveal" in text
    assert "What it means for one person" not in text
    assert "one known figure reveals all its others" in text
    assert meaning(mixed.guarantee)[0].startswith("No formal guarantee")


CASES: dict[str, tuple[Change, list[str]]] = {
    "smooth-laplace": (
        Change(budget=", delta = 0.001", protect=', method = "smooth-laplace", delta = 0.0005'),
        ["(Smooth Laplace)", "With probability at most 0.0005 this fails", "sums are unbiased"],
    ),
    "log-laplace": (
        Change(budget="", protect=', method = "log-laplace"'),
        ["(Log-Laplace:", "of the cell's count", "not right on average"],
    ),
    "log-laplace, debiased": (
        Change(budget="", protect=', method = "log-laplace", debias = true'),
        ["(Log-Laplace:", "sums are unbiased"],
    ),
    "smooth-gamma": (
        Change(budget="", protect=', method = "smooth-gamma", tight = true'),
        ["(Smooth Gamma)", "of the cell's largest establishment"],
    ),
    "laplace": (INDIVIDUALS, ["enough to hide one job", "The noise is typically 0.28 jobs."]),
}


@pytest.mark.parametrize("case", CASES)
def test_every_method_is_described_by_what_it_does_and_how_far_numbers_are_off(tiny: Path, case: str) -> None:
    change, said = CASES[case]
    described = statement(plan(tiny, change))
    for words in said:
        assert words in described


def test_worker_cells_that_share_epsilon_are_mentioned_and_those_that_do_not_are_not(tiny: Path) -> None:
    def with_sex(change: Change) -> Any:
        text = GOOD.replace('by = ["place"]', 'by = ["place", "sex"]').replace(
            "epsilon = 4.0 }", f"epsilon = 4.0{change.budget} }}"
        )
        return statement(
            check(load(written(tiny, text.replace("epsilon = 2.0 }", f"epsilon = 2.0{change.protect} }}", 1)))).plan
        )

    scalar = Change(budget=', definition = "weak"', protect=', form = "scalar"')
    assert "uses 1/2 of the table's epsilon" in with_sex(scalar)
    assert "of the table's epsilon" not in with_sex(Change(budget="", protect=""))
    assert "of the table's epsilon" not in with_sex(INDIVIDUALS)
