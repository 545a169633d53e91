"""Main moves: each worker has one in a period at most, whatever the order of rows, on every engine."""

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.cells import Cells, Dimension
from sfumato.engine.connect import connect
from sfumato.frame.data import Frame
from sfumato.statistics.panel.question import PairQuestion
from sfumato.statistics.panel.tabulate_moves import main_flows
from tests.engine.panels import ATTRIBUTES, PUBLIC, Panel, as_dict
from tests.engine.test_indicators import at_random


def question(periods: tuple[str, ...], attribute: str, *by: str, directed: bool = True, **where: Any) -> PairQuestion:
    codes = ATTRIBUTES | {"quarter": periods}
    names = ("origin", "destination") if directed else ("first", "second")
    ends = [Dimension(name=f"{end}_{attribute}", codes=codes[attribute]) for end in names]
    beside = [Dimension(name=name, codes=codes[name], public=name != "sex") for name in by]
    filters = {name: (name, (True, True)) for name in where if name in PUBLIC}
    return PairQuestion(
        by=(*ends, *beside),
        attributes=(attribute,),
        kind="flow",
        weight="multiplicity",
        directed=directed,
        where=where,
        filters=filters,
    )


def movers(*, seed: int, workers: int) -> Panel:
    """A panel in which workers have several jobs at a time, and few amounts, so that many moves pay the same."""
    rng, panel = np.random.default_rng(seed), at_random(seed=seed, workers=workers, largest=9)
    jobs = [
        (worker, int(employer), int(t), int(rng.integers(1, 4)), "a")
        for worker in range(workers)
        for employer in rng.choice(12, size=4, replace=False)
        for t in np.flatnonzero(rng.random(len(panel.periods)) < 0.5)
    ]
    return replace(panel, jobs=jobs)


def chosen(panel: Panel) -> dict[tuple[Any, int], tuple[Any, Any]]:
    """The main move of every worker and period, by loops."""
    worked: dict[Any, dict[int, int]] = defaultdict(dict)
    for worker, employer, t, earnings, _ in panel.jobs:
        if earnings:
            worked[worker, employer][t] = earnings
    found = {}
    for worker, t in product(panel.workers["worker"], range(1, len(panel.periods) - 1)):
        held = {employer: periods for (who, employer), periods in worked.items() if who == worker and t in periods}
        left = [employer for employer, periods in held.items() if t + 1 not in periods]
        joined = [employer for employer, periods in held.items() if t - 1 not in periods]
        pairs = [(one, other) for one, other in product(left, joined) if one != other]
        if pairs:
            found[worker, t] = min(pairs, key=lambda p: (-held[p[0]][t] - held[p[1]][t], str(p[0]), str(p[1])))
    return found


def counted(panel: Panel, asked: PairQuestion) -> Counter[tuple[str, ...]]:
    sex = dict(zip(panel.workers["worker"], panel.workers["sex"], strict=True))
    place = {name: dict(zip(panel.employers["employer"], panel.employers[name], strict=True)) for name in PUBLIC}
    found: Counter[tuple[str, ...]] = Counter()
    for (worker, t), ends in chosen(panel).items():
        row = {"quarter": panel.periods[t], "sex": sex[worker]}
        kept = {name: codes for name, codes in asked.where.items() if name in row}
        of_ends = {name: codes for name, codes in asked.where.items() if name in PUBLIC}
        if any(row[name] not in codes for name, codes in kept.items()):
            continue
        if any(place[name][end] not in codes for name, codes in of_ends.items() for end in ends):
            continue
        classes = [place[asked.attributes[0]][end] for end in ends]
        classes = classes if asked.directed else sorted(classes)
        found[*classes, *(row[name] for name in asked.others)] += 1
    return found


def answer(frame: Frame, asked: dict[str, PairQuestion]) -> dict[str, Cells]:
    with connect(frame) as tables:
        return main_flows(frame, tables, asked)


def test_moves_are_counted_as_one_by_one_and_no_order_of_rows_plays_a_part(tmp_path: Path, engine: str) -> None:
    panel = movers(seed=4, workers=150)
    asked = {
        "by quarter": question(panel.periods, "state", "quarter"),
        "by sex": question(panel.periods, "agency", "sex", "quarter"),
        "both ways": question(panel.periods, "state", "quarter", directed=False),
        "chosen": question(panel.periods, "agency", sex=("F",), quarter=panel.periods[2:5], state=("A",)),
    }
    found = answer(panel.write(tmp_path, engine=engine), asked)
    other = replace(panel, jobs=panel.jobs[::-1])
    turned = answer(other.write(tmp_path, engine=engine), asked)
    for name, q in asked.items():
        true = counted(panel, q)
        assert {key: n for key, n in as_dict(found[name], "count").items() if n} == dict(true)
        assert true.total() > 10
        assert found[name].equals(turned[name])
        assert len(found[name]) == q.cells


def test_moves_cannot_be_seen_in_the_first_and_the_last_period(tmp_path: Path) -> None:
    panel = movers(seed=4, workers=50)
    cells = answer(panel.write(tmp_path), {"q": question(panel.periods, "state", "quarter")})["q"]
    seen = as_dict(cells, "available")
    assert {key[2] for key, available in seen.items() if not available} == {panel.periods[0], panel.periods[-1]}


@pytest.mark.parametrize("seed", range(4))
def test_one_job_more_replaces_one_move_at_most_in_periods_in_which_it_begins_or_ends(seed: int) -> None:
    rng = np.random.default_rng(seed)
    panel = movers(seed=seed, workers=30)
    for _ in range(40):
        worker, bits = int(rng.integers(30)), "".join(rng.choice(["0", "1"], len(panel.periods)))
        more = [(worker, 99, t, int(rng.integers(1, 4)), "a") for t, bit in enumerate(bits) if bit == "1"]
        before, after = chosen(panel), chosen(replace(panel, jobs=[*panel.jobs, *more]))
        for t in range(len(panel.periods)):
            one, other = ({(w, *m) for (w, at), m in some.items() if at == t} for some in (before, after))
            assert len(one - other) <= 1
            assert len(other - one) <= 1
            changes = bits[t] == "1" and bits[max(t - 1, 0) : t + 2] != "111"
            assert changes or one == other
