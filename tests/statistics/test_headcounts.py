"""A register with a headcount for each establishment is, in every figure, the file with one row a job."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from sfumato.checking import Checked, check, checked
from sfumato.cli import app
from sfumato.errors import DataError, SfumatoError
from sfumato.frame.data import Frame
from sfumato.live import open_charged
from sfumato.noise.randomness import Seeded
from sfumato.release import load
from sfumato.running import run
from sfumato.statistic import Statistic
from tests.conftest import need_java
from tests.golden.cases import (
    BY_WORKERS,
    DRAWN,
    FORMAL,
    INDIVIDUALS,
    KEY,
    KEYED_COUNTS,
    OF_INDIVIDUALS,
    SILENT,
    SPARSE,
    STRONG,
    WEAK,
    jobs,
)
from tests.golden.data import write_key

SEXES, AGES = ("F", "M"), ("1", "2", "3")
GROUPS = tuple(product(SEXES, AGES))
HEADS = {sex: ", ".join(f'{age} = "{sex}.{age}"' for age in AGES) for sex in SEXES}
EMPLOYEES = ", ".join(f"{sex} = {{ {columns} }}" for sex, columns in HEADS.items())
REGISTER = f'jobs = {{ path = "register.parquet", workplace = "estab", employees = {{ {EMPLOYEES} }} }}\n'
EXPANDED = 'jobs = { path = "jobs.parquet", workplace = "estab" }\n'
EXPANDED += 'workplaces = { path = "register.parquet", key = "estab" }\n'


@dataclass(frozen=True)
class Establishment:
    """An establishment with its workers by sex and age."""

    place: str
    industry: str
    owner: str
    workers: tuple[int, ...]


def written(folder: Path, establishments: list[Establishment]) -> None:
    """A register, and the same jobs one by one."""
    keys = [f"e{number}" for number in range(len(establishments))]
    heads = {f"{s}.{a}": [e.workers[at] for e in establishments] for at, (s, a) in enumerate(GROUPS)}
    public = {name: [getattr(e, name) for e in establishments] for name in ("place", "industry", "owner")}
    pq.write_table(pa.table({"estab": keys, **public, **heads}), folder / "register.parquet")
    rows = [
        (key, *group)
        for key, e in zip(keys, establishments, strict=True)
        for group, number in zip(GROUPS, e.workers, strict=True)
        for _ in range(number)
    ]
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    expanded = {n: pa.array(list(c), pa.string()) for n, c in zip(("estab", "sex", "age"), columns, strict=True)}
    pq.write_table(pa.table(expanded), folder / "jobs.parquet")


def release(folder: Path, name: str, about: str, tables: str, *, frame: str, engine: str = "duckdb") -> Path:
    """A release file of the golden tables; the register knows nothing of tenure."""
    kept = "\n".join(line for line in tables.replace("\\\n", "").splitlines() if "tenure" not in line)
    text = jobs(about, kept, frame=frame + f'engine = "{engine}"\n').text
    text = "\n".join(line for line in text.splitlines() if not line.startswith("tenure"))
    text = text.replace("[data]", f'ledger = "{name}.sqlite"\nbundle = "{name}_bundle"\n\n[data]', 1)
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


@contextmanager
def both(
    folder: Path, about: str, tables: str, engine: str = "duckdb", *, register: str = REGISTER
) -> Iterator[tuple[Checked, Checked]]:
    """The register and the expanded file, checked."""
    write_key(folder)
    with ExitStack() as stack:
        frames = {"register": register, "expanded": EXPANDED}
        paths = [release(folder, name, about, tables, frame=frame, engine=engine) for name, frame in frames.items()]
        of_register, of_jobs = (stack.enter_context(checked(load(path))) for path in paths)
        yield of_register, of_jobs


def true_figures(counted: Any) -> Any:
    """The columns of all cells, or those of workforces, whose rows come in any order."""
    columns = {name: values for name, values in vars(counted).items() if name != "columns"}
    columns |= getattr(counted, "columns", {})
    lists = {name: getattr(values, "tolist", lambda values=values: values)() for name, values in columns.items()}
    if "inside" not in lists:
        return lists
    rows = [lists.pop(name) for name in ("block", "inside", "unit", "size", "jobs")]
    return lists, sorted(zip(*rows, strict=True))


def published(one: Statistic, counted: Any, ready: Checked) -> bytes:
    """What is published of a statistic when chance is the same."""
    keyed = one.key != ""
    answer = one.answer(counted, ready.plan.secret) if keyed else one.method.protect(counted, Seeded(7))
    return bytes(one.content(answer).to_pybytes())


def assert_equal(register: Checked, expanded: Checked) -> None:
    assert register.totals == expanded.totals
    assert register.plan.guarantee == expanded.plan.guarantee
    of_register, of_jobs = (
        ready.count({one.name: one for one in ready.plan.statistics}) for ready in (register, expanded)
    )
    for one, other in zip(register.plan.statistics, expanded.plan.statistics, strict=True):
        assert (one.name, one.guarantee, one.method) == (other.name, other.guarantee, other.method)
        assert true_figures(of_register[one.name]) == true_figures(of_jobs[one.name]), one.name
        drawn = published(one, of_register[one.name], register)
        assert drawn == published(other, of_jobs[one.name], expanded), one.name


GOLDEN = {
    "keyed": (KEY, "\n".join(line for line in KEYED_COUNTS.splitlines() if "graph" not in line)),
    "strong": (STRONG, FORMAL),
    "silent": (STRONG, SILENT),
    "weak": (WEAK, BY_WORKERS),
    "sparse": (WEAK, SPARSE),
    "drawn": (KEY, DRAWN),
    "individuals": (INDIVIDUALS, OF_INDIVIDUALS),
}
"""Every method and option of counts of jobs."""
SIZES = st.one_of(st.integers(0, 3), st.integers(0, 60), st.sampled_from([0, 0, 0, 1, 1, 900]))
ESTABLISHMENTS = st.builds(
    Establishment,
    place=st.sampled_from("ABC"),
    industry=st.sampled_from(["11", "62", "81"]),
    owner=st.sampled_from(["public", "private"]),
    workers=st.one_of(st.just((0,) * len(GROUPS)), st.tuples(*[SIZES] * len(GROUPS))),
)
SOME = [
    Establishment("A", "62", "public", (2, 0, 1, 0, 0, 40)),
    Establishment("A", "62", "private", (0, 0, 0, 0, 0, 0)),
    Establishment("B", "11", "private", (0, 0, 0, 1, 0, 0)),
    Establishment("C", "81", "private", (0, 3000, 0, 12, 0, 7)),
]


@pytest.mark.parametrize("kind", [*GOLDEN])
def test_every_method_publishes_the_same_of_a_register(tmp_path: Path, kind: str) -> None:
    written(tmp_path, SOME)
    with both(tmp_path, *GOLDEN[kind]) as (register, expanded):
        assert_equal(register, expanded)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["keyed", "strong", "weak"])
def test_workplaces_that_only_another_file_lists_have_no_jobs(tmp_path: Path, kind: str) -> None:
    written(tmp_path, SOME)
    listed = pq.read_table(tmp_path / "register.parquet")
    counted = listed.filter(pa.array([any(e.workers) for e in SOME])).select(["estab", *map(".".join, GROUPS)])
    pq.write_table(counted, tmp_path / "counted.parquet")
    beside = REGISTER.replace("register.parquet", "counted.parquet") + EXPANDED.splitlines()[1] + "\n"
    with both(tmp_path, *GOLDEN[kind], register=beside) as (register, expanded):
        assert_equal(register, expanded)


@pytest.mark.slow
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(establishments=st.lists(ESTABLISHMENTS, min_size=1, max_size=12), kind=st.sampled_from([*GOLDEN]))
def test_any_register_is_the_file_of_its_jobs(
    tmp_path_factory: pytest.TempPathFactory, establishments: list[Establishment], kind: str
) -> None:
    folder = tmp_path_factory.mktemp("register")
    written(folder, [*establishments, Establishment("A", "62", "public", (2, 0, 0, 0, 0, 0))])  # not one job each
    with both(folder, *GOLDEN[kind]) as (register, expanded):
        assert_equal(register, expanded)


PLAIN = """[release]
title = "Register"
period = "2025"
budget = { definition = "DEFINITION", alpha = 0.1, epsilon = 40 }
key = "sfumato.key"

[data]
jobs = { path = "FILE", workplace = "Betriebs-Nr.", employees = "Beschäftigte" }
public = ["place", "industry"]
engine = "ENGINE"

[data.attributes]
place = { column = "Kreis (AGS)", digits = 2 }
industry = { recode = { goods = ["C"], services = ["*"] }, codes = { goods = "Goods", services = "Services" } }

[live]
budget = 5

[[table]]
name = "jobs"
count = "jobs"
by = ["place", "industry"]
protect = { epsilon = 4 }

[[table]]
name = "in_parts"
count = "jobs"
by = ["place"]
where = { industry = "goods" }
parts = 2
protect = { epsilon = 4 }
"""
ROWS = "Betriebs-Nr.;Kreis (AGS);industry;Beschäftigte\n007;01053;C;3\n7;01053;G;0\n8;02000;A;12\n9;02001;C;1\n"


def plain(folder: Path, rows: str = ROWS, *, engine: str = "duckdb", definition: str = "strong") -> Path:
    """A register in a text file, with one column of workers."""
    (folder / "register.csv").write_text(rows, encoding="latin-1")
    write_key(folder)
    path = folder / "release.toml"
    text = PLAIN.replace("FILE", "register.csv").replace("ENGINE", engine).replace("DEFINITION", definition)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.slow
def test_a_register_in_a_text_file_is_published(tmp_path: Path, engine: str) -> None:
    path = plain(tmp_path, engine=engine)
    with checked(load(path)) as ready:
        counted = ready.count({one.name: one for one in ready.plan.statistics})
        assert (ready.totals.jobs, ready.totals.establishments, ready.totals.empty_establishments) == (16, 4, 1)
    assert counted["jobs"]["count"].tolist() == [3, 0, 1, 12]
    assert counted["jobs"]["largest"].tolist() == [3, 0, 1, 12]
    assert counted["jobs"]["establishments"].tolist() == [1, 1, 1, 1]
    run(load(path))
    described = json.loads((tmp_path / "bundle" / "structure.json").read_text(encoding="utf-8"))
    made = {one["name"]: one.get("made_of") for one in described["tables"][0]["dimensions"]}
    assert made == {
        "place": "the first 2 characters of the codes in column 'Kreis (AGS)'",
        "industry": "the codes in column 'industry' put together: goods of C; services of all others",
    }
    assert made["industry"] in (tmp_path / "bundle" / "statement.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_all_commands_take_a_register(tmp_path: Path) -> None:
    path = str(plain(tmp_path))
    for words in (
        ["check", path, "--sizes", "3,12"],
        ["run", path],
        ["assess", path],
        ["tune", path, "--table", "jobs", "--accuracy", "mean error below 20 jobs in cells of at most 50 jobs"],
    ):
        result = CliRunner().invoke(app, [*words, "--json"])
        assert result.exit_code == 0, (words, result.output)
    with open_charged(load(Path(path))) as session:
        asked = session.plan(by=("industry",), where={"place": ("01",)}, epsilon=Fraction(2))
        assert session.answer(asked)["establishments"].to_pylist() == [1, 1]


BAD = {
    "no number": ("8;02000;A;", "1 empty"),
    "a negative number": ("8;02000;A;-2", "1 below 0"),
    "half a worker": ("8;02000;A;1.5", "1 no whole numbers"),
    "more than there are": ("8;02000;A;9999999999", "1 above 2,147,483,648"),
    "an establishment twice": ("9;02000;A;3", "1 rows that repeat the establishment"),
    "no name": (";02000;A;3", "1 rows without one"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_register_is_refused_before_anything_is_charged(tmp_path: Path, case: str) -> None:
    row, found = BAD[case]
    path = plain(tmp_path, ROWS.replace("8;02000;A;12", row))
    with pytest.raises(DataError) as error:
        run(load(path))
    assert found in error.value.found
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_size_class_made_of_the_number_of_workers_is_not_public(tmp_path: Path) -> None:
    """One worker more could move an establishment to another class, which public attributes never do."""
    path = plain(tmp_path)
    text = path.read_text(encoding="utf-8")
    size = 'size = { column = "Beschäftigte", classes = { small = 0, large = 10 } }'
    text = text.replace('"industry"]\nengine', '"industry", "size"]\nengine').replace("\n[live]", f"{size}\n\n[live]")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SfumatoError, match="made of the number of workers, which is what is protected"):
        load(path)


@pytest.mark.slow
@pytest.mark.parametrize("written", ["whole path", "link", "hard link", "way round", "pattern"])
def test_the_register_is_known_however_its_path_is_written(tmp_path: Path, written: str) -> None:
    path = plain(tmp_path)
    text = path.read_text(encoding="utf-8")
    register = next(tmp_path.glob("*.csv"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.csv").symlink_to(register)
    (tmp_path / "folder" / "hard.csv").hardlink_to(register)
    other = {
        "whole path": str(register),
        "link": "link.csv",
        "hard link": "folder/hard.csv",
        "way round": f"folder/../{register.name}",
        "pattern": f"{register.stem[:-1]}*.csv",
    }[written]
    source = re.search(r"jobs = \{ (.*?) \}", text)
    assert source is not None
    rest = re.sub(r"path = \"[^\"]*\"|workplace = (\"[^\"]*\")|employees = \"[^\"]*\"", "", source[1]).strip(" ,")
    key = re.search(r"workplace = (\"[^\"]*\")", source[1])
    assert key is not None
    units = f'workplaces = {{ path = "{other}", key = {key[1]}{", " + rest if rest else ""} }}\n'
    size = 'size = { column = "Beschäftigte", classes = { small = 0, large = 10 } }'
    text = text.replace('"industry"]\nengine', '"industry", "size"]\nengine').replace("\n[live]", f"{size}\n\n[live]")
    path.write_text(text.replace("[data]\n", f"[data]\n{units}"), encoding="utf-8")
    with pytest.raises(DataError, match="made of the number of workers, in the file of the register"):
        check(load(path))


IN_A_DATABASE = """
[release]
title = "Jobs"
period = "2026"
budget = { alpha = 0.1, epsilon = 10 }
ledger = "ledger.sqlite"
bundle = "bundle"

[data]
jobs = { path = "register.sqlite", JOBS, workplace = "id", employees = "n" }
workplaces = { path = "UNITS", key = "id" }
public = ["size"]

[data.attributes]
size = { SIZE }

[[table]]
name = "jobs"
count = "jobs"
by = ["size"]
protect = { epsilon = 2 }
"""
ASKED = {
    "workplaces are a query": ('table = "r"', 'register.sqlite", query = "SELECT id, n AS heads FROM r'),
    "the register is a query": ('query = "SELECT id, heads AS n FROM other"', 'register.sqlite", table = "other'),
}


@pytest.mark.parametrize("case", ASKED)
def test_classes_of_what_a_query_to_the_register_answers_are_not_public_as_they_may_be_of_workers(
    tmp_path: Path, case: str
) -> None:
    with closing(sqlite3.connect(tmp_path / "register.sqlite")) as database, database:
        database.execute("CREATE TABLE r AS SELECT 1 AS id, 5 AS n, 'small' AS size UNION ALL SELECT 2, 12, 'large'")
        database.execute("CREATE TABLE other AS SELECT id, n AS heads, 1990 + id AS founded, size FROM r")
    path, (jobs_of, units) = tmp_path / "release.toml", ASKED[case]
    told = IN_A_DATABASE.replace("JOBS", jobs_of).replace("UNITS", units)
    path.write_text(told.replace("SIZE", 'column = "heads", classes = { small = 0, large = 10 }'))
    with pytest.raises(DataError, match="with classes of what a query answers"):
        run(load(path))
    assert not (tmp_path / "ledger.sqlite").exists()
    both = IN_A_DATABASE.replace("JOBS", 'table = "r"').replace("UNITS", 'register.sqlite", table = "other')
    path.write_text(both.replace("SIZE", 'column = "founded", classes = { old = 0, new = 1992 }'))
    check(load(path))
    path.write_text(told.replace("n AS heads", "size").replace("SIZE", 'codes = ["small", "large"]'))
    check(load(path))


def described(**changes: Any) -> Frame:
    employees = {"F": "f", "M": "m"}
    data: dict[str, Any] = {
        "jobs": {"path": "register.parquet", "employees": employees},
        "public": ["place"],
        "attributes": {"place": {}, "sex": {"codes": ["F", "M"]}},
    }
    return Frame(**(data | changes))


REFUSED = {
    "workers": ({"workers": {"path": "workers.parquet", "key": "worker"}}, "leave out workers and measures"),
    "measures": ({"measures": {"pay": {}}}, "leave out workers and measures"),
    "no attribute": ({"attributes": {"place": {}}}, "describe one that has F, M"),
    "two that fit": (
        {"attributes": {name: {"codes": ["F", "M"]} for name in ("sex", "gender")}},
        "no other one that has them too",
    ),
    "another attribute of workers": (
        {"attributes": {"sex": {"codes": ["F", "M"]}, "age": {"codes": ["1"]}}},
        "'age' describes workers",
    ),
    "a made attribute": ({"attributes": {"sex": {"recode": {"F": "1", "M": "2"}}}}, "made by `employees`"),
    "the key": ({"jobs": {"path": "r", "workplace": "id", "employees": "id"}}, "they are two columns"),
    "endless digits": ({"attributes": {"place": {"digits": 10**20}}}, "less than or equal to 1000"),
    "a column twice": ({"jobs": {"path": "r", "employees": {"F": "n", "M": "n"}}}, "name each column once"),
    "a worker": ({"jobs": {"path": "r", "employees": "n", "worker": "w"}}, "leave out `worker`"),
    "no column": ({"jobs": {"path": "r", "employees": {}}}, "at least one column"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_description_that_does_not_fit_is_refused(case: str) -> None:
    changes, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        described(**changes)


def test_attributes_of_workers_are_found_by_their_codes() -> None:
    crossed = {"F": {"1": "f1", "2": "f2"}, "M": {"1": "m1"}}
    frame = described(
        jobs={"path": "r", "employees": crossed},
        attributes={"place": {}, "age": {"codes": ["1", "2", "3"]}, "sex": {"codes": ["F", "M", "X"]}},
    )
    assert frame.headcount_attributes() == ("sex", "age")
    assert frame.headcounts() == {("F", "1"): "f1", ("F", "2"): "f2", ("M", "1"): "m1"}


def test_another_sheet_of_the_same_file_is_another_table() -> None:
    jobs = {"path": "register.xlsx", "sheet": "jobs", "employees": {"F": "f", "M": "m"}}
    assert described(jobs=jobs).is_register
    workplaces = {"path": "register.xlsx", "key": "workplace", "sheet": "workplaces"}
    assert not described(jobs=jobs, workplaces=workplaces).is_register


@pytest.mark.slow
def test_an_engine_of_many_machines_counts_registers_alike(tmp_path: Path) -> None:
    need_java()
    written(tmp_path, SOME)
    with both(tmp_path, *GOLDEN["weak"], engine="spark") as (register, expanded):
        tables = {one.name: one for one in register.plan.statistics}
        with register.tabulate_in_chunks(tables) as found, expanded.tabulate_in_chunks(tables) as other:
            for name in tables:
                rows = [sorted(map(repr, chunks[name].found.fetch().to_pylist())) for chunks in (found, other)]
                assert rows[0] == rows[1], name
