"""A made-up register of employers with amounts, and its tables by place and industry at all levels."""

from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from sfumato.arrays import Integers
from sfumato.exact.rules import Contributions
from sfumato.exact.system import System, Table, build_system
from sfumato.exact.trees import Tree


@dataclass(frozen=True, kw_only=True)
class Size:
    """How many employers, districts, places, sectors and industries."""

    employers: int
    districts: int
    places: int
    sectors: int
    industries: int = 0
    """0 for a table by sector alone."""
    skew: float = 1.0
    """How much employers gather in few places and industries."""


SIZES = {
    "1,000 cells": Size(employers=800, districts=5, places=45, sectors=19),
    "10,000 cells": Size(employers=8_000, districts=20, places=380, sectors=24),
    "50,000 cells": Size(employers=20_000, districts=20, places=360, sectors=24, industries=110, skew=2.0),
}
LARGEST = Size(employers=1_500_000, districts=60, places=3_700, sectors=20, industries=250)


@dataclass(frozen=True, kw_only=True, eq=False)
class Register:
    """Employers by place and industry, each with an amount."""

    place: Tree
    industry: Tree
    at: Integers
    of: Integers
    """The finest node of every employer in both trees."""
    amount: Integers

    def write(self, file: Path) -> None:
        """As a file of comma-separated values, for other tools; levels as columns, the coarsest first."""
        columns = {"id": np.arange(len(self.amount)).astype(str)}
        for tree, nodes in ((self.place, self.at), (self.industry, self.of)):
            codes = np.array([code for _, code in tree.codes])
            above = tree.parents[0][nodes]
            if bool(np.any(above > 0)):
                columns[f"{tree.name}_above"] = codes[above]
            columns[tree.name] = codes[nodes]
        columns["amount"] = self.amount.astype(str)
        rows = zip(*columns.values(), strict=True)
        file.write_text("\n".join([",".join(columns), *map(",".join, rows)]) + "\n", encoding="utf-8")

    def tables(self) -> tuple[System, Contributions]:
        """All cells of the table with all totals that anybody is in, and who contributes to them."""
        width = len(self.industry)
        order = np.argsort(-self.amount, kind="stable")
        found: list[list[Integers]] = []
        for rows, columns in product(_levels(self.place, self.at), _levels(self.industry, self.of)):
            key = (rows * width + columns)[order]
            amount = self.amount[order]
            by_key = np.argsort(key, kind="stable")  # the largest of every cell comes first
            keys, first, units = np.unique(key[by_key], return_index=True, return_counts=True)
            amounts = amount[by_key]
            second = np.where(units > 1, amounts[np.minimum(first + 1, len(amounts) - 1)], 0)
            owner = np.where(units == 1, order[by_key[first]], -1)
            found.append([keys, np.add.reduceat(amounts, first), units, amounts[first], second, owner])
        joined = [np.concatenate(part) for part in zip(*found, strict=True)]
        rank = np.argsort(joined[0], kind="stable")
        keys, value, units, largest, second, owner = (part[rank] for part in joined)
        axes = ((self.place, np.arange(len(self.place))), (self.industry, np.arange(width)))
        system = build_system({"table": Table(axes=axes, positions=keys, value=value)})
        return system, Contributions(
            value=value.astype(np.float64),
            units=units,
            largest=largest.astype(np.float64),
            second=second.astype(np.float64),
            owner=owner,
        )

    def names(self) -> list[str]:
        """The name of every cell in the order of positions: place and industry, or Total."""
        codes = [["Total" if node == 0 else code for node, (_, code) in enumerate(tree.codes)] for tree in self.trees]
        return [f"{place}|{industry}" for place in codes[0] for industry in codes[1]]

    def listed(self) -> Integers:
        """The positions of cells that anybody is in, in the order of those of `tables`."""
        levels = product(_levels(self.place, self.at), _levels(self.industry, self.of))
        return np.unique(np.concatenate([np.unique(rows * len(self.industry) + columns) for rows, columns in levels]))

    @property
    def trees(self) -> tuple[Tree, Tree]:
        """Both trees."""
        return self.place, self.industry


def make(size: Size, seed: int = 1) -> Register:
    """Employers in places of very different sizes, with amounts that few employers have most of."""
    random = np.random.default_rng(seed)
    place = _tree("place", size.districts, size.places, ("d", "p"))
    industry = _tree("industry", size.sectors, size.industries, ("s", "i"))
    finest = [np.flatnonzero(tree.leaves[0] * (tree.parents[0] >= 0) == 1) for tree in (place, industry)]
    finest = [
        nodes[-number:] for nodes, number in zip(finest, (size.places, size.industries or size.sectors), strict=True)
    ]
    at, of = (random.choice(nodes, size.employers, p=_popular(len(nodes), size.skew)) for nodes in finest)
    amount = np.ceil(random.lognormal(0.6, 1.4, size.employers)).astype(np.int64)
    return Register(place=place, industry=industry, at=at, of=of, amount=amount)


def _popular(number: int, skew: float) -> np.ndarray:
    weight = 1 / (np.arange(number) + 8.0) ** skew
    return weight / weight.sum()


def _tree(name: str, above: int, below: int, letters: tuple[str, str]) -> Tree:
    coarse = [f"{letters[0]}{k}" for k in range(above)]
    fine = [f"{letters[1]}{k}" for k in range(below)]
    if not fine:
        return Tree.of(name, {"coarse": coarse})
    lies = {code: coarse[k % above] for k, code in enumerate(fine)}
    return Tree.of(name, {"coarse": coarse, "fine": fine}, above=[("fine", "coarse", lies)])


def _levels(tree: Tree, nodes: Integers) -> list[Integers]:
    """The nodes of records at every level, up to the total."""
    found = [nodes]
    while bool(np.any(found[-1] > 0)):
        found.append(tree.parents[0][found[-1]])
    return found
