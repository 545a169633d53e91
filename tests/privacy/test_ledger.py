"""What the ledger charges, refuses and remembers."""

from fractions import Fraction
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import BudgetError, LedgerError
from sfumato.privacy.account import Account, Charge, Cost, Overdraft, balance, refuse_overdraft
from sfumato.privacy.guarantee import Definition, EmployerEmployee, Guarantee, NoFormalGuarantee
from sfumato.privacy.ledger import Ledger

JOBS = Account(population="jobs", period="2025")
RENAMED = Account(population="employment", period="2025")
DATA, OTHER_DATA = "da7a", "0ddba11"
LEGACY = NoFormalGuarantee(statement="multiplies every employer's figures by a secret factor")


def private(
    epsilon: str, *, alpha: str = "1/10", delta: str = "0", definition: Definition = "strong"
) -> EmployerEmployee:
    return EmployerEmployee(
        definition=definition, alpha=Fraction(alpha), epsilon=Fraction(epsilon), delta=Fraction(delta)
    )


def charge(name: str, guarantee: Guarantee, *, data: str = DATA) -> Charge:
    question = sha256(f"{name} {data}".encode()).hexdigest()
    return Charge(question=question, table=name, guarantee=guarantee, data=data)


def test_ten_tenths_fill_a_budget_of_one_exactly(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private("1"))
    for number in range(10):
        ledger.charge(JOBS, [charge(f"table {number}", private("1/10"))], "release")
    assert ledger.balance(JOBS).remaining_epsilon == 0
    with pytest.raises(Overdraft):
        ledger.charge(JOBS, [charge("one more", private("1/1000000000000"))], "release")


def test_an_overdraft_says_what_remains_and_what_was_asked_and_charges_nothing(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private("1", delta="1/1000"))
    ledger.charge(JOBS, [charge("a", private("3/4"))], "release")
    with pytest.raises(Overdraft) as refusal:
        ledger.charge(JOBS, [charge("b", private("1/5")), charge("c", private("1/5"))], "release")
    assert (refusal.value.remaining, refusal.value.requested) == (Fraction(1, 4), Fraction(2, 5))
    for said in ("epsilon = 0.25, delta = 0.001", "epsilon = 0.4, delta = 0", "sfumato budget set"):
        assert said in str(refusal.value)
    assert ledger.balance(JOBS).spent_epsilon == Fraction(3, 4)


def test_delta_is_a_budget_of_its_own(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private("9", delta="1/1000"))
    ledger.charge(JOBS, [charge("a", private("1", delta="1/1000"))], "release")
    with pytest.raises(Overdraft) as refusal:
        ledger.charge(JOBS, [charge("b", private("1", delta="1/1000"))], "release")
    assert (refusal.value.remaining_delta, refusal.value.requested_delta) == (Fraction(0), Fraction(1, 1000))


@given(
    budget=st.fractions(0, 3, max_denominator=50),
    asked=st.lists(st.fractions(0, 1, max_denominator=50), max_size=8),
)
def test_whatever_is_asked_what_is_spent_never_exceeds_the_budget(budget: Fraction, asked: list[Fraction]) -> None:
    spent: list[Cost] = []
    for epsilon in asked:
        one = Cost(guarantee=private(str(epsilon)))
        try:
            refuse_overdraft(JOBS, private(str(budget)), spent, [one])
            spent.append(one)
        except Overdraft:
            assert balance(JOBS, private(str(budget)), spent).spent_epsilon + epsilon > budget
    assert balance(JOBS, private(str(budget)), spent).remaining_epsilon >= 0


def test_a_table_at_a_narrower_alpha_costs_its_steps(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private("10", alpha="1/2"))
    ledger.charge(JOBS, [charge("a", private("1", alpha="1/10"))], "release")
    assert ledger.balance(JOBS).spent_epsilon == 7


def test_a_question_is_charged_once_and_its_entry_returned_again(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private("1"))
    question = charge("a", private("1"))
    first = ledger.charge(JOBS, [question], "release").entries
    again = ledger.charge(JOBS, [question, question], "the same release again")
    assert again.entries == first * 2
    assert again.new == frozenset()
    assert len(ledger.history()) == 2


def test_one_digest_cannot_pay_for_a_dearer_question(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private("1"))
    cheap = charge("a", private("1/10"))
    dear = Charge(question=cheap.question, table="a", guarantee=private("1"), data=DATA)
    with pytest.raises(LedgerError, match="same digest"):
        ledger.charge(JOBS, [cheap, dear], "release")
    ledger.charge(JOBS, [cheap], "release")
    with pytest.raises(LedgerError, match="same digest"):
        ledger.charge(JOBS, [dear], "release")


def test_a_release_is_charged_as_a_whole_or_not_at_all(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private("1"))
    with pytest.raises(BudgetError):
        ledger.charge(JOBS, [charge("a", private("1")), charge("b", private("1", definition="weak"))], "r")
    assert [entry.kind for entry in ledger.history()] == ["budget"]


def test_a_weak_table_is_refused_by_a_strong_budget_and_allowed_by_a_weak_one(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private("2"))
    table = charge("a", private("1", definition="weak"))
    with pytest.raises(BudgetError, match=r"(?s)without prior knowledge.*budget definition = \"weak\""):
        ledger.charge(JOBS, [table], "release")
    ledger.set_budget(JOBS, private("2", definition="weak"))
    ledger.charge(JOBS, [charge("b", private("1"))], "release")
    assert ledger.balance(JOBS).definition == "strong"
    ledger.charge(JOBS, [table], "release")
    assert ledger.balance(JOBS).definition == "weak"
    with pytest.raises(BudgetError, match="strong definition"):
        ledger.set_budget(JOBS, private("9"))


@pytest.mark.parametrize("definition", ["strong", "weak"])
def test_a_table_for_individuals_only_is_refused_by_a_budget_that_protects_employers(
    ledger: Ledger, definition: Definition
) -> None:
    ledger.set_budget(JOBS, private("2", definition=definition))
    with pytest.raises(
        BudgetError, match=r"(?s)neither the size nor the shape.*definition = \"individuals\""
    ) as refusal:
        ledger.charge(JOBS, [charge("a", private("1", definition="individuals"))], "release")
    assert definition in refusal.value.expected
    assert [entry.kind for entry in ledger.history()] == ["budget"]


def test_a_budget_for_individuals_accepts_every_table_at_its_own_epsilon(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private("3", alpha="1/2", definition="individuals"))
    definitions: tuple[Definition, ...] = ("strong", "weak", "individuals")
    for definition in definitions:
        [entry] = ledger.charge(JOBS, [charge(definition, private("1", definition=definition))], "release").entries
        assert entry.guarantee == private("1", definition=definition)
        assert ledger.balance(JOBS).definition == definition
    assert ledger.balance(JOBS).remaining_epsilon == 0
    with pytest.raises(BudgetError, match="weak definition"):
        ledger.set_budget(JOBS, private("99", definition="weak"))


def test_a_weak_table_at_a_narrower_alpha_than_the_budget_is_refused_as_a_matter_of_budget(
    ledger: Ledger,
) -> None:
    ledger.set_budget(JOBS, private("9", alpha="1/2", definition="weak"))
    with pytest.raises(BudgetError, match="implies no guarantee"):
        ledger.charge(JOBS, [charge("a", private("1", definition="weak"))], "release")


def test_a_table_without_a_formal_guarantee_costs_nothing_and_is_recorded(ledger: Ledger) -> None:
    [entry] = ledger.charge(JOBS, [charge("a", LEGACY)], "release").entries
    ledger.set_budget(JOBS, private("1"))
    assert entry.guarantee == LEGACY
    assert ledger.balance(JOBS).spent_epsilon == 0


def test_a_budget_may_fall_to_what_is_spent_but_not_below(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private("2"))
    ledger.charge(JOBS, [charge("a", private("1"))], "release")
    ledger.set_budget(JOBS, private("1"), note="no more tables this year")
    with pytest.raises(BudgetError, match="at least what is spent: epsilon = 1, delta = 0"):
        ledger.set_budget(JOBS, private("1/2"))
    assert ledger.balance(JOBS).remaining_epsilon == 0
    assert [entry.note for entry in ledger.history() if entry.kind == "budget"] == [
        "",
        "no more tables this year",
    ]


def test_a_release_opens_its_account_once(ledger: Ledger) -> None:
    opened = ledger.ensure_budget(JOBS, private("1"), DATA)
    assert ledger.ensure_budget(JOBS, private("1"), DATA) == opened
    assert ledger.accounts() == (JOBS,)


def test_a_release_that_states_another_budget_is_refused_naming_both(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private("1"))
    with pytest.raises(BudgetError) as refusal:
        ledger.ensure_budget(JOBS, private("4"), DATA)
    for said in ("epsilon = 1", "epsilon = 4", "sfumato budget set"):
        assert said in str(refusal.value)


def test_a_renamed_population_does_not_escape_its_budget(ledger: Ledger) -> None:
    ledger.ensure_budget(JOBS, private("1"), DATA)
    ledger.charge(JOBS, [charge("a", private("1"))], "release")
    with pytest.raises(BudgetError, match=r"(?s)'jobs' in '2025'.*sfumato budget set"):
        ledger.ensure_budget(RENAMED, private("1"), DATA)
    ledger.ensure_budget(RENAMED, private("1"), OTHER_DATA)
    with pytest.raises(BudgetError, match="once more"):
        ledger.charge(RENAMED, [charge("a", private("1"))], "release")
    ledger.ensure_budget(JOBS, private("1"), DATA)


def test_an_officer_may_open_a_second_account_on_the_same_data(ledger: Ledger) -> None:
    ledger.ensure_budget(JOBS, private("1"), DATA)
    ledger.charge(JOBS, [charge("a", private("1"))], "release")
    ledger.set_budget(RENAMED, private("1"), note="agreed by the board")
    ledger.ensure_budget(RENAMED, private("1"), DATA)
    ledger.charge(RENAMED, [charge("a", private("1"))], "release")
    assert ledger.balance(RENAMED).remaining_epsilon == 0


def test_accounts_do_not_share_budgets(ledger: Ledger) -> None:
    later = Account(population="jobs", period="2026")
    ledger.set_budget(JOBS, private("1"))
    ledger.set_budget(later, private("1"))
    ledger.charge(JOBS, [charge("a", private("1"))], "release")
    assert ledger.balance(later).remaining_epsilon == 1
    assert ledger.accounts() == (JOBS, later)
    assert [entry.kind for entry in ledger.history(JOBS)] == ["budget", "charge"]


def test_an_account_without_a_budget_cannot_be_charged_or_balanced(ledger: Ledger) -> None:
    with pytest.raises(BudgetError, match="sfumato budget set"):
        ledger.charge(JOBS, [charge("a", private("1"))], "release")
    with pytest.raises(BudgetError, match="'jobs' in '2025'"):
        ledger.balance(JOBS)


def test_an_answer_is_recorded_once(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private("1"))
    table = charge("a", private("1"))
    ledger.charge(JOBS, [table], "release")
    assert ledger.answer(table.question) is None
    first = ledger.record_answer(JOBS, table.question, "a", "ab" * 32)
    assert ledger.record_answer(JOBS, table.question, "a", "ab" * 32) == first
    assert ledger.answer(table.question) == "ab" * 32
    with pytest.raises(LedgerError, match="another answer to the same question"):
        ledger.record_answer(JOBS, table.question, "a", "cd" * 32)


def test_only_a_charged_question_can_be_answered(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private("1"))
    with pytest.raises(LedgerError, match="no charge"):
        ledger.record_answer(JOBS, "ab", "a", "ab" * 32)


def test_identifiers_are_random_and_say_nothing_about_the_entry(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, private("1"))
    [entry] = ledger.charge(JOBS, [charge("a", private("1"))], "release").entries
    [informal] = ledger.charge(JOBS, [charge("b", LEGACY)], "release").entries
    assert len({entry.identifier, informal.identifier}) == 2
    assert all(len(e.identifier) == 32 and int(e.identifier, 16) for e in (entry, informal))


@given(
    name=st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip),
    epsilon=st.fractions(0, 1),
)
@settings(deadline=None, max_examples=25)
def test_every_name_and_fraction_comes_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, name: str, epsilon: Fraction
) -> None:
    ledger = Ledger.open(tmp_path_factory.mktemp("ledger") / "ledger.sqlite", create=True)
    account = Account(population=name, period=name)
    ledger.set_budget(account, private("1"), note=name)
    asked = Charge(question="ab", table=name, guarantee=private(str(epsilon)), data=DATA)
    written = ledger.charge(account, [asked], name).entries
    assert Ledger.open(ledger.path).history()[1:] == written
    assert (written[0].release, written[0].table, written[0].guarantee) == (name, name, asked.guarantee)


@pytest.mark.parametrize("wrong", ["", "not hex", "ABCD"])
def test_digests_must_be_hexadecimal(ledger: Ledger, wrong: str) -> None:
    with pytest.raises(ValueError, match="hexadecimal"):
        Charge(question=wrong, table="a", guarantee=LEGACY, data=DATA)
    with pytest.raises(ValueError, match="hexadecimal"):
        ledger.record_answer(JOBS, "ab", "a", wrong)


def test_an_account_has_a_name_and_a_period() -> None:
    with pytest.raises(BudgetError, match="a population and a period"):
        Account(population="jobs", period=" ")
