"""The samplers: what each draws in a benchmark, what NumPy would draw instead, and how large the draws should be."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bench.noise.inexact import (
    box_laplace,
    box_pareto,
    chosen,
    double_pareto,
    geometric,
    laplace,
    log_laplace,
    quartic,
    ramp,
    simplex_pareto,
)
from sfumato.arrays import Integers
from sfumato.noise.box_laplace import BoxLaplace, expected_deviation
from sfumato.noise.box_pareto import BoxPareto
from sfumato.noise.choice import PrivateMedian, WeightedChoice
from sfumato.noise.factors import ONE, Factors, triangular
from sfumato.noise.geometric import Geometric, TruncatedGeometric
from sfumato.noise.keyed import Keyed
from sfumato.noise.laplace import LogLaplace, RoundedLaplace
from sfumato.noise.pareto import DoublePareto, SimplexPareto
from sfumato.noise.quartic import Quartic
from sfumato.noise.randomness import OperatingSystem, Seeded

Numbers = NDArray[np.float64] | Integers
Draw = Callable[[np.random.Generator], Numbers]

DRAWS = 400_000
CANDIDATES, VALUES = 20, 200
"""Of a weighted choice, which is also made of five times as many; and of a group with a private median."""
_WEIGHED = 10 * DRAWS  # candidates and values: so many that the mean of what is drawn from them can be judged
_CELLS = (2, 8, 20)
_KEY = bytes(range(16))
_THREE, _TENTH, _SPREAD = Fraction(3), Fraction(1, 10), 300_000
_OS = OperatingSystem()
_REPEATABLE = np.random.default_rng(9)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Parameters of a sampler: how it draws, and how large its draws are on average, one by one or all alike."""

    label: str
    draws: int
    """Of one call: published numbers, that is every cell of a block, and one for a whole choice or median."""
    exact: Callable[[], Numbers]
    size: Callable[[Numbers], Numbers]
    """What is compared with the expected size: the magnitude of a draw, its error, or its cost."""
    expected: Numbers | float
    inexact: Draw | None = None
    each: int = 1
    """How many numbers have to be weighed or sorted for one draw."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One sampler in several settings."""

    name: str
    label: str
    settings: tuple[Setting, ...]
    peer: str = ""
    """The draws of OpenDP that are nearest to these."""
    reads: str = ""
    """What has to be weighed or sorted for a draw, if that is more than the draw itself."""


def cases() -> list[Case]:
    """All samplers that draw a published figure, and all keyed functions."""
    return [*_scalar(), *_vector(), *_whole(), *_choices(), *_keyed()]


def _scales() -> dict[str, Integers]:
    """Multiples of the unit: small ones, those of cells of establishments, and larger than any count."""
    sizes = np.ceil(np.minimum(_REPEATABLE.pareto(1.0, DRAWS) + 1, 100_000)).astype(np.int64)
    return {
        "scale 5": np.full(DRAWS, 10),
        "scales of cells": 10 * sizes,
        "scale 10⁹": np.full(DRAWS, 2 * 10**9),
        "scale 10¹⁵": np.full(DRAWS, 2 * 10**15),
    }


def _scalar() -> list[Case]:
    unit, offset = Fraction(1, 2), Fraction(10)
    pareto, flat, fourth = DoublePareto(unit=unit, tail=_THREE), RoundedLaplace(unit=unit), Quartic(unit=unit)
    logs = LogLaplace(unit=unit, spread=_TENTH, offset=offset)
    scales = _scales()
    found = [
        Case(
            name=name,
            label=label,
            peer="laplace",
            settings=tuple(
                Setting(
                    label=scale,
                    draws=DRAWS,
                    exact=lambda noise=noise, m=m: noise.sample(m, _OS),
                    size=np.abs,
                    expected=noise.expected_magnitude(m),
                    inexact=lambda generator, noise=noise, plain=plain, m=m: plain(noise, m, generator),
                )
                for scale, m in scales.items()
            ),
        )
        for name, label, noise, plain in (
            ("double pareto", "Double Pareto (smooth-pareto)", pareto, double_pareto),
            ("laplace", "Laplace, rounded (smooth-laplace, mose)", flat, laplace),
            ("quartic", "1/(1 + z⁴) (smooth-gamma)", fourth, quartic),
        )
    ]
    return [
        *found,
        Case(
            name="log-laplace",
            label="Log-Laplace (log-laplace)",
            peer="laplace",
            settings=tuple(
                Setting(
                    label=scale,
                    draws=DRAWS,
                    exact=lambda m=m: logs.sample(m, _OS),
                    size=lambda drawn, m=m: np.abs(drawn - (m // 2 - 10)),
                    expected=sum(logs.expected_deviation(m // 2 - 10, m)),
                    inexact=lambda generator, m=m: log_laplace(logs, m, generator),
                )
                for scale, m in scales.items()
            ),
        ),
    ]


def _vector() -> list[Case]:
    """Noise for all worker cells of a workplace cell at once; scales are of counts of jobs."""
    unit, offset = Fraction(1, 2), Fraction(10)
    scales = {name: m for name, m in _scales().items() if name != "scale 10¹⁵"}
    settings: dict[str, list[Setting]] = {"simplex": [], "box pareto": [], "box laplace": []}
    for cells in _CELLS:
        for scale, m in scales.items():
            label, one = f"{cells} cells, {scale}", m[: DRAWS // cells].copy()
            rows = np.repeat(one[:, None], cells, axis=1)
            simplex = SimplexPareto(unit=unit, tail=_THREE, cells=cells)
            box = BoxPareto(unit=unit, tail=_THREE, cells=cells)
            logs = BoxLaplace(scale=Fraction(1, 20), cells=cells)
            true = rows // 2 - 10
            settings["simplex"].append(
                Setting(
                    label=label,
                    draws=rows.size,
                    exact=lambda noise=simplex, m=one: noise.sample(m, _OS),
                    size=np.abs,
                    expected=simplex.marginal.expected_magnitude(rows.ravel()).reshape(rows.shape),
                    inexact=lambda generator, noise=simplex, rows=rows: simplex_pareto(noise, rows, generator),
                )
            )
            settings["box pareto"].append(
                Setting(
                    label=label,
                    draws=rows.size,
                    exact=lambda noise=box, rows=rows: noise.sample(rows, _OS),
                    size=np.abs,
                    expected=box.expected_magnitude(rows),
                    inexact=lambda generator, noise=box, rows=rows: box_pareto(noise, rows, generator),
                )
            )
            settings["box laplace"].append(
                Setting(
                    label=label,
                    draws=rows.size,
                    exact=lambda noise=logs, rows=rows: noise.sample(rows, _OS, unit=unit, offset=offset),
                    size=lambda drawn, true=true: np.abs(drawn - true),
                    expected=sum(expected_deviation(logs, true, rows, unit=unit, offset=offset)),
                    inexact=lambda generator, noise=logs, rows=rows: box_laplace(
                        noise, rows, generator, unit=unit, offset=offset
                    ),
                )
            )
    labels = {
        "simplex": "Simplex Pareto, blocks (vector-pareto)",
        "box pareto": "Box Pareto, blocks (smooth-box)",
        "box laplace": "Box Laplace on logarithms, blocks (log-box)",
    }
    return [Case(name=name, label=labels[name], peer="laplace", settings=tuple(settings[name])) for name in labels]


def _whole() -> list[Case]:
    """Noise on whole numbers from the start."""
    plain = {
        f"ε = {label}": Geometric(epsilon=epsilon)
        for label, epsilon in (("1", Fraction(1)), ("0.001", Fraction(1, 1000)), ("10⁻¹⁵", Fraction(1, 10**15)))
    }
    capped = {
        f"ε = {label}, cap {cap:,}": TruncatedGeometric(epsilon=epsilon, cap=cap)
        for label, epsilon, cap in (
            ("2", Fraction(2), 7),
            ("0.1", _TENTH, 200),
            ("0.001", Fraction(1, 1000), 20_000),
        )
    }
    return [
        Case(
            name=name,
            label=label,
            peer=peer,
            settings=tuple(
                Setting(
                    label=setting,
                    draws=DRAWS,
                    exact=lambda noise=noise: noise.sample(DRAWS, _OS),
                    size=np.abs,
                    expected=noise.expected_magnitude,
                    inexact=lambda generator, noise=noise: geometric(noise, DRAWS, generator),
                )
                for setting, noise in noises.items()
            ),
        )
        for name, label, peer, noises in (
            ("geometric", "Two-sided geometric (laplace, earnings, regressions)", "laplace", plain),
            ("truncated", "…with a cap (hypercube)", "geometric", capped),
        )
    ]


def _choices() -> list[Case]:
    choice = WeightedChoice(rate=Fraction(1, 50))
    rows = [_REPEATABLE.integers(0, 200, (_WEIGHED // width, width)) for width in (CANDIDATES, 5 * CANDIDATES)]
    groups = _WEIGHED // VALUES
    grid, one = PrivateMedian(decay=Fraction(1, 20), low=0, high=10_000), _REPEATABLE.integers(0, 10_000, VALUES)
    weighed, owner, values = grid.costs(one), np.repeat(np.arange(groups), VALUES), np.tile(one, groups)
    return [
        Case(
            name="choice",
            label="Weighted choice (percentiles by bins)",
            peer="choice",
            reads="candidates",
            settings=tuple(
                Setting(
                    label=f"of {costs.shape[1]}",
                    draws=len(costs),
                    each=costs.shape[1],
                    exact=lambda costs=costs: choice.sample(costs, _OS),
                    size=lambda drawn, costs=costs: np.take_along_axis(costs, drawn[:, None], axis=1),
                    expected=float(np.mean((choice.probabilities(costs) * costs).sum(axis=1))),
                    inexact=lambda generator, costs=costs: chosen(choice, costs, generator),
                )
                for costs in rows
            ),
        ),
        Case(
            name="median",
            label=f"Private median of {VALUES} values (theil-sen)",
            reads="values",
            settings=(
                Setting(
                    label="10,001 points",
                    draws=groups,
                    each=VALUES,
                    exact=lambda: grid.sample(owner, values, groups, _OS),
                    size=lambda drawn: weighed[drawn],
                    expected=float(grid.probabilities(one) @ weighed),
                ),
            ),
        ),
    ]


def _keyed() -> list[Case]:
    """Permanent chance: no noise that OpenDP has."""
    units, keyed = Seeded(9).words(DRAWS), Keyed(key=_KEY)
    factors = Factors(key=_KEY, least=Fraction(1, 20), most=Fraction(3, 20))

    def setting(label: str, exact: Callable[[], Numbers], expected: float, inexact: Draw) -> tuple[Setting]:
        return (Setting(label=label, draws=DRAWS, exact=exact, size=np.abs, expected=expected, inexact=inexact),)

    def centred(words: NDArray[np.uint64]) -> Numbers:
        return words / 2.0**64 - 0.5

    return [
        Case(
            name="factors",
            label="Permanent factors (noise infusion)",
            settings=setting(
                "of units",
                lambda: (factors.of(units) - ONE) / ONE,
                factors.mean_distortion,
                lambda generator: ramp(factors, DRAWS, generator),
            ),
        ),
        Case(
            name="words",
            label="Keyed words of units",
            settings=setting(
                "of units",
                lambda: centred(keyed.words(units, purpose="bench")),
                0.25,
                lambda generator: generator.uniform(-0.5, 0.5, DRAWS),
            ),
        ),
        Case(
            name="triangular",
            label="Triangular noise of a unit in a cell (top contributors)",
            settings=setting(
                "of pairs",
                lambda: (
                    (triangular(keyed.words_of_pairs(units, units[::-1], purpose="bench"), spread=_SPREAD) - ONE) / ONE
                ),
                _SPREAD / ONE / 3,
                lambda generator: generator.triangular(-_SPREAD / ONE, 0, _SPREAD / ONE, DRAWS),
            ),
        ),
    ]
