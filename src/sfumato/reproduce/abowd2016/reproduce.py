"""The evaluation of Abowd and McKinney (2016) on a synthetic federal workforce; docs/reproduce.md describes it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sfumato.economy.federal.generate import PERSONS, generate_federal
from sfumato.economy.files import RELEASE
from sfumato.noise.edges import Rule
from sfumato.release_file import load
from sfumato.reproduce.abowd2016.evaluate import Classes, Measured, Progress, evaluate, figure
from sfumato.reproduce.abowd2016.findings import findings
from sfumato.reproduce.abowd2016.published import ALL, CLASS_ENDS, PUBLISHED, SIZE_CLASSES
from sfumato.reproduce.abowd2016.tables import read_edges
from sfumato.reproduce.economy_folder import economy_folder
from sfumato.reproduce.finding import Finding

PAPER = "abowd2016"
KEYS, QUICK_KEYS = 20, 5
CLASSES = Classes(names=SIZE_CLASSES, ends=CLASS_ENDS, whole=ALL)


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Everything that was measured, and what it is compared with."""

    employers: int
    edges: int
    workers: int
    """Workers that two employers share, summed over the edges."""
    cells: int
    """Pairs of states with an edge."""
    keys: int
    measured: tuple[Measured, ...]
    findings: tuple[Finding, ...]

    def rows(self) -> Iterator[dict[str, Any]]:
        """One object for every figure of the paper's table: what was published, and ours with its range over keys.

        Where no cell of this workforce is of a class, ours is None.
        """
        for (quantity, table, size_class), published in PUBLISHED.items():
            row = figure(self.measured, quantity, table, size_class)
            yield {
                "quantity": quantity,
                "table": table,
                "size_class": size_class,
                "published": published,
                "ours": None if row is None else row.ours,
                "low": None if row is None else row.low,
                "high": None if row is None else row.high,
                "keys": self.keys,
            }


def reproduce(
    *,
    data: Path | None = None,
    persons: int = PERSONS,
    keys: int = KEYS,
    seed: int = 1,
    rule: Rule = "twelve-characters",
    progress: Progress = lambda *_: None,
) -> Reproduction:
    """Protect the edges between the states' employers under several keys, and compare with what was published.

    The workforce is made in a temporary folder, or taken from `data`, where it is made if there is none yet.
    """

    def make(folder: Path) -> None:
        generate_federal(folder, persons=persons, seed=seed, progress=partial(progress, "making careers"))

    with economy_folder(data, make) as folder:
        progress("linking employers", 0, 1)
        edges = read_edges(load(folder / RELEASE))
    measured = evaluate(edges, classes=CLASSES, keys=keys, seed=seed, rule=rule, progress=progress)
    return Reproduction(
        employers=len(edges.employers),
        edges=len(edges),
        workers=int(edges.workers.sum()),
        cells=edges.filled,
        keys=keys,
        measured=tuple(measured),
        findings=tuple(findings(measured)),
    )
