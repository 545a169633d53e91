"""What a reader asks is wholly in the address, in one spelling, and forms without JavaScript mean what they show."""

from dataclasses import replace
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.serve.core.bundle import Kind
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.model import Metric
from sfumato.serve.core.selection import ALL, MOST_EXPRESSIONS, alone, places_of
from sfumato.serve.page.question import (
    CHARTS,
    ERRORS,
    ORDERS,
    PERCENTAGES,
    PLACES,
    Display,
    ReaderQuestion,
    Variable,
    first_question,
    spell_code,
    spell_codes,
)
from sfumato.serve.page.reading import read
from sfumato.serve.page.snippets import snippets
from sfumato.serve.pxweb.request import split
from tests.serve.page.made import dimension, table

ENDS: tuple[Kind, ...] = ("low", "high")
CODES = ("a", "b,c", "[0,5)", "d e", "é&=", "100%", "*f", "?g", "b-c", "x,(y)", "(p),q", "(p)-q", "*", "a,*f")
"""A link to `b,c` must not mean `b-c` as well, one to `a` and `*f` not `a,*f`, and one to `*` not all codes."""
TABLE = table(
    dimension("place", CODES),
    dimension("industry", [f"I{number:03}" for number in range(120)]),
    dimension("quarter", ("2024-Q1", "2024-Q2"), role="time", eliminable=False),
)


@st.composite
def questions(draw: st.DrawFn) -> ReaderQuestion:
    variables = []
    for one in draw(st.permutations(TABLE.dimensions)):
        codes = draw(st.lists(st.sampled_from(one.codes), min_size=1, unique=True))
        place = draw(st.sampled_from(PLACES[:3] if one.name == "quarter" else PLACES))
        variables.append(Variable(dimension=one, place=place, wanted=tuple(map(alone, codes))))
    display = Display(
        chart=draw(st.sampled_from(list(CHARTS))),
        percent=draw(st.sampled_from(list(PERCENTAGES))),
        order=draw(st.sampled_from(list(ORDERS))),
        errors=draw(st.sampled_from(list(ERRORS))),
        totals=draw(st.booleans()),
        page=draw(st.integers(1, 9)),
    )
    variables.sort(key=lambda variable: PLACES.index(variable.place))
    return ReaderQuestion(table=TABLE, variables=tuple(variables), metrics=("value", "error"), display=display)


@given(questions())
def test_an_address_says_everything(question: ReaderQuestion) -> None:
    again = read(TABLE, parse_qsl(question.query()))
    assert again.selection() == question.selection()
    assert again.display == question.display
    assert again.query() == question.query()
    for place in ("rows", "columns"):
        assert [one.name for one in again.placed(place)] == [one.name for one in question.placed(place)]


@given(st.sets(st.integers(0, 119), min_size=1))
def test_many_codes_are_written_in_short(places: set[int]) -> None:
    industry = TABLE.dimensions[1]
    text = spell_codes(industry, [industry.codes[place] for place in places])
    assert set(places_of(industry, split(text))) == places
    assert len(text) <= 5 * len(places)


def test_expressions_stay_in_a_link() -> None:
    question = read(TABLE, [("valueCodes[quarter]", "top(1)"), ("valueCodes[place]", "*")])
    assert "top(1)" in question.query()
    assert question.selection().places == (tuple(range(len(CODES))), None, (1,))


def test_as_many_codes_as_there_are_may_be_chosen_also_with_commas_in_them() -> None:
    codes = [f"{number},5" for number in range(3 * MOST_EXPRESSIONS)]
    made = table(dimension("size", codes))
    question = read(made, [("valueCodes[size]", code) for code in codes[::2]])
    assert read(made, parse_qsl(question.query())).selection().places == (tuple(range(0, len(codes), 2)),)


def test_what_a_form_sends_and_programs_are_given_means_the_codes_that_are_ticked() -> None:
    sent = [("valueCodes[place]", spell_code(code)) for code in ("*", "a,*f")]
    question = read(TABLE, [*sent, ("valueCodes[quarter]", "2024-Q1")])
    expected = tuple(TABLE.dimensions[0].places[code] for code in ("*", "a,*f"))
    assert question.selection().places[0] == expected
    assert '["range(*,*)", "a,*f"]' in snippets(question, question.selection(), "http://host.test")[1].text


def test_without_the_total_a_code_that_is_written_as_all_codes_is_one_of_them() -> None:
    made = table(dimension("kind", ("*", "a", "total"), total="total"))
    assert read(made, [("valueCodes[kind]", ALL)]).selection().places == ((0, 1),)


@pytest.mark.parametrize(
    ("ticked", "before", "wanted"),
    [
        (["*", "a"], ["*"], {"a"}),  # all were wanted, and one was ticked
        (["*", "a"], [], set(CODES)),  # one was wanted, and all were ticked
        (["*"], ["*"], set(CODES)),
        (["a", "d e"], ["*"], {"a", "d e"}),  # all was unticked
    ],
)
def test_of_two_wishes_the_newer_counts(ticked: list[str], before: list[str], wanted: set[str]) -> None:
    sent = [("at[place]", "rows"), ("at[quarter]", "columns"), ("valueCodes[quarter]", "*")]
    sent += [("valueCodes[place]", code) for code in ticked] + [("was[place]", text) for text in before]
    places = read(TABLE, sent).selection().places[0]
    assert {CODES[place] for place in places or ()} == wanted


def test_the_order_of_the_form_is_kept_and_a_button_changes_it() -> None:
    sent = [("at[quarter]", "rows"), ("at[place]", "rows"), ("at[industry]", "out")]
    sent += [("valueCodes[quarter]", "*"), ("valueCodes[place]", "a")]
    assert [one.name for one in read(TABLE, sent).placed("rows")] == ["quarter", "place"]
    assert [one.name for one in read(TABLE, [*sent, ("up", "place")]).placed("rows")] == ["place", "quarter"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("valueCodes[planet]", "Mars"), "planet"),
        (("valueCodes[place]", "nowhere"), "nowhere"),
        (("chart", "pie"), "pie"),
        (("page", "0"), "0"),
        (("page", "²"), "²"),
        (("stub", "planet"), "planet"),
        (("at[quarter]", "rows"), "none"),
        (("at[place]", "filters"), "filters"),
        (("foo", "1"), "foo"),
        (("valueCode[place]", "a"), "valueCode[place]"),
        (("contents", "zzz"), "contents"),
        (("valueCodes[contents]", "zzz"), "zzz"),
    ],
)
def test_what_is_not_understood_is_refused_only_when_it_is_asked(asked: tuple[str, str], said: str) -> None:
    question = read(TABLE, [("valueCodes[place]", "a"), asked])
    assert question.query()
    with pytest.raises(RefusedError) as refused:
        question.selection()
    assert refused.value.found == said


def test_a_variable_with_codes_and_no_place_is_a_filter() -> None:
    sent = [("valueCodes[place]", "a"), ("valueCodes[quarter]", "*"), ("at[quarter]", "rows")]
    question = read(TABLE, sent)
    assert [one.name for one in question.placed("filter")] == ["place"]
    assert question.selection().places == ((0,), None, (0, 1))
    out = read(TABLE, [*sent, ("at[place]", "out")])
    assert out.selection().places == (None, None, (0, 1)), "what is left out in so many words has no say"


def test_every_table_opens_with_figures(catalogue: Catalogue) -> None:
    for served in catalogue:
        question = first_question(served)
        answer = served.answer(question.selection())
        assert answer.columns[0].missing is None or not answer.columns[0].missing.all()
        assert 0 < question.selection().cells <= 10_000


def test_a_variable_of_one_code_has_no_column_of_its_own_when_a_table_is_opened() -> None:
    statistic, place, sex = (
        dimension(name, codes, eliminable=False)
        for name, codes in (("statistic", ("mean",)), ("place", ("a", "b", "c")), ("sex", ("f", "m")))
    )
    opened = first_question(table(statistic, place, sex))
    assert {variable.name: variable.place for variable in opened.variables} == {
        "place": "rows",
        "sex": "columns",
        "statistic": "filter",
    }
    assert first_question(table(statistic)).placed("rows")[0].name == "statistic"


def test_ranges_are_shown_when_a_table_of_them_is_opened() -> None:
    ends = tuple(Metric(code=kind, label=kind, unit="jobs", decimals=0, kind=kind, about="value") for kind in ENDS)
    made = table(dimension("place", ("a", "b")))
    ranges = replace(made, method="ranges", metrics=(made.metrics[0], *ends))
    assert first_question(ranges).metrics == ("value", "low", "high")
    assert first_question(replace(ranges, method="rounding")).metrics == ("value",)


def test_rows_and_columns_are_exchanged() -> None:
    question = first_question(TABLE)
    assert question.turned().placed("rows") == tuple(replace(one, place="rows") for one in question.placed("columns"))
    assert question.turned().turned().query() == question.query()
