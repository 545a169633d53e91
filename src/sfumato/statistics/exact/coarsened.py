"""Codes merged upwards until no cell of any table is sensitive: the same groups in all tables of a measure."""

from collections.abc import Callable, Iterable, Mapping
from math import prod

import numpy as np

from sfumato.arrays import Flags, Integers
from sfumato.cells import Cells, Dimension, places
from sfumato.errors import MethodError
from sfumato.exact.coarsening import Programme, by_value, coarsen, each_cell
from sfumato.exact.rules import Contributions
from sfumato.exact.trees import Tree
from sfumato.keys import Secret
from sfumato.method import NOT_AVAILABLE
from sfumato.statistic import Busy
from sfumato.statistics.exact.decide import Batch, Decision, Known, rules_of
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
    answers: dict[str, Cells] = {}
    measures = dict.fromkeys(one.question.measure for one, _ in every.values())
    for at, measure in enumerate(measures):
        answers |= _of_measure(
            {n: one for n, one in every.items() if one[0].question.measure == measure},
            lambda share, done=at: busy("merging", (done + share) / len(measures)),
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


def _of_measure(batch: Batch, told: Callable[[float], None]) -> dict[str, Cells]:
    first, cells = next(iter(batch.values()))
    joint = cells.joint
    if joint is None:
        raise ValueError("codes are merged over the finest cells of all tables")
    (dimensions, parts), questions = joint, {name: one.question for name, (one, _) in batch.items()}
    trees = {one.name: _tree(one.name, questions.values()) for one in dimensions}
    codes = dict(zip([one.name for one in dimensions], places(parts.at, dimensions), strict=True))
    nodes = {one.name: trees[one.name].nodes(one.name, one.codes)[codes[one.name]] for one in dimensions}
    rules = [rule for one, _ in batch.values() for rule in rules_of(one.method, count=one.question.measure is None)]

    def passes(of: Contributions) -> Flags:
        fine: Flags = ~np.logical_or.reduce([rule.protection(of).sensitive for rule in dict.fromkeys(rules)])
        return fine

    found = coarsen(
        Programme(
            trees=tuple(trees.values()),
            nodes=tuple(nodes.values()),
            unit=parts.units[-1],
            value=parts.value.astype(np.float64),
            tables={name: tuple(one.name for one in question.by) for name, question in questions.items()},
            top=max(rule.top for rule in rules),
            passes=passes,
            tells=by_value if first.method.cost == "value" else each_cell,
        ),
        told=told,
    )
    if found is None:
        raise MethodError(
            "coarsening",
            expected="groups of codes at which no cell is sensitive",
            found="none, not even all together",
            do="weaken the rules, or publish fewer attributes",
        )
    cuts = dict(zip(trees, found.nodes, strict=True))
    return {name: _answer(question.by, trees, cuts, nodes, parts.value) for name, question in questions.items()}


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
    by: tuple[Dimension, ...],
    trees: dict[str, Tree],
    cuts: dict[str, Integers],
    nodes: dict[str, Integers],
    value: Integers,
) -> Cells:
    """The true values of all combinations of merged codes, under the codes of all levels; others are not available."""
    at, chosen = np.zeros(len(value), dtype=np.int64), np.zeros(1, dtype=np.int64)
    for one in by:
        tree, cut = trees[one.name], cuts[one.name]
        place = {code: number for number, code in enumerate(one.codes)}
        published = np.array([place[code] for _, code in tree.codes], dtype=np.int64)
        at = at * len(one) + published[tree.nearest(cut)[nodes[one.name]]]
        chosen = (chosen[:, None] * len(one) + np.sort(published[cut])[None, :]).reshape(-1)
    size = prod(map(len, by))
    sums, status = np.zeros(size, dtype=np.int64), np.full(size, NOT_AVAILABLE, dtype=np.int64)
    np.add.at(sums, at, value)
    status[chosen] = 0
    return Cells(dimensions=by, positions=np.arange(size, dtype=np.int64), columns={"value": sums, "status": status})
