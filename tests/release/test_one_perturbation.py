"""Units of a population are perturbed in one way as long as their key: two ways can be solved for the truth."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sfumato.errors import KeyFileError
from sfumato.keys import new_key
from sfumato.live.guarded import open_guarded
from sfumato.release import load
from sfumato.running import Published, run

RELEASE = """
[release]
title = "Turnover"
population = "firms"
period = "{period}"
key = "{key}.key"
ledger = "ledger.sqlite"
bundle = "{bundle}"
{more}

[data]
records = {{ path = "{path}", unit = "firm"{records} }}

[data.attributes]
place = {{ codes = ["01", "02", "03"] }}
month = {{ codes = ["1", "2"] }}

[data.measures]
turnover = {{ unit = "euros" }}

[[table]]
name = "turnover"
total = "turnover"
by = ["month", "place"]
protect = {{ method = "top-contributors", magnitudes = {magnitudes} }}
"""
MONTHLY = ', period = "month"'
LESS, MORE = "[0.4, 0.2, 0.1]", "[0.6, 0.3, 0.15]"


@pytest.fixture
def office(tmp_path: Path) -> Path:
    for name in ("one", "other"):
        new_key(tmp_path / f"{name}.key")
    for months in (1, 2):
        rows = [
            f"{firm},{firm // 4},{month},0{1 + firm % 3},{1000 + 37 * firm + month}"
            for month in range(1, months + 1)
            for firm in range(1, 60)
        ]
        text = "\n".join(["firm,group,month,place,turnover", *rows])
        (tmp_path / f"firms_{months}.csv").write_text(text, encoding="utf-8")
    return tmp_path


def publish(folder: Path, months: int, magnitudes: str = LESS, **changes: Any) -> Published:
    said: dict[str, Any] = {"period": "2026", "key": "one", "bundle": "bundle", "more": "", "records": MONTHLY}
    text = RELEASE.format(**said | {"path": f"firms_{months}.csv", "magnitudes": magnitudes} | changes)
    (folder / "release.toml").write_text(text, encoding="utf-8")
    return run(load(folder / "release.toml"))


def test_a_file_that_grew_by_a_month_keeps_its_options(office: Path) -> None:
    """With others, three times the one less two times the other was the true total of every cell."""
    before = publish(office, 1)
    for period in ("2026", "2026 and 2027"):
        with pytest.raises(KeyFileError, match=r"solved for the truth(.|\n)*other options"):
            publish(office, 2, MORE, period=period)
    after = publish(office, 2)
    assert after.charged == ("turnover",)
    january = [
        {row["place"]: row["value"] for row in pq.read_table(bundle).to_pylist() if row["month"] == "1"}
        for bundle in (before.bundle / "tables/turnover.parquet", after.bundle / "tables/turnover.parquet")
    ]
    assert january[0] == january[1], "the same units, the same key, the same options"


def test_the_same_options_again_are_no_other_ones(office: Path) -> None:
    publish(office, 1)
    assert publish(office, 1).charged == ()
    assert publish(office, 2, period="2027").charged == ("turnover",)


def test_levels_are_neither_added_nor_dropped(office: Path) -> None:
    publish(office, 1, records=MONTHLY + ', levels = ["group"]')
    with pytest.raises(KeyFileError, match="other levels of units"):
        publish(office, 1)
    with pytest.raises(KeyFileError, match="other levels of units"):
        publish(office, 2)
    assert publish(office, 2, records=MONTHLY + ', levels = ["group"]').charged == ("turnover",)


def test_a_file_that_grew_by_a_month_keeps_its_key(office: Path) -> None:
    publish(office, 1)
    with pytest.raises(KeyFileError, match="average"):
        publish(office, 2, key="other", period="2026 and 2027")
    rotated = publish(office, 2, MORE, key="other", period="2026 and 2027", more="rekeyed = true")
    assert rotated.charged == ("turnover",), "another key may have other options"


def test_ad_hoc_tables_are_perturbed_as_published_ones(office: Path) -> None:
    publish(office, 1)
    text = (office / "release.toml").read_text(encoding="utf-8")
    (office / "release.toml").write_text(text.replace(LESS, MORE), encoding="utf-8")
    with pytest.raises(KeyFileError, match="other options"), open_guarded(load(office / "release.toml")):
        pass


def test_another_population_has_options_of_its_own(office: Path) -> None:
    publish(office, 1)
    text = (office / "release.toml").read_text(encoding="utf-8")
    text = text.replace('"firms"', '"exporters"').replace("firms_1", "firms_2").replace(LESS, MORE)
    (office / "release.toml").write_text(text.replace('"bundle"', '"exports"'), encoding="utf-8")
    assert run(load(office / "release.toml")).charged == ("turnover",)
