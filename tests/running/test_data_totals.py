"""What was read is said to whoever runs a release, and data that cannot be meant are refused before any charge."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sfumato.checking import check
from sfumato.cli.release import plan_summary
from sfumato.cli.run import run_summary
from sfumato.errors import DataError
from sfumato.release import Release, load
from sfumato.running import run
from tests.cli.call import call
from tests.conftest import write
from tests.release.test_release_file import GOOD, written
from tests.tiny import TINY

COUNTED = {"jobs": 8, "establishments": 4, "empty_establishments": 1, "workers": 7}
IN_WORDS = "Read: 8 jobs, 4 establishments (1 of them without jobs), 7 workers."
ONE_EACH = {"worker": [1, 4, 6], "workplace": [100, 101, 102], "earnings": [10, 40, 60]}
EMPTY: dict[str, list[Any]] = {name: column[:0] for name, column in TINY["jobs"].items()}
RECORDS = """\
[release]
title = "Answers"
period = "2025"
budget = { alpha = 0.1, epsilon = 4.0, definition = "individuals" }

[data]
records = { path = "records.parquet", unit = "unit"%s }

[data.attributes.region]
codes = ["A", "B"]

[[table]]
name = "by_region"
count = "records"
by = ["region"]
protect = { method = "laplace", epsilon = 1 }
"""


def accepting(text: str, accepted: str) -> str:
    return text.replace('worker = "worker" }', f'worker = "worker", accept = "{accepted}" }}')


@pytest.fixture
def release(tiny: Path) -> Release:
    return load(written(tiny, GOOD))


def test_check_and_run_say_what_was_read_also_when_it_is_remembered(release: Release) -> None:
    for _ in range(2):
        text, data = plan_summary(check(release))
        assert data["read"] == COUNTED
    text, data = run_summary(run(release))
    assert IN_WORDS in str(text)
    assert data["read"] == COUNTED


@pytest.mark.slow
def test_the_commands_print_it_for_people_and_for_machines(tiny: Path) -> None:
    file = written(tiny, GOOD)
    assert json.loads(call("check", file, "--json").stdout)["read"] == COUNTED
    assert IN_WORDS in " ".join(call("check", file).stdout.split())
    assert IN_WORDS in " ".join(call("run", file).stdout.split())


def test_no_total_is_in_the_bundle(tiny: Path) -> None:
    workers = range(1, 90_001)
    write(tiny / "workers.parquet", {"worker": [*workers], "sex": ["F"] * 90_000})
    write(tiny / "jobs.parquet", {"worker": [*workers], "workplace": [100] * 90_000})
    published = run(load(written(tiny, GOOD)))
    assert published.totals.jobs == 90_000
    texts = [path.read_text() for path in published.bundle.rglob("*") if path.suffix in (".json", ".md")]
    assert texts
    assert not any(re.search(r"\b90,?000\b", text) for text in texts)  # digests of files have such digits by chance


@pytest.mark.parametrize(("jobs", "found"), [(ONE_EACH, "3 jobs at 3 workplaces, one at each"), (EMPTY, "none at all")])
def test_jobs_that_cannot_be_meant_are_refused_before_any_charge(
    release: Release, jobs: dict[str, list[Any]], found: str
) -> None:
    schema = pq.read_schema(release.folder / "jobs.parquet")
    write(release.folder / "jobs.parquet", jobs)
    pq.write_table(pq.read_table(release.folder / "jobs.parquet").cast(schema), release.folder / "jobs.parquet")
    for _ in range(2):  # the second time the files are known
        with pytest.raises(DataError, match=found):
            run(release)
    assert not release.ledger.exists()
    accepted = "one job each" if jobs is ONE_EACH else "no jobs"
    published = run(load(written(release.folder, accepting(GOOD, accepted))))
    assert published.totals.jobs == len(jobs["worker"])


def test_text_keys_are_counted_alike(tiny: Path) -> None:
    for name, columns in TINY.items():
        keys = {key: [str(value) for value in columns[key]] for key in ("worker", "workplace") if key in columns}
        write(tiny / f"{name}.parquet", columns | keys)
    findings = check(load(written(tiny, GOOD)))
    assert findings.totals is not None
    assert findings.totals.figures() == COUNTED


def test_accepting_changes_no_question(tiny: Path) -> None:
    first = run(load(written(tiny, GOOD)))
    assert first.charged
    assert run(load(written(tiny, accepting(GOOD, "one job each")))).charged == ()


def test_records_and_their_periods_are_counted_and_none_at_all_are_refused(tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {"unit": [1, 1, 2], "year": ["2024", "2025", "2025"], "region": ["A", "A", "B"]}
    write(tmp_path / "records.parquet", columns)
    years = '[data.attributes.year]\ncodes = ["2024", "2025"]\n\n[data.attributes.region]'
    with_years = RECORDS.replace("[data.attributes.region]", years).replace('["region"]', '["region", "year"]')
    findings = check(load(written(tmp_path, with_years % ', period = "year"')))
    assert findings.totals is not None
    assert findings.totals.figures() == {"records": 3, "units": 2, "periods": 2}
    table = pq.read_table(tmp_path / "records.parquet")
    pq.write_table(table.slice(0, 0), tmp_path / "records.parquet")
    release = load(written(tmp_path, RECORDS % ""))
    with pytest.raises(DataError, match=r"(?s)records in records\.parquet.*none at all"):
        run(release)
    assert not release.ledger.exists()
    assert run(load(written(tmp_path, RECORDS % ', accept = "no records"'))).totals.records == 0
