"""Factors can be computed from values that were rounded to whole numbers, and not from values rounded to the base.

The panel has 60 quarters and a table by sex and age (eight worker cells); every employer has a workplace cell to
itself. The reader has the published cells alone, and is granted the ends of the factors and the base.
"""

import shutil
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sfumato.cells import Cells, Dimension
from sfumato.keys import new_key, read_key
from sfumato.noise.factors import EARNINGS, LIFE, ONE, Factors, information, least_base, rounded_by_thresholds
from sfumato.noise.keyed import CellWords, Keyed, hashes
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato.statistics.panel.attacks import Series, attack_factors, factors_within, likeliest_factor
from sfumato.statistics.panel.indicators import CODES, NAME
from sfumato.statistics.panel.infused_sums import InfusedSums
from tests.conftest import write

QUARTERS, GROUPS = 60, 8
ENDS = (100_000, 250_000)
BASE = least_base(GROUPS * LIFE * 8)
OLD = InfusedSums()
NEW = InfusedSums(rounding=BASE, earnings_rounding=EARNINGS * BASE)


def factors(employers: int, seed: int, *, above: bool | None) -> Any:
    made = Factors(key=bytes([seed]) * 16, least=Fraction(ENDS[0], ONE), most=Fraction(ENDS[1], ONE))
    found = made.of(hashes([str(name) for name in range(4 * employers)]))
    return (found if above is None else found[(found > ONE) == above])[:employers]


@cache
def panel(employers: int, seed: int, *, above: bool | None = True, wages: int = 1) -> Cells:
    """The true and the distorted indicators; payrolls are multiples of `wages`."""
    rng = np.random.default_rng(seed)
    shape = (employers, GROUPS, QUARTERS)
    size = np.maximum(rng.lognormal(2.5, 0.6, (employers, GROUPS, 1)), 4)
    stayed = np.maximum(rng.normal(size, size**0.5 + 0.15 * size, shape), 0).astype(np.int64)
    came, left, brief = (rng.poisson(0.15 * size, shape) for _ in range(3))
    true = np.zeros((*shape, len(CODES)), dtype=np.int64)
    at = {code: place for place, code in enumerate(CODES)}
    true[..., at["employment"]] = stayed + came + left + brief
    true[..., at["beginning"]], true[..., at["end"]] = stayed + left, stayed + came
    true[..., at["full_quarter"]] = stayed
    true[..., at["accessions"]], true[..., at["separations"]] = came + brief, left + brief
    true[..., at["new_hires"]] = came + brief
    net = came - left
    true[..., at["job_creation"]], true[..., at["job_destruction"]] = np.maximum(net, 0), np.maximum(-net, 0)
    wage = rng.lognormal(9.3, 0.2, shape)
    paid, more = ((wage * of / wages).astype(np.int64) * wages for of in (stayed, came + left + brief))
    true[..., at["full_quarter_payroll"]], true[..., at["payroll"]] = paid, paid + more
    distorted = true * factors(employers, seed, above=above)[:, None, None, None]
    columns = {
        "count": true,
        "distorted": distorted // ONE,
        "remainder": distorted % ONE,
        "available": np.ones_like(true),
        "establishments": np.ones_like(true),
        "factors": np.ones_like(true),
        "deviation": np.ones_like(true),
    }
    dimensions = (
        Dimension(name="agency", codes=tuple(map(str, range(employers)))),
        Dimension(name="group", codes=tuple(map(str, range(GROUPS))), public=False),
        Dimension(name="quarter", codes=tuple(map(str, range(QUARTERS)))),
        Dimension(name=NAME, codes=CODES),
    )
    flat = {name: column.reshape(-1) for name, column in columns.items()}
    return Cells(dimensions=dimensions, positions=np.arange(true.size), columns=flat)


def published(method: InfusedSums, cells: Cells, seed: int) -> Cells:
    chance = CellWords(
        keyed=Keyed(key=bytes([seed]) * 16), cells=cells, topic="t", where={}, lasting=frozenset(["quarter"])
    )
    return method.protect(cells, chance).with_column("establishments", cells["establishments"])


def found(method: InfusedSums, cells: Cells, seed: int) -> tuple[int, int]:
    """How many factors the attack gets exactly, of how many."""
    bases = (method.rounding, method.earnings_rounding)
    answer = published(method, cells, seed)
    result = attack_factors(cells, answer, bases=bases, period="quarter", within=ENDS, most=50)
    return result.successes, result.targets


def test_factors_above_one_are_found_exactly_in_whole_numbers() -> None:
    successes, targets = found(OLD, panel(4, 1), 1)
    assert targets == 4
    assert successes >= 3


@pytest.mark.slow
def test_most_of_fifty_factors_above_one_are_found_exactly_in_whole_numbers() -> None:
    successes, targets = found(OLD, panel(50, 1), 1)
    assert targets == 50
    assert successes >= 30


def test_no_factor_is_found_in_multiples_of_the_base() -> None:
    assert found(NEW, panel(12, 1), 1) == (0, 12)
    assert found(NEW, panel(12, 2, above=False), 2) == (0, 12)


def test_there_is_nobody_to_attack_where_no_employer_has_a_cell_to_itself() -> None:
    cells = panel(2, 1)
    shared = cells.with_column("establishments", 2 * cells["establishments"])
    assert found(NEW, shared, 1) == (0, 0)


def test_no_factor_is_found_where_wages_are_round_sums() -> None:
    assert found(NEW, panel(12, 3, wages=EARNINGS), 3) == (0, 12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
def test_no_factor_is_found_in_multiples_of_the_base_whatever_the_seed(seed: int) -> None:
    assert found(NEW, panel(50, seed, above=None), seed) == (0, 50)
    assert found(NEW, panel(50, seed, above=None, wages=EARNINGS), seed) == (0, 50)


def drawn(values: int, base: int, factor: int, seed: int) -> Series:
    """Values far apart, each rounded by a threshold of its own."""
    rng = np.random.default_rng(seed)
    distorted = rng.integers(1, 1_000_000, values) * factor
    words = rng.integers(0, 2**63, values).astype(np.uint64)
    rounded = rounded_by_thresholds(distorted // ONE, distorted % ONE, words, base=base)
    return Series(values=rounded[rounded > 0], base=base)


@pytest.mark.parametrize("factor", [1_150_777, 1_231_007])
def test_the_attack_on_thresholds_works_when_there_are_many_times_as_many_values_as_the_base_is_for(
    factor: int,
) -> None:
    candidates = factors_within(*ENDS)
    enough, allowed = 300_000, 227
    assert least_base(allowed) == 3 < least_base(enough)
    assert likeliest_factor([drawn(enough, 3, factor, 1)], candidates) == factor
    assert likeliest_factor([drawn(allowed, 3, factor, 1)], candidates) != factor


@pytest.mark.parametrize("factor", [0.8, 1.2, 1.5, 1.9])
def test_no_value_tells_more_about_a_factor_than_the_bound(factor: float) -> None:
    """The variance of the density of a published value over one turn of the lattice, added up without harmonics."""
    places = np.linspace(0, factor, 2_001)[:-1]
    for base in (3, 5, 10):
        around = np.arange(-20, 21)[:, None] * factor - places
        density = np.maximum(1 - np.abs(around) / base, 0).sum(axis=0) * factor / base
        assert density.mean() == pytest.approx(1)
        assert density.var() <= factor**4 / (45 * base**4) * 1.0001 <= float(information(1, base)) * 1.0001


JOBS = """\
[release]
title = "Jobs of agencies"
period = "2000-2014"
key = "sfumato.key"

[data]
engine = "duckdb"
workplaces = { path = "employers.parquet", key = "employer" }
public = ["agency"]

[data.jobs]
path = "jobs.parquet"
worker = "worker"
workplace = "employer"
period = "quarter"
first = "2000-Q1"
last = "2014-Q4"
earnings = "earnings"

[[table]]
name = "workforce"
indicators = "all"
by = ["agency", "quarter"]
protect = { method = "noise-infusion" }
"""


@pytest.fixture
def agencies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with eight employers of about twenty workers each, over sixty quarters."""
    rng = np.random.default_rng(5)
    quarters = [f"{year}-Q{quarter}" for year in range(2000, 2015) for quarter in range(1, 5)]
    employer, worker, quarter = (part.ravel() for part in np.meshgrid(range(8), range(40), range(60), indexing="ij"))
    held = (worker + quarter // 3) % 40 < 15 + employer + rng.integers(0, 6, len(worker))
    jobs = {
        "worker": (100 * employer + worker)[held].tolist(),
        "employer": employer[held].tolist(),
        "quarter": [quarters[place] for place in quarter[held]],
        "earnings": rng.integers(5_000, 20_000, int(held.sum())).tolist(),
    }
    write(tmp_path / "jobs.parquet", jobs)
    write(tmp_path / "employers.parquet", {"employer": list(range(8)), "agency": [f"A{e}" for e in range(8)]})
    monkeypatch.setattr("sfumato.keys.secrets", SimpleNamespace(token_bytes=Random(18).randbytes))  # the same key
    new_key(tmp_path / "sfumato.key", a=Fraction("1.4"), b=Fraction("1.45"))
    return tmp_path


def attacked(folder: Path, options: str = "") -> tuple[int, int]:
    """How many factors above one the report of a release says can be computed, and how many there are."""
    release = folder / "release.toml"
    release.write_text(JOBS.replace('"noise-infusion"', f'"noise-infusion"{options}'))
    run(load(release))
    assessed = assess(load(release))
    attack = next(a for exposure in assessed.exposures for a in exposure.attacks if a.attack == "factor")
    assert "factor" in assessed.report.read_text()
    secret = read_key(folder / "sfumato.key")
    made = Factors(key=secret.key, least=secret.a - 1, most=secret.b - 1).of(hashes(list(map(str, range(8)))))
    return attack.successes, int((made > ONE).sum())


@pytest.mark.slow
def test_the_report_of_a_release_says_whether_factors_can_be_computed(agencies: Path) -> None:
    successes, above = attacked(agencies, ", rounding = 1")
    assert above > 0
    assert successes > 0
    (agencies / "ledger.sqlite").unlink()
    shutil.rmtree(agencies / "ledger.store")
    shutil.rmtree(agencies / "bundle")
    assert attacked(agencies)[0] == 0
