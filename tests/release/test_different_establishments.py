"""Tables whose public filters have no establishment in common are charged once, in plan, ledger and statement."""

import json
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sfumato.checking import check, checked
from sfumato.cli import app
from sfumato.errors import BudgetError
from sfumato.live import open_charged
from sfumato.live.charged import LIVE
from sfumato.plan import Plan
from sfumato.privacy.account import Overdraft
from sfumato.privacy.blocks import EVERYTHING
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.running import Published, open_ledger, run
from sfumato.safeguards import record_lost
from tests.conftest import write
from tests.tiny import TINY

HEAD = """\
[release]
title = "Jobs"
population = "jobs"
period = "2025"
budget = { alpha = 0.1, epsilon = 4 }

[data]
jobs = { path = "jobs.parquet", worker = "worker" }
workplaces = { path = "workplaces.parquet", key = "workplace" }
workers = { path = "workers.parquet", key = "worker" }
public = ["place", "industry", "ownership"]

[data.attributes]
sex = { codes = ["F", "M"] }
ownership = { codes = ["private", "federal", "state", "local"] }
place = { codes = ["A", "B"] }
industry = { codes = ["11", "62"] }

"""
OWNERS = ["private", "private", "federal", "state"]
PRIVATE, PUBLIC = 'ownership = "private"', 'ownership = ["federal", "state", "local"]'


def table(name: str, where: str = "", epsilon: str = "2", by: str = "place") -> str:
    kept = f"where = {{ {where} }}\n" if where else ""
    return f'[[table]]\nname = "{name}"\ncount = "jobs"\nby = ["{by}"]\n{kept}protect = {{ epsilon = {epsilon} }}\n\n'


BOTH = table("private", PRIVATE) + table("public", PUBLIC)
OTHERS = table("private", PRIVATE, "1") + table("public", PUBLIC, "1")


@pytest.fixture
def owned(tiny: Path) -> Path:
    """The tiny data, whose workplaces have owners."""
    write(tiny / "workplaces.parquet", {**TINY["workplaces"], "ownership": OWNERS})
    return tiny


def released(folder: Path, tables: str, *changes: tuple[str, str]) -> Path:
    text = HEAD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = folder / "release.toml"
    file.write_text(text + tables)
    return file


def ran(folder: Path, tables: str, *changes: tuple[str, str]) -> Published:
    return run(load(released(folder, tables, *changes)), replace=True)


def planned(folder: Path, tables: str, *changes: tuple[str, str]) -> Plan:
    return check(load(released(folder, tables, *changes)), data=False).plan


def command(*words: str) -> Any:
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_private_and_public_employers_are_charged_once_and_a_table_of_all_is_added(owned: Path) -> None:
    file = released(owned, BOTH)
    found = command("check", str(file))
    assert (found["due_epsilon"], found["guarantee"]["epsilon"]) == (2, 2)
    assert [part["charge_epsilon"] for part in found["tables"]] == [2, 2]
    assert "charged once: epsilon = 2 and not 4" in CliRunner().invoke(app, ["check", str(file)]).stdout

    published = run(load(file))
    assert published.balance is not None
    assert (published.balance.spent_epsilon, published.balance.added_epsilon) == (2, 4)
    said = (published.bundle / "statement.md").read_text()
    assert "The tables `private` and `public` are about different establishments, told apart by ownership" in said
    assert "| all tables together |  | strong | 0.1 | 2 | 0 |" in said
    assert "2025, epsilon = 2." in said, "what the ledger has charged"
    structure = json.loads((published.bundle / "structure.json").read_text())
    assert structure["guarantee"]["epsilon"] == structure["over_periods"]["together"]["epsilon"] == 2
    assert [once["tables"] for once in structure["charged_once"]] == [["private", "public"]]

    later = ran(owned, table("everybody", epsilon="1", by="industry"))
    assert later.balance is not None
    assert (later.balance.spent_epsilon, later.balance.remaining_epsilon) == (3, 1)
    assert "different establishments" not in (later.bundle / "statement.md").read_text()

    [account] = command("budget", "--ledger", str(owned / "ledger.sqlite"))["accounts"]
    assert (account["spent_epsilon"], account["added_epsilon"], account["remaining_epsilon"]) == (3, 5, 1)
    shown = CliRunner().invoke(app, ["budget", "--ledger", str(owned / "ledger.sqlite")]).stdout
    assert "charges about different establishments are counted once" in shown
    assert "about ownership: federal, local, state" in shown


def test_what_a_run_adds_to_what_is_spent_is_due(owned: Path) -> None:
    ran(owned, table("private", PRIVATE, "3"))
    assert check(load(released(owned, table("public", PUBLIC)))).due == 0, "3 were spent on others"
    assert check(load(released(owned, table("place", 'place = "A"', by="industry")))).due == 2
    found = check(load(released(owned, table("place", 'place = "A"', by="industry") + BOTH)))
    assert (found.due, found.refusal is None, found.plan.guarantee.bound.epsilon) == (4, False, 4)
    assert isinstance(found.refusal, Overdraft)
    with pytest.raises(Overdraft):
        ran(owned, table("place", 'place = "A"', by="industry") + BOTH)
    assert ran(owned, table("public", PUBLIC)).balance.spent_epsilon == 3


def test_without_the_data_a_refusal_that_depends_on_them_is_only_possible(owned: Path) -> None:
    ran(owned, table("private", PRIVATE, "3"))
    file = released(owned, table("public", PUBLIC))
    found = command("check", str(file), "--no-data")
    assert found["refusal"] is None
    assert "that cost epsilon = 2" in found["possible_refusal"]
    shown = CliRunner().invoke(app, ["check", str(file), "--no-data"])
    assert "To be charged: at most epsilon = 2" in shown.stdout
    assert "Whether `sfumato run` will refuse this release depends on the data" in " ".join(shown.stdout.split())
    known = command("check", str(file))
    assert (known["refusal"], known["possible_refusal"], known["due_epsilon"]) == (None, None, 0)
    again = check(load(released(owned, table("private", PRIVATE, "3"))), data=False)
    assert (again.refusal, again.possible_refusal is None) == (None, False), "it may have been charged before"


def test_without_the_data_a_release_that_costs_more_than_the_whole_budget_will_be_refused(owned: Path) -> None:
    both = table("private", PRIVATE, "3") + table("place", 'place = "A"', "2")
    for _ in range(2):
        found = check(load(released(owned, both)), data=False)
        assert isinstance(found.refusal, Overdraft)
        assert found.possible_refusal is None
        ran(owned, table("private", PRIVATE, "3"))
    other = check(load(released(owned, table("a"), ("epsilon = 4", "epsilon = 5"))), data=False)
    assert "the budget in the ledger" in str(other.refusal), "another budget is another one with any data"


def test_what_an_earlier_version_charged_twice_is_not_said_to_be_charged_once(owned: Path) -> None:
    file = released(owned, BOTH)
    with checked(load(file)) as ready:  # an earlier version charged the same questions without saying of whom
        charges = [replace(one, block=EVERYTHING) for one in ready.identity.charges(ready.plan)]
        open_ledger(load(file)).charge(
            load(file).account, charges, "Jobs", budget=load(file).budget, content=ready.identity.content
        )
    words = (
        "of any of them they reveal epsilon = 2 and not 4 together. The tables private and public were charged before"
    )
    for name in ("check", "run"):
        shown = CliRunner().invoke(app, [name, str(file)]).stdout
        assert words in " ".join(shown.split()), shown
        assert "charged once" not in shown
    assert "charged_once" not in command("check", str(file))
    published = run(load(file))
    assert published.balance is not None
    assert published.balance.spent_epsilon == 4
    assert "charged once" not in (published.bundle / "statement.md").read_text()
    assert "charged once" in CliRunner().invoke(app, ["check", str(released(owned, OTHERS))]).stdout


def test_a_table_by_attributes_of_workers_is_about_establishments_too(owned: Path) -> None:
    both = table("private", PRIVATE, by="sex") + table("public", PUBLIC, by="sex")
    assert planned(owned, both).guarantee.bound.epsilon == 2


WEAK = ("epsilon = 4 }", 'epsilon = 4, definition = "weak" }')
JOINED = (
    ('path = "jobs.parquet"', 'path = "joined.parquet"'),
    ('workplaces = { path = "workplaces.parquet", key = "workplace" }\n', ""),
    ('workers = { path = "workers.parquet", key = "worker" }\n', ""),
)


@pytest.mark.parametrize(
    ("tables", "changes"),
    [
        (table("women", 'sex = "F"') + table("men", 'sex = "M"'), (WEAK,)),
        (BOTH, JOINED),
        (table("a", 'place = "A"') + table("public", PUBLIC), ()),
        (table("a", f'{PRIVATE}, place = "A"') + table("b", PRIVATE), ()),
    ],
    ids=["workers", "joined", "other attributes", "one inside the other"],
)
def test_tables_that_may_share_an_establishment_add_up(
    owned: Path, tables: str, changes: tuple[tuple[str, str], ...]
) -> None:
    plan = planned(owned, tables, *changes)
    assert (plan.guarantee.bound.epsilon, plan.charged_once) == (4, ())


def test_tables_of_records_add_up(tmp_path: Path) -> None:
    from tests.live.test_charged_records import TABLE
    from tests.statistics.cube.survey import CODES, RELEASE, release

    kept = [
        TABLE.replace("people", f"people-{code.lower()}").replace(
            "protect", f'where = {{ region = "{code}" }}\nprotect'
        )
        for code in CODES["region"][:2]
    ]
    plan = check(load(release(tmp_path, text=RELEASE + "".join(kept))), data=False).plan
    assert [one.block for one in plan.tables] == [EVERYTHING] * 2
    assert plan.charged_once == ()


@pytest.mark.parametrize(
    "owners",
    [["federal", "private", "federal", "state"], [*OWNERS[:3], "local"]],
    ids=["private became federal", "state became local"],
)
def test_an_establishment_with_another_code_in_corrected_data_may_be_in_both(owned: Path, owners: list[str]) -> None:
    ran(owned, table("private", PRIVATE))
    write(owned / "workplaces.parquet", {**TINY["workplaces"], "ownership": owners})
    assert ran(owned, table("public", PUBLIC)).balance.spent_epsilon == 4


def test_other_jobs_are_other_data_and_files_saved_again_are_not(owned: Path) -> None:
    ran(owned, table("private", PRIVATE))
    register = {**TINY["workplaces"], "ownership": OWNERS}
    write(owned / "workplaces.parquet", {name: column[::-1] for name, column in register.items()})
    assert ran(owned, table("public", PUBLIC)).balance.spent_epsilon == 2
    write(owned / "jobs.parquet", {name: column[:-1] for name, column in TINY["jobs"].items()})
    assert ran(owned, table("public", PUBLIC)).balance.spent_epsilon == 4


@pytest.mark.parametrize(
    "definition",
    [
        'ownership = { column = "sector", codes = ["private", "federal", "state", "local"] }',
        'ownership = { recode = { private = ["federal"], federal = ["private"], state = "state", local = "local" } }',
    ],
    ids=["another column", "other rules"],
)
def test_codes_of_an_attribute_that_is_defined_otherwise_are_not_compared(owned: Path, definition: str) -> None:
    swapped = ["federal", "federal", "private", "private"]
    write(owned / "workplaces.parquet", {**TINY["workplaces"], "ownership": OWNERS, "sector": swapped})
    ran(owned, table("private", PRIVATE))
    change = ('ownership = { codes = ["private", "federal", "state", "local"] }', definition)
    assert ran(owned, table("public", PUBLIC), change).balance.spent_epsilon == 4


def test_a_register_with_headcounts_tells_establishments_apart(tmp_path: Path) -> None:
    columns = {**TINY["workplaces"], "ownership": OWNERS, "n": [3, 2, 3, 0]}
    write(tmp_path / "register.parquet", columns)
    three = HEAD[HEAD.index("jobs = ") : HEAD.index("public =")]
    one = 'jobs = { path = "register.parquet", employees = "n" }\n'
    published = ran(tmp_path, BOTH, (three, one), ('sex = { codes = ["F", "M"] }\n', ""))
    assert published.balance is not None
    assert published.balance.spent_epsilon == 2


def test_a_question_keeps_its_name_and_its_answer_and_is_not_charged_again(owned: Path) -> None:
    first = ran(owned, BOTH)
    again = ran(owned, BOTH)
    assert (again.charged, again.unchanged) == ((), True)
    with_a_block = [one.charge("da7a") for one in first.plan.statistics]
    without = [replace(one, block=EVERYTHING).charge("da7a") for one in first.plan.statistics]
    assert [one.question for one in with_a_block] == [one.question for one in without]


def test_ad_hoc_questions_about_different_establishments_are_charged_once(owned: Path) -> None:
    ran(owned, table("everybody", epsilon="1"))
    file = released(owned, table("everybody", epsilon="1") + "[live]\nbudget = 2\nquota = 2\n")
    by, two = ("industry",), Fraction(2)
    with open_charged(load(file)) as live:
        owners = {"private": ["private"], "public": ["federal", "state", "local"]}
        private, public = (live.plan(by=by, epsilon=two, where={"ownership": codes}) for codes in owners.values())
        first = live.answer(private, analyst="ann")
        assert live.left().remaining_epsilon == 0
        price = live.price(public, analyst="bob")
        assert (price.epsilon, price.refusal) == (2, None), "an analyst is told the price of the question alone"
        live.answer(public, analyst="bob")
        assert live.answer(private, analyst="ann").equals(first)
        account = live.release.account
        assert live.ledger.balance_of(account, LIVE, live.most).spent_epsilon == 2
        assert live.ledger.balance(account).spent_epsilon == 3
        state = live.plan(by=by, epsilon=Fraction(1), where={"ownership": ["state"]})
        told = live.price(state, analyst="eve").refusal
        assert told is not None
        assert "costs epsilon = 1" in told.found
        assert "remains of it, which analysts are not told" in told.expected
        assert live.price(live.plan(by=by, epsilon=Fraction(1), where={"place": ["A"]})).refusal is not None


def test_after_a_lost_ledger_a_kept_charge_about_some_pays_for_no_lost_one_about_others(owned: Path) -> None:
    first = ran(owned, table("private", PRIVATE))
    older = (owned / "ledger.sqlite").read_bytes()
    second = ran(owned, BOTH)
    (owned / "ledger.sqlite").write_bytes(older)
    account = first.plan.release.account
    lost = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(1))
    with pytest.raises(BudgetError, match="the ledger lacks: epsilon = 2"):
        record_lost(owned / "ledger.sqlite", account, lost, "the disk broke", [second.bundle])
    record_lost(owned / "ledger.sqlite", account, replace(lost, epsilon=Fraction(2)), "the disk broke", [second.bundle])
    assert Ledger.open(owned / "ledger.sqlite").balance(account).spent_epsilon == 4


_YEAR, _QUARTERS = '["2020", "2021"]', '["2020-Q1", "2020-Q2", "2020-Q3", "2020-Q4"]'
_SIZES = "classes = { small = 0, large = 25 }"


@pytest.mark.parametrize(
    ("column", "described", "kept"),
    [
        (
            [date(2020, month, 1) for month in (1, 4, 7, 10)],
            (f"codes = {_YEAR}", f"codes = {_QUARTERS}"),
            ('made = "2020"', f"made = {_QUARTERS}"),
        ),
        ([10, 20, 30, 40], (_SIZES, _SIZES), ('made = "small"', 'made = "large"')),
    ],
    ids=["dates", "numbers"],
)
def test_codes_that_follow_from_how_a_column_is_read_tell_no_establishments_apart(
    owned: Path, column: list[Any], described: tuple[str, str], kept: tuple[str, str]
) -> None:
    """A date is a year in one release and a quarter in the next, and a number another one under other marks."""
    write(owned / "workplaces.parquet", {**TINY["workplaces"], "ownership": OWNERS, "made": column})
    head = "[data.attributes]\n"
    for name, rule, where in zip(("first", "second"), described, kept, strict=True):
        made = head, f"{head}made = {{ {rule} }}\n"
        ran(owned, table(name, where), ('"ownership"]', '"ownership", "made"]'), made)
    balance = Ledger.open(owned / "ledger.sqlite").balance(load(owned / "release.toml").account)
    assert balance.remaining_epsilon == 0
