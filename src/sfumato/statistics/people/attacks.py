"""What a reader gets out of estimates of small groups whose scale of noise is told, with nothing but the bundle.

In the published example code of MOSE one draw ω served the estimate and the number of people n of a group, and the
standard deviation √2·χ/(ε·n) of the estimate's noise was exported beside them. That times n is the same in all groups
of a class and n is a whole number, which leaves one solution: every n. With n the draw is known, and with it every
estimate.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.measures.attacks import AttackResult, pooled
from sfumato.statistics.people.sensitivity import UNCOVERED, ScaledToSensitivity
from sfumato.statistics.people.small_samples import NO_ERROR, NORMAL

FAR = 30
"""Noise of more than so many scales is not reckoned with: it has a probability of e^−30."""
_SINGLE = 2.0**-22
"""Scales are exported in single precision, or better: a quotient of two is right to this share."""
_FLOATING = 1e-9
_TELLING = 0.1
"""A number that is uncertain by less than this is a whole number by chance in one of five cases only."""
_ENTRIES = 1 << 22
"""Numbers held at a time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Published:
    """What a bundle says of groups: an estimate, a number of people, and how far noise moves the estimate.

    `scale` is rounded to multiples of `step`, 0 where it has all digits. `count_scale` is the scale of the noise in
    numbers of people, which the statement tells. Groups of one class are known to share χ.
    """

    value: Floats
    count: Floats
    scale: Floats
    classes: Integers
    count_scale: float
    step: float = 0.0

    def __len__(self) -> int:
        return len(self.value)


def counts_from_scales(published: Published) -> Integers:
    """The number of people in every group, where scales give it away; elsewhere the published one, rounded."""
    found: Integers = np.rint(published.count).astype(np.int64)
    usable = (published.scale > 0) & np.isfinite(published.scale)
    for number in np.unique(published.classes[usable]):
        own = np.flatnonzero(usable & (published.classes == number))
        solved = _solution(published, own)
        if solved is not None:
            found[own] = solved
    return found


def estimates_from_counts(published: Published, people: Integers) -> Floats:
    """Every estimate less the noise it would have if the number of people had the same draw."""
    draws = (published.count - people) / published.count_scale
    estimates: Floats = published.value - draws * published.scale
    return estimates


def shared_draw_attack(
    published: Published, *, people: Integers, estimates: Floats, rounding: float = 0.0
) -> tuple[AttackResult, ...]:
    """How many numbers of people and estimates a reader recovers: all from shared draws, and by chance only from ours.

    The truth is used to judge, and in the last attack by a reader who knows how many people each group has. A guess is
    what was published, taken as it is; an estimate is disclosed when it is off by no more than `rounding`.
    """
    counted = counts_from_scales(published)
    slack = rounding + _FLOATING * (1 + np.abs(estimates))

    def near(guess: Floats) -> int:
        return int((np.abs(guess - estimates) <= slack).sum())

    targets, as_published = len(published), near(published.value)
    guessed = int((np.rint(published.count) == people).sum())
    return (
        AttackResult(
            attack="people from scales", targets=targets, successes=int((counted == people).sum()), guessed=guessed
        ),
        AttackResult(
            attack="estimate from a shared draw",
            targets=targets,
            successes=near(estimates_from_counts(published, counted)),
            guessed=as_published,
        ),
        AttackResult(
            attack="estimate from a shared draw, people known",
            targets=targets,
            successes=near(estimates_from_counts(published, people)),
            guessed=as_published,
        ),
    )


def attack_estimates(
    method: ScaledToSensitivity, counted: Cells, answer: Cells, classes: Integers
) -> tuple[AttackResult, ...]:
    """Run the attacks on a protected table: its errors are what it tells of scales, which share χ in each class."""
    results = list(_by_statistic(method, counted, answer, classes))
    return tuple(map(pooled, zip(*results, strict=True)))


def _by_statistic(
    method: ScaledToSensitivity, counted: Cells, answer: Cells, classes: Integers
) -> Iterator[tuple[AttackResult, ...]]:
    """Each statistic is attacked by itself, in the groups whose error is told."""
    shape = (-1, method.statistics)
    value, count, error = (answer[name].reshape(shape) for name in ("value", "count", "error"))
    true = method.true_value(counted).reshape(shape)
    # An error is a half width over 1.96, and in large groups a half width is so many scales.
    scales = NORMAL / log(1 / UNCOVERED)
    for place in range(method.statistics):
        told = error[:, place] != NO_ERROR
        published = Published(
            value=value[told, place].astype(np.float64),
            count=count[told, place].astype(np.float64),
            scale=error[told, place] * scales,
            classes=classes[told],
            count_scale=float(method.weighed(np.array([method.heaviest]))[0] / method.epsilon_of_count),
            step=scales,
        )
        people = method.people(counted)[told]
        yield shared_draw_attack(published, people=people, estimates=true[told, place], rounding=0.5)


def _solution(published: Published, own: NDArray[np.intp]) -> Integers | None:
    """The whole numbers of people that explain all scales of a class; None where there are none or scales prove none.

    Numbers are in proportion to 1/scale, so that the smallest group decides about all. It has one of few numbers: those
    that noise may have turned into the published one. Of several that explain all scales the one nearest to the
    published numbers is taken: where all groups are multiples of some size, so are other solutions.
    """
    scale, count = published.scale[own], published.count[own]
    first = int(scale.argmax())
    reach = FAR * published.count_scale
    candidates = np.arange(max(1, np.floor(count[first] - reach)), np.ceil(count[first] + reach) + 1)
    ratio = scale[first] / scale
    blur = ratio * (published.step / scale + published.step / scale[first] + _SINGLE)
    best, distance, proven = None, np.inf, False
    for part in np.array_split(candidates, max(1, len(candidates) * len(own) // _ENTRIES)):
        numbers = part[:, None] * ratio
        whole, allowed = np.maximum(np.rint(numbers), 1), part[:, None] * blur
        fits = np.all((np.abs(numbers - whole) <= allowed) & (np.abs(whole - count) <= reach), axis=1)
        far = np.where(fits, np.abs(whole - count).sum(axis=1), np.inf)
        nearest = int(far.argmin()) if len(far) else 0
        if len(far) and far[nearest] < distance:
            best, distance = whole[nearest].astype(np.int64), float(far[nearest])
            proven = bool((np.delete(allowed[nearest], first) < _TELLING).any())
    return best if proven else None
