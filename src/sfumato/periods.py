"""Periods of a panel: quarters or years that follow each other without a gap."""

import re
from dataclasses import dataclass

from sfumato.errors import ReleaseError

_QUARTER = re.compile(r"(\d{4})-?Q([1-4])")


_YEAR = re.compile(r"\d{4}")


@dataclass(frozen=True, kw_only=True)
class Span:
    """The periods from the first to the last, both included, as the data write them."""

    first: str
    last: str

    def __post_init__(self) -> None:
        for name, period in (("first", self.first), ("last", self.last)):
            if not (_QUARTER.fullmatch(period) or _YEAR.fullmatch(period)):
                raise ReleaseError(
                    f"jobs, {name} = {period!r}",
                    expected="a quarter such as 2025-Q1 or 2025Q1, or a year such as 2025",
                    found=repr(period),
                    do="write the period as the data do",
                )
        if _written(self.first) != _written(self.last) or self.low > self.high:
            raise ReleaseError(
                "jobs, first and last",
                expected="a first period that is not after the last, both written alike",
                found=f"{self.first} and {self.last}",
                do="correct the periods",
            )

    @property
    def quarterly(self) -> bool:
        """Whether periods are quarters."""
        return bool(_QUARTER.fullmatch(self.first))

    @property
    def low(self) -> int:
        """The number of the first period; periods that follow each other have numbers that do."""
        return number_of(self.first)

    @property
    def high(self) -> int:
        """The number of the last period."""
        return number_of(self.last)

    def codes(self) -> tuple[str, ...]:
        """All periods in order.

        >>> Span(first="2024-Q3", last="2025-Q1").codes()
        ('2024-Q3', '2024-Q4', '2025-Q1')
        """
        if not self.quarterly:
            return tuple(str(year) for year in range(self.low, self.high + 1))
        between = "-Q" if "-" in self.first else "Q"
        return tuple(f"{n // 4}{between}{n % 4 + 1}" for n in range(self.low, self.high + 1))


def number_of(period: str) -> int:
    """The number of a period, counted in quarters or years.

    >>> number_of("2025-Q1") - number_of("2024-Q4"), number_of("2025")
    (1, 2025)
    """
    if quarter := _QUARTER.fullmatch(period):
        return 4 * int(quarter[1]) + int(quarter[2]) - 1
    return int(period)


def _written(period: str) -> str:
    return re.sub(r"\d", "9", period)
