"""Keyed perturbation of totals, means and counts by the largest contributors; docs/methods/top-contributors.md."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.method import ADDED, CONFIDENCE, SUPPRESSED, of_table
from sfumato.noise.factors import ONE, directions, triangular
from sfumato.noise.randomness import Randomness
from sfumato.privacy.guarantee import NoFormalGuarantee
from sfumato.statistics.totals.calibration import risk_statement
from sfumato.statistics.totals.cell_keys import CellKeyTable
from sfumato.statistics.totals.perturbation import (
    CONTRIBUTORS,
    LEAST_RELIEF,
    Moves,
    NoiseSum,
    half_widths,
    interpolated_magnitudes,
    parity,
    perturbation,
    perturbation_variance,
    published_optima,
)
from sfumato.statistics.totals.quality import KeyedFigures, as_changed, blur, published_cells, whole

STATEMENT = (
    "every published figure was changed by an amount that follows from its largest contributors and a secret key, the "
    "same whenever the same contributors are asked about. Nothing about it can be proved; what can be computed is how "
    "often stated attacks succeed: "
)


@dataclass(frozen=True, kw_only=True)
class Level:
    """The largest contributors of every cell at one level of units: arrays of cells × contributors."""

    weighted: Floats
    values: Floats
    weights: Floats
    consent: Integers
    direction: Integers
    noise: Integers
    units: Integers
    words: Integers


@dataclass(frozen=True, kw_only=True)
class TopContributors(KeyedFigures):
    """A total is moved by Σ m·d·h·y·w over its largest contributors, d and h coming from a secret key.

    The magnitudes and the number of contributors are secrets: the text of the object, every error and all that is
    published leave them out. `statistic` says what is published; sums, means and counts of one cell agree.
    """

    name: ClassVar[str] = "top-contributors"
    guarded: ClassVar[bool] = True
    """Whether answers that differ by few units must be kept apart."""
    adding_up: ClassVar[str] = (
        " The same contributors always get the same answer, however the table is asked for. Sums of published cells "
        "need not be the published total, which was protected by itself."
    )
    for_others: ClassVar[str] = (
        "where none of the largest contributors of a cell asked, its total is published as it is"
    )

    statistic: Literal["total", "mean", "count"] = of_table("total")
    levels: int = of_table(1)
    magnitudes: tuple[Fraction, ...] = field(default=(Fraction("0.4"), Fraction("0.3"), Fraction("0.2")), repr=False)
    by_shape: bool = field(default=False, repr=False)
    """Interpolate the optima of contributor shapes cell by cell, instead of one compromise for all."""
    spread: Fraction = field(default=Fraction("0.3"), repr=False)
    suppress: int = field(default=2, repr=False)
    """Cells with at most so many contributors at any protected level are not published."""
    parity: bool = field(default=False, repr=False)
    weight_relief: bool = field(default=False, repr=False)
    """Divide a magnitude by the square root of the record's weight: an attacker does not know the weight."""
    sampling_relief: bool = field(default=False, repr=False)
    """Perturb less where replicate weights show a sampling error, but never by less than half."""
    count_variance: Fraction = field(default=Fraction(3), repr=False)
    count_deviation: int = field(default=5, repr=False)
    decimals: int = of_table(0)
    """Of a mean: values are published in units of 10^−decimals."""
    most_perturbation: Fraction = field(default=Fraction(1), repr=False, metadata={ADDED: True})
    """Cells in which perturbation makes up more than this share of the variance are not published."""

    def __post_init__(self) -> None:
        rules = (
            (0 < self.most_perturbation <= 1, "most_perturbation", "a share above 0, up to 1"),
            (1 <= len(self.magnitudes) <= 6, "magnitudes", "one to six numbers"),
            (all(0 < m <= 2 for m in self.magnitudes), "magnitudes", "numbers above 0, up to 2"),
            (not self.by_shape or len(self.magnitudes) == CONTRIBUTORS, "magnitudes", "three numbers with by_shape"),
            (0 < self.spread < 1 and (self.spread * ONE).denominator == 1, "spread", "above 0, below 1, in millionths"),
            (0 <= self.suppress <= 1000, "suppress", "a whole number from 0 to 1,000"),
            (0 <= self.decimals <= 6, "decimals", "a whole number from 0 to 6"),
        )
        for holds, option, expected in rules:
            if not holds:
                # The value is a secret, and so is how it is wrong.
                raise MethodError(
                    f"{self.name}, {option}", expected=expected, found="another value", do="correct the release file"
                )
        try:
            _ = self._table  # refuses moments that no table has, before anything is charged
        except MethodError as error:
            raise MethodError(
                f"{self.name}, count_variance and count_deviation",
                expected=error.expected,
                found="another value",
                do="correct the release file",
            ) from None

    @property
    def description(self) -> str:
        """What is done to the figures, as a clause of the privacy statement."""
        return (
            "every total was moved up or down by an amount that follows from its largest contributors and a secret "
            "key, counts by a few units (of weighted counts, a few times the average weight), and cells "
            + ("with very few contributors" if self.suppress else "without any contributor, and no others,")
            + " are not published"
            + (
                ", nor are cells whose error is due to that more than to sampling, beyond a limit"
                if self.most_perturbation < 1
                else ""
            )
        )

    def guarantee(self) -> NoFormalGuarantee:
        """None that could be proved; said plainly."""
        return NoFormalGuarantee(statement=STATEMENT + self._risks)

    @cached_property
    def _risks(self) -> str:
        magnitudes = None if self.by_shape else [float(magnitude) for magnitude in self.magnitudes]
        text = risk_statement(magnitudes, spread=float(self.spread), parity=self.parity)
        if self.weight_relief or self.sampling_relief:
            text += ". This does not hold where perturbation was reduced because of sampling"
        return text

    @property
    def noise(self) -> None:
        """Nothing is done to each value by itself: cells are moved."""
        return

    @property
    def noise_options(self) -> tuple[object, ...]:
        """Everything that decides by how much a cell is moved: one set of data must never be perturbed by two."""
        moved = (self.magnitudes, self.by_shape, self.spread, self.parity, self.weight_relief, self.sampling_relief)
        return (*moved, self.count_variance, self.count_deviation)

    @property
    def contributors(self) -> int:
        """How many of the largest contributors are looked at: a secret."""
        return len(self.magnitudes)

    def expected_error(self, cells: Cells) -> Floats:
        """The mean size of the perturbation over all keys, from the contributors: confidential."""
        if self.statistic == "count":
            # A weighted count is moved by what the number of records is, times the mean weight of a record.
            return 0.8 * self._published_scales(cells)[:, 0]
        moved = self.moves(cells).scales
        error = NoiseSum(own=moved, other=np.zeros_like(moved), spread=float(self.spread)).mean_magnitude()
        return self._as_published(error, cells) if self.statistic == "mean" else error

    def true_value(self, cells: Cells) -> Floats:
        """The figure without perturbation, in the unit of what is published: confidential."""
        if self.statistic == "count":
            return whole(cells, "weights")
        total = whole(cells, "total")
        return self._as_published(total, cells) if self.statistic == "mean" else total

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:  # noqa: ARG002 (all chance is in the keys)
        """`value`, its `status`, and `rse`, `low` and `high`, rounded so that they tell little of the contributors."""
        sampling, perturbing, counting = self._variances(cells)
        width = half_widths(
            self._published_scales(cells, changed=True),
            np.sqrt(sampling + counting),
            spread=float(self.spread),
            confidence=CONFIDENCE,
        )
        moved, whole = perturbing + counting, sampling + perturbing + counting
        # An interval of sampling error says less of such cells the more of their variance is perturbation.
        hidden = self._hidden(cells) | (moved > float(self.most_perturbation) * whole)
        return published_cells(
            cells,
            value=np.rint(self._value(cells)),
            # A count is moved by the same amount whatever it is, a total by shares of its contributors.
            by_shares=self.statistic != "count",
            sampling=np.sqrt(sampling),
            deviation=np.sqrt(moved),
            width=width,
            blurred=blur(cells),
            hidden=np.where(hidden, SUPPRESSED, 0),
        )

    @cached_property
    def _table(self) -> CellKeyTable:
        return CellKeyTable(variance=self.count_variance, deviation=self.count_deviation)

    def _hidden(self, cells: Cells) -> NDArray[np.bool_]:
        few = np.zeros(len(cells), dtype=np.bool_)
        for level in range(self.levels):
            few |= cells[f"units_{level}"] <= self.suppress
        if self.statistic == "mean":
            few |= self._count(cells) == 0
        return few

    def _count(self, cells: Cells) -> Integers:
        """The number of records after perturbation."""
        words = cells["count_word_0"].view(np.uint64)
        return self._table.published(cells["records"], words)

    def _weighted_count(self, cells: Cells) -> Floats:
        """The weighted count, moved as much as the number of records is."""
        records, weights = cells["records"], whole(cells, "weights")
        scaled: Floats = np.divide(weights * self._count(cells), records, out=np.zeros(len(cells)), where=records > 0)
        return scaled

    def _value(self, cells: Cells) -> Floats:
        if self.statistic == "count":
            return self._weighted_count(cells)
        total = whole(cells, "total") + self._perturbation(cells)
        if self.statistic == "total":
            return total
        count = self._weighted_count(cells)
        mean: Floats = np.divide(total * 10**self.decimals, count, out=np.zeros(len(cells)), where=count > 0)
        return mean

    def _as_published(self, amount: Floats, cells: Cells) -> Floats:
        """An amount of the total as an amount of the mean."""
        count = whole(cells, "weights")
        scaled: Floats = np.divide(amount * 10**self.decimals, count, out=np.zeros(len(cells)), where=count > 0)
        return scaled

    def _level(self, cells: Cells, level: int) -> Level:
        ranks = range(1, self.contributors + 1)

        def columns(name: str) -> Integers:
            return np.stack([cells[f"{name}_{level}_{rank}"] for rank in ranks], axis=1)

        return Level(
            weighted=columns("weighted") + columns("weighted_part") / ONE,
            values=columns("value").astype(np.float64),
            weights=columns("weight") / ONE,
            consent=columns("consent"),
            direction=directions(columns("unit_word").view(np.uint64)),
            noise=triangular(columns("cell_word").view(np.uint64), spread=int(self.spread * ONE)),
            units=cells[f"units_{level}"],
            words=columns("unit_word"),
        )

    def _magnitudes(self, level: Level, total: Floats, *, own: bool) -> Floats:
        """The magnitude of every contributor; 0 for one that did not ask to be protected.

        Weights relieve the records' own units only: a larger unit of many records taken for sure has a large sum of
        weights, all of which are known.
        """
        shape = level.values.shape
        if self.by_shape:
            magnitudes = interpolated_magnitudes(_shape(level.weighted, total), published_optima())
        else:
            magnitudes = np.broadcast_to(np.array([float(m) for m in self.magnitudes]), shape)
        if self.weight_relief and own:
            magnitudes = magnitudes / np.sqrt(np.maximum(level.weights, 1.0))
        asked: Floats = magnitudes * level.consent
        return asked

    def _decisive(self, cells: Cells) -> tuple[list[Level], list[Floats], NDArray[np.intp]]:
        """All levels, their magnitudes, and for every cell the level that asks for the largest perturbation."""
        levels = [self._level(cells, level) for level in range(self.levels)]
        magnitudes = [
            self._magnitudes(level, whole(cells, "total"), own=place == 0) for place, level in enumerate(levels)
        ]
        variances = np.stack([self._variance(level, m) for level, m in zip(levels, magnitudes, strict=True)])
        relief = np.ones(len(cells))
        if self.sampling_relief:
            wanted = variances.max(axis=0)
            missing = np.maximum(wanted - self._sampling(cells), 0.0)
            relief = np.sqrt(np.divide(missing, wanted, out=np.ones(len(cells)), where=wanted > 0))
            relief = np.maximum(relief, LEAST_RELIEF)
        return levels, [m * relief[:, None] for m in magnitudes], variances.argmax(axis=0)

    def _variance(self, level: Level, magnitudes: Floats) -> Floats:
        ones = np.ones_like(level.weighted)
        return perturbation_variance(
            values=level.weighted, weights=ones, magnitudes=magnitudes, spread=float(self.spread)
        )

    def _perturbation(self, cells: Cells) -> Floats:
        levels, magnitudes, decisive = self._decisive(cells)
        moved = np.zeros(len(cells))
        for place, (level, m) in enumerate(zip(levels, magnitudes, strict=True)):
            direction = level.direction * parity(level.units)[:, None] if self.parity else level.direction
            amount = perturbation(
                values=level.weighted,
                weights=np.ones_like(level.weighted),
                magnitudes=m,
                directions=direction,
                noise=level.noise,
            )
            moved = np.where(decisive == place, amount, moved)
        return moved

    def moves(self, cells: Cells) -> Moves:
        """What moves each total, unit by unit: confidential."""
        levels, magnitudes, decisive = self._decisive(cells)
        scales: Floats = np.zeros((len(cells), self.contributors))
        words: Integers = np.zeros((len(cells), self.contributors), dtype=np.int64)
        for place, (level, m) in enumerate(zip(levels, magnitudes, strict=True)):
            chosen = (decisive == place)[:, None]
            turned = parity(level.units)[:, None] if self.parity else 1
            scales = np.where(chosen, m * level.weighted * turned, scales)
            words = np.where(chosen, level.words, words)
        return Moves(scales=scales, words=words, keys=cells["cell_key_0"], normal=np.zeros(len(cells)))

    def published_moves(self, cells: Cells) -> Moves:
        """The same of contributors after perturbation, of which alone published errors are made."""
        moves = self.moves(cells)
        return replace(moves, scales=moves.scales * self._changed(cells))

    def _changed(self, cells: Cells) -> Floats:
        """What each of the contributors that move a total is after perturbation, as a share of what it was."""
        levels, magnitudes, decisive = self._decisive(cells)
        share: Floats = np.ones((len(cells), self.contributors))
        for place, (level, m) in enumerate(zip(levels, magnitudes, strict=True)):
            direction = level.direction * parity(level.units)[:, None] if self.parity else level.direction
            share = np.where((decisive == place)[:, None], np.abs(1 + m * direction * level.noise / ONE), share)
        return share

    def _published_scales(self, cells: Cells, *, changed: bool = False) -> Floats:
        """The same in the unit of what is published; a count is moved by its table.

        `changed` are those of contributors after perturbation, of which alone published errors are made: of true ones,
        errors of several cells would tell true sizes.
        """
        if self.statistic == "count":
            weight = np.divide(
                whole(cells, "weights"), cells["records"], out=np.zeros(len(cells)), where=cells["records"] > 0
            )
            scales = np.zeros((len(cells), self.contributors))
            scales[:, 0] = weight * np.sqrt(float(self.count_variance))
            return scales
        scales = (self.published_moves(cells) if changed else self.moves(cells)).scales
        return (
            np.stack([self._as_published(c, cells) for c in scales.T], axis=1) if self.statistic == "mean" else scales
        )

    def _sampling(self, cells: Cells) -> Floats:
        """The sampling variance of the total."""
        error: Floats = cells["sampling_error"] / ONE
        return error * error

    def _variances(self, cells: Cells) -> tuple[Floats, Floats, Floats]:
        """Of what is published: the variance by sampling, by perturbation of the total, and of the count of a mean."""
        nothing = np.zeros(len(cells))
        scales = self._published_scales(cells, changed=True)
        second = 1 + float(self.spread) ** 2 / 6 if self.statistic != "count" else 1.0
        perturbing = second * (scales * scales).sum(axis=1)
        if self.statistic == "count":
            error = cells["count_sampling_error"] / ONE
            return error * error, perturbing, nothing
        value = self._value(cells)
        if self.statistic == "total":
            error = np.sqrt(self._sampling(cells))
            return as_changed(error, self.true_value(cells), value) ** 2, perturbing, nothing
        error = as_changed(cells["mean_sampling_error"] / ONE * 10**self.decimals, self.true_value(cells), value)
        # A mean is divided by n* in place of n; what n* may have been moved by shows in its inverse.
        moved = np.abs(value) * np.sqrt(float(self.count_variance)) / np.maximum(self._count(cells), 1)
        return error * error, perturbing, moved * moved


def _shape(weighted: Floats, total: Floats) -> Floats:
    """The sizes of the largest contributors, and of all others together."""
    sizes = np.abs(weighted)
    rest = np.maximum(np.abs(total) - sizes.sum(axis=1), 0.0)
    return np.column_stack([sizes, rest])
