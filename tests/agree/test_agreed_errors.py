"""Errors of agreed values: those of protected ones, carried through the step that makes tables agree."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.agree.agreed_errors import ERROR, errors_after, figures_after, with_errors
from sfumato.agree.published import agreed_answers
from sfumato.agree.reconcile import Protected, projected, shared_margins
from sfumato.arrays import Floats
from sfumato.cells import Cells, Dimension
from sfumato.checking import checked
from sfumato.method import PublishedFigures
from sfumato.release import load
from sfumato_lab.economy.jobs.generate import generate
from tests.running.same_draws import same_draws

PLACE = Dimension(name="place", codes=tuple("ABCDE"))
INDUSTRY = Dimension(name="industry", codes=("11", "62", "72"))


def cells(*dimensions: Dimension) -> Cells:
    number = int(np.prod([len(one) for one in dimensions]))
    return Cells(dimensions=dimensions, positions=np.arange(number), columns={"value": np.zeros(number, dtype=int)})


def tables(scale: float = 1.0) -> dict[str, Protected]:
    made = {"both": cells(PLACE, INDUSTRY), "place": cells(PLACE), "industry": cells(INDUSTRY)}
    return {name: Protected(cells=some, errors=scale * np.arange(1.0, len(some) + 1)) for name, some in made.items()}


def exact(some: dict[str, Protected], errors: dict[str, Floats]) -> dict[str, Floats]:
    """The mean absolute errors, P being written down column by column."""
    margins, variances = shared_margins(some), {name: one.errors**2 for name, one in some.items()}
    squares = {name: np.zeros(len(one.errors)) for name, one in some.items()}
    for name, own in errors.items():
        for place, error in enumerate(own):
            alone = {other: np.zeros(len(one.errors)) for other, one in some.items()}
            alone[name][place] = error
            for other, value in projected(alone, variances, margins).items():
                kept = (other == name) & (np.arange(len(value)) == place)
                squares[other] += np.where(kept, 1, 4 / np.pi) * value**2
    return {name: np.sqrt(square) for name, square in squares.items()}


def test_errors_are_those_of_the_matrix_that_is_never_written_down() -> None:
    some = tables()
    errors = {name: 3 / one.errors + 2 for name, one in some.items()}  # the weights need not be right
    found, known = errors_after(some, errors), exact(some, errors)
    off = np.concatenate([found[name] / known[name] for name in some])
    assert np.abs(off - 1).max() <= 4 / np.sqrt(2 * 64)
    assert abs(off.mean() - 1) <= 0.06


def test_what_is_left_of_its_own_noise_has_the_shape_it_had_and_sums_are_normal() -> None:
    """All noise is of one cell: it keeps the shape there, and what others get of it is taken for normal."""
    some = tables()
    errors = {name: np.zeros(len(one.errors)) for name, one in some.items()}
    errors["place"][2] = 5.0
    found = errors_after(some, errors)
    variances = {name: one.errors**2 for name, one in some.items()}
    alone = projected(errors, variances, shared_margins(some))
    np.testing.assert_allclose(found["place"][2], abs(alone["place"][2]), rtol=1e-3)
    np.testing.assert_allclose(found["both"], np.sqrt(4 / np.pi) * np.abs(alone["both"]), rtol=1e-2, atol=1e-3)


def test_errors_are_the_same_every_time_and_grow_with_those_of_protected_values() -> None:
    errors = {name: one.errors for name, one in tables().items()}
    once, again = errors_after(tables(), errors), errors_after(tables(), errors)
    twice = errors_after(tables(), {name: 2 * own for name, own in errors.items()})
    for name, own in once.items():
        assert np.array_equal(own, again[name])
        np.testing.assert_allclose(twice[name], 2 * own, rtol=1e-6)


def test_a_table_that_shares_nothing_keeps_its_errors_exactly() -> None:
    some = tables()
    some["place"] = replace(some["place"], population="others")
    del some["industry"]
    found = errors_after(some, {name: one.errors for name, one in some.items()})
    for name, one in some.items():
        np.testing.assert_allclose(found[name], one.errors)


def test_where_no_error_is_known_the_figures_stay_as_they_were() -> None:
    shown = with_errors(cells(INDUSTRY), np.array([np.nan, 2.0, 0.0]))
    before = PublishedFigures(error=np.array([7.0] * 3), low=np.array([1.0] * 3), high=np.array([9.0] * 3))
    found = figures_after(shown, before)
    assert found.error.tolist() == [7, 2, 0]
    assert (found.low.tolist(), found.high.tolist()) == ([1, 0, 0], [9, 5, 0])
    assert figures_after(cells(INDUSTRY), before) is before
    assert shown[ERROR].tolist() == [-1, 2_000_000, 0]


CLASSES = ((0, 10), (10, 100), (100, 1_000), (1_000, 10_000), (10_000, 10**9))


@pytest.fixture(scope="module")
def economy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = generate(tmp_path_factory.mktemp("agreed") / "economy", jobs=1_000_000).release
    text = file.read_text(encoding="utf-8").replace('by = ["industry", "place_size"]', 'by = ["industry"]')
    assert 'by = ["industry"]' in text
    file.write_text(text.replace("[release]", "[release]\nreconcile = true"), encoding="utf-8")
    return file


@pytest.mark.slow
@pytest.mark.parametrize("part", [Fraction(1), Fraction(1, 4)], ids=["as it is", "a quarter of epsilon"])
def test_intervals_of_agreed_values_hold_in_every_table_and_class(economy: Path, part: Fraction) -> None:
    held: dict[tuple[str, int], list[np.ndarray]] = {}
    gained: dict[str, list[float]] = {}
    with checked(load(economy)) as ready, same_draws():
        planned: list[Any] = [
            replace(one, method=replace(one.method, epsilon=one.method.epsilon * part)) for one in ready.plan.tables
        ]
        together = replace(ready.plan, statistics=tuple(planned))
        alone = together.release.model_copy(
            update={"about": together.release.about.model_copy(update={"reconcile": False})}
        )
        apart = replace(together, release=alone)
        counted = ready.count({table.name: table for table in planned})
        for _ in range(20):
            answers = {table.name: table.answer(counted[table.name], None) for table in planned}
            shown = agreed_answers(together, answers)
            unshared = agreed_answers(apart, answers)
            for table in planned:
                count = counted[table.name]["count"]
                figures = table.shown_figures(answers[table.name], shown[table.name])
                inside = (figures.low <= count) & (count <= figures.high)
                for number, (least, beyond) in enumerate(CLASSES):
                    held.setdefault((table.name, number), []).append(inside[(least <= count) & (count < beyond)])
                before = table.shown_figures(answers[table.name], unshared[table.name])
                gained.setdefault(table.name, []).append(np.median(figures.error / before.error))
    for where, draws in held.items():
        cover = np.concatenate(draws)
        assert not len(cover) or cover.mean() >= 0.9 - 4 * np.sqrt(0.09 / len(cover)), where
    assert np.mean(gained["jobs_by_place"]) <= 0.6, "agreeing halves errors of places, and readers are told"
