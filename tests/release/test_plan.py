"""The plan tells the guarantee and the charge of every table from the release alone."""

from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.checking import check, checked
from sfumato.errors import BudgetError, MethodError, ReleaseError
from sfumato.plan import Plan
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.release import load
from tests.release.test_release_file import GOOD, written


def plan(folder: Path, *changes: tuple[str, str]) -> Plan:
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return check(load(written(folder, text))).plan


def test_workplace_attributes_are_strong_and_cost_epsilon_once(tiny: Path) -> None:
    first = plan(tiny).tables[0]
    assert first.guarantee == EmployerEmployee(definition="strong", alpha=Fraction("0.1"), epsilon=Fraction(2))


def test_tables_add_up_at_the_alpha_of_the_budget(tiny: Path) -> None:
    # The second table is protected at alpha = .2, which covers .1 at the same epsilon.
    assert plan(tiny).guarantee.epsilon == 2 + Fraction(1, 3)


def test_a_narrower_alpha_costs_as_many_steps_as_it_takes_to_reach_the_budgets(tiny: Path) -> None:
    narrow = plan(tiny, ("epsilon = 2.0 }", "epsilon = 0.5, alpha = 0.01 }"))
    assert narrow.tables[0].guarantee.epsilon == Fraction(1, 2)
    steps = (narrow.guarantee.epsilon - Fraction(1, 3)) / Fraction(1, 2)
    assert steps >= 10  # ln 1.1 / ln 1.01 is 9.6, and whole workers add steps
    assert steps.denominator == 1


WEAK = ("epsilon = 4.0 }", 'epsilon = 4.0, definition = "weak" }')


@pytest.mark.parametrize(
    ("by", "cells"),
    [
        ('by = ["place", "sex"]', 2),
        ('by = ["place"]\nwhere = { sex = ["F"] }', 1),
        ('by = ["sex"]\nwhere = { sex = "F" }', 1),
    ],
)
def test_in_scalar_form_worker_attributes_are_weak_and_share_the_epsilon_of_the_table(
    tiny: Path, by: str, cells: int
) -> None:
    scalar = ("epsilon = 2.0", 'form = "scalar", epsilon = 2.0')
    table = plan(tiny, WEAK, ('by = ["place"]', by), scalar).tables[0]
    assert table.guarantee == EmployerEmployee(definition="weak", alpha=Fraction("0.1"), epsilon=Fraction(2))
    alone = plan(tiny, WEAK, ('by = ["place"]', by), scalar, ("epsilon = 2.0", f"epsilon = {2 * cells}.0")).tables[0]
    strong = plan(tiny).tables[0]
    assert alone.method.planned_error() == strong.method.planned_error()


def test_a_weak_table_is_refused_by_a_strong_budget_before_data_are_read(tiny: Path) -> None:
    with pytest.raises(BudgetError, match='definition = "weak"'):
        plan(tiny, ('by = ["place"]', 'by = ["place"]\nwhere = { sex = "F" }'))


def test_a_table_by_worker_attributes_is_one_strong_vector_by_default(tiny: Path) -> None:
    table = plan(tiny, ('by = ["place"]', 'by = ["place", "sex"]')).tables[0]
    assert table.method.name == "vector-pareto"
    assert table.guarantee == EmployerEmployee(definition="strong", alpha=Fraction("0.1"), epsilon=Fraction(2))


def test_where_the_vector_does_not_exist_the_settings_that_do_are_named(tiny: Path) -> None:
    with pytest.raises(MethodError, match="by_place") as error:
        plan(tiny, ('by = ["place"]', 'by = ["place", "sex"]'), ("epsilon = 2.0", "epsilon = 0.15"))
    assert "alpha" in error.value.do
    assert "epsilon" in error.value.do


@pytest.mark.parametrize("method", ["vector-pareto", "auto"])
def test_a_vector_of_filtered_workers_is_refused(tiny: Path, method: str) -> None:
    filtered = ('by = ["place"]', 'by = ["place", "sex"]\nwhere = { sex = "F" }')
    with pytest.raises(ReleaseError, match="`where` on sex"):
        plan(tiny, WEAK, filtered, ("epsilon = 2.0", f'method = "{method}", epsilon = 2.0'))


@pytest.mark.parametrize(("by", "form"), [('["place"]', "vector"), ('["place", "sex"]', "matrix")])
def test_a_form_that_does_not_fit_is_refused(tiny: Path, by: str, form: str) -> None:
    with pytest.raises(ReleaseError, match="the fitting one is chosen"):
        plan(tiny, ('by = ["place"]', f"by = {by}"), ("epsilon = 2.0", f'form = "{form}", epsilon = 2.0'))


def test_a_weak_table_at_a_narrower_alpha_than_the_budgets_is_refused(tiny: Path) -> None:
    filtered = ('by = ["place"]', 'by = ["place"]\nwhere = { sex = "F" }')
    with pytest.raises(BudgetError, match="implies no guarantee"):
        plan(tiny, WEAK, filtered, ("epsilon = 2.0", "alpha = 0.05, epsilon = 2.0"))


LAPLACE = ("epsilon = 2.0 }", 'method = "laplace", epsilon = 2.0 }')
INDIVIDUALS = ("epsilon = 4.0 }", 'epsilon = 4.0, definition = "individuals" }')


def test_a_table_for_individuals_only_needs_a_budget_that_says_so(tiny: Path) -> None:
    with pytest.raises(BudgetError, match="neither the size nor the shape"):
        plan(tiny, LAPLACE)
    allowed = plan(tiny, LAPLACE, INDIVIDUALS)
    assert allowed.guarantee == EmployerEmployee(
        definition="individuals", alpha=Fraction("0.1"), epsilon=2 + Fraction(1, 3)
    )


def test_an_option_of_a_method_is_read_from_the_release_file(tiny: Path) -> None:
    delta = ("epsilon = 4.0 }", "epsilon = 4.0, delta = 0.001 }")
    table = plan(tiny, delta, ("epsilon = 2.0 }", 'method = "smooth-laplace", epsilon = 2.0, delta = 0.0005 }')).tables[
        0
    ]
    assert isinstance(table.guarantee, EmployerEmployee)
    assert table.guarantee.delta == Fraction(1, 2000)


def test_noise_infusion_needs_a_key_file(tiny: Path) -> None:
    with pytest.raises(ReleaseError, match="sfumato keys new"):
        plan(tiny, ("epsilon = 2.0 }", 'method = "noise-infusion" }'))


def test_node_laplace_leaves_out_establishments_by_their_whole_workforce(tiny: Path) -> None:
    node = plan(
        tiny,
        ('by = ["place"]', 'by = ["place", "sex"]'),
        ("epsilon = 2.0 }", 'method = "node-laplace", threshold = 3, epsilon = 2.0 }'),
    )
    assert node.tables[0].guarantee == EmployerEmployee(definition="strong", alpha=Fraction("0.1"), epsilon=Fraction(2))
    with checked(node.release) as ready:
        cells = ready.count({"t": node.tables[0]})["t"]
    assert cells["count"].tolist() == [3, 2, 2, 1]
    # Of the workforces of 3, 2 and 3 only the second is below the threshold: one woman and one man in A.
    assert cells["count_below_threshold"].tolist() == [1, 1, 0, 0]


def test_too_small_an_epsilon_names_the_inequality_and_the_nearest_parameters(tiny: Path) -> None:
    with pytest.raises(MethodError) as error:
        plan(tiny, ("epsilon = 2.0", "epsilon = 0.05"))
    assert "ln(1" in str(error.value)
    assert "0.0" in error.value.do


def test_a_question_asked_twice_is_paid_once(tiny: Path) -> None:
    from sfumato.running import run

    twin = (
        ('by = ["industry"]', 'by = ["place"]'),
        ('method = "smooth-pareto", epsilon = "1/3", alpha = 0.2', "epsilon = 2.0"),
    )
    planned = plan(tiny, *twin)
    assert planned.guarantee.epsilon == 2
    published = run(planned.release)
    assert published.charged == ("by_place",)
    assert published.balance.spent_epsilon == 2
    tables = [(published.bundle / "tables" / f"{name}.csv").read_bytes() for name in ("by_place", "by_industry")]
    assert tables[0] == tables[1]


def test_a_method_that_counts_establishments_is_refused_in_a_joined_table_before_any_charge(tmp_path: Path) -> None:
    from tests.engine.test_tabulate import joined_frame

    joined_frame(tmp_path)
    text = GOOD[: GOOD.index("[data]")].replace(*WEAK) + GOOD[GOOD.index("[data]") :]
    start, end = text.index("jobs = {"), text.index("public =")
    text = text[:start] + 'jobs = { path = "joined.parquet", worker = "worker" }\n' + text[end:]
    codes = '[data.attributes]\nplace = { codes = ["A", "B"] }\nindustry = { codes = ["11", "62"] }\n\n'
    text = text.replace("[data.attributes.sex]", codes + "[data.attributes.sex]")
    text = text.replace('by = ["place"]', 'by = ["place", "sex"]').replace(
        "epsilon = 2.0", 'method = "auto", epsilon = 2.0'
    )
    with pytest.raises(ReleaseError, match="establishments"):
        check(load(written(tmp_path, text)))


def test_check_sees_an_overdraft_of_delta_before_there_is_a_ledger(tiny: Path) -> None:
    text = GOOD.replace("epsilon = 2.0 }", 'method = "smooth-laplace", epsilon = 2.0, delta = 0.0005 }', 1)
    found = check(load(written(tiny, text)))
    assert "delta = 0.0005" in str(found.refusal)


def test_tables_that_are_biased_are_not_reconciled_with_others(tiny: Path) -> None:

    on = ('period = "2025"', 'period = "2025"\nreconcile = true')
    assert plan(tiny, on).reconciled == ("by_place", "by_industry")
    node = ("epsilon = 2.0 }", 'method = "node-laplace", threshold = 20, epsilon = 2.0 }')
    assert plan(tiny, on, node).reconciled == ()


@pytest.mark.parametrize(
    ("asked", "needed"),
    [
        ('growth = "earnings"', "records = "),
        ('total = "earnings"', "a measure"),
        ('flow = { attribute = "place" }', "a panel"),
        ('indicators = "all"', "a panel"),
    ],
)
def test_what_no_method_publishes_of_these_data_is_refused_without_naming_a_method_that_is_refused_too(
    tiny: Path, asked: str, needed: str
) -> None:
    with pytest.raises(ReleaseError) as refusal:
        plan(tiny, ('count = "jobs"', asked))
    assert needed in refusal.value.expected
    assert "noise-infusion" not in str(refusal.value)
