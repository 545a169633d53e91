"""What readers work out of coarsened tables about cells that none of them shows: confidential.

What tables show is read off their answers, cell by cell: those of a release that was made without knowing of another
may have other groups, and the system of all has the cells of their common refinement.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from sfumato.arrays import Flags, Integers
from sfumato.cells import Cells
from sfumato.exact.attacks import Shown, between
from sfumato.exact.intervals import Intervals
from sfumato.exact.refinement import Layer, Refinement, refinement
from sfumato.exact.rules import Reason
from sfumato.measures.attacks import AttackResult, JointFindings, pooled
from sfumato.statistics.exact.coarsened import OfMeasure
from sfumato.statistics.exact.decide import Known

_FORBIDDEN = "(bounds closer than the rules allow)"


@dataclass(frozen=True, kw_only=True, eq=False)
class SeenGroups:
    """All coarsened tables of a measure as readers see them."""

    batch: Known
    of: OfMeasure
    nodes: tuple[Integers, ...]
    """In every tree those by which cells are told apart."""
    layers: tuple[Layer, ...]
    found: Refinement

    @classmethod
    def of_tables(cls, batch: Known, more: Mapping[str, Integers] | None = None) -> "SeenGroups":
        """Tables with their true cells and answers; nodes of trees may tell more cells apart than they show."""
        of = OfMeasure.of({name: (one, cells) for name, (one, cells, _) in batch.items()})
        none = np.zeros(0, dtype=np.int64)
        nodes = [[(more or {}).get(name, none)] for name in of.trees]
        layers: list[Layer] = []
        for name, (_, _, answer) in batch.items():
            layers += _layers(of, name, answer)
            shown = _nodes(of, answer)
            for place, tree in enumerate(of.trees):
                nodes[place].append(shown.get(tree, none))
        every = tuple(np.unique(np.concatenate(some)) for some in nodes)
        return cls(
            batch=batch,
            of=of,
            nodes=every,
            layers=tuple(layers),
            found=refinement(of.programme, every, layers, of.rules),
        )

    @cached_property
    def told(self) -> Intervals:
        """What all tables together tell of sensitive cells."""
        return self.found.told()

    def told_apart_only(self, parts: Sequence[Collection[str]]) -> Flags:
        """Which sensitive cells all tables together tell, and those of no part by themselves."""
        told = self.told.too_narrow.copy()
        if len(parts) > 1 and bool(told.any()):
            for names in parts:
                some = [place for place, one in enumerate(self.layers) if one.table in names]
                told &= ~self.found.told(some).too_narrow
            return told
        return np.zeros_like(told)

    def by_filter(self) -> list[list[str]]:
        """The tables with the same filter."""
        found: dict[frozenset[tuple[str, frozenset[str]]], list[str]] = {}
        for name in self.batch:
            found.setdefault(_filter(self, name), []).append(name)
        return list(found.values())


def merged_findings(
    batch: Known, earlier: Known, change: float, releases: Sequence[Collection[str]] = ()
) -> JointFindings:
    """Everything about coarsened tables together, of one or several releases, and those of another period."""
    tried: dict[str, list[AttackResult]] = {}
    reasons: list[tuple[str, str, str]] = []
    for measure in dict.fromkeys(one.question.measure for one, _, _ in batch.values()):
        seen = SeenGroups.of_tables(_of_measure(batch, measure))
        reasons += _reasons(seen)
        before = _of_measure(earlier, measure)
        periods = between_periods(seen, SeenGroups.of_tables(before), change) if before else None
        for one in (*attacks(seen, releases), *([] if periods is None else [periods])):
            tried.setdefault(one.attack, []).append(one)
    return JointFindings(
        heading="All true numbers together",
        caption="What readers work out of sensitive cells that no table shows, where groups or filters differ",
        guess="right without it",
        attacks=tuple(pooled(some) for some in tried.values()),
        reasons=tuple(reasons),
    )


def attacks(seen: SeenGroups, releases: Sequence[Collection[str]] = ()) -> tuple[AttackResult, ...]:
    """The attacks of readers of all tables, by subtracting filtered ones, and by subtracting whole releases."""
    told = seen.told
    exact = told.too_narrow & (told.high - told.low < 1e-6)
    found = [
        _result(f"linear program {_FORBIDDEN}", told.too_narrow),
        _result("linear program (exact value of a sensitive cell)", exact),
    ]
    if any(one.question.where for one, _, _ in seen.batch.values()):
        found.append(_result(f"differencing between filters {_FORBIDDEN}", seen.told_apart_only(seen.by_filter())))
    if len(releases) > 1:
        found.append(_result(f"differencing between coarsened releases {_FORBIDDEN}", seen.told_apart_only(releases)))
    return tuple(found)


def between_periods(now: SeenGroups, then: SeenGroups, change: float) -> AttackResult | None:
    """What readers work out of two periods who take it that no cell changed by more than so many percent.

    Cells are those that the groups of both periods tell apart; only those are tied of which that is right. None where
    periods have other codes or filters.
    """
    if not _comparable(now, then):
        return None
    both = [
        SeenGroups.of_tables(one.batch, dict(zip(other.of.trees, other.nodes, strict=True)))
        for one, other in ((then, now), (now, then))
    ]
    pairs = np.concatenate([np.zeros((2, 0), dtype=np.int64), *_same_cells(*both)], axis=1)
    first, second = (one.found for one in both)
    limit = change / 100 * first.system.value[pairs[0]]
    right = np.abs(second.system.value[pairs[1]] - first.system.value[pairs[0]]) <= limit
    one, other = pairs[:, right]
    shown = [Shown(system=f.system, withheld=~f.system.fixed, protection=f.protection) for f in (first, second)]
    proof = between(shown[0], shown[1], (one, other), most_change=limit[right])
    cells = np.concatenate([first.cells, len(first.system) + second.cells])
    return AttackResult(
        attack=f"two periods, cells that changed by at most {change:g} % {_FORBIDDEN}",
        targets=len(cells),
        successes=int(proof.unprotected[cells].sum()),
        guessed=sum(int(seen.told.too_narrow.sum()) for seen in both),
    )


def _of_measure(batch: Known, measure: str | None) -> Known:
    return {name: one for name, one in batch.items() if one[0].question.measure == measure and one[0].question.merged}


def _result(words: str, told: Flags) -> AttackResult:
    return AttackResult(attack=words, targets=len(told), successes=int(told.sum()), guessed=0)


def _places(of: OfMeasure, answer: Cells) -> dict[str, Integers]:
    """Of every dimension, the place of each node of its tree among the codes."""
    return {
        one.name: np.array([one.places[code] for _, code in of.trees[one.name].codes], dtype=np.int64)
        for one in answer.dimensions
    }


def _nodes(of: OfMeasure, answer: Cells) -> dict[str, Integers]:
    """Of every dimension, the nodes that any cell is shown of."""
    shown = answer["status"] == 0
    return {
        name: np.flatnonzero(np.isin(places, answer.codes(name)[shown])) for name, places in _places(of, answer).items()
    }


def _layers(of: OfMeasure, name: str, answer: Cells) -> Iterator[Layer]:
    """The cells that a table shows, by the depths of their codes: those of one depth have no record in common."""
    shown = np.zeros(prod(map(len, answer.dimensions)), dtype=bool)
    shown[answer.positions] = answer["status"] == 0
    places, trees = _places(of, answer), list(of.trees)
    for rows in product(*(of.programme.above[trees.index(one.name)] for one in answer.dimensions)):
        mine, at = of.about[name].copy(), np.zeros(len(of.programme.value), dtype=np.int64)
        for one, row in zip(answer.dimensions, rows, strict=True):
            mine &= row >= 0
            at = at * len(one) + places[one.name][row]
        mine &= shown[at]
        if bool(mine.any()):
            yield Layer(table=name, records=mine, cell=np.unique(at[mine], return_inverse=True)[1])


def _filter(seen: SeenGroups, name: str) -> frozenset[tuple[str, frozenset[str]]]:
    """What a table is about, in whatever order it is written."""
    where = seen.batch[name][0].question.where
    return frozenset((one, frozenset(codes)) for one, codes in where.items())


def _filters(seen: SeenGroups) -> dict[frozenset[tuple[str, frozenset[str]]], Flags]:
    """Every filter, and the records that it keeps."""
    return {_filter(seen, name): seen.of.about[name] for name in seen.batch}


def _comparable(now: SeenGroups, then: SeenGroups) -> bool:
    """Whether two periods have the same codes, filters and parts of a unit."""
    one, other = now.of, then.of
    return (
        one.trees.keys() == other.trees.keys()
        and all(
            tree.codes == other.trees[name].codes and np.array_equal(tree.parents[0], other.trees[name].parents[0])
            for name, tree in one.trees.items()
        )
        and _filters(now).keys() == _filters(then).keys()
        and one.parts.parts == other.parts.parts
    )


def _same_cells(then: SeenGroups, now: SeenGroups) -> Iterator[Integers]:
    """Pairs of cells that two periods tell apart alike, by what tables of both are by."""
    earlier = {frozenset(by): by for by in then.found.fine}
    for by in now.found.fine:
        if (other := earlier.get(frozenset(by))) is not None:
            first, second = _keys(then, other), _keys(now, by)
            same = [key for key in second if key in first]
            yield np.array([[first[key] for key in same], [second[key] for key in same]], dtype=np.int64)


def _keys(seen: SeenGroups, by: tuple[str, ...]) -> dict[tuple[int, ...], int]:
    """The place of every cell in the system, by its nodes and the filters that keep it."""
    begin, cell = seen.found.fine[by]
    first = np.unique(cell, return_index=True)[1]
    trees, columns = list(seen.of.trees), []
    for name in sorted(by):
        place = trees.index(name)
        near = seen.of.trees[name].nearest(np.union1d(seen.nodes[place], [0]))
        columns.append(near[seen.of.programme.nodes[place][first]])
    kept = sorted(_filters(seen).items(), key=lambda one: sorted((name, sorted(codes)) for name, codes in one[0]))
    columns += [about[first].astype(np.int64) for _, about in kept]
    listed = np.stack(columns, axis=1).tolist() if columns else [[]] * len(first)
    return {tuple(key): begin + at for at, key in enumerate(listed)}


def _reasons(seen: SeenGroups) -> Iterator[tuple[str, str, str]]:
    """Why cells are sensitive that groups and filters tell apart and no table shows, by what they are by."""
    for at, by in enumerate(seen.of.programme.tables.values()):
        mine = seen.found.reasons[seen.found.table == at]
        for reason in Reason:
            if number := int((mine & reason > 0).sum()):
                title = f"by {', '.join(by) or 'nothing'}: what groups and filters tell apart"
                yield title, reason.words, f"{number:,}"
