"""Totals of businesses with a guarantee and by largest contributors, at equal risk to the largest contributor.

`python -m bench.totals.equal_risk` prints the table of docs/methods/formal-records.md and writes it as JSON.

The risk is what the best attacker gets who knows all other contributors of a cell, the method and its parameters, and
neither the key nor the draw: the greatest probability with which any guess, the published total less the others and
less a fixed share of the largest, comes within 11 % of the largest. It is looked at in cells that a p% rule withholds,
where the true total would give the largest away to the second. Probabilities over all keys, or all draws, are computed
and not simulated. `naive` is the risk of the attack without that share, to which a perturbation that is never small
gives nothing.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from sfumato.arrays import Flags, Floats
from sfumato.cells import Cells
from sfumato.checking import checked
from sfumato.keys import new_key
from sfumato.noise.randomness import Seeded
from sfumato.release import load
from sfumato.statistics.totals.attacks import Attacked
from sfumato.statistics.totals.calibration import ATTACKS
from sfumato.statistics.units.attacks import within
from sfumato.statistics.units.pareto import UnitPareto
from sfumato_lab.economy.business.generate import generate_business

RESULTS = Path(__file__).parents[1] / "results" / "equal_risk.json"
ALPHA, FLOOR = Fraction(1, 10), 100_000
NEAR = ATTACKS[2].within
SHARES = np.linspace(-0.8, 0.8, 161)
"""Of the largest contributor, which guesses take off."""
SIZES = (1, 3, 10, 30, 100)
"""Cells are told apart by how many contributors they have: from each of these on."""
RELEASE = """
[release]
title = "Turnover"
population = "businesses"
period = "2025"
key = "sfumato.key"
budget = {{ definition = "units", alpha = 0.1, epsilon = 2, totals = ["turnover"] }}

[data]
records = {{ path = "businesses.parquet", unit = "business" }}
public = ["state", "industry", "size"]

[data.attributes]
state = {{ codelist = "codelists/state.csv" }}
industry = {{ codelist = "codelists/industry.csv" }}
size = {{ codelist = "codelists/size.csv" }}

[data.measures]
turnover = {{ floor = {floor} }}

[[table]]
name = "keyed"
total = "turnover"
by = ["state", "industry", "size"]
protect = {{ method = "top-contributors" }}

[[table]]
name = "formal"
total = "turnover"
by = ["state", "industry", "size"]
protect = {{ epsilon = 2 }}
"""


@dataclass(frozen=True, kw_only=True)
class Row:
    """Cells of one size, with the mean absolute error of both methods as a share of their totals."""

    cells: str
    number: int
    formal: float
    keyed: float


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Both methods at one risk."""

    epsilon: float
    risk: float
    """Of both, in the cells that a p% rule withholds."""
    naive: float
    """Of top contributors, to whom takes the published total as it is."""
    sensitive: int
    rows: tuple[Row, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Economy:
    """True cells of one table, with the two largest contributors and what moves cells under a key."""

    formal: Cells
    first: Floats
    second: Floats
    keyed: Attacked
    keyed_error: Floats

    @property
    def total(self) -> Floats:
        """The true totals."""
        return self.formal["count"].astype(np.float64)

    @property
    def sensitive(self) -> Flags:
        """Whether the true total gives the largest contributor away to the second one."""
        rest = self.total - self.first - self.second
        return (self.first > 0) & (rest <= NEAR * self.first)

    def keyed_risk(self, shares: Floats) -> Floats:
        """By how much the best guess off by one of some shares of the largest is near, in every sensitive cell."""
        noise, near = self.keyed.noise(), NEAR * self.first
        found = [noise.probability(share * self.first - near, share * self.first + near) for share in shares]
        return np.max(found, axis=0)[self.sensitive]

    def risk(self, epsilon: Fraction) -> float:
        """The mean probability of the best attack on sensitive cells with the guarantee of an epsilon.

        The noise is likeliest about 0, so that the best guess takes nothing off.
        """
        method, near = formal(epsilon), NEAR * self.first
        found = within(method, -near, near, method.multiples(self.formal))
        return float(found[self.sensitive].mean())


def formal(epsilon: Fraction) -> UnitPareto:
    """The method with a guarantee."""
    return UnitPareto(alpha=ALPHA, epsilon=epsilon, floor=FLOOR)


def economy(businesses: int, seed: int = 1) -> Economy:
    """Make an economy and count the cells of both tables."""
    with TemporaryDirectory() as name:
        folder = Path(name) / "economy"
        generate_business(folder, businesses=businesses, seed=seed)
        (folder / "compared.toml").write_text(RELEASE.format(floor=FLOOR), encoding="utf-8")
        new_key(folder / "sfumato.key")
        with checked(load(folder / "compared.toml")) as ready:
            tables = {table.name: table for table in ready.plan.tables}
            cells = dict(ready.tabulate(tables))
            keyed, method = cells["keyed"], tables["keyed"].method
            answer = method.protect(keyed, Seeded(seed))
            attacked = Attacked(name="keyed", counted=keyed, answer=answer, method=method)  # type: ignore[arg-type]
            return Economy(
                formal=cells["formal"],
                first=attacked.weighted(0, 1),
                second=attacked.weighted(0, 2),
                keyed=attacked,
                keyed_error=method.expected_error(keyed),
            )


def compared(found: Economy) -> Comparison:
    """Find the epsilon at which both methods have one risk, and compare their errors there."""
    chosen = found.sensitive
    aimed, naive = (float(found.keyed_risk(shares).mean()) for shares in (SHARES, np.zeros(1)))
    low, high = Fraction(11, 100), Fraction(20)
    while high - low > Fraction(1, 200):
        middle = ((low + high) / 2).limit_denominator(10_000)
        low, high = (low, middle) if found.risk(middle) >= aimed else (middle, high)
    epsilon = Fraction(round(100 * low), 100)
    error = formal(epsilon).expected_error(found.formal)
    records = found.formal["records"]
    return Comparison(
        epsilon=float(epsilon),
        risk=aimed,
        naive=naive,
        sensitive=int(chosen.sum()),
        rows=tuple(_rows(found, error, records)),
    )


def _rows(found: Economy, error: Floats, records: Floats) -> Iterator[Row]:
    ends = [*(f"{one} to {other - 1}" for one, other in pairwise(SIZES)), f"{SIZES[-1]} and more"]
    groups = [
        (f"{words} contributors", (records >= least) & (records < below))
        for words, least, below in zip(ends, SIZES, [*SIZES[1:], np.inf], strict=True)
    ]
    for words, some in [*groups, ("all cells", records > 0), ("cells that a p% rule withholds", found.sensitive)]:
        total = found.total[some].sum() or 1.0
        yield Row(
            cells=words,
            number=int(some.sum()),
            formal=float(error[some].sum() / total),
            keyed=float(found.keyed_error[some].sum() / total),
        )


def page(comparison: Comparison) -> str:
    """The table as the page has it."""
    lines = ["| cells | number | with a guarantee | top-contributors |", "|---|---|---|---|"]
    lines += [f"| {one.cells} | {one.number:,} | {one.formal:.2%} | {one.keyed:.2%} |" for one in comparison.rows]
    return "\n".join(lines).replace("%", " %")


def read() -> Comparison:
    """The comparison that was written last."""
    told = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows = tuple(Row(**row) for row in told["rows"])
    return Comparison(**{name: value for name, value in told.items() if name not in ("rows", "businesses")}, rows=rows)


def main(businesses: int = 100_000) -> None:
    """Compare on an economy of so many businesses."""
    found = compared(economy(businesses))
    print(f"epsilon = {found.epsilon:g}, risk {found.risk:.1%}, naive {found.naive:.1%}", f"\n{page(found)}", sep="\n")
    RESULTS.write_text(json.dumps({"businesses": businesses, **asdict(found)}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
