"""The claims about withheld cells."""

from collections.abc import Iterator
from typing import Any

from bench.exact.others import GAUSS, INTERVALS, OTHERS
from bench.shared.report import Claim, Grid, Results, Section

_FASTER, _PROOF, _MINUTES = 10, 2, 10
_LARGE = 5_000
"""Cells of a table from which on the target of speed holds."""
_QUESTIONS = ("not exactly", "by the rule")
_SAME = {other.name: other.promise for other in OTHERS if other.name in (GAUSS, INTERVALS)}
"""What each of the other tool's patterns is compared with: the promise of ours that has all of its promises."""


def exact_section(results: Results) -> Section:
    """Every claim about patterns, and what all tools withhold."""
    tables = results["tables"]
    return Section(
        name="exact",
        heading="Withheld cells beside GaussSuppression and sdcTable, on the same tables",
        lines=(*(line for name, table in tables.items() for line in _lines(name, table)), _largest(results["largest"])),
        grids=tuple(_grid(name, table) for name, table in tables.items()),
        notes=(*results.get("notes", ()), _peers(tables)),
    )


def _peers(tables: dict[str, Any]) -> str:
    every = [(name, told) for table in tables.values() for name, told in table["patterns"].items()]
    versions = {f"{name.split(',')[0]} {told['version']}" for name, told in every if "version" in told}
    missing = "R is not installed" if any(told.get("reason") == "R is not installed" for _, told in every) else ""
    return f"Others: {', '.join(sorted(versions)) or 'none'} in R. {missing}".strip()


def _lines(name: str, table: dict[str, Any]) -> Iterator[Claim]:
    patterns = table["patterns"]
    for question in _QUESTIONS:
        ours = patterns[f"ours, {question}, single contributors"][question]
        bad = ours["unprotected"] + ours["pairs"]
        yield Claim(
            what=f"{name}: sensitive cells without protection in ours, {question}, also against single contributors",
            figure=f"{_open(ours)} of {table['sensitive']:,}",
            target="0",
            met=bad == 0,
        )
    for other, promise in _SAME.items():
        theirs, ours = patterns[other], patterns[f"ours, {promise}"]
        if "withheld" not in theirs:
            continue
        for what, words in (("withheld", "cells"), ("value", "value")):
            yield Claim(
                what=f"…{words} withheld in ours, {promise}; in {other}",
                figure=f"{ours[what]:,}; {theirs[what]:,}",
                target="no more",
                met=ours[what] <= theirs[what],
            )
            repaired = theirs["repaired"]
            if repaired["withheld"] > theirs["withheld"]:
                yield Claim(
                    what=f"…{words} withheld in ours; in that of {other} with what it lacks of the same promise",
                    figure=f"{ours[what]:,}; {repaired[what]:,}",
                    target="no more",
                    met=ours[what] <= repaired[what],
                )
        both = ours["seconds"] + ours["proof_seconds"]
        large = table["cells"] >= _LARGE
        yield Claim(
            what=f"…times as quick as {other}, proof included",
            figure=f"{theirs['seconds'] / both:.1f} ({both:.2f} s; {theirs['seconds']:.1f} s)",
            target=f"≥ {_FASTER}" if large else "—",
            met=theirs["seconds"] >= _FASTER * both if large else None,
        )
    theirs, ours = patterns[GAUSS], patterns[f"ours, {_SAME[GAUSS]}"]
    if "seconds" in theirs:
        yield Claim(
            what=f"…audit of our pattern from nothing, in times of what {GAUSS} takes",
            figure=f"{ours['audit_seconds'] / theirs['seconds']:.2f} ({ours['audit_seconds']:.1f} s)",
            target=f"≤ {_PROOF}",
            met=ours["audit_seconds"] <= _PROOF * theirs["seconds"],
        )


def _largest(told: dict[str, Any]) -> Claim:
    minutes = (told["seconds"] + told["proof_seconds"]) / 60
    return Claim(
        what=f"{told['cells']:,} cells, {told['listed']:,} with anybody in them: pattern and proof",
        figure=f"{minutes:.1f} minutes, {told['peak_bytes'] / 1e6:,.0f} MB, {told.get('left', '?')} without protection",
        target=f"≤ {_MINUTES} minutes, 0",
        met=minutes <= _MINUTES and told["left"] == 0 if "left" in told else None,
    )


def _grid(name: str, table: dict[str, Any]) -> Grid:
    rows = []
    for who, told in table["patterns"].items():
        if "withheld" not in told:
            rows.append((who, told["reason"], "", "", "", ""))
            continue
        seconds = told["seconds"] + told.get("proof_seconds", 0.0)
        rows.append(
            (
                who,
                f"{told['withheld']:,}",
                f"{told['value']:,}",
                *(_open(told[question]) for question in _QUESTIONS),
                f"{seconds:.2f} ({told['elapsed']:.2f})",
            )
        )
        if told.get("repaired", told)["withheld"] > told["withheld"]:
            more = told["repaired"]
            rows.append((f"{who}, repaired by ours", f"{more['withheld']:,}", f"{more['value']:,}", "", "", ""))
    heading = (
        f"{name}: {table['cells']:,} cells, {table['listed']:,} with anybody in them, {table['sensitive']:,} sensitive"
    )
    columns = ("pattern", "withheld", "value", *(f"open, {question}" for question in _QUESTIONS), "seconds")
    return Grid(heading=heading, columns=columns, rows=tuple(rows))


def _open(told: dict[str, Any]) -> str:
    """To everybody, and after a plus to some single contributor; "at most" where an audit ended early."""
    return f"{'at most ' if told['stopped'] else ''}{told['unprotected']} + {told['pairs']}"
