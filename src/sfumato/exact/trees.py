"""Trees of codes: all levels of one attribute, with "total" as the root."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.arrays import Flags, Integers
from sfumato.frame.levels import TOTAL

ROOT = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Tree:
    """The codes of one attribute at all its levels; node 0 is the total.

    >>> industry = Tree.of("industry", {"sector": ["A", "B"], "branch": ["a1", "a2", "b1"]},
    ...                    above=[("branch", "sector", {"a1": "A", "a2": "A", "b1": "B"})])
    >>> industry.nodes("branch", ["total", "a1", "b1"]).tolist()
    [0, 3, 5]
    >>> [(above.tolist(), below.tolist()) for above, below in industry.sums(industry.nodes("sector", ["A", "B"]))]
    [([0, 0], [1, 2])]
    """

    name: str
    codes: tuple[tuple[str, str], ...]
    """Every node's level and code."""
    parents: tuple[Integers, ...]
    """Every node's parent, or −1; one array for each hierarchy over the same codes."""

    def __post_init__(self) -> None:
        if self.codes[ROOT] != (TOTAL, TOTAL):
            raise ValueError(f"node 0 of tree {self.name!r} is the total")
        for parents in self.parents:
            if len(parents) != len(self.codes) or parents[ROOT] != -1:
                raise ValueError(f"tree {self.name!r} has one parent a node, and none for the total")

    @classmethod
    def of(
        cls,
        name: str,
        levels: Mapping[str, Sequence[str]],
        above: Sequence[tuple[str, str, Mapping[str, str]]] = (),
    ) -> "Tree":
        """A tree of the codes of each level, and of which code of a coarser level each code of a finer one lies in.

        A level that lies in no other lies under the total. One that lies in two coarser levels makes two hierarchies.
        """
        codes = ((TOTAL, TOTAL), *((level, code) for level, listed in levels.items() for code in listed))
        place = {code: node for node, code in enumerate(codes)}
        hierarchies = []
        for chain in _chains(levels, above):
            parents = np.full(len(codes), -1, dtype=np.int64)
            for fine, coarse, lies in chain:
                nodes = [place[fine, code] for code in levels[fine]]
                parents[nodes] = [place[coarse, lies[code]] if coarse != TOTAL else ROOT for code in levels[fine]]
            hierarchies.append(parents)
        return cls(name=name, codes=codes, parents=tuple(hierarchies))

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def _places(self) -> Mapping[tuple[str, str], int]:
        return {code: node for node, code in enumerate(self.codes)}

    def nodes(self, level: str, codes: Sequence[str]) -> Integers:
        """The nodes of codes of one level, "total" being the root."""
        found = [
            ROOT if code == TOTAL and (level, code) not in self._places else self._places[level, code] for code in codes
        ]
        return np.array(found, dtype=np.int64)

    @cached_property
    def leaves(self) -> tuple[Integers, ...]:
        """How many of the finest codes lie in each node, in each hierarchy; 0 for a node that is not part of it."""
        found = []
        for parents in self.parents:
            depth, at = np.zeros(len(self), dtype=np.int64), parents
            while bool(np.any(at >= 0)):
                depth += at >= 0
                at = np.where(at >= 0, parents[at], -1)
            counted = (depth == depth.max()).astype(np.int64)  # the finest codes: a hierarchy has whole levels
            for deep in range(int(depth.max()), 0, -1):
                nodes = np.flatnonzero(depth == deep)
                np.add.at(counted, parents[nodes], counted[nodes])
            found.append(counted)
        return tuple(found)

    def sums(self, axis: Integers) -> Iterator[tuple[Integers, Integers]]:
        """Pairs of a node and one of its parts on an axis, whose parts on the axis are all there is of it.

        Parts are the nearest nodes below on the axis; one set of pairs for each hierarchy.
        """
        on = self._flags(axis)
        for parents, leaves in zip(self.parents, self.leaves, strict=True):
            above, below = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
            part, at = axis, parents[axis]
            while len(part := part[at >= 0]):
                at = at[at >= 0]
                above.append(at)
                below.append(part)
                part, at = part[~on[at]], parents[at[~on[at]]]
            over, under = np.concatenate(above), np.concatenate(below)
            whole = np.bincount(over, weights=leaves[under], minlength=len(self)) == leaves
            if bool(whole[over].any()):
                yield over[whole[over]], under[whole[over]]

    def finest(self, axis: Integers) -> Integers:
        """The nodes of an axis with no other one below them."""
        on, over = self._flags(axis), np.zeros(len(self), dtype=bool)
        for parents in self.parents:
            at = parents[axis]
            while len(at := at[at >= 0]):
                over[at] = True
                at = parents[at]
        return np.flatnonzero(on & ~over)

    def nearest(self, axis: Integers) -> Integers:
        """For every node the node of an axis that it is or lies in, or −1."""
        on, found = self._flags(axis), np.full(len(self), -1, dtype=np.int64)
        for parents in self.parents:
            nodes = np.flatnonzero(found < 0)
            at = nodes.copy()
            while len(nodes):
                met = on[at]
                found[nodes[met]] = at[met]
                nodes, at = nodes[~met], parents[at[~met]]
                nodes, at = nodes[at >= 0], at[at >= 0]
        return found

    def common(self, one: Integers, other: Integers) -> Integers | None:
        """The finest axis whose nodes are sums of nodes of either, or None."""
        fine, coarse = self.finest(one), self.finest(other)
        for parts, wholes in ((fine, coarse), (coarse, fine)):
            lies = self.nearest(wholes)[parts]
            if bool(np.all(lies >= 0)) or bool(np.isin(wholes, parts).all()):
                shared = self._within(parts, wholes)
                if len(shared):
                    return shared
        if all(len(self._made_up(cut, np.zeros_like(cut))) for cut in (fine, coarse)):
            return np.array([ROOT], dtype=np.int64)
        some = [self._within(fine, coarse), self._within(coarse, fine)]  # one of them is of a part of all codes
        return np.union1d(*some) if any(map(len, some)) else None

    def _within(self, parts: Integers, wholes: Integers) -> Integers:
        """Of some nodes those that are sums of parts."""
        lies = self.nearest(wholes)[parts]
        return self._made_up(parts[lies >= 0], lies[lies >= 0])

    def _made_up(self, parts: Integers, wholes: Integers) -> Integers:
        """Of some nodes those whose parts are all there."""
        met = np.zeros(len(self), dtype=bool)
        for leaves in self.leaves:
            met |= (np.bincount(wholes, weights=leaves[parts], minlength=len(self)) == leaves) & (leaves > 0)
        return np.flatnonzero(met & self._flags(wholes))

    def _flags(self, nodes: Integers) -> Flags:
        flags = np.zeros(len(self), dtype=bool)
        flags[nodes] = True
        return flags


def _chains(
    levels: Mapping[str, Sequence[str]], above: Sequence[tuple[str, str, Mapping[str, str]]]
) -> list[list[tuple[str, str, Mapping[str, str]]]]:
    """Every way from a finest level to the total, as steps from a level to a coarser one."""
    coarse = {step[1] for step in above}

    def ways(level: str) -> list[list[tuple[str, str, Mapping[str, str]]]]:
        steps = [step for step in above if step[0] == level]
        return [[step, *rest] for step in steps for rest in ways(step[1])] or [[(level, TOTAL, {})]]

    return [way for level in levels if level not in coarse for way in ways(level)]
