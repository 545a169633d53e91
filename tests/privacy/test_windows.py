"""What consecutive periods may spend together is never exceeded, whoever charges which of them, and when."""

import random
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise, product
from math import prod
from pathlib import Path

import pytest

from sfumato.errors import BudgetError, LedgerError, ReleaseError
from sfumato.frame.periods import Length, Period
from sfumato.privacy.account import Account, Charge, Charged, Cost, Overdraft
from sfumato.privacy.blocks import EVERYTHING, Block
from sfumato.privacy.guarantee import CONDITIONAL, Definition, EmployerEmployee, NoFormalGuarantee
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.meaning import comparisons, odds
from sfumato.privacy.over_time import in_all_periods, over_window
from sfumato.privacy.windows import (
    Calendar,
    PeriodCost,
    Window,
    WindowOverdraft,
    read_window,
    refuse_beyond_window,
)
from tests.privacy import charging_periods
from tests.privacy.charging_periods import WINDOW
from tests.privacy.test_blocks import TOP, told

CODES = ("private", "state", "local")


def private(
    epsilon: str | int | Fraction,
    *,
    delta: str | Fraction = "0",
    alpha: str = "1/10",
    definition: Definition = "strong",
    condition: str = "",
) -> EmployerEmployee:
    return EmployerEmployee(
        definition=definition,
        alpha=Fraction(alpha),
        epsilon=Fraction(epsilon),
        delta=Fraction(delta),
        condition=condition,
    )


def account(period: str) -> Account:
    return Account(population="jobs", period=period)


def charge(name: str, guarantee: EmployerEmployee, period: str, block: Block = EVERYTHING) -> Charge:
    return Charge(
        question=sha256(f"{name} {period}".encode()).hexdigest(),
        table=name,
        guarantee=guarantee,
        data=sha256(period.encode()).hexdigest(),
        block=block,
    )


def spend(ledger: Ledger, period: str, epsilon: str, *, name: str = "t", window: Window | None = None) -> None:
    """Charge a table of a period whose own budget never stands in the way."""
    ledger.charge(account(period), [charge(name, private(epsilon), period)], "r", budget=private(100), window=window)


def quarters(periods: int, epsilon: str | int, *, first: str = "", **more: str) -> Window:
    return Window(periods=periods, length="quarter", first=first, most=private(epsilon, **more))


# The definition, written down once more and without any of the shortcuts: every window of every place in time.

_MONTHS: Mapping[Length, int] = {"year": 12, "quarter": 3, "month": 1}


def months(period: str) -> range | None:
    try:
        found = Period.read(period)
    except ReleaseError:
        return None
    each = 12 // found.in_a_year
    return range(found.number * each, (found.number + 1) * each)


def spent_by(charges: Iterable[Charged], what: str) -> Fraction:
    """The most over all codes of an owner, another one than those that charges name among them."""

    def touches(block: Block, code: str) -> bool:
        return all(code in one.codes for one in block.filters)

    costs = [(one.block, getattr(one.guarantee, what)) for one in charges]
    sums = [sum((cost for block, cost in costs if touches(block, code)), Fraction(0)) for code in (*CODES, "other")]
    return max(sums)


def largest_sums(window: Window, charged: Mapping[str, Sequence[Charged]]) -> tuple[Fraction, Fraction]:
    """The most epsilon and the most delta of any window, from long before the first period to long after the last."""
    own = _MONTHS[window.length]
    begin = months(window.first)
    known = {period: months(period) for period in charged}
    placed = [found for found in (*known.values(), begin) if found is not None]
    last, first = max((found[-1] for found in placed), default=0), min((found[0] for found in placed), default=0)
    most = [Fraction(0), Fraction(0)]
    for start in range(first // own - window.periods - 1, last // own + window.periods + 1):
        if begin is not None and start * own < begin[0]:
            continue
        inside = range(start * own, (start + window.periods) * own)
        periods = [period for period, found in known.items() if found is None or set(found) & set(inside)]
        for place, what in enumerate(("epsilon", "delta")):
            most[place] = max(most[place], sum((spent_by(charged[one], what) for one in periods), Fraction(0)))
    return most[0], most[1]


PERIODS: Mapping[Length, tuple[str, ...]] = {
    "year": tuple(str(year) for year in range(2020, 2030)),
    "quarter": tuple(f"{year}-Q{quarter}" for year in (2025, 2026, 2027) for quarter in (1, 2, 3, 4)),
    "month": tuple(f"{year}-{month:02d}" for year in (2025, 2026) for month in range(1, 13)),
}
MIXED = ("2025", "2026", "2026-Q1", "2026Q1", "2026-Q3", "2026-02", "2027M01", "spring", "2027-Q4")


def blocks_of(draw: random.Random) -> Block:
    kept = draw.sample(CODES, draw.randint(1, 2))
    return draw.choice([EVERYTHING, Block.of({"ownership": kept}, {"ownership": ""})])


@pytest.mark.parametrize("periods", [*PERIODS.values(), MIXED], ids=[*PERIODS, "mixed"])
@pytest.mark.parametrize("length", list(PERIODS))
def test_random_charges_are_admitted_exactly_while_every_window_holds(length: Length, periods: Sequence[str]) -> None:
    for seed in range(8):
        draw = random.Random(f"{length} {periods[0]} {seed}")
        window = Window(
            periods=draw.randint(2, 5),
            length=length,
            most=private(Fraction(draw.randint(1, 8), 2), delta=Fraction(draw.randint(0, 6), 100)),
            first=draw.choice(["", draw.choice(PERIODS[length])]),
        )
        charged: dict[str, list[Charged]] = {}
        for _ in range(30):
            period = draw.choice(periods)
            cost = private(Fraction(draw.randint(1, 6), 6), delta=Fraction(draw.choice([0, 0, 1]), 100))
            new = Cost(guarantee=cost, block=blocks_of(draw))
            known = {account(one): found for one, found in charged.items()}
            after = {**charged, period: [*charged.get(period, []), new]}
            epsilon, delta = largest_sums(window, after)
            counts = window.counts(period)
            try:
                refuse_beyond_window(window, account(period), known, [new])
                if counts:
                    assert epsilon <= window.most.epsilon
                    assert delta <= window.most.delta
                charged = after
            except WindowOverdraft:
                assert epsilon > window.most.epsilon or delta > window.most.delta
        assert largest_sums(window, charged)[0] <= window.most.epsilon


@pytest.mark.parametrize("seed", range(20))
def test_the_calendar_has_the_largest_sums_of_all_windows(seed: int) -> None:
    draw = random.Random(seed)
    window = Window(periods=draw.randint(2, 6), length=draw.choice(list(PERIODS)), most=private(1, delta="1/10"))
    charged = {
        period: [Cost(guarantee=private(Fraction(draw.randint(1, 9), 7)), block=blocks_of(draw)) for _ in range(3)]
        for period in draw.sample([*PERIODS["quarter"], *MIXED], 9)
    }
    costs = [PeriodCost.of(window, account(period), found) for period, found in charged.items()]
    calendar = Calendar.of(window, costs)
    assert max(one.epsilon for one in calendar.sums) == largest_sums(window, charged)[0]
    for period in charged:
        row = calendar.with_period(period)
        assert row is not None
        assert any(cost.period == period for cost in row.costs)


def test_a_ledger_admits_what_the_definition_admits(ledger: Ledger) -> None:
    draw = random.Random(6)
    window = quarters(3, 2)
    charged: dict[str, list[Charged]] = {}
    for number in range(40):
        period = draw.choice(PERIODS["quarter"][:6])
        new = charge(f"t{number}", private(Fraction(draw.randint(1, 4), 8)), period, blocks_of(draw))
        after = {**charged, period: [*charged.get(period, []), new]}
        try:
            ledger.charge(account(period), [new], "r", budget=private(100), window=window)
            charged = after
        except WindowOverdraft:
            assert largest_sums(window, after)[0] > 2
    [calendar] = ledger.calendars("jobs")
    assert max(one.epsilon for one in calendar.sums) == largest_sums(window, charged)[0] <= 2


# The claim itself: histories that differ in consecutive quarters, and every output of all their tables together.

YEAR = PERIODS["quarter"][:4]
Tables = Mapping[str, Sequence[tuple[Block, int]]]


def outputs(history: Mapping[str, Sequence[tuple[str, int]]], tables: Tables) -> list[Fraction]:
    """The chance of every output of all quarters together; establishments are an owner and its jobs."""
    each = []
    for quarter, asked in tables.items():
        for block, power in asked:
            kept = [jobs for owner, jobs in history[quarter] if all(owner in one.codes for one in block.filters)]
            each.append(told(min(sum(kept), TOP), power))
    return [prod(chances) for chances in product(*each)]


def some_tables(draw: random.Random) -> Tables:
    counts = {quarter: draw.choice([0, 1, 1, 2]) for quarter in YEAR}
    return {quarter: [(blocks_of(draw), draw.randint(1, 3)) for _ in range(n)] for quarter, n in counts.items()}


def calendar_of(window: Window, tables: Tables) -> Calendar:
    charged = {
        quarter: [Cost(guarantee=private(power), block=block) for block, power in asked]
        for quarter, asked in tables.items()
    }
    return Calendar.of(window, [PeriodCost.of(window, account(quarter), found) for quarter, found in charged.items()])


@pytest.mark.parametrize("periods", [2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_no_output_of_all_periods_tells_more_of_a_unit_in_a_window_than_the_window_spent(
    seed: int, periods: int
) -> None:
    """The unit: a job of an establishment whose owner may be another one in every quarter."""
    draw = random.Random(f"{seed} {periods}")
    tables = some_tables(draw)
    calendar = calendar_of(quarters(periods, 99), tables)
    most = max(one.epsilon for one in calendar.sums)
    history = {quarter: [(draw.choice(CODES), draw.randint(0, 1)) for _ in range(2)] for quarter in YEAR}
    before = outputs(history, tables)
    for start_of in range(len(YEAR) - periods + 1):
        inside = YEAR[start_of : start_of + periods]
        for owners in product(CODES, repeat=periods):
            without = {**history, **{q: [(o, 0), *history[q]] for q, o in zip(inside, owners, strict=True)}}
            having = {**history, **{q: [(o, 1), *history[q]] for q, o in zip(inside, owners, strict=True)}}
            assert outputs(without, tables) == before
            after = outputs(having, tables)
            assert all(a <= 2**most * b and b <= 2**most * a for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("seed", range(6))
def test_some_unit_loses_all_that_a_window_has_spent(seed: int) -> None:
    tables = some_tables(random.Random(seed))
    most = max(one.epsilon for one in calendar_of(quarters(2, 99), tables).sums)
    none = outputs({quarter: [] for quarter in YEAR}, tables)
    lost = []
    for first, second in pairwise(YEAR):
        for owners in product((*CODES, "other"), repeat=2):
            held = {**dict.fromkeys(YEAR, ()), first: [(owners[0], 1)], second: [(owners[1], 1)]}
            lost.append(max(a / b for a, b in zip(none, outputs(held, tables), strict=True)))
    assert max(lost) == 2**most, "less would be a false claim"


# What is refused, and what is said then.


def test_four_quarters_of_a_window_are_filled_exactly_and_a_fifth_begins_anew(ledger: Ledger) -> None:
    window = quarters(4, 1)
    for quarter in PERIODS["quarter"][:4]:
        spend(ledger, quarter, "1/4", window=window)
    with pytest.raises(WindowOverdraft):
        spend(ledger, "2025-Q4", "1/1000000000000", name="one more", window=window)
    spend(ledger, "2026-Q1", "1/4", window=window)
    with pytest.raises(WindowOverdraft):
        spend(ledger, "2025-Q2", "1/1000000000000", name="revised", window=window)


def test_a_refusal_names_the_window_the_periods_that_spent_it_and_what_is_left(ledger: Ledger) -> None:
    for quarter, epsilon in (("2025-Q4", "2"), ("2026-Q1", "1"), ("2026-Q2", "2")):
        spend(ledger, quarter, epsilon, window=quarters(4, 6))
    with pytest.raises(WindowOverdraft) as refusal:
        spend(ledger, "2026-Q3", "2")
    assert (refusal.value.remaining, refusal.value.requested) == (1, 2)
    for said in (
        "any 4 consecutive quarters",
        "2025-Q4 to 2026-Q3 (spent: 2025-Q4 2, 2026-Q1 1, 2026-Q2 2)",
        "epsilon = 1, delta = 0",
        "tables that cost epsilon = 2",
        "sfumato budget window",
    ):
        assert said in str(refusal.value)
    assert not ledger.has_budget(account("2026-Q3")), "a refused charge opens nothing"


def test_the_budget_of_a_period_holds_beside_the_window(ledger: Ledger) -> None:
    with pytest.raises(Overdraft, match="budget of 'jobs' in '2026-Q1'"):
        ledger.charge(
            account("2026-Q1"),
            [charge("t", private(3), "2026-Q1")],
            "r",
            budget=private(2),
            window=quarters(4, 6),
        )


def test_a_revision_costs_its_window(ledger: Ledger) -> None:
    spend(ledger, "2026-Q1", "2", window=quarters(2, 4))
    spend(ledger, "2026-Q2", "1")
    spend(ledger, "2026-Q1", "1", name="revised")
    with pytest.raises(WindowOverdraft, match="2026-Q1 3, 2026-Q2 1"):
        spend(ledger, "2026-Q2", "1", name="revised")
    assert spent(ledger) == {"2026-Q1": 3, "2026-Q2": 1}


def spent(ledger: Ledger) -> dict[str, Fraction]:
    [calendar] = ledger.calendars("jobs")
    return {cost.period: cost.epsilon for cost in calendar.costs}


def test_a_question_that_was_charged_costs_a_window_nothing_more(ledger: Ledger) -> None:
    window = quarters(2, 2)
    spend(ledger, "2026-Q1", "2", window=window)
    entries = ledger.history()
    spend(ledger, "2026-Q1", "2", window=window)
    spend(ledger, "2026-Q1", "2")
    assert ledger.history() == entries


def test_tables_about_different_establishments_cost_a_period_once_and_periods_add_up(ledger: Ledger) -> None:
    """An establishment may be in another block next quarter: each period counts as the most that it spent."""
    owners = [Block.of({"ownership": [code]}, {"ownership": ""}) for code in ("private", "state")]
    for quarter in ("2026-Q1", "2026-Q2"):
        tables = [charge(f"t{place}", private(1), quarter, block) for place, block in enumerate(owners)]
        ledger.charge(account(quarter), tables, "r", budget=private(9), window=quarters(2, 2))
    assert spent(ledger) == {"2026-Q1": 1, "2026-Q2": 1}
    with pytest.raises(WindowOverdraft):
        ledger.charge(account("2026-Q2"), [charge("state too", private(1), "2026-Q2", owners[1])], "r")


def test_delta_has_a_window_of_its_own(ledger: Ledger) -> None:
    window = quarters(2, 9, delta="1/1000")
    for quarter, refused in (("2026-Q1", False), ("2026-Q2", True), ("2026-Q3", False)):
        one = charge("t", private(1, delta="1/1000"), quarter)
        if refused:
            with pytest.raises(WindowOverdraft) as refusal:
                ledger.charge(account(quarter), [one], "r", budget=private(9, delta="1/100"), window=window)
            assert (refusal.value.remaining_delta, refusal.value.requested_delta) == (0, Fraction(1, 1000))
        else:
            ledger.charge(account(quarter), [one], "r", budget=private(9, delta="1/100"), window=window)


def test_periods_are_added_up_at_the_alpha_of_the_window(ledger: Ledger) -> None:
    ledger.set_window("jobs", Window(periods=2, length="year", most=private(20, alpha="1/2")))
    ledger.charge(account("2025"), [charge("t", private(1), "2025")], "r", budget=private(1))
    assert spent(ledger) == {"2025": 7}, "seven steps of a tenth make a half"


def test_tables_that_a_window_cannot_bound_are_refused_by_it(ledger: Ledger) -> None:
    ledger.set_window("jobs", quarters(4, 9))
    weak = charge("t", private(1, definition="weak"), "2026-Q1")
    with pytest.raises(
        BudgetError, match=r"(?s)any 4 consecutive quarters.*of 2026-Q1, a table protected under the weak"
    ):
        ledger.charge(account("2026-Q1"), [weak], "r", budget=private(9, definition="weak"))
    given = charge("t", private(1, condition="given chi"), "2026-Q1")
    with pytest.raises(BudgetError, match="on a condition"):
        ledger.charge(account("2026-Q1"), [given], "r", budget=private(9, condition=CONDITIONAL))


def test_tables_without_a_guarantee_cost_a_window_nothing(ledger: Ledger) -> None:
    ledger.set_window("jobs", quarters(4, 1))
    informal = NoFormalGuarantee(statement="multiplies figures by a secret factor")
    one = Charge(question="ab", table="t", guarantee=informal, data="da7a")
    ledger.charge(account("2026-Q1"), [one], "r")
    assert spent(ledger) == {"2026-Q1": 0}


def test_a_year_counts_in_every_window_of_quarters_that_it_has_a_part_in(ledger: Ledger) -> None:
    spend(ledger, "2026", "1", window=Window(periods=3, length="year", most=private(5)))
    spend(ledger, "2026-Q4", "1", window=quarters(2, 2))
    with pytest.raises(WindowOverdraft, match="2026-Q4 to 2027-Q1"):
        spend(ledger, "2027-Q1", "1")
    spend(ledger, "2027-Q2", "2")
    assert {one.length for one in ledger.windows("jobs")} == {"year", "quarter"}


def test_a_period_whose_time_is_not_known_counts_in_every_window(ledger: Ledger) -> None:
    spend(ledger, "the pilot survey", "1")
    spend(ledger, "2026-Q1", "1", window=quarters(2, 2))
    with pytest.raises(WindowOverdraft, match="the pilot survey 1"):
        spend(ledger, "2026-Q2", "1")
    with pytest.raises(WindowOverdraft):
        spend(ledger, "a second survey", "1/2")


def test_data_of_many_periods_are_refused_where_a_window_would_count_them_as_one(ledger: Ledger) -> None:
    ledger.set_window("jobs", quarters(4, 9))
    one = charge("t", private(1), "2026")
    with pytest.raises(BudgetError, match=r"(?s)one period at a time.*2019 to 2025"):
        ledger.charge(account("2026"), [one], "r", budget=private(9), many_periods=True)
    ledger.charge(account("2019 to 2025"), [one], "r", budget=private(9), many_periods=True)
    assert spent(ledger) == {"2019 to 2025": 1}


def test_populations_do_not_share_windows(ledger: Ledger) -> None:
    ledger.set_window("others", quarters(2, "1/2"))
    spend(ledger, "2026-Q1", "1")
    assert ledger.calendars("jobs") == ()


# A window that is opened, changed and lifted.


def test_a_window_counts_what_was_spent_before_it_was_opened(ledger: Ledger) -> None:
    spend(ledger, "2026-Q1", "2")
    spend(ledger, "2026-Q2", "1", window=quarters(2, 3))
    with pytest.raises(WindowOverdraft):
        spend(ledger, "2026-Q2", "1", name="more")


def test_a_release_with_another_window_than_the_ledger_is_refused_naming_both(ledger: Ledger) -> None:
    spend(ledger, "2026-Q1", "1", window=quarters(4, 6))
    entries = ledger.history()
    for other in (quarters(4, 5), quarters(4, 7), quarters(8, 6), quarters(4, 6, first="2026-Q1")):
        with pytest.raises(BudgetError) as refusal:
            spend(ledger, "2026-Q2", "1", window=other)
        for said in (str(quarters(4, 6)), str(other), "sfumato budget window --population … --length … --periods …"):
            assert said in str(refusal.value)
    assert ledger.history() == entries


def test_a_release_that_states_no_window_keeps_to_the_one_there_is(ledger: Ledger) -> None:
    spend(ledger, "2026-Q1", "1", window=quarters(4, 1))
    with pytest.raises(WindowOverdraft):
        spend(ledger, "2026-Q2", "1")


def test_the_officer_may_make_a_window_stricter_or_wider_but_not_smaller_than_what_is_spent(ledger: Ledger) -> None:
    spend(ledger, "2026-Q1", "2", window=quarters(4, 6))
    spend(ledger, "2026-Q2", "2")
    ledger.set_window("jobs", quarters(4, 4), note="less from now on")
    with pytest.raises(WindowOverdraft):
        spend(ledger, "2026-Q3", "1")
    with pytest.raises(BudgetError, match=r"(?s)at least what was spent in 2025-Q3 to 2026-Q2.*epsilon = 4.*2026-Q3"):
        ledger.set_window("jobs", quarters(4, 3))
    ledger.set_window("jobs", quarters(2, 5))
    spend(ledger, "2026-Q3", "3")
    assert [(e.window and e.window.periods, e.note) for e in ledger.history() if e.kind == "window"] == [
        (4, "opened by a release"),
        (4, "less from now on"),
        (2, ""),
    ]


def test_a_window_may_begin_where_earlier_periods_have_spent_more(ledger: Ledger) -> None:
    for quarter in PERIODS["quarter"][:4]:
        spend(ledger, quarter, "2")
    with pytest.raises(BudgetError, match='first = "2026-Q1"'):
        spend(ledger, "2026-Q1", "1", window=quarters(4, 6))
    window = quarters(4, 6, first="2026-Q1")
    for quarter in PERIODS["quarter"][4:7]:
        spend(ledger, quarter, "2", window=window)
    with pytest.raises(WindowOverdraft):
        spend(ledger, "2026-Q4", "1", window=window)
    spend(ledger, "2025-Q4", "1", name="revised", window=window)
    assert "from 2026-Q1 on" in str(window)


def test_a_window_that_was_lifted_limits_nothing(ledger: Ledger) -> None:
    spend(ledger, "2026-Q1", "1", window=quarters(4, 1))
    with pytest.raises(BudgetError, match="a window of years"):
        ledger.lift_window("jobs", "year")
    ledger.lift_window("jobs", "quarter", note="decided by the board")
    spend(ledger, "2026-Q2", "1")
    assert ledger.windows("jobs") == ()
    with pytest.raises(BudgetError, match="at least what was spent"):
        spend(ledger, "2026-Q3", "1", window=quarters(4, 1))


def test_a_lost_ledger_may_bring_a_window_beyond_its_limit_and_nothing_is_charged_then(ledger: Ledger) -> None:
    spend(ledger, "2026-Q1", "1", window=quarters(4, 2))
    ledger.record_lost(account("2026-Q2"), private(5), "the disk failed", [])
    [calendar] = ledger.calendars("jobs")
    assert calendar.most_spent is not None
    assert not calendar.most_spent.is_within
    with pytest.raises(WindowOverdraft, match="epsilon = 0, delta = 0"):
        spend(ledger, "2026-Q3", "1/10")
    ledger.record_lost(account("2026-Q2"), private(1, definition="weak"), "and more of it", [])
    [calendar] = ledger.calendars("jobs")
    assert not calendar.sums[-1].is_bounded
    assert calendar.sums[-1].facts()["epsilon"] is None
    with pytest.raises(BudgetError, match="under the weak one"):
        spend(ledger, "2026-Q3", "1/10")


@pytest.mark.parametrize(
    ("periods", "first"),
    [(1, ""), (4, "2026"), (4, "2026Q1"), (4, "soon")],
    ids=["one", "year", "written", "no period"],
)
def test_a_window_is_of_several_periods_and_begins_with_one_of_them(periods: int, first: str) -> None:
    with pytest.raises(BudgetError, match="window"):
        quarters(periods, 6, first=first)


def test_a_window_comes_back_from_the_ledger_as_it_was_set(ledger: Ledger) -> None:
    window = quarters(4, Fraction(1, 3).__str__(), first="2026-Q3", delta="1/7", condition=CONDITIONAL)
    ledger.set_window("jobs", window, note="by the board, {on} 3 March")
    [entry] = Ledger.open(ledger.path).history()
    assert (entry.window, entry.note) == (window, "by the board, {on} 3 March")
    assert ledger.windows("jobs") == (window,)
    assert (ledger.accounts(), ledger.populations()) == ((), ("jobs",))


@pytest.mark.parametrize(
    "note", ["{}", "[]", '{"periods": 4, "length": "quarter"}', '{"periods": null}', "by the board"]
)
def test_a_note_that_tells_no_window_is_refused(note: str) -> None:
    with pytest.raises(ValueError, match=r"window|JSON|Expecting"):
        read_window(note, private(6))


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("2026-Q1", "2026-Q4", True),
        ("2026-Q1", "2027-Q1", False),
        ("2027-Q1", "2026-Q1", False),
        ("2026", "2027-Q3", True),
        ("2026", "2027-Q4", False),
        ("2026-01", "2026", True),
        ("pilot", "2026", True),
        ("pilot", "2024-Q4", False),
        ("2024-Q4", "2025-Q1", False),
    ],
)
def test_two_periods_have_a_window_in_common_where_they_are_near_and_count(
    one: str, other: str, together: bool
) -> None:
    assert quarters(4, 6, first="2025-Q1").meets(one, other) is together


def test_facts_of_a_window_round_what_is_spent_up_and_what_is_left_down(ledger: Ledger) -> None:
    ledger.set_window("jobs", quarters(2, 1, delta="1/2"))
    table = charge("t", private("1/3", delta="1/3"), "2026-Q1")
    ledger.charge(account("2026-Q1"), [table], "r", budget=private(1, delta="1/2"))
    ledger.set_budget(account("2026-Q2"), private(1))
    [calendar] = ledger.calendars("jobs", "2026-Q2")
    [_, told] = calendar.facts()["sums"]
    for name, exact in (("epsilon", Fraction(1, 3)), ("delta", Fraction(1, 3))):
        assert exact <= Fraction(told[name]) < exact + Fraction(1, 10**12)
    for name, exact in (("remaining_epsilon", Fraction(2, 3)), ("remaining_delta", Fraction(1, 6))):
        assert exact - Fraction(1, 10**12) < Fraction(told[name]) <= exact
    assert [one["period"] for one in told["spent"]] == ["2026-Q1"], "those that spent nothing are left out"
    ledger.record_lost(account("2026-Q2"), private(1, definition="weak"), "the disk failed", [])
    [calendar] = ledger.calendars("jobs")
    assert [one["period"] for one in calendar.facts()["sums"][1]["spent"]] == ["2026-Q1"]


def test_a_window_that_was_tampered_with_is_noticed(ledger: Ledger) -> None:
    ledger.set_window("jobs", quarters(4, 6))
    with closing(sqlite3.connect(ledger.path)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("UPDATE entries SET note = replace(note, '4', '2')")
        connection.commit()
    with pytest.raises(LedgerError, match="do not match its hash"):
        ledger.windows("jobs")


def test_a_refusal_of_a_total_names_the_option_that_allows_it(ledger: Ledger) -> None:
    ledger.set_window("jobs", quarters(4, 6))
    total = replace(private(1), caps=PAY)
    with pytest.raises(BudgetError, match="a total of earnings") as refusal:
        ledger.charge(account("2026-Q1"), [charge("t", total, "2026-Q1")], "r", budget=total)
    assert "`sfumato budget window … --totals earnings=1000`" in refusal.value.do
    wider = replace(quarters(4, 6), most=replace(private(6), caps=PAY))
    ledger.set_window("jobs", wider)
    ledger.charge(account("2026-Q1"), [charge("t", total, "2026-Q1")], "r", budget=total)
    hours = replace(private(1), caps=(("hours", 60),))
    with pytest.raises(BudgetError, match="a total of hours") as refusal:
        ledger.charge(account("2026-Q2"), [charge("h", hours, "2026-Q2")], "r", budget=hours)
    assert "--totals earnings=1000 --totals hours=60`" in refusal.value.do, "a window is set as a whole"
    weak = replace(total, definition="weak")
    with pytest.raises(BudgetError, match="weak") as refusal:
        ledger.charge(account("2026-Q3"), [charge("w", weak, "2026-Q3")], "r", budget=weak)
    assert "--totals" not in refusal.value.do


def test_a_release_may_state_a_window_without_totals_that_it_does_not_have(ledger: Ledger) -> None:
    """The officer allowed totals after it was written: the ledger's window holds all the same."""
    counts = quarters(4, 6)
    wider = replace(counts, most=replace(counts.most, caps=PAY))
    ledger.set_window("jobs", wider)
    ledger.charge(account("2026-Q1"), [charge("a", private(1), "2026-Q1")], "r", budget=private(2), window=counts)
    assert ledger.windows("jobs") == (wider,)
    hours = replace(counts, most=replace(counts.most, caps=(("hours", 60),)))
    with pytest.raises(BudgetError, match="the window in the ledger"):
        ledger.charge(account("2026-Q2"), [charge("b", private(1), "2026-Q2")], "r", budget=private(2), window=hours)


# What is said of it.


def said(window: Window, *costs: PeriodCost, jobs: bool = True) -> str:
    calendar = Calendar.of(window, costs)
    return " ".join([in_all_periods(calendar, jobs=jobs), *over_window(calendar, jobs=jobs)])


def test_words_say_what_each_definition_protects_over_several_periods() -> None:
    strong, weak, jobs_only = (
        said(Window(periods=4, length="year", most=private(6, definition=definition)))
        for definition in ("strong", "weak", "individuals")
    )
    for text in (strong, weak):
        assert "an establishment that exists in all of them" in text
        assert "Which of two sizes within about 10 % of each other" in text
    assert "grow alike" in weak
    assert "grow alike" not in strong
    assert "The sizes of establishments are not protected" in jobs_only
    assert "Which of two sizes" not in jobs_only
    people = said(quarters(4, 6), jobs=False)
    assert "Someone who is in the data of 4 quarters in a row" in people
    assert "establishment" not in people


PAY = (("earnings", 1_000),)


@pytest.mark.parametrize(
    "caps", [(), PAY, (("earnings", 1_000), ("hours", 60))], ids=["counts", "pay", "pay and hours"]
)
@pytest.mark.parametrize("definition", ["strong", "weak", "individuals"])
def test_words_about_sizes_say_what_comparisons_of_the_same_guarantee_do(
    definition: Definition, caps: tuple[tuple[str, int], ...]
) -> None:
    most = replace(private(1, definition=definition), caps=caps)
    calendar = Calendar.of(Window(periods=4, length="quarter", most=most), [])
    short, [text] = in_all_periods(calendar, jobs=True), over_window(calendar, jobs=True)
    sizes = {one.about: one for one in comparisons(most) if one.pair == (100, 110)}
    about = [sentence for sentence in text.split(". ") if re.match("Which of two sizes|Whether it has", sentence)]
    assert ("size of an establishment" in short) == bool(sizes)
    if not sizes:
        assert about == []
        return
    whoever = sizes["size"]
    one_step = next(one for one in sizes.values() if one.loss.steps == 1)
    assert about[0].endswith(odds(one_step.loss))
    conditional = one_step.about != "size"
    assert (", if " in about[0]) == ("grow alike" in short) == conditional
    for measure, cap in caps:
        assert f"have of {measure} in all is larger by at most 10 % or by {cap:,}" in about[0]
        assert f"of {measure}" in short
    assert ("groups of its workers" in about[0]) == ("groups of its workers" in short) == (definition == "weak")
    assert ('"With totals" says' in text) == bool(caps)
    if conditional:
        assert whoever.loss.steps == 10
        assert about[1] == f"Whether it has 100 or 110 workers: the odds then change in total by {odds(whoever.loss)}"
    else:
        assert len(about) == 1


def test_words_give_the_total_for_longer_than_a_window_and_what_was_charged() -> None:
    assert "In 8 quarters in a row it is twice as much, epsilon = 12" in said(quarters(4, 6))
    assert "twice as much" not in said(quarters(4, 6, delta="1/2")), "two windows with such a delta bound nothing"
    assert "charged so far" not in said(quarters(4, 6), PeriodCost(period="2026-Q1"))
    spent_two = PeriodCost(period="2026-Q1", epsilon=Fraction(2))
    assert "Most was charged so far in 2025-Q2 to 2026-Q1 (spent: 2026-Q1 2): epsilon = 2." in said(
        quarters(4, 6), spent_two
    )
    assert "an earlier ledger was lost" in said(quarters(4, 1), spent_two)
    assert "Quarters before 2026-Q1 are not counted in that" in said(quarters(4, 6, first="2026-Q1"), spent_two)
    assert "more than can be bounded so" in said(quarters(4, 6), PeriodCost(period="2026-Q1", unbounded="a weak table"))


# Many processes, and processes that are killed.


def start(ledger: Ledger, name: str, count: int, *periods: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, charging_periods.__file__, str(ledger.path), name, str(count), *periods],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def go(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def charged_by_period(ledger: Ledger) -> dict[str, list[Charged]]:
    found: dict[str, list[Charged]] = {}
    for entry in ledger.history():
        if entry.kind == "charge":
            found.setdefault(entry.account.period, []).append(entry)
    return found


def test_processes_that_charge_several_periods_at_once_fill_a_window_and_never_overdraw_it(ledger: Ledger) -> None:
    turns = (("2026-Q1", "2026-Q2", "2026-Q3"), ("2026-Q3", "2026-Q1"), ("2026-Q2",), ("2026-Q4", "2026-Q3"))
    running = [start(ledger, f"process {place}", 16, *periods) for place, periods in enumerate(turns)]
    for process in running:
        go(process)
    outcomes = [line for process in running for line in process.communicate()[0].split()]
    assert [process.returncode for process in running] == [0] * len(running)
    charged = {outcome for outcome in outcomes if outcome != "refused"}
    assert "refused" in outcomes, "more was asked than a window holds"
    assert {entry.identifier for entry in ledger.history() if entry.kind == "charge"} == charged
    assert sum(entry.kind == "window" for entry in ledger.history()) == 1, "opened once"
    epsilon, _ = largest_sums(WINDOW, charged_by_period(ledger))
    assert Fraction(19, 10) <= epsilon <= 2


@pytest.mark.parametrize("reported", [1, 3, 7, 12])
def test_a_process_that_is_killed_among_others_leaves_no_overdraft(ledger: Ledger, reported: int) -> None:
    turns = (("2026-Q1", "2026-Q2", "2026-Q3"), ("2026-Q3", "2026-Q2"), ("2026-Q2", "2026-Q4"))
    doomed, *others = [start(ledger, f"process {place}", 24, *periods) for place, periods in enumerate(turns)]
    for process in (doomed, *others):
        go(process)
    assert doomed.stdout is not None
    known = [doomed.stdout.readline().strip() for _ in range(reported)]
    doomed.kill()
    known += doomed.communicate()[0].split()
    known += [line for process in others for line in process.communicate()[0].split()]
    ledger.verify()
    charges = {entry.identifier for entry in ledger.history() if entry.kind == "charge"}
    assert len(charges - set(known)) <= 1, "committed, and killed before it could say so"
    assert set(known) - {"refused"} <= charges
    assert largest_sums(WINDOW, charged_by_period(ledger))[0] <= 2
    again = start(ledger, "process 0", 24, *turns[0])
    go(again)
    assert again.communicate()[0].split()[:reported] == known[:reported], "paid before, and not charged again"
    assert again.returncode == 0
    assert largest_sums(WINDOW, charged_by_period(ledger))[0] <= 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_processes_that_are_killed_at_random_moments_leave_no_overdraft(ledger: Ledger, seed: int) -> None:
    """Whenever they are killed: no outcome depends on how fast the machine is."""
    draw, reported = random.Random(seed), set[str]()
    for turn in range(5):
        chosen = [draw.sample(PERIODS["quarter"][:5], 3) for _ in range(3)]
        running = [start(ledger, f"turn {turn}, {place}", 30, *periods) for place, periods in enumerate(chosen)]
        for process in running:
            go(process)
        for process in running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=draw.uniform(0, 0.4))
            process.kill()
            reported |= set(process.communicate()[0].split())
        charges = {entry.identifier for entry in ledger.history() if entry.kind == "charge"}
        assert reported - {"refused"} <= charges
        assert largest_sums(WINDOW, charged_by_period(ledger))[0] <= 2
    ledger.verify()


def test_every_file_that_a_kill_may_leave_has_whole_charges_within_the_window(path: Path) -> None:
    """A ledger cut off after any entry, as a crash may leave it, is within its window, and goes on."""
    ledger = Ledger.open(path, create=True)
    for number, quarter in enumerate(["2026-Q1", "2026-Q2", "2026-Q3", "2026-Q1"]):
        spend(ledger, quarter, "1/2", name=str(number), window=quarters(3, 2))
    history = ledger.history()
    for end in range(len(history)):
        kept: dict[str, list[Charged]] = {}
        for entry in history[:end]:
            if entry.kind == "charge":
                kept.setdefault(entry.account.period, []).append(entry)
        assert largest_sums(quarters(3, 2), kept)[0] <= 2
    assert [entry.kind for entry in history[:3]] == ["budget", "window", "charge"], "limited before it is spent"
