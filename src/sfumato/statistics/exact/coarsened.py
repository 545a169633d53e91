"""Codes merged upwards until no cell of any table is sensitive: the same groups in all tables of a measure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, permutations, product
from math import prod

import numpy as np

from sfumato.arrays import Flags, Integers
from sfumato.cells import Cells, places
from sfumato.errors import MethodError
from sfumato.exact.coarsening import Cuts, Programme, by_value, coarsen, each_cell
from sfumato.exact.refinement import told_together
from sfumato.exact.rules import Contributions, Protection, Rules
from sfumato.exact.trees import ROOT, Tree
from sfumato.keys import Secret
from sfumato.method import NOT_AVAILABLE
from sfumato.statistic import Busy
from sfumato.statistics.exact.contributions import Parts
from sfumato.statistics.exact.decide import Batch, Decision, Known, part_of, refuse_other_levels, rules_of
from sfumato.statistics.exact.question import ExactQuestion


def coarsened(
    batch: Batch,
    known: Known,
    secret: Secret | None,  # noqa: ARG001 (there is no chance)
    busy: Busy,
    last: Mapping[str, Cells],  # noqa: ARG001 (groups are as fine as they can be)
) -> Decision:
    """Merge codes of the tables of every measure; others share no sum with them."""
    every: Batch = {**batch, **{name: (one, cells) for name, (one, cells, _) in known.items()}}
    refuse_other_levels(every)
    answers: dict[str, Cells] = {}
    measures = dict.fromkeys(one.question.measure for one, _ in every.values())
    for at, measure in enumerate(measures):
        answers |= _of_measure(
            {n: one for n, one in every.items() if one[0].question.measure == measure},
            part_of(busy, "merging", at, len(measures)),
        )
    other = [name for name, (one, _, answer) in known.items() if not answers[name].laid_out(one.by).equals(answer)]
    if other:
        raise MethodError(
            "coarsening",
            expected="the groups that were published before: others beside them can be subtracted",
            found=f"other groups in {', '.join(other)}, so that new tables pass the rules",
            do="leave out new tables that need coarser groups, or publish them by other attributes",
        )
    return Decision(answers={name: answers[name] for name in batch})


@dataclass(frozen=True)
class JointRules:
    """The rules of all tables, at once."""

    every: tuple[Rules, ...]

    @property
    def top(self) -> int:
        """How many of the largest contributions any of them looks at together."""
        return max(rule.top for rule in self.every)

    def protection(self, of: Contributions) -> Protection:
        """What any rule asks for."""
        return Protection.joined([rule.protection(of) for rule in dict.fromkeys(self.every)])


@dataclass(frozen=True, kw_only=True, eq=False)
class OfMeasure:
    """The tables of one measure, and what units have in the finest cells of all of them."""

    programme: Programme
    rules: JointRules
    trees: Mapping[str, Tree]
    parts: Parts
    about: Mapping[str, Flags]
    """The records that each table is about."""

    @classmethod
    def of(cls, batch: Batch) -> "OfMeasure":
        """Tables with their true cells, which have codes of all levels."""
        first, cells = next(iter(batch.values()))
        joint = cells.joint
        if joint is None:
            raise ValueError("codes are merged over the finest cells of all tables")
        (dimensions, parts), questions = joint, {name: one.question for name, (one, _) in batch.items()}
        named = {one.name for question in questions.values() for one in question.by}
        trees = {one.name: _tree(one.name, questions.values()) for one in dimensions if one.name in named}
        codelists = {one.name: one.codes for one in dimensions}
        codes = dict(zip([one.name for one in dimensions], places(parts.at, dimensions), strict=True))
        rules = JointRules(
            tuple(
                rule
                for one, _ in batch.values()
                for rule in rules_of(one.method, count=one.question.measure is None, parts=parts.parts)
            )
        )
        about = {name: _about(one, codes, codelists) for name, one in questions.items()}
        published = {name: by for one, question in questions.items() for name, by in _tables(one, question).items()}
        programme = Programme(
            trees=tuple(trees.values()),
            nodes=tuple(tree.nodes(name, codelists[name])[codes[name]] for name, tree in trees.items()),
            unit=parts.units[parts.ranks.index(max(parts.ranks))] if parts.ranks else parts.units[-1],
            value=parts.value.astype(np.float64),
            contribution=None if parts.contribution is None else parts.contribution.astype(np.float64),
            tables={name: by for name, (_, by) in published.items()},
            only={name: mine for name, (one, _) in published.items() if not (mine := about[one]).all()},
            weights={name: float(name in questions) for name in published},
            least=0.0 if bool(np.any((parts.value > 0) & (parts.value < parts.parts))) else float(parts.parts),
            top=rules.top,
            passes=lambda of: ~rules.protection(of).sensitive,
            tells=by_value if first.method.cost == "value" else each_cell,
        )
        return cls(programme=programme, rules=rules, trees=trees, parts=parts, about=about)


def _of_measure(batch: Batch, told: Callable[[float], None]) -> dict[str, Cells]:
    _refuse_other_costs(batch)
    _refuse_crossing_levels(batch)
    of = OfMeasure.of(batch)
    _refuse_crossing_units(of.parts)
    found = _proved(of.programme, of.rules, told)
    if found is None:
        raise MethodError(
            "coarsening",
            expected="groups of codes at which no cell is sensitive",
            found="none, not even all together",
            do="weaken the rules, or publish fewer attributes"
            + (", or leave out filtered tables: what is beside them follows too" if of.programme.only else ""),
        )
    groups = {
        name: _Groups(tree=tree, cut=_with_empty(tree, cut), nodes=nodes)
        for (name, tree), cut, nodes in zip(of.trees.items(), found.nodes, of.programme.nodes, strict=True)
    }
    return {name: _answer(one.question, groups, of.parts, of.about[name]) for name, (one, _) in batch.items()}


def _refuse_other_costs(batch: Batch) -> None:
    """The same groups serve all tables of a measure, so they are chosen by one cost."""
    costs = {one.method.cost: name for name, (one, _) in batch.items()}
    if len(costs) > 1:
        raise MethodError(
            f"tables {', '.join(repr(name) for name in costs.values())}",
            expected="the same `cost` in all tables of a measure, which have the same groups",
            found=", ".join(f'cost = "{one}"' for one in costs),
            do="write the same `cost` in each of them",
        )


def _refuse_crossing_levels(batch: Batch) -> None:
    """Refuse tables by levels of the same two attributes: groups of each could be subtracted from those of the other.

    One may be fine where the other is coarse. Of one attribute alone, or beside the same others, the finer groups are
    all that both tell.
    """
    for (name, (one, _)), (beside, (other, _)) in combinations(batch.items(), 2):
        above, below = one.question.merged, other.question.merged
        pairs = [(a, b) for a, b in product(above, below) if a in below[b] or b in above[a]]
        if len(pairs) > 1:
            raise MethodError(
                f"tables '{name}' and '{beside}'",
                expected="at most one attribute of which they are by other levels: groups of two could be subtracted",
                found=" and ".join(f"{a} beside {b}" for a, b in pairs),
                do="publish both by the finer ones, whose codes are merged as far as the rules ask",
            )


def _refuse_crossing_units(parts: Parts) -> None:
    """Refuse units that lie in two of the largest ones: who passes the rules at the largest need not at others."""
    largest = parts.units[parts.ranks.index(max(parts.ranks))] if parts.ranks else parts.units[-1]
    for units in parts.units:
        if np.unique(np.stack([units, largest]), axis=1).shape[1] > len(np.unique(units)):
            raise MethodError(
                "coarsening",
                expected="units of which each lies in one of the largest: groups are judged by these",
                found="some that lie in several",
                do="name one chain of levels, or use suppression, which looks at every level",
            )


def _proved(programme: Programme, rules: JointRules, told: Callable[[float], None]) -> Cuts | None:
    """The best cuts at which tables about some of the records tell nothing sensitive beside the others.

    What two of them tell by subtraction has to pass. Where more of them together tell what is sensitive, everything has
    to pass that they tell apart.
    """
    if not programme.only:
        return coarsen(programme, told=told)
    found = coarsen(_with_differences(programme), told=lambda share: told(share / 2))
    if found is None or told_together(programme, [found], rules)[0].proved:
        return found
    return coarsen(_with_parts(programme), told=lambda share: told((1 + share) / 2))


def _with_empty(tree: Tree, cut: Integers) -> Integers:
    """A cut with the finest codes that it leaves out because they have no records: these are zeros like others."""
    inner = np.zeros(len(tree), dtype=bool)
    inner[tree.parents[0][tree.parents[0] >= 0]] = True
    return np.union1d(cut, np.flatnonzero(~inner & (tree.nearest(cut) < 0)))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Groups:
    """The groups of codes of an attribute, and the node of every record in its tree."""

    tree: Tree
    cut: Integers
    nodes: Integers

    @property
    def together(self) -> "_Groups":
        """All codes as one group."""
        return replace(self, cut=np.array([ROOT]))


def _about(question: ExactQuestion, codes: Mapping[str, Integers], codelists: Mapping[str, tuple[str, ...]]) -> Flags:
    """The records that a table is about."""
    mine = np.ones(len(next(iter(codes.values()))), dtype=bool)
    for name, kept in question.where.items():
        mine &= np.isin(codelists[name], kept)[codes[name]]
    return mine


def _tables(name: str, question: ExactQuestion) -> dict[str, tuple[str, tuple[str, ...]]]:
    """A table with its totals, which are published too: what each is part of, and the attributes it is by."""
    by = tuple(one.name for one in question.by)
    summed = [one for one in by if one != question.period] if question.margins else []
    found = {}
    for number in range(len(summed) + 1):
        for over in combinations(summed, number):
            key = f"{name} over {', '.join(over)}" if over else name
            found[key] = (name, tuple(one for one in by if one not in over))
    return found


def _with_differences(programme: Programme) -> Programme:
    """The same with what follows by subtraction: a table about some records beside one about more of them."""
    tables, only, weights = dict(programme.tables), dict(programme.only), dict(programme.weights)
    every, known = np.ones(len(programme.value), dtype=bool), set[tuple[bytes, tuple[str, ...]]]()
    for one, other in permutations(programme.tables, 2):
        more, fewer = (programme.only.get(name, every) for name in (one, other))
        if bool(np.any(more != fewer)) and not bool(np.any(fewer & ~more)):
            name, left = f"{one} without {other}", more & ~fewer
            by = tuple(by for by in programme.tables[one] if by in programme.tables[other])
            if (key := (left.tobytes(), by)) not in known:
                known.add(key)
                tables[name], only[name], weights[name] = by, left, 0.0
    return replace(programme, tables=tables, only=only, weights=weights)


def _tree(name: str, questions: Iterable[ExactQuestion]) -> Tree:
    """The tree of an attribute and the levels above it."""
    question = next(one for one in questions if name in one.merged)
    levels = question.merged[name]
    codes = {name: question.codes[name]}
    steps = []
    for fine, coarse in zip((name, *levels), levels, strict=False):
        above = question.above[fine, coarse]
        codes[coarse] = tuple(dict.fromkeys(above.values()))
        steps.append((fine, coarse, above))
    return Tree.of(name, codes, steps)


def _answer(
    question: ExactQuestion,
    groups: Mapping[str, _Groups],
    parts: Parts,
    about: Flags,
) -> Cells:
    """The true values of all combinations of merged codes, under the codes of all levels; others are not available."""
    by = question.by
    size = prod(map(len, by))
    sums, status = np.zeros(size, dtype=np.int64), np.full(size, NOT_AVAILABLE, dtype=np.int64)
    for _, kept in _tables("", question).values():
        at, chosen = np.zeros(int(about.sum()), dtype=np.int64), np.zeros(1, dtype=np.int64)
        for one in by:
            of = groups[one.name] if one.name in kept else groups[one.name].together
            place = {code: number for number, code in enumerate(one.codes)}
            published = np.array([place[code] for _, code in of.tree.codes], dtype=np.int64)
            at = at * len(one) + published[of.tree.nearest(of.cut)[of.nodes[about]]]
            chosen = (chosen[:, None] * len(one) + np.sort(published[of.cut])[None, :]).reshape(-1)
        sums[chosen] = 0  # a total that is a group of its own is the same cell
        np.add.at(sums, at, parts.value[about])
        status[chosen] = 0
    sums = (sums + parts.parts // 2) // parts.parts
    return Cells(dimensions=by, positions=np.arange(size, dtype=np.int64), columns={"value": sums, "status": status})


def _with_parts(programme: Programme) -> Programme:
    """The same with every part of the records that tables tell apart, by what each of them is by."""
    tables, only, weights = dict(programme.tables), dict(programme.only), dict(programme.weights)
    for part in np.unique(programme.pattern).tolist():
        for by in dict.fromkeys(programme.tables.values()):
            name = f"part {part} by {', '.join(by)}"
            tables[name], only[name], weights[name] = by, programme.pattern == part, 0.0
    return replace(programme, tables=tables, only=only, weights=weights)
