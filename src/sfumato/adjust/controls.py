"""Control totals: tables that a cube is to agree with, checked, and made to agree with each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfumato.adjust.reconcile import Protected, reconcile
from sfumato.cells import Cells, Dimension
from sfumato.cube.agreeing import shared_by, whole_margin
from sfumato.cube.cube import Cube, Integers
from sfumato.cube.margins import Axes, Floats, Margin, Numbers
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
    as possible, in their typical errors, until they agree with the exact ones and with each other.
    """
    names = [dimension.name for dimension in dimensions]
    _check(dimensions, controls)
    exact = [(control, _margin(names, control)) for control in controls if control.exact]
    for (one, first), (other, second) in combinations(exact, 2):
        _check_agree(names, one, other, first, second)
    found = {control.name: margin for control, margin in exact}
    # Tables with many dimensions come last: what they share with all others is then known.
    noisy = sorted((control for control in controls if not control.exact), key=lambda control: len(control.by))
    values = _reconciled(dimensions, controls, nonnegative=nonnegative) if noisy else {}
    for control in noisy:
        axes, table = _ascending(names, control.by, values[control.name])
        found[control.name] = whole_margin(axes, table, list(found.values()), nonnegative=nonnegative)
    margins = [found[control.name] for control in controls]
    if nonnegative:
        _check_nonnegative(controls, margins)
    return margins


def _reconciled(
    dimensions: tuple[Dimension, ...], controls: Sequence[Control], *, nonnegative: bool
) -> Mapping[str, Floats]:
    by_name = {dimension.name: dimension for dimension in dimensions}
    tables = {}
    for control in controls:
        cells = Cells(
            dimensions=tuple(by_name[name] for name in control.by),
            positions=np.arange(control.values.size),
            columns={"value": control.values.ravel()},
        )
        errors = np.full(control.values.size, np.sqrt(control.variance))
        tables[control.name] = Protected(cells=cells, errors=errors, nonnegative=nonnegative and not control.exact)
    found = reconcile(tables)
    return {control.name: found[control.name].reshape(control.values.shape) for control in controls}


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
            do="take both from the same records, or give one of them an epsilon: noisy controls are reconciled",
        )


def _check_nonnegative(controls: Sequence[Control], margins: Sequence[Margin]) -> None:
    for control, margin in zip(controls, margins, strict=True):
        if margin.values.size and int(margin.values.min()) < 0:
            raise MethodError(
                f"control {control.name!r}",
                expected="no negative sums, because no cell of the cube may be negative",
                found=f"{int((margin.values < 0).sum()):,} negative ones after reconciling",
                do="leave out nonnegative, or a control that contradicts the others",
            )
