"""The magnitudes that cost least: better than any other on the grid, and only where the limits are kept."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from sfumato.cli.tune_summaries import contributors_summary
from sfumato.errors import MethodError
from sfumato.statistics.totals.calibration import (
    ATTACKS,
    Attack,
    Search,
    evaluate,
    frontier,
    losses,
    optima,
    optimum,
    risks,
    tradeoff,
)
from sfumato.statistics.totals.perturbation import Shape, interpolated_magnitudes
from sfumato.statistics.totals.tune import Question, attacks_with, tune_contributors, write_chart
from tests.cli.call import call

ALL, DIFFERENCING = ATTACKS, ATTACKS[1:2]
COARSE = 0.1


def grid(top: int, step: float) -> np.ndarray:
    return np.round(np.array(list(product(np.arange(step, 1 + step / 2, step), repeat=top))), 9)


@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize("parity", [False, True])
@pytest.mark.parametrize("attacks", [ALL, DIFFERENCING, (ATTACKS[0], ATTACKS[2])])
@pytest.mark.parametrize("sizes", ["90,5,5", "70,20,10", "60,40", "30,30,30,10"])
def test_no_magnitudes_of_the_grid_keep_the_limits_at_a_smaller_loss(
    sizes: str, attacks: tuple[Attack, ...], parity: bool, falling: bool
) -> None:
    shape = Shape.read(sizes)
    top = min(3, len(shape.sizes))
    every = grid(top, COARSE)
    if falling:
        every = every[(np.diff(every, axis=1) <= 0).all(axis=1)]
    kept = np.all([risks(shape, every, attack, parity=parity) <= attack.limit for attack in attacks], axis=0)
    search = Search(top=3, step=COARSE, falling=falling)
    if not kept.any():
        with pytest.raises(MethodError, match="none; the nearest is"):
            optimum(shape, search, attacks=attacks, parity=parity)
        return
    best = optimum(shape, search, attacks=attacks, parity=parity)
    assert best.is_met
    assert best.loss == pytest.approx(losses(shape, every[kept]).min(), abs=1e-6)
    assert evaluate(shape, best.magnitudes, attacks=attacks, parity=parity) == best
    assert not falling or all(np.diff(best.magnitudes) <= 0)


def test_of_magnitudes_with_the_same_loss_the_smaller_ones_are_taken() -> None:
    # The largest contributor outweighs the noise of the others: they change the mean of |P*| by nothing.
    assert optimum(Shape.read("90,5,5"), Search(top=3), attacks=DIFFERENCING).magnitudes == (0.15, 0.05, 0.05)
    assert optimum(Shape.read("25,25,25,25"), Search(top=3)).magnitudes == (0.3, 0.2, 0.1)


@pytest.mark.slow
def test_finer_steps_cost_no_more_and_still_keep_the_limits() -> None:
    for sizes, attacks in (("60,20,10,10", ALL), ("30,30,30,10", DIFFERENCING), ("60,40", ALL)):
        shape = Shape.read(sizes)
        coarse, fine = (optimum(shape, Search(top=3, step=step), attacks=attacks) for step in (0.05, 0.01))
        assert fine.is_met
        assert fine.loss <= coarse.loss + 1e-9


def test_fewer_attacks_cost_no_more() -> None:
    for sizes in ("90,5,5", "70,20,10", "60,40"):
        shape = Shape.read(sizes)
        every, one = (optimum(shape, Search(top=3), attacks=attacks) for attacks in (ALL, DIFFERENCING))
        assert one.loss <= every.loss + 1e-9


def test_a_stricter_limit_costs_no_less() -> None:
    shape = Shape.read("40,30,20,10")
    found = [
        optimum(shape, Search(top=3), attacks=[replace(ATTACKS[1], limit=limit)]).loss for limit in (0.3, 0.15, 0.05)
    ]
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_contributors_that_do_not_exist_have_no_magnitude() -> None:
    assert len(optimum(Shape.read("60,40"), Search(top=4)).magnitudes) == 2


def test_four_contributors_can_be_perturbed() -> None:
    shape = Shape.read("40,30,20,10")
    assert optimum(shape, Search(top=4)).loss <= optimum(shape, Search(top=3)).loss


def test_the_frontier_has_what_nothing_beats() -> None:
    tried = tradeoff(Shape.read("30,30,30,10"), Search(top=3, step=COARSE), attacks=DIFFERENCING)
    best = frontier(tried)
    assert np.all(np.diff(best.loss) > -1e-6)
    assert np.all(np.diff(best.worst_risk) < 0)
    for loss, risk in zip(best.loss, best.worst_risk, strict=True):
        assert not np.any((tried.loss < loss - 1e-5) & (tried.worst_risk < risk - 1e-4))


def test_interpolated_optima_hold_attack_two_where_both_cells_keep_them_at_less_loss_than_one_compromise() -> None:
    sizes = [(a, b, c, 100 - a - b - c) for a, b, c in product(range(30, 91, 10), range(0, 50, 10), range(0, 40, 10))]
    shapes = [Shape(sizes=row) for row in sizes if row[0] >= row[1] >= row[2] >= row[3] >= 0]
    table = optima(shapes, Search(top=3, falling=True), attacks=DIFFERENCING)
    assert table.magnitudes.shape == (len(shapes), 3)
    between = [Shape(sizes=row) for row in ((75, 15, 8, 2), (55, 25, 15, 5), (46, 24, 18, 12), (34, 33, 32, 1))]
    rows = interpolated_magnitudes(np.array([shape.sizes for shape in between]), table)
    for shape, magnitudes in zip(between, rows, strict=True):
        found = evaluate(shape, magnitudes.tolist(), attacks=DIFFERENCING)
        assert found.verdicts[0].risk < 0.17
        assert found.loss < 0.75 * losses(shape, (0.4, 0.3, 0.2))[0]


def test_the_answer_is_text_for_people_and_an_object_for_machines(tmp_path: Path) -> None:
    answer = tune_contributors(Question(shape=Shape.read("70,20,10"), withstand=(2,)), (0.15, 0.1, 0.1))
    chart = write_chart(answer, tmp_path / "curve.svg")
    _, data = contributors_summary(answer, chart)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    second = data["given"]["attacks"][1]
    assert (second["attack"], second["v"], second["limit"], second["kept"]) == (2, 0.11, 0.15, True)
    assert second["risk"] == pytest.approx(0.05, abs=0.01)
    assert second["with_parity"] == pytest.approx(0.39, abs=0.01)
    assert [verdict["kept"] for verdict in data["given"]["attacks"]] == [True, True, False]
    assert data["optimal"]["loss"] <= data["given"]["loss"] + 1e-9
    drawing = chart.read_text(encoding="utf-8")
    assert drawing.startswith("<svg")
    assert all(f">{word}<" in drawing for word in ("given", "optimal", "probability of disclosure"))


def test_a_chart_is_a_picture_or_a_page_without_scripts(tmp_path: Path) -> None:
    answer = tune_contributors(Question(shape=Shape.read("60,40"), step=0.1))
    page = write_chart(answer, tmp_path / "curve.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<svg" in page
    assert "<script" not in page
    with pytest.raises(MethodError, match=r"\.svg or \.html"):
        write_chart(answer, tmp_path / "curve.pdf")


@pytest.mark.slow
def test_the_command_reports_given_and_optimal_magnitudes(tmp_path: Path) -> None:
    words = ("tune", "top-contributors", "--contributors", "90,5,5", "--m", ".15,.1,.1")
    text = " ".join(call(*words).stdout.split())
    assert "Given: m = 0.15,0.1,0.1, mean loss 13.5% of the total" in text
    assert "broken" in text
    assert "Least loss that withstands attacks 1, 2, 3: m = 0.35,0.05,0.05" in text
    done = call(*words, "--attacks", "2", "--parity", "--chart", tmp_path / "curve.svg", "--json")
    data = json.loads(done.stdout)
    assert data["attacks"] == [2]
    assert data["parity"] is True
    assert "without_parity" in data["given"]["attacks"][1]
    assert (tmp_path / "curve.svg").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--contributors", "90,x"), "numbers with commas"),
        (("--contributors", "90,5,5", "--attacks", "4"), "some of 1, 2 and 3"),
        (("--contributors", "90,5,5", "--attacks", "1.5"), "some of 1, 2 and 3"),
        (("--contributors", "90,5,5", "--m", "-1"), "not negative"),
        (("--contributors", "90,5,5", "--within", ".11"), "three shares"),
        (("--contributors", "90,5,5", "--spread", "1"), "below 1"),
        (("--contributors", "90,5,5", "--step", "0"), "steps"),
        (("--contributors", "90,5,5", "--largest", ".1"), "hold every attack"),
    ],
)
def test_the_command_refuses_what_it_cannot_answer(words: tuple[str, ...], expected: str) -> None:
    refused = call("tune", "top-contributors", *words, "--json", refused=True)
    assert expected in json.loads(refused.stdout)["error"]["expected"]


def test_each_attack_may_have_its_own_nearness_and_limit() -> None:
    attacks = attacks_with(within=(0.2, 0.1, 0.05), limits=(0.3, 0.2, 0.1))
    assert [(a.number, a.within, a.limit) for a in attacks] == [(1, 0.2, 0.3), (2, 0.1, 0.2), (3, 0.05, 0.1)]
