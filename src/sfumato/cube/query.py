"""Ask a published cube: any table with filters, totals, proportions and means, with expected standard errors.

Every answer is summed from the cells of the bundle, whole numbers, so the same question has the same answer by any
path, and parts add up to the whole. Error figures come from published parameters; docs/methods/hypercube.md derives
them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.cells import Dimension
from sfumato.cube.answer import Answer, Rules, marked
from sfumato.cube.cube import Cube
from sfumato.cube.effects import Measured, effect_variances, query_covariance, query_variance
from sfumato.cube.figures import ColumnNoise, Figures
from sfumato.cube.margins import Axes
from sfumato.cube.section import COUNT, WEIGHTED
from sfumato.cube.stored import read_stored
from sfumato.errors import SfumatoError
from sfumato.manifest import read_listed

Floats = NDArray[np.float64]
Where = Mapping[str, str | Iterable[str]]
"""The codes to keep, by dimension."""


@dataclass(frozen=True, kw_only=True)
class PublishedCube:
    """A cube of a bundle, ready to be asked."""

    name: str
    title: str
    cube: Cube
    figures: Figures
    rules: Rules

    def totals(self, by: Sequence[str] = (), *, where: Where | None = None, column: str = WEIGHTED) -> Answer:
        """Weighted totals, or with `column = "count"` numbers of records, by some dimensions and under filters."""
        where = _kept(where)
        asked = _Asked.of(self.cube, by, where)
        table = self.cube.table(*by, where=where, columns=tuple(dict.fromkeys([COUNT, column])))
        values = table.values(column)
        noise = self._noise(column)
        perturbation = np.broadcast_to(noise.variance(asked) * noise.square(asked), values.shape)
        sampling = self._sampling_of_totals(values) if column == WEIGHTED else None
        return replace(self._answer(table, values, perturbation, sampling), exact=table[column])

    def proportions(self, by: Sequence[str], *, within: Sequence[str] = (), where: Where | None = None) -> Answer:
        """The weighted share of every cell of a table in all cells that have the same codes in `within`."""
        for name in within:
            if name not in by:
                raise _wrong("proportions", f"`within` among {', '.join(by)}", repr(name), "name it in `by` as well")
        where = _kept(where)
        asked, whole = _Asked.of(self.cube, by, where), _Asked.of(self.cube, within, where)
        table = self.cube.table(*by, where=where, columns=(COUNT, WEIGHTED))
        shares = table.proportions(WEIGHTED, within=within)
        totals = _spread(table, WEIGHTED, within)
        noise = self._noise(WEIGHTED)
        part, all_, both = noise.variance(asked), noise.variance(whole), noise.covariance(asked, whole)
        square = noise.square(asked)
        # The noise of A/B is that of A − pB, divided by B.
        perturbation = _over(square * (part - 2 * shares * both + shares**2 * all_), totals)
        sampling = self.figures.sampling
        spread = None if sampling is None else sampling.of_means(shares * (1 - shares), totals)
        return self._answer(table, shares, perturbation, spread, base=_spread(table, COUNT, within))

    def means(self, measure: str, by: Sequence[str] = (), *, where: Where | None = None) -> Answer:
        """The weighted mean of a measure."""
        where = _kept(where)
        asked = _Asked.of(self.cube, by, where)
        if measure in (COUNT, WEIGHTED) or measure not in self.cube.columns:
            known = [name for name in self.cube.columns if name not in (COUNT, WEIGHTED)]
            raise _wrong(
                "means", f"a measure of the cube: {', '.join(known) or 'it has none'}", repr(measure), "choose"
            )
        table = self.cube.table(*by, where=where, columns=(COUNT, WEIGHTED, measure))
        totals = table.values(WEIGHTED)
        mean = _ratio(table.values(measure), totals)
        noise, own = self._noise(WEIGHTED), self._noise(measure)
        # Both sums have the same draws, one times the average weight, the other times the average of the measure.
        weight, value = np.sqrt(noise.square(asked)), np.sqrt(own.square(asked))
        perturbation = _over((value - mean * weight) ** 2 * noise.variance(asked), totals)
        sampling = self.figures.sampling
        return self._answer(
            table, mean, perturbation, None if sampling is None else sampling.of_measure(measure, totals)
        )

    def mean_scores(
        self, of: str, scores: Mapping[str, int], by: Sequence[str] = (), *, where: Where | None = None
    ) -> Answer:
        """The weighted mean of a score over the codes of a dimension, each of which has a whole score."""
        where = _kept(where)
        kept = where.get(of)
        if of in by:
            raise _wrong("mean of scores", f"other dimensions than {of!r} in `by`", repr(of), "leave it out of `by`")
        wanted = {code: score for code, score in scores.items() if kept is None or code in kept}
        asked = _Asked.of(self.cube, (*by, of), where)
        fine = self.cube.table(*by, of, where=where, columns=(COUNT, WEIGHTED))
        mean = fine.mean(WEIGHTED, wanted, of=of)
        table = fine.project(*by)
        totals = table.values(WEIGHTED)
        distance = np.array([wanted[code] for code in fine.dimensions[-1].codes], dtype=np.float64) - mean[..., None]
        noise = self._noise(WEIGHTED)
        alike, unlike = noise.variance(asked), noise.between_codes(asked, self.cube.names.index(of))
        square = self._noise(WEIGHTED).square(_Asked.of(self.cube, by, where))
        squares, sums = (distance**2).sum(axis=-1), distance.sum(axis=-1)
        perturbation = _over(square * ((alike - unlike) * squares + unlike * sums**2), totals)
        sampling = self.figures.sampling
        shares = _ratio(fine.values(WEIGHTED), totals[..., None])
        spread = None if sampling is None else sampling.of_means((shares * distance**2).sum(axis=-1), totals)
        return self._answer(table, mean, perturbation, spread)

    def _answer(
        self, table: Cube, values: Floats, perturbation: Floats, sampling: Floats | None, base: Floats | None = None
    ) -> Answer:
        counts = table.values(COUNT)
        answer = Answer(
            dimensions=table.dimensions,
            values=values,
            counts=counts,
            perturbation_error=np.sqrt(np.maximum(perturbation, 0.0)),
            sampling_error=None if sampling is None else np.sqrt(sampling),
            status=np.zeros(values.shape, dtype=np.int64),
        )
        return marked(answer, self.rules, counts if base is None else base)

    def _sampling_of_totals(self, totals: Floats) -> Floats | None:
        return None if self.figures.sampling is None else self.figures.sampling.of_totals(totals)

    @cached_property
    def _effects(self) -> "dict[str, _Noise]":
        return {
            name: _Noise.of(self.cube.shape, noise, parts=self.cube.parts[name])
            for name, noise in self.figures.noise.items()
        }

    def _noise(self, column: str) -> "_Noise":
        if column not in self._effects:
            known = ", ".join(self._effects)
            raise _wrong(f"cube '{self.name}'", f"one of its columns: {known}", repr(column), "correct the name")
        return self._effects[column]


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A question as counts of codes: how many of each dimension go into one cell of the answer."""

    selected: tuple[int, ...]
    codes: tuple[NDArray[np.intp], ...]
    """Of every dimension, the places of the codes that are kept."""
    axes: Axes
    """The dimensions of the answer, in its order."""

    @classmethod
    def of(cls, cube: Cube, by: Sequence[str], where: Where | None) -> "_Asked":
        kept = _kept(where)
        cube.axes((*by, *kept))  # refuses names that are none
        places = tuple(_places(d, kept.get(d.name)) for d in cube.dimensions)
        selected = tuple(1 if d.name in by else len(p) for d, p in zip(cube.dimensions, places, strict=True))
        return cls(selected=selected, codes=places, axes=tuple(cube.names.index(name) for name in by))


@dataclass(frozen=True, kw_only=True)
class _Noise:
    """The noise of a column: variances of its effects in units of noise, and what a unit is."""

    shape: tuple[int, ...]
    effects: Mapping[Axes, float]
    otherwise: float
    column: ColumnNoise
    parts: int

    @classmethod
    def of(cls, shape: tuple[int, ...], noise: ColumnNoise, *, parts: int) -> "_Noise":
        measured = [Measured(axes=axes, variance=variance) for axes, variance in noise.controls.items()]
        effects = effect_variances(shape, measured)
        return cls(shape=shape, effects=effects, otherwise=noise.variance, column=noise, parts=parts)

    def variance(self, asked: _Asked) -> float:
        return query_variance(self.shape, asked.selected, self.effects, otherwise=self.otherwise)

    def covariance(self, part: _Asked, whole: _Asked) -> float:
        """Of a sum and a larger one that has all its cells."""
        return query_covariance(
            self.shape, part.selected, whole.selected, part.selected, self.effects, otherwise=self.otherwise
        )

    def between_codes(self, asked: _Asked, axis: int) -> float:
        """Of two sums that differ in one code of one dimension."""
        both = tuple(0 if place == axis else n for place, n in enumerate(asked.selected))
        return query_covariance(
            self.shape, asked.selected, asked.selected, both, self.effects, otherwise=self.otherwise
        )

    def square(self, asked: _Asked) -> Floats:
        """The square of one unit of noise in every cell of the answer."""
        return self.column.scale.squares(asked.codes, asked.axes) / float(self.parts) ** 2


def open_cube(bundle: str | Path, name: str) -> PublishedCube:
    """Open a cube of a bundle, once its file agrees with the manifest."""
    folder = Path(bundle)
    structure: dict[str, Any] = json.loads(read_listed(folder, "structure.json"))
    described = {cube["name"]: cube for cube in structure.get("cubes", ())}
    if name not in described:
        raise _wrong(
            f"bundle {folder}", f"one of its cubes: {', '.join(described) or 'it has none'}", repr(name), "choose"
        )
    about = described[name]
    cube, figures = read_stored(read_listed(folder, about["file"]))
    return PublishedCube(
        name=name, title=about["title"], cube=cube, figures=figures, rules=Rules(**about["publication_rules"])
    )


def _kept(where: Where | None) -> dict[str, tuple[str, ...]]:
    """Filters as lists of codes."""
    return {name: (codes,) if isinstance(codes, str) else tuple(codes) for name, codes in (where or {}).items()}


def _places(dimension: Dimension, kept: tuple[str, ...] | None) -> NDArray[np.intp]:
    if kept is None:
        return np.arange(len(dimension.codes))
    wanted = frozenset(kept)
    return np.flatnonzero([code in wanted for code in dimension.codes])


def _spread(table: Cube, column: str, within: Sequence[str]) -> Floats:
    """The totals over all other dimensions, laid over the table."""
    axes = table.axes(within)
    others = tuple(axis for axis in range(len(table.dimensions)) if axis not in axes)
    whole = table[column].sum(axis=others, keepdims=True) / table.parts[column]
    return np.array(np.broadcast_to(whole, table.shape), dtype=np.float64)


def _over(above: Floats, totals: Floats) -> Floats:
    """A variance divided by the square of a total; NaN where that is 0."""
    return _ratio(np.broadcast_to(above, np.shape(totals)), np.asarray(totals**2))


def _ratio(above: Floats, below: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = np.where(below == 0, np.nan, above / below)
    return ratio


def _wrong(where: str, expected: str, found: str, do: str) -> SfumatoError:
    return SfumatoError(where, expected=expected, found=found, do=do)
