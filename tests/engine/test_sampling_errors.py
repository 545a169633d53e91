"""Sampling errors of totals, counts and means: by hand, from replicate weights and from units."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.statistics.totals.question import TOTAL
from tests.engine.businesses import (
    EVERYONE,
    RECORDS,
    REPLICATES,
    SURVEY,
    answer,
    by_hand,
    cell,
    microdata,
    question,
)


def test_sampling_errors_of_the_unit_jackknife_by_hand(tmp_path: Path, engine: str) -> None:
    data = microdata(tmp_path, by_hand(), engine=engine)
    cells = answer(data, q=question("state", "industry"))["q"]
    found = cell(cells, "A", "X")
    # 105, −100 and 62.5 are 82.5, −122.5 and 40 from their mean: √(3/2 · 23412.5) = 187.399973…
    assert found["sampling_error"] == 187_399_973
    # 1.5, 2 and 1.25: √(3/2 · 0.291666…) = √0.4375
    assert found["count_sampling_error"] == 661_438
    assert cell(cells, "A", "Y")["count_sampling_error"] == 0  # one unit tells nothing


def test_sampling_errors_of_replicate_weights_by_hand(tmp_path: Path, engine: str) -> None:
    data = microdata(tmp_path, by_hand(), records={**SURVEY, "replicates": REPLICATES}, engine=engine)
    cells = answer(data, q=question("state", "industry", margins=True), n=question("state", measure=None))
    expected = {
        # Replicates of 67.5 are 110 and 25: √(½ · 2 · 42.5²). Those of 4.75 are 5 and 4.5.
        ("A", "X"): (42_500_000, 250_000),
        # Of 4 they are 8 and 0.
        ("A", "Y"): (0, 4_000_000),
        # Of −159.99999 they are −370 and 50, of 4.500001 they are 6 and 3.
        ("B", "X"): (210_000_000, 1_500_000),
        ("B", "Y"): (0, 0),
        ("B", TOTAL): (210_000_000, 1_500_000),
        # Of 67.5 and 8.75 in state A they are 110 and 25, and 13 and 4.5: √(½ · 2 · 4.25²).
        ("A", TOTAL): (42_500_000, 4_250_000),
    }
    for codes, errors in expected.items():
        found = cell(cells["q"], *codes)
        assert (found["sampling_error"], found["count_sampling_error"]) == errors, codes
    counted = cell(cells["n"], "A")
    assert counted["sampling_error"] == counted["count_sampling_error"] == 4_250_000


@pytest.mark.parametrize(
    ("rule", "scale", "factor"),
    [
        ("jackknife", None, 2 / 3),
        ("successive-difference", None, 4 / 3),
        ("bootstrap", None, 1 / 3),
        ("bootstrap", "0.5", 0.5),
    ],
)
def test_each_rule_scales_the_replicates_in_its_way(tmp_path: Path, rule: str, scale: str, factor: float) -> None:
    columns = by_hand() | {"rw_3": [0.0] * 7}
    replicates = {"columns": ["rw_3", "rw_1", "rw_2"], "rule": rule, "scale": scale}
    data = microdata(tmp_path, columns, records={**SURVEY, "replicates": replicates})
    found = cell(answer(data, q=question("state", "industry"))["q"], "A", "X")
    # Replicates of 67.5 are 110, 25 and 0.
    assert found["sampling_error"] == round((factor * (42.5**2 + 42.5**2 + 67.5**2)) ** 0.5 * 1e6)


@pytest.mark.parametrize("records", [EVERYONE, {**EVERYONE, "replicates": REPLICATES}], ids=["units", "replicates"])
def test_the_sampling_error_of_a_mean_by_hand(tmp_path: Path, engine: str, records: dict[str, Any]) -> None:
    columns = by_hand()
    asked = replace(question("state"), ratio=True)
    found = cell(answer(microdata(tmp_path, columns, records=records, engine=engine), q=asked)["q"], "A")
    rows = [n for n, state in enumerate(columns["state"]) if state == "A"]
    y = np.array([columns["profit"][n] for n in rows], dtype=float)

    def weights(name: str) -> Any:
        return np.array([columns[name][n] for n in rows], dtype=float)

    w = weights("weight")
    mean = (w * y).sum() / w.sum()
    if "replicates" in records:
        means = [(r * y).sum() / r.sum() for r in (weights("rw_1"), weights("rw_2"))]
        error = np.sqrt(0.5 * sum((m - mean) ** 2 for m in means))
    else:
        n = len(y)
        error = np.sqrt(n / (n - 1) * ((w * (y - mean)) ** 2).sum()) / w.sum()
    assert found["mean_sampling_error"] / 1e6 == pytest.approx(error, abs=2e-6)


def test_a_sampling_error_that_cannot_be_told_in_millionths_is_refused(tmp_path: Path) -> None:
    columns = {
        "business": list(range(100)),
        "state": ["A"] * 100,
        "industry": ["X"] * 100,
        "profit": [3 * 10**12 * (-1) ** n for n in range(100)],
        "weight": [1.0] * 100,
    }
    data = microdata(tmp_path, columns, records={**RECORDS, "weight": "weight"})
    with pytest.raises(Exception, match="larger unit"):
        answer(data, q=question("state"))
