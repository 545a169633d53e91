"""True numbers of all tables rounded together, with the proof where rules are stated."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sfumato.arrays import Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.exact.intervals import prove_intervals
from sfumato.exact.rounding import controlled_rounding, plain_reach, plain_rounding, random_rounding
from sfumato.exact.rules import Protection
from sfumato.keys import Secret
from sfumato.statistic import Busy
from sfumato.statistics.exact.contributions import ABOUT_PARTS
from sfumato.statistics.exact.decide import Batch, Decision, Known, link, part_of
from sfumato.statistics.exact.linked import Linked
from sfumato.statistics.exact.methods import BEYOND

Reach = tuple[int, int]
"""How far below and above its published number a true one can be."""


def rounded(
    batch: Batch,
    known: Known,
    secret: Secret | None,
    busy: Busy,
    last: Mapping[str, Cells],  # noqa: ARG001 (numbers are rounded as they are)
) -> Decision:
    """Round the tables of every measure together; others share no sum with them."""
    measures = dict.fromkeys(one.question.measure for one, _ in batch.values())
    return Decision.together(
        _of_measure(
            {name: one for name, one in batch.items() if one[0].question.measure == measure},
            {name: one for name, one in known.items() if one[0].question.measure == measure},
            secret,
            part_of(busy, "rounding", at, len(measures)),
        )
        for at, measure in enumerate(measures)
    )


def _of_measure(batch: Batch, known: Known, secret: Secret | None, told: Callable[[float], None]) -> Decision:
    method, cells = next(iter(batch.values()))[0].method, next(iter(batch.values()))[1]
    told(0.0)
    _refuse_other_bases(batch, known)
    found, _ = link(batch, known, beyond=False)
    system, parts = found.system, int(cells[ABOUT_PARTS][0]) if len(cells) else 1
    base = method.base * parts
    values, reach = _values(method, batch, secret), (method.base - 1, method.base - 1)
    beyond, closest = dict[str, int](), None
    if method.form == "controlled":
        made = controlled_rounding(system, base, told=told)
        values = {name: _placed(at, made.value // parts) for name, at in found.places.items()}
        closest = (made.reach, made.reach)  # in parts: these numbers are not made of values in whole units
        reach = (-(-made.reach // parts),) * 2
        beyond = {n: int(np.isin(at[at >= 0], made.beyond).sum()) for n, at in found.places.items()}
    elif method.form == "plain":
        reach = plain_reach(method.base)
    for name, (one, _, answer) in known.items():
        again = values[name] if name in values else _values(method, {name: (one, known[name][1])}, secret)[name]
        if not np.array_equal(again, answer["value"]):
            raise MethodError(
                f"rounding of '{one.name}'",
                expected="the numbers that were published of it, together with which all sums of the new tables hold",
                found="others",
                do='publish tables that share sums in one release, or use form = "plain" or "random"',
            )
    if any(one.method.has_rules for one in _tables(batch, known).values()):
        before = {name: answer["value"] for name, (_, _, answer) in known.items()}
        in_parts = (reach[0] * parts + parts // 2, reach[1] * parts + (parts - 1) // 2) if closest is None else closest
        _prove(*link(batch, known), {n: one * parts for n, one in (before | values).items()}, in_parts)
    answers = {name: _answer(cells, values[name], reach, beyond.get(name, 0)) for name, (_, cells) in batch.items()}
    return Decision(answers=answers)


def _values(method: Any, batch: Batch, secret: Secret | None) -> dict[str, Integers]:
    """Every number by itself, to its nearest multiple or by chance; the same cell always rounds alike."""
    if method.form == "plain":
        return {name: plain_rounding(cells["count"], method.base) for name, (_, cells) in batch.items()}
    if method.form == "random":
        return {
            name: random_rounding(cells["count"], method.base, one.randomness(secret, cells).words(len(cells)))
            for name, (one, cells) in batch.items()
        }
    return {}


def _placed(at: Integers, values: Integers) -> Integers:
    """The values of the cells of a table; zeros that everybody knows stay."""
    return np.where(at >= 0, values[np.maximum(at, 0)], 0) if len(values) else np.zeros(len(at), dtype=np.int64)


def _prove(found: Linked, protection: Protection, published: Mapping[str, Integers], reach: Reach) -> None:
    """Refuse numbers that tell sensitive cells closer than the rules allow.

    A cell of two tables is what both of its numbers leave, which differ where chance rounds tables one by one.
    """
    cells, known = np.flatnonzero(protection.sensitive), found.system
    for name, at in found.places.items():
        if name in published:
            inside = at >= 0
            lower, upper = np.full(len(known), -np.inf), np.full(len(known), np.inf)
            lower[at[inside]] = published[name][inside] - float(reach[0])
            upper[at[inside]] = published[name][inside] + float(reach[1])
            known = known.with_bounds(lower=lower, upper=upper)
    proof = prove_intervals(known, cells, protection.down[cells], protection.up[cells])
    if not proof.proved:
        raise MethodError(
            "rounding",
            expected="numbers that leave every sensitive cell an interval as wide as the rules ask for",
            found=f"{int(proof.too_narrow.sum())} sensitive cells that are told closer",
            do="choose a larger base, weaker rules, or the method suppression",
        )


def _tables(batch: Batch, known: Known) -> dict[str, Any]:
    """All tables that readers have, published now or before."""
    return {name: one[0] for name, one in (*batch.items(), *known.items())}


def _refuse_other_bases(batch: Batch, known: Known) -> None:
    """Two roundings of one number tell more than either."""
    methods = {name: one.method for name, one in _tables(batch, known).items()}
    if len({(one.base, one.form) for one in methods.values()}) > 1:
        raise MethodError(
            f"rounding of {', '.join(methods)}",
            expected="one base and one form for all tables of a measure: two roundings of one number tell more",
            found="several",
            do="write the same base and form in every table, as they were published",
        )


def _answer(cells: Cells, values: Integers, reach: Reach, beyond: int) -> Cells:
    """Rounded values, and which true ones are rounded so."""
    columns = {
        "value": values,
        "low": np.maximum(values - reach[0], 0),
        "high": values + reach[1],
    }
    if beyond:
        columns[BEYOND] = np.full(len(cells), beyond, dtype=np.int64)
    if "establishments" in cells.columns:
        columns["establishments"] = cells["establishments"]
    return Cells(dimensions=cells.dimensions, positions=cells.positions, columns=columns)
