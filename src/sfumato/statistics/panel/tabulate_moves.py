"""Moves of which every worker has at most one in a period, counted between classes of employers."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod

import numpy as np
import pyarrow as pa

from sfumato.cells import Cells
from sfumato.engine.chunks import positions_of
from sfumato.engine.connect import Tables
from sfumato.engine.query import Rows, text
from sfumato.frame.data import Frame
from sfumato.statistics.panel.question import PairQuestion
from sfumato.statistics.panel.tabulate_graph import numbered
from sfumato.statistics.panel.tabulate_pairs import (
    classes_of_ends,
    flows_of,
    listed_positions,
    moves,
    moves_can_be_seen,
    pay_at,
)


@contextmanager
def main_moves(frame: Frame, tables: Tables) -> Iterator[Rows]:
    """The main move of every worker in every period: that between the two jobs that paid most in it.

    Of moves that paid the same it is the one whose employers come first, as texts: the order of rows plays no part.
    """
    with moves(frame, tables) as found:
        left = found.join(pay_at(frame, tables, "_from"), ["_worker", "_from", "_period"])
        moved = left.join(pay_at(frame, tables, "_to"), ["_worker", "_to", "_period"])
        paid = moved.with_columns(
            _paid="_from_pay + _to_pay", _from_name=text(moved, "_from"), _to_name=text(moved, "_to")
        )
        place = "row_number() OVER (PARTITION BY _worker, _period ORDER BY _paid DESC, _from_name, _to_name)"
        chosen = paid.with_columns(_place=place).where("_place = 1")
        yield chosen.select("_worker", "_from", "_to", "_period")


def main_flows(frame: Frame, tables: Tables, questions: Mapping[str, PairQuestion]) -> dict[str, Cells]:
    """Answer every question with the number of main moves as `count`, and where moves can be seen as `available`.

    Every combination of codes is listed. A move is chosen among all of a worker's, before any are left out.
    """
    with main_moves(frame, tables) as found, found.kept() as kept:
        return {name: _cells(frame, tables, kept, question) for name, question in questions.items()}


def _cells(frame: Frame, tables: Tables, moved: Rows, question: PairQuestion) -> Cells:
    found, listed = flows_of(frame, tables, moved, question), listed_positions(question)
    employers, number = numbered(pa.chunked_array(found["_first"].chunks + found["_second"].chunks, pa.string()))
    first, second = number[: found.num_rows], number[found.num_rows :]
    classes, as_first, as_second = classes_of_ends(frame, tables, question, employers)
    kept = as_first[first] & as_second[second]
    if not question.directed:
        kept |= as_first[second] & as_second[first]
    one, other = classes[first][kept], classes[second][kept]
    if not question.directed:
        one, other = np.minimum(one, other), np.maximum(one, other)
    ends, others = len(question.attributes), question.by[2 * len(question.attributes) :]
    place = one * prod(map(len, question.by[:ends])) + other
    place = place * prod(map(len, others)) + positions_of(found.filter(pa.array(kept)), others, others)
    links = found["_links"].to_numpy().astype(np.int64)[kept]
    count = np.zeros(len(listed), dtype=np.int64)
    np.add.at(count, np.searchsorted(listed, place), links)
    columns = {"count": count, "available": moves_can_be_seen(frame, question, listed)}
    return Cells(dimensions=question.by, positions=listed, columns=columns)
