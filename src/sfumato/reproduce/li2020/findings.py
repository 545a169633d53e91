"""What of the paper comes out, what does not, and what its Table 4 seems to be: each with the figure that shows it."""

from collections.abc import Iterator

from sfumato.reproduce.li2020.levels import SURVEYS, WORKLOADS
from sfumato.reproduce.li2020.published import CHANCE_OF_NOISE, CONVERGED, RUNS, TABLE_2, TABLE_4
from sfumato.reproduce.li2020.reproduction import Line, Reproduction
from sfumato.reproduce.li2020.simulate import TOLERANCE, VARIANTS
from sfumato.reproduce.li2020.theory import at_mean_cardinality

_SHOWN = range(1, 6)


def findings(found: Reproduction) -> list[str]:
    """One sentence or two for each."""
    return [
        *_noise(found),
        *_least_squares(found),
        *_raking(found),
        *_table_4(found),
        *_bias(found),
        *_bound(found),
        *_levels(found),
    ]


def _noise(found: Reproduction) -> Iterator[str]:
    ours = {row["j"]: row["ours"] for row in found.rows() if row["quantity"] == "noise_probability"}
    same = sum(_as_printed(ours[j], printed) for j, printed in TABLE_2.items())
    yield f"Table 2: {same} of {len(TABLE_2)} probabilities agree to all printed digits."
    chance = 1 - float(found.evaluated.probabilities[found.evaluated.cap])
    yield (
        f"Erratum: at ε = 7 and a cap of 1, noise of ±1 has a chance of {chance:.3%}, not {CHANCE_OF_NOISE:.1%}; the "
        f"printed variance 0.00182 is right."
    )


def _as_printed(value: float, printed: str) -> bool:
    decimals = len(printed.partition(".")[2])
    return f"{value:.{decimals}f}" == printed


def _least_squares(found: Reproduction) -> Iterator[str]:
    for variant in VARIANTS:
        lines = found.lines("least-squares", variant)
        below = [line.dimension for line in lines if not _at_least(line)]
        negative = [line.dimension for line in lines if line.reduction is not None and line.reduction < 0]
        solved = found.converged("least-squares", variant)
        verdict = "at every dimension" if not below else f"except at dimension {', '.join(map(str, below))}"
        yield (
            f"Least squares, {variant}: {solved:,} of {found.runs:,} runs meet every control exactly; the reduction is "
            f"at least the published one {verdict} ({_reductions(lines)} at 1 to 5 dimensions), and "
            f"{'never negative' if not negative else 'negative at ' + ', '.join(map(str, negative))}."
        )
    averages = {
        "of the mean variance": [found.theory[size].reduction for size in _SHOWN],
        "in a table, the mean over tables": [found.theory[size].by_table for size in _SHOWN],
        "the same by cell": [found.theory[size].by_cell for size in _SHOWN],
        "within a run": [found.theory[size].within_run for size in _SHOWN],
        "at the mean number of categories": [at_mean_cardinality(size) for size in _SHOWN],
    }
    words = "; ".join(f"{what} {', '.join(f'{share:.1%}' for share in shares)}" for what, shares in averages.items())
    yield f"Theory for two-sided noise, 1 − (1 + Σ(k − 1))/Πk remaining, at 1 to 5 dimensions: {words}."


def _at_least(line: Line) -> bool:
    return line.reduction is not None and line.reduction >= TABLE_4[line.dimension][2]


def _raking(found: Reproduction) -> Iterator[str]:
    for variant in VARIANTS:
        number = found.converged("raking", variant)
        raised = [
            str(line.dimension)
            for line in found.lines("raking", variant)
            if line.reduction is not None and line.reduction < 0
        ]
        effect = f"; it raises the variance at {', '.join(raised)} dimensions" if raised else ""
        yield (
            f"Raking, {variant}: {number:,} of {found.runs:,} runs come within {TOLERANCE:g} of a record in ten cycles "
            f"(published: {CONVERGED} of {RUNS:,}, tolerance unknown){effect}."
        )
        if number < found.runs:
            yield (
                f"Over all {found.runs:,} runs, those that did not converge as they were when they came nearest, "
                f"raking takes away {_reductions(found.lines('raking', variant, runs='all'))} at 1 to 5 dimensions."
            )


def _table_4(found: Reproduction) -> Iterator[str]:
    """Which variance Table 4 is: the one over all cells in a run fits, and only with noise on both sides."""
    for variant in VARIANTS:
        fits = found.lines("raking", variant, "within_run")
        ratios = [
            line.plain / TABLE_4[line.dimension][0] for line in fits if line.plain is not None and line.dimension <= 8
        ]
        if ratios:
            yield (
                f"Table 4 without calibration, {variant}: the variance over all cells of a dimension within a run "
                f"about their mean, in runs that raking converged in, is {min(ratios):.2f} to {max(ratios):.2f} times "
                "the printed one at 1 to 8 dimensions."
            )
    variance, expected = found.evaluated.variance, found.theory[1].before
    yield (
        f"A cell of a one-way table has a noise variance of {expected:.1f} over runs, not 6.592. Printed 0.002 for the "
        f"cube itself can only be two-sided noise ({variance:.4f}); without negative cells it would be half "
        "of that, 0.001."
    )


def _bias(found: Reproduction) -> Iterator[str]:
    lines = found.lines("least-squares", "no-negative", "mean_square")
    variances = found.lines("least-squares", "no-negative")
    square, variance = lines[0].plain, variances[0].plain
    if square is not None and variance is not None:
        yield (
            f"Keeping cells from going negative halves the variance of one-way tables to {variance:.1f}, but their "
            f"mean square is {square:.1f}: every empty cell is perturbed upwards only."
        )


def _bound(found: Reproduction) -> Iterator[str]:
    free = found.lines("least-squares", "two-sided", "mean_square")
    pairs = [
        f"{one.calibrated:.3f} instead of {other.calibrated:.3f} at {one.dimension}"
        for one, other in zip(found.bounded("two-sided"), free, strict=True)
        if one.dimension in (2, 4, 10) and one.calibrated is not None and other.calibrated is not None
    ]
    if pairs:
        yield (
            "Least squares without negative cells has a mean square of "
            + ", ".join(pairs)
            + " dimensions: nearly all cells of this cube are empty, so the bound tells more than it spoils. "
            "It is biased in single cells."
        )


def _levels(found: Reproduction) -> Iterator[str]:
    """Where several levels at the same budget are better, and what to prefer for which tables."""
    levels = found.levels
    for epsilon, chosen in levels.designs.items():
        for records in SURVEYS:
            better = levels.better(epsilon, records)
            where = f"at {', '.join(map(str, better))} dimensions" if better else "nowhere"
            yield (
                f"Several levels at the same ε = {float(epsilon):g}, δ = {levels.delta:.2g} ({float(chosen.share):.0%} "
                f"for {chosen.name}), whole numbers and none negative, {records:,} records: a smaller error than the "
                f"signed bottom-up cube {where} ({levels.runs} runs)."
            )
        advice = []
        for workload in WORKLOADS:
            best = levels.workloads[epsilon, workload][0]
            share = "" if best.is_bottom_up else f" ({float(best.share):.0%})"
            advice.append(f"{workload}: {best.name}{share}")
        yield f"Recommended by workload at ε = {float(epsilon):g}: {'; '.join(advice)}."


def _reductions(lines: list[Line]) -> str:
    return ", ".join("–" if line.reduction is None else f"{line.reduction:.1%}" for line in lines[:5])
