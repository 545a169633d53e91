"""A synthetic survey of what jobs require: a two-stage sample of establishments and jobs."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato_lab.economy import files
from sfumato_lab.economy.files import attributes_text
from sfumato_lab.economy.frame import SEEDS, Made, Progress, Purpose, check_request, stream
from sfumato_lab.economy.industries import INDUSTRY
from sfumato_lab.economy.requirements import occupations
from sfumato_lab.economy.requirements.design import CODELISTS, OWNERSHIP, STRATUM, Design, draw_design
from sfumato_lab.economy.requirements.draws import (
    NAMES,
    Establishments,
    Loops,
    Quotes,
    draw_establishments,
    draw_loops,
    draw_quotes,
    replicate_weights,
    rows_of,
)
from sfumato_lab.economy.requirements.occupations import MAJOR_GROUP, OCCUPATION
from sfumato_lab.economy.requirements.sizes import SIZE
from sfumato_lab.economy.requirements.variables import VARIABLES

# The release file that comes with a survey of requirements: its data described, and one cube.

_HEAD = """\
# Publish it with `sfumato run release.toml`; docs/methods/hypercube.md explains the cube.

[release]
title = "What jobs require, by occupation"
population = "jobs"
period = "2025"
# What single quotes may cost; alpha, about sizes of establishments, plays no part here.
budget = {{ alpha = 1, epsilon = 3, delta = 1e-5, definition = "individuals" }}

[data]
engine = "duckdb"
records = {{ path = "quotes.parquet", unit = "quote", levels = ["establishment"], weight = "weight"{replicates} }}

[data.attributes]
"""
_REPLICATES = ', replicates = { columns = "rw_*", rule = "successive-difference" }'
_TAIL = """
[data.measures]
prep_days = { label = "Preparation", unit = "days", minimum = 0, maximum = 3650 }

[[cube]]
name = "requirements"
title = "Jobs by occupation and requirements"
by = ["occupation", "strength", "education", "keyboarding", "credentials", "telework"]
epsilon = 2
cap = 7
controls = [
    { by = ["occupation"], epsilon = 0.5 },
    { by = ["strength", "education"], epsilon = 0.5 },
]
measures = ["prep_days"]
least_count = 10   # the query tool marks figures of fewer quotes,
largest_cv = 0.3   # and those with a larger coefficient of variation
"""


def release_text(*, replicates: bool) -> str:
    """The text of the release file, on records with replicate weights or without."""
    head = _HEAD.format(replicates=_REPLICATES if replicates else "")
    return head + attributes_text(CODELISTS) + _TAIL


FEWEST, MOST = 1_000, 5_000_000
QUOTES: Final = "quotes.parquet"
# The release file comes last: a folder that has it has all the others.
FILES: Final = (QUOTES, *files.codelist_names(CODELISTS), files.RELEASE)
CHUNK = 1 << 13
"""Establishments whose jobs are drawn together; each chunk has its streams, so changing this changes the survey."""


@dataclass(frozen=True, kw_only=True)
class RequirementsSurvey(Made):
    """What was generated, and where."""

    quotes: int
    establishments: int
    replicates: bool
    """Whether there are replicate weights."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every file, the release file last."""
        return FILES

    @property
    def words(self) -> str:
        """What it holds, in a sentence without its end."""
        replicates = "with replicate weights" if self.replicates else "without replicate weights"
        return f"{self.quotes:,} quotes of {self.establishments:,} establishments, {replicates}"


def generate_requirements(
    folder: Path,
    *,
    quotes: int = 60_000,
    seed: int = 1,
    replicates: bool = True,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> RequirementsSurvey:
    """Write a survey of so many quotes (sampled jobs) to a folder.

    The content depends on `quotes` and `seed` alone; leaving the replicate weights out changes nothing else. Memory
    grows with the establishments, about a sixth of the quotes, by some eighty bytes each. `progress` is told how many
    quotes are done, of how many.
    """
    check_request("survey of requirements", quotes=(quotes, FEWEST, MOST), seed=(seed, *SEEDS))
    folder = Path(folder)
    with files.staging(folder, overwrite=overwrite, names=FILES) as aside:
        for codelist in CODELISTS:
            more = occupations.hierarchy() if codelist is OCCUPATION else {}
            files.write_codelist(aside / "codelists" / f"{codelist.name}.csv", codelist, **more)
        (aside / files.RELEASE).write_text(release_text(replicates=replicates), encoding="utf-8")
        design = draw_design(seed)
        establishments = draw_establishments(quotes, design, stream(seed, Purpose.REQUIREMENTS_ESTABLISHMENTS))
        loops = draw_loops(establishments, stream(seed, Purpose.REQUIREMENTS_REPLICATES)) if replicates else None
        chunks = _draw(establishments, design, seed=seed)
        _write(aside, chunks, establishments, loops, quotes=quotes, progress=progress)
    return RequirementsSurvey(
        folder=folder, seed=seed, quotes=quotes, establishments=len(establishments), replicates=replicates
    )


def _draw(establishments: Establishments, design: Design, *, seed: int) -> Iterator[Quotes]:
    """All quotes, those of one chunk of establishments after the other."""
    for chunk, begin in enumerate(range(0, len(establishments), CHUNK)):
        rng = stream(seed, Purpose.REQUIREMENTS_QUOTES, chunk)
        yield draw_quotes(establishments, slice(begin, begin + CHUNK), design, rng)


def _write(
    folder: Path,
    chunks: Iterator[Quotes],
    establishments: Establishments,
    loops: Loops | None,
    *,
    quotes: int,
    progress: Progress | None,
) -> None:
    """Write chunk by chunk; keys run from 1 on."""
    done = 0
    with files.writing(folder) as write:
        for drawn in chunks:
            done += write(QUOTES, _table(drawn, establishments, loops, first=done + 1))
            if progress is not None:
                progress(done, quotes)


def _table(drawn: Quotes, establishments: Establishments, loops: Loops | None, *, first: int) -> pa.Table:
    row = drawn.establishment

    def code(of_establishment: NDArray[np.int64]) -> NDArray[np.int8]:
        return of_establishment.astype(np.int8)[row]

    table = files.table(
        {
            "quote": first + np.arange(len(drawn)),
            "establishment": 1 + row,
            "stratum": (code(establishments.stratum), STRATUM),
            "occupation": (drawn.occupation, OCCUPATION),
            "major_group": (occupations.group_of().astype(np.int8)[drawn.occupation], MAJOR_GROUP),
            "industry": (code(establishments.industry), INDUSTRY),
            "ownership": (code(establishments.ownership), OWNERSHIP),
            "size": (code(establishments.size_class), SIZE),
            **{variable.name: (drawn.requirements[variable.name], variable.codelist) for variable in VARIABLES},
            "prep_days": drawn.prep_days,
        }
    )
    weight = establishments.weight[row]
    table = table.append_column("weight", pa.array(weight))
    if loops is not None:
        rows = rows_of(loops, row, drawn.job, establishments.sure)
        for number, name in enumerate(NAMES):
            table = table.append_column(name, pa.array(replicate_weights(weight, rows, number)))
    return table
