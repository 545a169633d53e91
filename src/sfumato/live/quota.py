"""What one analyst may spend on ad-hoc questions: a question counts for whoever asks it, also if others paid before.

So neither prices nor what is left tell an analyst whether somebody else asked the same. The ledger alone decides what
the data reveal; a lost file of quotas gives analysts a new start within the same budget.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from sfumato.durable import alone, sync_folder
from sfumato.errors import BudgetError
from sfumato.privacy.guarantee import plain


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
