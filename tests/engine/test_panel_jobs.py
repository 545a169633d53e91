"""Jobs of a panel at its periods: each population as a plain count has it, and the same on every engine."""

from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from sfumato.cells import Cells, Dimension
from sfumato.engine.connect import connect
from sfumato.frame.data import Frame
from sfumato.frame.jobs import POPULATIONS, Population
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.jobs.tabulate import tabulate, workforces
from tests.engine.panels import ATTRIBUTES, BY_STATE, PUBLIC, QUARTERS, Panel, as_dict, by_hand

CAP = 45
"""Of earnings: some of the panel typed by hand are above it."""
INDICATOR = {"any": "employment"}
"""What the indicator of a population is called, where not the same."""


def asked(population: str, periods: tuple[str, ...], *by: str, **where: tuple[str, ...]) -> Question:
    """A count by some attributes and, if it is named, the quarter."""
    codes = ATTRIBUTES | {"quarter": periods}
    dimensions = tuple(
        Dimension(
            name=name,
            codes=tuple(code for code in codes[name] if code in where.get(name, codes[name])),
            public=name in (*PUBLIC, "quarter"),
        )
        for name in by
    )
    needs = frozenset({"largest_employer"})
    return Question(by=dimensions, where=where, needs=needs, population=population, periods=periods)


def paid(question: Question) -> Question:
    """The same of what they earn, cut at the cap."""
    values = {**vars(question), "measure": "earnings", "measured": "earnings", "cap": CAP}
    return Question(**values)


def found(frame: Frame, questions: dict[str, Question]) -> dict[str, Cells]:
    with connect(frame) as tables:
        return tabulate(frame, tables, questions)


def frame_of(panel: Panel, folder: Path, population: str, **changes: Any) -> Frame:
    described = panel.write(folder, measures={"earnings": {"cap": CAP}}, **changes)
    return described.model_copy(update={"jobs": described.jobs.model_copy(update={"population": population})})


def plainly(panel: Panel, question: Question, *, earnings: bool = False) -> dict[tuple[str, ...], tuple[int, ...]]:
    """Count, largest establishment, whole largest workforce and establishments of every cell, row by row."""
    around = POPULATIONS[question.population]
    held = {(worker, employer, place) for worker, employer, place, amount, _ in panel.jobs if amount > 0}
    places = {
        employer: (state, agency)
        for employer, state, agency in zip(*(panel.employers[n] for n in ("employer", *PUBLIC)), strict=True)
    }
    sexes = dict(zip(panel.workers["worker"], panel.workers["sex"], strict=True))
    jobs = [
        (employer, panel.periods[place], sexes[worker], grade, min(amount, CAP) if earnings else 1)
        for worker, employer, place, amount, grade in panel.jobs
        if all((worker, employer, place + step) in held for step in range(-around.before, around.after + 1))
    ]
    expected = {}
    for cell in product(*(dimension.codes for dimension in question.by)):
        chosen = dict(question.where)
        chosen |= {dimension.name: (code,) for dimension, code in zip(question.by, cell, strict=True)}
        periods = chosen.get("quarter", question.periods)
        there = [
            employer
            for employer, (state, agency) in places.items()
            if state in chosen.get("state", (state,)) and agency in chosen.get("agency", (agency,))
        ]
        parts, whole = {}, {}
        for employer, period in product(there, periods):
            own = [job for job in jobs if job[:2] == (employer, period)]
            whole[employer, period] = sum(job[4] for job in own)
            parts[employer, period] = sum(
                amount
                for _, _, sex, grade, amount in own
                if sex in chosen.get("sex", (sex,)) and grade in chosen.get("grade", (grade,))
            )
        if there:
            numbers = sum(parts.values()), max(parts.values()), max(whole.values()), len(there) * len(periods)
            expected[cell] = numbers
    return expected


COLUMNS = ("count", "largest", "largest_employer", "establishments")


@pytest.mark.parametrize("population", get_args(Population))
def test_every_population_is_the_indicator_of_its_name(population: str, tmp_path: Path, engine: str) -> None:
    frame = frame_of(by_hand(), tmp_path, population, engine=engine)
    known = BY_STATE[INDICATOR.get(population, population)]
    periods = tuple(q for q, value in zip(QUARTERS, known["A"], strict=True) if value is not None)
    cells = found(frame, {"q": asked(population, periods, "state", "quarter")})["q"]
    expected = {
        (state, quarter): value
        for state, values in known.items()
        for quarter, value in zip(QUARTERS, values, strict=True)
        if value is not None
    }
    assert as_dict(cells, "count") == expected


@pytest.mark.parametrize("population", get_args(Population))
def test_counts_and_totals_are_as_counted_row_by_row(population: str, tmp_path: Path, engine: str) -> None:
    panel = at_random(seed=3)
    frame = frame_of(panel, tmp_path, population, engine=engine)
    all_periods = panel.periods[1:-1]
    some = all_periods[:2]
    questions = {
        "by workplaces": asked(population, all_periods, "state", "agency", "quarter"),
        "by workers": asked(population, all_periods, "quarter", "sex", "state"),
        "by the job": asked(population, some, "grade", "quarter"),
        "at one period": asked(population, some[:1], "agency", "sex", quarter=some[:1]),
        "some of all": asked(population, some, "state", "quarter", agency=("X",), sex=("F",), quarter=some),
    }
    totals = {f"{name}, paid": paid(one) for name, one in questions.items()}
    cells = found(frame, questions | totals)
    for name, question in (questions | totals).items():
        expected = plainly(panel, question, earnings=name in totals)
        assert as_dict(cells[name], *COLUMNS) == expected, name


def test_a_series_counts_at_its_period_without_naming_it(tmp_path: Path) -> None:
    panel = by_hand()
    frame = frame_of(panel, tmp_path, "beginning")
    named = asked("beginning", ("2024-Q3",), "state", "quarter", quarter=("2024-Q3",))
    unnamed = asked("beginning", ("2024-Q3",), "state")
    one, other = found(frame, {"": named})[""], found(frame, {"": unnamed})[""]
    assert np.array_equal(one["count"], other["count"])


def test_workforces_are_those_of_each_period(tmp_path: Path) -> None:
    """Methods that look at every workforce see an establishment once in each period."""
    panel = by_hand()
    frame = frame_of(panel, tmp_path, "any")
    question = asked("any", QUARTERS[:2], "state", "quarter", "sex")
    with connect(frame) as tables:
        seen = dict(workforces(frame, tables, {"q": question}))["q"]
    counted = found(frame, {"q": question})["q"]
    assert {key: n for key, n in as_dict(counted, "count").items() if n} == as_dict(seen.counts(), "count")


def test_text_keys_are_as_good_as_numbers(tmp_path: Path) -> None:
    question = asked("beginning", QUARTERS[1:], "state", "quarter", "sex")
    numbers = found(frame_of(by_hand(), tmp_path, "beginning"), {"q": question})["q"]
    texts = found(frame_of(by_hand().as_text(), tmp_path, "beginning"), {"q": question})["q"]
    assert numbers.equals(texts)


def at_random(seed: int, workers: int = 60, employers: int = 7, periods: int = 6) -> Panel:
    """A panel with gaps, several jobs of a worker, and rows without earnings."""
    random = np.random.default_rng(seed)
    jobs = []
    for worker, employer in product(range(workers), range(employers)):
        if random.random() < 0.3:
            held = random.random(periods) < 0.7
            jobs += [
                (
                    worker,
                    employer,
                    place,
                    int(random.integers(0, 90) * (random.random() < 0.9)),
                    random.choice(["a", "b"]),
                )
                for place in np.flatnonzero(held).tolist()
            ]
    return Panel(
        periods=QUARTERS[:periods],
        employers={
            "employer": list(range(employers + 1)),
            "state": [["A", "B"][n % 2] for n in range(employers + 1)],
            "agency": [["X", "Y"][n // 2 % 2] for n in range(employers + 1)],
        },
        workers={"worker": list(range(workers)), "sex": [["F", "M"][n % 2] for n in range(workers)]},
        jobs=[(worker, employer, place, amount, str(grade)) for worker, employer, place, amount, grade in jobs],
    )
