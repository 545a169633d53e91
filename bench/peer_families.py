"""Who contests which table: one contest for each kind of protection that sfumato has for such tables."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from cases import BUDGET, BY, TABLE, attributes_of, quoted, write_release
from gate import Errors, WrongResultError
from peer_contestants import (
    Contestant,
    count_table,
    counts_of_jobs,
    floor,
    keyed_counts,
    noisy,
    ours,
    written_by_hand,
)
from peer_expected import infused, moves_of
from peer_gate import Expected, check_exact, check_noisy, values_of
from peer_tables import KEYS, SHARE, Contested, contested, establishments

from sfumato.arrays import Floats
from sfumato.checking import check
from sfumato.keys import new_key
from sfumato.release import load
from sfumato.statistics.jobs.noise_infusion import NoiseInfusion
from sfumato.statistics.totals.perturbation import NoiseSum
from sfumato.statistics.totals.top_contributors import TopContributors

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


def _keyed(folder: Path) -> tuple[Contestant, ...]:
    chances = moves_of(count_table())
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
    return keyed_counts(_records(folder, "keyed", 'count = "records"', suppress=0), file, moves)


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
        name=name, attributes=attributes_of(BY), table=TABLE, statistic=statistic, by=quoted(BY), suppress=suppress
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
