"""What every synthetic economy shares: streams of chance, what it refuses, and what it tells once made."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import IntEnum, unique
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from sfumato.errors import DataError, SfumatoError

# Random streams that depend on what they are for, never on when or where they are drawn.


@unique
class Purpose(IntEnum):
    """What a stream is drawn for; a new purpose leaves every other stream as it was."""

    NAMES = 1
    POPULATIONS = 2
    PLACE_ACTIVITY = 3
    INDUSTRY_MIX = 4
    ESTABLISHMENTS = 5
    SIZES = 6
    PLACE_PEOPLE = 7
    WORKFORCES = 8
    LAYOUT = 9
    PEOPLE = 10
    FEDERAL_EMPLOYERS = 11
    FEDERAL_CAREERS = 12
    FEDERAL_PEOPLE = 13
    FEDERAL_HISTORIES = 14
    BUSINESS_DESIGN = 15
    BUSINESS_ESTABLISHMENTS = 16
    BUSINESS_ACCOUNTS = 17
    BUSINESS_REPLICATES = 18
    BUSINESS_STAFF = 19
    REQUIREMENTS_DESIGN = 20
    REQUIREMENTS_ESTABLISHMENTS = 21
    REQUIREMENTS_REPLICATES = 22
    REQUIREMENTS_QUOTES = 23
    OPPORTUNITY_TRACTS = 24
    OPPORTUNITY_CHILDREN = 25
    UNIVERSITY_INSTITUTIONS = 26
    UNIVERSITY_CAREERS = 27
    GRADUATES_CELLS = 28
    GRADUATES_PEOPLE = 29
    RESIDENCES = 30


def stream(seed: int, purpose: Purpose, chunk: int = 0) -> np.random.Generator:
    """The generator of one purpose and chunk, the same whichever thread asks for it first.

    Philox is counter-based: the key alone places the stream, so that chunks need no common state.
    """
    return np.random.Generator(np.random.Philox(key=np.array([seed, purpose << 32 | chunk], dtype=np.uint64)))


# Normal draws spread evenly over the distribution.

_GRID = np.linspace(-6.5, 6.5, 13_001)
_CUMULATIVE = np.array([math.erfc(-z / math.sqrt(2)) / 2 for z in _GRID])


def stratified_normal(count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Ascending standard normal draws, one in each of `count` equally likely intervals.

    Independent draws would let the number of very large establishments or places swing from seed to seed;
    with one draw in each interval the tail is as heavy as it should be, every time.
    """
    return np.interp((np.arange(count) + rng.random(count)) / count, _CUMULATIVE, _GRID)


# What every kind of economy has in common once it is made, and what it refuses before.

SEEDS = (0, 2**64 - 1)
"""The least and the most."""

Progress = Callable[[int, int], None]
"""Is told how many are done, of how many."""


@dataclass(frozen=True, kw_only=True)
class Made:
    """What was generated, and where."""

    folder: Path
    seed: int

    @property
    def names(self) -> tuple[str, ...]:
        """Every file, the release file last."""
        raise NotImplementedError

    @property
    def words(self) -> str:
        """What it holds, in a sentence without its end."""
        raise NotImplementedError

    @property
    def next_step(self) -> str:
        """What to type next."""
        return f"sfumato check {self.release}"

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file, the release file last."""
        return tuple(self.folder / name for name in self.names)

    @property
    def release(self) -> Path:
        """The release file."""
        return self.paths[-1]

    def data(self) -> dict[str, Any]:
        """The same for machines."""
        numbers = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "folder"}
        return {"folder": str(self.folder), "release": str(self.release), **numbers}


@dataclass(frozen=True, kw_only=True)
class KeyedMade(Made):
    """An economy whose release needs a key."""

    @property
    def next_step(self) -> str:
        """What to type next."""
        return f"sfumato keys new {self.folder / 'sfumato.key'}, then sfumato check {self.release}"


def check_request(what: str, **asked: tuple[int, int, int]) -> None:
    """Refuse a number that is out of its range: each is given with the least and the most allowed."""
    for name, (value, least, most) in asked.items():
        if not least <= value <= most:
            raise SfumatoError(
                f"{what}: {name}",
                expected=f"a whole number from {least:,} to {most:,}",
                found=f"{value:,}",
                do=f"choose {name} within this range",
            )


# Questions in SQL to the files of an economy.

Ask = Callable[..., list[tuple[Any, ...]]]


def need_files(folder: Path, names: Sequence[str], *, what: str, command: str) -> None:
    """Refuse to measure a folder that does not hold this kind of economy."""
    for name in names:
        if not (folder / name).is_file():
            raise DataError(
                f"folder {folder}",
                expected=f"{what}, with a file {name}",
                found="no such file",
                do=f"make one first: `{command}`",
            )


@contextmanager
def asking(*paths: Path) -> Iterator[Ask]:
    """A function that answers SQL about these files, its `$files`, with any further values given by name."""
    files = [str(path) for path in paths]
    with duckdb.connect() as connection:
        connection.execute(
            "SET enable_progress_bar = false"
        )  # which are drawn where there is no script, as in notebooks

        def ask(sql: str, **values: int) -> list[tuple[Any, ...]]:
            return connection.execute(sql, {"files": files, **values}).fetchall()

        yield ask
