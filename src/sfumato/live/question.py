"""An ad-hoc question in one spelling, and what one analyst may spend on such."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sfumato.durable import alone, sync_folder
from sfumato.errors import BudgetError, ReleaseError
from sfumato.frame import Codelist
from sfumato.privacy.guarantee import plain
from sfumato.release import Release
from sfumato.statistics.table import Table

# An ad-hoc question in one spelling: however it is written, the same question is asked of the same records.

Where = Mapping[str, Sequence[str]]


def in_order(by: Sequence[str], where: Where, codelists: Mapping[str, Codelist]) -> tuple[tuple[str, ...], Where]:
    """Attributes and codes in the order of the data; a filter that keeps every code is none.

    >>> sex = Codelist.of(["F", "M"])
    >>> in_order(["sex"], {"sex": ["M", "F", "M"]}, {"sex": sex})
    (('sex',), {})
    >>> in_order(["sex"], {"Sex": ["M"]}, {"sex": sex})  # it is refused later, and must not be lost before
    (('sex',), {'Sex': ('M',)})
    """
    order = {name: place for place, name in enumerate(codelists)}

    def place(name: str) -> int:
        return order.get(name, len(order))  # what is unknown is refused later, in words

    kept = {}
    for name in sorted(where, key=place):
        codes = dict.fromkeys(where[name])
        known = codelists[name].codes if name in codelists else ()
        if name not in codelists or codes.keys() != set(known):
            kept[name] = (*(code for code in known if code in codes), *(code for code in codes if code not in known))
    return tuple(sorted(by, key=place)), kept


def live_table(release: Release, codelists: Mapping[str, Codelist], **described: Any) -> Table:
    """The table that a question describes; a ReleaseError says what is wrong with it."""
    try:
        table = Table.model_validate({"name": _name(described["by"]), **described})
    except ValidationError as error:
        first = error.errors()[0]
        ours = first["type"] == "value_error"  # these say what is wrong, the others what was expected
        raise ReleaseError(
            f"live table: {', '.join(map(str, first['loc'])) or 'the question'}",
            expected="a question that can be answered" if ours else first["msg"],
            found=first["msg"].removeprefix("Value error, ") if ours else "another question",
            do="correct the question",
        ) from None
    release.know_attributes(table)
    cells = prod(len(codelists[name].codes) + table.totals for name in table.by)
    if cells > release.live.most_cells:
        raise ReleaseError(
            "live table",
            expected=f"at most {release.live.most_cells:,} cells",
            found=f"{cells:,}",
            do="ask for fewer attributes, or filter them",
        )
    return table


def _name(by: Sequence[str]) -> str:
    """What the ledger calls a table by these attributes."""
    return "live" + re.sub(r"[^a-z0-9_-]", "-", "".join(f"-{name}" for name in by).lower())[:60]


# What one analyst may spend on ad-hoc questions: a question counts for whoever asks it, also if others paid before.
#
# So neither prices nor what is left tell an analyst whether somebody else asked the same. The ledger alone decides what
# the data reveal; a lost file of quotas gives analysts a new start within the same budget.


@dataclass(frozen=True, kw_only=True)
class Quotas:
    """The questions of every analyst with what each costs, in a file for each, which only ever grows."""

    folder: Path
    most: Fraction
    """The epsilon that the questions of one analyst may cost together, at the budget's alpha."""

    def left(self, analyst: str) -> Fraction:
        """The epsilon that further questions of an analyst may cost."""
        return self.most - sum(self._asked(analyst).values(), Fraction(0))

    def has_asked(self, analyst: str, question: str) -> bool:
        """Whether an analyst asked a question before: then it costs nothing more."""
        return question in self._asked(analyst)

    def refusal(self, analyst: str, epsilon: Fraction) -> BudgetError | None:
        """Why an analyst cannot ask a new question of this cost, if so."""
        left = self.left(analyst)
        if epsilon <= left:
            return None
        return BudgetError(
            "your quota for ad-hoc tables",
            expected=f"at most what remains of it: epsilon = {plain(left)}",
            found=f"a question that costs epsilon = {plain(epsilon)}",
            do="choose a smaller epsilon, or ask the office to raise `quota` under [live]",
        )

    @contextmanager
    def taken(self, analyst: str, question: str, epsilon: Fraction) -> Iterator[None]:
        """Refuse a question beyond the quota; otherwise it counts once what happens inside was done."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with alone(self.folder / ".lock"):
            new = not self.has_asked(analyst, question)
            refusal = self.refusal(analyst, epsilon) if new else None
            if refusal is not None:
                raise refusal
            yield
            if new:
                self._append(analyst, question, epsilon)

    def _asked(self, analyst: str) -> dict[str, Fraction]:
        try:
            lines = self._path(analyst).read_text().split("\n")
        except FileNotFoundError:
            return {}
        # What follows the last line end was cut off by a crash, before anybody got an answer.
        entries = [json.loads(line) for line in lines[:-1] if line]
        return {entry["question"]: Fraction(entry["epsilon"]) for entry in entries}

    def _append(self, analyst: str, question: str, epsilon: Fraction) -> None:
        path = self._path(analyst)
        line = json.dumps({"question": question, "epsilon": str(epsilon)}) + "\n"
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+b") as file:
            whole = file.read().rfind(b"\n") + 1
            file.seek(whole)
            file.truncate()
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self.folder)

    def _path(self, analyst: str) -> Path:
        return (
            self.folder / f"{analyst.lower()}.jsonl"
        )  # names are letters, digits and . _ @ - and do not mind the case
