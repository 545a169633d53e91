"""Data made of many small blocks that have nothing in common: what is published of each is one draw.

A block is a place with its establishments, or a group with its people. Half of the blocks look as before a change of
one unit and half as after it, so that a file and the same file with one block exchanged are neighbours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.arrays import Flags
from sfumato.keys import new_key
from sfumato.statistics.cube.section import COUNT

BLOCK = "block"
CAP = 1000
"""The most that one job counts for in totals of pay."""
REST = "rest"
"""The code of a further block, which is the same in all files and is not looked at."""


class Block(Protocol):
    """The content of one block, and how many of them are written into files."""

    @property
    def data(self) -> str:
        """The sections of a release file that describe the files."""
        ...

    def write(self, folder: Path, other: Any, is_other: Flags) -> None:
        """Write the files: block i is like this one, or like the other one where that is marked."""
        ...


@dataclass(frozen=True, kw_only=True)
class Firm:
    """An establishment and its workers."""

    women: int = 0
    men: int = 0
    side: str = "a"
    pay: int = 10
    """Of each worker, but for those who are paid more."""
    paid_more: int = 0
    """How many workers, the last ones of the women, are paid `more`."""
    more: int = 0


@dataclass(frozen=True, kw_only=True)
class Firms:
    """A place with establishments on two sides of a river: place and side are public."""

    firms: tuple[Firm, ...]
    joined: bool = False
    """Whether every row of the jobs carries the attributes of its workplace and worker."""

    @property
    def data(self) -> str:
        """Three tables, or one."""
        files = (
            'jobs = { path = "jobs.parquet", worker = "worker" }\n'
            if self.joined
            else 'jobs = { path = "jobs.parquet", worker = "worker" }\n'
            'workplaces = { path = "workplaces.parquet", key = "workplace" }\n'
            'workers = { path = "workers.parquet", key = "worker" }\n'
        )
        return (
            f'[data]\n{files}public = ["block", "side"]\n\n[data.attributes]\nblock = {{ codelist = "blocks.csv" }}\n'
            'side = { codes = ["a", "b"] }\nsex = { codes = ["F", "M"] }\n\n'
            f'[data.measures]\npay = {{ unit = "dollars", cap = {CAP} }}\n'
        )

    def write(self, folder: Path, other: "Firms", is_other: Flags) -> None:
        """Write workplaces, workers and jobs, or jobs alone."""
        write_codes(folder, len(is_other))
        rest = Firms(firms=(Firm(women=3, men=2),))
        blocks = [(self, np.flatnonzero(~is_other)), (other, np.flatnonzero(is_other)), (rest, [len(is_other)])]
        firms = [(firm, np.asarray(places)) for like, places in blocks for firm in like.firms]
        place = np.concatenate([places for _, places in firms])
        side = np.repeat([firm.side for firm, _ in firms], [len(places) for _, places in firms])
        women, men = (
            np.repeat([getattr(firm, sex) for firm, _ in firms], [len(places) for _, places in firms])
            for sex in ("women", "men")
        )
        workplace = np.concatenate([np.repeat(np.arange(len(place)), number) for number in (women, men)])
        sex = np.repeat(["F", "M"], [women.sum(), men.sum()])
        of_women = [
            np.tile(np.repeat([firm.pay, firm.more], [firm.women - firm.paid_more, firm.paid_more]), len(places))
            for firm, places in firms
        ]
        of_men = [np.full(firm.men * len(places), firm.pay) for firm, places in firms]
        pay = np.concatenate([*of_women, *of_men]).astype(np.int64)
        worker = np.arange(len(workplace))
        codes = block_codes(len(is_other))
        if self.joined:
            columns = {"workplace": workplace, "worker": worker, "sex": sex, "side": side[workplace], "pay": pay}
            write_rows(folder / "jobs.parquet", columns | {BLOCK: codes[place[workplace]]})
            return
        write_rows(
            folder / "workplaces.parquet", {"workplace": np.arange(len(place)), BLOCK: codes[place], "side": side}
        )
        write_rows(folder / "workers.parquet", {"worker": worker, "sex": sex})
        write_rows(folder / "jobs.parquet", {"workplace": workplace, "worker": worker, "pay": pay})


QUARTERS = ("2025-Q1", "2025-Q2", "2025-Q3", "2025-Q4")


@dataclass(frozen=True, kw_only=True)
class Held:
    """Jobs that are alike, each held by another worker: in some quarters, with the same pay in each."""

    jobs: int = 1
    quarters: tuple[int, ...] = (1, 2, 3, 4)
    sex: str = "F"
    pay: int = 10


@dataclass(frozen=True, kw_only=True)
class Histories:
    """A place with one establishment whose jobs are held over quarters: a panel."""

    held: tuple[Held, ...]
    population: str = "beginning"

    @property
    def data(self) -> str:
        """Three tables, the jobs with their quarters."""
        return (
            f'[data]\njobs = {{ path = "jobs.parquet", worker = "worker", period = "quarter", first = "{QUARTERS[0]}", '
            f'last = "{QUARTERS[-1]}", earnings = "pay", population = "{self.population}" }}\n'
            'workplaces = { path = "workplaces.parquet", key = "workplace" }\n'
            'workers = { path = "workers.parquet", key = "worker" }\npublic = ["block"]\n\n'
            '[data.attributes]\nblock = { codelist = "blocks.csv" }\nsex = { codes = ["F", "M"] }\n\n'
            f'[data.measures]\npay = {{ unit = "dollars", cap = {CAP} }}\n'
        )

    def write(self, folder: Path, other: "Histories", is_other: Flags) -> None:
        """Write workplaces, workers and the histories of their jobs."""
        write_codes(folder, len(is_other))
        rest = Histories(held=(Held(jobs=3),))
        blocks = [
            (self, np.flatnonzero(~is_other)),
            (other, np.flatnonzero(is_other)),
            (rest, np.array([len(is_other)])),
        ]
        places = np.arange(len(is_other) + 1)
        write_rows(folder / "workplaces.parquet", {"workplace": places, BLOCK: block_codes(len(is_other))})
        workers, rows, begin = [], [], 0
        for like, some in blocks:
            for held in like.held:
                worker = begin + np.arange(held.jobs * len(some))
                begin += len(worker)
                workers.append((worker, np.full(len(worker), held.sex)))
                workplace = np.repeat(some, held.jobs)
                rows += [
                    (worker, workplace, np.full(len(worker), QUARTERS[q - 1]), np.full(len(worker), held.pay))
                    for q in held.quarters
                ]
        for name, columns, parts in (
            ("workers", ("worker", "sex"), workers),
            ("jobs", ("worker", "workplace", "quarter", "pay"), rows),
        ):
            joined = zip(columns, map(np.concatenate, zip(*parts, strict=True)), strict=True)
            write_rows(folder / f"{name}.parquet", dict(joined))


@dataclass(frozen=True, kw_only=True)
class Record:
    """One record of a person; records of one number are of one person."""

    person: int
    side: str = "a"
    year: str = "1"
    weight: float = 1.0
    pay: int = 10
    rank: int = 0
    firm: int = 0
    """Who employs the person, where groups have firms."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """A group with the records of its people."""

    records: tuple[Record, ...] = ()
    weighted: bool = False
    yearly: bool = False
    """Whether a person has a record in each of several years."""
    firms: bool = False
    """Whether firms are larger units to protect, which needs a key."""

    @property
    def data(self) -> str:
        """One table of records."""
        weight = ', weight = "weight"' if self.weighted else ""
        period = ', period = "year"' if self.yearly else ""
        firms = ', levels = ["firm"]' if self.firms else ""
        return (
            f'[data]\nrecords = {{ path = "records.parquet", unit = "person"{weight}{period}{firms} }}\n\n'
            "[data.attributes]\n"
            'block = { codelist = "blocks.csv" }\nside = { codes = ["a", "b"] }\nyear = { codes = ["1", "2", "3"] }\n\n'
            "[data.measures]\npay = { minimum = 0, maximum = 100 }\nrank = { minimum = 0, maximum = 100 }\n"
        )

    def write(self, folder: Path, other: "Group", is_other: Flags) -> None:
        """Write the records."""
        write_codes(folder, len(is_other))
        sides = [(self, np.flatnonzero(~is_other)), (other, np.flatnonzero(is_other))]
        records = [(record, places) for like, places in sides for record in like.records]
        most = 1 + max((record.person for record, _ in records), default=0)
        if self.firms:
            new_key(folder / "sfumato.key")

        def column(value: Callable[[Record], Any], kind: Any = None) -> NDArray[Any]:
            values = np.array([value(record) for record, _ in records], dtype=kind)
            return np.repeat(values, [len(places) for _, places in records])

        place = np.concatenate([places for _, places in records])
        columns = {
            "person": place * most + column(lambda record: record.person),
            BLOCK: block_codes(len(is_other))[place],
            "side": column(lambda record: record.side),
            "year": column(lambda record: record.year),
            "weight": column(lambda record: record.weight, np.float64),
            "pay": column(lambda record: record.pay),
            "rank": column(lambda record: record.rank),
            "firm": place * most + column(lambda record: record.firm),
        }
        write_rows(folder / "records.parquet", columns)
        _write_public_totals(folder, len(is_other))


FLOOR = 1000
"""Up to which a business is hidden whole in totals of turnover and profit."""


@dataclass(frozen=True, kw_only=True)
class Business:
    """A business of a place, on one of two sides of a river."""

    turnover: int = 0
    profit: int = 0
    side: str = "a"
    weight: float = 1.0
    enterprise: int | None = None
    """Which enterprise it belongs to; one of its own when not given."""


@dataclass(frozen=True, kw_only=True)
class Businesses:
    """A place with its businesses, which everyone knows, as well as the side."""

    records: tuple[Business, ...]
    weighted: bool = False
    enterprises: bool = False
    """Whether values of enterprises are hidden, and not those of single businesses."""

    @property
    def data(self) -> str:
        """One table of records."""
        weight = ', weight = "weight"' if self.weighted else ""
        levels = ', levels = ["enterprise"]' if self.enterprises else ""
        return (
            f'[data]\nrecords = {{ path = "records.parquet", unit = "business"{weight}{levels}, public = true }}\n'
            'public = ["block", "side"]\n\n[data.attributes]\n'
            'block = { codelist = "blocks.csv" }\nside = { codes = ["a", "b"] }\n\n[data.measures]\n'
            f"turnover = {{ floor = {FLOOR} }}\nprofit = {{ minimum = -1e9, floor = {FLOOR} }}\n"
        )

    def write(self, folder: Path, other: "Businesses", is_other: Flags) -> None:
        """Write the records."""
        write_codes(folder, len(is_other))
        most = 2 * max(len(self.records), len(other.records))
        rows = [
            (
                place * most + at,
                place * most + (most - 1 - at if one.enterprise is None else one.enterprise),
                place,
                one,
            )
            for place, flag in enumerate(is_other)
            for at, one in enumerate((other if flag else self).records)
        ]
        numbers = {
            name: np.array([getattr(one, name) for *_, one in rows])
            for name in ("turnover", "profit", "side", "weight")
        }
        places = np.array([place for _, _, place, _ in rows])
        columns = {
            "business": np.array([business for business, *_ in rows]),
            "enterprise": np.array([enterprise for _, enterprise, *_ in rows]),
            BLOCK: block_codes(len(is_other))[places],
        }
        write_rows(folder / "records.parquet", columns | numbers)


def people(number: int, **of_each: Any) -> tuple[Record, ...]:
    """So many people who are alike, numbered from 0."""
    return tuple(Record(person=person, **of_each) for person in range(number))


def block_codes(blocks: int) -> NDArray[np.str_]:
    return np.array([*(f"b{place:06}" for place in range(blocks)), REST])


def write_codes(folder: Path, blocks: int) -> None:
    (folder / "blocks.csv").write_text("\n".join(["code", *block_codes(blocks)]) + "\n", encoding="utf-8")


def _write_public_totals(folder: Path, blocks: int) -> None:
    """Totals that come from elsewhere and are no sums of these records."""
    lines = [f"block,{COUNT}", *(f"{code},5" for code in block_codes(blocks))]
    (folder / "totals.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_rows(path: Path, columns: dict[str, Any]) -> None:
    """Rows in another order than that of blocks: it must play no part."""
    order = np.random.default_rng(1).permutation(len(next(iter(columns.values()))))
    pq.write_table(pa.table({name: column[order] for name, column in columns.items()}), path)
