"""Takes neighbouring files through a whole run, and holds all that is published of them against what is stated."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import exp
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.arrays import Flags, Floats
from sfumato.frame.records import Microdata
from sfumato.live.charged import open_charged
from sfumato.plan import Plan
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.release import load
from sfumato.running import run
from sfumato.statistics.cube.section import COUNT, WEIGHTED
from tests.audit.blocks import BLOCK, REST, Block
from tests.audit.events import Draws, Loss, largest_loss

ABSENT, EMPTY = -2.0e15, -1.0e15
"""Stand for a row that is not there, and for a number that is not told."""
VALUE = "value"


@dataclass(frozen=True, kw_only=True)
class Question:
    """A live question about jobs, asked after the release was published."""

    by: tuple[str, ...]
    epsilon: Fraction
    method: str = "smooth-pareto"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A pair of neighbours and a release of them.

    What the release states is read from its plan. The loss may be `steps` times that: as many steps lead from one of
    the two to the other, each one unit of what the guarantee protects.
    """

    name: str
    neighbour: str
    """What the two differ by, in words."""
    before: Block
    after: Block
    budget: str
    tables: str
    """The tables and cubes of the release file."""
    steps: int = 1
    settings: str = ""
    """Further lines of the section [release]."""
    questions: tuple[Question, ...] = ()
    only: frozenset[str] = frozenset()
    """The columns to look at; all when empty."""
    averages: int = 1
    """How many average weights the changed record of a weighted cube has."""
    quick: bool = True
    """Whether it is audited in every round of tests; the full audit has all."""
    untold: frozenset[str] = frozenset()
    """The tables whose values are known to be the same for all blocks; any other such table fails the audit."""
    runs: int = 1
    """How many ledgers publish the same data. More than one reveals more than one states: the audit has to see it."""

    def release(self) -> str:
        """The release file."""
        head = f'[release]\ntitle = "{self.name}"\nperiod = "2025"\nbudget = {{ {self.budget} }}\n{self.settings}\n'
        return f"{head}\n{self.before.data}\n{self.tables}"


@dataclass(frozen=True, kw_only=True)
class Stated:
    """What a release promises for one step."""

    epsilon: Fraction
    delta: Fraction

    def after(self, steps: int) -> tuple[float, float]:
        """ε and δ of so many steps: δ is multiplied by e^ε at each further one."""
        one = float(self.epsilon)
        return steps * one, float(self.delta) * sum(exp(step * one) for step in range(steps))


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What the audit of a case found."""

    case: Case
    stated: Stated
    columns: tuple[str, ...]
    """All numbers published of a block."""
    loss: Loss
    changed: tuple[str, ...]
    """What differs between the neighbouring bundles beside noisy numbers: nothing may."""
    untold: tuple[str, ...]
    """The tables whose values are the same for all blocks, as if all were withheld: nothing is audited there."""

    @property
    def allowed(self) -> float:
        """The loss that the statement admits."""
        return self.stated.after(self.case.steps)[0]

    @property
    def holds(self) -> bool:
        """Whether nothing was found that the statement excludes."""
        return self.loss.lower <= self.allowed and not self.changed and set(self.untold) <= self.case.untold

    def __str__(self) -> str:
        found = f"{self.loss.lower:.3f} (estimate {self.loss.estimate:.3f}) by {self.loss.event}"
        changed = f"; neighbours differ in {', '.join(self.changed)}" if self.changed else ""
        untold = f"; all values are the same in {', '.join(self.untold)}" if self.untold else ""
        stated = f"stated {self.allowed:.4g}, lower bound {found}, {self.loss.draws:,} draws"
        return f"{self.case.name}: {stated}{changed}{untold}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Published:
    """All that one file gave: numbers by block, what should not depend on the data, and what was promised."""

    columns: Mapping[str, Floats]
    fixed: Mapping[str, object]
    stated: Stated


def audit(case: Case, draws: int) -> Finding:
    """Publish two neighbouring files with so many blocks of either kind in both together, and look for a loss."""
    is_after = np.arange(draws) % 2 == 1
    neighbour = is_after.copy()
    neighbour[0] = True
    one, other = (_published(case, flags) for flags in (is_after, neighbour))
    if one.stated != other.stated:
        raise AssertionError(f"{case.name}: neighbours state {one.stated} and {other.stated}")
    told = {
        side: {name: np.concatenate([one.columns[name][flags], other.columns[name][there]]) for name in one.columns}
        for side, flags, there in (("before", ~is_after, ~neighbour), ("after", is_after, neighbour))
    }
    delta = one.stated.after(case.steps)[1]
    return Finding(
        case=case,
        stated=one.stated,
        columns=tuple(one.columns),
        loss=largest_loss(Draws(before=told["before"], after=told["after"]), delta=delta),
        changed=tuple(name for name, fixed in one.fixed.items() if other.fixed.get(name) != fixed),
        untold=_untold({name: np.concatenate([told[side][name] for side in told]) for name in one.columns}),
    )


def _untold(columns: Mapping[str, Floats]) -> tuple[str, ...]:
    """The tables without a value that varies; all numbers of a cube are values."""
    varies: dict[str, dict[str, bool]] = {}
    for name, column in columns.items():
        table, number = name.split(": ")
        varies.setdefault(table, {})[number] = bool(np.ptp(column))
    values = {
        table: [of[number] for number in of if number.split(" ")[-1] == VALUE] or [*of.values()]
        for table, of in varies.items()
    }
    return tuple(table for table, of in values.items() if not any(of))


def _published(case: Case, is_after: Flags) -> Published:
    """Publish one file as often as the case says, each time with a new ledger, and read what came out."""
    columns: dict[str, Floats] = {}
    for number in range(case.runs):
        with TemporaryDirectory() as name:
            folder = Path(name)
            case.before.write(folder, case.after, is_after)
            (folder / "release.toml").write_text(case.release(), encoding="utf-8")
            done = run(load(folder / "release.toml"))
            tables = list(_tables(done.bundle))
            epsilon = Fraction(0)
            if case.questions:
                asked, epsilon = _asked(folder, case.questions)
                tables += asked
            for table, dimensions, found in tables:
                columns |= {
                    f"{table}{f' ({number + 1})' if number else ''}: {column}": values
                    for column, values in _by_block(found, dimensions, len(is_after), case.only)
                }
            stated = _stated(done.plan, epsilon, case)
            fixed = _fixed(done.bundle, tables)
    return Published(columns=columns, fixed=fixed, stated=stated)


Table = tuple[str, tuple[str, ...], pa.Table]
"""The name of a table, its dimensions, and its rows."""


def _tables(bundle: Path) -> Iterator[Table]:
    """All tables and cubes of a bundle; the parts of a table are one."""
    structure = json.loads((bundle / "structure.json").read_text(encoding="utf-8"))
    for kind in ("tables", "cubes"):
        for described in structure.get(kind, []):
            path = bundle / kind / f"{described['name']}.parquet"
            files = [path] if path.is_file() else sorted(path.with_suffix("").glob("*.parquet"))
            rows = pa.concat_tables([pq.read_table(file).unify_dictionaries() for file in files])
            yield described["name"], tuple(d["name"] for d in described["dimensions"]), rows


def _asked(folder: Path, questions: Iterable[Question]) -> tuple[list[Table], Fraction]:
    """The answers to live questions, and what all together cost."""
    tables, cost = [], Fraction(0)
    with open_charged(load(folder / "release.toml")) as live:
        for number, question in enumerate(questions):
            statistic = live.plan(by=question.by, epsilon=question.epsilon, method=question.method)
            price = live.price(statistic)
            assert price.epsilon is not None
            cost += 0 if price.answered else price.epsilon
            tables.append((f"live {number + 1}", question.by, live.answer(statistic)))
    return tables, cost


def _by_block(
    table: pa.Table, dimensions: tuple[str, ...], blocks: int, only: frozenset[str]
) -> Iterator[tuple[str, Floats]]:
    """Every number of a table as one value for each block, for each combination of the other dimensions."""
    codes, at = _codes(table[BLOCK])
    places = np.array([-1 if code == REST else int(code[1:]) for code in codes])[at]
    names, key = [""], np.zeros(len(table), dtype=np.intp)
    for dimension in (name for name in dimensions if name != BLOCK):
        codes, at = _codes(table[dimension])
        names, key = [f"{name}{code} " for name in names for code in codes], key * len(codes) + at
    numbers = [name for name in table.column_names if name not in dimensions and (not only or name in only)]
    for place, name in enumerate(names):
        rows = np.flatnonzero((key == place) & (places >= 0))
        for number in numbers if len(rows) else ():
            column = np.full(blocks, ABSENT)
            column[places[rows]] = _numbers(table[number])[rows]
            yield f"{name}{number}", column


def _codes(column: pa.ChunkedArray) -> tuple[list[str], NDArray[np.intp]]:
    """The codes of a column in the order of the alphabet, and which of them every row has."""
    coded = (
        column.combine_chunks() if pa.types.is_dictionary(column.type) else column.combine_chunks().dictionary_encode()
    )
    codes = coded.dictionary.to_pylist()
    ranks = np.argsort(np.argsort(codes))
    return sorted(codes), ranks[coded.indices.to_numpy()]


def _numbers(column: pa.ChunkedArray) -> Floats:
    """Numbers as they are, and words as their places in the alphabet."""
    if pa.types.is_dictionary(column.type) or pa.types.is_string(column.type):
        words = column.cast(pa.string()).fill_null("")
        return _codes(words)[1].astype(np.float64)
    found: Floats = column.cast(pa.float64(), safe=False).fill_null(EMPTY).to_numpy()
    return found


_MISSED = re.compile(r" ?\*\*It does not add up to them:.*?\*\*")
"""By how much a cube misses its controls, which follows from noisy numbers."""


def _fixed(bundle: Path, tables: Iterable[Table]) -> dict[str, object]:
    """What should be the same for neighbours: files, statement, structure, codes, columns and rows of every table.

    Which rows of a sparse table are there is by chance: the audit looks at that as at numbers.
    """
    structure = json.loads((bundle / "structure.json").read_text(encoding="utf-8"))
    sparse = {about["name"] for about in structure["tables"] if about.get("sparse")}
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    fixed: dict[str, object] = {
        "the list of files": sorted(manifest["files"]),
        "charged tables": [*manifest["charges"]],
    }
    for path in sorted(bundle.rglob("*")):
        name = str(path.relative_to(bundle))
        if path.suffix in (".json", ".md") or path.parent.name == "codelists":
            if name != "manifest.json":
                fixed[name] = _MISSED.sub("", path.read_text(encoding="utf-8"))
        elif path.suffix == ".parquet":
            fixed[f"{name}, rows"] = path.stem in sparse or pq.read_metadata(path).num_rows
            fixed[f"{name}, metadata"] = _metadata(path)
    for name, dimensions, table in tables:
        fixed[f"{name}, columns"] = [(field.name, str(field.type)) for field in table.schema]
        fixed[f"{name}, codes"] = name in sparse or table.select(dimensions)
    return fixed


def _metadata(path: Path) -> object:
    """What a cube tells of its noise; how well it was calibrated follows from noisy numbers."""
    found: dict[str, Any] = json.loads((pq.read_schema(path).metadata or {}).get(b"sfumato", b"{}"))
    found.get("figures", {}).pop("calibration", None)
    return found


def _stated(plan: Plan, live: Fraction, case: Case) -> Stated:
    """What the plan promises, with live questions, and what the statement excepts for further columns of cubes.

    Weighted counts and totals of measures are outside the guarantee of a cube that is not strict: the statement says
    that each such column costs a record of average size as much again, and one of k averages k times as much.
    """
    total = plan.guarantee
    assert isinstance(total, EmployerEmployee)
    epsilon, delta = total.epsilon + live, total.delta
    weighted = isinstance(plan.release.data, Microdata) and plan.release.data.records.weight is not None
    for cube in plan.cubes:
        excepted = [WEIGHTED] * weighted + list(cube.section.measures)
        further = 0 if cube.method.strict or case.only == {COUNT} else case.averages * len(excepted)
        epsilon += further * (cube.guarantee.epsilon - cube.method.cost_of_dropping)
        delta += further * cube.guarantee.delta
    return Stated(epsilon=epsilon, delta=delta)
