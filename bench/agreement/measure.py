"""Errors that are published beside those there are, before and after tables are made to agree, over many draws."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from bench.shared.report import Results
from sfumato.agree.published import agreed_answers, weighted_tables
from sfumato.agree.reconcile import reconcile, rounded
from sfumato.arrays import Flags, Floats
from sfumato.cells import Cells
from sfumato.checking import checked
from sfumato.plan import Plan
from sfumato.release import Release, load
from sfumato_lab.economy.jobs.generate import generate

ECONOMIES = {"100,000 jobs": (100_000, 2), "1 million jobs": (1_000_000, 1), "3 million jobs": (3_000_000, 3)}
"""Size and seed of the made-up economies, with as many establishments as were published for so many jobs."""
SHARES = {"2, 1, 1": Fraction(1), "0.5, 0.25, 0.25": Fraction(1, 4)}
"""By the epsilons that the tables then have: the part of what the release file gives them."""
CLASSES = {"below 10": 0, "10 to 100": 10, "100 to 1,000": 100, "1,000 to 10,000": 1_000, "10,000 and more": 10_000}
"""Classes of cells by their true number of jobs, each with the least one."""
_LARGE = 1_000
"""Jobs of cells that readers look at most."""
DRAWS = 1_000
_WITH_FIGURES = 50
"""Of all draws: those whose published errors are looked at. Bias needs many more than these."""


def measure_agreement(folder: Path, *, tell: Callable[[str], None], draws: int, release: Path | None) -> Results:
    """Draw the tables of three economies, and of a release of somebody's own, again and again."""
    found: Results = {"draws": draws, "releases": {}}
    for name, (jobs, seed) in ECONOMIES.items():
        tell(f"making {name}")
        made = generate(folder / str(jobs), jobs=jobs, seed=seed).release
        for epsilons, share in SHARES.items():
            tell(f"drawing {name} at {epsilons}")
            found["releases"][f"{name}, epsilon {epsilons}"] = _drawn(made, share, draws)
    if release is not None:
        tell(f"drawing {release}")
        found["releases"][f"the tables of {release.name}"] = _drawn(release, Fraction(1), draws)
    return found


def _drawn(file: Path, share: Fraction, draws: int) -> dict[str, Any]:
    """What is published of every table, and how far it is from the truth."""
    release = load(file)
    with checked(_agreeing(release, reconcile=True)) as ready:
        tables: list[Any] = [
            replace(table, method=replace(table.method, epsilon=table.method.epsilon * share))
            for table in ready.plan.tables
            if table.name in ready.plan.reconciled
        ]
        together = replace(ready.plan, statistics=tuple(tables))
        apart = replace(together, release=_agreeing(release, reconcile=False))
        true = ready.count({table.name: table for table in tables})
        seen = {table.name: _Seen(true[table.name]["count"]) for table in tables}
        for draw in range(draws):
            answers = {table.name: table.answer(true[table.name], None) for table in tables}
            _look(apart, together, answers, seen, with_figures=draw < _WITH_FIGURES)
    return {name: one.told() for name, one in seen.items()}


def _agreeing(release: Release, *, reconcile: bool) -> Release:
    return release.model_copy(update={"about": release.about.model_copy(update={"reconcile": reconcile})})


def _look(
    apart: Plan, together: Plan, answers: dict[str, Cells], seen: "dict[str, _Seen]", *, with_figures: bool
) -> None:
    """Look at one draw, as it is and with tables that agree."""
    if not with_figures:
        weighted, above = weighted_tables(together.tables, answers, together)
        agreed = rounded(weighted, reconcile(weighted, above), above)
        for name, one in seen.items():
            one.take("apart", answers[name]["value"], None)
            one.take("together", agreed[name], None)
        return
    for how, plan in (("apart", apart), ("together", together)):
        shown = agreed_answers(plan, answers)
        for table in plan.tables:
            figures = table.shown_figures(answers[table.name], shown[table.name])
            seen[table.name].take(how, shown[table.name]["value"], figures)


class _Seen:
    """What was seen of a table: sums over draws, for every cell."""

    def __init__(self, true: Floats) -> None:
        self.true = true
        self.sums: dict[str, list[Floats]] = {}

    def take(self, how: str, values: Floats, figures: Any) -> None:
        off = values - self.true
        self._add(f"{how}: off", off)
        self._add(f"{how}: away", np.abs(off))
        self._add(f"{how}: total", np.array([off.sum(), abs(off.sum()), off.sum() ** 2]))
        if figures is not None:
            high = np.where(np.isnan(figures.high), np.inf, figures.high)
            self._add(f"{how}: said", figures.error)
            self._add(f"{how}: held", (figures.low <= self.true) & (self.true <= high))

    def _add(self, name: str, column: Any) -> None:
        number, total = self.sums.get(name, (0, 0.0))
        self.sums[name] = [number + 1, total + np.asarray(column, dtype=np.float64)]

    def _mean(self, name: str) -> Floats:
        number, total = self.sums[name]
        found: Floats = total / number
        return found

    def _ratio(self, how: str, kept: Flags) -> Floats:
        """Published over true errors."""
        found: Floats = self._mean(f"{how}: said")[kept] / np.maximum(self._mean(f"{how}: away")[kept], 0.1)
        return found

    def told(self) -> dict[str, Any]:
        """Figures of the whole table, and of its cells by their size."""
        ends = [*list(CLASSES.values())[1:], np.inf]
        found: dict[str, Any] = {"cells": len(self.true), "classes": {}}
        for how in ("apart", "together"):
            off, away, square = self._mean(f"{how}: total")
            draws = self.sums[f"{how}: total"][0]
            error = np.sqrt(max(square - off**2, 0) / draws)
            found[how] = {"error": self._mean(f"{how}: away").mean(), "total_bias": off, "total_error": away}
            found[how]["total_standard_error"] = error
            found[how]["largest_bias"] = float(
                np.max(np.abs(self._mean(f"{how}: off")) / np.maximum(self._mean(f"{how}: away"), 0.5))
            )
        large = self.true >= _LARGE
        found["large_ratio"] = float(np.median(self._ratio("apart", large))) if large.any() else None
        for (name, least), beyond in zip(CLASSES.items(), ends, strict=True):
            kept = (self.true >= least) & (self.true < beyond)
            if kept.any():
                found["classes"][name] = {"cells": int(kept.sum())} | {
                    how: {
                        "error": self._mean(f"{how}: away")[kept].mean(),
                        "published": self._mean(f"{how}: said")[kept].mean(),
                        "ratio": float(np.median(self._ratio(how, kept))),
                        "held": self._mean(f"{how}: held")[kept].mean(),
                    }
                    for how in ("apart", "together")
                }
        return found
