"""The noise that is expected in the answers of a column, from published parameters; docs/methods/hypercube.md."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from sfumato.arrays import Floats
from sfumato.cube.asked import Asked
from sfumato.cube.effects import Measured, effect_variances, query_covariance, query_variance
from sfumato.cube.figures import ColumnNoise
from sfumato.cube.margins import Axes


@dataclass(frozen=True, kw_only=True)
class AnswerNoise:
    """The noise of a column: variances of its effects in units of noise, and what a unit is."""

    shape: tuple[int, ...]
    effects: Mapping[Axes, float]
    otherwise: float
    column: ColumnNoise
    parts: int

    @classmethod
    def of(cls, shape: tuple[int, ...], noise: ColumnNoise, *, parts: int) -> "AnswerNoise":
        """The noise of a column of a cube of this shape: what controls tell is combined with what the cube tells."""
        measured = [Measured(axes=axes, variance=variance) for axes, variance in noise.controls.items()]
        own = noise.variance
        effects = {
            effect: variance * own / (variance + own) if own else 0.0
            for effect, variance in effect_variances(shape, measured).items()
        }
        return cls(shape=shape, effects=effects, otherwise=own, column=noise, parts=parts)

    def of_totals(self, asked: Asked, counts: Floats) -> Floats:
        """The variance of every sum of an answer, given the published numbers of records behind them."""
        variance: Floats = self._variance(asked, counts) * self._square(asked, asked)
        return variance

    def of_shares(self, part: Asked, whole: Asked, shares: Floats, counts: Floats, base: Floats) -> Floats:
        """The variance of A − pB, where B is the larger sum that holds A, from `base` records."""
        both = self._rounding(part, self._noise(part), counts) + query_covariance(
            self.shape, part.selected, whole.selected, part.selected, self.effects, otherwise=self.otherwise
        )
        own = self._square(part, part) * (self._variance(part, counts) - 2 * shares * both)
        variance: Floats = own + self._square(whole, part) * self._variance(whole, base) * shares**2
        return variance

    def of_ratio(self, asked: Asked, below: "AnswerNoise", ratio: Floats, counts: Floats) -> Floats:
        """The variance of Y − rX, where the two sums have draws of their own."""
        variance: Floats = self.of_totals(asked, counts) + ratio**2 * below.of_totals(asked, counts)
        return variance

    def of_weighted_codes(self, asked: Asked, weights: Floats, counts: Floats) -> Floats:
        """The variance of Σ weight·sum over the codes of the last dimension of an answer."""
        last = asked.axes[-1]
        none = tuple(0 if axis == last else n for axis, n in enumerate(asked.selected))
        alike = self._variance(asked, counts)
        unlike = query_covariance(
            self.shape, asked.selected, asked.selected, none, self.effects, otherwise=self.otherwise
        )
        scaled = weights * np.sqrt(self._square(asked, asked))
        variance: Floats = ((alike - unlike) * scaled**2).sum(axis=-1) + unlike * scaled.sum(axis=-1) ** 2
        return variance

    def _variance(self, asked: Asked, counts: Floats) -> Floats:
        noise = self._noise(asked)
        return noise + self._rounding(asked, noise, counts)

    def _noise(self, asked: Asked) -> float:
        return query_variance(self.shape, asked.selected, self.effects, otherwise=self.otherwise)

    def _rounding(self, asked: Asked, noise: float, counts: Floats) -> Floats:
        """Of all cells in a sum that hold records, of which there are at most as many as records.

        Controls take as large a part of it away as of the noise.
        """
        cells = prod(asked.selected)
        left = noise / (self.otherwise * cells) if self.otherwise else 1.0
        rounded: Floats = self.column.rounding * left * np.minimum(np.maximum(counts, 0), cells)
        return rounded

    def _square(self, asked: Asked, over: Asked) -> Floats:
        """The square of one unit of noise in the sums of one question, laid over the cells of another."""
        scale = self.column.scale
        return scale.products(scale, asked.codes, by=asked.axes, over=over.axes) / float(self.parts) ** 2
