"""The figures of Chipperfield and others (2019) again, and what in the paper does not agree."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.statistics.totals.calibration import ATTACKS, Attack, Evaluation, Search, evaluate, optimum
from sfumato.statistics.totals.perturbation import Shape
from sfumato_lab.reproduce.chipperfield2019.evaluate import (
    Moved,
    SurveyTables,
    noises_out_of_range,
    survey_tables,
    worked_example,
)
from sfumato_lab.reproduce.chipperfield2019.published import (
    ACCEPTABLE,
    AGREEMENTS,
    COMPROMISE,
    EVERYONE,
    EXAMPLE,
    FIGURE_1,
    FIGURE_1_MAGNITUDES,
    FIGURE_1_SPREADS,
    SPREAD,
    STRICT,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    TABLE_6_VALUES,
    VARIANCE_OF_DIRECTED_NOISE,
    VARIANCE_OF_NOISE,
    Estimate,
    Optimum,
    Panel,
)
from sfumato_lab.reproduce.chipperfield2019.table_5 import Disclosed, establishments

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
    wider: tuple[tuple[float, Evaluation], ...] = ()
    """The same with a wider noise: the width, and what it does."""


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
    single: tuple[tuple[str, tuple[float, ...], Evaluation], ...]
    """One set of magnitudes for all shapes: the shape, the magnitudes, and what they do."""
    table_5: tuple[Disclosed, ...]

    def rows(self) -> Iterator[dict[str, Any]]:
        """One object for every figure: what it is about, what was published about it, and ours."""
        for line in self.example:
            yield {"quantity": "perturbation", "what": line.what, "published": line.published, "ours": line.ours}
        ours = SPREAD**2 / 6
        yield {"quantity": "variance", "what": "h", "published": VARIANCE_OF_NOISE, "ours": ours}
        yield {"quantity": "variance", "what": "d·h", "published": VARIANCE_OF_DIRECTED_NOISE, "ours": 1 + ours}
        target, totals, within, stated = EXAMPLE
        near = [abs(total / target - 1) <= within for total in totals]
        yield {"quantity": "example", "source": "section 3.2", "published": stated, "ours": sum(near) / len(near)}
        for panel in self.panels:
            yield from _panel_rows(panel)
        for contributors, magnitudes, found in self.single:
            about = {"contributors": contributors, "m": listed(magnitudes), "source": "section 3.4"}
            yield {"quantity": "loss", **about, "published": None, "ours": found.loss}
            for verdict in found.verdicts:
                attack = {"attack": verdict.attack.number, "v": verdict.attack.within}
                yield {
                    "quantity": "risk",
                    **about,
                    **attack,
                    "published": ACCEPTABLE,
                    "relation": "at most",
                    "ours": verdict.risk,
                }
        yield from (line.row() for line in self.table_5)
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
        single=tuple(
            (line.contributors, magnitudes, evaluate(Shape.read(line.contributors), magnitudes))
            for magnitudes in (COMPROMISE, STRICT)
            for line in TABLE_2
        ),
        table_5=establishments(),
    )


def _panel(panel: Panel) -> FoundPanel:
    attack, shape = replace(DIFFERENCING, within=panel.within), Shape.read(panel.contributors)
    found = [
        (spread, evaluate(shape, FIGURE_1_MAGNITUDES, attacks=[attack], spread=spread)) for spread in FIGURE_1_SPREADS
    ]
    return FoundPanel(published=panel, ours=found[0][1], wider=tuple(found[1:]))


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
    yield {"quantity": "loss", **about, "spread": SPREAD, "published": published.loss, "ours": ours.loss}
    for verdict in ours.verdicts:
        yield {
            "quantity": "risk",
            **about,
            "spread": SPREAD,
            "attack": verdict.attack.number,
            "v": verdict.attack.within,
            "published": published.risk,
            "ours": verdict.risk,
        }
    for spread, wider in panel.wider:
        told = {**about, "spread": spread}
        yield {"quantity": "loss", **told, "published": published.loss, "ours": wider.loss}
        yield {"quantity": "risk", **told, "published": published.risk, "ours": wider.verdicts[0].risk}


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


# What in the paper does not agree with its own definitions, each with the figure that shows it.

_ROUNDING = 0.1  # estimates and impacts are printed with one digit after the point


def errata(found: Reproduction) -> list[str]:
    """One sentence for each; the ones about risks are found by computing, not copied from a list."""
    return [
        *_noise(),
        *_violated(found),
        *_single(found),
        *_dear(found),
        *_parity(found),
        *_totals(),
        *_table_5(found),
        *_sums(),
    ]


def open_questions(found: Reproduction) -> list[str]:
    """What ours and the paper differ in without either being known to be wrong."""
    return list(_figure_1(found))


def _noise() -> Iterator[str]:
    yield (
        f"The variance of a triangular noise on 1 ± {SPREAD:g} is b²/6 = {SPREAD**2 / 6:g}, not b²/12, and not the "
        f"printed {VARIANCE_OF_NOISE:g}; so Var(d·h) = {1 + SPREAD**2 / 6:g}."
    )
    outside = noises_out_of_range()
    if outside:
        yield (
            f"Table 1 has h = {outside[0]:g}, which lies outside 1 ± {SPREAD:g}: its numbers follow from its h, but no "
            "such h can be drawn."
        )


def _figure_1(found: Reproduction) -> Iterator[str]:
    """Widths of the noise, and which panels come out with each."""
    widths = [SPREAD, *(spread for spread, _ in found.panels[0].wider)]
    told, fitting = [], []
    for place, spread in enumerate(widths):
        risks = [[p.ours, *(w for _, w in p.wider)][place].verdicts[0].risk for p in found.panels]
        # Three standard errors of the paper's 500 draws, and half a percentage point of rounding.
        near = [
            abs(risk - panel.published.risk) <= 3 * (risk * (1 - risk) / 500) ** 0.5 + 0.005
            for panel, risk in zip(found.panels, risks, strict=True)
        ]
        fitting.append(all(near))
        told.append(f"b = {spread:g}: " + ", ".join(f"{risk:.3f}" for risk in risks))
    if not fitting[0]:
        printed = ", ".join(f"{panel.published.risk:.2f}" for panel in found.panels)
        names = ", ".join(panel.published.name for panel in found.panels)
        yield (
            f"Figure 1, risks of panels {names}: {printed} as printed; {'; '.join(told)}. "
            + ("No width fits all four within the chance of 500 draws" if not any(fitting) else "A wider noise fits")
            + ". The text has b = 0.3, and Table 1 a noise of 1.54, which needs b ≥ 0.54: which width was used is open."
        )


def _single(found: Reproduction) -> Iterator[str]:
    for magnitudes, stated in ((COMPROMISE, "for the last line of Table 2 alone"), (STRICT, "nowhere")):
        broken = [(shape, one) for shape, m, one in found.single if m == magnitudes and not one.is_met]
        words = [
            f"{shape} ({', '.join(f'attack {v.attack.number}: {v.risk:.2f}' for v in one.verdicts if not v.is_met)})"
            for shape, one in broken
        ]
        if words:
            yield f"m = {listed(magnitudes)} is said to break limits {stated}; it does for {', '.join(words)}."


def _table_5(found: Reproduction) -> Iterator[str]:
    line = next(line for line in found.table_5 if line.what.startswith("attack 3 on the printed"))
    if line.published is not None and abs(line.ours - line.published) > 0.0005:
        yield (
            f"Table 5: subtracting 996,000 from the printed 3,925,000 is {line.ours:.1%} above what TAU 1 contributes, "
            f"not {line.published:.1%}."
        )


def _sums() -> Iterator[str]:
    for protected, printed in TABLE_6_VALUES.items():
        if protected == EVERYONE and printed[-1] == sum(printed[:-1]):
            yield (
                f"Table 6, approach II: the country, {printed[-1]:,}, is the sum of its perturbed states, but section "
                "2.1 says that a perturbed total is not."
            )


def _violated(found: Reproduction) -> Iterator[str]:
    for line in found.optima:
        broken = [verdict for verdict in line.ours.verdicts if not verdict.is_met]
        if broken:
            risks = " and ".join(f"attack {verdict.attack.number} ({verdict.risk:.2f})" for verdict in broken)
            yield f"Table 2, {line.published.contributors}: {_magnitudes(line)} breaks the limit of {risks}."


def _dear(found: Reproduction) -> Iterator[str]:
    for line in found.optima:
        best = line.under(1, 2, 3, falling=True)
        if line.ours.is_met and best.loss < line.ours.loss:
            yield (
                f"Table 2, {line.published.contributors}: {_magnitudes(line)} is not optimal; "
                f"{listed(best.magnitudes)} keeps all limits at a loss of {best.loss:.1%} instead of "
                f"{line.ours.loss:.1%}."
            )


def _parity(found: Reproduction) -> Iterator[str]:
    limits = {line.published.contributors: line.ours.verdicts[1] for line in found.optima}
    worse = [line for line in found.optima if line.with_parity > limits[line.published.contributors].risk + 0.01]
    if worse:
        most = max(worse, key=lambda line: line.with_parity)
        yield (
            f"The parity rule is expected to reduce the risk of attack 2. It increases it for {len(worse)} of the "
            f"{len(found.optima)} shapes, for {most.published.contributors} from "
            f"{limits[most.published.contributors].risk:.3f} to {most.with_parity:.2f}."
        )


def _totals() -> Iterator[str]:
    """The same employees are in the last rows of Tables 3 and 4, and the same set always gets the same answer."""
    for agreement, one, other in zip(AGREEMENTS, TABLE_3["All"], TABLE_4["All"], strict=True):
        (low, high), (least, most) = _unperturbed(one), _unperturbed(other)
        if max(low, least) <= min(high, most) and abs(one.impact - other.impact) > _ROUNDING:
            yield (
                f"Tables 3 and 4, all of '{agreement}': {one.value:g} ({one.impact:+g}%) and {other.value:g} "
                f"({other.impact:+g}%) are one estimate of about {(max(low, least) + min(high, most)) / 2:,.0f}, but "
                "the same employees must be perturbed alike."
            )


def _unperturbed(cell: Estimate) -> tuple[float, float]:
    """The least and greatest estimate that a printed one can have come from."""
    half = _ROUNDING / 2
    ends = [(cell.value + by) / (1 + (cell.impact + of) / 100) for by in (-half, half) for of in (-half, half)]
    return min(ends), max(ends)


def _magnitudes(line: FoundOptimum) -> str:
    return f"m = {listed(line.published.magnitudes)}"
