"""A federal workforce under noise infusion: whole `sfumato run` commands, their seconds and their memory."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.shared.gate import WrongResultError
from bench.shared.processes import SFUMATO, T, Tell, in_turn, seconds_of, told_by
from bench.shared.release import forget
from bench.shared.report import Results
from sfumato.bundle.manifest import read_manifest
from sfumato.checking import check
from sfumato.keys import new_key
from sfumato.release import Release, load

PERSONS = 2_170_000
"""The size that the targets are about: 2.63 million jobs, 49 million job-quarters."""
QUARTERS = 52
_LEAST, _MOST = Fraction("1.1"), Fraction("1.25")
"""Known here, unlike in any real key, so that results can be checked."""
_ROUNDS = 3
_LARGE = 10
"""Smaller cells are suppressed or mostly rounding."""

_GRAPH = """\
[[table]]
name = "graph"
graph = { between = "employers", attribute = "state", weight = "edges" }
protect = { method = "noise-infusion", edges = "twelve-characters" }
"""
PANEL = """\
[[table]]
name = "panel"
indicators = "all"
by = ["state", "agency", "quarter"]
protect = { method = "noise-infusion" }
"""
_RELEASE = """\
[release]
title = "A federal workforce"
period = "2010-2022"
key = "sfumato.key"
ledger = "{name}.sqlite"
bundle = "{name}.bundle"

[data]
jobs = {{ path = "{jobs}", worker = "worker", workplace = "employer"{panel} }}
workplaces = {{ path = "employers.parquet", key = "employer" }}
public = ["state", "agency"]

[data.attributes]
state = {{ codelist = "codelists/state.csv" }}
agency = {{ codelist = "codelists/agency.csv" }}

{table}
"""
_EDGES = """
    with pairs as (
        select distinct a.employer as one, b.employer as other
        from read_parquet('{folder}/jobs.parquet') a join read_parquet('{folder}/jobs.parquet') b
        on a.worker = b.worker and a.employer < b.employer
    )
    select least(e.state, f.state) as one, greatest(e.state, f.state) as other, count(*) as counted
    from pairs join read_parquet('{folder}/employers.parquet') e on one = e.employer
    join read_parquet('{folder}/employers.parquet') f on other = f.employer group by all
"""
_PUBLISHED_EDGES = """
    select least(first_state, second_state) as one, greatest(first_state, second_state) as other, value
    from read_parquet('{folder}/graph.bundle/tables/graph.parquet')
"""
_JOBS = """
    select state, agency, quarter, count(*) as counted
    from read_parquet('{folder}/histories.parquet') join read_parquet('{folder}/employers.parquet') using (employer)
    where earnings > 0 group by all
"""
_PUBLISHED_JOBS = """
    select state, agency, quarter, value from read_parquet('{folder}/panel.bundle/tables/panel.parquet')
    where indicator = 'employment'
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A release, and the queries that find its true values and its published ones."""

    name: str
    label: str
    file: Path
    by: tuple[str, ...]
    true: str
    published: str

    def prepare(self) -> Release:
        """Forget what earlier runs left, so that everything is validated, counted, protected and written anew."""
        release = load(self.file)
        forget(release)
        return release

    def check(self, release: Release) -> int:
        """Refuse a bundle that is not whole, or whose values are not the true ones times factors; its rows."""
        read_manifest(release.bundle)
        with duckdb.connect() as connection:
            both = connection.execute(
                f"select counted, value from ({self._query(self.true)}) "
                f"left join ({self._query(self.published)}) using ({', '.join(self.by)})"
            ).to_arrow_table()
        (planned,) = (table for table in check(release, data=False).plan.tables if table.name == self.name)
        bases = planned.roundings
        assert bases is not None
        _check_factors(self.label, both, base=bases[0])
        return int(pq.read_metadata(release.bundle / "tables" / f"{self.name}.parquet").num_rows)

    def _query(self, text: str) -> str:
        return text.format(folder=self.file.parent)


def measure_infusion(folder: Path, *, persons: int, tell: Tell) -> Results:
    """Everything about the workforce; a wrong result ends it."""
    tell("making a workforce")
    workforce = folder / "workforce"
    made = seconds_of(SFUMATO, "economy", "federal", workforce, "--persons", persons, "--quarters", QUARTERS)
    cases = write_cases(workforce)
    rows = {}

    def run(case: Case, work: Callable[..., T], *arguments: object) -> T:
        release = case.prepare()
        found = work(*arguments, case.file)
        rows[case.name] = case.check(release)
        return found

    turns = {case.name: partial(run, case, seconds_of, SFUMATO, "run") for case in cases}
    seconds = in_turn(turns, repeat=_ROUNDS, tell=tell, what="whole commands")
    tell("peak memory")
    peak = {case.name: run(case, told_by, "shared.child", "release")["peak_bytes"] for case in cases}
    return {
        "persons": persons,
        "jobs": pq.read_metadata(workforce / "jobs.parquet").num_rows,
        "job_quarters": pq.read_metadata(workforce / "histories.parquet").num_rows,
        "labels": {case.name: case.label for case in cases},
        "rows": rows,
        "workforce_seconds": made,
        "command_seconds": seconds,
        "peak_bytes": peak,
    }


def write_cases(folder: Path) -> tuple[Case, ...]:
    new_key(folder / "sfumato.key", a=_LEAST, b=_MOST)
    panel = ', period = "quarter", first = "2010-Q1", last = "2022-Q4", earnings = "earnings"'
    graph = _RELEASE.format(name="graph", jobs="jobs.parquet", panel="", table=_GRAPH)
    indicators = _RELEASE.format(name="panel", jobs="histories.parquet", panel=panel, table=PANEL)
    for name, text in (("graph", graph), ("panel", indicators)):
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return (
        Case(
            name="graph",
            label="employer projection and the protected state-to-state table",
            file=folder / "graph.toml",
            by=("one", "other"),
            true=_EDGES,
            published=_PUBLISHED_EDGES,
        ),
        Case(
            name="panel",
            label="all indicators by state, agency and quarter",
            file=folder / "panel.toml",
            by=("state", "agency", "quarter"),
            true=_JOBS,
            published=_PUBLISHED_JOBS,
        ),
    )


def _check_factors(label: str, both: pa.Table, *, base: int) -> None:
    """A sum of factors lies between the least and the greatest.

    Sums are rounded up or down by chance, and indicators so that they agree: together less than two bases.
    """
    true = both["counted"].to_numpy()
    values = both["value"].to_numpy(zero_copy_only=False).astype(np.float64)
    shown = ~np.isnan(values)
    large = shown & (true >= _LARGE)
    ratio, rounding = values[large] / true[large], 2 * base / true[large]
    inside = (ratio >= float(2 - _MOST) - rounding) & (ratio <= float(_MOST) + rounding)
    if not large.any() or true[shown].sum() < true.sum() / 2:
        raise WrongResultError(f"{label}: less than half of what there is was published")
    if not inside.all() or np.abs(ratio - 1).max() < float(_LEAST - 1) / 2:
        raise WrongResultError(f"{label}: the published values are not the true ones times factors")
