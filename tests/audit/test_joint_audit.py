"""All that a release publishes, together, reveals no more of neighbouring data than its statement says."""

import re

import pytest

from sfumato.statistics.cube.section import CubeSection
from sfumato.statistics.registry import METHODS, is_free
from tests.audit.cases import CASES, FULL_DRAWS, QUICK, QUICK_DRAWS
from tests.audit.harness import Case, audit
from tests.audit.page import KINDS, PAGE

SHOWN_ONLY = {"name", "title", "by", "epsilon", "cap", "sampling", "least_count", "largest_cv", "least_weighted"} | {
    "rules_before",
    "identifying",
}
"""Keys of a cube that every cube has, or that change no number of it."""
GIVE_UP_THE_GUARANTEE = {"draws"}
"""Keys whose other value states no guarantee: tests/statistics/cube/test_shared_draws.py shows that there is none."""


@pytest.mark.parametrize("case", QUICK, ids=lambda case: case.name)
def test_all_published_columns_together_reveal_no_more_than_is_stated(case: Case) -> None:
    found = audit(case, QUICK_DRAWS)
    assert found.holds, str(found)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_many_draws_of_every_case_reveal_no_more_than_is_stated(case: Case) -> None:
    found = audit(case, FULL_DRAWS)
    assert found.holds, str(found)


def test_every_method_with_a_guarantee_is_audited_in_every_round() -> None:
    asked = {name for case in QUICK for name in re.findall(r'method = "([\w-]+)"', case.release())}
    asked |= {question.method for case in QUICK for question in case.questions}
    by_another_name = {"laplace-records", "laplace-total", "laplace-mean"}  # of people, which a file calls laplace
    laplace = {"count = ", "total = ", "mean = "}
    assert all(any(f"{one}" in case.tables and "laplace" in case.tables for case in QUICK) for one in laplace)
    without = {"local-sensitivity"}  # states that it has none
    assert {name for name in METHODS if not is_free(name)} - by_another_name - without <= asked


def test_every_option_of_a_cube_is_audited_in_every_round() -> None:
    cubes = "".join(case.tables for case in QUICK)
    asked = set(CubeSection.model_fields) - SHOWN_ONLY - GIVE_UP_THE_GUARANTEE
    assert asked <= set(re.findall(r"^(\w+) = ", cubes, flags=re.MULTILINE))


def test_cases_have_names_of_their_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_the_page_has_what_was_found_for_every_case() -> None:
    page = PAGE.read_text(encoding="utf-8")
    listed = {kind: page.split(f"<!-- generated: {kind} -->")[1].split("<!-- end -->")[0] for kind in KINDS}
    missing = [case.name for kind, cases in KINDS.items() for case in cases if f"\n| {case.name} |" not in listed[kind]]
    assert not missing, "run python -m tests.audit.page"
