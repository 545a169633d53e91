"""Tabulation gives the same Cells on every engine, equal to counting by hand."""

from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.cells import Cells, Dimension
from sfumato.engine.connect import connect
from sfumato.engine.validate import read_public_codes, validate
from sfumato.frame.data import Frame
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.jobs.tabulate import tabulate
from tests.conftest import tiny_frame, write
from tests.tiny import TINY

CODES = {"place": ("A", "B"), "industry": ("11", "62"), "sex": ("F", "M"), "age": ("1", "2", "3")}
WORKPLACE = {"place", "industry"}


def total(*by: str, cap: int, **where: tuple[str, ...]) -> Question:
    return replace(question(*by, **where), measure="earnings", cap=cap)


def question(*by: str, **where: tuple[str, ...]) -> Question:
    dimensions = tuple(
        Dimension(name=name, codes=tuple(c for c in CODES[name] if c in where.get(name, CODES[name]))) for name in by
    )
    return Question(by=dimensions, where=where)


def by_hand(asked: Question, data: dict[str, dict[str, list]] = TINY) -> dict[tuple[str, ...], tuple[int, int, int]]:
    """Count, largest establishment and number of establishments of every cell with an establishment; or their pay."""
    places = {
        key: {n: str(data["workplaces"][n][i]) for n in WORKPLACE}
        for i, key in enumerate(data["workplaces"]["workplace"])
    }
    people = {
        key: {n: str(data["workers"][n][i]) for n in ("sex", "age")} for i, key in enumerate(data["workers"]["worker"])
    }
    names = [d.name for d in asked.by]
    kept = {k: a for k, a in places.items() if all(a[n] in c for n, c in asked.where.items() if n in WORKPLACE)}
    jobs = Counter()
    for at, (worker, workplace) in enumerate(zip(data["jobs"]["worker"], data["jobs"]["workplace"], strict=True)):
        row = places[workplace] | people[worker]
        added = 1 if asked.measure is None else min(data["jobs"][asked.measure][at], asked.cap)
        if all(row[n] in c for n, c in asked.where.items()):
            jobs[workplace, tuple(row[n] for n in names)] += added
    result = {}
    for cell in product(*(d.codes for d in asked.by)):
        here = [
            k for k, a in kept.items() if all(a[n] == c for n, c in zip(names, cell, strict=True) if n in WORKPLACE)
        ]
        if here:
            counts = [jobs[k, cell] for k in here]
            result[cell] = (sum(counts), max(counts), len(here))
    return result


def as_dict(cells: Cells) -> dict[tuple[str, ...], tuple[int, ...]]:
    codes = [[d.codes[i] for i in cells.codes(d.name)] for d in cells.dimensions]
    columns = [cells[name].tolist() for name in ("count", "largest", "establishments")]
    return dict(zip(zip(*codes, strict=True), zip(*columns, strict=True), strict=True))


QUESTIONS = {
    "one public attribute": question("place"),
    "two public attributes": question("place", "industry"),
    "an integer attribute": question("industry"),
    "worker attributes": question("place", "sex"),
    "worker attributes only": question("sex", "age"),
    "worker before workplace": question("age", "industry", "sex"),
    "where public": question("place", industry=("62",)),
    "where of its own dimension": question("place", "sex", sex=("F",)),
    "where confidential": question("place", age=("1", "3")),
    "where empties a place": question("industry", "place", place=("B",)),
    "pay by a public attribute": total("place", cap=55),
    "pay by worker attributes": total("industry", "sex", cap=55),
    "pay of some workplaces": total("place", industry=("62",), cap=55),
}


def test_all_questions_are_answered_as_by_hand_in_one_scan(tiny: Path, engine: str) -> None:
    frame = tiny_frame(tiny, engine=engine)
    with connect(frame) as tables:
        answers = tabulate(frame, tables, QUESTIONS)
    assert {name: as_dict(cells) for name, cells in answers.items()} == {
        name: by_hand(asked) for name, asked in QUESTIONS.items()
    }


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_alone_is_answered_as_among_others(tiny: Path, name: str) -> None:
    frame = tiny_frame(tiny)
    with connect(frame) as tables:
        assert as_dict(tabulate(frame, tables, {name: QUESTIONS[name]})[name]) == by_hand(QUESTIONS[name])


RESTRICTED = {
    "public": ({"place": ("A",)}, ("place",)),
    "public, the second code": ({"industry": ("62",)}, ("place", "industry")),
    "confidential": ({"sex": ("F",)}, ("place", "sex")),
    "confidential before public": ({"age": ("2", "3")}, ("age", "place")),
    "both": ({"place": ("B",), "age": ("1", "3")}, ("place", "sex", "age")),
}


@pytest.mark.parametrize("name", RESTRICTED)
def test_codes_that_a_dimension_leaves_out_are_in_no_cell(tiny: Path, name: str) -> None:
    codes, by = RESTRICTED[name]
    asked = Question(by=tuple(Dimension(name=n, codes=codes.get(n, CODES[n])) for n in by))
    frame = tiny_frame(tiny)
    with connect(frame) as tables:
        alone = as_dict(tabulate(frame, tables, {"q": asked})["q"])
        among = as_dict(tabulate(frame, tables, {"q": asked, **QUESTIONS})["q"])
    assert alone == among == by_hand(asked)


def test_an_establishment_without_jobs_makes_an_ordinary_zero_and_none_makes_a_structural_one(tiny: Path) -> None:
    alone = {**TINY["workplaces"], "workplace": [100, 101, 102, 103], "industry": [62, 62, 62, 11]}
    write(tiny / "workplaces.parquet", alone)
    frame = tiny_frame(tiny)
    with connect(frame) as tables:
        cells = as_dict(tabulate(frame, tables, {"q": question("place", "industry")})["q"])
    assert cells["A", "11"] == (0, 0, 1)
    assert ("B", "11") not in cells


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_random_frames_are_answered_as_by_hand(tmp_path: Path, data: st.DataObject) -> None:
    places = data.draw(st.integers(1, 6))
    people = data.draw(st.integers(1, 12))

    def draw(codes: Any, n: int) -> list[Any]:
        return data.draw(st.lists(st.sampled_from(codes), min_size=n, max_size=n))

    pairs = st.tuples(st.integers(0, people - 1), st.integers(0, places - 1))
    jobs = data.draw(st.lists(pairs, unique=True, min_size=1, max_size=30))
    made = {
        "workplaces": {
            "workplace": list(range(places)),
            "place": draw("AB", places),
            "industry": draw([11, 62], places),
        },
        "workers": {"worker": list(range(people)), "sex": draw("FM", people), "age": draw([1, 2, 3], people)},
        "jobs": {"worker": [j[0] for j in jobs], "workplace": [j[1] for j in jobs], "earnings": [1] * len(jobs)},
    }
    for name, columns in made.items():
        write(tmp_path / f"{name}.parquet", columns)
    frame = tiny_frame(tmp_path)
    with connect(frame) as tables:
        answers = tabulate(frame, tables, QUESTIONS)
    assert {n: as_dict(cells) for n, cells in answers.items()} == {n: by_hand(q, made) for n, q in QUESTIONS.items()}


def joined_frame(folder: Path, **changes: object) -> Frame:
    """One table with every attribute, as some offices keep it."""
    people = dict(
        zip(TINY["workers"]["worker"], zip(TINY["workers"]["sex"], TINY["workers"]["age"], strict=True), strict=True)
    )
    places = dict(
        zip(
            TINY["workplaces"]["workplace"],
            zip(TINY["workplaces"]["place"], TINY["workplaces"]["industry"], strict=True),
            strict=True,
        )
    )
    jobs = TINY["jobs"]
    write(
        folder / "joined.parquet",
        jobs
        | {
            "place": [places[w][0] for w in jobs["workplace"]],
            "industry": [places[w][1] for w in jobs["workplace"]],
            "sex": [people[w][0] for w in jobs["worker"]],
            "age": [people[w][1] for w in jobs["worker"]],
        },
    )
    table = {"path": "joined.parquet", "worker": "worker", "workplace": "workplace"}
    return tiny_frame(folder, jobs=table, workplaces=None, workers=None, **changes)


def test_a_joined_table_lists_every_combination_and_hides_which_have_establishments(
    tmp_path: Path, engine: str
) -> None:
    frame = joined_frame(tmp_path, engine=engine)
    asked = {
        "w": question("place", "industry"),
        "p": question("place", "sex"),
        "f": question("place", industry=("62",)),
    }
    with connect(frame) as tables:
        cells = tabulate(frame, tables, asked)
    assert cells["w"]["count"].tolist() == [3, 2, 0, 3]
    assert cells["w"]["largest"].tolist() == [3, 2, 0, 3]
    assert cells["p"]["count"].tolist() == [3, 2, 2, 1]
    assert cells["f"]["count"].tolist() == [2, 3]
    assert all("establishments" not in answer.columns for answer in cells.values())


def test_several_files_and_patterns_are_one_table(tiny: Path, engine: str) -> None:
    jobs = TINY["jobs"]
    (tiny / "parts").mkdir()
    for part, rows in enumerate((slice(0, 3), slice(3, 8))):
        write(tiny / "parts" / f"{part}.parquet", {name: column[rows] for name, column in jobs.items()})
    for path in ("parts", "parts/*.parquet"):
        frame = tiny_frame(tiny, engine=engine, jobs={"path": path, "worker": "worker", "workplace": "workplace"})
        with connect(frame) as tables:
            assert as_dict(tabulate(frame, tables, {"q": question("place")})["q"]) == by_hand(question("place"))


@pytest.mark.parametrize("name", ["workplace", "jobs", "count", "largest", "rows", "worker", "group", "select"])
def test_columns_may_have_any_name(tiny: Path, engine: str, name: str) -> None:
    workplaces = {name: TINY["workplaces"]["place"]} | {
        "id": TINY["workplaces"]["workplace"],
        "industry": TINY["workplaces"]["industry"],
    }
    write(tiny / "workplaces.parquet", workplaces)
    frame = tiny_frame(
        tiny,
        engine=engine,
        workplaces={"path": "workplaces.parquet", "key": "id"},
        public=[name, "industry"],
        attributes={name: {"codes": ["A", "B"]}, "sex": {"codes": ["F", "M"]}},
        measures={},
    )
    asked = Question(by=(Dimension(name=name, codes=("A", "B")), Dimension(name="sex", codes=("F", "M"))))
    with connect(frame) as tables:
        validate(frame, tables, read_public_codes(frame, tables))
        cells = tabulate(frame, tables, {"q": asked, "again": Question(by=asked.by[:1])})
    assert cells["q"]["count"].tolist() == [3, 2, 2, 1]
    assert cells["again"]["count"].tolist() == [5, 3]
