"""Attacks on permanent factors: cells of one employer, and the lattice that whole numbers leave."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells
from sfumato.measures.attacks import AttackResult, growth_attack, shape_attack, size_attack
from sfumato.method import HIDDEN
from sfumato.noise.factors import ONE, WHOLE_NUMBERS
from sfumato.statistics.panel.indicators import CODES, NAME
from sfumato.statistics.panel.infused_sums import PAYROLLS

# Attacks on tables of indicators: what one permanent factor leaves open where a cell holds one employer.


def attack_indicators(counted: Cells, answer: Cells, *, period: str, rounding: int) -> tuple[AttackResult, ...]:
    """Run the attacks on ratios, size and growth on a whole table of indicators.

    They use payrolls, large numbers of which `rounding` hides the least. The ratio is that of the whole-quarter payroll
    to all payroll; the reader of the size attack knows one of the two, and so the factor, hence every other figure of
    the employer in every period; growth is from a period to the next.
    """
    published, true = _counts(answer["value"]), _counts(counted["count"])
    status = _counts(answer["status"])
    establishments = counted["establishments"][:: len(CODES)]
    whole: Flags = np.all(~np.isin(status, HIDDEN), axis=1)
    rows = np.arange(len(published))
    known = published.argmax(axis=1)
    ratio = shape_attack(
        published=published[whole], establishments=establishments[whole], true=true[whole], rounding=rounding
    )
    size = size_attack(
        published=published[whole],
        establishments=establishments[whole],
        known_column=known[whole],
        known_count=true[rows, known][whole],
        true=true[whole],
        rounding=rounding,
    )
    first, second = _following(counted, period)
    follows = whole[first] & whole[second]
    first, second, paid = first[follows], second[follows], [PAYROLLS.index("payroll")]
    growth = growth_attack(
        before=published[first][:, paid],
        after=published[second][:, paid],
        establishments=establishments[first],
        true_before=true[first][:, paid],
        true_after=true[second][:, paid],
        rounding=rounding,
    )
    return replace(ratio, attack="ratio"), size, growth


def _following(counted: Cells, period: str) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows of every cell in a period and in the next one."""
    shape = tuple(map(len, counted.dimensions[:-1]))
    places = np.unravel_index(counted.positions[:: len(CODES)] // len(CODES), shape)
    at = [dimension.name for dimension in counted.dimensions].index(period)
    periods = places[at]
    others = np.zeros_like(periods)
    for dimension, (place, codes) in enumerate(zip(places, shape, strict=True)):
        others = others if dimension == at else others * codes + place
    order = np.lexsort((periods, others))
    first, second = order[:-1], order[1:]
    follows = (others[first] == others[second]) & (periods[first] + 1 == periods[second])
    return first[follows], second[follows]


def _counts(column: Integers) -> Integers:
    return column.reshape(-1, len(CODES))[:, [CODES.index(code) for code in PAYROLLS]]


# The attack on permanent factors: whole numbers times one factor lie on a lattice, which published values may show.
#
# A reader looks at a workplace cell with one employer, over all periods and worker cells, and weighs every factor in
# millionths by how well the published values fit. Rounded to whole numbers, v = ⌊δn + u⌋ with one u for all periods:
# for the true δ > 1 all v modulo δ lie in an arc of length 1, for a wrong one they soon do not. Rounded to multiples of
# a base by thresholds, values are a little more frequent near multiples of δ than between them: the likelihood of that
# is what the reader has. docs/methods/noise-infusion.md derives how much it is worth.

MOST_TARGETS = 20
"""So many employers are attacked, those with the most values: the others have less to go by."""
_TOGETHER = ("beginning", "end", "full_quarter")
"""Stocks that are rounded by the same chance, and by nothing else."""
_HARMONICS = 3
_CHUNK = 1 << 16
_MOST_VALUES = 500
"""Of values rounded each by a chance of its own, so many are looked at: the largest tell factors best apart."""
_OVERSAMPLED = 16
_LONGEST = 1 << 23
"""Values beyond this many bases would need a longer transform, and are left out."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """Published values of one employer that were rounded by the same chance, each once, without 0."""

    values: Integers
    base: int


def attack_factors(
    counted: Cells,
    answer: Cells,
    *,
    bases: tuple[int, int],
    period: str,
    within: tuple[int, int],
    most: int = MOST_TARGETS,
) -> AttackResult:
    """Look for the exact factors of employers that have a workplace cell to themselves.

    `bases` are those of jobs and of earnings, and `within` the least and the greatest distortion of a factor, in
    millionths; the reader is granted to know them. A guess without the release finds none.
    """
    targets = sorted(employers(answer, bases=bases, period=period), key=lambda found: -sum(_sizes(found[1])))
    chosen = targets[:most]
    true = _factors(counted, [at for at, _ in chosen], period)
    candidates = factors_within(*within)
    found = [likeliest_factor(series, candidates) for _, series in chosen]
    successes = sum(one == other for one, other in zip(found, true, strict=True))
    return AttackResult(attack="factor", targets=len(chosen), successes=successes, guessed=0)


def factors_within(least: int, most: int) -> Integers:
    """Every factor between two distortions, in millionths, below one and above it."""
    distortions = np.arange(least, most + 1)
    return np.concatenate([ONE - distortions[::-1], ONE + distortions])


def employers(answer: Cells, *, bases: tuple[int, int], period: str) -> Iterator[tuple[int, list[Series]]]:
    """What a bundle shows of every employer that has a workplace cell to itself, by the number of that cell."""
    blocks, inside = _numbers(answer, period)
    values, code = answer["value"], answer.codes(NAME)
    seen = (answer["establishments"] == 1) & ~np.isin(answer["status"], HIDDEN) & (values > 0)
    kind = np.full(len(CODES), -1)
    kind[[CODES.index(name) for name in _TOGETHER]] = 0
    kind[[CODES.index(name) for name in PAYROLLS]] = range(1, 1 + len(PAYROLLS))
    rows = np.flatnonzero(seen & (kind[code] >= 0) & ~_may_be_cut(values))
    if not len(rows):
        return
    key = np.stack([blocks[rows], inside[rows], kind[code[rows]]], axis=1)
    order = np.lexsort(key.T[::-1])
    rows, key = rows[order], key[order]
    starts = np.flatnonzero(np.r_[True, (key[1:] != key[:-1]).any(axis=1)])
    found: dict[int, list[Series]] = {}
    for begin, end in zip(starts, np.append(starts, len(rows))[1:], strict=True):
        block, _, number = key[begin]
        series = Series(values=np.unique(values[rows[begin:end]]), base=bases[min(number, 1)])
        found.setdefault(int(block), []).append(series)
    yield from found.items()


def likeliest_factor(series: Sequence[Series], candidates: Integers) -> int | None:
    """The factor in millionths that the values of one employer fit best; None where all fit none."""
    fit = np.zeros(len(candidates))
    for some in sorted((one for one in series if one.base == WHOLE_NUMBERS), key=lambda one: -len(one.values)):
        left = np.flatnonzero(np.isfinite(fit))
        fit[left] += arc_fit(some.values, candidates[left])
    for base in {one.base for one in series} - {WHOLE_NUMBERS}:
        values = np.concatenate([one.values for one in series if one.base == base])
        fit += threshold_fit(values, candidates, base)
    if not len(candidates) or not np.isfinite(fit).any():
        return None
    return int(candidates[fit.argmax()])


def arc_fit(values: Integers, candidates: Integers) -> Floats:
    """How much likelier values are under each factor than without any lattice, when all were rounded by one chance.

    δ > 1 leaves room for n values with probability δ⁻ⁿ only, so that they are δⁿ times as likely where they fit; they
    fit in the share 1 − arc of all chances. Under δ ≤ 1 every whole number occurs: nothing is told.
    """
    fit = np.zeros(len(candidates))
    for begin in range(0, len(candidates), _CHUNK):
        chosen = np.flatnonzero(candidates[begin : begin + _CHUNK] > ONE) + begin
        factor = candidates[chosen, None]
        residues = np.sort(values * ONE % factor, axis=1)
        around = residues[:, :1] + factor - residues[:, -1:]
        gap = np.concatenate([np.diff(residues, axis=1), around], axis=1).max(axis=1)
        free = (ONE - (candidates[chosen] - gap)) / ONE
        with np.errstate(divide="ignore", invalid="ignore"):
            fit[chosen] = np.where(free > 0, len(values) * np.log(candidates[chosen] / ONE) + np.log(free), -np.inf)
    return fit


def threshold_fit(values: Integers, candidates: Integers, base: int) -> Floats:
    """The same for values that were rounded to multiples of a base, each by a threshold of its own.

    A multiple of the base takes up the lattice within a base of it, the nearer the more. So a value v has the density
    1 + 2·Σₖ sinc²(k·base/δ)·cos(2πk·v/δ); its logarithm is added up by one transform of the number of times each
    multiple occurs, as far as it is small.
    """
    places = values // base
    places = places[places < _LONGEST // _OVERSAMPLED]
    if not len(places):
        return np.zeros(len(candidates))
    length = max(int(places.max()) * _OVERSAMPLED, 1 << 12)
    length = 1 << (length - 1).bit_length()
    waves = np.fft.rfft(np.bincount(places, minlength=length).astype(np.float64))
    turns = base * ONE / candidates
    fit = np.zeros(len(candidates))
    for harmonic in range(1, _HARMONICS + 1):
        turn = harmonic * turns % 1.0
        at = np.rint(np.minimum(turn, 1 - turn) * length).astype(np.int64)  # a cosine is the same either way
        fit += 2 * np.sinc(harmonic * turns) ** 2 * waves.real[at]
    return fit


def chance_fit(values: Integers, candidates: Integers) -> Floats:
    """The same for values that were rounded to whole numbers, each by a chance of its own.

    A value v comes from δn within one of it, the nearer the more likely: its density is δ·Σₙ max(0, 1 − |δn − v|). With
    δ > 1 two multiples at most are so near. Under δ ≤ 1 it is nearly even, and taken to tell nothing.
    """
    fit, values = np.zeros(len(candidates)), values[-_MOST_VALUES:]
    some = max(1, (_CHUNK << 6) // max(len(values), 1))
    for begin in range(0, len(candidates), some):
        chosen = np.flatnonzero(candidates[begin : begin + some] > ONE) + begin
        factor = candidates[chosen, None]
        beyond = values * ONE % factor
        near = np.maximum(ONE - beyond, 0) + np.maximum(ONE - (factor - beyond), 0)
        with np.errstate(divide="ignore"):
            fit[chosen] = np.log(near / ONE * (factor / ONE)).sum(axis=1)
    return fit


def _may_be_cut(values: Integers) -> NDArray[np.bool_]:
    """Which values are whole-period payrolls that all payroll may have cut: their own rounding does not show."""
    table = values.reshape(-1, len(CODES))
    cut = np.zeros(table.shape, dtype=np.bool_)
    everything, part = (CODES.index(name) for name in PAYROLLS)
    cut[:, part] = table[:, part] >= table[:, everything]
    return cut.reshape(-1)


def _numbers(cells: Cells, period: str) -> tuple[Integers, Integers]:
    """The workplace cell of every cell, and its worker cell within, as numbers."""
    blocks, inside = (np.zeros(len(cells), dtype=np.int64) for _ in range(2))
    for dimension in cells.dimensions:
        if dimension.name in (period, NAME):
            continue
        if dimension.public:
            blocks = blocks * len(dimension) + cells.codes(dimension.name)
        else:
            inside = inside * len(dimension) + cells.codes(dimension.name)
    return blocks, inside


def _factors(counted: Cells, chosen: Sequence[int], period: str) -> list[int]:
    """The true factors of employers by the numbers of their workplace cells."""
    blocks, _ = _numbers(counted, period)
    paid = (counted.codes(NAME) == CODES.index("payroll")) & (counted["count"] > 0)
    factors = []
    for block in chosen:
        row = np.flatnonzero(paid & (blocks == block))[0]
        distorted = int(counted["distorted"][row]) * ONE + int(counted["remainder"][row])
        factors.append(distorted // int(counted["count"][row]))
    return factors


def _sizes(series: Sequence[Series]) -> list[int]:
    return [len(one.values) for one in series]
