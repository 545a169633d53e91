"""Published figures are only printed beside ours; nothing measured comes from them."""

from fractions import Fraction
from pathlib import Path

import sfumato_lab.reproduce
from sfumato_lab.reproduce.haney2017.evaluate import Measured
from sfumato_lab.reproduce.haney2017.findings import AIMS, PUBLISHED, findings


def measured(method: str, ours: float, *, workload: int = 1, quantity: str = "l1_ratio") -> Measured:
    return Measured(
        quantity=quantity,
        workload=workload,
        method=method,
        alpha=Fraction("0.1"),
        epsilon=Fraction(2),
        stratum="all",
        ours=ours,
    )


def test_a_finding_that_does_not_hold_is_reported_as_such() -> None:
    rows = [measured("log-laplace", 3.5), measured("smooth-laplace", 0.9), measured("smooth-pareto", 0.6)]
    found = {(line.source, line.what): line.holds for line in findings(rows)}
    assert found["finding 1", "workload 1, log-laplace, α=0.1, ε=2"] is False
    assert found["finding 1", "workload 1, smooth-laplace, α=0.1, ε=2"] is True
    assert found["aim", "workload 1, smooth-pareto, α=0.1, ε=2"] is False
    assert found["aim", "workload 1, α=0.1, ε=2: smooth-laplace / smooth-pareto"] is False


def test_about_is_left_to_the_reader() -> None:
    (line,) = findings([measured("smooth-laplace", 0.4, workload=2)])
    assert line.stated == "about 1"
    assert line.holds is None


def test_what_was_not_measured_is_not_reported() -> None:
    assert findings([]) == []


def test_every_setting_is_stated_once_by_the_paper_and_once_as_an_aim() -> None:
    for figures in (PUBLISHED, AIMS):
        settings = [figure.setting for figure in figures]
        assert len(set(settings)) == len(settings)


def test_published_figures_are_used_for_printing_only() -> None:
    room = Path(sfumato_lab.reproduce.__file__).parent
    assert "findings import" not in (room / "haney2017/evaluate.py").read_text(encoding="utf-8")
