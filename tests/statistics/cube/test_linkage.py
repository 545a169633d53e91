"""Slivers, linked tables and linked records: unprotected counts disclose all of them, a cube what its noise leaves."""

from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.bundle.read import open_bundle
from sfumato.cells import Dimension
from sfumato.errors import SfumatoError
from sfumato.noise.randomness import Seeded
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato.statistics.cube.assess import without_noise
from sfumato.statistics.cube.cube import MILLION, Cube
from sfumato.statistics.cube.cube_query import Rules
from sfumato.statistics.cube.linkage import RECORDS, SLIVERS, TABLES, Linkage, known_sets, linkage_attacks
from sfumato.statistics.cube.protect import protected_cube
from sfumato.statistics.cube.published_cube import PublishedCube
from sfumato.statistics.cube.section import CubeSection
from sfumato.statistics.cube.tabulate import Chunk, tabulated
from sfumato.statistics.cube.truncated_laplace import cube_method
from tests.statistics.cube.survey import release

SIZES = {"occupation": 400, "strength": 5, "education": 4, "telework": 2}
DIMENSIONS = tuple(Dimension(name=name, codes=tuple(map(str, range(size)))) for name, size in SIZES.items())


@pytest.fixture(scope="module")
def true() -> Cube:
    """Records of 400 occupations, many of which have one; two in three have the first code of an attribute."""
    rng = np.random.default_rng(3)
    codes = [rng.integers(0, 400, 500)]
    codes += [np.where(rng.random(500) < 2 / 3, 0, rng.integers(0, size, 500)) for size in list(SIZES.values())[1:]]
    positions = np.ravel_multi_index(codes, tuple(SIZES.values())).astype(np.int64)
    return tabulated(DIMENSIONS, [Chunk(positions=positions, weights=np.full(500, 1_000_000))])


def section(**changes: Any) -> CubeSection:
    described = {"name": "c", "by": list(SIZES), "epsilon": 2, "cap": 7, "identifying": ["occupation"]}
    return CubeSection.model_validate(described | changes)


def attacked(true: Cube, **changes: Any) -> dict[str, Linkage]:
    asked = section(**changes)
    cube, figures = protected_cube(true, cube_method(asked, alpha=Fraction(1)), Seeded(1))
    published = PublishedCube(name="c", title="c", cube=cube, figures=figures, rules=Rules())
    return {found.attack: found for found in linkage_attacks(published, true, asked)}


def test_unprotected_counts_disclose_every_target_and_guesses_some(true: Cube) -> None:
    found = attacked(true)
    alone = int((true.project("occupation")["count"] == 1).sum())
    assert [found[name].targets for name in (SLIVERS, TABLES, RECORDS)] == [3 * alone, alone, alone]
    assert all(part.unprotected == part.targets for part in found.values())
    assert 0.6 < found[SLIVERS].guessed / found[SLIVERS].targets < 0.9
    assert 0.3 < found[RECORDS].guessed / alone < 0.6
    assert found[TABLES].guessed <= found[SLIVERS].guessed / 3


def test_the_less_epsilon_the_less_is_learnt_down_to_what_a_guess_gets(true: Cube) -> None:
    parameters = (("0.01", 1_000), ("1", 20), ("2", 7), ("4", 7), ("40", 7))
    found = [attacked(true, epsilon=epsilon, cap=cap) for epsilon, cap in parameters]
    for name in (SLIVERS, TABLES, RECORDS):
        rates = [part[name].disclosed / part[name].targets for part in found]
        guess = found[0][name].guessed / found[0][name].targets
        assert all(more > less - 0.01 for less, more in pairwise(rates))
        assert rates[-1] == 1
        assert rates[0] == pytest.approx(guess, abs=0.05)
        assert guess + 0.02 < rates[3] < 1


def test_a_cube_as_it_is_discloses_everything(true: Cube) -> None:
    plain = without_noise(true.with_column("count", true["count"] * MILLION, parts=MILLION), None, Rules())
    for part in linkage_attacks(plain, true, section()):
        assert part.disclosed == part.unprotected == part.targets


@pytest.mark.parametrize("controls", [[], [{"by": ["strength"], "epsilon": "0.5"}]], ids=["none", "noisy"])
def test_columns_that_share_their_draws_disclose_every_target(true: Cube, controls: list[Any]) -> None:
    rng = np.random.default_rng(4)
    positions = np.repeat(np.arange(true["count"].size), true["count"].ravel())
    weights = rng.integers(1_000_000, 90_000_000, len(positions))
    weighted = tabulated(DIMENSIONS, [Chunk(positions=positions, weights=weights)])
    shared, own = (attacked(weighted, draws=draws, controls=controls) for draws in ("shared", "own"))
    assert all(part.disclosed == part.targets for part in shared.values())
    assert all(part.disclosed < part.targets for part in own.values())


def test_the_difference_of_two_answers_is_the_sliver_itself(tmp_path: Path) -> None:
    """So asking indirectly gets an intruder no further than asking directly."""
    cube = open_bundle(run(load(release(tmp_path))).bundle).cube("people")
    whole = cube.totals("level", where={"job": ["a"]}, column="count")
    others = cube.totals("level", where={"job": ["a"], "region": ["E", "S", "W"]}, column="count")
    sliver = cube.totals("level", where={"job": ["a"], "region": ["N"]}, column="count")
    assert whole.exact is not None
    assert np.array_equal(whole.exact - others.exact, sliver.exact)


def test_without_a_name_intruders_know_the_attributes_with_most_codes(true: Cube) -> None:
    known = set(map(tuple, known_sets(true, section(identifying=[]))))
    order = ("occupation", "strength", "education", "telework")
    assert known == {order[:1], order[:2], order[:3]}


@pytest.mark.parametrize("named", ['["place"]', '["region", "job", "level"]', '["job", "job"]'])
def test_identifying_attributes_are_some_of_the_cube(tmp_path: Path, named: str) -> None:
    with pytest.raises(SfumatoError, match="identifying"):
        load(release(tmp_path, ("cap = 7\n", f"cap = 7\nidentifying = {named}\n")))


def test_the_confidential_report_has_them(tmp_path: Path) -> None:
    made = load(release(tmp_path, ("cap = 7\n", 'cap = 7\nidentifying = ["job"]\n'), job=["a", *["b"] * 399]))
    run(made)
    found = assess(made)
    assert [(part.attack, part.known, part.targets) for part in found.cubes[0].linkage] == [
        (SLIVERS, ("job",), 2),
        (TABLES, ("job",), 1),
        (RECORDS, ("job",), 1),
    ]
    assert "Records that are the only ones with what is known of them" in found.report.read_text(encoding="utf-8")
