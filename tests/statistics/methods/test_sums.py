"""Sums of protected cells: intervals hold the true sum and errors are honest, whatever the number of cells."""

import json
from fractions import Fraction

import numpy as np
import pytest

from sfumato.bundle.sums import PublishedCells, sum_figures
from sfumato.cells import Cells, Dimension
from sfumato.errors import SfumatoError
from sfumato.method import Method, bought_steps, public_parameters, published_figures
from sfumato.noise.randomness import Seeded
from sfumato.statistics.jobs.auto import Auto
from sfumato.statistics.jobs.bell import BoxBell, VectorBell
from sfumato.statistics.jobs.laplace import Laplace
from sfumato.statistics.jobs.logarithms import LogBox, LogLaplace
from sfumato.statistics.jobs.sinh_box import SinhBox
from sfumato.statistics.jobs.smooth import SmoothGamma, SmoothLaplace, SmoothPareto
from sfumato.statistics.jobs.vector import SmoothBox, VectorPareto
from sfumato.statistics.registry import built_again

ALPHA, ONE, TWO, FOUR = Fraction("0.1"), Fraction(1), Fraction(2), Fraction(4)
WORKERS = 4
GROUP = Dimension(name="group", codes=tuple("abcd"), public=False)
METHODS: list[Method] = [
    SmoothPareto(alpha=ALPHA, epsilon=Fraction("0.5")),
    SmoothPareto(alpha=ALPHA, epsilon=TWO),
    SmoothPareto(alpha=ALPHA, epsilon=FOUR, worker_cells=WORKERS),
    SmoothGamma(alpha=ALPHA, epsilon=TWO, tight=True),
    SmoothLaplace(alpha=ALPHA, epsilon=FOUR),
    VectorPareto(alpha=ALPHA, epsilon=TWO, worker_cells=WORKERS),
    SmoothBox(alpha=ALPHA, epsilon=FOUR, worker_cells=WORKERS),
    *(SmoothPareto(alpha=ALPHA, epsilon=TWO, error_epsilon=Fraction(bought)) for bought in ("0.05", "0.2", "20")),
    SmoothGamma(alpha=ALPHA, epsilon=TWO, tight=True, error_epsilon=Fraction("0.2")),
    VectorPareto(alpha=ALPHA, epsilon=TWO, worker_cells=WORKERS, error_epsilon=Fraction("0.2")),
    VectorBell(alpha=ALPHA, epsilon=TWO, worker_cells=WORKERS),
    BoxBell(alpha=ALPHA, epsilon=FOUR, worker_cells=WORKERS),
    SinhBox(alpha=ALPHA, epsilon=TWO, worker_cells=WORKERS),
    LogLaplace(alpha=ALPHA, epsilon=TWO, debias=True),
    LogBox(alpha=ALPHA, epsilon=TWO, worker_cells=WORKERS),
    Auto(alpha=ALPHA, epsilon=FOUR, worker_cells=WORKERS),
    Laplace(alpha=ALPHA, epsilon=ONE),
]


def largest_first(cells: int) -> np.ndarray:
    """One establishment that has nearly all jobs."""
    return np.array([5_000, *[20] * (cells - 1)])


def as_in_an_economy(cells: int) -> np.ndarray:
    return np.exp(np.random.default_rng(cells).normal(3, 1.94, cells)).astype(np.int64)


SHAPES = {
    "empty": lambda cells: np.zeros(cells, dtype=np.int64),
    "thirty": lambda cells: np.full(cells, 30),
    "alike": lambda cells: np.full(cells, 1_000),
    "one": largest_first,
    "economy": as_in_an_economy,
}


def off(method: Method, sizes: np.ndarray, draws: int, seed: int, part: int) -> tuple[float, float, float]:
    """How often intervals of sums hold, the mean of published over the mean of true errors, and how many have no end.

    Every workplace cell is one establishment, the worst case; sums are over workplace cells and `part` worker cells.
    """
    inside = getattr(method, "worker_cells", 0) or 1
    units = len(sizes)
    draw = Dimension(name="draw", codes=tuple(map(str, range(draws))))
    unit = Dimension(name="unit", codes=tuple(map(str, range(units))))
    by = (draw, unit, GROUP) if inside > 1 else (draw, unit)
    shares = np.array([1.0]) if inside == 1 else np.array([0.5, 0.3, 0.2, 0.0])
    each = np.floor(sizes[:, None] * shares).astype(np.int64)
    count = np.tile(each.ravel(), draws)
    total = np.tile(np.repeat(each.sum(axis=1), inside), draws)
    columns = {"count": count, "largest": count, "largest_employer": total, "establishments": np.ones_like(count)}
    true = Cells(dimensions=by, positions=np.arange(len(count)), columns=columns)
    answer = method.protect(true, Seeded(seed)).with_column("establishments", columns["establishments"])
    figures = published_figures(method, answer, 0.9).beside(answer["value"])
    chosen = np.tile(np.arange(inside) < part, draws * units)
    cells = PublishedCells(
        method=method,  # type: ignore[arg-type]
        cells=answer,
        noisy=np.ones(len(count), dtype=bool),
        value=answer["value"],
        agreed=False,
        figures=figures,
        places={},
        chosen=chosen,
        establishments=None,
        raised=False,
        confidence=0.92 if bought_steps(method) else 0.9,
    )
    value, found = sum_figures(cells, np.where(chosen, answer.codes("draw"), -1), draws)
    truth = int(each[:, :part].sum())
    held = (found.low <= truth) & ((truth <= found.high) | np.isnan(found.high))
    return held.mean(), found.error.mean() / np.abs(value - truth).mean(), np.isnan(found.high).mean()


def name(method: Method) -> str:
    return f"{method.name} {float(method.guarantee().epsilon):g}"  # type: ignore[union-attr]


def test_a_method_is_built_again_of_what_a_bundle_says_of_it() -> None:
    for method in METHODS:
        assert built_again(method.name, json.loads(json.dumps(public_parameters(method)))) == method
    with pytest.raises(SfumatoError, match="this version"):
        built_again("smooth-pareto", {"alpha": "1/10", "epsilon": "2", "unheard_of": 1})


@pytest.mark.parametrize("method", METHODS, ids=name)
def test_intervals_of_sums_of_a_few_cells_hold_and_errors_are_honest(method: Method) -> None:
    for sizes, draws, part in ((largest_first(2), 1_500, 3), (as_in_an_economy(20), 600, 2)):
        held, error, _ = off(method, sizes, draws, 7, part)
        assert held >= 0.9 - 3 * np.sqrt(0.09 / draws)
        assert error >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("cells", [1, 2, 5, 20, 100, 1_000])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("method", METHODS, ids=name)
def test_intervals_of_sums_hold_whatever_the_number_of_cells(method: Method, shape: str, cells: int) -> None:
    draws = {1: 1_500, 2: 1_500, 5: 1_000, 20: 600, 100: 400, 1_000: 100}[cells]
    for part in {1, 3} if getattr(method, "worker_cells", 0) else {1}:
        held, error, _ = off(method, SHAPES[shape](cells), draws, 11, part)
        assert held >= 0.9 - 3.5 * np.sqrt(0.09 / draws)
        assert error >= 0.95 - 3.5 / np.sqrt(draws)
