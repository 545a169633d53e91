"""The privacy statement says what is protected, and as plainly what is not."""

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp
from pathlib import Path
from typing import Any

import pytest

from sfumato.bundle.statement import meaning, statement
from sfumato.bundle.structure import structure
from sfumato.checking import check
from sfumato.plan import Plan
from sfumato.privacy.account import Account, Cost, Overdraft, refuse_overdraft
from sfumato.privacy.guarantee import Definition, EmployerEmployee, Loss, NoFormalGuarantee
from sfumato.privacy.meaning import believed, surest
from sfumato.release import load
from sfumato.statistics.jobs.noise_infusion import NoiseInfusion
from tests.release.test_release_file import GOOD, written


@dataclass(frozen=True, kw_only=True)
class Change:
    budget: str
    protect: str


def plan(folder: Path, change: Change) -> Plan:
    text = GOOD.replace("epsilon = 4.0 }", f"epsilon = 4.0{change.budget} }}")
    return check(load(written(folder, text.replace("epsilon = 2.0 }", f"epsilon = 2.0{change.protect} }}", 1)))).plan


INDIVIDUALS = Change(budget=', definition = "individuals"', protect=', method = "laplace"')


@pytest.mark.parametrize("epsilon", ["0.5", "6", "11.5", "12", "20"])
def test_the_first_sentence_says_how_sure_a_reader_can_be(epsilon: str) -> None:
    loss = Loss(steps=1, epsilon=Fraction(epsilon), delta=Fraction(0))
    most = 1 / (1 + exp(-float(epsilon)))
    told = re.search(r"at most ([\d.]+) % sure", surest(loss))
    for text in (surest(loss), believed(loss, "it fifty-fifty", ", even knowing all")):
        assert ("no protection" in text) == (told is None) == (epsilon in ("12", "20"))
        assert "100 %" not in text
    assert told is None or 100 * most <= float(told[1]) <= min(100 * most + 1, 99.999)
    assert ("even" in believed(loss, "it fifty-fifty", ", even knowing all")) == (told is not None)
    assert "at most" not in surest(replace(loss, delta=Fraction(1)))


def test_no_statement_promises_more_in_short_than_its_numbers(tiny: Path) -> None:
    short = statement(plan(tiny, INDIVIDUALS)).split("## In short")[1].split("##")[0]
    assert "nobody" not in short.lower()
    assert "at most 92 % sure" in short  # 2 and 1/3


def test_individuals_only_says_that_sizes_and_shapes_of_establishments_are_not_protected(tiny: Path) -> None:
    text = statement(plan(tiny, INDIVIDUALS))
    assert "**The sizes of establishments and the composition of their workforces are not protected**" in text
    assert "whether a given person held a given job" in text
    assert "sizes within about" not in text
    assert "| `by_place` | laplace | individuals |" in text


def test_without_individuals_only_tables_nothing_of_the_kind_is_said(tiny: Path) -> None:
    text = statement(plan(tiny, Change(budget="", protect="")))
    assert "are not protected**" not in text
    assert "which of two sizes within about 10 % of each other" in text


def test_a_table_without_a_guarantee_leaves_the_release_without_one_and_the_statement_says_so(tiny: Path) -> None:
    made = plan(tiny, Change(budget="", protect=""))
    legacy = replace(made.tables[0], method=NoiseInfusion())
    mixed = replace(made, statistics=(legacy, *made.tables[1:]))
    assert isinstance(mixed.guarantee, NoFormalGuarantee)
    text = statement(mixed)
    assert "**no formal guarantee**: nothing bounds what by_place may reveal" in text
    assert "What it means for one person" not in text
    assert "one known figure reveals all its others" in text
    assert meaning(mixed.guarantee)[0].startswith("No formal guarantee")


CASES: dict[str, tuple[Change, list[str]]] = {
    "smooth-laplace": (
        Change(budget=", delta = 0.001", protect=', method = "smooth-laplace", delta = 0.0005'),
        [
            "(Smooth Laplace)",
            "a factor of at most 10.4, except with a probability of at most 0.0005.",
            "sums are unbiased",
        ],
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


def promised(definition: Definition, **changes: str) -> EmployerEmployee:
    numbers = {"alpha": "1/10", "epsilon": "1", **changes}
    return EmployerEmployee(definition=definition, **{name: Fraction(text) for name, text in numbers.items()})


def test_shares_at_one_size_and_what_is_said_of_a_job_are_stated_at_two_steps() -> None:
    person, sizes, shares = meaning(promised("strong"))
    once, twice = "a factor of at most 2.72", "a factor of at most 7.39"
    assert f"held a given job: this release changes the odds by {once}." in person
    assert f"at one workplace or at another, or whether its worker is of one age or sex or another: {twice}." in person
    assert (
        f"For two jobs together it is {twice}, and for what is said of their worker a factor of at most 54.6." in person
    )
    assert f"10 or 11, 100 or 110, or 1,000 or 1,100 workers: the odds change by {once}." in sizes
    assert f"Whether 5 or 6 of 10, 50 or 60 of 100, or 500 or 600 of 1,000 workers are women, say: {twice}." in shares
    assert not any("less than 1.1 can be told apart" in text for text in (person, sizes, shares))


def test_a_weak_guarantee_bounds_sizes_where_all_groups_grow_alike_and_shares_by_single_workers_only() -> None:
    _, alike, whoever, shares = meaning(promised("weak"))
    assert "if every group of them, by whatever attributes, is larger by at most 10 % or by one worker" in alike
    assert (
        "10 or 11, or 100 or 110 workers it is then a factor of at most 2.72, and a factor of at most 22,100" in whoever
    )
    assert "no bound but that of single workers" in shares
    assert (
        "50 or 60 of 100 workers are women, say: a factor of at most 7.39, and a factor of at most 10 to the" in shares
    )


def test_delta_is_that_of_the_steps_of_each_sentence_and_where_it_reaches_one_there_is_no_bound() -> None:
    person, *_ = meaning(promised("weak", delta="0.001"))
    assert "changes the odds by a factor of at most 2.72, except with a probability of at most 0.001." in person
    assert "a factor of at most 7.39, except with a probability of at most 0.003719." in person  # 0.001·(1 + e)
    *_, shares = meaning(promised("weak", delta="0.001"))
    assert shares.endswith("and a factor without any bound.")


def test_machines_read_the_figures_of_the_statement_as_fields(tiny: Path) -> None:
    strong, individuals = (
        structure(plan(tiny, change))["comparisons"] for change in (Change(budget="", protect=""), INDIVIDUALS)
    )
    epsilon = pytest.approx(float(Fraction(2) + Fraction(1, 3)))  # of the two tables
    twice = pytest.approx(2 * float(Fraction(2) + Fraction(1, 3)))
    for fields in (strong, individuals):
        assert {"about": "job", "steps": 1, "epsilon": epsilon, "delta": 0} in fields
        assert {"about": "description of a job", "steps": 2, "epsilon": twice, "delta": 0} in fields
    of_shares = {"about": "share", "size": 100, "one": 50, "other": 60, "steps": 2, "epsilon": twice, "delta": 0}
    assert of_shares in strong
    assert not any(field["about"] in ("share", "size") for field in individuals)


def test_no_guarantee_is_said_to_be_proved_where_there_is_none(tiny: Path) -> None:
    made = plan(tiny, Change(budget="", protect=""))
    legacy = [replace(planned, method=NoiseInfusion()) for planned in made.tables]
    assert "What each method guarantees is defined and proved" in statement(made)
    assert "Where a method has a guarantee" in statement(replace(made, statistics=(legacy[0], made.tables[1])))
    without = statement(replace(made, statistics=tuple(legacy)))
    assert "proved" not in without
    assert "always gets the same answer" in without


def test_a_long_fraction_is_printed_as_a_short_decimal_that_is_not_below_it() -> None:
    long = Fraction(1011340694082123, 10**18)
    made = replace(promised("individuals"), delta=long, epsilon=1 + long)
    assert str(made) == "individuals only, alpha = 0.1, epsilon = 1.002, delta = 0.001012"
    account = Account(population="people", period="2025")
    with pytest.raises(Overdraft) as refusal:
        refuse_overdraft(account, replace(made, delta=long / 2), [], [Cost(guarantee=made)])
    # What is asked is rounded up, and what is left down.
    assert "delta = 0.001012" in refusal.value.found
    assert "delta = 0.0005056" in refusal.value.expected
    assert "/" not in f"{refusal.value.found}{refusal.value.expected}"
