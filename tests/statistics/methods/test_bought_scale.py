"""A scale that is bought for error figures: exact, charged, no more than it states, and near the truth."""

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import chisquare

import sfumato
from sfumato.agree.largest import with_largest
from sfumato.agree.published import usual_errors
from sfumato.cells import Cells, Dimension
from sfumato.checking import check, checked
from sfumato.errors import MethodError, ReleaseError
from sfumato.method import FOR_THE_LARGEST, SCALE, method_words, public_parameters, published_figures
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Seeded
from sfumato.privacy.guarantee import at_most
from sfumato.release import load
from sfumato.report.published import on_trial
from sfumato.running import run
from sfumato.statistics.jobs.bought_scale import LIKELY, BoughtScale, worth_buying
from sfumato.statistics.jobs.smooth import SmoothGamma, SmoothLaplace, SmoothPareto
from sfumato.statistics.jobs.vector import VectorPareto
from sfumato.statistics.registry import build, built_again
from sfumato.wishes.bought import PAYS, Offer

ALPHAS = [Fraction(a) for a in ("0.01", "0.05", "0.1", "1/3", "1", "10")]
ALPHA, TWO, FIFTH = Fraction("0.1"), Fraction(2), Fraction("0.2")
SIZES = (*range(300), 999, 1_000, 1_001, 12_345, 10**6, 10**9, 10**12)


def steps_of(bought: BoughtScale, size: int) -> int:
    """The number of steps of a largest establishment of so many workers, without noise."""
    multiple = max(bought.alpha.numerator * size, bought.alpha.denominator)
    return int(np.searchsorted(bought.thresholds, multiple, side="right")) - 1


def neighbours(alpha: Fraction) -> Iterator[tuple[int, int]]:
    for size in SIZES:
        largest = max(int((1 + alpha) * size), size + 1)
        yield from ((size, after) for after in {size + 1, (size + largest) // 2, largest})


# The guarantee.


@pytest.mark.parametrize("alpha", ALPHAS)
def test_one_step_between_neighbours_moves_the_scale_by_the_steps_that_noise_hides(alpha: Fraction) -> None:
    bought = BoughtScale(alpha=alpha, epsilon=FIFTH)
    moved = [steps_of(bought, after) - steps_of(bought, before) for before, after in neighbours(alpha)]
    assert min(moved) >= 0
    assert max(moved) == bought.steps, "and a smaller noise would not do"


@pytest.mark.parametrize("alpha", ALPHAS)
def test_thresholds_grow_by_one_plus_alpha_exactly(alpha: Fraction) -> None:
    """The least whole M of a threshold T is ⌈T⌉: T[u + m] = (1 + α)·T[u] leaves ⌈T[u + m]⌉ ≤ ⌈(1 + α)·⌈T[u]⌉⌉."""
    found = BoughtScale(alpha=alpha, epsilon=FIFTH).thresholds.tolist()
    m = BoughtScale(alpha=alpha, epsilon=FIFTH).steps
    assert found[0] == alpha.denominator
    assert found == sorted(found)
    for early, late in zip(found, found[m:], strict=False):
        assert (1 + alpha) * (early - 1) < late <= -((-(1 + alpha) * early) // 1)


@pytest.mark.parametrize("epsilon", [Fraction("0.05"), FIFTH, Fraction(1)])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_loss_is_epsilon_and_a_noise_that_is_a_tenth_smaller_loses_more(alpha: Fraction, epsilon: Fraction) -> None:
    bought = BoughtScale(alpha=alpha, epsilon=epsilon)

    def loss(noise: Geometric) -> Fraction:
        moved = max(steps_of(bought, after) - steps_of(bought, before) for before, after in neighbours(alpha))
        # P(J = j) is proportional to r^|j|: a shift by so many steps changes it by that power of r at most.
        return noise.epsilon * moved

    assert Fraction("0.95") * epsilon <= loss(bought.noise) <= epsilon
    assert loss(Geometric(epsilon=bought.noise.epsilon / Fraction("0.9"))) > epsilon


def test_noise_has_the_probabilities_that_the_loss_is_computed_from_and_not_those_of_a_scale_a_tenth_off() -> None:
    bought = BoughtScale(alpha=ALPHA, epsilon=Fraction(4))
    draws = 200_000
    drawn = bought.measure(np.full(draws, 1_000), Seeded(19)) - steps_of(bought, 1_000)
    kept = np.arange(-8, 9)
    seen = np.array([np.count_nonzero(drawn == j) for j in kept])

    def p_value(noise: Geometric) -> float:
        r = np.exp(-float(noise.epsilon))
        chances = (1 - r) / (1 + r) * r ** np.abs(kept)
        rest = np.array([draws - seen.sum()]), np.array([1 - chances.sum()])
        return float(chisquare(np.append(seen, rest[0]), np.append(chances, rest[1]) * draws).pvalue)

    assert p_value(bought.noise) > 1e-6
    for off in (Fraction("0.9"), Fraction("1.1")):
        assert p_value(Geometric(epsilon=bought.noise.epsilon * off)) < 1e-12


@pytest.mark.parametrize("size", [0, 5, 10, 11, 80, 12_345])
@pytest.mark.parametrize("miss", [FOR_THE_LARGEST, LIKELY])
def test_the_limit_is_exceeded_as_rarely_as_it_says(size: int, miss: float) -> None:
    bought, draws = BoughtScale(alpha=ALPHA, epsilon=FIFTH), 50_000
    measured = bought.measure(np.full(draws, max(size, 10)), Seeded(size))
    exceeded = float((bought.most(measured, miss) < size).mean())
    assert exceeded <= miss + 5 * np.sqrt(miss / draws)
    if size > 100:
        assert exceeded >= 0.8 * miss
        assert np.median(bought.middle(measured)) == pytest.approx(size, rel=0.03)
        assert np.median(bought.most(measured, LIKELY)) == pytest.approx(2.17 * size, rel=0.02)


def test_a_scale_beyond_all_thresholds_limits_nothing() -> None:
    bought = BoughtScale(alpha=ALPHA, epsilon=FIFTH)
    assert bought.most(np.array([10**9, -(10**9)]), 0.1).tolist() == pytest.approx([np.inf, 10])


def test_the_offered_epsilon_gives_errors_about_twice_the_true_ones() -> None:
    assert worth_buying(ALPHA) == FIFTH
    for alpha in ALPHAS:
        assert 1.6 < BoughtScale(alpha=alpha, epsilon=worth_buying(alpha)).factor(LIKELY) < 2.6


# In methods.

METHODS: list[Any] = [
    SmoothPareto(alpha=ALPHA, epsilon=TWO, error_epsilon=FIFTH),
    SmoothGamma(alpha=ALPHA, epsilon=TWO, tight=True, error_epsilon=FIFTH),
    SmoothLaplace(alpha=ALPHA, epsilon=Fraction(4), error_epsilon=FIFTH),
    VectorPareto(alpha=ALPHA, epsilon=TWO, error_epsilon=FIFTH),
    VectorPareto(alpha=ALPHA, epsilon=TWO, worker_cells=2, error_epsilon=FIFTH),
]
of_methods = pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{m.name} {m.worker_cells}")
DRAWS = 20_000
SEX = Dimension(name="sex", codes=("F", "M"), public=False)


def true_cells(method: Any, count: int, largest: int) -> Cells:
    """As many workplace cells as draws, with so many jobs, of which one establishment has `largest`."""
    place = Dimension(name="place", codes=tuple(map(str, range(DRAWS))))
    sexes = max(method.worker_cells, 1)
    number = np.full(DRAWS * sexes, count // sexes)
    by = (place, SEX) if method.worker_cells else (place,)
    columns = {"count": number, "largest": np.full(len(number), largest), "largest_employer": number * 0 + largest}
    return Cells(dimensions=by, positions=np.arange(len(number)), columns=columns)


@of_methods
def test_a_bought_scale_is_charged_on_top(method: Any) -> None:
    without = replace(method, error_epsilon=Fraction(0))
    assert method.guarantee() == replace(without.guarantee(), epsilon=without.guarantee().epsilon + FIFTH)


@of_methods
def test_without_it_a_question_has_the_name_it_had_and_with_it_another(method: Any) -> None:
    without = replace(method, error_epsilon=Fraction(0))
    assert "error_epsilon" not in method_words(without)
    assert "error_epsilon" not in public_parameters(without)
    assert method_words(method) != method_words(without)
    assert built_again(method.name, public_parameters(method)) == method


@of_methods
def test_values_are_what_they_are_without_it(method: Any) -> None:
    cells = true_cells(method, 4_000, 40)
    without = replace(method, error_epsilon=Fraction(0)).protect(cells, Seeded(1))
    assert np.array_equal(method.protect(cells, Seeded(1))["value"], without["value"])
    assert SCALE not in without.columns


@of_methods
@pytest.mark.parametrize("largest", [5, 40, 2_000])
def test_intervals_hold_and_errors_are_near_the_truth_whatever_the_largest_establishment(
    method: Any, largest: int
) -> None:
    cells = true_cells(method, 4_000, largest)
    answer = method.protect(cells, Seeded(largest))
    figures = published_figures(method, answer, 0.9)
    count = cells["count"]
    held = (figures.low <= count) & ((count <= figures.high) | np.isnan(figures.high))
    assert held.mean() >= 0.9 - 5 * np.sqrt(0.09 / DRAWS)
    error = method.error_in_scales * max(float(ALPHA) * largest, 1)  # before rounding, which lowers it in small cells
    assert np.mean(figures.error) >= 0.95 * error
    assert np.median(figures.error / error) <= 2.5


def test_worker_cells_with_a_scale_each_are_refused() -> None:
    with pytest.raises(MethodError, match="one scale in each workplace cell"):
        SmoothPareto(alpha=ALPHA, epsilon=TWO, worker_cells=2, error_epsilon=FIFTH)


def test_a_method_that_buys_no_scale_says_which_do() -> None:
    for name in ("log-laplace", "auto", "smooth-box"):
        with pytest.raises(
            ReleaseError, match="takes it: smooth-pareto, smooth-gamma, smooth-laplace, vector-pareto, vector-bell"
        ):
            build(name, alpha=ALPHA, epsilon=TWO, options={"error_epsilon": "0.2"})


@pytest.mark.parametrize("told", ['by = ["place", "sex"]', 'by = ["place"]\nwhere = { sex = ["F"] }'])
def test_tables_that_tell_workers_apart_are_told_what_to_do(release_folder: Path, told: str) -> None:
    head = (release_folder / "release.toml").read_text().partition("# Each table states")[0]
    path = release_folder / "bought.toml"
    protect = 'protect = { method = "smooth-gamma", epsilon = 4, error_epsilon = 0.2 }'
    path.write_text(f'{head}[[table]]\nname = "few"\ncount = "jobs"\n{told}\n{protect}\n')
    with pytest.raises(MethodError, match="table 'few'") as refused:
        check(load(path), data=False)
    assert "vector-pareto with them in `by`, and none in `where`; or leave out error_epsilon" in str(refused.value)
    assert "form" not in str(refused.value).replace("workforce", "")


@pytest.mark.parametrize("epsilon", ["-1", "1/10000000000", "10000000"])
def test_an_epsilon_that_none_can_have_is_refused(epsilon: str) -> None:
    with pytest.raises(MethodError, match="error_epsilon"):
        SmoothPareto(alpha=ALPHA, epsilon=TWO, error_epsilon=Fraction(epsilon))


def test_very_small_alphas_are_refused() -> None:
    with pytest.raises(MethodError, match="alpha"):
        SmoothPareto(alpha=Fraction("0.0001"), epsilon=TWO, error_epsilon=FIFTH)


# In releases.

TABLES = """
[[table]]
name = "fine"
count = "jobs"
by = ["place", "industry"]
protect = { method = "smooth-pareto", epsilon = 0.5FINE }

[[table]]
name = "industry"
count = "jobs"
by = ["industry"]
protect = { method = "smooth-pareto", epsilon = 0.5INDUSTRY }

[[table]]
name = "sexes"
count = "jobs"
by = ["ownership", "sex"]
protect = { method = "smooth-pareto", epsilon = 0.5SEXES }
"""
BOUGHT = ", error_epsilon = 0.2"


def release(folder: Path, *bought: str, settings: str = "") -> Path:
    """The economy of a folder with three tables, of which some buy their scale."""
    text, tables = (folder / "release.toml").read_text().partition("# Each table states")[0], TABLES
    for name in ("fine", "industry", "sexes"):
        tables = tables.replace(name.upper(), BOUGHT if name in bought else "")
    path = folder / "bought.toml"
    path.write_text(text.replace("[release]\n", f"[release]\n{settings}\n", 1) + tables)
    return path


def test_a_release_publishes_the_scale_that_was_bought_and_says_what_it_cost(release_folder: Path) -> None:
    loaded = load(release(release_folder, "industry", "sexes"))
    published = run(loaded)
    assert published.plan.guarantee.bound is not None
    assert published.plan.guarantee.bound.epsilon == Fraction("1.9")
    for name, told in (("fine", False), ("industry", True), ("sexes", True)):
        rows = pq.read_table(loaded.bundle / "tables" / f"{name}.parquet")
        described = next(
            table
            for table in json.loads((loaded.bundle / "structure.json").read_text())["tables"]
            if table["name"] == name
        )
        assert (SCALE in rows.column_names) == (SCALE in described["columns"]) == told
        assert described.get("bought_steps") == (10 if told else None)
    statement = (loaded.bundle / "statement.md").read_text()
    assert statement.count("For epsilon = 0.2 more") == 2
    assert "The scale of the noise of `industry`, `sexes` was released" in statement
    for name, by in (("industry", []), ("sexes", ["ownership"]), ("fine", ["industry"])):
        found = sfumato.open_bundle(loaded.bundle).select(name, by)
        assert all(row["low"] <= max(row["value"], 0) for row in found.rows.to_pylist()), "sums are made of them too"


def test_check_offers_a_scale_where_errors_would_be_far_too_large(release_folder: Path) -> None:
    by = {"ownership": '["ownership"]', "fine": '["place", "industry", "ownership"]'}
    path = release_folder / "bought.toml"

    def offered(*names: str, bought: str = "") -> dict[str, Offer]:
        head = (release_folder / "release.toml").read_text().partition("# Each table states")[0]
        tables = (
            f'[[table]]\nname = "{name}"\ncount = "jobs"\nby = {by[name]}\n'
            f'protect = {{ method = "smooth-pareto", epsilon = 2{bought} }}\n'
            for name in names
        )
        path.write_text(head + "\n".join(tables))
        return dict(check(load(path)).offers)

    offer = offered("ownership")["ownership"]
    assert offer.now > PAYS > offer.then
    assert "error_epsilon = 0.2" in offer.in_words()
    assert offered("fine") == {}, "of few establishments, published errors are near the truth"
    assert offered("ownership", bought=BOUGHT) == {}, "it is bought already"
    assert "ownership" not in offered("ownership", "fine"), "finer tables tell for nothing"


def test_an_offer_costs_what_the_plan_is_charged_with_it_less_without(release_folder: Path) -> None:
    head = (release_folder / "release.toml").read_text().partition("# Each table states")[0]
    path = release_folder / "bought.toml"

    def offer_of(*protects: str, wheres: tuple[str, ...] = ("",)) -> dict[str, Offer]:
        tables = (
            f'[[table]]\nname = "t{n}"\ncount = "jobs"\nby = ["ownership"]\n{where}\n'
            f'protect = {{ method = "smooth-pareto", {protect} }}\n'
            for n, (protect, where) in enumerate(zip(protects, wheres, strict=True))
        )
        path.write_text(head + "\n".join(tables))
        return dict(check(load(path)).offers)

    same = offer_of("epsilon = 2")["t0"]
    assert same.adds == same.epsilon
    # The budget has another alpha than the table: what its epsilon costs there, its scale costs there.
    other = offer_of("epsilon = 1, alpha = 0.05")["t0"]
    plan = check(load(path)).plan
    assert other.adds == other.epsilon * plan.epsilon() > other.epsilon
    assert f"it adds {at_most(other.adds)} to the charge" in other.in_words()
    # Of tables about different establishments the dearest is charged, and the other has room for a scale.
    apart = tuple(f"where = {{ ownership = {codes} }}" for codes in ('["private"]', '["federal", "state", "local"]'))
    found = offer_of("epsilon = 2", "epsilon = 3", wheres=apart)
    assert found["t0"].adds == 0
    assert "it adds nothing to the charge" in found["t0"].in_words()
    assert found["t0"].figures()["adds"] == 0


def test_a_table_that_is_paid_is_offered_a_scale_at_the_price_of_a_new_question(release_folder: Path) -> None:
    from sfumato.running import run

    head = (release_folder / "release.toml").read_text().partition("# Each table states")[0]
    path = release_folder / "bought.toml"
    table = '[[table]]\nname = "t"\ncount = "jobs"\nby = ["ownership"]\n'
    path.write_text(head + table + 'protect = { method = "smooth-pareto", epsilon = 1 }\n')
    run(load(path))
    offer = check(load(path)).offers["t"]
    assert offer.adds == 1 + offer.epsilon


def test_structural_zeros_have_no_scale(release_folder: Path) -> None:
    import csv

    import pyarrow.parquet as pq

    from sfumato.running import run

    path = release(release_folder, "fine")
    run(load(path))
    rows = pq.read_table(load(path).bundle / "tables" / "fine.parquet").to_pylist()
    none = [row for row in rows if not row["establishments"]]
    assert none
    assert all(row[SCALE] is None and row["value"] == 0 for row in none)
    assert all(isinstance(row[SCALE], int) for row in rows if row["establishments"])
    with (load(path).bundle / "tables" / "fine.csv").open(encoding="utf-8", newline="") as lines:
        written = list(csv.DictReader(lines))
    assert all((row[SCALE] == "") == (row["establishments"] == "0") for row in written)


def test_finer_tables_tell_by_what_they_bought(release_folder: Path) -> None:
    with checked(load(release(release_folder, "fine"))) as ready:
        counted = ready.count({table.name: table for table in ready.plan.tables})
        drawn = {table.name: table.method.protect(counted[table.name], Seeded(7)) for table in ready.plan.tables}
        pieces = {name: (answer,) for name, answer in drawn.items()}
        found = with_largest(drawn, pieces, ready.plan.finer)["industry"]
        largest = counted["industry"]["largest"]
        finer = {
            "industry": tuple(
                replace(one, table=replace(one.table, method=replace(one.table.method, error_epsilon=Fraction(0))))
                for one in ready.plan.finer["industry"]
            )
        }
        without = with_largest(drawn, pieces, finer)["industry"]
    assert (found["largest_possible"] >= largest).mean() > 0.9
    assert np.median(found["largest_possible"]) < np.median(without["largest_possible"])


def test_weights_of_reconciling_follow_what_was_bought(release_folder: Path) -> None:
    with checked(load(release(release_folder, "industry", settings="reconcile = true"))) as ready:
        drawn = on_trial(ready, [])
        table = next(table for table in drawn.plan.tables if table.name == "industry")
        answer = drawn.given["industry"]
        bought = usual_errors(table, answer, 1)
        true = table.method.expected_error(drawn.counted["industry"])
        public = usual_errors(
            replace(table, method=replace(table.method, error_epsilon=Fraction(0))),  # type: ignore[type-var]
            answer,
            1,
        )
    off = [float(np.abs(np.log(weights / true)).mean()) for weights in (bought, public)]
    assert off[0] < 1.0
    assert not np.array_equal(bought, public)
