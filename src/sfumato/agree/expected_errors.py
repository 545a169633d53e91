"""The errors that tables will have once they were made to agree, by public numbers alone; docs/plan.md has the model.

Agreed values are generalised least squares of all measured tables, so the error of each follows from the epsilon of
all. What it depends on is public: which cells there are, how many establishments each has, and the parameters.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, permutations
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato.agree.published import usual_error
from sfumato.agree.reconcile import Above, Protected, shared_margins, unrelated
from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells, Dimension
from sfumato.method import PlannedError

MOST_CELLS = 400
"""So many cells, of all tables, take part in the algebra: codes are put together until there are no more."""
LARGEST, GROWTH = 1.5, 0.6
"""The largest of m establishments has 1.5·m^0.6 times as many workers, on average, as an establishment has."""
UNLIKE = 14.0
"""The mean square of the largest is that mean squared, times 1 + this/√m: cells of few establishments differ most."""
_TAILS = 4 / np.pi
"""The mean magnitude of a sum of much noise is that of normal noise; this is its square, of Laplace noise, by that."""
_FEW = 0.8
"""Of the mean square of noise that is unlike from cell to cell, what its mean magnitude lacks; sums of more parts come
nearer to it, slowly, as the tails of sizes are long."""
_SHRUNK = 0.8
_SIZES = 4
"""So many classes of sizes are kept apart, on average, of codes that lie in one above them."""
_SAME = 1e-9
_COUNTS = ("its count", "the cell's count")
"""What the errors of some methods follow, and not the largest establishment."""
_ANY = PlannedError(floor=0.0, floor_size=0, share=1.0)
_UNKNOWN = 1e-9
"""Of the least weight: what cells weigh of which no measured table tells anything."""


@dataclass(frozen=True, kw_only=True)
class Level:
    """The cells of one table: those that are alike together, and in which cell of the algebra they are."""

    name: str
    establishments: Floats
    times: Floats
    """How many cells are alike."""
    place: NDArray[np.intp]
    one_part: Floats
    """How far each is made of one part of the finest table that lies in it: 1 if it is, near 0 of many alike."""
    worker_cells: int
    cells: Cells
    """Of the algebra: codes are put together."""

    def summed(self, column: Floats) -> Floats:
        """Sums over the cells of the table that are in each cell of the algebra."""
        found: Floats = np.bincount(self.place, weights=column, minlength=len(self.cells)).astype(np.float64)
        return found

    def shares(self, meant: Flags) -> Floats:
        """How much each cell has to say in the mean of those that are meant."""
        number = self.times * meant
        shares: Floats = number / number.sum()
        return shares

    def weighed(self, planned: PlannedError | None) -> tuple[Floats, Floats]:
        """By what agreement goes: the variance of every cell of the algebra, and the part of it that each cell has."""
        squares = np.square(usual_error(_ANY if planned is None else planned, self.establishments))
        variances = self.summed(self.times * squares)
        return variances, squares / variances[self.place] * (1 - _FEW * np.sqrt(self.one_part))

    def squares(self, planned: PlannedError, workers: float) -> tuple[Floats, Floats]:
        """What is to be expected: the square of each cell's mean error, and the variance of every cell of the algebra.

        Cells that are alike in the number of establishments are not in their sizes, so that the one is no square of
        the other.
        """
        share = planned.share or 0.0
        largest = LARGEST * workers * self.establishments**GROWTH
        mean = workers * self.establishments if planned.of in _COUNTS else largest
        errors = np.maximum(planned.floor, share * mean)
        unlike = 1 + UNLIKE / np.sqrt(self.establishments)
        noise = _TAILS * np.maximum(planned.floor**2, np.square(share * mean) * unlike)
        return np.square(errors), self.summed(self.times * noise)


@dataclass(frozen=True, kw_only=True)
class AgreementModel:
    """Tables about the same jobs that are to agree, as cells of one system."""

    levels: tuple[Level, ...]
    workers: float
    """What an establishment has on average."""
    above: Above = unrelated
    """Which dimensions of the algebra lie in others."""

    @cached_property
    def spans(self) -> tuple[slice, ...]:
        """Where the cells of each table are among all."""
        ends = np.cumsum([0, *(len(level.cells) for level in self.levels)])
        return tuple(slice(int(first), int(last)) for first, last in pairwise(ends))

    @cached_property
    def basis(self) -> Floats:
        """Directions that span all values which agree: the kernel of the differences of shared sums."""
        at = {level.name: span.start for level, span in zip(self.levels, self.spans, strict=True)}
        tables = {level.name: Protected(cells=level.cells, errors=np.ones(len(level.cells))) for level in self.levels}
        number = self.spans[-1].stop
        squares = np.zeros((number, number))
        for margin in shared_margins(tables, self.above):
            differences = np.zeros((margin.sums, number))
            for name, sums, sign in ((margin.first, margin.first_sums, 1.0), (margin.second, margin.second_sums, -1.0)):
                differences[sums, at[name] + np.arange(len(sums))] = sign
            squares += differences.T @ differences
        values, vectors = np.linalg.eigh(squares)
        kernel: Floats = vectors[:, values < _SAME * max(float(values[-1]), 1.0)]
        return kernel

    def errors(self, planned: Sequence[PlannedError | None], meant: Sequence[Flags]) -> Floats:
        """The mean error of the cells that are `meant` of each table, by what the methods promise of each.

        None stands for tables that are not measured: they are sums of others.
        """
        weights, noise = np.zeros(self.spans[-1].stop), np.zeros(self.spans[-1].stop)
        own: list[Floats | float] = []
        parts = []
        for level, span, plan in zip(self.levels, self.spans, planned, strict=True):
            variances, part = level.weighed(plan)
            parts.append(part)
            own.append(0.0)
            if plan is not None:
                weights[span] = 1 / variances
                own[-1], noise[span] = level.squares(plan, self.workers)
        covariance = self.covariance(weights)
        agreed = covariance * weights  # agreed values are this times measured ones
        kept = np.square(np.diag(agreed))
        rest = np.square(agreed) @ noise - kept * noise
        # What nothing measured tells is not known at all: this is 0 but where no table leads to a cell.
        rest += np.maximum(np.diag(covariance) - np.square(covariance) @ weights, 0.0)
        found = []
        for level, span, square, part, cells in zip(self.levels, self.spans, own, parts, meant, strict=True):
            errors = np.sqrt(kept[span][level.place] * square + rest[span][level.place] * part)
            found.append(float(level.shares(cells) @ errors))
        return np.array(found)

    def covariance(self, weights: Floats) -> Floats:
        """Of the agreed values of all cells; `weights` are 1/variance of the measured ones, 0 if they are none."""
        known = (self.basis.T * weights) @ self.basis
        known[np.diag_indices_from(known)] += _UNKNOWN * weights[weights > 0].min(initial=np.inf)
        found: Floats = self.basis @ np.linalg.solve(known, self.basis.T)
        return found


def agreement_model(
    tables: Mapping[str, Sequence[Dimension]],
    register: Cells | None,
    *,
    taken: Mapping[str, int],
    workers: float,
    most: int = MOST_CELLS,
) -> AgreementModel:
    """The cells of tables about the same jobs, by the register of establishments.

    Where there is none, all combinations of codes are cells, each with as many establishments as are `taken`.
    """
    named = {dimension.name: dimension for by in tables.values() for dimension in by}
    inside = {} if register is None else _inside([one for one in named.values() if one.public], register)
    together = _together(tables, named, register, inside, most)
    levels = tuple(
        _level(
            name,
            by,
            _finest(by, tables.values(), inside),
            register=register,
            inside=inside,
            taken=taken[name],
            together=together,
        )
        for name, by in tables.items()
    )
    folded = {
        (fine, coarse): {
            str(own): str(together[coarse][code])
            for own, code in zip(together[fine].tolist(), lies.tolist(), strict=True)
            if code >= 0
        }
        for (fine, coarse), lies in inside.items()
    }
    return AgreementModel(
        levels=levels, workers=workers, above=lambda fine, coarse: folded.get((fine.name, coarse.name))
    )


_Inside = Mapping[tuple[str, str], NDArray[np.intp]]
"""Of pairs of dimensions of which the first lies in the second: the code there of each own code; −1 of unused ones."""


def _inside(public: Sequence[Dimension], register: Cells) -> dict[tuple[str, str], NDArray[np.intp]]:
    """The dimensions that lie in others, by the register: every code has one code of the other, and there are fewer."""
    found = {}
    for fine, coarse in permutations(public, 2):
        own, other = register.codes(fine.name), register.codes(coarse.name)
        lies = np.full(len(fine), -1, dtype=np.intp)
        lies[own] = other
        if np.array_equal(lies[own], other) and len(np.unique(own)) > len(np.unique(other)):
            found[fine.name, coarse.name] = lies
    return found


def _together(
    tables: Mapping[str, Sequence[Dimension]],
    named: Mapping[str, Dimension],
    register: Cells | None,
    inside: _Inside,
    most: int,
) -> dict[str, NDArray[np.intp]]:
    """Of every code of each dimension, which codes it is put together with: those with as many establishments.

    The gain by agreement hangs on how the noise of a cell compares with that of its parts. It hardly changes when cells
    of the same size are added up, in all tables alike. Codes that lie in others stay inside those these are put
    together with.
    """
    sizes = {name: np.ones(len(dimension)) for name, dimension in named.items()}
    for name, dimension in named.items():
        if register is not None and dimension.public:
            listed = np.bincount(register.codes(name), weights=register["establishments"], minlength=len(dimension))
            sizes[name] = listed.astype(np.float64)
    numbers = {name: int(np.count_nonzero(size)) for name, size in sizes.items()}
    while sum(prod(numbers[one.name] for one in by) for by in tables.values()) > most:
        widest = max(numbers, key=lambda name: numbers[name])
        numbers[widest] = min(int(numbers[widest] * _SHRUNK), numbers[widest] - 1)
        for fine, coarse in inside:  # sizes have to stay apart inside each code above
            numbers[coarse] = min(numbers[coarse], max(numbers[fine] // _SIZES, 1))
    found: dict[str, NDArray[np.intp]] = {}
    for name in sorted(sizes, key=lambda name: int(np.count_nonzero(sizes[name]))):  # coarser ones come first
        size = sizes[name]
        found[name] = np.zeros(len(size), dtype=np.intp)
        used = np.argsort(-size, kind="stable")[: np.count_nonzero(size)]
        outer = [found[coarse][inside[name, coarse][used]] for coarse in found if (name, coarse) in inside]
        apart = np.unique(np.stack(outer), axis=1, return_inverse=True)[1] if outer else np.zeros(len(used), np.intp)
        group = 0
        for one in range(int(apart.max(initial=-1)) + 1):
            codes = used[apart == one]
            share = min(max(round(numbers[name] * len(codes) / len(used)), 1), len(codes))
            for some in np.array_split(codes, share):
                found[name][some] = group
                group += 1
    return found


def _finest(by: Sequence[Dimension], tables: Iterable[Sequence[Dimension]], inside: _Inside) -> Sequence[Dimension]:
    """The dimensions of the finest table whose cells add up to those of another."""
    adding_up = (one for one in tables if all(_source(dimension, one, inside) is not None for dimension in by))
    return max(adding_up, key=lambda one: prod(map(len, one)))


def _source(dimension: Dimension, among: Sequence[Dimension], inside: _Inside) -> Dimension | None:
    """The one among some dimensions that tells the code of another: itself, or one that lies in it."""
    own = next((one for one in among if one.name == dimension.name), None)
    return own or next((one for one in among if (one.name, dimension.name) in inside), None)


def _level(
    name: str,
    by: Sequence[Dimension],
    finest: Sequence[Dimension],
    *,
    register: Cells | None,
    inside: _Inside,
    taken: int,
    together: Mapping[str, NDArray[np.intp]],
) -> Level:
    public = [dimension for dimension in by if dimension.public and register is not None]
    places: dict[str, NDArray[np.intp]] = {}
    establishments, times = np.array([float(taken)]), np.ones(1)
    # Of dimensions that are told apart in the finest table alone, and of which nothing is known, parts are alike.
    unknown = [dimension for dimension in finest if dimension not in by and (register is None or not dimension.public)]
    one_part = np.full(1, 1 / prod(map(len, unknown)))
    if register is not None and public:
        listed = {dimension.name: register.codes(dimension.name) for dimension in public}
        own, where = np.unique(_positions(public, listed), return_inverse=True)
        number = np.bincount(where, weights=register["establishments"])
        cells = Cells(dimensions=tuple(public), positions=own)
        folded = {dimension.name: together[dimension.name][cells.codes(dimension.name)] for dimension in public}
        rows, alike = np.unique(np.stack([*folded.values(), number]), axis=1, return_inverse=True)
        places = {one: rows[at].astype(np.intp) for at, one in enumerate(folded)}
        establishments, times = rows[-1], np.bincount(alike).astype(np.float64)
        one_part = np.bincount(alike, weights=_one_part(public, finest, register, inside)) / times * one_part
    elif register is not None:
        establishments = np.array([float(register["establishments"].sum())])
    for dimension in by:
        if dimension.name not in places:  # all its codes, beside every cell so far
            codes = np.bincount(together[dimension.name]).astype(np.float64)
            places = {one: np.repeat(code, len(codes)) for one, code in places.items()}
            places[dimension.name] = np.tile(np.arange(len(codes)), len(times))
            establishments, one_part = (np.repeat(column, len(codes)) for column in (establishments, one_part))
            times = np.repeat(times, len(codes)) * np.tile(codes, len(times))
    dimensions = tuple(
        Dimension(
            name=dimension.name,
            codes=tuple(map(str, range(together[dimension.name].max() + 1))),
            public=dimension.public,
        )
        for dimension in by
    )
    positions, place = np.unique(_positions(dimensions, places), return_inverse=True)
    return Level(
        name=name,
        establishments=establishments,
        times=times,
        place=place,
        one_part=np.zeros(len(times)) if finest is by else one_part,
        worker_cells=prod(len(dimension) for dimension in by if not dimension.public),
        cells=Cells(dimensions=dimensions, positions=positions),
    )


def _one_part(public: Sequence[Dimension], finest: Sequence[Dimension], register: Cells, inside: _Inside) -> Floats:
    """Of every cell by some dimensions, how far the noise of its parts by more dimensions is that of one part."""
    finer = [dimension for dimension in finest if dimension.public]
    listed = {dimension.name: register.codes(dimension.name) for dimension in finer}
    positions, where = np.unique(_positions(finer, listed), return_inverse=True)
    number = np.bincount(where, weights=register["establishments"])
    noise = number ** (2 * GROWTH) * (1 + UNLIKE / np.sqrt(number))
    parts = Cells(dimensions=tuple(finer), positions=positions)
    codes = {}
    for dimension in public:
        source = _source(dimension, finer, inside) or dimension
        same = source.name == dimension.name
        told = parts.codes(source.name)
        codes[dimension.name] = told if same else inside[source.name, dimension.name][told]
    _, own = np.unique(_positions(public, codes), return_inverse=True)
    found: Floats = np.bincount(own, weights=np.square(noise)) / np.square(np.bincount(own, weights=noise))
    return found


def _positions(dimensions: Sequence[Dimension], codes: Mapping[str, NDArray[np.intp]]) -> Integers:
    """The place of combinations of codes in the product of dimensions."""
    found: Integers = np.zeros(len(next(iter(codes.values()))), dtype=np.int64)
    for dimension in dimensions:
        found = found * len(dimension) + codes[dimension.name]
    return found
