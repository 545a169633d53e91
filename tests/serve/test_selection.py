"""What clients may write in place of codes."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.model import ServedDimension
from sfumato.serve.core.selection import places_of, select
from sfumato.serve.pxweb.request import split

CODES = ("A", "B", "B1", "C,1", "D", "total")
LETTERS = ServedDimension(name="letters", label="Letters", codes=CODES, labels=CODES)
QUARTERS = ServedDimension(
    name="quarter", label="Quarter", codes=("2024-Q4", "2025-Q1", "2025-Q2"), labels=("", "", ""), role="time"
)


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        (["A"], "A"),
        (["D", "A", "A"], "A D"),
        (["*"], "A B B1 C,1 D total"),
        (["b*"], "B B1"),
        (["?"], "A B D"),
        (["*1"], "B1 C,1"),
        (["*o?a*"], "total"),
        (["top(2)"], "A B"),
        (["TOP(2,1)"], "B B1"),
        (["bottom(1)"], "total"),
        (["bottom(2,1)"], "C,1 D"),
        (["range(B,D)"], "B B1 C,1 D"),
        (["range(C,1,D)"], "C,1 D"),
        (["range(D,B)"], "B B1 C,1 D"),
        (["From(D)"], "D total"),
        (["to(B)", "D"], "A B D"),
        (["top(99)"], "A B B1 C,1 D total"),
    ],
)
def test_expressions_stand_for_codes(expressions: list[str], expected: str) -> None:
    assert " ".join(CODES[place] for place in places_of(LETTERS, expressions)) == expected


def test_a_star_is_all_codes_also_where_one_of_them_is_written_so() -> None:
    codes = ("A", "*", "A*")
    odd = ServedDimension(name="odd", label="Odd", codes=codes, labels=codes)
    assert places_of(odd, ["*"]) == (0, 1, 2)
    assert places_of(odd, ["A*"]) == (2,), "other codes come before what they would stand for"


def test_the_top_of_time_is_the_latest() -> None:
    assert places_of(QUARTERS, ["top(1)"]) == (2,)
    assert places_of(QUARTERS, ["top(1,1)"]) == (1,)
    assert places_of(QUARTERS, ["bottom(1)"]) == (0,)


@pytest.mark.parametrize(
    "text", ["E", "top(0)", "top(-1)", "top(1e9)", "top(", "range(A)", "from(E)", "x*", "", "''; DROP"]
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(RefusedError, match="codes such as A, B"):
        places_of(LETTERS, [text])


@pytest.mark.parametrize(
    "expressions",
    [
        ["*" * 100_000],
        [f"*{n}" for n in range(1_000)],
        ["range(" + "," * 60_000 + ")"],
        ["*a" * 30_000],
        ["?" * 10_000],
    ],
)
def test_expressions_that_would_take_long_are_refused(expressions: list[str]) -> None:
    with pytest.raises(RefusedError):
        places_of(LETTERS, expressions)


@example(pattern="*" * 10 + "?")
@given(pattern=st.text(st.sampled_from("ab*?"), min_size=1, max_size=12).filter(lambda text: set(text) & {"*", "?"}))
def test_patterns_match_as_regular_expressions_do(pattern: str) -> None:
    codes = tuple(sorted({"a", "b", "ab", "ba", "aab", "bbaab", "abababab"}))
    dimension = ServedDimension(name="x", label="x", codes=codes, labels=codes)
    means = re.compile(re.sub(r"\*+", ".*", pattern).replace("?", "."))
    expected = tuple(place for place, code in enumerate(codes) if means.fullmatch(code))
    if expected:
        assert places_of(dimension, [pattern]) == expected
    else:
        with pytest.raises(RefusedError):
            places_of(dimension, [pattern])


@given(st.lists(st.sampled_from(["A", "range(A,D)", "top(2,1)", "[0,5)", "x y"])))
def test_what_is_written_with_commas_is_split_between_expressions_only(parts: list[str]) -> None:
    assert split(",".join(parts)) == parts


def test_names_do_not_mind_the_case_and_metrics_may_be_left_out(catalogue: Catalogue) -> None:
    table = catalogue["jobs_by_place"]
    selection = select(table, {"PLACE": ["*"]})
    assert selection.metrics == tuple(range(len(table.metrics)))
    with pytest.raises(RefusedError, match="one of its dimensions: place, contents"):
        select(table, {"sex": ["*"]})


@pytest.mark.parametrize(("code", "said"), [("200+", "200"), ("A+B", "A B"), ("+5", "5")])
def test_a_plus_that_an_address_turned_into_a_space_is_explained(code: str, said: str) -> None:
    sizes = ServedDimension(name="size", label="Size", codes=("1-19", code), labels=("", ""))
    with pytest.raises(RefusedError, match="write \\+ as %2B in an address"):
        places_of(sizes, split(said))
    with pytest.raises(RefusedError, match="correct the codes"):
        places_of(sizes, ["300"])


def test_a_dimension_in_two_spellings_is_asked_for_both_codes(catalogue: Catalogue) -> None:
    table = catalogue["jobs_by_place"]
    one, two, *_ = table.dimensions[0].codes
    assert select(table, {"place": [two], "PLACE": [one]}).places == ((0, 1),)
