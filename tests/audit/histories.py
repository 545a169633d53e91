"""Panels for the joint audit: blocks with job histories, and releases of indicators and moves of them."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sfumato.arrays import Flags
from tests.audit.blocks import BLOCK, CAP, block_codes, write_codes, write_rows
from tests.audit.harness import Case

QUARTERS = ("2024-Q1", "2024-Q2", "2024-Q3", "2024-Q4", "2025-Q1", "2025-Q2")
FULL, HIRED, RECALLED, LEFT = "111111", "000011", "101011", "111110"
STRONG = 'alpha = 0.1, epsilon = 40, totals = ["pay"]'
PEOPLE = 'epsilon = 40, definition = "individuals"'
ONE = 'where = { quarter = ["2025-Q1"] }'
"""The quarter in which all indicators can be known."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """A job: who held it where, in which quarters, and what it paid in each."""

    worker: int
    firm: int = 0
    quarters: str = FULL
    pay: int = 100
    woman: bool = True
    side: str = "a"
    """Of the firm, the same in all its jobs."""


@dataclass(frozen=True, kw_only=True)
class Histories:
    """A block with the histories of its workers; the block is public of workplaces, or an attribute of workers."""

    held: tuple[Held, ...]
    of_workers: bool = False
    empty: int = 0
    """How many firms without any job there are beside."""

    @property
    def data(self) -> str:
        """Three tables, and the panel."""
        public = '["side"]' if self.of_workers else '["block", "side"]'
        return (
            '[data]\njobs = { path = "jobs.parquet", worker = "worker", period = "quarter", earnings = "pay", '
            f'first = "{QUARTERS[0]}", last = "{QUARTERS[-1]}" }}\n'
            'workplaces = { path = "workplaces.parquet", key = "workplace" }\n'
            'workers = { path = "workers.parquet", key = "worker" }\n'
            f'public = {public}\n\n[data.attributes]\nblock = {{ codelist = "blocks.csv" }}\n'
            'side = { codes = ["a", "b"] }\nsex = { codes = ["F", "M"] }\n\n'
            f'[data.measures]\npay = {{ unit = "dollars", cap = {CAP} }}\n'
        )

    def write(self, folder: Path, other: "Histories", is_other: Flags) -> None:
        """Write workplaces, workers and the rows of jobs by quarter."""
        write_codes(folder, len(is_other))
        rest = Histories(held=tuple(Held(worker=number) for number in range(3)))
        blocks = [(self, np.flatnonzero(~is_other)), (other, np.flatnonzero(is_other)), (rest, [len(is_other)])]
        of_block = 1 + max(held.worker for like, _ in blocks for held in like.held)
        firms = 1 + max(held.firm + like.empty for like, _ in blocks for held in like.held or (Held(worker=0),))
        jobs, workers, workplaces = [], [], []
        for like, places in blocks:
            at = np.asarray(places)
            for held in like.held:
                for quarter, bit in zip(QUARTERS, held.quarters, strict=True):
                    if bit == "1":
                        jobs.append((at * of_block + held.worker, at * firms + held.firm, quarter, held.pay))
            people = {held.worker: "F" if held.woman else "M" for held in like.held}
            workers += [(at * of_block + number, sex, at) for number, sex in people.items()]
            here = {held.firm: held.side for held in like.held}
            here |= {len(here) + number: "a" for number in range(like.empty)}
            workplaces += [(at * firms + number, side, at) for number, side in here.items()]
        codes = block_codes(len(is_other))
        write_rows(
            folder / "jobs.parquet",
            {
                "worker": np.concatenate([row[0] for row in jobs]),
                "workplace": np.concatenate([row[1] for row in jobs]),
                "quarter": np.concatenate([np.repeat(row[2], len(row[0])) for row in jobs]),
                "pay": np.concatenate([np.repeat(row[3], len(row[0])) for row in jobs]),
            },
        )
        for name, key, attribute, rows in (
            ("workers", "worker", "sex", workers),
            ("workplaces", "workplace", "side", workplaces),
        ):
            columns = {
                key: np.concatenate([row[0] for row in rows]),
                attribute: np.concatenate([np.repeat(row[1], len(row[0])) for row in rows]),
            }
            if (name == "workers") == self.of_workers:
                columns[BLOCK] = codes[np.concatenate([row[2] for row in rows])]
            write_rows(folder / f"{name}.parquet", columns)


def jobs(number: int, *others: Held) -> Histories:
    """So many jobs of one firm, held through all quarters, and others."""
    return Histories(held=(*(Held(worker=place, woman=place % 2 == 0) for place in range(number)), *others))


def table(statistic: str, by: str, protect: str, more: str = "") -> str:
    """A table of a release file; attributes of `by` are words."""
    listed = ", ".join(f'"{attribute}"' for attribute in by.split())
    return f'[[table]]\nname = "panel"\n{statistic}\nby = [{listed}]\n{more}\nprotect = {{ {protect} }}\n\n'


def indicators(epsilon: str, more: str = ONE, by: str = "block quarter", asked: str = '"all"') -> str:
    """A table of indicators."""
    return table(f"indicators = {asked}", by, f'method = "smooth-pareto", epsilon = {epsilon}', more)


def moves(epsilon: str, more: str = "", by: str = "quarter block") -> str:
    """A table of moves between the sides of a river, by the block of the worker."""
    return table('flow = { attribute = "side" }', by, f'method = "laplace", epsilon = {epsilon}', more)


_MOVED = (
    Held(worker=0, firm=0, quarters="110000", pay=10),
    Held(worker=0, firm=1, quarters="011111", pay=10),
)
"""A worker who moves from one firm of a side to another in the second quarter."""
_OTHER = Held(worker=0, firm=2, quarters="110000", pay=50, side="b")
"""A further job of the same worker, from which the main move is then."""
_MOVES = tuple(
    Held(worker=0, firm=firm, quarters=quarters, pay=10)
    for firm, quarters in enumerate(("110000", "011100", "000110", "000011"))
)
"""A worker who moves in the second, fourth and fifth quarter."""
_BOTH = {
    "before": Histories(held=(*_MOVED, Held(worker=1, firm=2, side="b")), of_workers=True),
    "after": Histories(held=(*_MOVED, _OTHER, Held(worker=1, firm=2, side="b")), of_workers=True),
    "neighbour": "one job more, which replaces a move",
    "budget": PEOPLE,
}
_SECOND = 'where = { quarter = ["2024-Q2"] }'

OF_HISTORIES = (
    Case(
        name="indicators, one job more, hired",
        before=jobs(3),
        after=jobs(3, Held(worker=3, quarters=HIRED, pay=CAP)),
        neighbour="one job more, which pays the cap",
        budget=STRONG,
        tables=indicators("4"),
    ),
    Case(
        name="indicators, a tenth more, all hired",
        before=Histories(held=tuple(Held(worker=number, pay=CAP) for number in range(20))),
        after=Histories(
            held=tuple(Held(worker=number, pay=CAP, quarters=FULL if number < 20 else HIRED) for number in range(22))
        ),
        neighbour="an establishment with a tenth more workers and pay, all new",
        budget=STRONG,
        tables=indicators("4"),
    ),
    Case(
        name="indicators, one job more that was recalled and left",
        quick=False,
        before=jobs(10),
        after=jobs(10, Held(worker=10, quarters="101010", pay=50 * CAP)),
        neighbour="one job more, which pays fifty times the cap",
        budget=STRONG,
        tables=indicators("4"),
    ),
    Case(
        name="indicators of all quarters, one job more in all of them",
        before=jobs(3),
        after=jobs(3, Held(worker=3, pay=CAP)),
        neighbour="one job more, held in six quarters",
        budget=STRONG,
        tables=indicators("18", more=""),
    ),
    Case(
        name="indicators of all quarters, one job more in two of them",
        quick=False,
        before=jobs(3),
        after=jobs(3, Held(worker=3, quarters="011000", pay=CAP)),
        neighbour="one job more, held in two quarters",
        budget=STRONG,
        tables=indicators("18", more=""),
    ),
    Case(
        name="indicators by sex, one woman more who left",
        quick=False,
        before=jobs(10),
        after=jobs(10, Held(worker=10, quarters=LEFT, pay=CAP)),
        neighbour="one job more",
        budget=STRONG,
        tables=indicators("6", by="sex block quarter"),
    ),
    Case(
        name="indicators, another kind of job",
        quick=False,
        before=jobs(3, Held(worker=3, quarters=LEFT)),
        after=jobs(3, Held(worker=3, quarters=RECALLED)),
        neighbour="a job with another history",
        steps=2,
        budget=STRONG,
        tables=indicators("3"),
    ),
    Case(
        name="beginning and end alone",
        quick=False,
        before=jobs(3),
        after=jobs(4),
        neighbour="one job more",
        budget=STRONG,
        tables=indicators("1", asked='["beginning", "end"]'),
    ),
    Case(
        name="indicators, establishments not told",
        before=Histories(held=()),
        after=Histories(held=(Held(worker=0, quarters=HIRED, pay=CAP),)),
        neighbour="an establishment that was not there, with one worker",
        budget=STRONG,
        tables=indicators("4", more=f"{ONE}\nestablishments = false", asked='["employment", "new_hires", "payroll"]'),
    ),
    Case(name="moves in one quarter", **_BOTH, tables=moves("1", _SECOND)),
    Case(name="moves in all quarters", quick=False, **_BOTH, tables=moves("3")),
    Case(
        name="moves, a job of two spells",
        before=Histories(held=(*_MOVES, Held(worker=1, firm=4, side="b")), of_workers=True),
        after=Histories(
            held=(*_MOVES, replace(_OTHER, firm=4, quarters="110110"), Held(worker=1, firm=4, side="b")),
            of_workers=True,
        ),
        neighbour="one job more, which replaces a move in three quarters",
        budget=PEOPLE,
        tables=moves("3"),
    ),
    Case(name="moves of all quarters together", quick=False, **_BOTH, tables=moves("3", by="block")),
)
