"""Workforce indicators with a guarantee beside those with permanent factors: whole commands, in turn."""

from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq

from bench.panel.measure import PANEL, PERSONS, QUARTERS, Case, write_cases
from bench.shared.gate import WrongResultError
from bench.shared.processes import SFUMATO, Tell, in_turn, seconds_of, told_by
from bench.shared.release import forget
from bench.shared.report import Claim, Results, Section, another_size, judged, limited, range_of
from sfumato.bundle.manifest import read_manifest
from sfumato.release import Release, load

_KEYED, _FORMAL = "panel", "formal"
_LABELS = {_KEYED: "with permanent factors, without a guarantee", _FORMAL: "with a guarantee, errors and intervals"}
_EPSILON = 4
"""What each quarter spends."""
_ROUNDS = 3
_MOST_TIMES = 1.5
"""How much longer indicators with a guarantee may take."""
_COVERED = 0.88
"""How often intervals hold the true number, at the least."""
_TRUE = """
    select state, agency, quarter, count(*) as counted, sum(least(earnings, 60000)) as paid
    from read_parquet('{folder}/histories.parquet') join read_parquet('{folder}/employers.parquet') using (employer)
    where earnings > 0 group by all
"""
_PUBLISHED = """
    pivot (
        select state, agency, quarter, indicator, value, low, high
        from read_parquet('{folder}/formal.bundle/tables/formal.parquet') where establishments > 0
    ) on indicator using first(value) as value, first(low) as low, first(high) as high group by state, agency, quarter
"""


def measure_indicators(folder: Path, *, persons: int, tell: Tell) -> Results:
    """Both releases of one workforce; a wrong result ends it."""
    tell("making a workforce")
    workforce = folder / "workforce"
    seconds_of(SFUMATO, "economy", "federal", workforce, "--persons", persons, "--quarters", QUARTERS)
    (keyed,) = (case for case in write_cases(workforce) if case.name == _KEYED)
    formal = _write_formal(workforce, keyed)
    rows: dict[str, int] = {}

    def run(name: str) -> float:
        release = _prepared(keyed, formal, name)
        found = seconds_of(SFUMATO, "run", keyed.file if name == _KEYED else formal)
        rows[name] = keyed.check(release) if name == _KEYED else _check(workforce, release)
        return found

    def peak(name: str) -> int:
        _prepared(keyed, formal, name)
        told = told_by("shared.child", "release", keyed.file if name == _KEYED else formal)
        return int(told["peak_bytes"])

    turns = {name: partial(run, name) for name in _LABELS}
    seconds = in_turn(turns, repeat=_ROUNDS, tell=tell, what="whole commands")
    tell("peak memory")
    return {
        "persons": persons,
        "job_quarters": pq.read_metadata(workforce / "histories.parquet").num_rows,
        "epsilon": _EPSILON,
        "rows": rows,
        "command_seconds": seconds,
        "peak_bytes": {name: peak(name) for name in _LABELS},
    }


def indicators_section(results: Results) -> Section:
    """Every claim about indicators with a guarantee, of a run whose results passed the gate."""
    seconds, peak = results["command_seconds"], results["peak_bytes"]
    lines = [
        judged("All indicators, with a guarantee over with factors", seconds[_FORMAL], seconds[_KEYED], _MOST_TIMES),
        *(
            limited(f"…peak memory, {label}", peak[name] / 1e9, f"{peak[name] / 1e9:.2f} GB", None, " GB")
            for name, label in _LABELS.items()
        ),
        *(
            Claim(what=f"Indicators {label} ({results['rows'][name]:,} values)", figure=range_of(seconds[name]))
            for name, label in _LABELS.items()
        ),
    ]
    return Section(
        name="indicators",
        heading=f"All indicators by state, agency and quarter of {results['job_quarters']:,} job-quarters",
        lines=tuple(lines),
        notes=(
            *another_size(results["persons"], PERSONS, "persons"),
            f"Whole `sfumato run` commands in turn, interpreter start and first validation included, epsilon = "
            f"{results['epsilon']} in each quarter. Peak memory is that of another such run.",
            "Every result was checked against an independent count by DuckDB: intervals hold the true number of jobs "
            f"and the true payroll in at least {_COVERED:.0%} of cells, errors of all cells cancel out, and indicators "
            "that follow from others do so in every cell.",
        ),
    )


def _prepared(keyed: Case, formal: Path, name: str) -> Release:
    release = load(keyed.file if name == _KEYED else formal)
    forget(release)
    return release


def _write_formal(folder: Path, keyed: Case) -> Path:
    """The release of the keyed table with a budget instead of a key."""
    budget = f'budget = {{ alpha = 0.1, epsilon = {_EPSILON * QUARTERS}, totals = ["earnings"] }}'
    protect = f'protect = {{ method = "smooth-pareto", epsilon = {_EPSILON * QUARTERS} }}'
    measure = '[data.measures]\nearnings = { unit = "dollars", cap = 60000 }\n\n'
    text = keyed.file.read_text(encoding="utf-8").replace(PANEL, "{table}")
    table = measure + PANEL.replace('name = "panel"', f'name = "{_FORMAL}"')
    table = table.replace('protect = { method = "noise-infusion" }', protect)
    text = text.replace("{table}", table).replace('key = "sfumato.key"', budget).replace("panel.", f"{_FORMAL}.")
    (folder / f"{_FORMAL}.toml").write_text(text, encoding="utf-8")
    return folder / f"{_FORMAL}.toml"


def _numbers(both: dict[str, Any]) -> list[str]:
    return [name for name in both if name not in ("state", "agency", "quarter")]


def _check(folder: Path, release: Release) -> int:
    """Refuse a bundle that is not whole, or whose values are not the true ones with noise; its rows."""
    read_manifest(release.bundle)
    with duckdb.connect() as connection:
        both = connection.execute(
            f"select * from ({_PUBLISHED.format(folder=folder)}) left join ({_TRUE.format(folder=folder)}) "
            "using (state, agency, quarter)"
        ).fetchnumpy()
    found = {name: np.ma.filled(np.ma.asarray(both[name], dtype=np.float64), np.nan) for name in _numbers(both)}
    for code, counted in (("employment", "counted"), ("payroll", "paid")):
        value, low, high = (found[f"{code}_{figure}"] for figure in ("value", "low", "high"))
        true = np.nan_to_num(found[counted])
        holds, off = (low <= true) & ~(high < true), value - true
        if holds.mean() < _COVERED or abs(off.mean()) > 5 * off.std() / np.sqrt(len(off)):
            raise WrongResultError(f"indicators: {code} is not the true number with noise")
    inner = ~np.isnan(found["full_quarter_value"] + found["recalls_value"])
    one = {name.removesuffix("_value"): column[inner] for name, column in found.items() if name.endswith("_value")}
    net = one["end"] - one["beginning"]
    follow = (one["accessions"] - one["separations"] == net) & (one["job_creation"] - one["job_destruction"] == net)
    if not inner.any() or not follow.all():
        raise WrongResultError("indicators: those that follow from others do not")
    return int(pq.read_metadata(release.bundle / "tables" / f"{_FORMAL}.parquet").num_rows)
