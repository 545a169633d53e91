"""What each method protects, as docs/methods/employer-employee.md prints it."""

from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.statistics.registry import REQUIREMENTS, build, requirements

PAGE = Path(__file__).parents[3] / "docs/methods/employer-employee.md"
ROWS = {
    "input noise infusion": ("noise-infusion", 0),
    "differential privacy on individuals": ("laplace", 0),
    "differential privacy on establishments": ("node-laplace", 0),
    "strong (α, ε)": ("smooth-pareto", 0),
    "weak (α, ε)": ("smooth-pareto", 4),
}


@pytest.mark.parametrize("row", ROWS)
def test_the_printed_table_is_what_the_methods_promise(row: str) -> None:
    name, worker_cells = ROWS[row]
    method = build(name, alpha=Fraction("0.1"), epsilon=Fraction(2), worker_cells=worker_cells)
    line = next(line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {row} |"))
    printed = tuple(cell.strip() for cell in line.strip("|").split("|")[1:])
    found = requirements(method.guarantee())
    expected = found.individuals, found.employer_size, found.employer_shape
    assert tuple(word.removeprefix("against ").removesuffix(" only") for word in printed) == expected


def test_the_summary_in_words_tells_the_definitions_apart() -> None:
    assert len({str(found) for found in REQUIREMENTS.values()}) == len(REQUIREMENTS)
