"""The claims about a federal workforce under noise infusion."""

from statistics import median

from bench.panel.measure import PERSONS
from bench.shared.report import Claim, Results, Section, another_size, limited, range_of

_SECONDS = {"graph": 20, "panel": 120}
_GIGABYTES = {"graph": 2}


def infusion_section(results: Results) -> Section:
    """Every claim about the workforce, of a run whose results passed the gate."""
    rounds = len(results["command_seconds"]["graph"])
    return Section(
        name="infusion",
        heading=f"{results['jobs']:,} jobs and {results['job_quarters']:,} job-quarters of a federal workforce",
        lines=tuple(_lines(results)),
        notes=(
            *another_size(results["persons"], PERSONS, "persons"),
            f"Whole `sfumato run` commands, interpreter start and first validation included: medians of {rounds} runs "
            "in turn, with the fastest and the slowest. Peak memory is that of another such run.",
            "Every result was checked against an independent count by DuckDB: published values are the true ones times "
            "factors within the ends of the key.",
        ),
    )


def _lines(results: Results) -> list[Claim]:
    lines = []
    for name, seconds in results["command_seconds"].items():
        what = f"{results['labels'][name][0].upper()}{results['labels'][name][1:]} ({results['rows'][name]:,} values)"
        lines.append(limited(what, median(seconds), range_of(seconds), _SECONDS[name], " s"))
        peak = results["peak_bytes"][name] / 1e9
        lines.append(limited("…peak memory", peak, f"{peak:.2f} GB", _GIGABYTES.get(name), " GB"))
    made = results["workforce_seconds"]
    return [*lines, Claim(what="`sfumato economy federal`, 52 quarters", figure=f"{made:.1f} s")]
