"""A statement gives what all periods of a population reveal together, and machines read it as fields."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato.cli.budget import budget_summary
from sfumato.privacy.account import Account, Charge
from sfumato.privacy.book import OverPeriods
from sfumato.privacy.guarantee import Definition, EmployerEmployee, Guarantee, NoFormalGuarantee
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.running import run
from tests.conftest import write
from tests.release.test_release_file import GOOD
from tests.tiny import TINY

SECTION = "## Other periods and releases"


def released(folder: Path, period: str, *, jobs: int) -> tuple[str, dict[str, Any]]:
    """Publish the first jobs of the tiny data as a period, with the ledger of all; the section, and the structure."""
    home = folder / period
    home.mkdir(exist_ok=True)
    for name, columns in TINY.items():
        short = {column: values[:jobs] for column, values in columns.items()} if name == "jobs" else columns
        write(home / f"{name}.parquet", short)
    text = GOOD.replace('period = "2025"', f'period = "{period}"\nledger = "../ledger.sqlite"')
    (home / "release.toml").write_text(text)
    bundle = run(load(home / "release.toml")).bundle
    section = (bundle / "statement.md").read_text().partition(f"{SECTION}\n\n")[2].partition("\n\n## ")[0]
    return section, json.loads((bundle / "structure.json").read_text())


def test_the_statement_of_each_period_gives_the_sum_over_the_periods_in_the_ledger(tmp_path: Path) -> None:
    section, described = released(tmp_path, "2021", jobs=8)
    assert "A job that lasts over several periods is in the tables of each" in section
    assert "in: 2021, epsilon = 7/3." in section
    assert described["over_periods"]["together"]["epsilon"] == pytest.approx(7 / 3)

    section, described = released(tmp_path, "2022", jobs=7)
    assert "in: 2021, epsilon = 7/3; 2022, epsilon = 7/3." in section
    assert (
        "For a job that was held in all of these, all tables together promise: strong, alpha = 0.1, epsilon = 14/3"
        in section
    )
    assert "change by a factor of at most 107, and of what is said of it by a factor of at most 11,400." in section
    assert [each["period"] for each in described["over_periods"]["periods"]] == ["2021", "2022"]
    assert described["over_periods"]["together"]["epsilon"] == pytest.approx(14 / 3)

    again, _ = released(tmp_path, "2021", jobs=8)
    assert again == section


def test_a_repeated_run_with_nothing_new_in_the_ledger_gives_the_same_statement(tmp_path: Path) -> None:
    released(tmp_path, "2021", jobs=8)
    first, _ = released(tmp_path, "2022", jobs=7)
    manifest = (tmp_path / "2022" / "bundle" / "manifest.json").read_bytes()
    assert released(tmp_path, "2022", jobs=7)[0] == first
    assert (tmp_path / "2022" / "bundle" / "manifest.json").read_bytes() == manifest


def test_a_budget_is_said_to_bound_only_what_it_was_charged_for_and_as_long_as_it_holds(tmp_path: Path) -> None:
    released(tmp_path, "2021", jobs=8)
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    account = ledger.accounts()[0]
    keyed = Charge(question="e" * 64, table="keyed", guarantee=NoFormalGuarantee(statement="none"), data="d" * 64)
    ledger.charge(account, [keyed], "keyed")
    section, _ = released(tmp_path, "2021", jobs=8)
    assert "All of their tables that have a formal guarantee together reveal at most" in section
    assert "all tables with a guarantee together promise" in section
    assert "More than that" not in section
    lost = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(4))
    ledger.record_lost(account, lost, "the disk broke", ())
    section, _ = released(tmp_path, "2021", jobs=8)
    assert "More than that was charged when an earlier ledger was lost" in section


def test_the_budget_command_shows_the_sum_over_periods(tmp_path: Path) -> None:
    released(tmp_path, "2021", jobs=8)
    released(tmp_path, "2022", jobs=7)
    _, data = budget_summary(Ledger.open(tmp_path / "ledger.sqlite"))
    assert [each["population"] for each in data["populations"]] == ["jobs"]
    assert data["populations"][0]["together"]["epsilon"] == pytest.approx(14 / 3)


def charged(ledger: Ledger, *charges: tuple[str, Guarantee, EmployerEmployee]) -> OverPeriods:
    """What a ledger says of a population after one charge to the budget of each period."""
    for number, (period, guarantee, budget) in enumerate(charges):
        account = Account(population="jobs", period=period)
        ledger.set_budget(account, budget)
        digest = f"{number:x}"
        ledger.charge(account, [Charge(question=digest, table="t", guarantee=guarantee, data=digest)], "release")
    return ledger.over_periods("jobs")


def promise(
    definition: Definition, epsilon: str, *, alpha: str = "0.1", delta: str = "0", condition: str = ""
) -> EmployerEmployee:
    numbers = {"alpha": alpha, "epsilon": epsilon, "delta": delta}
    return EmployerEmployee(
        definition=definition, condition=condition, **{name: Fraction(text) for name, text in numbers.items()}
    )


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "ledger.sqlite", create=True)


def test_periods_under_several_definitions_hold_under_the_weakest_at_the_narrowest_alpha(ledger: Ledger) -> None:
    strong, weak = promise("strong", "1", alpha="0.2"), promise("weak", "2", delta="0.001")
    together = charged(ledger, ("2021", strong, strong), ("2022", weak, weak)).together()
    assert together == promise("weak", "3", delta="0.001")
    people = promise("individuals", "4", alpha="1", condition="given a")
    together = charged(ledger, ("2023", people, promise("individuals", "9", condition="any"))).together()
    assert together == promise("individuals", "7", delta="0.001", condition="given a")


def test_tables_without_a_guarantee_are_named_and_in_no_sum(ledger: Ledger) -> None:
    budget, legacy = promise("strong", "1"), NoFormalGuarantee(statement="factors")
    found = charged(ledger, ("2021", budget, budget), ("2022", legacy, budget))
    assert found.together() == budget
    assert found.unbounded == ("2022",)


def test_deltas_that_add_up_to_one_bound_nothing(ledger: Ledger) -> None:
    half = promise("strong", "1", delta="0.5")
    assert charged(ledger, ("2021", half, half)).together() == half
    assert charged(ledger, ("2022", half, half)).together() is None


def test_a_budget_that_nothing_was_charged_to_is_in_no_sum(ledger: Ledger) -> None:
    ledger.set_budget(Account(population="jobs", period="2024"), promise("strong", "5"))
    assert ledger.over_periods("jobs").periods == ()
    assert ledger.over_periods("jobs").together() is None
