"""What every kind of economy has in common once it is made, and what it refuses before."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from sfumato.errors import SfumatoError

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
