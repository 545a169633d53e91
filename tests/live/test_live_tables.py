"""GuardedSession tables: the same contributors get the same answer by any path, and differencing is noticed."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.engine.factors import PRIME
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.keys import read_key
from sfumato.live import GuardedSession, open_guarded
from sfumato.live.differencing import AnsweredCells, CodeSets, DifferencingGuard
from sfumato.release import load
from sfumato.running import run
from sfumato_lab.economy.business.generate import generate_business
from tests.conftest import same_key

STATES = ("NSW", "VIC", "QLD", "SA", "WA", "TAS", "NT", "ACT")


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("survey") / "survey"
    generate_business(folder, businesses=3_000)
    same_key(folder / "sfumato.key")
    return folder


def opened(survey: Path, guard: str = "off") -> Any:
    text = (survey / "release.toml").read_text() + f'\n[live]\nguard = "{guard}"\n'
    path = survey / f"live-{guard}.toml"
    own = f"{guard}-{os.urandom(4).hex()}"
    path.write_text(text.replace("[data]", f'ledger = "{own}.sqlite"\nbundle = "{own}"\n\n[data]', 1))
    return open_guarded(load(path))


@pytest.fixture(scope="module")
def live(survey: Path) -> Any:
    with opened(survey) as found:
        yield found


def cells(table: pa.Table, *by: str) -> dict[tuple[str, ...], tuple[Any, ...]]:
    rows = table.to_pylist()
    return {
        tuple(row[name] for name in by): tuple(row[name] for name in ("value", "status", "rse", "low", "high"))
        for row in rows
    }


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(states=st.lists(st.sampled_from(STATES), min_size=1, max_size=3, unique=True), measure=st.booleans())
def test_the_same_contributors_get_the_same_answer_by_any_path(
    live: GuardedSession, states: list[str], measure: bool
) -> None:
    asked: dict[str, Any] = {"total": "turnover"} if measure else {"mean": "profit"}
    by_cell = cells(live.ask(by=["state", "industry"], **asked), "state", "industry")
    for state in states:
        by_filter = cells(live.ask(by=["industry"], where={"state": [state]}, **asked), "industry")
        assert all(by_cell[state, industry] == found for (industry,), found in by_filter.items())
    total = cells(live.ask(by=["industry"], where={"state": states}, totals=True, **asked), "industry")
    crossed = cells(
        live.ask(by=["industry", "size"], where={"state": states}, totals=True, **asked), "industry", "size"
    )
    assert all(crossed[industry, "total"] == found for (industry,), found in total.items())


@pytest.mark.slow
def test_a_release_and_a_live_table_say_the_same(survey: Path, live: GuardedSession) -> None:
    bundle = run(load(survey / "release.toml")).bundle
    published = pq.read_table(bundle / "tables/turnover_by_state_industry.parquet")
    assert published.equals(live.ask(total="turnover", by=["state", "industry"], totals=True))


def test_no_answer_holds_a_key_or_an_unperturbed_total(survey: Path, live: GuardedSession) -> None:
    table = live.ask(total="turnover", by=["state", "size"])
    secret = read_key(survey / "sfumato.key")
    assert secret.key.hex() not in str(table.to_pylist()) + repr(live) + repr(live.prepared) + repr(live.guard)
    frame = pq.read_table(survey / "businesses.parquet").to_pandas()
    true = (frame["turnover"] * frame["weight"]).groupby([frame["state"], frame["size"]], observed=True).sum()
    for row in table.to_pylist():
        if row["value"]:
            assert abs(row["value"] - true[row["state"], row["size"]]) > 0.5


def one_less(survey: Path) -> dict[str, list[str]]:
    """A filter that leaves out exactly one business of a state: one that is alone with its industry there."""
    frame = pq.read_table(survey / "businesses.parquet").to_pandas()
    for state, group in frame.groupby("state", observed=True):
        counts = group["industry"].astype(str).value_counts()
        alone = counts[counts == 1]
        if len(alone) and len(group) > 10:
            kept = sorted(set(frame["industry"].astype(str)) - {alone.index[0]})
            return {"state": [str(state)], "industry": kept}
    raise AssertionError("the survey has no business that is alone")


@pytest.mark.parametrize("guard", ["refuse", "flag", "off"])
def test_a_cell_that_differs_by_few_units_is_withheld_or_marked(survey: Path, guard: str) -> None:
    where = one_less(survey)
    with opened(survey, guard) as live:
        first = live.ask(total="profit", by=["state"], where={"state": where["state"]}).to_pylist()[0]
        second = live.ask(total="profit", by=["state"], where=where).to_pylist()[0]
        again = live.ask(total="profit", by=["state"], where={"state": where["state"]}).to_pylist()[0]
    assert first["value"] is not None
    assert (second["value"] is None) == (guard == "refuse")
    assert bool(second.get("differencing")) == (guard == "flag")
    assert again["value"] == first["value"]


def test_cells_of_the_release_are_remembered_too(survey: Path) -> None:
    where = one_less(survey)
    with opened(survey, "refuse") as live:
        # The release publishes turnover by state, with totals.
        assert live.ask(total="turnover", by=["state"], where=where).to_pylist()[0]["value"] is None


@pytest.mark.slow
def test_another_measure_is_no_way_around_what_was_answered(survey: Path) -> None:
    """A total divided by its mean is the number of units, of whatever is summed."""
    where = one_less(survey)
    with opened(survey, "refuse") as live:
        for statistic in ({"total": "employees"}, {"mean": "employees"}, {"mean": "profit"}, {"count": "records"}):
            assert live.ask(by=["state"], where=where, **statistic).to_pylist()[0]["value"] is None
        state = {"state": where["state"]}
        assert live.ask(by=["state"], where=state, total="employees").to_pylist()[0]["value"] is not None


@pytest.mark.slow
def test_what_was_answered_survives_a_restart(survey: Path) -> None:
    where, path = one_less(survey), survey / "restart.toml"
    text = (
        (survey / "release.toml")
        .read_text()
        .replace("[data]", 'ledger = "restart.sqlite"\nbundle = "restart"\n\n[data]', 1)
    )
    path.write_text(text)
    with open_guarded(load(path)) as live:
        live.ask(total="profit", by=["state"], where={"state": where["state"]})
    with open_guarded(load(path)) as live:
        assert live.ask(total="profit", by=["state"], where=where).to_pylist()[0]["value"] is None
    stored = survey / "restart.store/live.questions"
    assert oct(stored.stat().st_mode)[-3:] == "600"
    whole = stored.read_bytes()
    stored.write_bytes(whole + whole[:5])  # as a crash may leave it
    with open_guarded(load(path)) as live:
        assert live.ask(total="profit", by=["state"], where=where).to_pylist()[0]["value"] is None
        live.ask(total="employees", by=["state", "industry", "size"])
    assert stored.read_bytes().startswith(whole)
    assert all(json.loads(line) for line in stored.read_bytes().splitlines())


WORDS = np.sort(np.random.default_rng(1).integers(1, PRIME, 1_000))
ATTRIBUTES = {"unit": tuple(map(str, range(1_000))), "kind": ("x", "y", "z")}


def guard(folder: Path) -> DifferencingGuard:
    return DifferencingGuard(
        path=folder / "live.cells", words=(WORDS,), code_sets=CodeSets(codes=ATTRIBUTES), topics=("t",)
    )


class Guarded:
    """A guard over cells of the first so many units, all of the kind x."""

    def __init__(self, folder: Path) -> None:
        self.guard = guard(folder)

    def cell(self, units: int, kinds: tuple[str, ...] = ATTRIBUTES["kind"]) -> tuple[AnsweredCells, Any]:
        where = {"unit": ATTRIBUTES["unit"][:units], "kind": kinds}
        total = sum(map(int, WORDS[:units])) % PRIME
        sets = self.guard.code_sets.of_cells((), where, ())
        return AnsweredCells(sets=sets, units=np.array([[units]]), sums=np.array([[total]])), where

    def remember(self, units: int, **kinds: Any) -> None:
        cells, where = self.cell(units, **kinds)
        self.guard.remember(cells, (), where, np.zeros(1, dtype=np.int64))

    def near(self, *units: int, shared: int = 0, first: bool = False, within: int = 2, **kinds: Any) -> list[bool]:
        cells = [self.cell(number, **kinds)[0] for number in units]
        together = reduce(AnsweredCells.followed_by, cells)
        found: list[bool] = self.guard.near(
            together, within=within, count=lambda filters: np.full(len(filters), shared), first=first
        ).tolist()
        return found


def test_a_cell_within_another_is_near_when_it_differs_by_few_units_or_by_none(tmp_path: Path) -> None:
    guarded = Guarded(tmp_path)
    guarded.remember(10)
    assert guarded.near(8) == guarded.near(9) == guarded.near(11) == guarded.near(12) == [True]
    assert guarded.near(7) == guarded.near(13) == [False]
    assert guarded.near(10) == [False], "the very same cell was answered"
    assert guarded.near(10, kinds=("x", "y")) == [True], "another definition of the same units"
    assert guarded.near(20, 21) == [True, True], "two new cells are compared with each other"


def test_cells_that_overlap_are_near_when_all_but_few_records_are_in_both(tmp_path: Path) -> None:
    guarded = Guarded(tmp_path)
    guarded.remember(12, kinds=("x", "y"))
    assert guarded.near(10, kinds=("x", "z"), shared=10) == [True]
    assert guarded.near(10, kinds=("x", "z"), shared=9) == [False]
    assert guarded.near(11, kinds=("x", "z")) == [True], "by the word of the unit"
    assert guarded.near(10, kinds=("z",), shared=10) == [False], "no record is in both"


def test_cells_that_an_earlier_version_remembered_are_still_compared(tmp_path: Path) -> None:
    total = sum(map(int, WORDS[:10])) % PRIME
    topic = int.from_bytes(blake2b(b"0 t", digest_size=8).digest(), "little", signed=True)
    (tmp_path / "live.cells").write_bytes(np.array([topic, 10, total], dtype="<i8").tobytes())
    guarded = Guarded(tmp_path)
    assert guarded.near(9) == guarded.near(11) == [True]
    assert guarded.near(10) == [False], "it may be the very same cell"


def test_a_cell_keeps_the_mark_of_its_first_answer(tmp_path: Path) -> None:
    def asked(*numbers: int) -> list[bool]:
        guarded = Guarded(tmp_path)  # as after a restart
        found = guarded.near(*numbers, first=True, within=1)
        for number in numbers:
            guarded.remember(number)
        return found

    questions = [(10,), (20, 10), (11, 30), (31, 32), (9, 10), (12,)]
    first = [asked(*numbers) for numbers in questions]
    assert first == [[False], [False, False], [True, False], [True, True], [True, True], [True]]
    for _ in range(2):
        assert [asked(*numbers) for numbers in reversed(questions)] == first[::-1]


@pytest.mark.slow
def test_a_marked_question_has_the_same_answer_after_others(survey: Path) -> None:
    where = one_less(survey)
    asked: list[dict[str, Any]] = [{"where": {"state": where["state"]}}, {"where": where}, {"where": {}}]

    def answers(live: GuardedSession) -> list[pa.Table]:
        return [live.ask(total="profit", by=["state"], **one) for one in asked]

    with opened(survey, "flag") as live:
        first, again = answers(live), answers(live)
    with open_guarded(load(survey / "live-flag.toml")) as restarted:
        later = answers(restarted)
    assert first[0]["differencing"].to_pylist() == [""]
    assert first[1]["differencing"].to_pylist() != [""]
    assert all(one.equals(two) and one.equals(three) for one, two, three in zip(first, again, later, strict=True))


@pytest.mark.slow
def test_many_threads_get_the_same_answers(live: GuardedSession) -> None:
    asked = [["state"], ["industry"], ["size"], ["state", "size"]] * 4
    alone = {tuple(by): live.ask(total="turnover", by=by) for by in asked[:4]}
    with ThreadPoolExecutor(max_workers=8) as pool:
        found = list(pool.map(lambda by: live.ask(total="turnover", by=by), asked))
    assert all(table.equals(alone[tuple(by)]) for by, table in zip(asked, found, strict=True))


def test_cells_that_differ_by_one_enterprise_are_noticed(survey: Path) -> None:
    """Leaving out an industry in which one enterprise has several establishments of a state."""
    frame = pq.read_table(survey / "businesses.parquet").to_pandas().astype({"state": str, "industry": str})
    for (state, industry), group in frame.groupby(["state", "industry"]):
        others = frame[(frame["state"] == state) & (frame["industry"] != industry)]
        one = group["enterprise"].nunique() == 1 and len(group) > 1
        if one and group["enterprise"].iloc[0] not in set(others["enterprise"]) and len(others) > 10:
            break
    else:
        raise AssertionError("the survey has no such enterprise")
    kept = sorted(set(frame["industry"]) - {industry})
    with opened(survey, "refuse") as live:
        assert live.ask(total="profit", by=["state"], where={"state": [state]}).to_pylist()[0]["value"] is not None
        second = live.ask(total="profit", by=["state"], where={"state": [state], "industry": kept}).to_pylist()[0]
    assert second["value"] is None


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "no statistic": ({"by": ["state"]}, "one of count"),
    "two statistics": ({"by": ["state"], "total": "turnover", "mean": "profit"}, "one of count"),
    "unknown attribute": ({"by": ["town"], "total": "turnover"}, "an attribute"),
    "unknown measure": ({"by": ["state"], "total": "income"}, "a measure: turnover, profit, employees"),
    "unknown code": ({"by": ["state"], "total": "turnover", "where": {"state": ["Mars"]}}, "codes of state"),
    "jobs": ({"by": ["state"], "count": "jobs"}, "records"),
    "by as text": ({"by": "state", "total": "turnover"}, "a list of attributes"),
    "where as a list": ({"by": ["state"], "total": "turnover", "where": [1]}, "codes by attribute"),
    "sql": ({"by": ["state; drop table x"], "total": "turnover"}, "an attribute"),
}


@pytest.mark.parametrize(("asked", "said"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_question_that_makes_no_sense_is_refused(live: GuardedSession, asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ReleaseError, match=said):
        live.ask(**asked)


def test_a_table_that_is_too_large_is_refused(survey: Path) -> None:
    text = (survey / "release.toml").read_text() + "\n[live]\nmost_cells = 10\n"
    (survey / "small.toml").write_text(text)
    with open_guarded(load(survey / "small.toml")) as live, pytest.raises(SfumatoError, match="at most 10 cells"):
        live.ask(total="turnover", by=["industry"])


def attack(
    live: GuardedSession, frame: Any, asked: dict[str, str], industries: list[str]
) -> dict[tuple[str, str], str]:
    """What a reader makes of the state with and without an industry: equal is empty, withheld is one, else more."""
    found = {}
    codes = sorted(set(frame["industry"]))
    whole = cells(live.ask(by=["state"], **asked), "state")
    for industry in industries:
        kept = [other for other in codes if other != industry]
        for state, row in cells(live.ask(by=["state"], where={"industry": kept}, **asked), "state").items():
            found[state[0], industry] = (
                "withheld" if row[0] is None else "equal" if row == whole[state] else "different"
            )
    return found


@pytest.mark.slow
def test_no_answer_tells_whether_a_cell_holds_no_unit_or_one_or_two(survey: Path) -> None:
    """Thirty-six cells of no, one or two businesses or more: the reader was right about all of them, and is no more."""
    frame = pq.read_table(survey / "businesses.parquet").to_pandas().astype({"state": str, "industry": str})
    sizes = {(state, i): 0 for state in STATES for i in set(frame["industry"])}
    sizes |= frame.groupby(["state", "industry"]).size().to_dict()
    few = [cell for cell, size in sizes.items() if size <= 2]
    sparse = sorted({industry for _, industry in few}, key=lambda i: -sum(industry == i for _, industry in few))
    with opened(survey, "refuse") as live:
        found = attack(live, frame, {"total": "turnover"}, sparse[:9])  # the release publishes the states' turnover
        found_otherwise = [attack(live, frame, one, sparse[:2]) for one in ({"count": "records"}, {"mean": "profit"})]
    asked = [cell for cell in few if cell in found]
    assert len(asked) >= 36
    assert {sizes[cell] for cell in asked} == {0, 1, 2}
    for answers in (found, *found_otherwise):
        assert {said for cell, said in answers.items() if sizes[cell] <= 2} == {"withheld"}
        assert "equal" not in answers.values()
    assert "different" in found.values(), "differences of more units are answered"
