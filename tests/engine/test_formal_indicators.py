"""What indicators with a guarantee are made of, counted row by row, on every engine."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.cells import Cells, Dimension
from sfumato.engine.connect import connect
from sfumato.frame.data import Frame
from sfumato.statistics.panel.formal_period import CHANGE, KEPT_PAY, MEASURED, OTHER_PAY
from sfumato.statistics.panel.indicators import CODES, INDICATORS, NAME
from sfumato.statistics.panel.question import FormalQuestion
from sfumato.statistics.panel.tabulate_formal import cut_off, formal_indicators
from tests.engine.panels import ATTRIBUTES, BY_STATE, PUBLIC, QUARTERS, Panel, as_dict, by_hand
from tests.engine.test_indicators import at_random, panels

CAP = 50


def question(periods: tuple[str, ...], *by: str, every_cell: bool = False, **where: tuple[str, ...]) -> FormalQuestion:
    codes = ATTRIBUTES | {"quarter": tuple(periods)}
    dimensions = [
        Dimension(
            name=name,
            codes=tuple(code for code in codes[name] if code in where.get(name, codes[name])),
            public=name in (*PUBLIC, "quarter"),
        )
        for name in by
    ]
    return FormalQuestion(
        by=(*dimensions, Dimension(name=NAME, codes=CODES)), where=where, cap=CAP, every_cell=every_cell
    )


def questions(periods: tuple[str, ...]) -> dict[str, FormalQuestion]:
    return {
        "quarter alone": question(periods, "quarter"),
        "workplaces": question(periods, "state", "agency", "quarter"),
        "worker attribute first": question(periods, "sex", "quarter", "state"),
        "workers and history": question(periods, "sex", "agency", "quarter", "grade"),
        "where": question(periods, "agency", "quarter", "sex", state=("A",), quarter=periods[len(periods) // 2 :]),
        "every cell": question(periods, "state", "agency", "quarter", "sex", every_cell=True),
    }


def answer(frame: Frame, asked: dict[str, FormalQuestion]) -> dict[str, Cells]:
    with connect(frame) as tables:
        return formal_indicators(frame, tables, asked)


def counted(panel: Panel, asked: FormalQuestion) -> dict[tuple[str, ...], tuple[list[int], int, int]]:
    """What is measured of every cell with jobs, and the jobs and the payroll of its largest employer, by loops."""
    places = {k: {n: panel.employers[n][i] for n in PUBLIC} for i, k in enumerate(panel.employers["employer"])}
    people = dict(zip(panel.workers["worker"], panel.workers["sex"], strict=True))
    worked: dict[Any, set[int]] = defaultdict(set)
    for worker, employer, t, earnings, _ in panel.jobs:
        if earnings:
            worked[worker, employer].add(t)
    names = [dimension.name for dimension in asked.by[:-1]]
    own: dict[Any, list[int]] = defaultdict(lambda: [0] * MEASURED)
    sizes: dict[Any, list[int]] = defaultdict(lambda: [0, 0])
    for worker, employer, t, earnings, grade in panel.jobs:
        row = places[employer] | {"sex": people[worker], "grade": grade, "quarter": panel.periods[t]}
        if not earnings or any(row[name] not in codes for name, codes in asked.where.items()):
            continue
        held = worked[worker, employer]
        year = any(t - back in held for back in range(1, 5))
        kind = (0 if t - 1 in held else 2 if year else 4) + (t + 1 not in held)
        pay = min(earnings, CAP)
        cell = tuple(row[name] for name in names)
        own[employer, cell][kind] += 1
        own[employer, cell][KEPT_PAY if kind == 0 else OTHER_PAY] += pay
        block = tuple(row[name] for name in names if name in (*PUBLIC, "quarter"))
        sizes[employer, block][0] += 1
        sizes[employer, block][1] += pay
    found: dict[Any, list[int]] = defaultdict(lambda: [0] * MEASURED)
    for (_, cell), numbers in own.items():
        numbers[CHANGE] = abs(numbers[2] + numbers[4] - numbers[1])
        found[cell] = [one + other for one, other in zip(found[cell], numbers, strict=True)]
    told = {}
    for cell, numbers in found.items():
        block = tuple(c for n, c in zip(names, cell, strict=True) if n in (*PUBLIC, "quarter"))
        here = [size for (_, where), size in sizes.items() if where == block]
        told[cell] = (numbers, max(size[0] for size in here), max(size[1] for size in here))
    return told


def assert_as_counted(cells: Cells, panel: Panel, asked: FormalQuestion) -> None:
    expected = counted(panel, asked)
    measured, largest = (as_dict(cells, name) for name in ("measured", "largest_employer"))
    names = [dimension.name for dimension in asked.by[:-1]]
    blocks = {
        tuple(c for n, c in zip(names, cell, strict=True) if n in (*PUBLIC, "quarter")): sizes
        for cell, (_, *sizes) in expected.items()
    }
    for cell in {key[:-1] for key in measured}:
        numbers = expected.get(cell, ([0] * MEASURED, 0, 0))[0]
        assert [measured[*cell, code] for code in CODES[:MEASURED]] == numbers
        block = tuple(c for n, c in zip(names, cell, strict=True) if n in (*PUBLIC, "quarter"))
        jobs, payroll = blocks.get(block, [0, 0])
        for one in INDICATORS:
            assert largest[*cell, one.code] == (payroll if one.unit == "earnings" else jobs)
    assert expected.keys() <= {key[:-1] for key in measured}


def test_all_is_counted_as_row_by_row(tmp_path: Path, engine: str) -> None:
    panel = at_random(seed=3, workers=120, largest=200)
    asked = questions(panel.periods)
    found = answer(panel.write(tmp_path, engine=engine), asked)
    for name, q in asked.items():
        assert_as_counted(found[name], panel, q)
    assert len(found["every cell"]) == asked["every cell"].cells
    assert "establishments" not in found["every cell"].columns


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(panels(), st.sets(st.sampled_from(sorted(questions(QUARTERS))), min_size=1, max_size=3))
def test_random_panels_are_counted_as_row_by_row(tmp_path: Path, panel: Panel, names: set[str]) -> None:
    asked = {name: q for name, q in questions(panel.periods).items() if name in names}
    found = answer(panel.write(tmp_path), asked)
    for name, q in asked.items():
        assert_as_counted(found[name], panel, q)


def test_true_indicators_are_those_by_hand_but_for_the_cut(tmp_path: Path) -> None:
    frame = by_hand().write(tmp_path)
    cells = answer(frame, {"q": question(QUARTERS, "state", "quarter")})["q"]
    found = as_dict(cells, "count", "available", "establishments")
    for code, states in BY_STATE.items():
        for state, values in states.items():
            for quarter, value in zip(QUARTERS, values, strict=True):
                count, available, establishments = found[state, quarter, code]
                assert available == int(value is not None)
                assert establishments == 2
                assert "payroll" in code or code.startswith("average") or count == (value or 0)
    # Workers 2 (60) and 3 (90) earn more than the cap: 30 + 50 + 50 in 2024-Q2.
    assert found["A", "2024-Q2", "payroll"][0] == 130


@pytest.mark.parametrize("name", questions(QUARTERS))
def test_a_question_alone_is_answered_as_among_others(tmp_path: Path, name: str) -> None:
    frame, asked = by_hand().write(tmp_path), questions(QUARTERS)
    assert answer(frame, {name: asked[name]})[name].equals(answer(frame, asked)[name])


def test_what_the_cap_takes_off_is_told_to_the_office(tmp_path: Path) -> None:
    panel = by_hand()
    with connect(panel.write(tmp_path)) as tables:
        cut = cut_off(panel.write(tmp_path), tables, "earnings", CAP)
    paid = [row[3] for row in panel.jobs if row[3]]
    assert cut.total == pytest.approx(sum(max(pay - CAP, 0) for pay in paid) / sum(paid))
    assert cut.jobs == pytest.approx(np.mean([pay > CAP for pay in paid]))
