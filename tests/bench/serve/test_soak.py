"""The soak finds growth where there is some, and nothing wrong with a server that is asked for a few seconds."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from bench.serve.questions import AskedTable, Questions
from bench.serve.soak import Held, soak, verdict

TABLE = AskedTable(
    id="jobs",
    codes={"place": ["a", "b,c"], "year": ["2025"], "contents": ["jobs", "error"]},
    time=("year",),
    files=("/tables/jobs/files/a",),
)


def held(megabytes: Callable[[float], float]) -> list[Held]:
    """What a server holds over an hour, looked at every minute."""
    return [
        Held(at=60.0 * at, megabytes=megabytes(at / 60), files=20, threads=8, processor=float(at)) for at in range(60)
    ]


def test_memory_that_grows_is_not_flat_and_a_beginning_or_a_wave_is_no_growth() -> None:
    assert verdict(held(lambda _: 300.0))["flat"]
    assert verdict(held(lambda hours: 300 + 50 * min(4 * hours, 1)))["flat"]
    assert verdict(held(lambda hours: 300 + 10 * (int(60 * hours) % 2)))["flat"]
    growing = verdict(held(lambda hours: 300 + 60 * hours))
    assert not growing["flat"]
    assert growing["slope_mb_per_hour"] == pytest.approx(60)
    assert growing["megabytes_last_quarter"] - growing["megabytes_first_quarter"] == pytest.approx(45)


def test_a_seed_gives_the_same_questions_of_every_kind_and_no_two_are_alike() -> None:
    first, again = (list(islice(Questions(7, [TABLE]), 3_000)) for _ in range(2))
    assert first == again
    kinds = {question.kind for question in first}
    assert len(kinds) == 22
    assert {question.kind for question in first if question.good} & {"huge", "lengths", "path", "bomb"} == set()
    assert len({question.sent for question in first}) > 2_900


def test_a_few_seconds_find_no_fault_and_no_answer_that_changed(bundles: dict[str, Path]) -> None:
    found = soak([bundles["jobs"], bundles["survey"]], seconds=6, share=1.5, seed=1)
    assert found["requests"] > 20
    assert found["faults"] == []
    assert found["answers_that_changed"] == 0
    assert found["tracebacks_logged"] == 0
    assert "MB an hour" in found["words"]
