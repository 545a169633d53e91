"""A question to a cube: which dimensions, which codes, and how many codes go into one cell of the answer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from sfumato.cells import Dimension
from sfumato.cube.cube import Cube
from sfumato.cube.margins import Axes
from sfumato.errors import SfumatoError

By = str | Sequence[str]
"""The dimensions of an answer, in its order; one of them may be named without a list."""
Where = Mapping[str, str | Iterable[str]]
"""The codes to keep, by dimension."""
Places = tuple[int, ...]
_LISTED = 12


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question as counts of codes: how many of each dimension go into one cell of the answer."""

    by: tuple[str, ...]
    axes: Axes
    """The dimensions of the answer, in its order."""
    kept: Mapping[int, Places]
    """The places of the codes that are kept, ascending, of dimensions with a filter."""
    selected: tuple[int, ...]
    codes: tuple[NDArray[np.intp], ...]
    """Of every dimension, the places of the codes that are kept."""

    @classmethod
    def of(cls, cube: Cube, by: By, where: Where | None) -> "Asked":
        """The question, once every name and every code in it is known and no dimension is named twice."""
        names = listed_once(by)
        kept = {name: kept_codes(name, codes) for name, codes in (where or {}).items()}
        for name in (*names, *kept):
            if name not in cube.names:
                raise unknown("cube", "one of its dimensions", name, cube.names)
        axes = {name: cube.names.index(name) for name in (*names, *kept)}
        places = {axes[name]: kept_places(cube.dimensions[axes[name]], codes) for name, codes in kept.items()}
        return cls.at(cube, tuple(axes[name] for name in names), places)

    @classmethod
    def at(cls, cube: Cube, axes: Axes, kept: Mapping[int, Places]) -> "Asked":
        """The question by the places of its dimensions and of the codes that are kept, which are known to be right."""
        codes = tuple(
            np.array(kept[axis], dtype=np.intp) if axis in kept else every for axis, every in enumerate(cube.places)
        )
        selected = tuple(1 if axis in axes else len(places) for axis, places in enumerate(codes))
        return cls(by=tuple(cube.names[axis] for axis in axes), axes=axes, kept=kept, selected=selected, codes=codes)


def listed_once(by: By) -> tuple[str, ...]:
    """The names of dimensions, each of which is there once."""
    names = (by,) if isinstance(by, str) else tuple(by)
    if len(set(names)) != len(names):
        raise SfumatoError(
            "dimensions", expected="each dimension once", found=", ".join(map(repr, names)), do="name it once"
        )
    return names


def kept_codes(name: str, codes: str | Iterable[str]) -> tuple[str, ...]:
    """The codes of a filter, of which there is at least one."""
    kept = (codes,) if isinstance(codes, str) or not isinstance(codes, Iterable) else tuple(codes)
    if not kept:
        raise SfumatoError(
            f"dimension {name!r}",
            expected="at least one code to keep",
            found="none",
            do="name the codes, or leave the filter out to keep all",
        )
    return kept


def unknown(where: str, what: str, name: object, known: Sequence[str]) -> SfumatoError:
    """A name or code that is none, with those there are and the nearest of them."""
    close = get_close_matches(str(name), known, n=1)
    listed = ", ".join(known[:_LISTED]) + (", …" if len(known) > _LISTED else "")
    return SfumatoError(
        where,
        expected=f"{what}: {listed or 'it has none'}",
        found=repr(name),
        do=f"did you mean {close[0]!r}?" if close else "choose one of these",
    )


def kept_places(dimension: Dimension, codes: Iterable[str]) -> Places:
    """The places of codes in a dimension that has them, ascending, each once."""
    codes = tuple(codes)
    for code in codes:
        if code not in dimension.places:
            raise unknown(f"dimension {dimension.name!r}", "codes of its codelist", code, dimension.codes)
    return tuple(sorted({dimension.places[code] for code in codes}))
