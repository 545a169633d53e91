"""A table in parts is published like any other: the same numbers, charged once, whole or not at all."""

import json
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.bundle.manifest import MANIFEST, read_manifest
from sfumato.bundle.read import select_rows
from sfumato.bundle.rows import MOST_ROWS, all_rows, each_rows
from sfumato.cells import Cells
from sfumato.checking import check, checked, stored_answers
from sfumato.cli.run import run_summary
from sfumato.engine.chunks import MOST_CELLS
from sfumato.errors import BundleError, LedgerError, ReleaseError
from sfumato.keys import new_key
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release, load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato.serve.core.catalogue import BundleSource, open_catalogue
from sfumato.statistics.published import PublishedTable
from sfumato_lab.economy.jobs.generate import generate
from tests.running.same_draws import same_draws
from tests.running.test_kill import check_invariants, entries

BY = ("place", "industry", "ownership", "sex", "education")
TABLE = "detailed"
KEYED = 'method = "noise-infusion"'


def release_of(folder: Path, protect: str, *, name: str = "large", by: tuple[str, ...] = BY, more: str = "") -> Path:
    """A release of one large table of the economy, with a ledger and a bundle of its own."""
    head, _ = (folder / "release.toml").read_text(encoding="utf-8").split("# Each table states")
    if protect == KEYED:
        if not (folder / "sfumato.key").exists():
            new_key(folder / "sfumato.key")
        head = head.replace("budget = { alpha = 0.1, epsilon = 4.0 }", 'key = "sfumato.key"')
    head = head.replace("epsilon = 4.0 }", 'epsilon = 4.0, delta = 0.1, definition = "individuals" }')
    head = head.replace("[data]", f'ledger = "{name}.sqlite"\nbundle = "{name}.bundle"\n\n[data]')
    table = f'name = "{TABLE}"\ncount = "jobs"\nby = {json.dumps(by)}\nprotect = {{ {protect} }}'
    path = folder / f"{name}.toml"
    path.write_text(f'{head}\n[[table]]\n{table}\nstructural_zeros = "implied"\n{more}\n', encoding="utf-8")
    return path


def published(bundle: Path) -> pa.Table:
    """All rows of the table, in the order of its dimensions."""
    (about,) = json.loads((bundle / "structure.json").read_text(encoding="utf-8"))["tables"]
    rows = all_rows(bundle, about)
    named = zip(rows.column_names, rows.columns, strict=True)
    plain = pa.table({name: c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c for name, c in named})
    return plain.sort_by([(dimension["name"], "ascending") for dimension in about["dimensions"]])


def files_of(bundle: Path) -> set[str]:
    return {name for name in read_manifest(bundle)["files"] if name.startswith("tables/")}


@pytest.mark.parametrize("by", [BY, ("sex", "place", "education", "industry")], ids=["public first", "mixed"])
def test_keyed_numbers_are_the_same_to_the_bit_in_parts_and_in_one_piece(
    release_folder: Path, by: tuple[str, ...]
) -> None:
    whole = run(load(release_of(release_folder, KEYED, name="whole", by=by))).bundle
    parts = run(load(release_of(release_folder, KEYED, name="parts", by=by, more="parts = 7"))).bundle
    assert files_of(whole) == {f"tables/{TABLE}.parquet", f"tables/{TABLE}.csv"}
    assert files_of(parts) == {f"tables/{TABLE}/part-{number:05d}.parquet" for number in range(7)}
    assert published(parts).equals(published(whole))


def test_a_table_in_one_part_is_published_in_the_usual_files_to_the_byte(release_folder: Path) -> None:
    whole = run(load(release_of(release_folder, KEYED, name="whole"))).bundle
    one = run(load(release_of(release_folder, KEYED, name="one", more="parts = 1"))).bundle
    listed = read_manifest(whole)["files"]
    assert read_manifest(one)["files"] == listed
    assert f"tables/{TABLE}.csv" in listed


def noise_of(release: Release) -> tuple[PublishedTable, Cells, np.ndarray]:
    """The true cells of a published table and the noise of each, once the stored answer lists exactly these cells."""
    with checked(release) as ready:
        (planned,) = ready.plan.tables
        true = ready.count({TABLE: planned})[TABLE]
        question = ready.identity.charge(planned).question
    assert isinstance(true, Cells)
    digest = Ledger.open(release.ledger).answer(question)
    assert digest is not None
    answer = stored_answers(release).read(question, digest)
    assert np.array_equal(answer.positions, true.positions), "each cell once, those without jobs included"
    assert np.array_equal(answer["establishments"], true["establishments"])
    return planned, true, answer["value"] - true["count"]


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An economy with some thousand workplace cells: enough to tell scales of noise apart."""
    return generate(tmp_path_factory.mktemp("larger"), jobs=200_000).folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "protect",
    [
        'method = "laplace", epsilon = 1',
        'method = "node-laplace", epsilon = 2',
        'method = "smooth-laplace", epsilon = 4, delta = 0.05',
        'method = "smooth-pareto", epsilon = 2',
        'method = "smooth-box", epsilon = 4',
        'method = "log-box", epsilon = 2',
        'method = "auto", epsilon = 4',
    ],
)
def test_formal_noise_has_the_expected_size_in_every_part_and_no_other(
    larger: Path, tmp_path: Path, protect: str
) -> None:
    folder = Path(shutil.copytree(larger, tmp_path / "economy"))
    by = ("place", "industry", "ownership", "sex") if "smooth-laplace" in protect else BY
    release = load(release_of(folder, protect, by=by, more="parts = 4"))
    with same_draws():
        assert len(files_of(run(release).bundle)) == 4
    planned, true, noise = noise_of(release)
    assert (true["count"] == 0).sum() > len(true) / 10
    # The cells of a block may share their chance, so that a block counts as one observation.
    ratio = (np.abs(noise) / planned.method.expected_error(true)).reshape(-1, true.worker_cells).mean(axis=1)
    for blocks in np.array_split(ratio, 4):
        assert abs(blocks.mean() - 1) < 5 * blocks.std() / np.sqrt(len(blocks))
    off = ratio / 1.2
    assert abs(off.mean() - 1) > 5 * off.std() / np.sqrt(len(off)), "a scale that is off by a fifth would be found out"


def test_noise_of_two_parts_is_not_the_same(release_folder: Path) -> None:
    release = load(release_of(release_folder, 'method = "laplace", epsilon = 1', more="parts = 2"))
    run(release)
    _, _, noise = noise_of(release)
    half = len(noise) // 2
    assert np.abs(np.corrcoef(noise[:half], noise[-half:])[0, 1]) < 6 / np.sqrt(half)


def test_a_repeated_run_gives_the_stored_parts_and_charges_nothing(release_folder: Path) -> None:
    file = release_of(release_folder, 'method = "smooth-pareto", epsilon = 2', more="parts = 5")
    first = run(load(file))
    manifest = (first.bundle / MANIFEST).read_bytes()
    assert first.charged == (TABLE,)
    shutil.rmtree(first.bundle)
    again = run(load(file))
    assert again.charged == ()
    assert (again.bundle / MANIFEST).read_bytes() == manifest, "a second draw would differ"


def test_an_answer_stays_as_it_was_given_however_the_release_is_cut_later(release_folder: Path) -> None:
    protect = 'method = "smooth-pareto", epsilon = 2'
    whole = published(run(load(release_of(release_folder, protect))).bundle)
    cut = run(load(release_of(release_folder, protect, more="parts = 5")))
    assert cut.charged == ()
    assert published(cut.bundle).equals(whole)
    parts = published(run(load(release_of(release_folder, protect, name="other", more="parts = 5"))).bundle)
    uncut = run(load(release_of(release_folder, protect, name="other")))
    assert uncut.charged == ()
    assert published(uncut.bundle).equals(parts)


@pytest.mark.parametrize("change", ["changed", "gone"])
def test_a_stored_part_that_was_changed_is_noticed(release_folder: Path, change: str) -> None:
    release = load(release_of(release_folder, 'method = "laplace", epsilon = 1', more="parts = 3"))
    run(release)
    (part,) = (release.store / "answers").glob("*/part-00001.parquet")
    content = part.read_bytes()
    if change == "gone":
        part.unlink()
    else:
        part.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    with pytest.raises(LedgerError, match="stored answer part-00001"):
        run(release)
    part.write_bytes(content)
    run(release)


def test_a_published_part_that_was_changed_is_noticed_and_put_right(release_folder: Path) -> None:
    release = load(release_of(release_folder, 'method = "laplace", epsilon = 1', more="parts = 3"))
    bundle = run(release).bundle
    part = bundle / "tables" / TABLE / "part-00002.parquet"
    content = part.read_bytes()
    part.write_bytes(content[:-1])
    with pytest.raises(BundleError, match=r"part-00002\.parquet was changed"):
        read_manifest(bundle)
    run(release)
    assert part.read_bytes() == content


def test_published_parts_can_be_read_by_everyone_and_stored_ones_by_their_owner(release_folder: Path) -> None:
    release = load(release_of(release_folder, 'method = "laplace", epsilon = 1', more="parts = 2"))
    bundle = run(release).bundle
    assert {path.stat().st_mode & 0o777 for path in bundle.glob("tables/*/*.parquet")} == {0o644}
    assert {path.stat().st_mode & 0o777 for path in release.store.glob("answers/*/*.parquet")} == {0o600}


KILLED = """
import os, signal, sys
from sfumato import running
from sfumato.release import load

write = running.write_chunk

def killed(folder, *part, **rows):
    if len(list(folder.iterdir())) >= int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return write(folder, *part, **rows)

running.write_chunk = killed
running.run(load(sys.argv[1]))
"""


def kill_after(parts: int, file: Path, release: Release) -> bool:
    """Run a release in another process that is killed when so many parts are drawn; say whether a draft is left."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(file), str(parts)], check=False)
    assert done.returncode == -signal.SIGKILL
    return bool(list(release.store.glob("answers/.*.draft")))


@pytest.mark.slow
def test_a_run_that_is_killed_between_parts_leaves_a_charge_and_no_answer_and_the_next_one_finishes(
    release_folder: Path,
) -> None:
    file = release_of(release_folder, 'method = "smooth-pareto", epsilon = 2', more="parts = 60")
    release, seen, killed = load(file), (), 0
    for parts in (1, 20, 40):
        killed += kill_after(parts, file, release)
        seen = check_invariants(release, seen)
        assert [entry.kind for entry in seen] == ["budget", "data", "charge"], (
            "charged once, and no half of an answer is recorded"
        )
        assert not release.bundle.exists()
    assert killed == 3
    finished = run(release)
    assert (finished.charged, finished.finished) == ((), (TABLE,))
    said = run_summary(finished)[0].plain
    assert f"Charged before by a run that did not finish, and answered now at no further charge: {TABLE}." in said
    assert "answered from what is stored" not in said
    assert [entry.kind for entry in entries(release)] == ["budget", "data", "charge", "answer"]
    assert len(files_of(release.bundle)) == 60
    assert list(release.store.glob("answers/.*")) == [], "what the killed runs drew is gone"
    noise_of(release)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ('parts = 3\nstructural_zeros = "listed"', "lists the cells that have an establishment"),
        ("parts = 3", "in all tables that are to agree"),
    ],
)
def test_a_table_that_must_be_seen_as_a_whole_is_refused_before_it_is_charged(
    release_folder: Path, more: str, why: str
) -> None:
    file = release_of(release_folder, 'method = "laplace", epsilon = 1', more=more)
    text = file.read_text(encoding="utf-8")
    if "listed" in more:
        text = text.replace('structural_zeros = "implied"\n', "")
    else:
        text = text.replace("[release]\n", "[release]\nreconcile = true\n")
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ReleaseError, match=why):
        run(load(file))
    assert not load(file).ledger.exists()


def test_large_tables_are_in_parts_by_themselves_and_a_table_that_cannot_be_is_refused(release_folder: Path) -> None:
    attributes = "\n".join(f"a{n} = {{ codes = {json.dumps([str(c) for c in range(40)])} }}" for n in range(4))
    by = ("place", "industry", "ownership", "a0", "a1", "a2", "a3")
    file = release_of(release_folder, 'method = "laplace", epsilon = 1', by=by)
    text = file.read_text(encoding="utf-8").replace("[data.attributes]", f"[data.attributes]\n{attributes}")
    file.write_text(text.replace('"ownership", "a0"', '"a0"'), encoding="utf-8")
    (planned,) = check(load(file), data=False).plan.tables
    assert planned.cells > MOST_CELLS
    assert planned.in_chunks
    file.write_text(text.replace('= "implied"', '= "listed"'), encoding="utf-8")
    with pytest.raises(ReleaseError, match=f"at most {MOST_CELLS:,} cells"):
        check(load(file), data=False)


def test_a_workplace_cell_too_wide_for_a_part_is_refused_before_it_is_charged(release_folder: Path) -> None:
    codes = json.dumps([str(code) for code in range(212)])
    attributes = "\n".join(f"a{n} = {{ codes = {codes} }}" for n in range(3))
    for by, refused in ((("a0", "a1", "a2", "sex"), False), (("a0", "a1", "a2", "sex", "education"), True)):
        file = release_of(release_folder, KEYED, by=("ownership", *by), more="parts = 1")
        text = file.read_text(encoding="utf-8").replace("[data.attributes]", f"[data.attributes]\n{attributes}")
        file.write_text(text, encoding="utf-8")
        with pytest.raises(ReleaseError, match="at most 20,000,000 worker cells") if refused else nullcontext():
            check(load(file), data=False)
        assert not load(file).ledger.exists()


def test_small_tables_are_in_one_piece_unless_they_are_asked_for_in_parts(release_folder: Path) -> None:
    file = release_of(release_folder, 'method = "laplace", epsilon = 1')
    assert [planned.in_chunks for planned in check(load(file), data=False).plan.tables] == [False]
    file = release_of(release_folder, 'method = "laplace", epsilon = 1', more="parts = 2")
    assert [planned.in_chunks for planned in check(load(file), data=False).plan.tables] == [True]


def test_readers_find_the_same_rows_in_parts(release_folder: Path) -> None:
    whole = run(load(release_of(release_folder, KEYED, name="whole"))).bundle
    parts = run(load(release_of(release_folder, KEYED, name="parts", more="parts = 6"))).bundle
    where = {"sex": ["F"], "education": ["college"]}
    chosen = select_rows(parts, TABLE, where=where).rows
    assert len(chosen) > 0
    assert chosen.to_pylist() == select_rows(whole, TABLE, where=where).rows.to_pylist()
    served = [open_catalogue([BundleSource(folder=bundle)])[TABLE] for bundle in (whole, parts)]
    assert served[0].dimensions == served[1].dimensions
    for one, other in zip(served[0].source.columns, served[1].source.columns, strict=True):
        assert np.array_equal(one.values, other.values)


def test_the_manifest_is_read_once_however_many_parts_there_are(release_folder: Path) -> None:
    bundle = run(load(release_of(release_folder, KEYED, more="parts = 6"))).bundle
    (about,) = json.loads((bundle / "structure.json").read_text(encoding="utf-8"))["tables"]
    reading = each_rows(bundle, about)
    first = next(reading)
    (bundle / "manifest.json").unlink()
    assert first.num_rows + sum(rows.num_rows for rows in reading) == about["files"]["rows"]


def test_a_reader_that_needs_the_whole_table_says_where_the_files_of_a_larger_one_are(release_folder: Path) -> None:
    bundle = run(load(release_of(release_folder, KEYED, more="parts = 2"))).bundle
    (about,) = json.loads((bundle / "structure.json").read_text(encoding="utf-8"))["tables"]
    assert about["files"] == {"parquet": f"tables/{TABLE}", "parts": 2, "rows": published(bundle).num_rows}
    larger = {**about, "files": {**about["files"], "rows": MOST_ROWS + 1}}
    with pytest.raises(BundleError, match=rf"tables/{TABLE} as docs/large-tables.md"):
        all_rows(bundle, larger)


def test_a_table_in_parts_can_be_assessed(release_folder: Path) -> None:
    release = load(release_of(release_folder, 'method = "smooth-pareto", epsilon = 2', more="parts = 3"))
    run(release)
    (utility,) = assess(release).utilities
    assert utility is not None


def test_published_files_have_one_schema_and_codes_as_dictionaries(release_folder: Path) -> None:
    bundle = run(load(release_of(release_folder, 'method = "laplace", epsilon = 1', more="parts = 3"))).bundle
    schemas = [pq.read_schema(path) for path in sorted(bundle.glob("tables/*/*.parquet"))]
    assert all(schema.equals(schemas[0]) for schema in schemas)
    assert all(pa.types.is_dictionary(schemas[0].field(name).type) for name in BY)
