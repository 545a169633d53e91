"""The system of all that coarsened tables show, beside programs over the finest cells that know nothing of it."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from sfumato.exact.coarsening import Programme
from sfumato.exact.refinement import Layer, refinement
from sfumato.exact.rules import Rules
from tests.exact.rounded_tables import in_pairs

RULES = Rules(units=3, percent=10)


@st.composite
def shown(draw: st.DrawFn) -> tuple[Programme, list[np.ndarray], list[Layer]]:
    """Records in two trees, one table about all and one about some, and any cells of either that are shown."""
    trees = [in_pairs(name, 4) for name in "ab"]
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    number = draw(st.integers(8, 30))
    nodes = [rng.integers(3, 7, number) for _ in trees]
    some = rng.random(number) < 0.6
    of = Programme(
        trees=tuple(trees),
        nodes=tuple(nodes),
        unit=np.arange(number),
        value=rng.integers(1, 9, number).astype(np.float64),
        tables={"all": ("a", "b"), "some": ("a", "b")},
        only={"some": some},
        passes=lambda cells: ~RULES.protection(cells).sensitive,
    )
    layers, told = [], [[np.zeros(0, dtype=np.int64)] for _ in trees]
    for table, about in (("all", np.ones(number, dtype=bool)), ("some", some)):
        for _ in range(draw(st.integers(1, 3))):
            pair = [int(rng.integers(0, 7)) for _ in trees]
            above = [
                tree.nearest(np.array([node]))[own] == node for tree, node, own in zip(trees, pair, nodes, strict=True)
            ]
            mine = about & above[0] & above[1]
            if mine.any():
                layers.append(Layer(table=table, records=mine, cell=np.zeros(int(mine.sum()), dtype=np.int64)))
                for place, node in enumerate(pair):
                    told[place].append(np.array([node]))
    return of, [np.concatenate(one) for one in told], layers


@settings(max_examples=25, deadline=None)
@given(shown())
def test_what_is_told_is_what_programs_over_the_finest_cells_find(
    made: tuple[Programme, list[np.ndarray], list[Layer]],
) -> None:
    of, nodes, layers = made
    if not layers:
        return
    found = refinement(of, nodes, layers, RULES)
    told = found.told()
    keys = np.stack([*of.nodes, of.pattern])
    finest = np.unique(keys, axis=1, return_inverse=True)[1].reshape(-1)
    sums = np.stack([np.bincount(finest[one.records], minlength=finest.max() + 1) > 0 for one in layers]).astype(float)
    values = np.array([of.value[one.records].sum() for one in layers])
    begin, cell = found.fine["a", "b"]
    for at, place in enumerate(found.cells.tolist()):
        mine = (np.bincount(finest[cell == place - begin], minlength=finest.max() + 1) > 0).astype(float)
        true = of.value[cell == place - begin].sum()
        low, high = (
            sign * best.fun if (best := linprog(sign * mine, A_eq=sums, b_eq=values)).status == 0 else sign * -np.inf
            for sign in (1, -1)
        )
        near = 1e-5
        enough = low <= true - found.down[at] + near and high >= true + found.up[at] - near
        assert enough != told.too_narrow[at]


@settings(max_examples=10, deadline=None)
@given(shown())
def test_fewer_layers_tell_no_more(made: tuple[Programme, list[np.ndarray], list[Layer]]) -> None:
    of, nodes, layers = made
    found = refinement(of, nodes, layers, RULES)
    fewer = found.told(range(len(layers) - 1))
    assert not bool(np.any(fewer.too_narrow & ~found.told().too_narrow))
    none = replace(found, system=found.seen([])).told()
    assert not none.too_narrow.any()
