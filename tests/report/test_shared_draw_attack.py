"""The leak of the published example code of MOSE: it gives all numbers of people and estimates away, ours none."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.arrays import Floats, Integers
from sfumato.cli.release import assessment_summary
from sfumato.noise.randomness import Seeded
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato.statistics.people.attacks import (
    Published,
    counts_from_scales,
    estimates_from_counts,
    shared_draw_attack,
)
from sfumato.statistics.people.mose import Mose
from sfumato_lab.economy.opportunity.generate import generate_opportunity
from tests.running.same_draws import same_draws
from tests.statistics.methods.groups import RANKS, drawn_ranks, sums

EPSILON = 4.0
"""As in the example."""


def people_of(groups: int, seed: int) -> Integers:
    return np.random.default_rng(seed).integers(3, 400, groups)


def leaky(people: Integers, estimates: Floats, chi: Floats, seed: int, *, normal: bool = True) -> Published:
    """The columns of the example code: one ω for estimate and people, the noise's deviation told, single precision."""
    rng = np.random.default_rng([seed, 1])
    omega = rng.standard_normal(len(people)) if normal else rng.laplace(0, 1 / np.sqrt(2), len(people))
    deviation = np.sqrt(2) * chi / (EPSILON * people)
    count_deviation = np.sqrt(2) / EPSILON

    def exported(column: Floats) -> Floats:
        return column.astype(np.float32).astype(np.float64)

    return Published(
        value=exported(estimates + deviation * omega),
        count=exported(people + count_deviation * omega),
        scale=exported(deviation),
        classes=np.unique(chi, return_inverse=True)[1],
        count_scale=count_deviation,
    )


@given(seed=st.integers(0, 10**6), groups=st.integers(5, 200), chi=st.floats(0.1, 10), normal=st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_number_of_people_and_every_estimate_is_found_in_what_the_example_code_exports(
    seed: int, groups: int, chi: float, normal: bool
) -> None:
    people, estimates = people_of(groups, seed), np.random.default_rng([seed, 2]).uniform(0, 1, groups)
    bundle = leaky(people, estimates, np.full(groups, chi), seed, normal=normal)
    found = counts_from_scales(bundle)
    assert np.array_equal(found, people)
    off = np.abs(estimates_from_counts(bundle, found) - estimates)
    assert np.all(off <= 1e-6 + 1e-4 * bundle.scale)


def test_it_finds_them_in_every_class_with_a_chi_of_its_own_and_counts_what_it_found() -> None:
    people = people_of(900, 5)
    chi = np.repeat([1.25, 33.17, 0.7], 300)
    estimates = np.random.default_rng(6).uniform(0, 1, 900)
    results = shared_draw_attack(leaky(people, estimates, chi, 7), people=people, estimates=estimates, rounding=1e-4)
    assert [(found.targets, found.successes) for found in results] == [(900, 900)] * 3
    # At the ε of the example most numbers of people are right as published, but few estimates are.
    assert results[0].baseline_rate > 0.8
    assert results[1].baseline_rate < 0.05


def test_groups_that_are_all_multiples_of_ten_are_told_from_a_tenth_of_them() -> None:
    people = 10 * np.random.default_rng(1).integers(1, 40, 50)
    bundle = leaky(people, np.zeros(50), np.full(50, 20.0), 3)
    assert np.array_equal(counts_from_scales(bundle), people)


def test_people_are_found_with_so_much_noise_in_them_that_hardly_one_is_right_as_published() -> None:
    people = people_of(300, 8)
    bundle = leaky(people, np.zeros(300), np.full(300, 50.0), 9)
    noisy = replace(bundle, count=people + (bundle.count - people) * 20, count_scale=bundle.count_scale * 20)
    assert np.mean(np.rint(noisy.count) == people) < 0.2
    assert np.array_equal(counts_from_scales(noisy), people)


def test_one_draw_alone_gives_estimates_to_readers_who_know_the_people_of_a_group() -> None:
    people, estimates = people_of(50, 2), np.random.default_rng(3).uniform(0, 1, 50)
    bundle = leaky(people, estimates, np.full(50, 30.0), 4)
    assert estimates_from_counts(bundle, people) == pytest.approx(estimates, abs=1e-3)
    independent = replace(bundle, count=people + bundle.count_scale * np.random.default_rng(5).standard_normal(50))
    assert np.mean(np.abs(estimates_from_counts(independent, people) - estimates) < 1e-3) < 0.1


@pytest.mark.parametrize("options", [{}, {"chi": Fraction(80_000)}, {"count_epsilon": Fraction(1, 2)}])
@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_found_in_ours_beyond_what_is_published(options: dict[str, Any], seed: int) -> None:
    sizes = people_of(3_000, seed)
    x, y = drawn_ranks(sizes, seed)
    cells = sums(sizes, x, y, classes=np.arange(3_000) % 7)
    method = Mose(epsilon=Fraction(24), **RANKS, **options)
    people, shared, known = method.attacks(cells, method.protect(cells, Seeded(seed)))
    assert people.targets > 5_000
    assert people.successes <= people.guessed
    for found in (shared, known):
        assert found.success_rate <= found.baseline_rate + 0.003


def test_the_confidential_report_and_its_object_for_machines_say_what_the_attack_got(tmp_path: Path) -> None:
    release = load(generate_opportunity(tmp_path / "children", tracts=100).release)
    with same_draws():  # what the attack gets by luck differs from draw to draw
        run(release)
    found = assess(release)
    assert "estimate from a shared draw" in found.report.read_text(encoding="utf-8")
    _, data = assessment_summary(found)
    (table,) = json.loads(json.dumps(data, allow_nan=False))["people"]
    people, shared, known = table["attacks"]
    assert people["attack"] == "people from scales"
    assert people["success_rate"] <= people["baseline_rate"]
    assert max(shared["success_rate"], known["success_rate"]) < 0.02
