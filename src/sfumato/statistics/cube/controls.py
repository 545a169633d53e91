"""Control totals: tables that a cube is to agree with, its own or public already, checked."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.agree.least_squares import Axes, Margin, Numbers, nonnegative_change, residuals
from sfumato.agree.reconcile import Protected, reconcile
from sfumato.agree.whole_numbers import (
    Wanted,
    can_be_met,
    joint_margins,
    make_a_chain,
    required_sums,
    shared_by,
    whole_margin,
)
from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells, Dimension
from sfumato.errors import MethodError, ReleaseError
from sfumato.statistics.cube.section import COUNT, WEIGHTED, ControlSection


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
        found = exact | _joint_margins(dimensions, noisy, list(exact.values()))
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


def _joint_margins(
    dimensions: tuple[Dimension, ...], noisy: Sequence[Control], exact: Sequence[Margin]
) -> dict[str, Margin]:
    names = _names(dimensions)
    wanted = [Wanted(margin=_margin(names, control), variance=control.variance) for control in noisy]
    found = joint_margins(tuple(map(len, dimensions)), wanted, exact)
    return {control.name: margin for control, margin in zip(noisy, found, strict=True)}


def _without_negatives(axes: Axes, table: Floats, known: Sequence[Margin]) -> Floats:
    """The nearest table without negative cells that has the sums which known margins ask for."""
    start = np.rint(table).astype(np.int64)
    change = nonnegative_change(start, residuals(start, required_sums(axes, known)))
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


# Totals that are public already: the table of a control from a file, read and checked before anything is charged.

LARGEST_TOTAL = 10**10
"""What all totals of a table may add up to, so that millionths of them leave room in 64 bits for what is added."""
_NUMBER = r"^-?\d{1,15}(\.\d*)?$"


@dataclass(frozen=True, kw_only=True)
class PublicTotals:
    """The public totals of a control, whole numbers for every combination of codes."""

    name: str
    by: tuple[str, ...]
    columns: Mapping[str, Integers]
    """`count`, `weighted` or both, with one axis for each attribute, in the order of `by`."""
    source: str
    """Where they come from, in words for readers."""

    def in_order(self, dimensions: Mapping[str, Dimension]) -> "PublicTotals":
        """The same numbers with attributes and codes in the order of their names."""
        axes = sorted(range(len(self.by)), key=lambda axis: self.by[axis])
        codes = [np.argsort(np.array(dimensions[self.by[axis]].codes)) for axis in axes]
        columns = {name: values.transpose(axes)[np.ix_(*codes)] for name, values in self.columns.items()}
        return replace(self, by=tuple(self.by[axis] for axis in axes), columns=columns)

    def digest(self) -> str:
        """Name the numbers: with others the cube is another question."""
        parts = [f"{column} {values.shape}".encode() + values.tobytes() for column, values in self.columns.items()]
        return hashlib.sha256(b"".join(parts)).hexdigest()


def read_totals(control: ControlSection, dimensions: Mapping[str, Dimension], folder: Path) -> PublicTotals:
    """Read the file of a control, CSV or Parquet: a row for every combination of codes, none twice, none missing."""
    if control.totals is None:
        raise ValueError("a control with a file of totals")
    reader = _Reader(where=f"control '{control.name}', totals {control.totals}")
    table = reader.table(folder / control.totals)
    reader.know_columns(table, control.by)
    by = tuple(dimensions[name] for name in control.by)
    places = reader.places(table, by)
    columns = {}
    for column in (COUNT, WEIGHTED):
        if column in table.column_names:
            values = np.empty(len(places), dtype=np.int64)
            values[places] = reader.whole_numbers(table, column)
            columns[column] = values.reshape(tuple(map(len, by)))
    return PublicTotals(
        name=control.name, by=control.by, columns=columns, source=control.source or Path(control.totals).name
    )


@dataclass(frozen=True, kw_only=True)
class _Reader:
    """Reads one file; everything wrong with it is said with its name. Its numbers are public and may be quoted."""

    where: str

    def table(self, path: Path) -> pa.Table:
        try:
            if path.suffix.lower() == ".parquet":
                import pyarrow.parquet as pq

                return pq.read_table(path)
            import pyarrow.csv as pv

            with path.open("rb") as file:
                header = file.readline().decode("utf-8-sig")
            # Everything as text: a code may look like a number, and begin with zeros.
            names = [name.strip().strip('"') for name in header.split(",")]
            return pv.read_csv(
                path,
                convert_options=pv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
                ),
            )
        except (OSError, UnicodeDecodeError, pa.ArrowInvalid) as error:
            missing = isinstance(error, FileNotFoundError)
            raise self._wrong(
                expected="a CSV file in UTF-8 with a header line, or a Parquet file",
                found="no such file" if missing else str(error).splitlines()[0],
                do="check the path, which is relative to the release file" if missing else "mend the file",
            ) from error

    def know_columns(self, table: pa.Table, by: tuple[str, ...]) -> None:
        """Refuse a file without the columns of the table, or with others."""
        names = table.column_names
        lacking = [name for name in by if name not in names]
        if lacking or not {COUNT, WEIGHTED} & set(names):
            raise self._wrong(
                expected=f"the columns {', '.join([*by, ''])}and {COUNT}, {WEIGHTED} or both",
                found=f"the columns {', '.join(names) or 'of an empty file'}",
                do=f"add the column '{lacking[0]}'" if lacking else "add the column with the totals",
            )
        unknown = [name for name in names if name not in (*by, COUNT, WEIGHTED) or names.count(name) > 1]
        if unknown:
            raise self._wrong(
                expected=f"no other columns than {', '.join([*by, COUNT, WEIGHTED])}, each once",
                found=f"'{unknown[0]}'",
                do="leave the column out, or correct its name",
            )

    def places(self, table: pa.Table, by: tuple[Dimension, ...]) -> Integers:
        """The cell of every row, in the order of the product; refused unless every cell has its row."""
        place = np.zeros(table.num_rows, dtype=np.int64)
        for dimension in by:
            codes = table[dimension.name].cast(pa.string())
            found = pc.index_in(codes, value_set=pa.array(dimension.codes, pa.string()))
            if found.null_count:
                wrong = codes.filter(pc.is_null(found))[0].as_py()
                raise self._wrong(
                    expected=f"codes of {dimension.name}, such as '{dimension.codes[0]}'",
                    found=f"{found.null_count:,} unknown, such as '{wrong or ''}'",
                    do="correct the codes, or add them to the codelist",
                )
            place = place * len(dimension) + found.to_numpy()
        cells = prod(map(len, by))
        rows = np.bincount(place, minlength=cells)
        for kind, wrong in (("more than one row", rows > 1), ("no row", rows == 0)):
            if wrong.any():
                raise self._wrong(
                    expected=f"one row for each of {cells:,} combinations of codes"
                    if by
                    else "one row, with the grand total",
                    found=f"{kind} for {int(wrong.sum()):,} of them" + _such_as(by, int(np.argmax(wrong))),
                    do="leave out what is there twice"
                    if kind != "no row"
                    else "add what is missing, with 0 if need be",
                )
        return place

    def whole_numbers(self, table: pa.Table, column: str) -> Integers:
        """The numbers of a column, in the order of the rows."""
        found = table[column]
        if pa.types.is_string(found.type) or pa.types.is_large_string(found.type):
            text = pc.utf8_trim_whitespace(found)
            found = pc.if_else(pc.match_substring_regex(text, _NUMBER), text, None)
        try:
            numbers = found.cast(pa.float64(), safe=False).to_numpy()  # none is NaN
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            kind = str(found.type)
            raise self._wrong(expected=f"numbers in '{column}'", found=kind, do="store numbers") from None
        self._refuse(column, ~np.isfinite(numbers), "missing or no number")
        self._refuse(column, numbers < 0, "negative")
        self._refuse(column, numbers != np.floor(numbers), "not whole")
        if float(numbers.sum()) > LARGEST_TOTAL:
            raise self._wrong(
                expected=f"totals in '{column}' that add up to at most {LARGEST_TOTAL:,}",
                found="more",
                do="count in larger units, weights and totals alike",
            )
        whole: Integers = numbers.astype(np.int64)
        return whole

    def _refuse(self, column: str, wrong: NDArray[np.bool_], kind: str) -> None:
        if wrong.any():
            raise self._wrong(
                expected=f"whole numbers from 0 on in '{column}'",
                found=f"{int(wrong.sum()):,} {kind}, first in row {int(np.argmax(wrong)) + 1:,}",
                do="correct the numbers",
            )

    def _wrong(self, *, expected: str, found: str, do: str) -> ReleaseError:
        return ReleaseError(self.where, expected=expected, found=found, do=do)


def _such_as(by: tuple[Dimension, ...], cell: int) -> str:
    """A cell by its codes."""
    if not by:
        return ""
    codes = np.unravel_index(cell, tuple(map(len, by)))
    return ", such as " + " × ".join(dimension.codes[int(code)] for dimension, code in zip(by, codes, strict=True))
