"""Every kind of statistic keeps to what the spine relies on, from its plan to what is said of it."""

import json
from pathlib import Path

import pytest

from sfumato.bundle.statement import make_statement, statement
from sfumato.bundle.structure import structure
from sfumato.plan import Plan
from sfumato.statistic import Statistic
from sfumato.statistics.kinds import IN_ORDER, by_kind, loaded
from tests.identity.every_kind import FILES, planned


@pytest.fixture(params=FILES)
def plan(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    return planned(tmp_path, FILES[request.param], monkeypatch)


def test_the_files_have_every_kind(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = [planned(tmp_path_factory.mktemp(name), text, monkeypatch) for name, text in FILES.items()]
    assert {type(one) for plan in plans for one in plan.statistics} == set(map(loaded, IN_ORDER))


def test_a_statistic_has_one_charge_for_all_it_publishes(plan: Plan) -> None:
    for one in plan.statistics:
        charge = one.charge("da7a")
        assert (charge.table, charge.guarantee, charge.data) == (one.name, one.guarantee, "da7a")
        assert charge.question == one.digest("da7a") != one.digest("0")
        assert one.may_have_cost(one.guarantee)
    assert [charge.table for charge in plan.charges("da7a")] == [one.name for one in plan.statistics]


def test_questions_are_told_apart(plan: Plan) -> None:
    digests = [one.digest("") for one in plan.distinct()]
    assert len(set(digests)) == len(digests)
    for one in plan.statistics:
        assert one in tuple(one.in_every_order())
        assert one.cells > 0
        assert {dimension.name for dimension in one.by} <= set(one.classified_by)
        assert one.looks_at


def test_all_that_is_said_of_it_is_said_in_fields_too(plan: Plan) -> None:
    described = json.loads(json.dumps(structure(plan)))
    text, stated = statement(plan), make_statement(plan)
    for one in plan.statistics:
        (facts,) = (about for about in described[one.folder] if about["name"] == one.name)
        assert facts["title"] == one.title
        assert facts["guarantee"] == one.guarantee.described()
        assert [dimension["name"] for dimension in facts["dimensions"]] == [dimension.name for dimension in one.by]
        assert facts["changes"]
        assert facts["changes"] in text
        assert all(len(words) > 0 for words in one.expected_error())
    for paragraphs in described["statement"].values():
        assert all(paragraph in text for paragraph in paragraphs)
    assert list(stated.changed) == [one.name for one in plan.statistics]


def test_those_of_a_kind_are_made_together(plan: Plan) -> None:
    groups = by_kind({one.name: one for one in plan.statistics})
    assert all(issubclass(kind, Statistic) for kind in groups)
    assert [name for batch in groups.values() for name in sorted(batch)] != []
    assert {name for batch in groups.values() for name in batch} == {one.name for one in plan.statistics}
    assert set(groups) == set(plan.kinds)
