"""Attacks on a published table: what a reader gets out of it who knows that one factor multiplies an establishment.

Each attack sees what was published, the public number of establishments, and the side knowledge it names. The true
counts are only used to judge whether it succeeded, and what a guess without the release would have got right.

Tables are arrays with a row for each workplace cell and a column for each worker cell. `rounding` is the most by which
rounding changed a value, which the reader knows; an estimate is *exact* when it is off by no more than this can
explain. A rounded table tells little about small establishments, so readers attack where
rounding leaves what they want to know uncertain by at most `PRECISION`. Counts below 3 may have been redrawn from
{1, 2}, so they use rows without published values in (0, 2].
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Flags, Floats

Values = NDArray[Any]

PRECISION = 0.005
"""Rounding may blur a share by half a percentage point, or a factor or a growth rate by half a percent."""
BY_CHANCE = 1.0
"""Rounding to one of the two nearest whole numbers changes a value by less than this."""
LARGEST_REDRAWN = 2
"""A published value up to this may stand for another small count."""

_FLOATING = 1e-9


@dataclass(frozen=True, kw_only=True)
class AttackResult:
    """How often an attack succeeded, and how often a guess without the release would have."""

    attack: str
    targets: int
    successes: int
    guessed: int
    risk: float | None = None
    """The probability over all keys, averaged over the targets, where it can be computed."""
    limit: float | None = None
    """The largest probability that is acceptable for a target."""
    above: int | None = None
    """How many targets are above it."""
    worst: tuple[tuple[str, float], ...] = ()
    """Some of these, the worst first: which cell, and its probability."""

    @property
    def success_rate(self) -> float:
        """The share of the targets that were disclosed; NaN when there was nothing to attack."""
        return self.successes / self.targets if self.targets else float("nan")

    @property
    def baseline_rate(self) -> float:
        """The share of the targets that a guess without the release gets right."""
        return self.guessed / self.targets if self.targets else float("nan")

    def data(self) -> dict[str, Any]:
        """The same for machines; rates are None when there was nothing to attack."""
        rates = {"success_rate": self.success_rate, "baseline_rate": self.baseline_rate}
        told = rates if self.targets else dict.fromkeys(rates)
        judged = {} if self.limit is None else {"risk": self.risk, "limit": self.limit, "above_limit": self.above}
        return {"attack": self.attack, "targets": self.targets, **told, **judged}


@dataclass(frozen=True, kw_only=True)
class JointFindings:
    """What all tables of a kind together tell: confidential."""

    heading: str = "All totals together"
    caption: str = "Cells that differ by one unit, subtracted"
    guess: str = "disclosed by the true totals"
    """What the last column of the attacks says."""
    attacks: tuple[AttackResult, ...] = ()
    reasons: tuple[tuple[str, str, str], ...] = ()
    """Which cells are sensitive: the table, why, and how many."""
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By table, what is told of each of its cells."""
    note: str = ""
    """How to read what attacks find."""

    def sensitive(self) -> list[dict[str, str]]:
        """Which cells are sensitive, for machines."""
        return [dict(zip(("table", "why", "cells"), one, strict=True)) for one in self.reasons]


def pooled(results: Iterable[AttackResult]) -> AttackResult:
    """The results of one attack on several sets of targets, added up."""
    parts = tuple(results)
    return AttackResult(
        attack=parts[0].attack,
        targets=sum(part.targets for part in parts),
        successes=sum(part.successes for part in parts),
        guessed=sum(part.guessed for part in parts),
    )


def shape_attack(*, published: Values, establishments: Values, true: Values, rounding: float = 0.0) -> AttackResult:
    """Read the composition of a workforce off a workplace cell with one establishment.

    All its worker cells share one factor, which cancels in every share. It succeeds when all shares are exact. The
    guess: the composition of all other workplace cells together.
    """
    total, groups = published.sum(axis=1), np.count_nonzero(published, axis=1)
    # With one group there is no composition to learn but that the others are empty.
    chosen = _single(published, establishments) & (groups > 1) & (rounding * (1 + groups) <= PRECISION * total)
    values, total, groups = published[chosen], total[chosen, None], groups[chosen, None]
    shares = values / total
    # v_c/V − (v_c−e_c)/(V−E), where |e_c| ≤ rounding and |E| ≤ groups·rounding.
    blur = rounding * (1 + groups * shares) / (total - groups * rounding)
    truth = _divided(true[chosen], true[chosen].sum(axis=1, keepdims=True))
    others = _others(true, chosen)
    typical = _divided(others, others.sum(axis=1, keepdims=True))
    return _result("shape", _close(shares, truth, blur), _close(typical, truth, blur))


def size_attack(
    *,
    published: Values,
    establishments: Values,
    known_column: NDArray[np.intp],
    known_count: Values,
    true: Values,
    rounding: float = 0.0,
) -> AttackResult:
    """Work out the size of an establishment from one true count the reader knows, such as the number of women.

    The known count gives the factor, the factor every other count. It succeeds when all counts and their total are
    exact. The guess: the known count, and the composition of all other workplace cells together.
    """
    rows = np.arange(len(published))
    anchor, groups = published[rows, known_column], np.count_nonzero(published, axis=1)
    # Knowing the only group there is, nothing is left to learn.
    chosen = _single(published, establishments) & (groups > 1) & (known_count > 0)
    chosen &= (anchor > LARGEST_REDRAWN) & (rounding <= PRECISION * anchor)
    truth, values, column = true[chosen], published[chosen], known_column[chosen]
    anchor, known, groups = anchor[chosen, None], known_count[chosen, None], groups[chosen]
    counts = values * known / anchor
    # v_c/v_k − (v_c−e_c)/(v_k−e_k), where both errors are at most rounding.
    blur = known * rounding * (1 + values / anchor) / (anchor - rounding)
    total_blur = known[:, 0] * rounding * (groups + values.sum(axis=1) / anchor[:, 0]) / (anchor[:, 0] - rounding)
    others = _others(true, chosen)
    guess = known * _divided(others, others[np.arange(len(others)), column][:, None])
    totals = truth.sum(axis=1)
    return _result(
        "size",
        _close(counts, truth, blur) & (np.abs(counts.sum(axis=1) - totals) <= _slack(totals, total_blur)),
        _close(guess, truth, blur) & (np.abs(guess.sum(axis=1) - totals) <= _slack(totals, total_blur)),
    )


def reidentification_attack(
    *,
    published: Values,
    establishments: Values,
    candidates: NDArray[np.intp],
    alone: Flags,
    true: Values,
    largest_wins: bool = False,
) -> AttackResult:
    """Find another attribute of someone known to be the only one of a kind in a single-establishment cell.

    `candidates` are the columns of that kind, one for each value of the other attribute, and `alone` the rows where
    the reader knows of exactly one such person. Zeros are kept, so the only candidate that is not 0 names the
    attribute; where several are, or none, the reader learns nothing. With `largest_wins` the reader names the largest
    instead, which is a guess and no longer a proof. The guess without the release: the most frequent value.
    """
    chosen = (establishments == 1) & alone
    values, truth = published[chosen][:, candidates], true[chosen][:, candidates]
    named = values.argmax(axis=1)
    sure = np.ones(len(values), dtype=bool) if largest_wins else np.count_nonzero(values, axis=1) == 1
    if not largest_wins:
        named = (values != 0).argmax(axis=1)
    person = truth.argmax(axis=1)
    usual = np.bincount(person, minlength=len(candidates)).argmax()
    return _result("re-identification", sure & (named == person), person == usual)


def growth_attack(
    *,
    before: Values,
    after: Values,
    establishments: Values,
    true_before: Values,
    true_after: Values,
    rounding: float = 0.0,
) -> AttackResult:
    """Read the growth of an establishment off two periods of a workplace cell that it has to itself.

    The factor is permanent, so it cancels in the ratio of two periods. It succeeds when the growth of the total and of
    every group that had workers is exact. The guess: no change.
    """
    groups_before, groups_after = (np.count_nonzero(table, axis=1) for table in (before, after))
    chosen = _single(before, establishments) & _single(after, establishments)
    chosen &= rounding * (groups_before + groups_after) <= PRECISION * before.sum(axis=1)
    periods = (before[chosen], after[chosen], true_before[chosen], true_after[chosen])
    # The groups, and behind them their total, which is off by as many roundings as there are groups.
    first, second, true_first, true_second = (
        np.concatenate([table, table.sum(axis=1, keepdims=True)], axis=1).astype(np.float64) for table in periods
    )
    blur_first, blur_second = (np.full(table.shape, rounding) for table in (first, second))
    blur_first[:, -1] *= groups_before[chosen]
    blur_second[:, -1] *= groups_after[chosen]
    growth, truth = _divided(second, first), _divided(true_second, true_first)
    blur = _divided(blur_second + blur_first * growth, first - blur_first)
    slack, absent = _slack(truth, blur), first == 0
    return _result(
        "growth",
        np.all(absent | (np.abs(growth - truth) <= slack), axis=1),
        np.all(absent | (np.abs(1 - truth) <= slack), axis=1),
    )


def _single(published: Values, establishments: Values) -> Flags:
    """Workplace cells with one establishment and some jobs, none of whose counts can have been redrawn."""
    clean = np.all((published == 0) | (published > LARGEST_REDRAWN), axis=1)
    single: Flags = (establishments == 1) & clean & (published.sum(axis=1) > 0)
    return single


def _others(true: Values, chosen: Flags) -> Floats:
    """For every target the jobs of all other workplace cells together, group by group."""
    others: Floats = true.sum(axis=0, dtype=np.float64) - true[chosen]
    return others


def _slack(truth: Values, blur: Values) -> Floats:
    """What rounding explains, and the last digits of floating point."""
    slack: Floats = blur + _FLOATING * (1 + np.abs(truth))
    return slack


def _close(estimate: Values, truth: Values, blur: Values) -> Flags:
    """Whether every worker cell of a row is exact."""
    # A comparison with NaN, the share of an establishment without workers, is false: nothing was recovered.
    close: Flags = np.all(np.abs(estimate - truth) <= _slack(truth, blur), axis=1)
    return close


def _divided(part: Values, whole: Values) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        divided: Floats = np.asarray(part, dtype=np.float64) / whole
    return divided


def _result(attack: str, succeeded: Flags, guessed: Flags) -> AttackResult:
    return AttackResult(
        attack=attack, targets=len(succeeded), successes=int(succeeded.sum()), guessed=int(guessed.sum())
    )
