"""Audits every case with many draws and writes what was found into docs/audit.md: python -m tests.audit.page.

`python -m tests.audit.page excess` writes those that reveal more than they state into the table of that name instead.
`python -m tests.audit.page people` audits the cases of one table alone.
"""

import re
import sys
from collections.abc import Iterable
from math import isinf
from pathlib import Path

from tests.audit.cases import CASES, FULL_DRAWS, OF_CUBES, OF_JOBS, OF_PANELS, OF_PEOPLE, OF_UNITS
from tests.audit.harness import Case, Finding, audit
from tests.audit.histories import OF_HISTORIES

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"
KINDS = {
    "jobs": OF_JOBS,
    "panels": OF_PANELS,
    "histories": OF_HISTORIES,
    "people": OF_PEOPLE,
    "cubes": OF_CUBES,
    "units": OF_UNITS,
}
EXCESS = "excess"
_HEAD = (
    "| case | neighbours differ by | numbers looked at together | stated | lower bound | estimate |",
    "|---|---|---|---|---|---|",
)


def main(*asked: str) -> None:
    """Audit all cases, or those of some tables, and rewrite these tables of the page."""
    kinds = {kind: cases for kind, cases in KINDS.items() if kind in asked} or KINDS
    found = [_audited(case) for case in CASES if any(case in cases for cases in kinds.values())]
    page = PAGE.read_text(encoding="utf-8")
    if EXCESS in asked:
        page = between(page, EXCESS, rows(finding for finding in found if not finding.holds))
    else:
        for kind, cases in kinds.items():
            page = between(page, kind, rows(finding for finding in found if finding.case in cases))
    PAGE.write_text(page, encoding="utf-8")


def rows(findings: Iterable[Finding]) -> str:
    """A table of findings."""
    return "\n".join([*_HEAD, *map(row, findings)])


def row(finding: Finding) -> str:
    """One row: what was held against what."""
    case, loss = finding.case, finding.loss
    names = list(dict.fromkeys(re.split(r"[ :]", column)[-1] for column in finding.columns))
    one, delta = float(finding.stated.epsilon), finding.stated.after(case.steps)[1]
    stated = f"{one:.4g}" if case.steps == 1 else f"{case.steps} × {one:.4g}"
    stated += f", δ {delta:.2g}" if delta else ""
    estimate = "∞" if isinf(loss.estimate) else f"{loss.estimate:.2f}"
    together = f"{len(finding.columns)}: {', '.join(names)}"
    return f"| {case.name} | {case.neighbour} | {together} | {stated} | {loss.lower:.3f} | {estimate} |"


def between(page: str, marker: str, content: str) -> str:
    """The page with what stands between the marker and the next end replaced."""
    pattern = re.compile(rf"(<!-- generated: {marker} -->\n).*?(<!-- end -->)", re.DOTALL)
    page, times = pattern.subn(lambda found: f"{found[1]}\n{content}\n\n{found[2]}", page)
    if times != 1:
        raise ValueError(f"{PAGE} needs the marker {marker!r} once")
    return page


def _audited(case: Case) -> Finding:
    found = audit(case, FULL_DRAWS)
    print("ok    " if found.holds else "EXCESS", found, file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
