"""The claims about reading texts."""

from bench.jobs.cases import JOBS
from bench.shared.report import Claim, Results, Section, another_size, judged

_LIMIT = 1.5
_WORDS = {
    "keys": "CSV of keys and earnings, all whole numbers",
    "codes": "CSV of keys, codes with leading zeros and numbers with decimals",
}


def files_section(results: Results) -> Section:
    """Every claim about reading texts, of a run whose results passed the gate."""
    seconds, commands = results["seconds"], results["command_seconds"]
    lines = [
        judged(
            f"{words} ({results['bytes'][name] / 1e6:,.0f} MB)",
            seconds[f"{name} read"],
            seconds[f"{name} floor"],
            _LIMIT,
        )
        for name, words in _WORDS.items()
    ]
    whole = f"{commands['csv']:.1f} s, and {commands['parquet']:.1f} s with Parquet"
    return Section(
        name="files",
        heading=f"{results['jobs']:,} jobs as a CSV file",
        lines=(*lines, Claim(what="`sfumato check`, the whole command, with jobs as CSV", figure=whole)),
        notes=(
            *another_size(results["jobs"], JOBS, "jobs"),
            "The floor is DuckDB's own `CREATE TABLE … AS FROM read_csv(…)`, which guesses types and reads 007 as 7. "
            "sfumato keeps every sign, checks it, and writes Parquet; what was read was compared with the text, value "
            "for value.",
        ),
    )
