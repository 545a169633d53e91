"""The figures of Chipperfield and others (2019) again: the worked example, the risks, the losses and the optima."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.methods.contributor_calibration import Search, optimum
from sfumato.methods.contributor_risk import ATTACKS, Attack, Evaluation, evaluate
from sfumato.methods.contributor_shape import Shape
from sfumato.reproduce.chipperfield2019.published import (
    ACCEPTABLE,
    FIGURE_1,
    FIGURE_1_MAGNITUDES,
    SPREAD,
    TABLE_2,
    VARIANCE_OF_DIRECTED_NOISE,
    VARIANCE_OF_NOISE,
    Optimum,
    Panel,
)
from sfumato.reproduce.chipperfield2019.survey import SurveyTables, survey_tables
from sfumato.reproduce.chipperfield2019.worked_example import Moved, worked_example

PAPER = "chipperfield2019"
DIFFERENCING = ATTACKS[1]
BUSINESSES = 100_000
KEYS, QUICK_KEYS = 20, 5
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class FoundPanel:
    """A panel of Figure 1 at the magnitudes that the paper reads off."""

    published: Panel
    ours: Evaluation


@dataclass(frozen=True, kw_only=True)
class Best:
    """The magnitudes we find best under some attacks."""

    attacks: tuple[Attack, ...]
    falling: bool
    """Whether only magnitudes were tried that never grow from a contributor to a smaller one."""
    found: Evaluation


@dataclass(frozen=True, kw_only=True)
class FoundOptimum:
    """A line of Table 2: what its magnitudes do, with and without the parity rule, and which would be best."""

    published: Optimum
    ours: Evaluation
    with_parity: float
    """The risk of attack 2 if directions turned with the parity of the number of contributors."""
    best: tuple[Best, ...]

    def under(self, *numbers: int, falling: bool = False) -> Evaluation:
        """The best magnitudes under these attacks."""
        return next(b.found for b in self.best if b.falling == falling and tuple(_numbers(b.attacks)) == numbers)


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Everything that was computed again."""

    example: tuple[Moved, ...]
    panels: tuple[FoundPanel, ...]
    optima: tuple[FoundOptimum, ...]
    survey: SurveyTables
    """Tables in the form of 3, 4, 6 and 7, on synthetic data."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """One object for every figure: what it is about, what was published about it, and ours."""
        for line in self.example:
            yield {"quantity": "perturbation", "what": line.what, "published": line.published, "ours": line.ours}
        ours = SPREAD**2 / 6
        yield {"quantity": "variance", "what": "h", "published": VARIANCE_OF_NOISE, "ours": ours}
        yield {"quantity": "variance", "what": "d·h", "published": VARIANCE_OF_DIRECTED_NOISE, "ours": 1 + ours}
        for panel in self.panels:
            yield from _panel_rows(panel)
        for shape in self.optima:
            yield from _optimum_rows(shape)
        for table in self.survey.tables:
            yield from table.rows()


def reproduce(
    *,
    data: Path | None = None,
    businesses: int = BUSINESSES,
    keys: int = KEYS,
    seed: int = 1,
    progress: Progress = lambda *_: None,
) -> Reproduction:
    """Compute Table 1, Table 2 and Figure 1 again, and the optimal magnitudes under all attacks and under attack 2.

    Tables like 3, 4, 6 and 7 are made from a synthetic survey of so many businesses, under several keys. It is made in
    a temporary folder, or taken from `data`, where it is made if there is none yet.
    """
    survey = survey_tables(data=data, businesses=businesses, keys=keys, seed=seed, progress=progress)
    optima = []
    for done, line in enumerate(TABLE_2):
        progress("optimal magnitudes", done, len(TABLE_2))
        optima.append(_optimum(line))
    return Reproduction(
        example=tuple(worked_example()),
        panels=tuple(_panel(panel) for panel in FIGURE_1),
        optima=tuple(optima),
        survey=survey,
    )


def _panel(panel: Panel) -> FoundPanel:
    attack = replace(DIFFERENCING, within=panel.within)
    return FoundPanel(
        published=panel, ours=evaluate(Shape.read(panel.contributors), FIGURE_1_MAGNITUDES, attacks=[attack])
    )


def _optimum(line: Optimum) -> FoundOptimum:
    shape = Shape.read(line.contributors)
    best = [
        Best(
            attacks=attacks,
            falling=falling,
            found=optimum(shape, Search(top=len(line.magnitudes), falling=falling), attacks=attacks),
        )
        for attacks in (ATTACKS, (DIFFERENCING,))
        for falling in (False, True)
    ]
    parity = evaluate(shape, line.magnitudes, attacks=[DIFFERENCING], parity=True)
    return FoundOptimum(
        published=line,
        ours=evaluate(shape, line.magnitudes),
        with_parity=parity.verdicts[0].risk,
        best=tuple(best),
    )


def _panel_rows(panel: FoundPanel) -> Iterator[dict[str, Any]]:
    published, ours = panel.published, panel.ours
    about = {
        "contributors": published.contributors,
        "m": listed(ours.magnitudes),
        "source": f"figure 1{published.name}",
    }
    yield {"quantity": "loss", **about, "published": published.loss, "ours": ours.loss}
    for verdict in ours.verdicts:
        yield {
            "quantity": "risk",
            **about,
            "attack": verdict.attack.number,
            "v": verdict.attack.within,
            "published": published.risk,
            "ours": verdict.risk,
        }


def _optimum_rows(line: FoundOptimum) -> Iterator[dict[str, Any]]:
    published = listed(line.published.magnitudes)
    about = {"contributors": line.published.contributors, "m": published, "source": "table 2"}
    yield {"quantity": "loss", **about, "published": None, "ours": line.ours.loss}
    for verdict in line.ours.verdicts:
        yield {
            "quantity": "risk",
            **about,
            "attack": verdict.attack.number,
            "v": verdict.attack.within,
            "published": ACCEPTABLE,
            "relation": "at most",
            "ours": verdict.risk,
        }
    yield {
        "quantity": "risk",
        **about,
        "attack": DIFFERENCING.number,
        "v": DIFFERENCING.within,
        "parity": True,
        "published": None,
        "ours": line.with_parity,
    }
    for best in line.best:
        yield {
            "quantity": "optimal_m",
            "contributors": line.published.contributors,
            "attacks": ",".join(map(str, _numbers(best.attacks))),
            "falling": best.falling,
            "published": published,
            "ours": listed(best.found.magnitudes),
            "loss": best.found.loss,
        }


def _numbers(attacks: Sequence[Attack]) -> Iterator[int]:
    return (attack.number for attack in attacks)


def listed(magnitudes: Sequence[float]) -> str:
    """Magnitudes as they are written, such as 0.15,0.1,0.1."""
    return ",".join(f"{magnitude:g}" for magnitude in magnitudes)
