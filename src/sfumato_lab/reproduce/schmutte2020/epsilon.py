"""How ε is chosen: by who is found in the tails, and year by year; and what scales of noise give away."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.checking import check, checked
from sfumato.measures.attacks import AttackResult
from sfumato.method import HIDDEN
from sfumato.noise.randomness import Repeatable
from sfumato.release import load
from sfumato.statistics.people.noisy_regression import NoisyRegression
from sfumato.statistics.people.sensitivity import GlobalSensitivity, LocalSensitivity
from sfumato.statistics.people.tails import Classified, Tails
from sfumato.statistics.people.tune import Target, TunedReport, reported, true_cells, tune_report
from sfumato.statistics.published import number
from sfumato_lab.reproduce.schmutte2020.atlas import (
    AT,
    COUNT_EPSILON,
    EPSILON,
    GLOBAL,
    LEAST,
    LOCAL,
    MOSE,
    RANK,
    REGRESSION,
    SIZES,
    Atlas,
    inside,
    label,
)

LADDER = tuple(map(Fraction, (1, 2, 4, 8, 16, 32)))
"""ε of an estimate, at which tails are looked at."""
TARGET = Target(threshold=Fraction(1, 10), share=Fraction(9, 10))
"""Of the employee report: nine cells of ten within a tenth."""


@dataclass(frozen=True, kw_only=True)
class TypicalSensitivity:
    """By how many ranks a person can move a prediction in the middling group of a size, in three ways to say it."""

    size_class: str
    ranks: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class ChosenEpsilon:
    """What is found in the tails at each ε, what one person can move, what a local scale tells, and ε by year."""

    tails: tuple[tuple[str, Fraction, Classified], ...]
    draws: int
    sensitivities: tuple[TypicalSensitivity, ...]
    leaks: tuple[tuple[str, AttackResult], ...]
    """Of noise scaled to local sensitivity: without its scale, and with it."""
    report: dict[str, TunedReport]
    """With ε divided evenly over years, and with an ε for each."""

    def found(self, method: str, epsilon: Fraction) -> float:
        """The share of the groups in a tail that are found."""
        return next(line.found for name, at, line in self.tails if (name, at) == (method, epsilon))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every figure; ε = 8 of the Atlas was chosen by the first of them, which is not printed."""
        for method, epsilon, line in self.tails:
            about = {"method": method, "epsilon": float(epsilon), "keys": self.draws, "published": None}
            yield {"quantity": "tail_found_at_epsilon", **about, "ours": line.found}
            yield {"quantity": "tail_right_at_epsilon", **about, "ours": line.right}
        for size in self.sensitivities:
            for method, ranks in size.ranks.items():
                about = {"method": method, "size_class": size.size_class, "published": None}
                yield {"quantity": "typical_sensitivity", **about, "ours": ranks}
        for scale, attack in self.leaks:
            about = {"attack": attack.attack, "scale": scale, "groups": attack.targets, "published": None}
            yield {"quantity": "local_scale_leak", **about, "ours": attack.success_rate}
        for division, tuned in self.report.items():
            for table in tuned.tables:
                for year, epsilon in table.epsilons.items():
                    about = {"division": division, "statistic": table.name, "year": year, "published": None}
                    yield {"quantity": "epsilon_tuned", **about, "ours": number(epsilon)}
            yield {
                "quantity": "epsilon_tuned_in_all",
                "division": division,
                "published": None,
                "ours": float(tuned.epsilon),
            }


def choose_epsilon(atlas: Atlas, report: Path, *, draws: int, seed: int) -> ChosenEpsilon:
    """Draw the noise of predictions at the 25th percentile at several ε, and tune the report on its true cells."""
    return ChosenEpsilon(
        tails=tuple(_tails(atlas, draws=draws, seed=seed)),
        draws=draws,
        sensitivities=tuple(_sensitivities(atlas)),
        leaks=tuple(_leaks(atlas, seed=seed)),
        report=_report(report),
    )


def _tails(atlas: Atlas, *, draws: int, seed: int) -> Iterator[tuple[str, Fraction, Classified]]:
    cells = atlas.chosen(atlas.people >= LEAST)
    mose = replace(atlas.method, at=(AT,), minimum=LEAST, epsilon=EPSILON + COUNT_EPSILON, count_epsilon=COUNT_EPSILON)
    own = ("alpha", "at", "minimum", "low_x", "high_x", "low_y", "high_y", "decimals")
    formal = NoisyRegression(epsilon=EPSILON, **{name: getattr(mose, name) for name in own})
    tails = Tails(true=mose.true_value(cells)[:, None], people=cells["count"], least=LEAST)
    for epsilon in LADDER:
        protectors: dict[str, Any] = {
            MOSE: mose.with_value_epsilon(epsilon),
            REGRESSION: replace(formal, epsilon=epsilon),
        }
        for name, method in protectors.items():
            drawn = [method.protect(cells, Repeatable(seed, "schmutte2020", name, draw)) for draw in range(draws)]
            lines = [tails.classified(name, t["value"][:, None], ~np.isin(t["status"], HIDDEN)[:, None]) for t in drawn]
            yield name, epsilon, Classified.mean(lines)


def _sensitivities(atlas: Atlas) -> Iterator[TypicalSensitivity]:
    method = replace(atlas.method, at=(AT,))
    (found,) = method.estimates(atlas.cells)
    bounds = {name: getattr(method, name) for name in ("alpha", "at", "low_x", "high_x", "low_y", "high_y")}
    everywhere = GlobalSensitivity(epsilon=EPSILON, **bounds).sensitivity / RANK
    for low, high in SIZES:
        own = inside(atlas.people, low, high) & (found.status == 0)
        if own.any():
            ranks = {
                GLOBAL: everywhere,
                LOCAL: float(np.median(found.sensitivity[own])) / RANK,
                MOSE: float(np.median(found.scale[own])) / method.grid / RANK,
            }
            yield TypicalSensitivity(size_class=label(low, high), ranks=ranks)


def _leaks(atlas: Atlas, *, seed: int) -> Iterator[tuple[str, AttackResult]]:
    own = ("alpha", "low_x", "high_x", "low_y", "high_y", "decimals")
    shared: dict[str, Any] = {name: getattr(atlas.method, name) for name in own} | {"at": (AT,)}
    for told in (False, True):
        method = LocalSensitivity(epsilon=EPSILON, accept_leak=True, tell_scales=told, minimum=LEAST, **shared)
        drawn = method.protect(atlas.cells, Repeatable(seed, "leaks", told))
        yield "told" if told else "not told", method.attacks(atlas.cells, drawn)[0]


def _report(file: Path) -> dict[str, TunedReport]:
    release = load(file)
    tables = reported(check(release, data=False).plan)
    with checked(release, everything=True) as ready:
        cells = true_cells(ready.count, tables, release.records.records.period)
    return {
        name: tune_report(release, tables, TARGET, cells, by_period=by_period)
        for name, by_period in (("even", False), ("each year", True))
    }
