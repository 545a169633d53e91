"""Caps of totals by industry beside one cap for all: what they would gain at the same share of the payroll cut off.

`python -m bench.research.caps` makes the economy of the demo with a million jobs and takes seconds.
"""

import argparse
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow.parquet as pq
from scipy.optimize import brentq

from sfumato.arrays import Floats, Integers
from sfumato.statistics.jobs.smooth import SmoothPareto
from sfumato_lab.economy.jobs.generate import generate

ALPHA, EPSILON = Fraction("0.1"), Fraction(2)
TABLES = (("place", "industry", "ownership"), ("place",), ("industry",))
CUTS = (0.0028, 0.01)
"""The shares of the payroll that are cut off: that of the 99.9th percentile, and more."""


def codes(values: object) -> Integers:
    """Codes as whole numbers."""
    found: Integers = np.unique(np.asarray(values), return_inverse=True)[1].astype(np.int64)
    return found


def main() -> None:
    """Print errors of all cells together as shares of the payroll, by one cap, by groups and by each industry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "economy"
        generate(path, jobs=parser.parse_args().jobs, seed=1)
        jobs, workplaces = (pq.read_table(path / f"{name}.parquet") for name in ("jobs", "workplaces"))
    place_of = {key: i for i, key in enumerate(workplaces["workplace"].to_pylist())}
    unit = np.array([place_of[key] for key in jobs["workplace"].to_pylist()])
    pay = jobs["earnings"].to_numpy().astype(np.float64)
    attributes = {name: codes(workplaces[name].to_pylist()) for name in TABLES[0]}
    industry = attributes["industry"]
    payroll, scale = pay.sum(), SmoothPareto(alpha=ALPHA, epsilon=EPSILON).error_in_scales

    def caps_at(share: float, caps: Callable[[float], Floats]) -> Floats:
        """Caps of every industry, by one number that makes them cut off this share."""

        def excess(level: float) -> float:
            return float(np.maximum(pay - caps(level)[industry][unit], 0).sum() / payroll - share)

        return caps(float(brentq(excess, 1e-9, 1 - 1e-9)))

    spread, middle = np.log(pay).std(), np.log(pay).mean()
    kinds = industry.max() + 1
    by_industry = [np.sort(pay[industry[unit] == i]) for i in range(kinds)]

    def one(level: float) -> Floats:
        return np.full(kinds, np.exp(middle + spread * 8 * level))

    def percentiles(level: float) -> Floats:
        return np.array([np.quantile(own, 1 - (1 - level) ** 4) for own in by_industry])

    ranked = np.argsort([np.quantile(own, 0.999) for own in by_industry])

    def groups(number: int) -> Callable[[float], Floats]:
        """Caps of so many groups of industries, from those with the least pay to those with the most."""
        parts = np.array_split(ranked, number)
        pays = [np.concatenate([by_industry[i] for i in part]) for part in parts]

        def caps(level: float) -> Floats:
            found = np.zeros(kinds)
            for part, own in zip(parts, pays, strict=True):
                found[part] = np.quantile(own, 1 - (1 - level) ** 4)
            return found

        return caps

    for share in CUTS:
        choices = [caps_at(share, caps) for caps in (one, groups(2), groups(4), percentiles)]
        shown = "; ".join(f"{caps.min():,.0f} to {caps.max():,.0f}" for caps in choices)
        print(f"{share:.2%} cut off by one cap, of 2 groups, of 4 and of each industry: {shown}")
        for names in TABLES:
            place = codes([" ".join(map(str, row)) for row in zip(*(attributes[n] for n in names), strict=True)])
            found = []
            for caps in choices:
                kept = np.minimum(pay, caps[industry][unit])
                own = np.bincount(unit, kept, minlength=len(industry))
                largest, floor = np.zeros(place.max() + 1), np.zeros(place.max() + 1)
                np.maximum.at(largest, place, own)
                np.maximum.at(floor, place, caps[industry])
                found.append(scale * np.maximum(float(ALPHA) * largest, floor).sum() / payroll)
            shown = ", ".join(f"{error:.2%} ({error / found[0] - 1:+.1%})" for error in found)
            print(f"  {' × '.join(names)}: {shown}")


if __name__ == "__main__":
    main()
