"""What the lecture states, what we aimed at, and what does not hold: each with the figure that shows it."""

from collections.abc import Iterator

from sfumato.privacy.guarantee import plain
from sfumato.reproduce.finding import Finding
from sfumato.reproduce.schmutte2020.envelope import chance_beyond
from sfumato.reproduce.schmutte2020.methods_by_size import METHODS
from sfumato.reproduce.schmutte2020.percentiles import LARGE
from sfumato.reproduce.schmutte2020.published import (
    CHI_VALUES,
    EPSILON,
    LEAST_IMPROVEMENT,
    MOST_MEDIAN_ERROR,
    MOST_YEARS,
    SECTORS,
)
from sfumato.reproduce.schmutte2020.reproduction import BEYOND, Reproduction
from sfumato.reproduce.schmutte2020.tails import MOSE, REGRESSION, THRESHOLDS, suppressed


def findings(found: Reproduction) -> list[Finding]:
    """Every statement that figures can answer."""
    return [
        *_envelope(found),
        *_tails(found),
        *_methods(found),
        *_report(found),
        *_percentiles(found),
        *_attacks(found),
    ]


def errata(found: Reproduction) -> list[str]:
    """What does not hold in the lecture or in what it cites, in a sentence or two each."""
    edge = found.envelope
    (people, excess), *_ = BEYOND
    chance = chance_beyond(people, epsilon=float(EPSILON), excess=excess)
    exact = found.attacks[0]
    return [
        "The lecture gives the variance of the noise as sensitivity/ε. That is the scale of the Laplace distribution; "
        "the variance is twice its square.",
        "“Conditional on χ” MOSE does not satisfy differential privacy: one more person makes the scale χ/(nε) "
        "smaller, and in the tails of the noise that tells without limit. In a group of "
        f"{people} the log ratio exceeds ε by {excess:.0%} with a probability of {chance:.0%}, whatever ε is; in much "
        "larger groups hardly ever.",
        "The example code of Chetty and Friedman (2019) looks for the worst record at the four corners of the box. It "
        f"is elsewhere in {edge.missed_by_corners.mean():.1%} of the groups here, and χ of a class would be up to "
        f"{edge.shortfall():.0%} too small. Corners are enough in large groups only.",
        "The example code uses one draw for an estimate and its number of people, and exports the deviation of the "
        "noise. From that export alone every number of people is found, and with it every estimate. With independent "
        f"draws, and errors from published numbers only, the same attack gets {exact.successes:,} of "
        f"{exact.targets:,} numbers right here, and {exact.guessed:,} are right as they are published.",
        "The sensitivity of the logarithm of a count under a factor 1 + α is ln(1 + α), and not 1 + α: the lecture's "
        "own algorithm has it so.",
    ]


def _envelope(found: Reproduction) -> Iterator[Finding]:
    share = found.envelope.largest_share
    yield Finding(
        source="MOSE",
        what="χ/n is at least the sensitivity of every group",
        stated="is",
        ours=f"the nearest group has {share:.1%} of its line",
        holds=share <= 1,
        note=f"{len(found.envelope.people):,} groups in {len(found.envelope.chi):,} classes of state, gender and race",
    )
    people, excess = BEYOND[0]
    yield Finding(
        source="MOSE",
        what=f"given χ, ε is never exceeded by {excess:.0%} in groups of {people}",
        stated="satisfies DP guarantee",
        ours=f"exceeded in {chance_beyond(people, epsilon=float(EPSILON), excess=excess):.0%} of draws",
        holds=False,
        note="for a person at the bound of the envelope",
    )


def _tails(found: Reproduction) -> Iterator[Finding]:
    mose = found.tails.of(MOSE)
    for threshold in THRESHOLDS:
        hidden = found.tails.of(suppressed(threshold))
        yield Finding(
            source="MOSE",
            what=f"groups in a tail that are found: mose at ε = {plain(EPSILON)}, and hiding groups below {threshold}",
            stated="suppression far worse",
            ours=f"{mose.found:.1%}, {hidden.found:.1%}",
            holds=hidden.found < mose.found,
            note=f"of those named by mose {mose.right:.1%} are in the tail",
        )
    formal = found.tails.of(REGRESSION)
    yield Finding(
        source="ours",
        what=f"the same with a formal guarantee, {REGRESSION}",
        stated="",
        ours=f"{formal.found:.1%} found, {formal.right:.1%} of those named right",
        holds=None,
        note=f"{formal.published:.1%} of the groups are published",
    )


def _methods(found: Reproduction) -> Iterator[Finding]:
    for size_class in found.methods.size_classes:
        errors = [(method, found.methods.of(method, size_class)) for method in METHODS]
        yield Finding(
            source="MOSE",
            what=f"groups of {size_class}: mean error in ranks at ε = {plain(EPSILON)}, best first",
            stated="formal methods exist",
            ours=", ".join(
                f"{method} {line.error:.2f}" + (f" ({line.withheld:.0%} withheld)" if line.withheld > 0.005 else "")
                for method, line in sorted(errors, key=lambda pair: pair[1].error or float("inf"))
                if line.error is not None
            ),
            holds=None,
            note=f"recommended: {found.methods.recommended(size_class) or 'none'}",
            is_order=True,
        )


def _report(found: Reproduction) -> Iterator[Finding]:
    report = found.report
    for what, stated, ours in (
        ("sectors", SECTORS, report.sectors),
        ("years since leaving", MOST_YEARS, report.years),
        ("values of χ, by title and sector", CHI_VALUES, report.titles * report.sectors),
    ):
        yield Finding(
            source="reports",
            what=what,
            stated=f"{stated}",
            ours=f"{ours}",
            holds=None if stated != ours else True,
            note="" if stated == ours else f"here are {report.titles} titles, and χ is one upper bound for all",
        )
    yield Finding(
        source="reports",
        what="ε = Σ over years of (ε employment + ε earnings), and what is charged",
        stated="equal",
        ours=f"{plain(report.epsilon)}, {plain(report.charged)}",
        holds=report.epsilon == report.charged,
        note=f"without parallel composition over titles and sectors {plain(report.without_parallel_composition)}",
    )


def _percentiles(found: Reproduction) -> Iterator[Finding]:
    lines = found.percentiles
    yield Finding(
        source="aim",
        what="the adaptive curve is better than the plain cumulative sum, on average over sizes",
        stated=f"by at least {LEAST_IMPROVEMENT:.0%}",
        ours=f"{lines.mean_improvement():.1%}",
        holds=lines.mean_improvement() >= LEAST_IMPROVEMENT,
        note=f"{lines.mean_improvement(any_bins=True):.1%} if the plain sum had the best number of bins for each size",
    )
    yield Finding(
        source="aim",
        what=f"medians of {LARGE} graduates and more, mean error",
        stated=f"at most {MOST_MEDIAN_ERROR:.0%}",
        ours=f"{lines.median_error:.1%}",
        holds=lines.median_error <= MOST_MEDIAN_ERROR,
        note=f"{lines.median_within:.1%} of them are within {MOST_MEDIAN_ERROR:.0%}",
    )


def _attacks(found: Reproduction) -> Iterator[Finding]:
    for attack in found.attacks:
        yield Finding(
            source="ours",
            what=f"attack with the bundle alone: {attack.attack}",
            stated="none beyond chance",
            ours=f"{attack.success_rate:.1%}; {attack.baseline_rate:.1%} are exact as published",
            holds=attack.success_rate <= attack.baseline_rate + 0.005,
        )
