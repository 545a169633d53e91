"""A real register of employers with amounts, for those who have one: never needed, and no part of the project.

A file of comma-separated values, packed with gzip or not, one employer in a row: `naics2`, `state`, `city`, `zip`, and
the two parts of the amount, `initial` and `continuing`. The state with most employers is taken.
"""

import csv
import gzip
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.exact.register import Register
from sfumato.exact.trees import Tree


def registers(file: Path) -> dict[str, Register]:
    """Two tables of the same employers: place × sector, and part of the state > postal code × sector."""
    packed = file.read_bytes()
    text = (gzip.decompress(packed) if file.suffix == ".gz" else packed).decode()
    every = list(csv.DictReader(text.splitlines()))
    (state, _), *_ = Counter(row["state"] for row in every).most_common(1)
    mine = [row for row in every if row["state"] == state]
    amount = np.array([int(row["initial"]) + int(row["continuing"]) for row in mine], dtype=np.int64)
    industry, of = _flat("industry", [row["naics2"] for row in mine])
    place, at = _flat("place", [row["city"] for row in mine])
    zips = [row["zip"] for row in mine]
    codes = sorted(set(zips))
    tree = Tree.of(
        "place",
        {"coarse": [f"d{code}" for code in sorted({code[:3] for code in codes})], "fine": [f"p{c}" for c in codes]},
        above=[("fine", "coarse", {f"p{code}": f"d{code[:3]}" for code in codes})],
    )
    within = tree.nodes("fine", [f"p{code}" for code in zips])
    return {
        "a real register": Register(place=place, industry=industry, at=at, of=of, amount=amount),
        "a real register, two levels": Register(place=tree, industry=industry, at=within, of=of, amount=amount),
    }


def _flat(name: str, codes: Sequence[str]) -> tuple[Tree, np.ndarray]:
    """A tree of one level, with names that are safe in any file, and the node of every record."""
    number = {code: f"{name[0]}{at}" for at, code in enumerate(sorted(set(codes)))}
    tree = Tree.of(name, {"fine": list(number.values())})
    return tree, tree.nodes("fine", [number[code] for code in codes])
