"""The loss of several periods of a panel together: found by search, it is epsilon of the whole table and no more."""

from dataclasses import replace
from fractions import Fraction
from math import log
from typing import Any

import numpy as np
import pytest

from sfumato.cells import Cells, Dimension
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Frame
from sfumato.noise.randomness import Seeded
from sfumato.statistics.each_period import JobsEachPeriod
from sfumato.statistics.jobs.statistic import JobCounts
from sfumato.statistics.jobs.totals import JobTotals
from sfumato.statistics.table import Table
from tests.engine.panels import ATTRIBUTES, PUBLIC, QUARTERS
from tests.statistics.methods.audit import money_loss

CAP = 120_000_00
ALPHA = Fraction("0.1")
EPSILONS = [Fraction("0.6"), Fraction(2), Fraction(8)]
AT = QUARTERS[1:4]
EACH = {"2024-Q2": Fraction(1), "2024-Q3": Fraction(2), "2024-Q4": Fraction("0.5")}


def frame() -> Frame:
    jobs = {"path": "jobs.parquet", "worker": "worker", "workplace": "employer", "earnings": "earnings"}
    return Frame(
        jobs={**jobs, "period": "quarter", "first": QUARTERS[0], "last": QUARTERS[-1]},
        workplaces={"path": "employers.parquet", "key": "employer"},
        workers={"path": "workers.parquet", "key": "worker"},
        public=PUBLIC,
        attributes={name: {"codes": list(codes)} for name, codes in ATTRIBUTES.items()},
        measures={"earnings": {"cap": CAP}},
    )


def planned(epsilon: object, **asked: str) -> JobCounts:
    """A table at three quarters."""
    described = {"name": "t", "by": ["state", "quarter"], "where": {"quarter": list(AT)}, **asked}
    table = Table.model_validate({**described, "protect": {"epsilon": epsilon}})
    kind = JobTotals if "total" in asked else JobCounts
    codelists = {name: Codelist.of(codes) for name, codes in ATTRIBUTES.items()}
    question = kind.ask(table, frame(), codelists)
    method = kind.build_method(table, frame(), question, alpha=ALPHA)
    return kind(section=table, question=question, method=method)


def loss_of_all(statistic: JobCounts, cap: int, shrunk: Fraction = Fraction(1)) -> float:
    """What all periods lose together where each differs as much as a step may: their noises are independent."""
    noises = [replace(noise, unit=noise.unit * shrunk) for noise in noises_of(statistic)]
    return sum(money_loss(noise, ALPHA, cap) for noise in noises)


def noises_of(statistic: JobCounts) -> list[Any]:
    """The noise of every period."""
    each = dict(getattr(statistic.method, "methods", ()))
    return [each.get(period, statistic.method).noise for period in AT]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_three_periods_of_a_total_lose_epsilon_together_and_no_more(epsilon: Fraction) -> None:
    whole = planned(epsilon, total="earnings")
    assert whole.guarantee.epsilon == epsilon > 3 * log(1 + ALPHA)
    assert 0.95 * float(epsilon) < loss_of_all(whole, CAP) <= float(epsilon) + 1e-9


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_scales_that_are_a_tenth_smaller_lose_more(epsilon: Fraction) -> None:
    assert loss_of_all(planned(epsilon, total="earnings"), CAP, Fraction(9, 10)) > 1.001 * float(epsilon)


def test_periods_with_an_epsilon_each_lose_its_sum() -> None:
    whole = planned(EACH, total="earnings")
    epsilon = float(sum(EACH.values()))
    assert whole.guarantee.epsilon == sum(EACH.values())
    assert 0.95 * epsilon < loss_of_all(whole, CAP) <= epsilon + 1e-9
    assert loss_of_all(whole, CAP, Fraction(9, 10)) > 1.001 * epsilon


def test_every_period_has_the_noise_of_its_epsilon() -> None:
    """The spread of what is drawn follows the epsilon of the period, and of no other."""
    whole = planned(EACH, count="jobs")
    assert isinstance(whole.method, JobsEachPeriod)
    copies = 4_000
    place = Dimension(name="state", codes=tuple(map(str, range(copies))))
    cells = Cells(
        dimensions=(place, next(one for one in whole.by if one.name == "quarter")),
        positions=np.arange(copies * len(AT)),
        columns={name: np.full(copies * len(AT), 50) for name in ("count", "largest")},
    )
    drawn = whole.method.protect(cells, Seeded(7))
    expected = whole.method.expected_error(cells).reshape(copies, len(AT))[0]
    found = np.abs(drawn["value"] - 50).reshape(copies, len(AT)).mean(axis=0)
    assert np.all(np.abs(found / expected - 1) < 0.07)
    assert expected[1] < 0.6 * expected[0] < 0.4 * expected[2]
