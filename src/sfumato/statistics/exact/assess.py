"""What readers of several kinds can work out of true numbers that are withheld, rounded or ranges: confidential.

Whatever the method, a table tells an interval of every cell: the value itself, the ends of a range, the multiples
around it, or nothing. All tables together, with what they tell by subtraction, are one system with these bounds.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import monotonic
from typing import Any

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells
from sfumato.exact.attacks import Shown, between, bounds, points
from sfumato.exact.proof import Proof, prove
from sfumato.exact.rules import Protection
from sfumato.exact.system import System
from sfumato.measures.attacks import AttackResult, JointFindings
from sfumato.statistics.exact.assess_merged import merged_findings
from sfumato.statistics.exact.contributions import ABOUT_PARTS
from sfumato.statistics.exact.decide import link, reasons_of, shares_in, with_differences_of
from sfumato.statistics.exact.linked import Linked

Published = Mapping[str, tuple[Any, Any, Cells]]
"""Tables with their true cells and their answers."""
_STEPS = 2_000
"""Random tables that agree with all that is published."""
_NEAR = 10
"""A guess is a success within so many percent."""
_SECONDS = 300
"""After so long no more single bounds are looked for: those of cells that are left are not told."""
_GOLDEN = (0.6180339887498949, 0.4142135623730951)
"""Steps of two sequences that fill [0, 1) evenly: the walk needs no chance, only to go everywhere."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """All tables as one reader sees them."""

    batch: Published
    linked: Linked
    protection: Protection
    known: System
    """The system with the bounds that readers know of every cell; none is hidden apart from that."""

    @classmethod
    def of(cls, batch: Published) -> "Seen":
        """The system of all tables, and what they tell of its cells."""
        linked, protection = link({name: (one, cells) for name, (one, cells, _) in batch.items()}, {})
        known = replace(linked.system, hidden=np.zeros(len(linked.system), dtype=bool))
        for name, (one, cells, answer) in batch.items():
            low, high = one.told(cells, answer)
            at, inside = linked.places[name], linked.places[name] >= 0
            lower, upper = np.full(len(known), -np.inf), np.full(len(known), np.inf)
            lower[at[inside]], upper[at[inside]] = low[inside], high[inside]
            known = known.with_bounds(lower=lower, upper=upper)
        return cls(batch=batch, linked=linked, protection=_possible(protection, linked, batch), known=known)

    @property
    def withheld(self) -> Flags:
        """Cells that are not told."""
        return ~self.known.fixed

    @property
    def unshown(self) -> Flags:
        """Cells that no table has and several tell by subtraction."""
        return self.linked.system.hidden

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """A reader's exact interval of every cell."""
        end = monotonic() + _SECONDS
        return bounds(self.known, self.withheld, stop=lambda: monotonic() > end)

    @cached_property
    def proof(self) -> Proof:
        """What is shown of every sensitive cell, with nothing believed that deciding found."""
        every = with_differences_of({name: (one, cells) for name, (one, cells, _) in self.batch.items()})
        shares = shares_in(self.linked, every, self.protection.sensitive)
        return prove(
            self.known,
            self.withheld,
            self.protection,
            readers=self.knows_contributors,
            shares=shares,
            before=self.linked.system,
        )

    @property
    def knows_contributors(self) -> bool:
        """Whether the method claims to hold against single contributors."""
        return all(one.method.against_contributors for one, _, _ in self.batch.values())

    @property
    def pairs(self) -> Integers:
        """Sensitive cells with the contributors who know them too well."""
        return self.proof.pairs

    @property
    def shown(self) -> Shown:
        """The same as one release of several."""
        return Shown(system=self.known, withheld=self.withheld, protection=self.protection)


def _possible(protection: Protection, linked: Linked, batch: Published) -> Protection:
    """The same, with nothing asked below the least number that is not zero, in whole units, where zeros are told."""
    down = protection.down.copy()
    for name, (one, cells, answer) in batch.items():
        if "low" in answer.columns and one.method.zeros == "published":
            at, parts = linked.places[name], cells[ABOUT_PARTS]
            inside = at >= 0
            most = np.maximum(cells["exact"] - (parts - parts // 2), 0)
            down[at[inside]] = np.minimum(down[at[inside]], most[inside])
    return replace(protection, down=down)


def findings(
    batch: Published, earlier: Published, change: float, releases: Sequence[Collection[str]] = ()
) -> JointFindings | None:
    """Everything about tables of true numbers together; None where no cell can be sensitive."""
    if any(one.question.merged for one, _, _ in batch.values()):
        return merged_findings(batch, earlier, change, releases)
    if not _have_rules(batch):
        return None
    seen = Seen.of(batch)
    return JointFindings(
        heading="All true numbers together",
        caption="What readers work out of sensitive cells, of cells that are not shown, and by subtraction",
        guess="right without it",
        attacks=(*attacks(seen), *(between_periods(seen, Seen.of(earlier), change) if _have_rules(earlier) else ())),
        reasons=tuple(_reasons(seen)),
        columns=cell_columns(seen),
        note="Rules are about bounds of sensitive cells. None forbids that the mean of random tables comes near, or "
        "that a cell which is not sensitive is told: these figures say what is left to guess.",
    )


def _have_rules(batch: Published) -> bool:
    """Whether there is anything to find in single tables: cells may be sensitive, and codes are not merged."""
    tables = [one for one, _, _ in batch.values()]
    return any(one.method.has_rules for one in tables) and not any(one.question.merged for one in tables)


def _reasons(seen: Seen) -> Iterator[tuple[str, str, str]]:
    """Every table with every reason why cells of it are sensitive, at which level of unit, and how many are."""
    tables = {name: (one, cells) for name, (one, cells, _) in seen.batch.items()}
    for name, (one, cells) in with_differences_of(tables).items():
        title = one.title if name in tables else f"{name}: a difference that no table shows"
        for words, flags in reasons_of(one, cells):
            if bool(flags.any()):
                yield title, words, f"{int(flags.sum()):,}"


def cell_columns(seen: Seen) -> dict[str, dict[str, Any]]:
    """Of every cell why it is sensitive, and the bounds that a reader can work out, in whole units."""
    low, high = seen.bounds
    found = {}
    for name, (one, cells, _) in seen.batch.items():
        at, parts = seen.linked.places[name], cells[ABOUT_PARTS]
        why = [(words, flags & (at >= 0)) for words, flags in reasons_of(one, cells)]
        # A cell that is in no equation has the last place, which is added: there may be no other.
        ends = [np.where(at >= 0, np.append(end, 0.0)[at], cells["exact"]) / parts for end in (low, high)]
        found[name] = {
            "sensitive": ["; ".join(words for words, flags in why if flags[cell]) for cell in range(len(cells))],
            "reader_low": ends[0],
            "reader_high": ends[1],
        }
    return found


def attacks(seen: Seen) -> tuple[AttackResult, ...]:
    """The attacks of readers outside, of single contributors and holdings, by subtraction, and by random tables."""
    sensitive, withheld = seen.protection.sensitive, seen.withheld & ~seen.unshown
    low, high = seen.bounds
    targets = sensitive & ~seen.unshown
    exact = withheld & (high - low < 1e-6)
    found = [
        _result("linear program (bounds closer than the rules allow)", targets, targets & seen.proof.unprotected),
        _result("linear program (exact value of a cell that is not shown)", withheld, exact),
    ]
    if seen.knows_contributors:
        known = np.zeros(len(sensitive), dtype=bool)
        known[seen.pairs[:, 0]] = True
        found.append(_result("lone contributor or holding (bounds closer than the rules allow)", sensitive, known))
    if any(one.question.where for one, _, _ in seen.batch.values()):
        found.append(_by_filters(seen))
    return (*found, _by_points(seen, low, high))


def _by_filters(seen: Seen) -> AttackResult:
    """What filtered tables tell beside wider ones: cells that none shows, and cells that each alone protects."""
    told = seen.proof.unprotected & seen.protection.sensitive
    if bool((told & ~seen.unshown).any()):  # what a table tells by itself is no difference
        for name, one in seen.batch.items():
            alone = Seen.of({name: one})
            at, own = seen.linked.places[name], alone.linked.places[name]
            inside = (at >= 0) & (own >= 0)
            told[at[inside]] &= ~alone.proof.unprotected[own[inside]]
    return _result("differencing between filters (bounds closer than the rules allow)", seen.protection.sensitive, told)


def between_periods(now: Seen, then: Seen, change: float) -> tuple[AttackResult, ...]:
    """What readers work out of two periods who take it that no cell changed by more than so many percent.

    Only cells of which that is right are tied: a reader who is wrong about others learns nothing true of them.
    """
    one, other, most = _same_cells(then, now, change)
    both = between(then.shown, now.shown, (one, other), most_change=most)
    sensitive = np.concatenate([then.protection.sensitive, now.protection.sensitive, np.zeros(len(one), dtype=bool)])
    alone = np.concatenate([then.proof.unprotected, now.proof.unprotected, np.zeros(len(one), dtype=bool)])
    return (
        AttackResult(
            attack=f"two periods, cells that changed by at most {change:g} % (bounds closer than the rules allow)",
            targets=int(sensitive.sum()),
            successes=int((both.unprotected & sensitive).sum()),
            guessed=int((alone & sensitive).sum()),
        ),
    )


def _same_cells(then: Seen, now: Seen, change: float) -> tuple[Integers, Integers, Floats]:
    """The cells of tables of one name that changed by at most so much, and by how much they may have."""
    pairs, most = [np.zeros((2, 0), dtype=np.int64)], [np.zeros(0)]
    for name in sorted(now.batch.keys() & then.batch.keys()):
        if _asked(now.batch[name][0].question) != _asked(then.batch[name][0].question):
            continue
        cells, before = now.batch[name][1], then.batch[name][1]
        laid_out = before.with_column("_at", then.linked.places[name]).laid_out(cells.dimensions)
        _, here, there = np.intersect1d(cells.positions, laid_out.positions, assume_unique=True, return_indices=True)
        first, second = laid_out["_at"][there], now.linked.places[name][here]
        inside = (first >= 0) & (second >= 0)
        first, second = first[inside], second[inside]
        limit = change / 100 * then.known.value[first]
        right = np.abs(now.known.value[second] - then.known.value[first]) <= limit
        pairs.append(np.stack([first[right], second[right]]))
        most.append(limit[right])
    every, first_of = np.unique(np.concatenate(pairs, axis=1), axis=1, return_index=True)
    return every[0], every[1], np.concatenate(most)[first_of]


def _asked(question: Any) -> object:
    """What a table is about, in whatever order it is written."""
    by = {one.name: frozenset(one.codes) for one in question.by}
    return by, {name: frozenset(codes) for name, codes in question.where.items()}, question.measure


def _result(words: str, targets: Flags, successes: Flags) -> AttackResult:
    return AttackResult(attack=words, targets=int(targets.sum()), successes=int(successes.sum()), guessed=0)


def _by_points(seen: Seen, low: Floats, high: Floats) -> AttackResult:
    """The mean of random tables that agree with all that is published, beside the middle of the bounds."""
    sensitive = seen.protection.sensitive & ~seen.unshown
    number = np.arange(1, _STEPS + 1)
    even = np.stack([number * step % 1.0 for step in _GOLDEN], axis=1).reshape(-1)
    walk = points(seen.known, seen.proof.pieces, steps=_STEPS, uniform=lambda n: even[:n])
    true = seen.known.value[sensitive]
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
