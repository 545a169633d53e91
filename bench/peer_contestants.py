"""The contestants: who publishes which table, what that guarantees, and how its result is checked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from cases import TABLE, Case
from gate import Errors, published_file
from peer_environments import OURS
from peer_expected import (
    clamped_laplace,
    discrete_laplace,
    laplace,
    moves_of,
    perturbed,
    smooth_pareto,
    vector_pareto,
)
from peer_gate import Expected, check_floor, check_noisy, values_of
from peer_tables import LIMIT, Contested

from sfumato.release import load
from sfumato.statistics.jobs.smooth import SmoothPareto
from sfumato.statistics.jobs.vector import VectorPareto
from sfumato.statistics.totals.cell_keys import CellKeyTable

EPSILON = 2
ALPHA = Fraction("0.1")
FLOOR = "floor"
Check = Callable[[Path, Contested], Errors]
"""Refuses a wrong result of a table, and says how far a right one is from the truth."""

_ONE_JOB = f"one job, ε = {EPSILON}"
_ESTABLISHMENT = f"a whole establishment, ε = {EPSILON}"
NOTHING = "nothing"


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
        return published_file(load(self.case.file), TABLE) if self.case else out


def floor() -> Contestant:
    """DuckDB alone, which protects nothing."""
    return Contestant(
        name=FLOOR,
        label="DuckDB alone (the floor)",
        guarantee=NOTHING,
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


def keyed_counts(release: Path, perturbations: Path, moves: list[dict[int, float]]) -> tuple[Contestant, ...]:
    """Counts that a key moves: sfumato's and those of the ONS package, by the same table of moves."""
    guarantee = "none that is formal; the same cell always gets the same answer"
    return (
        floor(),
        ours(
            "keyed",
            "sfumato, keyed counts, first validation",
            guarantee,
            file=release,
            check=noisy(lambda table: perturbed(table.cells["value"], moves_of(count_table()))),
            first=True,
        ),
        _peer(
            "ons",
            "ONS cell_key_perturbation",
            guarantee,
            "ons_cell_key.py",
            lambda table: perturbed(table.cells["value"], moves),
            perturbations=str(perturbations),
        ),
    )


def count_table() -> CellKeyTable:
    """The table of moves that sfumato has by default for keyed counts."""
    return CellKeyTable(variance=Fraction(3), deviation=5)


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
