"""The claims about registers with headcounts."""

from bench.registers.data import COUNTIES, ESTABLISHMENTS, INDUSTRIES, KINDS
from bench.shared.report import Claim, Results, Section, another_size, judged

_LIMIT = 5.0


def registers_section(results: Results) -> Section:
    """Every claim about registers, of a run whose results passed the gate."""
    lines = []
    for kind, words in KINDS.items():
        size = f"{words} ({results['bytes'][kind] / 1e6:,.0f} MB)"
        ours, floor = f"{kind} run", f"{kind} floor"
        lines.append(judged(size, results["seconds"][ours], results["seconds"][floor], _LIMIT))
        lines.append(judged("…processor time", results["processor"][ours], results["processor"][floor], _LIMIT))
        peaks = [results["peak_bytes"][name] / 1e9 for name in (ours, floor)]
        lines.append(Claim(what="…peak memory", figure=f"{peaks[0]:.2f} GB; the floor {peaks[1]:.2f} GB"))
    rounds = len(results["seconds"]["text floor"])
    return Section(
        name="registers",
        heading=f"{results['establishments']:,} establishments, {results['jobs']:,} jobs of women and men, two tables",
        lines=tuple(lines),
        notes=(
            *another_size(results["establishments"], ESTABLISHMENTS, "establishments"),
            f"Ratios of medians of {rounds} rounds, with the fastest and the slowest, each in a fresh process whose "
            f"imports are not counted. One table by {COUNTIES:,} counties and {INDUSTRIES} industries, one by county "
            "and sex. The floor is a DuckDB script that refuses repeated keys, missing and negative values, and counts "
            "both tables with the largest establishment of every cell. sfumato had never seen the files: it reads what "
            "they are known by, validates, charges, counts, protects and writes.",
            "Every result was checked: the floor's cells equal the true ones, and the published values are as far from "
            "them as the noise says.",
        ),
    )
