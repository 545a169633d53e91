"""Make the figures of docs/protection-costs.md by sfumato compare: python docs/make_protection_costs.py.

Economies and trials are those of fixed seeds, so the page is the same every time. A part between `<!-- made: NAME -->`
and `<!-- end -->` is written by this program, all else by hand.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sfumato.charts.shares import Row, draw_shares
from sfumato.charts.svg import on_paper

DOCS = Path(__file__).parent
PAGE = DOCS / "protection-costs.md"
PICTURE = DOCS / "images" / "protection-costs.svg"
_PART = re.compile(r"(?<=<!-- made: )(?P<name>\w+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
_HEADINGS = (
    *("protection", "cells withheld", "value withheld", "usable", "typical error", "error / legacy", "loss / legacy"),
    *("largest found", "alone found"),
)
_TRIALS = "20"

Found = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one part of the page is made of: an economy, a release file and a table of it."""

    economy: tuple[str, ...]
    file: str
    table: str


PARTS: Mapping[str, Part] = {
    "jobs": Part(economy=("economy", "--jobs", "100000"), file="economy/release.toml", table="jobs_by_place_industry"),
    "coarse": Part(economy=("economy", "--jobs", "100000"), file="economy/release.toml", table="jobs_by_place"),
    "groups": Part(economy=("economy", "--jobs", "100000"), file="economy/coarsening.toml", table="jobs"),
    "businesses": Part(
        economy=("business", "businesses", "--businesses", "10000"),
        file="businesses/business-totals.toml",
        table="turnover",
    ),
}


def compared() -> dict[str, Found]:
    """What `sfumato compare` says of every release file, each compared once."""
    found: dict[str, Found] = {}
    with TemporaryDirectory() as named:
        folder = Path(named)
        for part in PARTS.values():
            place = folder / part.file
            if not place.parent.exists():
                _sfumato(folder, "economy", *part.economy)
            if not place.exists():
                shutil.copy(DOCS.parent / "examples" / place.name, place)
            if part.file not in found:
                said = _sfumato(folder, "compare", part.file, "--trials", _TRIALS, "--json")
                found[part.file] = json.loads(said)
    return found


def _sfumato(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "sfumato", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def with_figures(page: str, found: Mapping[str, Found]) -> str:
    """A page with the figures of every part as they are now."""
    return _PART.sub(lambda at: f"{at['name']}{at[2]}\n{_table(PARTS[at['name']], found)}\n", page)


def _table(part: Part, found: Mapping[str, Found]) -> str:
    rows = [_HEADINGS, ("---", *["---:"] * (len(_HEADINGS) - 1))]
    rows += [
        (
            label,
            _percent(one["withheld"]),
            _percent(one["value_withheld"]),
            f"**{_percent(one['usable'])}**",
            _percent(one["median_relative"]),
            _number(one["error_ratio"]),
            _number(one["loss_ratio"]),
            *(_percent(rate) for rate in _rates(one)[:2]),
        )
        for label, one in _tables(part, found)
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _tables(part: Part, found: Mapping[str, Found]) -> Iterator[tuple[str, Found]]:
    """One table under every candidate that has it."""
    for candidate in found[part.file]["candidates"]:
        label = candidate["candidate"]
        if label == "as written":
            epsilon = candidate["epsilon"]
            label = f"as written: {candidate['method']}" + (f", epsilon {epsilon:g}" if epsilon else "")
        yield from ((label, one) for one in candidate["tables"] if one["table"] == part.table)


def _rates(one: Found) -> list[float | None]:
    return [attack["rate"] for attack in one["attacks"]]


def _percent(share: float | None) -> str:
    if share is None:
        return "–"
    return f"{100 * share:.1f} %" if 0 < share < 0.1 else f"{100 * share:.0f} %"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}" if value >= 0.005 or not value else "under 0.01"


def picture(found: Mapping[str, Found]) -> str:
    """What readers get of the first part, beside what is found out."""
    rows = []
    for label, one in _tables(PARTS["jobs"], found):
        usable, withheld = one["usable"], one["withheld"]
        rows.append(Row(label, (usable, max(1 - usable - withheld, 0.0), withheld), _rates(one)[:2]))
    drawn = draw_shares(
        rows,
        whole="What readers get: of all cells",
        parts=("can be used: off by at most 10 %", "published, but off by more", "withheld"),
        above="What attackers find",
        beside=("the largest in a cell, by the second largest", "who is alone in a cell"),
        name="What each protection leaves readers, and what it tells them",
    )
    return on_paper(drawn) + "\n"


def main() -> None:
    """Write the page and its picture."""
    found = compared()
    for file, text in ((PAGE, with_figures(PAGE.read_text(encoding="utf-8"), found)), (PICTURE, picture(found))):
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        file.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{file.name}: {'unchanged' if text == before else 'written'}\n")


if __name__ == "__main__":
    main()
