"""Write the figures on the pages of docs/papers from the evaluations themselves: python docs/make_papers.py [PAPER …].

A figure stands before a comment that names the row of `sfumato reproduce PAPER --quick --json` that it is from:

    1.75 <!-- quantity=l1_ratio workload=1 method=log-laplace alpha=0.1 epsilon=2 stratum=all -->
"""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PAPERS = Path(__file__).parent / "papers"
_FIGURE = re.compile(r"(?P<shown>[-−+]?[\d,]*\.?\d+ ?%?|none) <!-- (?P<keys>[^>]+=[^>]+) -->")
_NONE = "none"
"""Stands where a method does not exist at a setting."""

Row = Mapping[str, Any]


def evaluated(paper: str) -> list[Row]:
    """Every row of an evaluation at its full size, with few trials."""
    with TemporaryDirectory() as folder:
        words = ["reproduce", paper, "--quick", "--json", "--out", folder]
        command = [sys.executable, "-c", "from sfumato.cli import main; main()", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout)["rows"])


def with_figures(page: str, rows: Sequence[Row]) -> str:
    """A page with every figure as the rows have it now, in as many digits as it shows."""
    return _FIGURE.sub(lambda found: f"{_figure(found['shown'], found['keys'], rows)} <!-- {found['keys']} -->", page)


def figures(page: str) -> list[tuple[str, str]]:
    """The figures of a page: what is shown, and the keys of the row that it is from."""
    return [(found["shown"], found["keys"]) for found in _FIGURE.finditer(page)]


def _figure(shown: str, keys: str, rows: Sequence[Row]) -> str:
    ours = _only(keys, [row["ours"] for row in rows if _is_meant(row, keys)])
    if ours is None:
        return _NONE
    percent = shown.endswith("%")
    decimals = len(shown.rstrip("% ").partition(".")[2]) if shown != _NONE else 2
    text = f"{float(ours) * (100 if percent else 1):,.{decimals}f}"
    if "," not in shown and len(shown.partition(".")[0]) > 3:
        text = text.replace(",", "")
    without_zero = shown.lstrip("-−+").startswith(".")
    text = re.sub(r"^(-?)0\.", r"\1.", text) if without_zero else text
    return text + ((" %" if " %" in shown else "%") if percent else "")


def _only(keys: str, found: Sequence[Any]) -> Any:
    if len(found) != 1:
        raise ValueError(f"expected one row with {keys}, found {len(found)}: name as many keys as tell it from others")
    return found[0]


def _is_meant(row: Row, keys: str) -> bool:
    wanted = (word.partition("=") for word in shlex.split(keys))
    return all(name in row and _same(row[name], text) for name, _, text in wanted)


def _same(value: Any, text: str) -> bool:
    if str(value) == text:
        return True
    try:
        return not isinstance(value, bool) and float(value) == float(text)
    except (TypeError, ValueError):
        return False


def main(papers: Iterable[str]) -> None:
    """Write the pages whose figures have changed."""
    for page in sorted(PAPERS.glob("*.md")):
        before = page.read_text(encoding="utf-8")
        if page.stem in (papers or [page.stem]) and figures(before):
            after = with_figures(before, evaluated(page.stem))
            page.write_text(after, encoding="utf-8")
            sys.stdout.write(f"{page.name}: {'unchanged' if after == before else 'written'}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
