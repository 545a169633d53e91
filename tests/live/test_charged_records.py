"""The interactive approach: weighted counts of records with noise of their own for each table, and each is charged."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato.bundle.statement import compared, statement
from sfumato.checking import check
from sfumato.errors import BudgetError, DataError, ReleaseError, SfumatoError
from sfumato.live import open_charged
from sfumato.noise.geometric import Geometric
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.running import run
from tests.running.same_draws import same_draws
from tests.serve.live_serving import live_serving
from tests.statistics.cube.survey import CODES, CUBE, RELEASE, records, release

TABLE = """\
[[table]]
name = "people"
count = "records"
by = ["region", "job"]
protect = { method = "laplace", epsilon = 2, largest_weight = 200 }
"""
LIVE = "\n[live]\nbudget = 4\nquota = 4\nlargest_weight = 200\n"
WEIGHTS = [round(min(weight, 200.0), 3) for weight in records()["weight"]]


def true_totals() -> np.ndarray:
    """Weighted counts by region and job, added up and then rounded."""
    columns = records()
    found = np.zeros((4, 3))
    np.add.at(found, tuple(np.array([CODES[n].index(c) for c in columns[n]]) for n in ("region", "job")), WEIGHTS)
    return np.floor(found + 0.5)


def spent(folder: Path) -> Fraction:
    file = load(folder / "release.toml")
    history = Ledger.open(file.ledger).history(file.account) if file.ledger.exists() else ()
    return sum((entry.guarantee.epsilon for entry in history if entry.kind == "charge"), Fraction(0))


def test_a_table_of_weighted_records_has_noise_for_the_largest_weight_and_is_charged_once(tmp_path: Path) -> None:
    with same_draws():
        published = run(load(release(tmp_path, text=RELEASE + TABLE, weight=WEIGHTS)))
    assert spent(tmp_path) == 2
    rows = pq.read_table(published.bundle / "tables/people.parquet")
    assert rows.num_rows == 12
    off = rows["value"].to_numpy() - true_totals().ravel()
    noise = Geometric(epsilon=Fraction(2, 200))
    assert published.plan.tables[0].method.noise == noise
    assert np.abs(off).mean() == pytest.approx(noise.expected_magnitude, rel=0.6)
    assert np.any(off)
    words = statement(published.plan)
    assert "None weighs more than 200, and the noise hides a record of that weight" in words


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (", largest_weight = 200", "", "largest_weight"),
        ("largest_weight = 200", "largest_weight = 0", "from 1 to"),
        (', weight = "weight", replicates = { columns = "rw_*", rule = "successive-difference" }', "", "no `weight`"),
    ],
)
def test_weights_need_a_largest_one_and_a_largest_one_needs_weights(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    with pytest.raises(SfumatoError, match=words):
        check(load(release(tmp_path, (old, new), text=RELEASE + TABLE, weight=WEIGHTS)))


def test_a_heavier_record_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no weight above largest_weight = 200"):
        run(load(release(tmp_path, text=RELEASE + TABLE, weight=[*WEIGHTS[:-1], 200.5])))
    assert not (tmp_path / "ledger.sqlite").exists()


def test_every_table_that_is_asked_for_is_charged_and_the_same_question_once(tmp_path: Path) -> None:
    file = release(tmp_path, text=RELEASE + TABLE + LIVE, weight=WEIGHTS)
    with open_charged(load(file)) as session:
        first = session.plan(by=("region",), epsilon=Fraction(1))
        price = session.price(first)
        assert (price.epsilon, price.answered) == (1, False)
        assert spent(tmp_path) == 0
        one = session.answer(first)
        assert session.ask(by=("region",), epsilon=Fraction(1)).equals(one)
        assert spent(tmp_path) == 1
        two = session.ask(by=("region", "job"), epsilon=Fraction(1))
        assert spent(tmp_path) == 2
        # Each table has noise of its own: parts do not add up to the whole, as the paper warns.
        sums = two["value"].to_numpy().reshape(4, 3).sum(axis=1)
        assert not np.array_equal(sums, one["value"].to_numpy())
        with pytest.raises(BudgetError):
            session.ask(by=("job",), epsilon=Fraction(3))
        assert spent(tmp_path) == 2


def test_codes_that_would_be_read_off_the_records_are_refused(tmp_path: Path) -> None:
    undeclared = ('level = { codes = ["1", "2"] }', "level = {}")
    file = release(tmp_path, undeclared, text=RELEASE + TABLE + LIVE, weight=WEIGHTS)
    with pytest.raises(ReleaseError, match="attribute 'level'"), open_charged(load(file)):
        pass


def test_another_method_than_laplace_is_refused_in_words(tmp_path: Path) -> None:
    file = release(tmp_path, text=RELEASE + TABLE + LIVE, weight=WEIGHTS)
    with open_charged(load(file)) as session, pytest.raises(ReleaseError, match="laplace"):
        session.plan(by=("region",), epsilon=Fraction(1), method="smooth-pareto")


@pytest.mark.slow
def test_a_server_prices_charges_and_answers_counts_of_records(tmp_path: Path) -> None:
    file = release(tmp_path, text=RELEASE + TABLE + LIVE, weight=WEIGHTS)
    run(load(file))
    question = {"by": ["region"], "epsilon": 0.5}
    with live_serving(file) as server:
        with server.client() as client:
            config = client.get("/live/config").json()
        assert (config["counts"], config["budget"]["methods"]) == ("records", ["laplace"])
        price = server.ask(question, "/live/prices").json()
        assert (price["epsilon"], price["fits"]) == (0.5, True)
        answer = server.ask(question)
        assert answer.status_code == 200, answer.text
        assert server.ask(question).content == answer.content
        assert server.ask(question | {"method": "smooth-pareto"}).status_code == 400
    assert spent(tmp_path) == Fraction(5, 2)


def test_a_table_beside_a_cube_is_stated_with_what_both_reveal_together(tmp_path: Path) -> None:
    cube = CUBE.replace('name = "people"', 'name = "cube"')
    plan = check(load(release(tmp_path, text=RELEASE + TABLE + cube, weight=WEIGHTS))).plan
    assert plan.guarantee.epsilon == 5
    losses = {found.about: found.loss.epsilon for found in compared(plan)}
    assert losses["person"] == losses["record"] == 5, "one record is in the table and in the cube"


def test_questions_without_a_largest_weight_are_told_to_state_it(tmp_path: Path) -> None:
    live = LIVE.replace("largest_weight = 200\n", "")
    made = load(release(tmp_path, text=RELEASE + TABLE + live, weight=WEIGHTS))
    with open_charged(made) as session, pytest.raises(ReleaseError, match=r"\[live\] largest_weight") as refused:
        session.ask(by=("region",), epsilon=Fraction(1))
    assert "'weight'" in str(refused.value)


def test_a_table_without_a_largest_weight_is_told_to_state_it(tmp_path: Path) -> None:
    text = RELEASE + TABLE.replace(", largest_weight = 200", "")
    with pytest.raises(ReleaseError, match="largest_weight"):
        check(load(release(tmp_path, text=text, weight=WEIGHTS)))


@pytest.mark.parametrize("section", [TABLE, CUBE], ids=["table", "cube"])
def test_that_larger_units_are_not_protected_where_noise_hides_one_record_is_told(tmp_path: Path, section: str) -> None:
    levels = ('unit = "id", ', 'unit = "id", levels = ["firm"], ')
    firm = [number // 4 for number in range(400)]
    found = check(load(release(tmp_path, levels, text=RELEASE + section, weight=WEIGHTS, firm=firm)))
    assert any("`levels` changes nothing" in note and "firm" in note for note in found.plan.operator_notes())


def test_consent_is_refused_where_noise_hides_every_record(tmp_path: Path) -> None:
    asked = ('unit = "id", ', 'unit = "id", consent = "asked", ')
    with pytest.raises(ReleaseError, match="`consent`"):
        load(release(tmp_path, asked, text=RELEASE + CUBE, weight=WEIGHTS, asked=[True] * 400))


def test_check_compares_a_cube_with_weighted_counts_as_they_can_be_asked(tmp_path: Path) -> None:
    cube = CUBE.replace('name = "people"', 'name = "cube"')
    found = check(load(release(tmp_path, text=RELEASE + TABLE + cube, weight=WEIGHTS)))
    assert found.heaviest == pytest.approx(200 / np.mean(WEIGHTS))
    (planned,) = found.plan.cubes
    compared_errors = planned.compared_errors(found.heaviest)
    for size, error in compared_errors.planned.items():
        tables = compared_errors.by_themselves[size]
        assert tables == int(error * 3 / (2**0.5 * found.heaviest))
    assert set(planned.compared_errors(None).by_themselves.values()) == {None}
