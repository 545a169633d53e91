"""Accuracy as people state it: `mean error below 2 jobs in cells of at most 20 jobs`, and the like."""

import re
from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import SfumatoError
from sfumato.privacy.guarantee import plain

EXAMPLES = (
    "mean error below 2 jobs in cells of at most 50 jobs",
    "mean error below 5% in cells of at least 100 jobs",
    "90% of cells of at least 100 jobs within 10%",
    "95% of cells of at most 20 jobs within 5 jobs",
)
DEFAULT_JOBS = 100
"""The size of the cells that are meant when none is stated."""

_NUMBER = r"(?:\d[\d,]*(?:\.\d+)?|\.\d+)"
_SIZE = (
    r"(?:(?:in|of|with)\s+)?(?:cells?\s+)?(?:of|with)\s+"
    rf"(?P<{{0}}bound>at least|at most)\s+(?P<{{0}}jobs>{_NUMBER})\s+jobs?"
)
_LIMIT = rf"(?P<limit>{_NUMBER})\s*(?P<unit>%|jobs?)?"
_MEAN = re.compile(rf"mean error\s+(?:of\s+)?(?:below|under|up to|at most)?\s*{_LIMIT}(?:\s+{_SIZE.format('')})?")
_SHARE = re.compile(
    rf"(?P<share>{_NUMBER})\s*%(?:\s+(?:of\s+(?:all\s+)?)?cells)?(?:\s+{_SIZE.format('')})?\s+within\s+{_LIMIT}"
    rf"(?:\s+{_SIZE.format('after_')})?"
)


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """How close published counts are to be: on average, or for a share of cells."""

    limit: Fraction
    """Jobs, or a share of the count."""
    relative: bool
    jobs: int
    """Relative accuracy is meant for cells of at least so many jobs, accuracy in jobs for cells of at most so many."""
    share: Fraction | None = None
    """The share of cells within the limit; None asks for the mean error to be below it."""

    def __post_init__(self) -> None:
        if self.limit <= 0 or self.jobs < 1 or (self.share is not None and not 0 < self.share < 1):
            raise _not_understood(str(self))

    def __str__(self) -> str:
        limit = f"{plain(100 * self.limit)}%" if self.relative else f"{plain(self.limit)} jobs"
        cells = f"cells of {'at least' if self.relative else 'at most'} {self.jobs:,} jobs"
        if self.share is None:
            return f"mean error below {limit} in {cells}"
        return f"{plain(100 * self.share)}% of {cells} within {limit}"

    @property
    def tolerance(self) -> float:
        """The limit in jobs, for a cell of exactly `jobs` jobs."""
        return float(self.limit * self.jobs if self.relative else self.limit)


def read_accuracy(text: str) -> Accuracy:
    """Understand a sentence about accuracy.

    >>> print(read_accuracy("90% within 10%"))
    90% of cells of at least 100 jobs within 10%
    """
    words = " ".join(text.lower().split())
    found = _MEAN.fullmatch(words) or _SHARE.fullmatch(words)
    if found is None:
        raise _not_understood(text)
    parts = found.groupdict()
    relative = parts["unit"] == "%"
    bound = parts["bound"] or parts.get("after_bound")
    if bound and bound != ("at least" if relative else "at most"):
        raise SfumatoError(
            f"accuracy {text!r}",
            expected="cells of at least so many jobs with a limit in %, or of at most so many with a limit in jobs",
            found=f"{bound} so many jobs with a limit in {'%' if relative else 'jobs'}, which no method can keep",
            do=f"say it as in: {EXAMPLES[2]}",
        )
    jobs = parts["jobs"] or parts.get("after_jobs")
    limit = _number(parts["limit"])
    return Accuracy(
        limit=limit / 100 if relative else limit,
        relative=relative,
        jobs=_whole(jobs) if jobs else DEFAULT_JOBS,
        share=_number(parts["share"]) / 100 if parts.get("share") else None,
    )


def _number(text: str) -> Fraction:
    if not re.fullmatch(r"\d{1,3}(,\d{3}){0,4}(\.\d{1,6})?|\d{1,15}(\.\d{1,6})?", text):
        raise _not_understood(text)
    return Fraction(text.replace(",", ""))


def _whole(text: str) -> int:
    number = _number(text)
    if number.denominator != 1 or number < 1:
        raise _not_understood(f"{text} jobs")
    return int(number)


def _not_understood(text: str) -> SfumatoError:
    return SfumatoError(
        f"accuracy {text!r}",
        expected="a sentence such as: " + "; or: ".join(EXAMPLES),
        found="something else",
        do="say it in one of these ways",
    )
