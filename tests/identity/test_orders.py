"""A question in another order gets the stored answer, laid out as it is asked, for tables and cubes of every kind."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato.bundle.read import open_cube
from sfumato.bundle.rows import all_rows
from sfumato.keys import new_key
from sfumato.live import open_charged
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import Published, run
from sfumato.statistics.cube.truncated_laplace import TruncatedLaplace
from tests.identity.earlier import run_by_version_0_1
from tests.identity.test_same_data import charges, release
from tests.statistics.cube.survey import release as survey


def values(bundle: Path, table: str, ends: tuple[str, ...] = ()) -> dict[frozenset[Any], tuple[Any, ...]]:
    """The numbers of a table by what each is about, in whatever order; ends that play the same part are one."""
    structure = json.loads((bundle / "structure.json").read_text(encoding="utf-8"))
    (about,) = [found for found in structure["tables"] if found["name"] == table]
    rows, found = all_rows(bundle, about), {}
    names = [dimension["name"] for dimension in about["dimensions"]]
    for row in rows.to_pylist():
        cell = {(name, row.pop(name)) for name in names if not name.startswith(ends)}
        pairs = [tuple(sorted((n.removeprefix(end), row.pop(n)) for n in names if n.startswith(end))) for end in ends]
        found[frozenset([*cell, *[tuple(sorted(pairs))]])] = tuple(sorted(row.items()))
    assert len(found) == len(rows)
    return found


def test_a_table_in_another_order_is_the_stored_one_laid_out_anew(tiny: Path) -> None:
    first = run(release(tiny, ("industry", "place", "sex")))
    before = values(first.bundle, "counted")
    again = run(release(tiny, ("sex", "place", "industry")))
    assert again.charged == ()
    assert values(again.bundle, "counted") == before
    columns = pq.read_table(again.bundle / "tables" / "counted.parquet").column_names
    assert columns[:3] == ["sex", "place", "industry"]
    assert len(charges(release(tiny))) == 1
    assert assess(release(tiny, ("sex", "place", "industry"))).utilities


def test_codes_in_another_order_make_no_other_question(tiny: Path) -> None:
    first = run(release(tiny))
    before = values(first.bundle, "counted")
    again = run(release(tiny, attributes='sex = { codes = ["M", "F"] }'))
    assert again.charged == ()
    assert values(again.bundle, "counted") == before
    assert pq.read_table(again.bundle / "tables" / "counted.parquet")["sex"][0].as_py() == "M"


def test_two_orders_in_one_release_are_charged_once(tiny: Path) -> None:
    of = release(tiny)
    file = tiny / "jobs.toml"
    text = file.read_text(encoding="utf-8")
    second = (
        text[text.index("[[table]]") :].replace("counted", "turned").replace('["place", "sex"]', '["sex", "place"]')
    )
    file.write_text(text + second, encoding="utf-8")
    published = run(load(file))
    assert published.charged == ("counted",)
    assert values(published.bundle, "turned") == values(published.bundle, "counted")
    assert len(charges(of)) == 1


CUBE_TURNED = (
    ('by = ["region", "job", "level"]', 'by = ["level", "region", "job"]'),
    ('[{ by = ["region"], epsilon = 0.5 }, { by = ["level", "job"]', '[{ by = ["job", "level"]'),
    ("epsilon = 0.5 }]", 'epsilon = 0.5 }, { by = ["region"], epsilon = 0.5 }]'),
    ('codes = ["a", "b", "c"]', 'codes = ["c", "a", "b"]'),
)


def answers_of(published: Published) -> list[Any]:
    """Weighted counts of regions with their errors, and of one job in another order of codes."""
    cube = open_cube(published.bundle, "people")
    found = [cube.totals(("region",)), cube.totals(("level",), where={"job": ["b", "a"]}, column="pay")]
    return [[one.values.tolist(), np.round(one.errors, 9).tolist()] for one in found]


@pytest.mark.parametrize("change", [(), (("epsilon = 2\n", 'epsilon = 2\nweights = "region"\n'),)])
def test_a_cube_in_another_order_is_the_stored_one_with_the_same_figures(tmp_path: Path, change: Any) -> None:
    if change:
        change += (('{ by = ["level", "job"]', '{ by = ["level", "region"]'),)
    turned = CUBE_TURNED if not change else (CUBE_TURNED[0], CUBE_TURNED[3])
    first = run(load(survey(tmp_path, *change)))
    before = answers_of(first)
    again = run(load(survey(tmp_path, *change, *turned)))
    assert again.charged == ()
    assert answers_of(again) == before
    assert run(load(survey(tmp_path, *change))).charged == ()


@pytest.mark.parametrize("turned", [CUBE_TURNED[:1], CUBE_TURNED[1:3], CUBE_TURNED])
def test_a_cube_of_version_0_1_in_another_order_is_never_drawn_again(tmp_path: Path, turned: Any) -> None:
    names = run_by_version_0_1(load(survey(tmp_path)))
    again = run(load(survey(tmp_path, *turned)))
    assert again.charged == ()
    assert charges(load(tmp_path / "release.toml")) == list(names.values())


@pytest.mark.parametrize("turned", [(), (0,)])
def test_a_cube_of_version_0_1_keeps_its_answer_also_where_its_guarantee_was_worked_out_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turned: tuple[int, ...]
) -> None:
    change = ("cap = 7\n", "cap = 7\nempty_cells = 0.5\n")
    with monkeypatch.context() as then:
        then.setattr(TruncatedLaplace, "cost_of_dropping", Fraction(1, 2))
        names = run_by_version_0_1(load(survey(tmp_path, change)))
    again = run(load(survey(tmp_path, change, *(CUBE_TURNED[at] for at in turned))))
    assert (again.charged, charges(load(tmp_path / "release.toml"))) == ((), list(names.values()))


def test_pairs_that_are_not_directed_are_listed_once_in_any_order(tiny: Path) -> None:
    new_key(tiny / "sfumato.key", a=Fraction("1.1"), b=Fraction("1.2"))
    release(tiny)
    text = tiny / "jobs.toml"
    head = text.read_text(encoding="utf-8").split("[[table]]")[0]
    head = head.replace('budget = { alpha = 0.1, epsilon = 9, definition = "weak" }', 'key = "sfumato.key"')
    found = []
    for order in (["place", "industry"], ["industry", "place"]):
        table = f'[[table]]\nname = "graph"\ngraph = {{ attribute = {json.dumps(order)} }}\n'
        text.write_text(f'{head}{table}protect = {{ method = "noise-infusion" }}\n', encoding="utf-8")
        published = run(load(text))
        found.append(values(published.bundle, "graph", ends=("first", "second")))
    assert published.charged == ()
    assert found[0] == found[1]
    assert len(found[0]) == 4 * 5 // 2


def test_live_questions_and_released_tables_are_the_same_in_any_order(tiny: Path) -> None:
    first = run(release(tiny, ("industry", "place")))
    before = values(first.bundle, "counted")
    with open_charged(release(tiny, ("industry", "place")), epsilon=Fraction(2)) as live:
        statistic = live.plan(by=("industry", "place"), epsilon=Fraction(2), method="log-laplace")
        assert live.price(statistic).answered
        rows = live.answer(statistic).to_pylist()
    found = {frozenset([("industry", r["industry"]), ("place", r["place"]), ()]): r["value"] for r in rows}
    assert found == {cell: dict(numbers)["value"] for cell, numbers in before.items()}
    assert len(charges(release(tiny))) == 1


def test_a_table_in_parts_in_another_order_has_the_same_numbers(release_folder: Path) -> None:
    text = (release_folder / "release.toml").read_text(encoding="utf-8")
    table = text[text.index("[[table]]") :].split("\n\n")[0]
    head, parts = text[: text.index("[[table]]")], 'structural_zeros = "implied"\nparts = 3\n'
    found = []
    for by in ('["place", "industry", "ownership"]', '["ownership", "place", "industry"]'):
        turned = table.replace('by = ["place", "industry", "ownership"]', f"by = {by}")
        assert by in turned
        (release_folder / "release.toml").write_text(f"{head}{turned}\n{parts}", encoding="utf-8")
        published = run(load(release_folder / "release.toml"))
        found.append(values(published.bundle, "jobs_by_place_industry"))
    assert published.charged == ()
    assert (published.bundle / "tables" / "jobs_by_place_industry").is_dir()
    assert found[0] == found[1]
