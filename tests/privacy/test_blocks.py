"""Charges about different establishments: what is spent is that of the block of public codes with most of them."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from functools import cache
from hashlib import sha256
from itertools import combinations, product
from math import prod
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import LedgerError
from sfumato.privacy import blocks as searching
from sfumato.privacy.account import (
    Account,
    Charge,
    Cost,
    Overdraft,
    in_blocks,
    parallel,
    refuse_overdraft,
    sequential,
)
from sfumato.privacy.blocks import EVERYTHING, MOST_CODES, Block, charged_once, most_spent
from sfumato.privacy.entries import digest, guarantee_columns
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.meaning import why_charged_once

JOBS = Account(population="jobs", period="2025")
NAMES, CODES = ("industry", "ownership", "place"), ("a", "b", "c")
POINTS = tuple(dict(zip(NAMES, codes, strict=True)) for codes in product(CODES, repeat=len(NAMES)))


def block(register: str = "", **where: str | tuple[str, ...]) -> Block:
    """Establishments with some codes; another register gives them other codes."""
    kept = {name: (codes,) if isinstance(codes, str) else codes for name, codes in where.items()}
    found = Block.of(kept, {name: name for name in kept})
    return found.within(dict.fromkeys(kept, register)) if register else found


def private(epsilon: Fraction | int, delta: Fraction = Fraction(0)) -> EmployerEmployee:
    return EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(epsilon), delta=delta)


def charge(name: str, about: Block = EVERYTHING, epsilon: Fraction | int = 2, note: str = "") -> Charge:
    question = sha256(name.encode()).hexdigest()
    return Charge(question=question, table=name, guarantee=private(epsilon), data="da7a", block=about, note=note)


def holds(about: Block, establishment: Mapping[str, str]) -> bool:
    return all(establishment[one.attribute] in one.codes for one in about.filters)


PRIVATE, PUBLIC = block(ownership="private"), block(ownership=("federal", "state", "local"))
some_blocks = st.dictionaries(
    st.sampled_from(NAMES), st.sets(st.sampled_from(CODES), min_size=1).map(tuple), max_size=3
).map(lambda where: block(**where))


# The search, against the definition.


short = st.fractions(0, 3, max_denominator=12)
long = st.builds(lambda many, more: many + Fraction(more, 3**40), st.integers(0, 2), st.integers(0, 3))
"""Amounts that are alike in all digits that a floating-point number has."""
longer = st.builds(lambda many, one: many + Fraction(1, 10**900 + one), st.integers(0, 2), st.integers(0, 9))
"""Amounts without a common denominator that is short enough."""


def at(point: Mapping[str, str], charges: list[tuple[Block, Fraction]]) -> Fraction:
    """What is spent on establishments with some codes, by the definition."""
    return sum((e for about, e in charges if holds(about, point)), Fraction(0))


@settings(max_examples=100)
@given(charges=st.lists(st.tuples(some_blocks, short | long), max_size=12))
def test_what_is_spent_is_the_most_of_all_points_of_codes(charges: list[tuple[Block, Fraction]]) -> None:
    found = most_spent(charges)
    assert (found.amount, found.exact) == (max(at(point, charges) for point in POINTS), True)


@settings(max_examples=100)
@given(charges=st.lists(st.tuples(some_blocks, short | long), max_size=12))
def test_all_establishments_of_the_block_that_most_was_spent_on_lose_it(charges: list[tuple[Block, Fraction]]) -> None:
    found = most_spent(charges)
    assert found.block is not None
    inside = [point for point in POINTS if holds(found.block, point)]
    assert inside
    assert {at(point, charges) for point in inside} == {found.amount}


@settings(max_examples=100)
@given(charges=st.lists(st.tuples(some_blocks, short | longer), max_size=12))
def test_amounts_without_a_short_common_denominator_are_overstated_by_less_than_a_hair(
    charges: list[tuple[Block, Fraction]],
) -> None:
    found, by_hand = most_spent(charges), max(at(point, charges) for point in POINTS)
    assert by_hand <= found.amount <= by_hand + Fraction(12, 2**searching.MOST_BITS)
    assert not found.exact or found.amount == by_hand


def test_a_search_that_is_cut_short_among_long_amounts_bounds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [block(place=(a, b), ownership=(b, c)) for a, b, c in product(CODES, repeat=3)]
    charges = [(about, 1 + Fraction(number, 3**40)) for number, about in enumerate(kept)]
    exact = most_spent(charges)
    monkeypatch.setattr(searching, "MOST_WORK", 0)
    cut = most_spent(charges)
    assert (exact.amount, cut.block) == (max(at(point, charges) for point in POINTS), None)
    assert exact.amount < cut.amount <= sum(e for _, e in charges)


@settings(max_examples=30)
@given(charges=st.lists(st.tuples(some_blocks, st.fractions(0, 3, max_denominator=12)), min_size=1, max_size=12))
def test_a_search_that_is_cut_short_still_bounds_what_is_spent(charges: list[tuple[Block, Fraction]]) -> None:
    whole = most_spent(charges)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(searching, "MOST_WORK", 0)
        short = most_spent(charges)
    assert whole.amount <= short.amount <= sum(e for _, e in charges)
    assert short.exact <= (short.amount == whole.amount)


def test_amounts_too_long_for_floating_point_numbers_are_exact() -> None:
    long = Fraction(1, 3**40)
    charges = [(PRIVATE, 1 + long), (PUBLIC, Fraction(1)), (block(place="a"), Fraction(1, 7**30))]
    assert most_spent(charges).amount == 1 + long + Fraction(1, 7**30)


def test_codes_of_other_registers_and_definitions_are_not_compared() -> None:
    later = block("corrected", ownership=("federal", "state", "local"))
    assert most_spent([(PRIVATE, Fraction(2)), (later, Fraction(2))]).amount == 4
    first = [(block("first", ownership=code), Fraction(2)) for code in CODES]
    second = [(block("second", ownership=code), Fraction(3)) for code in CODES]
    found = most_spent([*first, *second])
    assert found.amount == 5, "the most of each version of the data, added up"
    assert found.block is not None
    assert "and ownership a in other data or by other rules" in found.block.short


def many_blocks() -> list[Block]:
    chance, codes = Random(7), [str(code) for code in range(300)]
    return [
        block(place=tuple(chance.sample(codes, 3)), industry=tuple(chance.sample(codes[:20], 2)))
        if chance.random() < 0.5
        else block(**{chance.choice(NAMES): tuple(chance.sample(codes, 9))})
        for _ in range(1_000)
    ]


@pytest.mark.parametrize("digits", [1, 16, 40])
def test_many_charges_are_searched_to_the_end_however_long_they_are(digits: int) -> None:
    asked = many_blocks()
    tenth = 10 ** (digits - 1)
    found = most_spent(
        (about, Fraction(tenth + number * (digits > 1), tenth * 10)) for number, about in enumerate(asked)
    )
    assert found.exact, "within the work that a search may take"
    assert 3 < found.amount < 4


def test_charges_whose_denominators_have_nothing_in_common_are_rounded_up_and_never_down() -> None:
    asked = many_blocks()
    found = most_spent((about, Fraction(10**16, 10**17 + number)) for number, about in enumerate(asked))
    least = Fraction(10**16, 10**17 + len(asked))
    alike = most_spent((about, least) for about in asked)
    assert alike.exact
    assert alike.amount <= found.amount <= alike.amount * (1 + Fraction(1, 10**9))


def test_a_filter_of_very_many_codes_is_none() -> None:
    assert block(place=tuple(map(str, range(MOST_CODES + 1)))) == EVERYTHING
    assert block(place=()) == EVERYTHING


@settings(max_examples=30)
@given(parts=st.lists(st.tuples(some_blocks, st.integers(0, 5)), min_size=1, max_size=6))
def test_composition_in_blocks_lies_between_parallel_and_sequential(parts: list[tuple[Block, int]]) -> None:
    guarantees = [(about, private(number, Fraction(number, 1000))) for about, number in parts]
    whole, bare = in_blocks(guarantees), [guarantee for _, guarantee in guarantees]
    for field in ("epsilon", "delta"):
        least, most = (getattr(compose(bare), field) for compose in (parallel, sequential))
        assert least <= getattr(whole, field) <= most
    assert in_blocks([(EVERYTHING, guarantee) for guarantee in bare]) == sequential(bare)


# The definition itself: neighbouring data, and every output of all tables together.

MOST, TOP = 3, 3
"""Establishments of the data, and the largest count that is told: what is beyond it is told as that."""


@cache
def told(count: int, power: int) -> tuple[Fraction, ...]:
    """The chances of every published count, from 0 to TOP: two-sided geometric noise at ε = power · ln 2, cut off."""
    ratio = Fraction(1, 2**power)
    within = [(1 - ratio) / (1 + ratio) * ratio ** abs(value - count) for value in range(1, TOP)]
    return (ratio**count / (1 + ratio), *within, ratio ** (TOP - count) / (1 + ratio))


def outputs(data: list[tuple[Mapping[str, str], int]], tables: list[tuple[Block, int]]) -> list[Fraction]:
    """The chance of every output of all tables together."""
    each = []
    for about, power in tables:
        count = sum(jobs for establishment, jobs in data if holds(about, establishment))
        each.append(told(min(count, TOP), power))
    return [prod(chances) for chances in product(*each)]


@settings(max_examples=60)
@given(
    data=st.lists(st.tuples(st.sampled_from(POINTS), st.integers(0, 2)), min_size=1, max_size=MOST),
    tables=st.lists(st.tuples(some_blocks, st.integers(1, 3)), min_size=1, max_size=3),
)
def test_no_output_of_neighbouring_data_is_likelier_than_what_is_spent_allows(
    data: list[tuple[Mapping[str, str], int]], tables: list[tuple[Block, int]]
) -> None:
    assert all(sum(told(count, power)) == 1 for count in range(TOP + 1) for power in (1, 2, 3))
    allowed = 2 ** most_spent((about, Fraction(power)) for about, power in tables).amount
    before = outputs(data, tables)
    for place, (establishment, jobs) in enumerate(data):  # one job more in one establishment, and back
        after = outputs([*data[:place], (establishment, jobs + 1), *data[place + 1 :]], tables)
        assert all(one <= allowed * other and other <= allowed * one for one, other in zip(before, after, strict=True))


@settings(max_examples=20)
@given(tables=st.lists(st.tuples(some_blocks, st.integers(1, 3)), min_size=1, max_size=3))
def test_some_establishment_loses_all_that_is_spent(tables: list[tuple[Block, int]]) -> None:
    spent = most_spent((about, Fraction(power)) for about, power in tables).amount
    lost = []
    for point in POINTS:
        none, one = (outputs([(point, jobs)], tables) for jobs in (0, 1))
        lost.append(max(before / after for before, after in zip(none, one, strict=True)))
    assert max(lost) == 2**spent, "less would be a false claim"


# The ledger.


def test_tables_about_different_establishments_are_charged_once(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private(3))
    ledger.charge(JOBS, [charge("private", PRIVATE), charge("public", PUBLIC)], "first")
    assert ledger.balance(JOBS).spent_epsilon == 2
    ledger.charge(JOBS, [charge("all", epsilon=1)], "second")
    assert (ledger.balance(JOBS).spent_epsilon, ledger.balance(JOBS).added_epsilon) == (3, 5)
    with pytest.raises(Overdraft) as refusal:
        ledger.charge(JOBS, [charge("more", PRIVATE, Fraction(1, 100))], "third")
    assert (refusal.value.remaining, refusal.value.requested) == (0, Fraction(1, 100))


def test_a_charge_about_establishments_that_less_was_spent_on_costs_the_difference(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private(3))
    ledger.charge(JOBS, [charge("private", PRIVATE, 3)], "first")
    ledger.charge(JOBS, [charge("public", PUBLIC, 2)], "second")
    assert ledger.balance(JOBS).remaining_epsilon == 0
    with pytest.raises(Overdraft) as refusal:
        ledger.charge(JOBS, [charge("local", block(ownership="local"), 2)], "third")
    assert (refusal.value.remaining, refusal.value.requested) == (1, 2), "whatever was spent on others"
    assert refusal.value.about == block(ownership="local")
    assert refusal.value.expected == (
        "at most what remains for establishments with ownership local: epsilon = 1, delta = 0, after epsilon = 2, "
        "delta = 0 that was spent on them"
    )
    assert refusal.value.found == "tables about them that cost epsilon = 2, delta = 0"
    ledger.charge(JOBS, [charge("local", block(ownership="local"), 1)], "third")
    assert ledger.balance(JOBS).spent_epsilon == 3


@settings(max_examples=60)
@given(
    known=st.lists(st.tuples(some_blocks, short), max_size=6), new=st.lists(st.tuples(some_blocks, short), max_size=4)
)
def test_what_an_overdraft_says_of_a_block_is_true_of_all_its_establishments(
    known: list[tuple[Block, Fraction]], new: list[tuple[Block, Fraction]]
) -> None:
    budget = max(at(point, known) for point in POINTS)  # what was charged fills it somewhere, and not elsewhere
    charged, asked = ([Cost(guarantee=private(e), block=about) for about, e in some] for some in (known, new))
    if max(at(point, [*known, *new]) for point in POINTS) <= budget:
        refuse_overdraft(JOBS, private(budget), charged, asked)
        return
    with pytest.raises(Overdraft) as found:
        refuse_overdraft(JOBS, private(budget), charged, asked)
    refusal = found.value
    inside = [point for point in POINTS if holds(refusal.about, point)]
    assert {budget - at(point, known) for point in inside} == {refusal.remaining}
    assert {at(point, new) for point in inside} == {refusal.requested}
    assert refusal.requested > refusal.remaining


def test_an_overdraft_names_the_block_of_what_is_overdrawn_and_few_of_its_codes(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private(3, Fraction(1, 100)))
    many = block(place=tuple("abcdefghi"))
    ledger.charge(JOBS, [charge("private", PRIVATE), charge("some", many, 0)], "first")
    dear = replace(charge("dear", many, 0), guarantee=private(Fraction(1, 10**6), Fraction(1, 50)))
    with pytest.raises(Overdraft, match="establishments with place a, b, c, d, e or 4 more: epsilon = ") as refusal:
        ledger.charge(JOBS, [dear], "second")
    assert (refusal.value.remaining_delta, refusal.value.requested_delta) == (Fraction(1, 100), Fraction(1, 50))
    with pytest.raises(Overdraft, match="remains for establishments with ownership private: epsilon = 1,"):
        ledger.charge(JOBS, [charge("all", epsilon=2)], "third")


def test_a_charge_whose_cost_is_only_bounded_is_refused_with_the_reason(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.set_budget(JOBS, private(3))
    ledger.charge(JOBS, [charge("private", PRIVATE)], "first")
    monkeypatch.setattr(searching, "MOST_WORK", -1)
    with pytest.raises(Overdraft, match="only a bound: charges are about too many different blocks"):
        ledger.charge(JOBS, [charge("public", PUBLIC)], "second")
    monkeypatch.undo()
    assert ledger.charge(JOBS, [charge("public", PUBLIC)], "second").new


def test_what_a_release_may_cost_at_most_is_counted_in_blocks_too(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private(9))
    ledger.charge(JOBS, [charge("private", PRIVATE)], "live", most=private(2))
    ledger.charge(JOBS, [charge("public", PUBLIC)], "live", most=private(2))
    assert ledger.balance_of(JOBS, "live", private(2)).remaining_epsilon == 0
    with pytest.raises(Overdraft):
        ledger.charge(JOBS, [charge("all", epsilon=1)], "live", most=private(2))


def test_an_entry_keeps_its_block_and_its_note(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private(9))
    ledger.charge(JOBS, [charge("a", block(ownership="ü", place=("b", "a")), note="of a package")], "release")
    [entry] = [entry for entry in Ledger.open(ledger.path).history() if entry.kind == "charge"]
    assert entry.block == block(ownership="ü", place=("b", "a"))
    assert entry.block.words == "ownership: ü; place: a, b"
    assert entry.note == "of a package"


def test_entries_without_a_block_read_and_hash_as_before_and_are_about_everything(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private(9))
    ledger.charge(JOBS, [charge("a"), charge("b", note="about")], "earlier version")
    ledger.charge(JOBS, [charge("private", PRIVATE), charge("public", PUBLIC)], "this version")
    assert ledger.balance(JOBS).spent_epsilon == 2 + 2 + 2
    with closing(sqlite3.connect(ledger.path)) as connection:
        connection.row_factory = sqlite3.Row
        rows = [dict(row) for row in connection.execute("SELECT * FROM entries")]
    assert [row["note"] for row in rows[1:3]] == ["", "about"]
    assert all(row["hash"] == digest(row) for row in rows)


def test_an_earlier_version_reads_a_block_as_a_note_and_counts_the_charge_for_all(ledger: Ledger) -> None:
    # It has the same columns, hashes all of them, and adds up what they say of every charge.
    ledger.set_budget(JOBS, private(9))
    ledger.charge(JOBS, [charge("private", PRIVATE)], "release")
    with closing(sqlite3.connect(ledger.path)) as connection:
        connection.row_factory = sqlite3.Row
        row = dict(connection.execute("SELECT * FROM entries WHERE kind = 'charge'").fetchone())
    assert row | guarantee_columns(private(2)) == row
    assert json.loads(row["note"].removeprefix("about ")) == PRIVATE.described()


def test_a_block_that_was_changed_breaks_the_chain(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private(9))
    ledger.charge(JOBS, [charge("private", PRIVATE)], "release")
    with closing(sqlite3.connect(ledger.path)) as connection:
        connection.execute("DROP TRIGGER entries_never_change")
        connection.execute("UPDATE entries SET note = replace(note, 'private', 'federal') WHERE kind = 'charge'")
        connection.commit()
    with pytest.raises(LedgerError, match="do not match its hash"):
        Ledger.open(ledger.path).balance(JOBS)


@pytest.mark.parametrize("note", ["about me", 'about {"ownership": 1}', 'about {"ownership": {"of": "", "codes": []}}'])
def test_a_note_that_is_no_block_is_refused_and_not_taken_for_everything(ledger: Ledger, note: str) -> None:
    ledger.set_budget(JOBS, private(9))
    with pytest.raises(LedgerError, match="an entry that sfumato wrote"):
        ledger.charge(JOBS, [charge("a", note=note)], "release")
    assert [entry.kind for entry in Ledger.open(ledger.path).history()] == ["budget"]


def test_what_is_typed_about_a_lost_ledger_is_never_a_block(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private(9))
    typed = f"about {json.dumps(PRIVATE.described())}"
    entry = Ledger.open(ledger.path, lost=True).record_lost(JOBS, private(2), typed, [])
    assert (entry.block, entry.note) == (EVERYTHING, typed)


# Words.


def test_words_say_which_tables_are_about_different_establishments() -> None:
    two = Fraction(2)
    [found] = charged_once({"private": (PRIVATE, two), "public": (PUBLIC, two), "all": (EVERYTHING, two)})
    assert found.names == ("private", "public")
    assert why_charged_once(found) == (
        "The tables `private` and `public` are about different establishments, told apart by ownership, and are "
        "charged once: epsilon = 2 and not 4."
    )
    assert found.facts() == {
        "tables": ["private", "public"],
        "by": ["ownership"],
        "disjoint": True,
        "epsilon": 2,
        "added_epsilon": 4,
    }


def test_words_do_not_claim_that_tables_with_establishments_in_common_are_charged_once() -> None:
    charged = {"ab": block(place=("a", "b")), "b": block(place="b"), "c": block(place="c"), "x": block(industry="a")}
    [found] = charged_once({name: (about, Fraction(1)) for name, about in charged.items()})
    assert (found.names, found.disjoint, found.epsilon) == (("ab", "b", "c"), False, 2)
    assert "No establishment is in all of the tables `ab`, `b` and `c`, told apart by place" in why_charged_once(found)
    assert charged_once({"ab": (charged["ab"], Fraction(1)), "x": (charged["x"], Fraction(1))}) == ()


@settings(max_examples=40)
@given(named=st.lists(some_blocks, max_size=6))
def test_tables_are_said_to_be_disjoint_exactly_where_no_point_is_in_two(named: list[Block]) -> None:
    blocks = {str(number): about for number, about in enumerate(named)}
    apart = {
        pair
        for pair in combinations(blocks, 2)
        if not any(all(holds(blocks[name], point) for name in pair) for point in POINTS)
    }
    found = charged_once({name: (about, Fraction(1)) for name, about in blocks.items()})
    said = {name for group in found for name in group.names}
    assert said == {name for pair in apart for name in pair}
    for group in found:
        assert group.disjoint == (set(combinations(group.names, 2)) <= apart)
        assert group.epsilon < group.added_epsilon or len(group.names) == 0
