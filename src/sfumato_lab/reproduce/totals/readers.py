"""What a reader gets out of published totals of one employer: the same attacks on whatever protection."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.measures.attacks import AttackResult, growth_attack, shape_attack, size_attack
from sfumato.noise.factors import ONE, WHOLE_NUMBERS
from sfumato.statistics.panel.attacks import Series, factors_within, likeliest_factor

LEGACY, FORMAL = "legacy", "formal"
ROUNDING = 1.0
"""The most by which rounding by chance changes a value that the legacy publishes."""
MOST_TARGETS = 20
"""So many employers are attacked by the lattice, those with the most values."""
FEWEST_VALUES = 100
"""An employer with fewer values is no target: of few, many factors fit all."""
SMALLEST = 10
"""An employer whose values are smaller on average is none: any factor is right within a job of small numbers."""


@dataclass(frozen=True, kw_only=True)
class Attacked:
    """How often an attack found what it was after, and how far the reader was off in the middle of all targets."""

    part: str
    attack: str
    method: str
    targets: int = 0
    succeeded: float | None = None
    """The share of targets of which all is exact, but for rounding."""
    guess: float | None = None
    """The same of a reader without the release."""
    off: float | None = None
    """The median of what the reader is off by, as a share."""
    reason: str = ""

    def row(self) -> dict[str, Any]:
        """For machines."""
        about = {"part": self.part, "attack": self.attack, "method": self.method, "published": None}
        return {
            **about,
            "quantity": "attack_success",
            "ours": self.succeeded,
            "targets": self.targets,
            "guess": self.guess,
            "off": self.off,
            **({"reason": self.reason} if self.reason else {}),
        }


def attacked(part: str, method: str, result: AttackResult, off: Floats) -> Attacked:
    """What came out of an attack."""
    some = result.targets > 0
    return Attacked(
        part=part,
        attack=result.attack,
        method=method,
        targets=result.targets,
        succeeded=result.success_rate if some else None,
        guess=result.baseline_rate if some else None,
        off=float(np.median(off)) if len(off) else None,
    )


def shape(part: str, method: str, published: Any, true: Any, establishments: Integers) -> Attacked:
    """Read the shares of groups, of pay, say, off the cell of one employer."""
    result = shape_attack(published=published, establishments=establishments, true=true, rounding=ROUNDING)
    own = (establishments == 1) & (published.sum(axis=1) > 0) & (np.count_nonzero(true, axis=1) > 1)
    shares, truth = (table[own] / table[own].sum(axis=1, keepdims=True) for table in (published, true))
    return attacked(part, method, result, np.abs(shares - truth).max(axis=1))


def size(part: str, method: str, published: Any, true: Any, establishments: Integers) -> Attacked:
    """Work out all of one employer from the true figure of its largest group, which the reader knows."""
    rows, known = np.arange(len(true)), true.argmax(axis=1)
    result = size_attack(
        published=published,
        establishments=establishments,
        known_column=known,
        known_count=true[rows, known],
        true=true,
        rounding=ROUNDING,
    )
    anchor = published[rows, known]
    own = (establishments == 1) & (anchor > 0) & (np.count_nonzero(true, axis=1) > 1)
    found = published[own].sum(axis=1) * true[rows, known][own] / anchor[own]
    return attacked(part, method, result, np.abs(found / true[own].sum(axis=1) - 1))


def growth(part: str, method: str, published: Sequence[Any], true: Sequence[Any], establishments: Integers) -> Attacked:
    """Read the growth of one employer off two periods of its cell."""
    result = growth_attack(
        before=published[0],
        after=published[1],
        establishments=establishments,
        true_before=true[0],
        true_after=true[1],
        rounding=ROUNDING,
    )
    before, after, true_before, true_after = (table.sum(axis=1) for table in (*published, *true))
    own = (establishments == 1) & (before > 0) & (true_before > 0)
    off = np.abs(after[own] / before[own] - true_after[own] / true_before[own])
    return attacked(part, method, result, off)


def lattice(
    part: str,
    method: str,
    published: Mapping[int, Sequence[Integers]],
    true: Mapping[int, Sequence[Integers]],
    within: tuple[int, int],
) -> Attacked:
    """Look for one factor that all values of an employer are multiples of, and work out its jobs by it.

    By employer, series of values that were rounded alike. It succeeds where no number of jobs is off by more than one.
    """
    candidates = factors_within(*within)
    sizes = {one: sum(len(np.unique(series)) for series in some) for one, some in published.items()}
    able = [
        one
        for one, number in sizes.items()
        if number >= FEWEST_VALUES and np.concatenate([*true[one]]).mean() >= SMALLEST
    ]
    targets = sorted(able, key=lambda one: -sizes[one])[:MOST_TARGETS]
    successes, off = 0, []
    for one in targets:
        series = [Series(values=np.unique(values[values > 0]), base=WHOLE_NUMBERS) for values in published[one]]
        factor = likeliest_factor([some for some in series if len(some.values)], candidates) or ONE
        values, jobs = (np.concatenate([*some[one]]).astype(np.float64) for some in (published, true))
        found = values * ONE / factor
        successes += bool(np.all(np.abs(found - jobs) <= 1))
        off.append(abs(found.sum() / jobs.sum() - 1))
    result = AttackResult(attack="lattice", targets=len(targets), successes=successes, guessed=0)
    return attacked(part, method, result, np.array(off))
