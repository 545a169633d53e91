"""Path lengths and centralities: as counted by hand, as networks of classes, and from a bundle alone."""

import numpy as np
import pytest

from sfumato.statistics.panel.graph import Edges
from sfumato.statistics.panel.network import Centrality, ClassNetwork, compare_networks, eigenvector, measure_paths


def edges(*pairs: tuple[int, int, int]) -> Edges:
    first, second, multiplicity = np.array(pairs, dtype=np.int64).reshape(-1, 3).T
    return Edges(first=first, second=second, multiplicity=multiplicity)


def test_the_middle_of_a_star_is_on_every_path() -> None:
    paths, spread = measure_paths(edges((0, 1, 1), (0, 2, 2), (0, 3, 1), (0, 4, 1)), 5)
    assert paths.shares == pytest.approx((0.4, 0.6))  # 8 of 20 ordered pairs are one step apart
    assert (paths.mean, paths.reached, paths.sources) == (pytest.approx(1.6), 1.0, 5)
    assert spread["strength"] == Centrality(median=1.0, largest=5.0, top=0.5)
    assert spread["betweenness"].largest == pytest.approx(12 / (5 * 3))  # 12 ordered pairs of leaves, of 5 sources
    assert spread["closeness"].largest == 1.0
    assert spread["closeness"].median == pytest.approx((1 + 3 / 2) / 4)


def test_shortest_paths_that_are_several_share_what_passes() -> None:
    # A square: two ways from 0 to 2, through 1 and through 3.
    _, spread = measure_paths(edges((0, 1, 1), (1, 2, 1), (2, 3, 1), (0, 3, 1)), 4)
    assert spread["betweenness"].median == spread["betweenness"].largest == pytest.approx(1 / (4 * 2))


def test_parts_that_nothing_links_are_not_reached() -> None:
    paths, _ = measure_paths(edges((0, 1, 3)), 4)
    assert paths.shares == (1.0,)
    assert paths.reached == pytest.approx(2 / 12)


def test_a_graph_without_edges_has_no_paths_and_no_middle() -> None:
    paths, spread = measure_paths(edges(), 3)
    assert (paths.shares, paths.mean, paths.reached) == ((), 0.0, 0.0)
    assert all(found == Centrality(median=0.0, largest=0.0, top=0.0) for found in spread.values())


def test_eigenvector_centrality_is_that_of_linear_algebra() -> None:
    rng = np.random.default_rng(3)
    weights = rng.integers(0, 5, (8, 8)).astype(float)
    weights += weights.T
    vector = np.abs(np.linalg.eigh(weights)[1][:, -1])
    assert eigenvector(weights) == pytest.approx(vector / vector.sum(), abs=1e-6)


def test_closeness_does_not_depend_on_the_unit_of_links_and_strength_does() -> None:
    links = np.array([[0, 6, 1], [6, 0, 3], [1, 3, 0]], dtype=float)
    one, ten = (ClassNetwork(links=scale * links, directed=False).measures() for scale in (1.0, 10.0))
    assert ten["closeness"] == pytest.approx(one["closeness"])
    assert ten["eigenvector"] == pytest.approx(one["eigenvector"])
    assert ten["strength"].tolist() == [70, 90, 40]
    # From 0 to 2 through 1 is 1/6 + 1/3, nearer than the link itself, which is 1: half the length of all links.
    assert one["closeness"][0] == pytest.approx((6 + 2) / 20 / 2)


def test_a_directed_network_goes_one_way() -> None:
    links = np.array([[0, 4, 0], [0, 0, 2], [0, 0, 0]], dtype=float)
    found = ClassNetwork(links=links, directed=True)
    assert found.measures()["strength_out"].tolist() == [4, 2, 0]
    assert found.measures()["strength_in"].tolist() == [0, 4, 2]
    assert found.paths().shares == pytest.approx((2 / 3, 1 / 3))
    assert found.paths().reached == 0.5


def test_one_factor_for_all_links_changes_strength_alone() -> None:
    links = np.array([[0, 60, 10], [60, 0, 30], [10, 30, 0]], dtype=float)
    true, published = (ClassNetwork(links=scale * links, directed=False) for scale in (1.0, 1.2))
    found = compare_networks("t", true, published)
    assert found.centralities["strength"] == (1.0, pytest.approx(0.2))
    assert found.centralities["closeness"][1] == pytest.approx(0)
    assert found.paths[0] == found.paths[1]
