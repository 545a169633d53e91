"""Ask a published cube: tables with filters of totals, proportions, means and quantiles, with expected standard errors.

Every answer is summed from the cells of the bundle, whole numbers, so the same question has the same answer by any
path, and parts add up to the whole. Error figures come from published parameters; docs/methods/hypercube.md derives
them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Dimension
from sfumato.statistics.cube.cube import Cube, ratio, refusal
from sfumato.statistics.cube.cube_query import (
    WIDTH,
    AnswerNoise,
    By,
    Classes,
    CubeAnswer,
    CubeQuery,
    Distribution,
    QuantilePlaces,
    Rules,
    Where,
    exact_shares,
    listed_once,
    statuses,
    total_error,
    unknown,
    where_defined,
)
from sfumato.statistics.cube.figures import Figures
from sfumato.statistics.cube.section import COUNT, WEIGHTED

QUANTILE = "quantile"
"""The dimension that tells the quantiles of an answer apart."""
MOST_CELLS = 20_000_000
"""Of one answer, which has several figures for each of them in memory."""


@dataclass(frozen=True, kw_only=True)
class PublishedCube:
    """A cube of a bundle, ready for queries."""

    name: str
    title: str
    cube: Cube
    figures: Figures
    rules: Rules

    def totals(self, by: By = (), *, where: Where | None = None, column: str = WEIGHTED) -> CubeAnswer:
        """Weighted totals, or with `column = "count"` numbers of records, by some dimensions and under filters.

        With the name of a measure they are weighted sums of it. Records without weights have one number for both.
        """
        return self.totals_of(CubeQuery.of(self.cube, by, where), column)

    def totals_of(self, query: CubeQuery, column: str) -> CubeAnswer:
        """The same for a question whose names and codes are known to be right."""
        column = self.weighting if column == WEIGHTED else column
        noise, table = self._noise(column), self._table(query, column)
        values = table.values(column)
        perturbation = noise.of_totals(query, table.values(COUNT))
        if np.shape(perturbation) != values.shape:
            perturbation = np.broadcast_to(perturbation, values.shape)
        if column in (COUNT, WEIGHTED):
            # No number of records is below 0: a negative one is off by all of itself at least.
            perturbation = np.maximum(perturbation, np.square(np.minimum(values, 0.0)))
        sampling = self._sampling_of(column, table)
        return self._answer(table, values, perturbation, sampling, exact=table[column])

    def proportions(self, by: By, *, within: By = (), where: Where | None = None) -> CubeAnswer:
        """The weighted share of every cell of a table in all cells that have the same codes in `within`."""
        query, whole = CubeQuery.of(self.cube, by, where), CubeQuery.of(self.cube, within, where)
        for name in whole.by:
            if name not in query.by:
                raise refusal(
                    "proportions", f"`within` among {', '.join(query.by)}", repr(name), "name it in `by`, too"
                )
        table = self._table(query, self.weighting)
        shares = table.proportions(self.weighting, within=whole.by)
        totals = _spread(table, self.weighting, whole.by)
        # The noise of A/B is that of A − pB, divided by B.
        base = _spread(table, COUNT, whole.by)
        noise = self._noise(self.weighting).of_shares(query, whole, shares, table.values(COUNT), base)
        perturbation = _over(noise, totals)
        sampling = self.figures.sampling
        spread = None if sampling is None else sampling.of_means(shares * (1 - shares), totals)
        return self._answer(table, shares, perturbation, spread, base=base, total=totals)

    def means(self, measure: str, by: By = (), *, where: Where | None = None) -> CubeAnswer:
        """The weighted mean of a measure."""
        if measure not in self.measures:
            raise unknown("means", "a measure of the cube", measure, self.measures)
        return self.means_of(CubeQuery.of(self.cube, by, where), measure)

    def means_of(self, query: CubeQuery, measure: str) -> CubeAnswer:
        """The same for a question whose names and codes are known to be right."""
        table = self._table(query, measure)
        totals = table.values(self.weighting)
        mean = ratio(table.values(measure), totals)
        noise = self._noise(measure).of_ratio(query, self._noise(self.weighting), mean, table.values(COUNT))
        perturbation = _over(noise, totals)
        sampling = self.figures.sampling
        spread = None if sampling is None else sampling.of_measure(measure, totals)
        return self._answer(table, mean, perturbation, spread, total=totals)

    def mean_scores(self, of: str, scores: Mapping[str, int], by: By = (), *, where: Where | None = None) -> CubeAnswer:
        """The weighted mean of a score over the codes of a dimension, each of which has a whole score."""
        query = self._with_last(by, of, where, "mean of scores")
        dimension = self.cube.dimensions[query.axes[-1]]
        kept = {dimension.codes[place] for place in query.codes[query.axes[-1]]}
        wanted = {code: score for code, score in scores.items() if code in kept}
        for score in wanted.values():
            if not isinstance(score, int | np.integer):
                raise refusal("mean of scores", "whole scores", repr(score), "multiply all scores until they are whole")
        fine = self._table(query, self.weighting)
        mean = fine.mean(self.weighting, wanted, of=of)
        table = fine.project(*query.by[:-1])
        totals = table.values(self.weighting)
        distance = np.array([wanted[code] for code in fine.dimensions[-1].codes], dtype=np.float64) - mean[..., None]
        noise = self._noise(self.weighting).of_weighted_codes(query, distance, fine.values(COUNT))
        perturbation = _over(noise, totals)
        sampling = self.figures.sampling
        shares = ratio(fine.values(self.weighting), totals[..., None])
        spread = None if sampling is None else sampling.of_means((shares * distance**2).sum(axis=-1), totals)
        return self._answer(table, mean, perturbation, spread, total=totals)

    def quantiles(
        self,
        of: str,
        shares: float | str | Fraction | Iterable[float | str | Fraction] = 0.5,
        by: By = (),
        *,
        where: Where | None = None,
        edges: Sequence[float] | None = None,
        scores: Mapping[str, float] | None = None,
    ) -> CubeAnswer:
        """Weighted quantiles over a dimension whose codes are in order; the last dimension of the answer lists them.

        Without `edges` and `scores` a quantile is a code: the first one up to which the share lies. With the edges of
        classes, or a score for each code, it is a number, interpolated inside the class; scores lie in the middle.
        """
        query = self._with_last(by, of, where, "quantiles")
        exact = exact_shares(shares)
        dimension = self.cube.dimensions[query.axes[-1]]
        if edges is not None and scores is not None:
            raise refusal("quantiles", "`edges` or `scores`", "both", "leave out one")
        classes = None if edges is None else Classes.between(dimension, edges)
        if scores is not None:
            classes = Classes.around(dimension, scores)
        fine = self._table(query, self.weighting)
        distribution = Distribution.of(fine[self.weighting])
        kept = None if classes is None else classes.only(query.codes[query.axes[-1]])
        scale = _Scale(query=query, codes=fine.dimensions[-1], classes=kept)
        found = [self._quantile(fine, distribution, scale, share) for share in exact]
        name = f"{QUANTILE}_share" if QUANTILE in query.by else QUANTILE
        several = Dimension(name=name, codes=tuple(f"{float(share):.15g}" for share in exact))
        return _stacked(found, (*fine.dimensions[:-1], several))

    @property
    def is_weighted(self) -> bool:
        """Whether the cube has weighted counts beside its counts."""
        return WEIGHTED in self.cube.columns

    @property
    def weighting(self) -> str:
        """The column of weighted counts; of records without weights, the count."""
        return WEIGHTED if self.is_weighted else COUNT

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures whose sums the cube has."""
        return tuple(name for name in self.cube.columns if name not in (COUNT, WEIGHTED))

    def _quantile(self, fine: Cube, distribution: Distribution, scale: "_Scale", share: Fraction) -> CubeAnswer:
        """One quantile by the method of Woodruff: the error of the share, carried over to the scale of the codes."""
        table = fine.project(*fine.names[:-1])
        totals, q = table.values(self.weighting), float(share)
        found = distribution.at(share)
        weights = found.upto(len(scale.codes)) - q
        variance = self._noise(self.weighting).of_weighted_codes(scale.query, weights, fine.values(COUNT))
        noise = np.sqrt(_over(variance, totals))
        sampling = self.figures.sampling
        drawn = np.zeros_like(noise) if sampling is None else np.sqrt(sampling.of_means(q * (1 - q), totals))
        width = WIDTH * np.nan_to_num(np.hypot(noise, drawn))
        value, least, most = map(scale.values, (found, distribution.near(q - width), distribution.near(q + width)))
        if scale.classes is not None:
            # Where an end of the interval is beyond all codes, only the other side tells how wide it is.
            below, above = (width < q).astype(np.float64), (width < 1 - q).astype(np.float64)
            across = ratio(below * (value - least) + above * (most - value), below + above)
            factor = np.where(width > 0, ratio(across, width), 0.0)
            noise, drawn = noise * factor, drawn * factor
        answer = self._answer(
            table,
            np.where(totals > 0, value, np.nan),
            noise**2,
            None if sampling is None else drawn**2,
            total=totals,
            compared_with=np.full_like(totals, min(q, 1 - q)) if scale.classes is None else None,
        )
        interval = (where_defined(least, answer.status), where_defined(most, answer.status))
        return replace(answer, interval=interval, codes=scale.codes if scale.classes is None else None)

    def _answer(
        self,
        table: Cube,
        values: Floats,
        perturbation: Floats,
        sampling: Floats | None,
        *,
        base: Floats | None = None,
        total: Floats | None = None,
        compared_with: Floats | None = None,
        exact: Integers | None = None,
    ) -> CubeAnswer:
        counts = table.values(COUNT)
        perturbed = np.sqrt(np.maximum(perturbation, 0.0))
        sampled = None if sampling is None else np.sqrt(sampling)
        status = statuses(
            self.rules,
            values,
            total_error(perturbed, sampled),
            compared_with=values if compared_with is None else compared_with,
            base=counts if base is None else base,
            weighted=self._weighted(table) if total is None else total,
            total=total,
        )
        return CubeAnswer(
            dimensions=table.dimensions,
            values=where_defined(values, status),
            counts=counts,
            perturbation_error=where_defined(perturbed, status),
            sampling_error=None if sampled is None else where_defined(sampled, status),
            status=status,
            exact=exact,
            compared_with=compared_with,
        )

    def _table(self, query: CubeQuery, column: str) -> Cube:
        cells = prod(len(query.codes[axis]) for axis in query.axes)
        if cells > MOST_CELLS:
            raise refusal(
                "an answer",
                f"at most {MOST_CELLS:,} cells",
                f"{cells:,}",
                "ask by fewer dimensions or with filters; the file of the cube in the bundle lists every cell",
            )
        counts_alone = column == COUNT and not self.rules.least_weighted
        columns = tuple(dict.fromkeys([COUNT] if counts_alone else [COUNT, self.weighting, column]))
        return self.cube.sums(query.axes, query.kept, columns)

    def _weighted(self, table: Cube) -> Floats | None:
        """The weighted counts that a rule looks at."""
        return table.values(self.weighting) if self.rules.least_weighted else None

    def _with_last(self, by: By, of: str, where: Where | None, what: str) -> CubeQuery:
        """The question by some dimensions and, at last, the one whose codes are put total_error."""
        names = listed_once(by)
        if of in names:
            raise refusal(what, f"other dimensions than {of!r} in `by`", repr(of), "leave it out of `by`")
        return CubeQuery.of(self.cube, (*names, of), where)

    def _sampling_of(self, column: str, table: Cube) -> Floats | None:
        """The sampling variance of totals; the number of records is a fact of the sample and has none."""
        sampling = self.figures.sampling
        if sampling is None or column == COUNT:
            return None
        totals = table.values(self.weighting)
        return (
            sampling.of_totals(totals) if column == WEIGHTED else sampling.of_sums(column, table.values(column), totals)
        )

    @cached_property
    def _noises(self) -> dict[str, AnswerNoise]:
        return {
            name: AnswerNoise.of(self.cube.shape, noise, parts=self.cube.parts[name])
            for name, noise in self.figures.noise.items()
        }

    def _noise(self, column: str) -> AnswerNoise:
        if column not in self._noises:
            raise unknown(f"cube '{self.name}'", "one of its columns", column, tuple(self._noises))
        return self._noises[column]


@dataclass(frozen=True, kw_only=True)
class _Scale:
    """What quantiles are told in: codes, or numbers in their classes."""

    query: CubeQuery
    codes: Dimension
    classes: Classes | None

    def values(self, found: QuantilePlaces) -> Floats:
        return found.places.astype(np.float64) if self.classes is None else found.values(self.classes)


def _stacked(answers: Sequence[CubeAnswer], dimensions: tuple[Dimension, ...]) -> CubeAnswer:
    """Answers to questions that differ in one thing, side by side along a last dimension."""

    def side_by_side(name: str) -> Any:
        parts = [getattr(answer, name) for answer in answers]
        return None if parts[0] is None else np.stack(parts, axis=-1)

    low, high = (np.stack([answer.interval[end] for answer in answers if answer.interval], axis=-1) for end in (0, 1))
    names = ("values", "counts", "perturbation_error", "sampling_error", "status", "compared_with")
    arrays = {name: side_by_side(name) for name in names}
    return replace(answers[0], dimensions=dimensions, interval=(low, high), **arrays)


def _spread(table: Cube, column: str, within: Sequence[str]) -> Floats:
    """The totals over all other dimensions, laid over the table."""
    axes = table.axes(within)
    others = tuple(axis for axis in range(len(table.dimensions)) if axis not in axes)
    whole = table[column].sum(axis=others, keepdims=True) / table.parts[column]
    return np.array(np.broadcast_to(whole, table.shape), dtype=np.float64)


def _over(above: Floats, totals: Floats) -> Floats:
    """A variance divided by the square of a total; NaN where that is 0."""
    return ratio(np.maximum(np.broadcast_to(above, np.shape(totals)), 0.0), np.asarray(totals**2))
