"""What readers of several kinds can work out of true numbers of which some are withheld: confidential."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells
from sfumato.exact.attacks import bounds, points
from sfumato.exact.proof import Proof, prove
from sfumato.exact.rules import Protection, Reason
from sfumato.measures.attacks import AttackResult
from sfumato.statistics.exact.decide import is_hidden_in, link, still_open
from sfumato.statistics.exact.linked import Linked

Published = Mapping[str, tuple[Any, Any, Cells]]
"""Tables with their true cells and their answers."""
_STEPS = 2_000
"""Random tables that agree with all that is published."""
_NEAR = 10
"""A guess is a success within so many percent."""
_GOLDEN = (0.6180339887498949, 0.4142135623730951)
"""Steps of two sequences that fill [0, 1) evenly: the walk needs no chance, only to go everywhere."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """All tables as one reader sees them."""

    batch: Published
    linked: Linked
    protection: Protection
    withheld: Flags

    @classmethod
    def of(cls, batch: Published) -> "Seen":
        """The system of all tables, and which of its cells are withheld in all of them."""
        linked, protection = link({name: (one, cells) for name, (one, cells, _) in batch.items()}, {})
        shown = np.zeros(len(linked.system), dtype=bool)
        for name, (_, _, answer) in batch.items():
            at, told = linked.places[name], ~is_hidden_in(answer)
            shown[at[(at >= 0) & told]] = True
        return cls(batch=batch, linked=linked, protection=protection, withheld=~shown & ~linked.system.hidden)

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """A reader's exact interval of every cell."""
        return bounds(self.linked.system, self.withheld)

    @cached_property
    def proof(self) -> Proof:
        """What is shown of every sensitive cell, with nothing believed that deciding found."""
        return prove(self.linked.system, self.withheld, self.protection)

    @cached_property
    def pairs(self) -> Integers:
        """Sensitive cells with the contributors who know them too well."""
        known = {name: (one, cells) for name, (one, cells, _) in self.batch.items()}
        return still_open(self.linked, self.withheld, self.protection, self.proof.pairs, known)


def cell_columns(batch: Published) -> dict[str, dict[str, Any]]:
    """Of every cell why it is sensitive, and the bounds that a reader can work out, in whole units."""
    seen = Seen.of(batch)
    low, high = seen.bounds
    found = {}
    for name, (_, cells, _) in batch.items():
        at, parts = seen.linked.places[name], cells["parts"]
        reasons = np.where(at >= 0, seen.protection.reasons[at], 0)
        ends = [np.where(at >= 0, end[at], cells["exact"]) / parts for end in (low, high)]
        found[name] = {
            "sensitive": ["; ".join(one.words for one in Reason if bits & one) for bits in reasons.tolist()],
            "reader_low": ends[0],
            "reader_high": ends[1],
        }
    return found


def attacks(batch: Published) -> tuple[AttackResult, ...]:
    """The attacks of readers outside, of single contributors and holdings, and by random tables."""
    seen = Seen.of(batch)
    system, sensitive, withheld = seen.linked.system, seen.protection.sensitive, seen.withheld
    low, high = seen.bounds
    number = int(sensitive.sum())
    exact = withheld & (high - low < 1e-6)
    inside = len(np.unique(seen.pairs[:, 0])) if len(seen.pairs) else 0
    return (
        _result("linear program (bounds closer than the rules allow)", number, int(seen.proof.unprotected.sum())),
        _result("linear program (exact value of a withheld cell)", int(withheld.sum()), int(exact.sum())),
        _result("lone contributor or holding (bounds closer than the rules allow)", number, inside),
        _by_points(system, seen.proof, sensitive, low, high),
    )


def _result(words: str, targets: int, successes: int) -> AttackResult:
    return AttackResult(attack=words, targets=targets, successes=successes, guessed=0)


def _by_points(system: Any, proof: Proof, sensitive: Flags, low: Floats, high: Floats) -> AttackResult:
    """The mean of random tables that agree with all that is published, beside the middle of the bounds."""
    number = np.arange(1, _STEPS + 1)
    even = np.stack([number * step % 1.0 for step in _GOLDEN], axis=1).reshape(-1)
    walk = points(system, proof.pieces, steps=_STEPS, uniform=lambda n: even[:n])
    true = system.value[sensitive]
    guess = walk[_STEPS // 4 :, sensitive].mean(axis=0)
    middle = (low + high)[sensitive] / 2
    return AttackResult(
        attack=f"random tables that agree with all that is published (mean within {_NEAR} %)",
        targets=len(true),
        successes=int(_near(guess, true).sum()),
        guessed=int(_near(middle, true).sum()),
    )


def _near(guess: Floats, true: Floats) -> Flags:
    met: Flags = 100 * np.abs(guess - true) <= _NEAR * np.abs(true)
    return met
