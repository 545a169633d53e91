"""What identifies a question, and what a bundle folder may be."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from sfumato.checking import check, checked
from sfumato.errors import BundleError, DataError, ReleaseError, SfumatoError
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.running import run
from tests.conftest import tiny_frame, write
from tests.release.test_release_file import GOOD, written
from tests.tiny import TINY


def test_every_link_of_the_frame_is_part_of_the_question(tiny: Path) -> None:
    jobs = {"path": "jobs.parquet", "worker": "worker", "workplace": "workplace"}
    changes: list[dict[str, Any]] = [
        {},
        {"jobs": jobs | {"workplace": "plant"}},
        {"jobs": jobs | {"worker": "person"}},
        {"workplaces": {"path": "workplaces.parquet", "key": "plant"}},
        {"workers": {"path": "workers.parquet", "key": "person"}},
        {"public": ["place"]},
        {"workers": None},
    ]
    links = [tiny_frame(tiny, **change).links() for change in changes]
    assert all(first != second for first, second in itertools.combinations(links, 2))


def test_another_link_between_the_same_files_is_charged_and_counted_anew(tiny: Path) -> None:
    write(tiny / "jobs.parquet", TINY["jobs"] | {"plant": [102] * 7 + [101]})
    file = written(tiny, GOOD.replace("epsilon = 4.0", "epsilon = 8.0"))
    first = run(load(file))
    file.write_text(file.read_text().replace('worker = "worker" }', 'worker = "worker", workplace = "plant" }'))
    second = run(load(file))
    assert second.charged == first.charged == ("by_place", "by_industry")


@pytest.mark.parametrize("bundle", [".", "..", "bundle/..", "data", "ledger.store", "ledger.store/bundle"])
def test_a_bundle_folder_that_holds_other_parts_of_the_release_is_refused(tiny: Path, bundle: str) -> None:
    (tiny / "data").mkdir()
    (tiny / "jobs.parquet").rename(tiny / "data" / "jobs.parquet")
    text = GOOD.replace('"jobs.parquet"', '"data/jobs.parquet"').replace("[data]", "[data]", 1)
    with pytest.raises(ReleaseError, match=r"bundle|name of a file"):
        load(written(tiny, text.replace('period = "2025"', f'period = "2025"\nbundle = "{bundle}"')))


def test_a_ledger_inside_the_bundle_is_refused(tiny: Path) -> None:
    text = GOOD.replace('period = "2025"', 'period = "2025"\nledger = "bundle/ledger.sqlite"')
    with pytest.raises(ReleaseError, match=r"a folder that holds ledger\.sqlite"):
        load(written(tiny, text))


def test_a_folder_with_a_manifest_of_somebody_else_is_left_alone(tiny: Path) -> None:
    (tiny / "bundle").mkdir()
    (tiny / "bundle" / "manifest.json").write_text('{"name": "a web page"}')
    (tiny / "bundle" / "index.html").write_text("hello")
    with pytest.raises(BundleError, match=r"index\.html"):
        run(load(written(tiny, GOOD)))
    assert (tiny / "bundle" / "index.html").read_text() == "hello"
    assert not (tiny / "ledger.sqlite").exists()


def test_a_bundle_behind_a_symbolic_link_is_published_where_it_leads(tiny: Path) -> None:
    (tiny / "www").mkdir()
    (tiny / "bundle").symlink_to(tiny / "www")
    file = written(tiny, GOOD)
    for _ in range(2):
        run(load(file))
    assert (tiny / "bundle").is_symlink()
    assert (tiny / "www" / "manifest.json").exists()


def test_ledgers_of_similar_names_do_not_share_a_store(tiny: Path) -> None:
    stores = set()
    for name in ("office.2025", "office.2026", "office.sqlite", "office"):
        text = GOOD.replace('period = "2025"', f'period = "2025"\nledger = "{name}"')
        stores.add(load(written(tiny, text)).store)
    assert len(stores) == 3  # office.sqlite and office keep theirs in office.store


@pytest.mark.parametrize("name", ["jobs[1].parquet", "jobs*.parquet", "jobs{1}.parquet"])
def test_a_file_name_that_engines_read_as_a_pattern_is_refused(tiny: Path, name: str) -> None:
    (tiny / "jobs.parquet").rename(tiny / name)
    with pytest.raises(DataError, match="which engines read as patterns"):
        check(load(written(tiny, GOOD.replace('"jobs.parquet"', f'"{name}"'))))


def test_columns_come_from_files_and_never_from_names_of_folders(tiny: Path) -> None:
    (tiny / "jobs" / "sex=F").mkdir(parents=True)
    (tiny / "jobs.parquet").rename(tiny / "jobs" / "sex=F" / "part.parquet")
    text = GOOD.replace('"jobs.parquet"', '"jobs"')
    with checked(load(written(tiny, text))) as ready:
        assert "sex" not in ready.opened.tables.jobs.columns


def test_check_refuses_what_run_would_refuse(tiny: Path) -> None:
    file = written(tiny, GOOD)
    run(load(file))
    for old, new in (("epsilon = 4.0", "epsilon = 5.0"), ('period = "2025"', 'period = "2026"')):
        file.write_text(GOOD.replace(old, new))
        found = check(load(file))
        assert found.refusal is not None
        with pytest.raises(SfumatoError) as refused:
            run(load(file))
        assert str(refused.value) == str(found.refusal)
    file.write_text(GOOD)
    assert check(load(file)).refusal is None


@pytest.mark.parametrize("number", ["1e400", "1e999999999", '"1e99999"', "1_000_000_000_000.0"])
def test_absurd_numbers_are_refused_at_once(tiny: Path, number: str) -> None:
    with pytest.raises(SfumatoError):
        check(load(written(tiny, GOOD.replace("epsilon = 4.0", f"epsilon = {number}"))))


def test_alpha_zero_is_not_taken_for_none(tiny: Path) -> None:
    with pytest.raises(SfumatoError, match="alpha"):
        check(load(written(tiny, GOOD.replace("epsilon = 2.0", "epsilon = 2.0, alpha = 0"))))


@pytest.mark.slow
def test_brackets_in_a_title_or_a_note_are_text(release_folder: Path) -> None:
    from tests.cli.test_cli import call

    file = release_folder / "release.toml"
    file.write_text(file.read_text().replace('"Jobs by place"', '"Jobs [/all] by place"'))
    call("run", file)
    assert "[/all]" in call("assess", file).stdout
    account = ("--population", "jobs", "--period", "2025", "--alpha", "0.1", "--epsilon", "4", "--ledger", file)
    assert "[draft] of [/minutes/3]" in call("budget", "set", *account, "--note", "[draft] of [/minutes/3]").stdout
    assert len(Ledger.open(release_folder / "ledger.sqlite").history()) == 9


def test_damaged_and_unlike_files_are_named_without_quoting_a_record(tiny: Path) -> None:
    (tiny / "parts").mkdir()
    (tiny / "jobs.parquet").rename(tiny / "parts" / "a.parquet")
    write(tiny / "parts" / "b.parquet", {"worker": ["secret"], "workplace": [1]})
    text = GOOD.replace('"jobs.parquet"', '"parts"')
    with pytest.raises(DataError) as error:
        check(load(written(tiny, text)))
    assert "secret" not in str(error.value)
    (tiny / "parts" / "b.parquet").write_bytes(b"")
    with pytest.raises(DataError):
        check(load(written(tiny, text)))


def test_very_large_and_unsigned_keys_are_checked_like_others(tiny: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    big = 2**63 + 10
    for table, columns in TINY.items():
        changed = {
            name: pa.array([big + v for v in values], pa.uint64()) if name == "worker" else values
            for name, values in columns.items()
        }
        pq.write_table(pa.table(changed), tiny / f"{table}.parquet")
    check(load(written(tiny, GOOD)))
