"""What in the paper does not agree with its own definitions, each with the figure that shows it."""

from collections.abc import Iterator

from sfumato.reproduce.chipperfield2019.published import SPREAD, VARIANCE_OF_NOISE
from sfumato.reproduce.chipperfield2019.published_tables import AGREEMENTS, TABLE_3, TABLE_4, Estimate
from sfumato.reproduce.chipperfield2019.reproduction import FoundOptimum, Reproduction, listed
from sfumato.reproduce.chipperfield2019.worked_example import noises_out_of_range

_ROUNDING = 0.1  # estimates and impacts are printed with one digit after the point


def errata(found: Reproduction) -> list[str]:
    """One sentence for each; the ones about risks are found by computing, not copied from a list."""
    return [*_noise(), *_figure_1(found), *_violated(found), *_dear(found), *_parity(found), *_totals()]


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
    for panel in found.panels:
        risk = panel.ours.verdicts[0].risk
        # Three standard errors of the paper's 500 draws, and half a percentage point of rounding.
        allowed = 3 * (risk * (1 - risk) / 500) ** 0.5 + 0.005
        if abs(risk - panel.published.risk) > allowed:
            yield (
                f"Figure 1{panel.published.name}: the risk is {risk:.3f}, not {panel.published.risk:g}; 500 draws come "
                f"within {allowed:.3f}."
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
