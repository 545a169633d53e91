"""The command that measures composite estimates on a file: it wins where places are alike, and says so."""

import sys
from pathlib import Path
from random import Random

import pytest

from bench.agreement import composite


def test_the_command_says_that_places_that_are_alike_predict_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn, lines = Random(1), ["place,young,middle,old"]
    for at in range(400):
        ages = drawn.choices(range(3), weights=[2, 5, 3], k=drawn.randint(1, 60))  # one establishment
        lines.append(f"{at // 2:05},{ages.count(0)},{ages.count(1)},{ages.count(2)}")
    file = tmp_path / "places.csv"
    file.write_text("\n".join(lines), encoding="utf-8")
    said = [str(file), "--by", "place:2,place", "--within", "1", "--workers", "young,middle,old", "--draws", "4"]
    monkeypatch.setattr(sys, "argv", ["composite", *said])
    composite.main()
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "200 workplace cells × 3, epsilon 1, 4 draws"
    (words, _, before, after, won, *_, honest, _) = next(line for line in shown if " all " in line).split()
    assert words == "all"
    assert float(after) < 0.6 * float(before)
    assert int(won.rstrip("%")) > 40
    assert 0.7 < float(honest) < 2
