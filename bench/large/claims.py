"""The claims about a table that is larger than memory."""

from bench.large.data import CELLS, MEMORY
from bench.shared.report import Claim, Results, Section, another_size, limited

_LIMIT = 4
_LABELS = {
    "formal": "Smooth Pareto, 128 worker cells drawn together",
    "keyed": "noise infusion, factors of a key",
}
_STEPS = {
    "validate": "validating the data for the first time",
    "protect": "counting, protecting and keeping the answer",
    "publish": "publishing: error figures, Parquet, digests",
}


def large_section(results: Results) -> Section:
    """Every claim about large tables, of a run whose results passed the gate."""
    compared = sum(run["compared"] for run in results["runs"].values())
    return Section(
        name="large",
        heading=f"{results['cells']:,} cells in parts, from {results['jobs']:,} jobs",
        lines=tuple(line for name, run in results["runs"].items() for line in _lines(results["cells"], name, run)),
        notes=(
            *another_size(min(results["cells"], CELLS), CELLS, "cells"),
            f"Each release once, in a fresh process, with `memory = {MEMORY}` for DuckDB; the peak is the whole "
            "process's. The files are in the page cache.",
            "Every result was checked: over all files, each cell of the register is there once, and no other. The "
            f"values of a sample of files, {compared:,} cells of both releases, were compared with the true table: "
            "with Smooth Pareto the errors are those of the noise, in size, in sign and weighted by the true counts, "
            "within 4.5 standard errors and what the largest block adds; with noise infusion every value is one that "
            "the factors can give, and the errors are theirs on average.",
        ),
    )


def _lines(cells: int, name: str, run: Results) -> list[Claim]:
    peak, seconds = run["peak_bytes"] / 1e9, run["seconds"]
    whole = sum(seconds.values())
    pace = f"{cells / whole / 1e6:.1f} million cells a second"
    return [
        limited(f"Peak memory: {_LABELS[name]}", peak, f"{peak:.2f} GB", _LIMIT, " GB"),
        Claim(
            what=f"…whole run, {run['parts']} files of {run['bytes'] / 1e9:.2f} GB together",
            figure=f"{whole:.0f} s: {pace}",
        ),
        *(Claim(what=f"……{words}", figure=f"{seconds[step]:.0f} s") for step, words in _STEPS.items()),
    ]
