"""What an assessment finds: the error, the use and the risk of every statistic, computed from true values."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.measures.attacks import AttackResult, JointFindings
from sfumato.measures.limits import LimitCost
from sfumato.measures.risk import Exposure
from sfumato.measures.usability import Usability
from sfumato.measures.utility import Utility
from sfumato.plan import Plan
from sfumato.statistics.cube.assess import CubeAssessment
from sfumato.statistics.jobs.assess_sparse import SparseAssessment
from sfumato.statistics.panel.network import NetworkComparison
from sfumato.statistics.panel.tabulate_graph import Network
from sfumato.statistics.people.assess import PeopleAssessment
from sfumato.statistics.totals.growth import GrowthUtility


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """The confidential findings about a release, and the page that shows them."""

    plan: Plan
    utilities: tuple[Utility, ...]
    exposures: tuple[Exposure, ...]
    network: Network | None
    """Of workers and employers, when a table is about their graph."""
    networks: tuple[NetworkComparison, ...]
    """Of the classes of every flow and graph."""
    report: Path
    cubes: tuple[CubeAssessment, ...] = ()
    people: tuple[PeopleAssessment, ...] = ()
    """Of tables of predictions, means and percentiles of people."""
    together: tuple[JointFindings, ...] = ()
    """What all tables of each kind tell together."""
    growth: tuple[GrowthUtility, ...] = ()
    """Of totals by period."""
    sparse: tuple[SparseAssessment, ...] = ()
    """Of tables that list values from a threshold on."""
    limits: tuple[tuple[str, LimitCost], ...] = ()
    """Of tables that hide whole units: the title, and what is left out for that."""
    usability: tuple[Usability, ...] = ()
    """Which cells of every statistic can be used."""

    @property
    def told(self) -> dict[str, Mapping[str, Any]]:
        """By table, what all tables of its kind together tell of each of its cells."""
        return {name: columns for one in self.together for name, columns in one.columns.items()}

    def attacks(self) -> Iterator[tuple[str, AttackResult]]:
        """Every attack that was tried, with the title of what it was tried on."""
        for utility, exposure in zip(self.utilities, self.exposures, strict=True):
            yield from ((utility.title, found) for found in exposure.attacks)
        yield from ((one.heading.lower(), found) for one in self.together for found in one.attacks)
        for people in self.people:
            yield from ((people.title, found) for found in people.attacks)
        for cube in self.cubes:
            yield from ((cube.title, found) for found in cube.weights)
            for link in cube.linkage:
                yield (
                    cube.title,
                    AttackResult(
                        attack=f"{link.attack}, knowing {', '.join(link.known)}",
                        targets=link.targets,
                        successes=round(link.disclosed),
                        guessed=round(link.guessed),
                    ),
                )
