"""Attacks on protected totals of units: how near a reader comes to the largest unit of a cell. Confidential.

They are those on totals protected by a key (`sfumato.statistics.totals.attacks`), so that both can be compared. Here
the chance is that of the noise, whose law is public: each is tried on what was published, and its probability over all
draws is computed. Whoever knows the second contributor knows less than whoever knows all other units, who is tried.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.measures.attacks import AttackResult
from sfumato.statistics.totals.calibration import ATTACKS, Attack
from sfumato.statistics.units.pareto import NEGATIVES, POSITIVE, UnitPareto
from sfumato.statistics.units.question import NEGATIVE, RECORDS, UnitQuestion

TOTAL_ALONE = "total (within 18 %)"
ALL_OTHERS = "all other units known (within 11 %)"
DIFFERENCE = "difference of two cells (within 11 %)"
_MOST = 10
"""How many cells above a limit the report lists of each attack."""
_POINTS = 2_000
"""Equally likely values that stand for the noise of one of two cells."""
Attacked = tuple[UnitQuestion, UnitPareto, Cells, Cells]
"""What a table asks, its noise, its true cells and its answer."""


def attack_units(question: UnitQuestion, method: UnitPareto, counted: Cells, answer: Cells) -> tuple[AttackResult, ...]:
    """Take the published total for the value of the largest unit, or what is left of it without all others."""
    results = []
    for words, true, largest, published, multiples in _sums(question, method, counted, answer):
        others = true - largest
        for name, attack, known in ((TOTAL_ALONE, ATTACKS[0], 0 * others), (ALL_OTHERS, ATTACKS[2], others)):
            off, near = true - known - largest, attack.within * largest
            chosen = largest > 0
            # The guess is published − known: it is near where the noise lies between −off − near and −off + near.
            risk = within(method, -off - near, -off + near, multiples)
            results.append(
                result(
                    f"{name}{words}",
                    attack,
                    target=largest[chosen],
                    guess=(published - known)[chosen],
                    exact=(true - known)[chosen],
                    risk=risk[chosen],
                    labels=[_label(counted, place) for place in np.flatnonzero(chosen).tolist()],
                )
            )
    return tuple(results)


def within(method: UnitPareto, low: Floats, high: Floats, multiples: Integers) -> Floats:
    """The probability that noise of these scales lies between two numbers, ends included."""
    found: Floats = _below(method, np.floor(high) + 1, multiples) - _below(method, np.ceil(low), multiples)
    return np.maximum(found, 0.0)


def _below(method: UnitPareto, number: Floats, multiples: Integers) -> Floats:
    """The probability that noise is less than a whole number."""
    beyond = method.noise.survival(np.maximum(np.where(number > 0, number, 1 - number), 1), multiples) / 2
    return np.where(number > 0, 1 - beyond, beyond)


def attack_differences(tables: Mapping[str, Attacked]) -> tuple[AttackResult, ...]:
    """Subtract every two published cells of one measure that seem to differ by the largest unit of one of them."""
    measures = dict.fromkeys(question.measured for question, *_ in tables.values())
    return tuple(
        _differences(measure, {name: one for name, one in tables.items() if one[0].measured == measure})
        for measure in measures
    )


def _differences(measure: str, tables: Mapping[str, Attacked]) -> AttackResult:
    """Cells with a record less, and the total without the largest unit, are taken for that cell without it."""
    attack, rows, labels = ATTACKS[1], list[tuple[float, float, float, float]](), list[str]()
    plain = {name: one for name, one in tables.items() if not one[0].signed}
    scales = {name: method.multiples(cells) for name, (_, method, cells, _) in plain.items()}
    places = {
        (int(records), int(total)): (name, place)
        for name, (_, _, cells, _) in plain.items()
        for place, (records, total) in enumerate(zip(cells[RECORDS], cells["count"], strict=True))
    }
    for name, (question, method, cells, answer) in plain.items():
        if question.weight is not None:  # what the largest unit weighs is not known here
            continue
        for place in np.flatnonzero(cells["largest"] > 0).tolist():
            largest = int(cells["largest"][place])
            found = places.get((int(cells[RECORDS][place]) - 1, int(cells["count"][place]) - largest))
            if found is None:
                continue
            other, at = found
            near = attack.within * largest
            risk = _both(method, scales[name][place], plain[other][1], scales[other][at], near)
            left = float(answer["value"][place] - plain[other][3]["value"][at])
            rows.append((largest, left, largest, risk))
            labels.append(f"{name}: {_label(cells, place)}, less {other}: {_label(plain[other][2], at)}")
    target, guess, exact, risks = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    name = f"{measure.partition('[')[0]}: {DIFFERENCE}"
    return result(name, attack, target=target, guess=guess, exact=exact, risk=risks, labels=labels)


def _both(one: UnitPareto, scale: int, other: UnitPareto, other_scale: int, near: float) -> float:
    """The probability that two independent noises differ by no more than so much."""
    share = (np.arange(_POINTS) + 0.5) / _POINTS
    size = float(one.scale / one.alpha.denominator) * scale
    drawn = size * (share ** (-1 / float(one.calibration.tail)) - 1)
    scales = np.full(_POINTS, other_scale)
    return float(within(other, drawn - near, drawn + near, scales).mean())


def result(
    name: str, attack: Attack, *, target: Floats, guess: Floats, exact: Floats, risk: Floats, labels: list[str]
) -> AttackResult:
    """How often an attack came near its targets, and how likely that was."""
    near = attack.within * target
    above = np.flatnonzero(risk > attack.limit)
    worst = above[np.argsort(-risk[above], kind="stable")][:_MOST]
    return AttackResult(
        attack=name,
        targets=len(target),
        successes=int((np.abs(guess - target) <= near).sum()),
        guessed=int((np.abs(exact - target) <= near).sum()),
        risk=float(risk.mean()) if len(risk) else None,
        limit=attack.limit,
        above=len(above),
        worst=tuple((labels[place], float(risk[place])) for place in worst),
    )


def _sums(
    question: UnitQuestion, method: UnitPareto, counted: Cells, answer: Cells
) -> Iterator[tuple[str, Floats, Floats, Floats, Integers]]:
    """Every sum that noise was added to: words for it, true, of the largest unit, published, and its scale."""
    signs = (
        ((", above 0", "", POSITIVE), (", below 0", NEGATIVE, NEGATIVES)) if question.signed else (("", "", "value"),)
    )
    for words, sign, column in signs:
        part = counted.with_column("count", counted[f"{sign}count"]).with_column("largest", counted[f"{sign}largest"])
        true, largest, published = (of.astype(np.float64) for of in (part["count"], part["largest"], answer[column]))
        yield words, true, largest, published, method.multiples(part)


def _label(cells: Cells, place: int) -> str:
    """The codes of a cell."""
    return ", ".join(one.codes[cells.codes(one.name)[place]] for one in cells.dimensions)
