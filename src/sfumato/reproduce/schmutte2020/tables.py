"""The tables of the reproduction as rows of text, for the page and for the screen."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.privacy.guarantee import plain
from sfumato.reproduce.schmutte2020.methods_by_size import METHODS, ErrorOfMethod
from sfumato.reproduce.schmutte2020.percentiles import BINS, IMPROVED, PLAIN
from sfumato.reproduce.schmutte2020.reproduction import Reproduction


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """A heading, and rows whose columns after the first one are numbers."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def text_tables(found: Reproduction) -> Iterator[TextTable]:
    """Every table, in the order of the page."""
    yield TextTable(
        title="Tails: the bottom and the top tenth of predictions at the 25th percentile, ε = 8",
        heads=("published by", "found", "right of those named", "groups published"),
        rows=tuple(
            (line.protection, f"{line.found:.1%}", f"{line.right:.1%}", f"{line.published:.1%}")
            for line in found.tails.classified
        ),
    )
    yield TextTable(
        title="Mean error of a prediction in ranks, ε = 8 for everything published of a group",
        heads=("children in the group", *METHODS, "the mean of all", "recommended"),
        rows=tuple(
            (
                size,
                *(_error(found.methods.of(method, size)) for method in METHODS),
                f"{found.methods.guesses[size]:.2f}",
                found.methods.recommended(size) or "none",
            )
            for size in found.methods.size_classes
        ),
    )
    curves = list(dict.fromkeys(line.curve for line in found.percentiles.lines))
    yield TextTable(
        title=f"Mean error of percentiles, ε = 1.5 a cell, with {BINS[0]} / {BINS[1]} bins",
        heads=("graduates in the cell", *curves, "best", f"{IMPROVED[0]} against {PLAIN[0]}"),
        rows=tuple(_percentiles(found, size, curves) for size in found.percentiles.size_classes),
    )
    yield TextTable(
        title="The budget of an employee report, year by year",
        heads=("years since leaving", "ε employment", "ε earnings", "both"),
        rows=tuple(_budget(found)),
    )
    yield TextTable(
        title="Cells of the report by absolute percentage difference",
        heads=("statistic", "cells", *dict.fromkeys(f"within {d.threshold:.0%}" for d in found.report.differences)),
        rows=tuple(_differences(found)),
    )


def _error(line: ErrorOfMethod) -> str:
    if line.error is None:
        return "all withheld"
    return f"{line.error:.2f}" + (f" ({line.withheld:.0%} withheld)" if line.withheld > 0.005 else "")


def _percentiles(found: Reproduction, size: str, curves: Sequence[str]) -> tuple[str, ...]:
    lines, best = found.percentiles, found.percentiles.best(size)
    shown = (" / ".join(f"{lines.of(curve, number, size).error:.2%}" for number in BINS) for curve in curves)
    return size, *shown, f"{best.curve}, {best.bins}", f"{lines.improvement(size):.0%}"


def _budget(found: Reproduction) -> Iterator[tuple[str, ...]]:
    sums = dict.fromkeys(("employment", "earnings"), Fraction(0))
    for year in dict.fromkeys(line.year for line in found.report.spending):
        spent = {line.statistic: line.epsilon for line in found.report.spending if line.year == year}
        sums = {name: sums[name] + spent[name] for name in sums}
        yield year, *(plain(spent[name]) for name in sums), plain(sum(spent.values(), Fraction(0)))
    yield "in all", *map(plain, sums.values()), plain(found.report.epsilon)


def _differences(found: Reproduction) -> Iterator[tuple[str, ...]]:
    for name in dict.fromkeys(line.statistic for line in found.report.differences):
        own = [line for line in found.report.differences if line.statistic == name]
        yield name, f"{own[0].cells:,}", *(f"{line.within:.1%}" for line in own)
