"""The claims about withheld cells."""

from collections.abc import Iterator
from typing import Any

from bench.shared.report import Claim, Grid, Results, Section

_FASTER, _MINUTES = 10, 10
_ASKED = {
    "not exactly": "no sensitive cell is told exactly",
    "single contributors": "the same, also to who contributes alone to another cell",
    "by the rule": "bounds as far off as the rule asks for",
}


def exact_section(results: Results) -> Section:
    """Every claim about patterns, and what both tools withhold."""
    tables = results["tables"]
    versions = {table["gauss"].get("version") for table in tables.values()} - {None}
    reasons = {table["gauss"].get("reason") for table in tables.values()} - {None}
    peer = f"GaussSuppression {versions.pop()} for R" if versions else f"GaussSuppression is left out: {reasons.pop()}"
    return Section(
        name="exact",
        heading="Withheld cells beside GaussSuppression, on the same tables",
        lines=(*(line for name, table in tables.items() for line in _lines(name, table)), _largest(results["largest"])),
        grids=tuple(_grid(name, table) for name, table in tables.items()),
        notes=(
            f"{peer}. Made-up employers with amounts, by place in district and by industry in sector, with all totals; "
            "a cell is sensitive if one employer has more than 75 %. CPU seconds of one core, from the records to the "
            "pattern. All patterns are audited by our proof; theirs is made to hold against single contributors, so "
            "the comparison is with ours that does too. Sensitive cells with a contributor who learns them are counted "
            "after a plus.",
        ),
    )


def _lines(name: str, table: dict[str, Any]) -> Iterator[Claim]:
    for asked, words in _ASKED.items():
        ours = table[asked]
        yield Claim(
            what=f"{name}: sensitive cells without protection ({words})",
            figure=str(ours["unprotected"]),
            target="0",
            met=ours["unprotected"] == 0,
        )
    ours, theirs = table["single contributors"], table["gauss"]
    if "reason" in theirs:
        return
    for what in ("withheld", "value"):
        yield Claim(
            what=f"…{'cells' if what == 'withheld' else 'value'} withheld",
            figure=f"{ours[what]:,}; theirs {theirs[what]:,}",
            target="no more",
            met=ours[what] <= theirs[what],
        )
    both = ours["seconds"] + ours["proof_seconds"]
    yield Claim(
        what="…how many times as quick, proof included",
        figure=f"{theirs['seconds'] / both:.1f} ({both:.2f} s, {ours['proof_seconds']:.2f} s of it proof; "
        f"{theirs['seconds']:.1f} s)",
        target=f"≥ {_FASTER}",
        met=theirs["seconds"] >= _FASTER * both,
    )


def _largest(told: dict[str, Any]) -> Claim:
    minutes = (told["seconds"] + told["proof_seconds"]) / 60
    return Claim(
        what=f"{told['cells']:,} cells: pattern and proof",
        figure=f"{minutes:.1f} minutes, {told['megabytes']:,} MB, {told['unprotected']} without protection",
        target=f"≤ {_MINUTES} minutes",
        met=minutes <= _MINUTES and told["unprotected"] == 0,
    )


def _grid(name: str, table: dict[str, Any]) -> Grid:
    rows = []
    for asked, words in _ASKED.items():
        ours, theirs = table[asked], table["gauss"]
        rows.append(
            (
                f"ours: {words}",
                f"{ours['withheld']:,}",
                f"{ours['value']:,}",
                f"{ours['unprotected']} + {ours['pairs']}",
            )
        )
        if "reason" not in theirs:
            repaired = theirs[f"repaired, {asked}"]
            rows.append(
                (
                    f"theirs: {words}",
                    f"{theirs['withheld']:,}",
                    f"{theirs['value']:,}",
                    f"{theirs[f'unprotected, {asked}']} + {theirs[f'pairs, {asked}']}",
                )
            )
            rows.append(("theirs, repaired by ours", f"{repaired['withheld']:,}", f"{repaired['value']:,}", "0"))
    heading = (
        f"{name}: {table['cells']:,} cells, {table['listed']:,} with anybody in them, {table['sensitive']:,} sensitive"
    )
    return Grid(heading=heading, columns=("pattern", "withheld", "value", "unprotected"), rows=tuple(rows))
