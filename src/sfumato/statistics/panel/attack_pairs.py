"""Attacks on flows and graphs: cells that hold the factor of one employer alone."""

from dataclasses import dataclass, replace

import numpy as np

from sfumato.arrays import Flags, Integers
from sfumato.cells import Cells
from sfumato.measures.attacks import AttackResult, growth_attack, shape_attack, size_attack
from sfumato.noise.factors import ONE, WHOLE_NUMBERS
from sfumato.statistics.panel.attacks import MOST_TARGETS, chance_fit, factors_within, threshold_fit
from sfumato.statistics.panel.question import PairQuestion

# A pair of classes with one edge, such as two places with one employer each, has one factor in all its cells, periods
# and, directed, ways. The reader is granted to know which pairs of classes these are: a register of employers tells.


@dataclass(frozen=True, kw_only=True, eq=False)
class _Blocks:
    """The cells of every pair of classes, by period and by what else divides them, as arrays of three dimensions."""

    published: Integers
    true: Integers
    """Both are 0 where nothing is published: readers use the cells that they see."""
    alone: Flags
    """By pair of classes: whether all its cells hold one factor, the same one."""
    factor: Integers
    """That factor, in millionths."""
    back: Integers
    """By pair of classes: the place of the pair the other way round; itself where there is no direction."""

    @classmethod
    def of(cls, question: PairQuestion, counted: Cells, answer: Cells, *, period: str) -> "_Blocks":
        ends = len(question.attributes)
        others = question.by[2 * ends :]
        sizes = tuple(map(len, others))
        at = question.others.index(period) if period in question.others else None

        def blocks(column: Integers) -> Integers:
            shaped = column.reshape(-1, *sizes)
            shaped = shaped[:, None] if at is None else np.moveaxis(shaped, 1 + at, 1)
            return shaped.reshape(shaped.shape[0], shaped.shape[1], -1)

        count, factors = counted["count"], counted["factors"]
        sums = counted["distorted"] + counted["remainder"] / ONE
        own = np.rint(np.divide(sums * ONE, count, out=np.zeros(len(count)), where=count > 0)).astype(np.int64)
        filled, several = blocks(count) > 0, (blocks(factors) > 1).any(axis=(1, 2))
        least = np.where(filled, blocks(own), np.iinfo(np.int64).max).min(axis=(1, 2))
        most = np.where(filled, blocks(own), 0).max(axis=(1, 2))
        seen = answer["status"] == 0
        classes = question.classes
        there = np.arange(len(least), dtype=np.int64)
        return cls(
            published=blocks(np.where(seen, answer["value"], 0)),
            true=blocks(np.where(seen, count, 0)),
            alone=(least == most) & ~several,
            factor=most,
            back=there.reshape(classes, classes).T.ravel() if question.directed else there,
        )


def attack_pairs(
    question: PairQuestion, counted: Cells, answer: Cells, *, period: str, base: int, within: tuple[int, int]
) -> tuple[AttackResult, ...]:
    """Run every attack that a table of flows or of a graph allows.

    Shares of workers' classes, growth from a period to the next, the ratio of moves there and back, and everything once
    one true figure is known: one factor cancels in all of them. `factor` looks for the factor itself in the lattice
    that rounded values leave; `base` is what they are rounded to, and `within` the ends of factors, in millionths,
    which the reader is granted.
    """
    found = _Blocks.of(question, counted, answer, period=period)
    _, periods, classes = found.published.shape
    results = []
    if classes > 1:
        results.append(_shape(found, base))
    if periods > 1:
        results.append(_growth(found, base))
    if question.directed:
        results.append(_there_and_back(found, base))
    if periods * classes > 1:
        results += [_size(found, base), _factors(found, base, within)]
    return tuple(results)


def _shape(found: _Blocks, base: int) -> AttackResult:
    """The shares of classes of workers among those who link one pair, in every period."""
    classes = found.published.shape[2]
    return shape_attack(
        published=found.published.reshape(-1, classes),
        establishments=np.repeat(found.alone, found.published.shape[1]),
        true=found.true.reshape(-1, classes),
        rounding=base,
    )


def _growth(found: _Blocks, base: int) -> AttackResult:
    """The change of one pair from a period to the next, where both are published."""
    both = (found.published[:, :-1] > 0) & (found.published[:, 1:] > 0)
    classes = found.published.shape[2]
    before, after, true_before, true_after = (
        np.where(both, table, 0).reshape(-1, classes)
        for table in (found.published[:, :-1], found.published[:, 1:], found.true[:, :-1], found.true[:, 1:])
    )
    return growth_attack(
        before=before,
        after=after,
        establishments=np.repeat(found.alone, both.shape[1]),
        true_before=true_before,
        true_after=true_after,
        rounding=base,
    )


def _there_and_back(found: _Blocks, base: int) -> AttackResult:
    """How many of those who moved between two employers moved one way: both ways take the same factor."""
    there = np.arange(len(found.alone))
    chosen = (there < found.back) & found.alone & found.alone[found.back] & (found.factor == found.factor[found.back])
    back = found.back[chosen]
    published, true = (
        np.stack([table[chosen].ravel(), table[back].ravel()], axis=1) for table in (found.published, found.true)
    )
    both = published.min(axis=1, initial=np.iinfo(np.int64).max) > 0
    ones = np.ones(int(both.sum()), dtype=np.int64)
    result = shape_attack(published=published[both], establishments=ones, true=true[both], rounding=base)
    return replace(result, attack="there and back")


def _size(found: _Blocks, base: int) -> AttackResult:
    """Every figure of a pair from its largest one, which the reader knows."""
    published, true = (table.reshape(len(found.alone), -1) for table in (found.published, found.true))
    known = published.argmax(axis=1)
    return size_attack(
        published=published,
        establishments=found.alone.astype(np.int64),
        known_column=known,
        known_count=true[np.arange(len(true)), known],
        true=true,
        rounding=base,
    )


def _factors(found: _Blocks, base: int, within: tuple[int, int]) -> AttackResult:
    """The exact factor of a pair, from how its published values, both ways, lie on the lattice of multiples of it."""
    there, same = np.arange(len(found.alone)), found.alone & found.alone[found.back]
    same &= found.factor == found.factor[found.back]
    chosen = np.flatnonzero(found.alone & (~same | (there <= found.back)))
    values = []
    for at in chosen:
        both = found.published[[at, found.back[at]] if same[at] else [at]]
        values.append(np.unique(both[both > 0]))
    most = sorted(range(len(values)), key=lambda place: -len(values[place]))[:MOST_TARGETS]
    targets = [place for place in most if len(values[place])]
    candidates, true = factors_within(*within), found.factor[chosen]
    hits = 0
    for place in targets:
        whole = base == WHOLE_NUMBERS
        fit = chance_fit(values[place], candidates) if whole else threshold_fit(values[place], candidates, base)
        hits += int(candidates[fit.argmax()] == true[place])
    return AttackResult(attack="factor", targets=len(targets), successes=hits, guessed=0)
