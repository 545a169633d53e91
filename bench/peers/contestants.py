"""The contestants: who publishes which table, what that guarantees, and how its result is checked.

There is one contest for each kind of protection that sfumato has for such tables.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.jobs.cases import BUDGET, TABLE, Case, write_release
from bench.jobs.floor import BY
from bench.peers.environments import OURS
from bench.peers.gate import check_exact, check_floor, values_of
from bench.peers.tables import KEYS, LIMIT, SHARE, Contested, contested, establishments
from bench.shared.expected import (
    Expected,
    clamped_laplace,
    discrete_laplace,
    infused,
    laplace,
    moves_of,
    perturbed,
    smooth_pareto,
    vector_pareto,
)
from bench.shared.gate import Errors, WrongResultError, check_noisy, manifest_of, table_file
from bench.shared.release import codelists, listed
from sfumato.arrays import Floats
from sfumato.checking import check
from sfumato.keys import new_key
from sfumato.release import load
from sfumato.statistics.jobs.noise_infusion import NoiseInfusion
from sfumato.statistics.jobs.smooth import SmoothPareto
from sfumato.statistics.jobs.vector import VectorPareto
from sfumato.statistics.totals.cell_keys import CellKeyTable
from sfumato.statistics.totals.perturbation import NoiseSum
from sfumato.statistics.totals.top_contributors import TopContributors

EPSILON = 2
ALPHA = Fraction("0.1")
FLOOR = "floor"
Check = Callable[[Path, Contested], Errors]
"""Refuses a wrong result of a table, and says how far a right one is from the truth."""

_ONE_JOB = f"one job, ε = {EPSILON}"
_ESTABLISHMENT = f"a whole establishment, ε = {EPSILON}"
_LEAST, _MOST = Fraction("1.1"), Fraction("1.25")
"""The ends of the factors, known here, unlike in any real key, so that results can be checked."""
_LARGEST_COUNT = 750
"""The ONS package looks up larger counts among the last 250 rows of its table."""
_RECORDS = """\
[release]
title = "Jobs as records"
period = "2025"
key = "peers.key"
ledger = "{name}.sqlite"
bundle = "{name}.bundle"

[data]
records = {{ path = "records.parquet", unit = "job" }}

[data.attributes]
{attributes}

[data.measures]
earnings = {{ unit = "dollars a year", minimum = 0 }}

[[table]]
name = "{table}"
{statistic}
by = {by}
protect = {{ method = "top-contributors", suppress = {suppress} }}
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Contestant:
    """One way to publish a table."""

    name: str
    label: str
    guarantee: str
    environment: str
    script: str
    check: Check = field(repr=False)
    asked: Mapping[str, Any] = field(default_factory=dict)
    case: Case | None = None
    """The release, where sfumato publishes it."""

    @property
    def ours(self) -> bool:
        """Whether it is sfumato."""
        return self.case is not None

    def result(self, out: Path) -> Path:
        """The published table: the file that was asked for, or the one in the bundle, which must be whole."""
        if self.case is None:
            return out
        release = load(self.case.file)
        manifest_of(release, [TABLE])
        return table_file(release, TABLE)


def contests(folder: Path) -> list[tuple[Contested, tuple[Contestant, ...]]]:
    """Every table with its contestants; what they need beside the economy is written into its folder."""
    workplace, worker, keyed, infusion, totals = contested(folder)
    new_key(folder / "peers.key", a=_LEAST, b=_MOST)
    return [
        (workplace, counts_of_jobs(workplace, _releases(folder, workplace, ()))),
        (worker, counts_of_jobs(worker, _releases(folder, worker, worker.by[len(BY) :]))),
        (keyed, _keyed(folder)),
        (infusion, _infusion(folder, infusion)),
        (totals, _totals(folder)),
    ]


def floor() -> Contestant:
    """DuckDB alone, which protects nothing."""
    return Contestant(
        name=FLOOR,
        label="DuckDB alone (the floor)",
        guarantee="nothing",
        environment=OURS,
        script="duckdb_floor.py",
        check=lambda out, table: check_floor(out, table.truth, table.by),
    )


def ours(name: str, label: str, guarantee: str, *, file: Path, check: Check, first: bool) -> Contestant:
    """sfumato, on files that were validated before or never."""
    return Contestant(
        name=name,
        label=label,
        guarantee=guarantee,
        environment=OURS,
        script="sfumato_run.py",
        check=check,
        asked={"release": str(file)},
        case=Case(name=name, label=label, file=file, first=first),
    )


def noisy(expected: Callable[[Contested], Expected]) -> Check:
    """Checks values against the true ones and the noise that is expected."""

    def check(out: Path, table: Contested) -> Errors:
        values = values_of(out, table.truth, table.by)
        return check_noisy(values, table.cells["value"].astype(np.float64), expected(table))

    return check


def _peer(
    name: str, label: str, guarantee: str, script: str, expected: Callable[[Contested], Expected], **asked: object
) -> Contestant:
    """A peer whose values are noisy counts; its environment is named like the first word of its script."""
    return Contestant(
        name=name,
        label=label,
        guarantee=guarantee,
        environment=script.split("_", maxsplit=1)[0],
        script=script,
        check=noisy(expected),
        asked=asked,
    )


def written_by_hand(
    name: str, label: str, guarantee: str, *, script: str, check: Check, asked: Mapping[str, Any]
) -> tuple[Contestant, ...]:
    """What a user would write instead, in pandas and in Polars."""
    return tuple(
        Contestant(
            name=f"{kind.lower()}-{name}",
            label=f"{kind}: {label}",
            guarantee=guarantee,
            environment=kind.lower(),
            script=f"{kind.lower()}_{script}",
            check=check,
            asked=asked,
        )
        for kind in ("pandas", "Polars")
    )


def _releases(folder: Path, table: Contested, workers: Sequence[str]) -> dict[str, Path]:
    individuals = 'budget = { epsilon = 4.0, definition = "individuals" }'
    wanted = {"vector-pareto" if workers else "smooth-pareto": BUDGET, "laplace": individuals, "node-laplace": BUDGET}
    return {
        method: write_release(
            folder,
            f"{table.name}-{method}",
            by=table.by,
            terms=terms,
            protect=f'method = "{method}", epsilon = 2.0',
            workers=workers,
        )
        for method, terms in wanted.items()
    }


def counts_of_jobs(table: Contested, releases: Mapping[str, Path]) -> tuple[Contestant, ...]:
    """Everybody who publishes counts of jobs with a formal guarantee, or what looks like one."""
    worker = table.name == "worker"
    # Both are strong: α and ε mean the same.
    relative, method = ("vector-pareto", _vector) if worker else ("smooth-pareto", _smooth)
    strong = f"an establishment's size within {float(ALPHA):.0%}, and each job: ε = {EPSILON}"
    inexact = f"{_ONE_JOB}, on paper: floating-point noise"
    return (
        floor(),
        ours("seen", f"sfumato, {relative}", strong, file=releases[relative], check=noisy(method), first=False),
        ours("first", "…first validation", strong, file=releases[relative], check=noisy(method), first=True),
        ours("laplace", "sfumato, laplace", _ONE_JOB, file=releases["laplace"], check=noisy(_one), first=False),
        _peer("opendp-vector", "OpenDP, vector noise on DuckDB's counts", _ONE_JOB, "opendp_vector.py", _one),
        _peer("opendp-context", "OpenDP, Context API", _ONE_JOB, "opendp_context.py", _one),
        _peer("tumult", "Tumult Analytics", _ONE_JOB, "tumult_analytics.py", _one),
        _peer("diffprivlib", "diffprivlib, mechanism on DuckDB's counts", inexact, "diffprivlib_mechanism.py", _one),
        _peer(
            "diffprivlib-histogram",
            "diffprivlib, histogramdd",
            f"{inexact}, cut at 0",
            "diffprivlib_histogram.py",
            lambda table: clamped_laplace(1 / EPSILON, table.cells["value"].astype(np.float64)),
        ),
        _peer("pandas", "pandas and NumPy's noise", inexact, "pandas_counts.py", _float),
        _peer("polars", "Polars and NumPy's noise", inexact, "polars_counts.py", _float),
        ours(
            "node-laplace",
            f"sfumato, node-laplace: without establishments of {LIMIT} or more",
            _ESTABLISHMENT,
            file=releases["node-laplace"],
            check=noisy(_node),
            first=False,
        ),
        _peer(
            "opendp-establishment",
            f"OpenDP, Context API, {LIMIT} rows of an establishment",
            _ESTABLISHMENT,
            "opendp_context.py",
            _cut,
            limit=LIMIT,
        ),
        _peer(
            "tumult-establishment",
            f"Tumult Analytics, {LIMIT} rows of an establishment",
            _ESTABLISHMENT,
            "tumult_analytics.py",
            _cut,
            limit=LIMIT,
        ),
    )


def _smooth(table: Contested) -> Expected:
    return smooth_pareto(SmoothPareto(alpha=ALPHA, epsilon=Fraction(EPSILON)), table.cells["largest"])


def _vector(table: Contested) -> Expected:
    method = VectorPareto(alpha=ALPHA, epsilon=Fraction(EPSILON), worker_cells=table.block)
    return vector_pareto(method, table.cells["largest_employer"])


def _one(table: Contested) -> Expected:
    return discrete_laplace(1 / EPSILON, np.zeros(len(table)))


def _float(table: Contested) -> Expected:
    return laplace(1 / EPSILON, np.zeros(len(table)))


def _node(table: Contested) -> Expected:
    # An establishment that is kept has fewer workers than the limit.
    return discrete_laplace((LIMIT - 1) / EPSILON, (table.cells["below"] - table.cells["value"]).astype(np.float64))


def _cut(table: Contested) -> Expected:
    return discrete_laplace(LIMIT / EPSILON, table.cells["kept"] - table.cells["value"])


def _keyed(folder: Path) -> tuple[Contestant, ...]:
    """Counts that a key moves: sfumato's and those of the ONS package, by the same table of moves."""
    chances = moves_of(CellKeyTable(variance=Fraction(3), deviation=5))  # sfumato's default
    rows = [_in_keys(chances[min(count, len(chances) - 1)]) for count in range(_LARGEST_COUNT + 1)]
    file = folder / "perturbations.parquet"
    pq.write_table(
        pa.table(
            {
                "pcv": np.repeat(np.arange(1, _LARGEST_COUNT + 1), KEYS),
                "ckey": np.tile(np.arange(KEYS), _LARGEST_COUNT),
                "pvalue": np.concatenate(rows[1:]),
            }
        ),
        file,
    )
    moves = [{int(v): float(np.mean(row == v)) for v in np.unique(row)} for row in rows[: len(chances)]]
    guarantee = "none that is formal; the same cell always gets the same answer"
    return (
        floor(),
        ours(
            "keyed",
            "sfumato, keyed counts, first validation",
            guarantee,
            file=_records(folder, "keyed", 'count = "records"', suppress=0),
            check=noisy(lambda table: perturbed(table.cells["value"], chances)),
            first=True,
        ),
        _peer(
            "ons",
            "ONS cell_key_perturbation",
            guarantee,
            "ons_cell_key.py",
            lambda table: perturbed(table.cells["value"], moves),
            perturbations=str(file),
        ),
    )


def _in_keys(chances: dict[int, float]) -> Floats:
    """The move of every cell key: chances in whole shares of the keys, their running sums rounded."""
    ends = [round(upto * KEYS) for upto in accumulate(chances.values())]
    return np.repeat(list(chances), np.diff([0, *ends]))


def _infusion(folder: Path, table: Contested) -> tuple[Contestant, ...]:
    cell, workers = establishments(folder, table)
    ends = {"least": float(_LEAST - 1), "most": float(_MOST - 1)}
    counts = table.cells["value"].astype(np.float64)
    file = write_release(
        folder, "infusion", by=BY, terms='key = "peers.key"', protect='method = "noise-infusion"', workers=()
    )
    (planned,) = check(load(file), data=False).plan.tables
    assert isinstance(planned.method, NoiseInfusion)
    by_chance, nearest = (infused(cell, workers, counts, **ends, base=base) for base in (planned.method.rounding, 0))
    guarantee = "none that is formal; every establishment is changed by 10% to 25%"
    return (
        floor(),
        ours(
            "infusion",
            "sfumato, noise-infusion, factors from a key, first validation",
            guarantee,
            file=file,
            check=noisy(lambda _: by_chance),
            first=True,
        ),
        *written_by_hand(
            "infusion",
            "a factor drawn for every establishment",
            f"{guarantee}, by other factors in the next run",
            script="infusion.py",
            check=noisy(lambda _: nearest),
            asked=ends,
        ),
    )


def _totals(folder: Path) -> tuple[Contestant, ...]:
    return (
        floor(),
        ours(
            "totals",
            "sfumato, top-contributors, first validation",
            "none that is formal; totals are moved as their largest contributors ask for, cells of one or two withheld",
            file=_records(folder, "totals", 'total = "earnings"', suppress=TopContributors().suppress),
            check=_moved,
            first=True,
        ),
        *written_by_hand(
            "totals",
            f"the p% rule at {SHARE:.0%}",
            "none that is formal; true totals, withheld where the two largest dominate; no secondary suppression",
            script="totals.py",
            check=_withheld,
            asked={"share": SHARE},
        ),
    )


def _records(folder: Path, name: str, statistic: str, *, suppress: int) -> Path:
    path = folder / f"{name}.toml"
    text = _RECORDS.format(
        name=name, attributes=codelists(BY), table=TABLE, statistic=statistic, by=listed(BY), suppress=suppress
    )
    path.write_text(text, encoding="utf-8")
    return path


def _moved(out: Path, table: Contested) -> Errors:
    """Totals are moved by Σ m·d·h·y over the three largest, in every cell that is not withheld."""
    method = TopContributors()
    values, cells = values_of(out, table.truth, table.by), table.cells
    shown = cells["records"] > method.suppress
    if not np.array_equal(~np.isnan(values), shown):
        raise WrongResultError("other cells are withheld than those with few contributors")
    largest = np.column_stack([cells[rank][shown] for rank in ("first", "second", "third")]).astype(np.float64)
    moved = largest * [float(m) for m in method.magnitudes]
    spread = float(method.spread)
    size = NoiseSum(own=moved, other=np.zeros_like(moved), spread=spread).mean_magnitude()
    square = (moved**2).sum(axis=1) * (1 + spread**2 / 6)
    expected = Expected(
        size=size,
        size_deviation=np.sqrt(np.maximum(square - size**2, 0)),
        bias=np.zeros(len(size)),
        deviation=np.sqrt(square),
    )
    return check_noisy(values[shown], cells["value"][shown].astype(np.float64), expected)


def _withheld(out: Path, table: Contested) -> Errors:
    """True totals, but for those that the rule withholds."""
    cells = table.cells
    value, first = cells["value"].astype(np.float64), cells["first"]
    safe = value - first - cells["second"] >= SHARE * first
    return check_exact(values_of(out, table.truth, table.by), np.where(safe, value, np.nan))
