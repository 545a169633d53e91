"""How accurate a table is wished to be: `wish` of a `[[table]]`, and `--wish` of `sfumato plan`; docs/plan.md."""

import re
from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Flags, Floats

_WISH = re.compile(
    r"(?:within )?(?P<limit>\d[\d,]*(?:\.\d+)?) ?(?P<unit>%|jobs)"
    r"(?: in cells of at (?P<bound>least|most) (?P<jobs>\d[\d,]*) jobs)?"
)
EXAMPLES = ("5%", "100 jobs", "5% in cells of at least 1,000 jobs", "10 jobs in cells of at most 100 jobs")


@dataclass(frozen=True, kw_only=True)
class Wish:
    """The mean error that the cells of a table are to have at most: in jobs, or as a share of the mean cell.

    >>> str(Wish.read("within 5 % in cells of at least 1,000 jobs"))
    '5% in cells of at least 1,000 jobs'
    """

    limit: float
    """In jobs, or a share."""
    relative: bool
    bound: str = ""
    """`least` or `most`, where only some cells are meant."""
    jobs: int = 0

    @classmethod
    def read(cls, text: str) -> "Wish":
        """A wish as people write it; a ValueError says how."""
        found = _WISH.fullmatch(" ".join(text.split()))
        limit = 0.0 if found is None else float(found["limit"].replace(",", ""))
        if found is None or limit <= 0:
            raise ValueError(f"an error above 0, such as {', '.join(map(repr, EXAMPLES))}")
        relative = found["unit"] == "%"
        return cls(
            limit=limit / 100 if relative else limit,
            relative=relative,
            bound=found["bound"] or "",
            jobs=int((found["jobs"] or "0").replace(",", "")),
        )

    def __str__(self) -> str:
        cells = f" in cells of at {self.bound} {self.jobs:,} jobs" if self.bound else ""
        return f"{self.limit * 100:.10g}%{cells}" if self.relative else f"{self.limit:,.10g} jobs{cells}"

    def means(self, jobs: Floats) -> Flags:
        """Which cells are meant, going by the jobs they are expected to have."""
        if not self.bound:
            return np.ones(len(jobs), dtype=bool)
        return jobs >= self.jobs if self.bound == "least" else jobs <= self.jobs
