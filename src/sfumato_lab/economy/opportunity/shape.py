"""The shape of children of tracts: how small groups are, and how children's ranks follow those of their parents."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sfumato_lab.economy.frame import asking, need_files
from sfumato_lab.economy.opportunity.generate import CHILDREN
from sfumato_lab.economy.opportunity.groups import GENDER, RACE

SMALL: Final = 20
"""Groups with fewer children are what a rule of suppression would not publish."""
AT: Final = (25, 75)
"""Percentiles of the parents at which ranks are predicted."""

_CHILDREN = """
select count(*), count(distinct tract), count(distinct state), regr_slope(kid_rank, parent_rank)
from read_parquet($files)
"""
_GROUPS = """
select count(*), median(children), quantile_cont(children, 0.1), quantile_cont(children, 0.9),
       avg((children < $small)::int), stddev(low) filter (children >= $small)
from (
    select count(*) as children,
           (regr_intercept(kid_rank, parent_rank) + 2500 * regr_slope(kid_rank, parent_rank)) / 100 as low
    from read_parquet($files) group by tract, race, gender
)
"""
_LINES = """
select race, gender, regr_intercept(kid_rank, parent_rank) / 100, regr_slope(kid_rank, parent_rank)
from read_parquet($files) group by race, gender
"""


@dataclass(frozen=True, kw_only=True)
class Line:
    """How ranks of children of one race and gender follow those of their parents, in the whole country."""

    race: str
    gender: str
    intercept: float
    """The mean rank of children of the lowest parents, in percentiles."""
    slope: float

    def at(self, rank: int) -> float:
        """The mean rank of children of parents at this percentile."""
        return self.intercept + self.slope * rank


@dataclass(frozen=True, kw_only=True)
class OpportunityShape:
    """What protection meets in children of tracts."""

    children: int
    tracts: int
    states: int
    slope: float
    """Of all children together."""
    groups: int
    """Combinations of tract, race and gender with a child."""
    median: float
    """Children of a group; half of the groups have fewer."""
    low: float
    high: float
    """One group in ten has fewer, and one in ten more."""
    small: float
    """Share of groups with fewer than SMALL children."""
    spread: float
    """Standard deviation of predictions at the 25th percentile between the other groups, in percentiles."""
    lines: tuple[Line, ...]
    """By race and gender."""

    def rows(self) -> tuple[tuple[str, str, str], ...]:
        """What, ours, and the figure published about the Opportunity Atlas: the lines of a table for reading."""
        unknown = "not published"
        return (
            ("children", f"{self.children:,}", "over 20 million"),
            ("tracts", f"{self.tracts:,}", "about 70,000"),
            ("states", f"{self.states:,}", "51"),
            ("children of a tract", f"{self.children / self.tracts:,.0f}", "about 290"),
            ("groups by tract, race and gender", f"{self.groups:,}", unknown),
            ("median children of a group", f"{self.median:,.0f}", unknown),
            ("one group in ten has at most, at least", f"{self.low:,.0f}, {self.high:,.0f}", unknown),
            (f"groups with fewer than {SMALL} children", f"{self.small:.1%}", unknown),
            ("slope of children's ranks on their parents'", f"{self.slope:.2f}", unknown),
            (f"spread of predictions at {AT[0]}, larger groups", f"{self.spread:.1f}", unknown),
            *(
                (
                    f"{line.race}, {line.gender}: ranks at {AT[0]} and {AT[1]}, slope",
                    f"{line.at(AT[0]):.1f}, {line.at(AT[1]):.1f}, {line.slope:.2f}",
                    unknown,
                )
                for line in self.lines
            ),
        )


def measure_opportunity(folder: Path) -> OpportunityShape:
    """The shape of the children in a folder, from their file."""
    folder = Path(folder)
    need_files(folder, (CHILDREN,), what="children of tracts", command="sfumato economy opportunity")
    with asking(folder / CHILDREN) as ask:
        ((children, tracts, states, slope),) = ask(_CHILDREN)
        ((groups, median, low, high, small, spread),) = ask(_GROUPS, small=SMALL)
        found = {(race, gender): line for race, gender, *line in ask(_LINES)}
    return OpportunityShape(
        children=children,
        tracts=tracts,
        states=states,
        slope=slope,
        groups=groups,
        median=median,
        low=low,
        high=high,
        small=small,
        spread=spread,
        lines=tuple(
            Line(race=race, gender=gender, intercept=found[race, gender][0], slope=found[race, gender][1])
            for race in RACE.codes
            for gender in GENDER.codes
            if (race, gender) in found
        ),
    )
