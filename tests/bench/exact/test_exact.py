"""The benchmark of withheld cells counts rightly, and says so where R is missing."""

from pathlib import Path

import numpy as np
import pytest

from bench.exact.claims import exact_section
from bench.exact.measure import RULES, _audited, measure_exact, questions
from bench.exact.others import OTHERS, Other, asked_of
from bench.exact.real import registers
from bench.exact.register import Size, make
from sfumato.exact.rules import Protection

SIZE = Size(employers=300, districts=3, places=9, sectors=4, industries=8)


def test_a_register_has_the_cells_and_contributors_that_its_records_have() -> None:
    register = make(SIZE)
    system, contributions = register.tables()
    assert np.abs(system.equations @ system.value).max() == 0
    assert system.value.max() == register.amount.sum()
    assert contributions.units[0] == 300
    assert contributions.largest[0] == register.amount.max()
    names = register.names()
    assert (len(names), names[0], names[-1]) == (13 * 13, "Total|Total", "p8|i7")


def test_without_r_only_ours_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("bench.exact.measure.SIZES", {"tiny": SIZE})
    monkeypatch.setattr("bench.exact.measure.LARGEST", SIZE)
    results = measure_exact(tmp_path, tell=lambda _: None)
    section = exact_section(results)
    assert "R is not installed" in section.notes[0]
    assert [line.met for line in section.lines] == [True, True, True]
    assert [row[1] for row in section.grids[0].rows[-len(OTHERS) :]] == ["R is not installed"] * len(OTHERS)


def test_an_audit_tells_what_a_pattern_leaves_open() -> None:
    register = make(SIZE)
    system, contributions = register.tables()
    needs = Protection.over(system, {"table": RULES.protection(contributions)})
    asked = questions(system, needs)
    nothing = _audited(system, needs.sensitive & False, asked, tell=lambda _: None)
    assert nothing["not exactly"]["unprotected"] == needs.sensitive.sum()
    everything = _audited(system, np.ones(len(system), dtype=bool), asked, tell=lambda _: None)
    assert everything["by the rule"]["unprotected"] == 0


def test_a_real_register_is_read_with_the_state_of_most_employers(tmp_path: Path) -> None:
    rows = ["naics2,state,city,zip,initial,continuing", "54,CA,A,90001,1,2", "54,CA,B,90002,0,4", "61,CA,B,91001,5,0"]
    file = tmp_path / "employers.csv"
    file.write_text("\n".join([*rows, "54,NY,C,10001,9,9"]) + "\n", encoding="utf-8")
    flat, levels = registers(file).values()
    assert flat.amount.tolist() == levels.amount.tolist() == [3, 4, 5]
    assert (len(flat.names()), len(levels.names())) == (3 * 3, 6 * 3)
    assert levels.tables()[0].value[0] == 12
    assert len(levels.listed()) == len(levels.tables()[0])


@pytest.mark.slow
@pytest.mark.parametrize("other", OTHERS, ids=lambda other: other.name)
def test_what_others_call_sensitive_is_what_we_do(other: Other, tmp_path: Path) -> None:
    register = make(SIZE)
    told, pattern, sensitive = asked_of(other, register, tmp_path)
    if pattern is None:
        pytest.skip(told["reason"])
    system, contributions = register.tables()
    needs = Protection.over(system, {"table": RULES.protection(contributions)})
    assert np.array_equal(sensitive, needs.sensitive)
    assert bool(np.all(pattern >= needs.sensitive))
