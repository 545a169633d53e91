"""Control totals: tables that a cube is to agree with, checked, and made to agree with each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfumato.adjust.reconcile import Protected, reconcile
from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells, Dimension
from sfumato.cube.agreeing import asked_of, shared_by, whole_margin
from sfumato.cube.bounded import bounded_change
from sfumato.cube.cube import Cube
from sfumato.cube.margins import Axes, Margin, Numbers, residuals
from sfumato.cube.one_table import Wanted, can_be_met, margins_of_one_table
from sfumato.cube.whole_numbers import make_a_chain
from sfumato.errors import MethodError


@dataclass(frozen=True, kw_only=True)
class Control:
    """A table of lower dimension that the cube must add up to, in the units of the cube's column."""

    name: str
    by: tuple[str, ...]
    """Dimensions of the cube; none for the grand total."""
    values: Integers
    """One axis for each dimension, in the order of `by`."""
    variance: float = 0.0
    """The variance of its noise in every cell, in squared units; 0 for an exact control."""

    @property
    def exact(self) -> bool:
        """Whether it holds as it is: it was not perturbed, and disclosing it is stated in the guarantee."""
        return self.variance == 0


def agreed_margins(
    dimensions: tuple[Dimension, ...], controls: Sequence[Control], *, nonnegative: bool = False
) -> list[Margin]:
    """The controls as margins of the cube, whole numbers that agree exactly in everything any two of them share.

    Exact controls stay as they are, and are refused where two contradict each other. Noisy ones are changed as little
    as possible, in their typical errors, until they agree with the exact ones and with each other. With `nonnegative`
    they end as margins that some cube without negative cells has, whatever their noise: where exact ones close a ring,
    up to a few units.
    """
    exact = _exact_margins(dimensions, controls, nonnegative=nonnegative)
    noisy = [control for control in controls if not control.exact]
    if not noisy:
        return [exact[control.name] for control in controls]
    if nonnegative and not _can_be_built(dimensions, controls):
        found = exact | _of_one_table(dimensions, noisy, list(exact.values()))
        return [found[control.name] for control in controls]
    values = reconciled(dimensions, controls)
    found, known = dict(exact), list(exact.values())
    if nonnegative and not known:
        # All tables have this total now; negative cells taken out of each by itself would give them larger ones.
        known.append(Margin(axes=(), values=np.asarray(max(round(float(values[noisy[0].name].sum())), 0))))
    for control in _coarse_first(noisy):
        axes, table = _ascending(_names(dimensions), control.by, values[control.name])
        if nonnegative:
            table = _without_negatives(axes, table, known)
        found[control.name] = whole_margin(axes, table, known, nonnegative=nonnegative)
        known.append(found[control.name])
    return [found[control.name] for control in controls]


def refuse_contradictions(
    dimensions: tuple[Dimension, ...], controls: Sequence[Control], *, nonnegative: bool = False
) -> None:
    """Refuse, by name, exact controls that no cube meets; with `nonnegative`, that no cube without negative cells does.

    Noisy controls are changed until they can be met, and are not looked at.
    """
    margins = list(_exact_margins(dimensions, controls, nonnegative=nonnegative).values())
    if nonnegative and not can_be_met(tuple(map(len, dimensions)), margins):
        names = ", ".join(repr(control.name) for control in controls if control.exact)
        raise MethodError(
            f"exact controls {names}",
            expected="tables that some cube without negative cells adds up to, because of nonnegative = true",
            found="none that does: every two of them agree, all together they do not",
            do="leave out nonnegative, or one of these controls",
        )


def _exact_margins(
    dimensions: tuple[Dimension, ...], controls: Sequence[Control], *, nonnegative: bool
) -> dict[str, Margin]:
    """The exact controls as margins, by name, once no two of them contradict each other."""
    names = _names(dimensions)
    _check(dimensions, controls)
    exact = [(control, _margin(names, control)) for control in controls if control.exact]
    for (one, first), (other, second) in combinations(exact, 2):
        _check_agree(names, one, other, first, second)
    if nonnegative:
        _check_nonnegative(exact)
    return {control.name: margin for control, margin in exact}


def _can_be_built(dimensions: tuple[Dimension, ...], controls: Sequence[Control]) -> bool:
    """Whether rounding noisy controls one after the other always ends in margins that can be met together.

    All must make a chain, and so must what each has to agree with when it is its turn.
    """
    names = _names(dimensions)
    known = [_axes(names, control.by) for control in controls if control.exact]
    for control in _coarse_first(controls):
        if not control.exact:
            axes = _axes(names, control.by)
            if not make_a_chain([tuple(axis for axis in axes if axis in other) for other in known]):
                return False
            known.append(axes)
    return make_a_chain(known)


def _coarse_first(controls: Sequence[Control]) -> list[Control]:
    """Noisy tables with many dimensions come last: what they share with all others is then known."""
    return sorted((control for control in controls if not control.exact), key=lambda control: len(control.by))


def _of_one_table(
    dimensions: tuple[Dimension, ...], noisy: Sequence[Control], exact: Sequence[Margin]
) -> dict[str, Margin]:
    names = _names(dimensions)
    wanted = [Wanted(margin=_margin(names, control), variance=control.variance) for control in noisy]
    found = margins_of_one_table(tuple(map(len, dimensions)), wanted, exact)
    return {control.name: margin for control, margin in zip(noisy, found, strict=True)}


def _without_negatives(axes: Axes, table: Floats, known: Sequence[Margin]) -> Floats:
    """The nearest table without negative cells that has the sums which known margins ask for."""
    start = np.rint(table).astype(np.int64)
    change = bounded_change(start, residuals(start, asked_of(axes, known)))
    return np.maximum(start + change.cells, 0)


def reconciled(dimensions: tuple[Dimension, ...], controls: Sequence[Control]) -> Mapping[str, Floats]:
    """The values of controls, by name, changed as little as possible in their errors until they agree."""
    by_name = {dimension.name: dimension for dimension in dimensions}
    tables = {}
    for control in controls:
        cells = Cells(
            dimensions=tuple(by_name[name] for name in control.by),
            positions=np.arange(control.values.size),
            columns={"value": control.values.ravel()},
        )
        errors = np.full(control.values.size, np.sqrt(control.variance))
        tables[control.name] = Protected(cells=cells, errors=errors)
    found = reconcile(tables)
    return {control.name: found[control.name].reshape(control.values.shape) for control in controls}


def _names(dimensions: tuple[Dimension, ...]) -> list[str]:
    return [dimension.name for dimension in dimensions]


def _axes(names: Sequence[str], by: Sequence[str]) -> Axes:
    return tuple(sorted(names.index(name) for name in by))


def _margin(names: Sequence[str], control: Control) -> Margin:
    axes, values = _ascending(names, control.by, control.values)
    return Margin(axes=axes, values=values)


def _ascending(names: Sequence[str], by: Sequence[str], values: Numbers) -> tuple[Axes, Numbers]:
    places = [names.index(name) for name in by]
    order = sorted(range(len(by)), key=places.__getitem__)
    return tuple(sorted(places)), np.array(values.transpose(order), order="C")


def controls_of(cube: Cube, column: str, *tables: Sequence[str]) -> list[Control]:
    """Exact controls taken from a cube itself: one for each list of dimensions.

    They are disclosed as they are; in a release only with `exact = true`.
    """
    return [
        Control(name=" × ".join(by) or "total", by=tuple(by), values=cube.only(column).project(*by)[column])
        for by in tables
    ]


def _check(dimensions: tuple[Dimension, ...], controls: Sequence[Control]) -> None:
    lengths = {dimension.name: len(dimension) for dimension in dimensions}
    if len({control.name for control in controls}) != len(controls):
        raise MethodError(
            "controls",
            expected="a name of its own for every control",
            found=", ".join(control.name for control in controls),
            do="rename one of them",
        )
    for control in controls:
        unknown = [name for name in control.by if name not in lengths]
        if unknown or len(set(control.by)) != len(control.by):
            raise MethodError(
                f"control {control.name!r}",
                expected=f"dimensions of the cube, each once: {', '.join(lengths)}",
                found=", ".join(map(repr, unknown or control.by)),
                do="put the variable into the cube, or leave it out of the control",
            )
        expected = tuple(lengths[name] for name in control.by)
        if control.values.shape != expected or control.values.dtype != np.int64:
            raise MethodError(
                f"control {control.name!r}",
                expected=f"whole numbers of shape {expected}: one for each combination of codes",
                found=f"{control.values.dtype} of shape {control.values.shape}",
                do="tabulate the control over the codelists of the cube",
            )
        if not control.variance >= 0 or control.variance == float("inf"):
            raise MethodError(
                f"control {control.name!r}",
                expected="a variance from 0 on",
                found=str(control.variance),
                do="give the variance of the noise in its cells, or 0 for an exact control",
            )


def _check_agree(names: Sequence[str], one: Control, other: Control, first: Margin, second: Margin) -> None:
    axes, ours, theirs = shared_by(first, second)
    wrong = int(np.count_nonzero(ours != theirs))
    if wrong:
        where = " × ".join(names[axis] for axis in axes) or "the grand total"
        raise MethodError(
            f"exact controls {one.name!r} and {other.name!r}",
            expected=f"the same sums by {where}" if axes else f"the same sum in {where}",
            found=f"{wrong:,} of {ours.size:,} that differ",
            do="take both from the same records or the same source, or give one of them an epsilon: noisy controls are "
            "reconciled",
        )


def _check_nonnegative(exact: Sequence[tuple[Control, Margin]]) -> None:
    for control, margin in exact:
        if margin.values.size and int(margin.values.min()) < 0:
            raise MethodError(
                f"exact control {control.name!r}",
                expected="no negative sums, because no cell of the cube may be negative",
                found=f"{int((margin.values < 0).sum()):,} negative ones",
                do="leave out nonnegative, or the control",
            )
