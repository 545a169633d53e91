"""Attacks on published totals, at every protected level of units: how near a reader comes to the largest contributor.

Attacks 1 and 3 need one cell; attack 2 subtracts two published cells that differ by the target, or the published cells
of a row from its total. Each is tried on what was published, and its probability over all keys is computed from the
perturbation that was really used, with whatever reduced it. All of this is confidential.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Protocol

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells
from sfumato.measures.attacks import AttackResult
from sfumato.method import HIDDEN
from sfumato.noise.factors import ONE
from sfumato.statistics.totals.calibration import ATTACKS, Attack
from sfumato.statistics.totals.perturbation import Moves, NoiseSum
from sfumato.statistics.totals.question import TOTAL

_NAMES = {1: "total (within 18 %)", 2: "difference of two cells (within 11 %)", 3: "second contributor (within 11 %)"}
_REST = "total less the other cells of its row (within 11 %)"
_DIRECTIONS = {
    1: "direction from the published error (within 18 %)",
    3: "direction from the published error, second contributor (within 11 %)",
}
_SAMPLED = "sampled, weight known"
_MOST = 10
"""How many cells above a limit the report lists of each attack."""


class Perturbing(Protocol):
    """A method whose perturbation can be told, cell by cell."""

    @property
    def spread_of_noise(self) -> float:
        """The b of the noise on 1 ± b."""
        ...

    def moves(self, cells: Cells) -> Moves:
        """What moves each cell: confidential."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Attacked:
    """A table of totals as it was published, with what is true of it."""

    name: str
    counted: Cells
    answer: Cells
    method: Perturbing

    @cached_property
    def seen(self) -> Flags:
        """The cells whose value is published."""
        return ~np.isin(self.answer["status"], HIDDEN)

    @cached_property
    def total(self) -> Floats:
        """The true totals."""
        total: Floats = self.counted["total"] + self.counted["total_part"] / ONE
        return total

    @cached_property
    def published(self) -> Floats:
        """The totals as they were published."""
        return self.answer["value"].astype(np.float64)

    @cached_property
    def moves(self) -> Moves:
        """What moves each cell."""
        return self.method.moves(self.counted)

    def weighted(self, level: int, rank: int) -> Floats:
        """What the contributor of a rank adds to each cell; 0 where there are fewer."""
        name = f"{level}_{rank}"
        added: Floats = self.counted[f"weighted_{name}"] + self.counted[f"weighted_part_{name}"] / ONE
        return added

    def words(self, level: int) -> Integers:
        """The words of the largest units of every cell, as many as are told; 0 where there are fewer."""
        names = [name for name in self.counted.columns if name.startswith(f"unit_word_{level}_")]
        return np.stack([self.counted[name] for name in names], axis=1)

    def noise(self) -> NoiseSum:
        """The perturbation of every cell, over all keys."""
        moves, spread = self.moves, self.method.spread_of_noise
        return NoiseSum(own=moves.scales, other=np.zeros_like(moves.scales), spread=spread, normal=moves.normal)

    @cached_property
    def labels(self) -> list[str]:
        """The codes of every cell."""
        codes = [[d.codes[place] for place in self.counted.codes(d.name)] for d in self.counted.dimensions]
        return [", ".join(cell) for cell in zip(*codes, strict=True)] or [self.name] * len(self.counted)


def cell_risks(table: Attacked, levels: Sequence[str]) -> dict[str, Floats]:
    """The probability over all keys that attacks 1 and 3 come near the largest contributor of each level, by cell.

    NaN where there is no target, or the cell is not published. Readers know the weight of the target: where it is one,
    because it was taken for sure.
    """
    noise, found = table.noise(), {}
    for level, named in enumerate(levels):
        target = table.weighted(level, 1)
        some = (target != 0) & table.seen
        for attack in (ATTACKS[0], ATTACKS[2]):
            known = table.weighted(level, 2) if attack.number == 3 else 0.0
            off, near = target - (table.total - known), attack.within * np.abs(target)
            found[f"risk_{attack.number}_{named}"] = np.where(some, noise.probability(off - near, off + near), np.nan)
    return found


def attack_totals(table: Attacked, levels: Sequence[str]) -> tuple[AttackResult, ...]:
    """Run the attacks that one cell of a table allows, at every level of units.

    The guess without perturbation is what the same attack gets from the true total: how much of the protection is due
    to the perturbation. Of records' own units those that were taken for sure are told apart from sampled ones. Of a
    larger unit its whole contribution is the target, as if it were the truth.
    """
    risks, results = cell_risks(table, levels), []
    for level, named in enumerate(levels):
        target = table.weighted(level, 1)
        some = (target != 0) & table.seen
        sure = table.counted["weight_0_1"] == ONE if level == 0 else np.ones(len(target), dtype=np.bool_)
        for words, chosen in (("", some & sure), (f", {_SAMPLED}", some & ~sure)):
            if words and not chosen.any():
                continue
            for attack in (ATTACKS[0], ATTACKS[2]):
                known = table.weighted(level, 2) if attack.number == 3 else np.zeros(len(target))
                results.append(
                    _result(
                        f"{_NAMES[attack.number]}{words}" + (f", {named}" if len(levels) > 1 else ""),
                        attack,
                        target=target[chosen],
                        published=(table.published - known)[chosen],
                        true=(table.total - known)[chosen],
                        risk=risks[f"risk_{attack.number}_{named}"][chosen],
                        labels=[table.labels[place] for place in np.flatnonzero(chosen)],
                    )
                )
    return tuple(results)


def attack_directions(table: Attacked) -> tuple[AttackResult, ...]:
    """Undo the move of cells that one unit dominates, the direction being guessed from the published error.

    Such a unit has more than half of the total, and what it moves the cell by is more than all others may. The reader
    knows by which share m of the total that is: an error that is small beside m would mean up and v/(1 + m), a large
    one down and v/(1 − m). The guess without published errors is a coin, which is right as often as both directions are
    on average; published errors must not do better.
    """
    sizes = np.abs(table.moves.scales)
    first, others = sizes.max(axis=1), sizes.sum(axis=1) + 2 * table.moves.normal
    chosen = table.seen & (first > others - first) & (table.answer["rse"] > 0) & (table.total != 0)
    share = np.divide(first, np.abs(table.total), out=np.ones(len(first)), where=table.total != 0)
    chosen &= (share < 1) & (2 * np.abs(table.weighted(0, 1)) > np.abs(table.total))
    if not chosen.any():
        return ()
    target, second, published = table.weighted(0, 1)[chosen], table.weighted(0, 2)[chosen], table.published[chosen]
    share, error = share[chosen], table.answer["rse"][chosen] / share[chosen]
    up = error <= np.median(error)
    results = []
    for attack in (ATTACKS[0], ATTACKS[2]):
        known = second if attack.number == 3 else 0.0
        higher, lower = (
            np.abs(published / (1 + sign * share) - known - target) <= attack.within * np.abs(target)
            for sign in (1, -1)
        )
        results.append(
            AttackResult(
                attack=_DIRECTIONS[attack.number],
                targets=len(target),
                successes=int(np.where(up, higher, lower).sum()),
                guessed=int(higher.sum() + lower.sum()) // 2,
            )
        )
    return tuple(results)


# Attack 2: cells that differ by one unit, within a table or across several, and cells left over from a total.


def attack_differences(tables: Sequence[Attacked], levels: Sequence[str]) -> tuple[AttackResult, ...]:
    """Subtract every two published cells of which one is the other without its largest unit, at every level."""
    named = [f", {name}" if len(levels) > 1 else "" for name in levels]
    return tuple(_differences(tables, level, words) for level, words in enumerate(named))


def _differences(tables: Sequence[Attacked], level: int, named: str) -> AttackResult:
    attack = ATTACKS[1]
    figures: list[tuple[float, float, float, float]] = []
    labels: list[str] = []
    for one, other in product(tables, repeat=2):
        cells, without = (np.array(places, dtype=np.int64) for places in _pairs(one, other, level))
        if not len(cells):
            continue
        target = one.weighted(level, 1)[cells]
        near = attack.within * np.abs(target)
        # The difference is off by P − P′, since the true totals differ by the target exactly.
        noise = difference(one.moves, cells, other.moves, without, spread=one.method.spread_of_noise)
        risk = noise.probability(-near, near)
        published, true = (getattr(one, kind)[cells] - getattr(other, kind)[without] for kind in ("published", "total"))
        figures += zip(target, published, true, risk, strict=True)
        for cell, less in zip(cells, without, strict=True):
            labels.append(f"{one.name}: {one.labels[cell]}, less {other.name}: {other.labels[less]}")
    target, published, true, risk = np.array(figures, dtype=np.float64).reshape(-1, 4).T
    return _result(
        f"{_NAMES[2]}{named}", attack, target=target, published=published, true=true, risk=risk, labels=labels
    )


def _pairs(one: Attacked, other: Attacked, level: int) -> tuple[list[int], list[int]]:
    """Published cells of a table, each with one of the other that lacks its largest unit and nothing else."""
    units, first = f"units_{level}", f"{level}_1"
    known: dict[tuple[int, int, int], int] = {}
    for place in np.flatnonzero(other.seen):
        told = (int(other.counted[name][place]) for name in (units, "total", "total_part"))
        known.setdefault(tuple(told), int(place))  # type: ignore[arg-type]  # three of them
    words, others = one.words(level), other.words(level)
    cells: list[int] = []
    without: list[int] = []
    cell = one.counted
    for place in np.flatnonzero(one.seen & (one.weighted(level, 1) != 0)):
        rest = (int(cell["total"][place]) - int(cell[f"weighted_{first}"][place])) * ONE
        rest += int(cell["total_part"][place]) - int(cell[f"weighted_part_{first}"][place])
        at = known.get((int(cell[units][place]) - 1, *divmod(rest, ONE)))
        # The units of one are those of the other after its first, as far as both are told.
        if at is not None and (words[place, 1:] == others[at, : words.shape[1] - 1]).all():
            cells.append(int(place))
            without.append(at)
    return cells, without


def difference(
    first: Moves, cells: Integers, second: Moves, others: Integers, *, spread: float, times: float | Floats = 1.0
) -> NoiseSum:
    """P less so many times P′ of pairs of cells.

    A unit that moves both has one direction, and one noise if the cells have one key.
    """
    by = np.broadcast_to(np.asarray(times, dtype=np.float64), cells.shape)
    own = np.concatenate([first.scales[cells], np.zeros_like(second.scales[others])], axis=1)
    beside = np.zeros_like(own)
    width = first.scales.shape[1]
    for rank in range(second.scales.shape[1]):
        word, scale = second.words[others, rank], by * second.scales[others, rank]
        same = (first.words[cells] == word[:, None]) & (word != 0)[:, None]
        beside[:, :width] -= np.where(same, scale[:, None], 0.0)
        beside[:, width + rank] -= np.where(same.any(axis=1), 0.0, scale)
    alike = first.keys[cells] == second.keys[others]
    own, beside = np.where(alike[:, None], own + beside, own), np.where(alike[:, None], 0.0, beside)
    # Of two sums with one noise, what both have in common cancels.
    squares = first.normal[cells] ** 2, (by * second.normal[others]) ** 2
    normal = np.sqrt(np.where(alike, np.abs(squares[0] - squares[1]), squares[0] + squares[1]))
    return NoiseSum(own=own, other=beside, spread=spread, normal=normal)


def attack_rest(table: Attacked) -> tuple[AttackResult, ...]:
    """Subtract the published cells of a row from its total where one cell only is not published."""
    dimensions = table.counted.dimensions
    shape = tuple(map(len, dimensions))
    if len(table.counted) != int(np.prod(shape)):
        return ()
    largest, published, true = (a.reshape(shape) for a in (table.weighted(0, 1), table.published, table.total))
    seen = table.seen.reshape(shape)
    found: list[tuple[float, float, float]] = []
    for axis, dimension in enumerate(dimensions):
        if TOTAL not in dimension.codes:
            continue
        inner, total = ((slice(None),) * axis + (part,) for part in (slice(None, -1), -1))
        hidden = ~seen[inner] & (true[inner] != 0)
        target, exact = (np.where(hidden, a[inner], 0.0).sum(axis=axis) for a in (largest, true))
        rest = published[total] - np.where(seen[inner], published[inner], 0.0).sum(axis=axis)
        chosen = (hidden.sum(axis=axis) == 1) & seen[total] & (target != 0)
        found += zip(target[chosen], rest[chosen], exact[chosen], strict=True)
    if not found:
        return ()
    target, rest, exact = np.array(found).T
    near = ATTACKS[1].within * np.abs(target)
    successes, guessed = (int((np.abs(guess - target) <= near).sum()) for guess in (rest, exact))
    return (AttackResult(attack=_REST, targets=len(found), successes=successes, guessed=guessed),)


def _result(
    name: str, attack: Attack, *, target: Floats, published: Floats, true: Floats, risk: Floats, labels: Sequence[str]
) -> AttackResult:
    near = attack.within * np.abs(target)
    above = np.flatnonzero(risk > attack.limit)
    worst = above[np.argsort(-risk[above], kind="stable")][:_MOST]
    return AttackResult(
        attack=name,
        targets=len(target),
        successes=int((np.abs(published - target) <= near).sum()),
        guessed=int((np.abs(true - target) <= near).sum()),
        risk=float(risk.mean()) if len(risk) else None,
        limit=attack.limit,
        above=len(above),
        worst=tuple((labels[place], float(risk[place])) for place in worst),
    )
