"""A cube that hides whole units: no more of their records than is said, and noise for as many."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.bundle.statement import statement
from sfumato.checking import check, checked
from sfumato.engine.units import within_limit
from sfumato.errors import SfumatoError
from sfumato.keys import new_key, rotate_key
from sfumato.noise.geometric import TruncatedGeometric
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato.statistics.cube.cube import Cube
from sfumato.statistics.cube.section import COUNT
from sfumato.statistics.cube.truncated_laplace import TruncatedLaplace, cube_method
from tests.audit.cases import NAMED_UNITS, cube
from tests.audit.harness import audit
from tests.statistics.cube.survey import CODES, records, release

MOST = 3
UNITS = f'cap = 60\nprotects = "unit"\nmost_records = {MOST}'
LEVELS = ('unit = "id"', 'unit = "id", levels = ["firm"]')
FIRMS = np.random.default_rng(5).integers(0, 120, 400)
"""Of 400 records; three or four have one firm on average, and some have ten."""


def firms(folder: Path, *changes: tuple[str, str], **columns: list[Any]) -> Path:
    """The survey with firms, its key, and a release that hides them."""
    file = release(
        folder,
        LEVELS,
        ("cap = 7", UNITS),
        ('period = "2025"\n', 'period = "2025"\nkey = "sfumato.key"\n'),
        ("delta = 0.01", "delta = 0.1"),
        *changes,
        **({"firm": [f"F{firm}" for firm in FIRMS]} | columns),
    )
    if not (folder / "sfumato.key").exists():
        new_key(folder / "sfumato.key")
    return file


def kept(file: Path) -> list[int]:
    """The records that are counted."""
    with checked(load(file)) as ready:
        (planned,) = ready.plan.cubes
        with within_limit(ready.opened, planned.question.limit, ready.plan.secret) as limited:
            return sorted(limited.tables.records.select("id").fetch()["id"].to_pylist())


def counted(file: Path) -> tuple[Cube, Any]:
    """The true cube, and its sampling errors."""
    with checked(load(file)) as ready:
        ((_, found),) = ready.tabulate({planned.name: planned for planned in ready.plan.cubes})
        return found


def test_of_every_firm_as_many_records_are_kept_as_it_has_up_to_the_limit(tmp_path: Path) -> None:
    found = Counter(FIRMS[kept(firms(tmp_path))].tolist())
    assert found == {firm: min(number, MOST) for firm, number in Counter(FIRMS.tolist()).items()}


@pytest.mark.slow
def test_engines_keep_the_same_records(tmp_path: Path, engine: str) -> None:
    file = firms(tmp_path / "one")
    other = firms(tmp_path / "two", ('engine = "duckdb"', f'engine = "{engine}"'))
    (tmp_path / "two/sfumato.key").write_bytes((tmp_path / "one/sfumato.key").read_bytes())
    assert kept(other) == kept(file)


def test_the_same_key_keeps_the_same_records_and_another_key_others(tmp_path: Path) -> None:
    file = firms(tmp_path)
    first = kept(file)
    assert kept(file) == first
    rotate_key(tmp_path / "sfumato.key")
    assert kept(file) != first


def test_a_larger_limit_keeps_what_a_smaller_one_does(tmp_path: Path) -> None:
    few = kept(firms(tmp_path))
    many = kept(firms(tmp_path, (f"most_records = {MOST}", "most_records = 5")))
    assert set(few) < set(many)


def test_which_records_of_a_firm_are_kept_does_not_depend_on_other_firms(tmp_path: Path) -> None:
    everything = set(kept(firms(tmp_path)))
    largest = Counter(FIRMS.tolist()).most_common(1)[0][0]
    rest = largest != FIRMS
    columns = {name: [v for v, stays in zip(values, rest, strict=True) if stays] for name, values in records().items()}
    without = set(kept(firms(tmp_path, **columns, firm=[f"F{firm}" for firm in FIRMS[rest]])))
    assert without == {record for record in everything if FIRMS[record] != largest}


def test_all_numbers_are_those_of_the_records_that_are_kept(tmp_path: Path) -> None:
    """Counts, weights, measures and sampling errors, and with the counts all controls and levels."""
    file = firms(tmp_path / "units")
    stay = kept(file)
    columns = {name: [values[place] for place in stay] for name, values in records().items()}
    (true, sampling), (expected, of_kept) = counted(file), counted(release(tmp_path / "kept", **columns))
    assert list(true.columns) == list(expected.columns) == ["count", "weighted", "pay"]
    assert all(np.array_equal(true[name], expected[name]) for name in true.columns)
    assert true.total(COUNT) == len(stay) < 400
    assert sampling == of_kept


def shifts(most: int, cells: int) -> Iterator[tuple[int, ...]]:
    """All ways in which the records of a unit may fall into some cells."""
    return (found for found in product(range(most + 1), repeat=cells) if 0 < sum(found) <= most)


def loss_of(noise: TruncatedGeometric, moved: int) -> float:
    """The greatest log ratio of probabilities where a cell is moved by so many, where both are possible."""
    logs = np.log(noise.probabilities)
    return float(np.abs(logs[moved:] - logs[: len(logs) - moved]).max())


@pytest.mark.parametrize("most", [2, 3, 5])
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_the_loss_of_a_whole_unit_is_epsilon_and_a_scale_ten_percent_smaller_fails(most: int, epsilon: str) -> None:
    noise = TruncatedGeometric(epsilon=Fraction(epsilon), cap=12 * most, sensitivity=most)
    smaller = replace(noise, epsilon=noise.epsilon * Fraction(10, 9))
    worst, too_much = (max(sum(loss_of(n, k) for k in moved) for moved in shifts(most, 3)) for n in (noise, smaller))
    assert 0.95 * float(noise.epsilon) < worst <= float(noise.epsilon) * (1 + 1e-12)
    assert too_much > 1.1 * float(noise.epsilon)


@pytest.mark.parametrize("most", [2, 3, 5])
def test_answers_that_only_one_of_both_can_give_are_as_rare_as_delta_however_the_records_are_spread(most: int) -> None:
    noise = TruncatedGeometric(epsilon=Fraction(1), cap=4 * most, sensitivity=most)
    rarest = [sum(noise.delta(k) for k in moved) for moved in shifts(most, 3)]
    assert max(rarest) <= float(noise.delta_bound())
    assert np.isclose(max(rarest), float(noise.delta_bound()))


def test_empty_cells_without_noise_cost_as_much_as_a_unit_that_is_alone_in_several() -> None:
    share, most = Fraction(1, 2), 2
    noise = TruncatedGeometric(epsilon=Fraction(1), cap=20, sensitivity=most)
    method = TruncatedLaplace(alpha=Fraction(1), counts=noise, empty_cells=share)
    stated = float(noise.epsilon + method.cost_of_dropping)
    outcomes = np.arange(-noise.cap, noise.cap + 1 + most)
    empty = float(share) * noise.probability(outcomes) + np.where(outcomes == 0, 1 - float(share), 0)
    worst = 0.0
    for moved in shifts(most, 2):
        ratios = []
        for one in moved:
            held = noise.probability(outcomes - one) if one else empty
            both = (held > 0) & (empty > 0)
            ratios.append(np.log(held[both]) - np.log(empty[both]))
        worst = max(worst, sum(float(r.max()) for r in ratios), -sum(float(r.min()) for r in ratios))
    assert 0.95 * stated < worst <= stated + 1e-9


def test_every_table_of_a_cube_has_noise_for_a_unit(tmp_path: Path) -> None:
    changes = (
        ("cap = 60", 'cap = 60\nsensitivity = "weight"\nlargest_weight = 1000\nweight_unit = 100'),
        ('measures = ["pay"]', ""),
        ("epsilon = 8", "epsilon = 20"),
        ("delta = 0.1", "delta = 0.9"),
    )
    (planned,) = check(load(firms(tmp_path, *changes))).plan.cubes
    method = planned.method
    assert method.counts.sensitivity == MOST
    assert method.weights.sensitivity == MOST * 10
    assert [(c.counts.sensitivity, c.weights.sensitivity) for c in method.controls] == [(MOST, MOST * 10)] * 2
    alone = cube_method(planned.section.model_copy(update={"protects": "record", "most_records": None}), alpha=1)
    assert planned.guarantee.epsilon == alone.guarantee().epsilon == 6
    assert planned.compared_errors().planned[1] > 2.5 * replace(planned, method=alone).compared_errors().planned[1]


def test_statement_structure_and_notes_say_what_is_protected(tmp_path: Path) -> None:
    file = firms(tmp_path)
    plan = check(load(file)).plan
    (planned,) = plan.cubes
    text = statement(plan)
    assert "All records of one firm are hidden together in people (at most 3 records of one)" in text
    assert "of each firm at most 3 records were counted, chosen by a key" in text
    assert "What the records of several units (firm) tell together is not hidden." in text
    assert "for each of them, not for all together" not in text
    assert not any("`levels` changes nothing" in note for note in plan.operator_notes())
    assert any("counts at most 3 records of one firm" in note for note in plan.operator_notes())
    described = planned.describe(plan)
    assert (described["protects"], described["unit"], described["most_records"]) == ("unit", "firm", MOST)


def test_a_run_is_charged_once_and_another_key_is_another_question(tmp_path: Path) -> None:
    file = firms(tmp_path)
    done = run(load(file))
    assert done.charged == ("people",)
    structure = json.loads((done.bundle / "structure.json").read_text(encoding="utf-8"))
    assert structure["cubes"][0]["protects"] == "unit"
    assert run(load(file)).charged == ()
    questions = [check(load(file)).plan.cubes[0]]
    rotate_key(tmp_path / "sfumato.key")
    questions += [check(load(file)).plan.cubes[0]]
    assert len({one.digest("data") for one in questions}) == 2
    assert len({one.digest("data", any_key=True) for one in questions}) == 1


def test_records_of_other_firms_are_other_data(tmp_path: Path) -> None:
    file = firms(tmp_path, ("epsilon = 8", "epsilon = 16"))
    assert run(load(file)).charged == ("people",)
    other = [f"F{firm}" for firm in np.roll(FIRMS, 1)]
    assert run(load(firms(tmp_path, ("epsilon = 8", "epsilon = 16"), firm=other))).charged == ("people",)


def test_the_report_says_what_the_limit_costs_beside_protecting_a_record(tmp_path: Path) -> None:
    file = firms(tmp_path)
    run(load(file))
    found = assess(load(file))
    limit = found.cubes[0].limit
    sizes = Counter(FIRMS.tolist()).values()
    assert (limit.unit, limit.most, limit.units, limit.records) == ("firm", MOST, len(sizes), 400)
    assert limit.above == sum(size > MOST for size in sizes)
    assert limit.left_out == sum(max(size - MOST, 0) for size in sizes) == 400 - len(kept(file))
    tried = {one.most: one for one in limit.tried}
    assert tried[1].left_out == 0
    assert tried[5].left_out == sum(max(size - 5, 0) for size in sizes)
    assert 2.5 < tried[MOST].noise / tried[1].noise < 6
    cells = len(everything(records()))
    assert np.isclose(limit.missing, limit.left_out / cells)
    assert limit.error > 0
    assert "Hiding whole units" in found.report.read_text(encoding="utf-8")


def everything(columns: dict[str, list[Any]]) -> list[int]:
    """How many records are in every cell that has some."""
    return list(Counter(zip(*(columns[name] for name in CODES), strict=True)).values())


REFUSED = {
    "no limit": (f"\nmost_records = {MOST}", "", "`most_records` is needed"),
    "a limit of records that are hidden one by one": ('protects = "unit"\n', "", "`most_records` is needed"),
    "a limit of one": (f"most_records = {MOST}", "most_records = 1", "from 2 to"),
    "no larger units": (', levels = ["firm"]', "", "named by `levels`"),
    "no key": ('key = "sfumato.key"\n', "", "a key file"),
    "an exact control": ('by = ["region"], epsilon = 0.5', 'by = ["region"], exact = true', "without exact controls"),
    "shared draws": ('measures = ["pay"]', 'draws = "shared"', 'draws = "own"'),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_hide_a_unit_is_refused_before_anything_is_charged(tmp_path: Path, case: str) -> None:
    old, new, words = REFUSED[case]
    with pytest.raises(SfumatoError, match=words):
        run(load(firms(tmp_path, (old, new))))
    assert not (tmp_path / "ledger.sqlite").exists()


def test_noise_for_one_record_does_not_hide_a_unit_and_the_audit_sees_it() -> None:
    case = replace(NAMED_UNITS, name="units in an ordinary cube", tables=cube(cap=40), settings="")
    found = audit(case, 6_000)
    assert found.loss.lower > 1.5 > found.allowed, str(found)
