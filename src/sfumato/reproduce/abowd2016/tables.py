"""The two tables of the paper: edges between employers by the states of both ends, and the workers on these edges."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.arrays import Integers
from sfumato.engine.connect import connect
from sfumato.engine.graph import employer_edges
from sfumato.errors import DataError
from sfumato.release import Release

ATTRIBUTE = "state"


@dataclass(frozen=True, kw_only=True, eq=False)
class Edges:
    """Every pair of employers that share a worker: confidential if the workforce were real."""

    employers: pa.Array
    """The identifiers of all employers."""
    first: Integers
    second: Integers
    """Positions of the two employers of each edge."""
    workers: Integers
    """How many workers each edge has."""
    cell: Integers
    """The pair of states of each edge, whichever comes first."""
    cells: int
    """The number of such pairs, a state with itself included."""

    def __len__(self) -> int:
        return len(self.workers)

    @property
    def filled(self) -> int:
        """The number of cells with an edge."""
        return len(np.unique(self.cell))

    def sums(self, weights: Integers) -> Integers:
        """The sum of a whole number of every edge in every cell, exact below 2^53."""
        return np.bincount(self.cell, weights=weights, minlength=self.cells).astype(np.int64)


def read_edges(release: Release) -> Edges:
    """Project the jobs of a workforce onto its employers."""
    frame = release.frame
    if frame.joined or frame.jobs.worker is None or not frame.is_public(ATTRIBUTE):
        raise DataError(
            f"data {frame.folder}",
            expected="a workforce as `sfumato economy federal` writes it, with workers and the states of employers",
            found="another kind of data",
            do="name such a folder with --data, or leave --data out",
        )
    with connect(frame) as tables:
        assert frame.workplaces is not None
        assert tables.workplaces is not None
        employers = tables.workplaces.select(employer=frame.workplaces.key, state=ATTRIBUTE).to_pyarrow()
        edges = employer_edges(frame, tables).to_pyarrow()
    employers = employers.sort_by("employer")
    names = employers["employer"].combine_chunks()
    state = employers[ATTRIBUTE].cast(pa.string()).combine_chunks().dictionary_encode()
    first, second = (_positions(edges[end], names) for end in ("_first", "_second"))
    of_state = state.indices.to_numpy().astype(np.int64)
    cell, cells = _pairs(of_state[first], of_state[second], states=len(state.dictionary))
    # Sorted, so that nothing depends on the order in which the engine hands out its answer.
    order = np.lexsort((second, first))
    return Edges(
        employers=names,
        first=first[order],
        second=second[order],
        workers=edges["_workers"].to_numpy().astype(np.int64)[order],
        cell=cell[order],
        cells=cells,
    )


def _positions(names: pa.ChunkedArray, among: pa.Array) -> Integers:
    found: Integers = pc.index_in(names.cast(among.type), value_set=among).to_numpy().astype(np.int64)
    return found


def _pairs(one: Integers, other: Integers, *, states: int) -> tuple[Integers, int]:
    """The number of every unordered pair of states, and how many pairs there are."""
    low, high = np.minimum(one, other), np.maximum(one, other)
    return low * states - low * (low - 1) // 2 + high - low, states * (states + 1) // 2
