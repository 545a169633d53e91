"""Tables and periods compared, and groups of codes that readers make."""

from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import pytest

from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.compared import compared, others_to_compare
from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.selection import everything, select
from sfumato.serve.page.charts import chart_of
from sfumato.serve.page.own_groups import _groups
from sfumato.serve.page.reading import read
from sfumato.serve.page.table_page import comparisons, headline, page_title
from sfumato.serve.page.view import View, view_of
from tests.serve.page.made import Counted, catalogue_of, dimension, table

SEX, AGE = dimension("sex", ("f", "m")), dimension("age", ("1", "2", "3"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def year(name: str, *dimensions: Any, error: float) -> Any:
    return replace(table(*dimensions, error=error), id=f"y{name}", period=name)


OLD = year("2024", SEX, AGE, error=0.3)
NEW = year("2025", dimension("age", ("3", "2", "9")), dimension("sex", ("m", "f")), error=0.4)


def test_a_comparison_has_both_figures_and_their_difference_under_the_same_codes() -> None:
    both = compared(OLD, NEW)
    assert [axis.codes for axis in both.dimensions] == [("f", "m"), ("2", "3")]
    answer = both.answer(everything(both))
    by_code = dict(zip(both.contents.codes, answer.columns, strict=True))
    old = np.array([[2.0, 3.0], [5.0, 6.0]])
    new = np.array([[4.0, 2.0], [3.0, 1.0]])  # of age 3, 2 and sex m, f the figures are 1 2, 3 4
    np.testing.assert_allclose(by_code["first"].values, old)
    np.testing.assert_allclose(by_code["second"].values, new)
    np.testing.assert_allclose(by_code["difference"].values, new - old)
    np.testing.assert_allclose(by_code["difference_error"].values, np.hypot(0.3 * old, 0.4 * new))
    assert [metric.label for metric in both.metrics if metric.kind == "value"] == ["2024", "2025", "Difference"]


def test_codes_and_totals_of_a_comparison_are_asked_for_like_others() -> None:
    both = compared(OLD, NEW)
    some = both.answer(select(both, {"age": ["3"], "contents": ["difference"]}))
    np.testing.assert_allclose(some.columns[0].values, [(1 + 2) - (3 + 6)])
    turned = both.answer(select(both, {"age": ["2", "3"], "sex": ["m"], "contents": ["second"]}))
    np.testing.assert_allclose(turned.columns[0].values, [[3.0, 1.0]])


def test_a_figure_that_one_table_lacks_has_no_difference() -> None:
    lacking = replace(OLD, id="lacking", source=_Lacking(shape=(2, 3)))
    answer = compared(OLD, lacking).answer(everything(compared(OLD, lacking)))
    missing = {metric.code: column.missing for metric, column in zip(answer.metrics, answer.columns, strict=True)}
    assert missing["difference"] is not None
    assert missing["difference"].tolist() == [[True, False, False], [False, False, False]]


class _Lacking(Counted):
    def figures(self, selection: Any) -> Any:
        found = super().figures(selection)
        columns = tuple(replace(one, missing=one.values == one.values.min()) for one in found.columns)
        return replace(found, columns=columns)


@pytest.mark.parametrize("other", [OLD, table(SEX), replace(NEW, dimensions=(SEX, dimension("age", ("9",))))])
def test_tables_that_do_not_fit_are_not_compared(other: Any) -> None:
    assert others_to_compare(OLD, [other]) == ()
    with pytest.raises(RefusedError, match="by the same variables"):
        compared(OLD, other)


def test_tables_of_the_same_name_are_told_apart_by_what_they_were_released_as() -> None:
    first, second = (replace(table(SEX), id=name, release=f"Jobs, {name}") for name in ("rounded", "withheld"))
    both = compared(first, second)
    assert [metric.label for metric in both.metrics][::2] == ["Jobs, rounded", "Jobs, withheld", "Difference"]
    assert comparisons(first, [second]) == (("withheld", "A table that was made, 2025 (Jobs, withheld)"),)
    again = [replace(table(SEX), id=f"{bundle}-jobs") for bundle in ("draft", "final")]
    assert compared(*again).title == "A table that was made: draft and final"
    assert comparisons(OLD, [NEW]) == (("y2025", "A table that was made, 2025"),)


def test_a_comparison_is_not_called_after_one_of_both() -> None:
    question = read(compared(OLD, NEW), [])
    assert headline(view_of(question, question.selection()), question) == "A table that was made: 2024 and 2025"


def test_a_comparison_has_an_address_of_its_own() -> None:
    catalogue = catalogue_of(OLD, NEW)
    assert catalogue["y2024~y2025"] is catalogue["Y2024~y2025"]
    assert len(catalogue) == 2
    for name in ("y2024~y2024", "y2024~nothing", "y2024~y2025~y2024", "~", "y2024~"):
        with pytest.raises(RefusedError):
            catalogue[name]


@pytest.mark.anyio
async def test_programs_get_a_comparison_too_but_it_is_no_dataflow_and_no_data_set() -> None:
    transport = httpx.ASGITransport(app=make_app(catalogue_of(OLD, NEW), Settings()))
    async with httpx.AsyncClient(transport=transport, base_url="http://tables.test") as client:
        for path, status in (
            ("/api/v2/tables/y2024~y2025/metadata", 200),
            ("/api/v2/tables/y2024~y2025/data?outputFormat=csv", 200),
            ("/tables/y2024~y2025", 200),
            ("/tables/y2024~y2025/chart.svg", 200),
            ("/sdmx/2.1/data/y2024~y2025", 404),
            ("/sdmx/3.0/data/dataflow/*/y2024~y2025/*/*", 404),
            ("/catalog/y2024~y2025", 404),
            ("/catalog/y2024", 200),
        ):
            assert (await client.get(path)).status_code == status, path
        assert "ld+json" in (await client.get("/tables/y2024")).text
        assert "ld+json" not in (await client.get("/tables/y2024~y2025")).text


# Changes from one period to the next.

PERIODS = dimension("quarter", ("2024-Q1", "2024-Q2", "2024-Q3"), role="time")
ASKED = [("valueCodes[sex]", "*"), ("valueCodes[quarter]", "*"), ("stub", "sex"), ("heading", "quarter")]


def changed(of: Any, show: str) -> View:
    question = read(of, [*ASKED, ("percent", show)])
    return view_of(question, question.selection())


def test_changes_are_those_on_the_period_before_with_the_errors_of_both() -> None:
    made = table(SEX, PERIODS, error=0.1)
    change, growth = changed(made, "change"), changed(made, "growth")
    np.testing.assert_allclose(change.values[..., 0], [[np.nan, 1, 1], [np.nan, 1, 1]])
    np.testing.assert_allclose(growth.values[..., 0], [[np.nan, 100, 50], [np.nan, 25, 20]])
    np.testing.assert_allclose(change.values[0, 1:, 1], [np.hypot(0.1, 0.2), np.hypot(0.2, 0.3)])
    np.testing.assert_allclose(growth.values[0, 1, 1], 100 * np.hypot(0.2, 0.1 * 2) / 1)
    assert (change.percent, growth.percent) == (False, True)


def test_a_change_is_marked_by_its_own_error() -> None:
    change = changed(table(SEX, PERIODS, error=0.1), "change")
    assert [one.mark for one in map(_remark, change.remarks[:, 1, 0])] == [0, 2]  # 1 ± 0.22, and 1 ± 0.64
    exact = changed(table(SEX, PERIODS, error=0), "change")
    assert {one.mark for one in map(_remark, exact.remarks[:, 1:, 0].ravel())} == {0}


def _remark(number: int) -> Any:
    from sfumato.serve.core.status import REMARKS

    return REMARKS[number]


def test_what_figures_are_shown_as_is_said_wherever_they_are_named() -> None:
    """In a frame, in a picture or on paper there is no form that says it."""
    question = read(table(SEX, PERIODS), [*ASKED, ("percent", "change")])
    view = view_of(question, question.selection())
    assert headline(view, question) == "Jobs by sex and quarter: change on the period before"
    assert page_title(view, question).endswith(". Change on the period before")
    drawn = chart_of(view, question, name="")
    assert drawn is not None
    assert drawn.title == "Jobs: change on the period before"
    whole = read(table(SEX, AGE), [("percent", "change")])  # no periods, so no changes
    assert headline(view_of(whole, whole.selection()), whole) == "Jobs by age and sex"


def test_without_periods_there_are_no_changes_and_this_is_said() -> None:
    question = read(table(SEX, AGE), [("percent", "change")])
    assert any("no changes to show" in note for note in view_of(question, question.selection()).notes)


# Groups that a reader makes.


def test_own_groups_of_a_cube_have_exact_sums_with_their_error(catalogue: Catalogue) -> None:
    people = catalogue["people"]
    asked = [("valueCodes[region]", "*"), ("own[job]", "Office=a,b\nOther = c"), ("stub", "region"), ("heading", "job")]
    question = read(people, [*asked, ("valueCodes[job]", "*")])
    own = view_of(question, question.selection())
    assert own.columns[0].texts == ("Office", "Other")
    single = read(people, [*asked[:1], ("valueCodes[job]", "*"), *asked[2:]])
    parts = view_of(single, single.selection())
    np.testing.assert_allclose(own.values[:, 0, 0], parts.values[:, 0, 0] + parts.values[:, 1, 0])
    assert np.isfinite(own.values[:, 0, 1]).all()
    again = read(question.table, _pairs(question.query()))
    assert again.own == question.own


def test_own_groups_may_have_codes_with_commas() -> None:
    groups = _groups(
        "Coast = x,y, z\nHill = p(q,r), a, b", {"x,y": 0, "z": 1, "p(q,r)": 2, "a": 3, "b": 4}, tuple("01234"), ""
    )
    assert groups == {"Coast": ("Coast", ("0", "1")), "Hill": ("Hill", ("2", "3", "4"))}


def _pairs(query: str) -> list[tuple[str, str]]:
    from urllib.parse import parse_qsl

    return parse_qsl(query)


@pytest.mark.parametrize("text", ["a,b", "= a", "X =", "X = nothing", "X = a\nX = b", "<b> = <i>"])
def test_groups_that_are_not_understood_are_refused(text: str, catalogue: Catalogue) -> None:
    question = read(catalogue["people"], [("own[job]", text), ("valueCodes[job]", "*"), ("stub", "job")])
    with pytest.raises(RefusedError, match="groups of 'Job'"):
        question.selection()


def test_figures_that_were_protected_one_by_one_are_not_grouped() -> None:
    question = read(table(SEX, AGE), [("own[sex]", "Both = f,m"), ("valueCodes[sex]", "*"), ("stub", "sex")])
    with pytest.raises(RefusedError, match="protected one by one"):
        question.selection()
