"""Synthetic children by tract, race and gender, with the income ranks of their parents and their own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from sfumato_lab.economy import files
from sfumato_lab.economy.federal.codes import STATE, TILES
from sfumato_lab.economy.files import attributes_text
from sfumato_lab.economy.frame import SEEDS, Made, Progress, Purpose, check_request, stream
from sfumato_lab.economy.jobs.codelists import Codelist
from sfumato_lab.economy.maps import write_island, write_tiles
from sfumato_lab.economy.opportunity.draws import Children, Tracts, draw_children, draw_tracts
from sfumato_lab.economy.opportunity.groups import GENDER, RACE

# The release file that comes with children of tracts: predicted ranks by tract, race and gender.

_HEAD = """\
# Publish it with `sfumato run release.toml`; docs/methods/small-samples.md explains the method.

[release]
title = "Income ranks of children, by where they grew up"
population = "children"
period = "1978-1983"
# The predictions are not differentially private: what they cost holds on a condition, which `conditional` accepts.
budget = { epsilon = 17, definition = "individuals", conditional = true }

[data]
engine = "duckdb"
records = { path = "children.parquet", unit = "child" }

[data.attributes]
"""
_TAIL = """
[data.measures]
parent_rank = { label = "Income rank of the parents", unit = "0.01 percentiles", minimum = 0, maximum = 10000 }
kid_rank = { label = "Income rank of the child", unit = "0.01 percentiles", minimum = 0, maximum = 10000 }

# Of epsilon, 8 for each of the two predictions, as in the Opportunity Atlas, and 1 for the number of children.
[[table]]
name = "ranks"
title = "Predicted income rank of children of parents at the 25th and the 75th percentile"
predict = { outcome = "kid_rank", on = "parent_rank", at = [2500, 7500] }
by = ["tract", "race", "gender"]
decimals = 0
protect = { method = "mose", epsilon = 17, count_epsilon = 1, classes = ["state", "gender", "race"] }
"""


def release_text(codelists: Sequence[Codelist]) -> str:
    """The text of the release file on children with these attributes."""
    return _HEAD + attributes_text(codelists, on_maps=["state", "tract"]) + _TAIL


FEWEST, MOST = 100, 100_000
CHILDREN: Final = "children.parquet"
CODELISTS: Final = (STATE, RACE, GENDER)
"""Those that are the same whatever the number of tracts."""
# The release file comes last: a folder that has it has all the others.
FILES: Final = (
    CHILDREN,
    "codelists/tract.csv",
    *map(files.map_name, ("state", "tract")),
    *files.codelist_names(CODELISTS),
    files.RELEASE,
)
CHUNK = 512
"""Tracts whose children are drawn together; each chunk has its stream, so changing this changes the children."""


@dataclass(frozen=True, kw_only=True)
class OpportunityEconomy(Made):
    """What was generated, and where."""

    tracts: int
    children: int

    @property
    def names(self) -> tuple[str, ...]:
        """Every file, the release file last."""
        return FILES

    @property
    def words(self) -> str:
        """What it holds, in a sentence without its end."""
        return f"{self.children:,} children of {self.tracts:,} tracts in {len(STATE)} states"


def generate_opportunity(
    folder: Path,
    *,
    tracts: int = 2_000,
    seed: int = 1,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> OpportunityEconomy:
    """Write the children of so many tracts to a folder, about 300 of each.

    The content depends on `tracts` and `seed` alone. Memory grows with the tracts, by less than a kilobyte each, never
    with the children. `progress` is told how many children are done, of how many.
    """
    check_request("children of tracts", tracts=(tracts, FEWEST, MOST), seed=(seed, *SEEDS))
    folder = Path(folder)
    with files.staging(folder, overwrite=overwrite, names=FILES) as aside:
        drawn = draw_tracts(tracts, seed)
        tract = drawn.codelist
        files.write_codelists(aside, CODELISTS)
        state = [STATE.codes[number] for number in drawn.state]
        files.write_codelist(aside / "codelists" / "tract.csv", tract, state=state)
        write_tiles(aside / files.map_name("state"), TILES)
        write_island(aside / files.map_name("tract"), tract.codes)
        (aside / files.RELEASE).write_text(release_text((STATE, tract, RACE, GENDER)), encoding="utf-8")
        children, total = 0, int(drawn.children.sum())
        with files.writing(aside) as write:
            for chunk in _draw(drawn, seed=seed):
                children += write(CHILDREN, _table(chunk, drawn, tract, first=children + 1))
                if progress is not None:
                    progress(children, total)
    return OpportunityEconomy(folder=folder, seed=seed, tracts=tracts, children=children)


def _draw(tracts: Tracts, *, seed: int) -> Iterator[Children]:
    """All children, those of one chunk of tracts after the other."""
    for chunk, begin in enumerate(range(0, len(tracts), CHUNK)):
        rng = stream(seed, Purpose.OPPORTUNITY_CHILDREN, chunk)
        yield draw_children(tracts, slice(begin, begin + CHUNK), rng)


def _table(children: Children, tracts: Tracts, tract: Codelist, *, first: int) -> pa.Table:
    return files.table(
        {
            "child": first + np.arange(len(children)),
            "state": (tracts.state.astype(np.int8)[children.tract], STATE),
            "tract": (children.tract, tract),
            "race": (children.race, RACE),
            "gender": (children.gender, GENDER),
            "parent_rank": children.parent_rank,
            "kid_rank": children.kid_rank,
        }
    )
