"""What units have in inner cells becomes cells with totals and largest contributions, as a loop would make them."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cells import Dimension
from sfumato.statistics.exact.contributions import OWNERS, Parts, counted_cells
from sfumato.statistics.exact.question import ExactQuestion, with_total

PLACE, SECTOR = Dimension(name="place", codes=("A", "B")), Dimension(name="sector", codes=("1", "2", "3"))
ROW = st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 9), st.booleans())


@given(rows=st.lists(ROW, max_size=20), margins=st.booleans(), top=st.integers(2, 4))
def test_cells_are_those_of_a_loop(rows: list[tuple[int, int, int, bool]], margins: bool, top: int) -> None:
    by = tuple(map(with_total, (PLACE, SECTOR))) if margins else (PLACE, SECTOR)
    question = ExactQuestion(by=by, margins=margins, units=("unit", "group"), top=top)
    at, unit, value = (np.array([row[part] for row in rows], dtype=np.int64) for part in range(3))
    asked = np.array([row[3] for row in rows], dtype=bool)
    found = counted_cells(
        question,
        Parts(at=at, value=value, records=np.ones_like(value), units=(unit, unit // 2), asked=asked),
    )
    for position, codes in enumerate(product(*(one.codes for one in by))):
        inside = [
            row
            for row in rows
            if codes[0] in ("total", PLACE.codes[row[0] // 3]) and codes[1] in ("total", SECTOR.codes[row[0] % 3])
        ]
        assert found["exact"][position] == sum(row[2] for row in inside)
        assert found["records"][position] == len(inside)
        for level, group in ((0, 1), (1, 2)):
            sums: dict[int, tuple[int, bool]] = {}
            for row in inside:
                before, wanted = sums.get(row[1] // group, (0, False))
                sums[row[1] // group] = before + row[2], wanted or row[3]
            sums = {name: one for name, one in sums.items() if one[0]}
            leading = sorted(sums, key=lambda name: (not sums[name][1], -sums[name][0], name))[:1]
            others = sorted((n for n in sums if n not in leading), key=lambda name: (-sums[name][0], name))
            order = [*leading, *others]
            sizes = [sums[name][0] for name in order]
            assert found[f"units_{level}"][position] == len(sums)
            assert found[f"largest_{level}"][position] == sum(sizes[:1])
            assert found[f"second_{level}"][position] == sum(sizes[1:2])
            assert found[f"top_{level}"][position] == sum(sizes[:top])
            assert found[f"owner_{level}"][position] == (level * OWNERS + order[0] if len(order) == 1 else -1)
            assert found[f"waived_{level}"][position] == (bool(sums) and not any(one[1] for one in sums.values()))


def test_a_cell_has_no_more_of_a_contributor_than_a_weight_below_one_leaves_it() -> None:
    place = Dimension(name="place", codes=("p",), public=False)
    one = np.ones(3, dtype=np.int64)
    parts = Parts(
        at=0 * one,
        value=np.array([4, 12, 1]),
        records=one,
        units=(np.arange(3),),
        contribution=np.array([8, 6, 1]),
        parts=1,
    )
    found = counted_cells(ExactQuestion(by=(place,), units=("unit",)), parts)
    assert (found["largest_0"][0], found["second_0"][0]) == (8, 6)
    assert (found["share_0"][0], found["other_0"][0]) == (4, 6)  # readers may know no more of weights above one
