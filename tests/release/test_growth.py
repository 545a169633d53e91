"""Growth of totals from month to month: right where levels are moved, published with its error, and whom it shows."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.errors import ReleaseError
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.report.preview import preview
from sfumato.running import run
from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import BundleSource, open_catalogue
from sfumato.serve.pxweb.listing import table_summary
from sfumato.statistics.totals.growth_table import POINTS
from tests.cli.call import call
from tests.conftest import same_key
from tests.identity.every_kind import MONTHS, planned
from tests.release.power_plants import release, write_plants
from tests.serve.in_thread import asking

TOTAL = """
[[table]]
name = "generation"
total = "generated"
by = ["month", "state"]
protect = { method = "top-contributors" }
"""
GROWTH = """
[[table]]
name = "growth"
title = "Growth of generation"
growth = { of = "generated", since = ["previous", "year"] }
by = ["month", "state"]
protect = { method = "top-contributors" }
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (', period = "month"', "", "records without a period"),
        ('by = ["month", "state"]', 'by = ["state"]\nwhere = { month = "2025-02" }', "growth is from one to another"),
        ('["2024-01", "2025-01", "2025-02"]', '["2024", "2025"]', 'leave "year" out'),
        ('["2024-01", "2025-01", "2025-02"]', '["early", "late"]', "months such as 2025-01"),
        ('["2024-01", "2025-01", "2025-02"]', '["2025-02", "2025-01"]', "in their order"),
        ('"top-contributors"', '"perturbed-values"', "top-contributors, the method for such tables"),
        ('"turnover", since', '"turnovr", since', "did you mean 'turnover'"),
    ],
)
def test_what_has_no_growth_is_refused_before_anything_is_read(
    old: str, new: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert old in MONTHS
    with pytest.raises(ReleaseError, match=words):
        planned(tmp_path, MONTHS.replace(old, new), monkeypatch)


def written(folder: Path, text: str, name: str = "release") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text.replace("[data]", f'bundle = "{name}"\nledger = "{name}.sqlite"\n\n[data]', 1))
    return path


def truth(folder: Path, since: int) -> pd.Series:
    """True growth in percent, by state and month."""
    frame = pq.read_table(folder / "plants.parquet").to_pandas()
    totals = frame.groupby(["month", "state"])["generated"].sum().unstack("state")
    return (100 * totals.pct_change(since)).unstack()


def published(bundle: Path, table: str = "growth") -> pd.DataFrame:
    found = pq.read_table(bundle / f"tables/{table}.parquet").to_pandas()
    return found.astype({name: str for name in ("month", "state", "since") if name in found})


@pytest.fixture(scope="module")
def plants(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plants of five years with totals and growth, published."""
    folder = tmp_path_factory.mktemp("plants")
    codes = write_plants(folder)
    run(load(written(folder, release(codes, TOTAL + GROWTH))))
    return folder


@pytest.mark.slow
def test_growth_errs_by_less_than_a_point_where_the_obvious_way_errs_by_fifteen(tmp_path: Path) -> None:
    """The obvious way perturbs every month anew: here every row is a unit of its own."""
    kept, anew = [], []
    for key in range(3):
        folder = tmp_path / str(key)
        folder.mkdir()
        codes = write_plants(folder, key=key)
        true = truth(folder, 1)
        for found, unit in ((kept, "plant"), (anew, "row")):
            path = written(folder, release(codes, TOTAL, unit=unit, period=unit == "plant"), unit)
            values = published(run(load(path)).bundle, "generation").pivot_table(
                index="month", columns="state", values="value"
            )
            found.append((100 * values.pct_change()).unstack().sub(true).abs().mean())
    print(f"growth is off by {kept} points with one key for ever, by {anew} with keys anew")
    assert np.mean(kept) < 1
    assert np.mean(anew) > 12


@pytest.mark.slow
def test_published_growth_is_that_of_published_totals(plants: Path) -> None:
    totals = published(plants / "release", "generation").pivot_table(index="month", columns="state", values="value")
    rows = published(plants / "release")
    for since, back in (("previous", 1), ("year", 12)):
        expected = (100 * totals.pct_change(back)).unstack().dropna()
        found = rows[rows["since"] == since].set_index(["state", "month"])["value"].dropna()
        assert len(found) == len(expected)
        assert (found - expected.reindex(found.index)).abs().max() <= 0.005 + 1e-9
    first = rows[(rows["month"] == "2021-01") | ((rows["since"] == "year") & (rows["month"] < "2022"))]
    assert set(first["status"]) == {"not available"}
    assert first["value"].isna().all()


@pytest.mark.slow
def test_errors_are_on_a_coarse_scale_and_intervals_hold_as_often_as_they_say(plants: Path, tmp_path: Path) -> None:
    held = []
    for key in range(4):
        folder = plants
        if key:
            folder = tmp_path / str(key)
            folder.mkdir()
            codes = write_plants(folder, key=key)
            run(load(written(folder, release(codes, GROWTH))))
        rows = published(folder / "release").dropna(subset=["error", "low"])
        steps = np.abs(rows["error"].to_numpy()[:, None] - POINTS).min(axis=1)
        assert steps.max() < 1e-9
        for since, back in (("previous", 1), ("year", 12)):
            some = rows[rows["since"] == since].set_index(["state", "month"])
            true = truth(folder, back).reindex(some.index)
            held.append(((some["low"] <= true) & (true <= some["high"])).mean())
            assert some["error"].mean() >= (some["value"] - true).abs().mean()
    assert np.mean(held) >= 0.9


@pytest.mark.slow
def test_the_report_shows_errors_of_growth_and_the_attack_on_units_that_dominate(tmp_path: Path) -> None:
    """In each of ten states one plant has nine tenths: its growth is told, and the report says so."""
    rng, months = np.random.default_rng(2), [f"2025-{month:02d}" for month in range(1, 13)]
    size = np.where(np.arange(100) % 10 == 0, 81_000_000, 1_000_000)
    values = (size * np.exp(rng.normal(0, 0.1, (12, 100)))).astype(np.int64)
    columns = {
        "plant": np.tile(np.arange(100), 12),
        "month": np.repeat(months, 100),
        "state": np.tile([f"S{at // 10 + 1:02d}" for at in range(100)], 12),
        "fuel": ["gas"] * 1200,
        "generated": values.ravel(),
    }
    pq.write_table(pa.table(columns), tmp_path / "plants.parquet")
    same_key(tmp_path / "sfumato.key")
    path = written(tmp_path, release(tuple(months), TOTAL + GROWTH).replace(', "year"]', "]"))
    (trial,) = preview(load(path)).candidates
    run(load(path))
    found = assess(load(path))
    attacks = {(title, tried.attack): tried for title, tried in found.attacks() if "growth" in tried.attack}
    assert len(attacks) == 2, "of the totals, and of the growth that is published of them"
    for tried in attacks.values():
        assert tried.targets == 110
        assert tried.success_rate > 0.3, "the same key moves both months alike: it hides no growth"
    assert dict(trial.assessment.attacks()).keys() == dict(found.attacks()).keys()
    statement = (tmp_path / "release/statement.md").read_text(encoding="utf-8")
    assert "its growth from one period to another is published nearly as it is" in " ".join(statement.split())
    (growth,) = (one for one in found.utilities if one.name == "growth")
    assert growth.mean_error == pytest.approx(growth.expected_error, rel=0.5)


@pytest.mark.slow
def test_readers_get_months_and_growth_from_the_command_and_the_server(plants: Path) -> None:
    done = call("query", plants / "release", "growth", "--where", "state=S01", "--where", "since=year")
    assert "2022-01" in done.stdout
    catalogue = open_catalogue([BundleSource(folder=plants / "release")])
    growth = catalogue["growth"]
    assert growth.time is not None
    assert growth.time.codes[0] == "2021-01"
    assert table_summary(growth, Settings())["timeUnit"] == "Monthly"
    assert [dimension.name for dimension in growth.dimensions] == ["month", "state", "since"]
    with asking(make_app(catalogue, Settings())) as client:
        asked = "/sdmx/2.1/data/growth/S01.year.growth_of_generated?startPeriod=2022-03&endPeriod=2022-04"
        told = client.get(asked, headers={"accept": "application/vnd.sdmx.data+csv;version=1.0.0"}).text.splitlines()
    rows = published(plants / "release")
    chosen = rows[(rows["state"] == "S01") & (rows["since"] == "year") & rows["month"].isin(["2022-03", "2022-04"])]
    assert [row.split(",")[4:6] for row in told[1:]] == [
        [month, f"{value:g}"] for month, value in zip(chosen["month"], chosen["value"], strict=True)
    ]
    again = run(load(plants / "release.toml"))
    assert not again.charged
