"""Nobody gets a second, independent perturbation of the same units: what was published keeps its key."""

from pathlib import Path

import pytest

from sfumato.errors import KeyFileError
from sfumato.keys import new_key
from sfumato.release import load
from sfumato.running import Published, run

pytestmark = pytest.mark.slow

RELEASE = """
[release]
title = "Turnover"
{account}
key = "{key}.key"
ledger = "ledger.sqlite"
bundle = "{bundle}"
{more}

[data]
records = {{ path = "{path}", unit = "firm" }}

[data.attributes]
place = {{ codes = ["01", "02", "03"] }}

[data.measures]
turnover = {{ unit = "euros" }}

[[table]]
name = "turnover"
total = "turnover"
by = ["place"]
protect = {{ method = "top-contributors" }}
{asked}
"""
EVERYTHING = 'where = { place = ["01", "02", "03"] }'
YEAR, SERIES = 'period = "2026"', '\n[series]\nfirst = "2026"'


def firms(path: Path, *, first: int = 1000) -> None:
    rows = [f"{number},0{1 + number % 3},{1000 + 37 * number}" for number in range(1, 60)]
    path.write_text("\n".join(["firm,place,turnover", f"60,01,{first}", *rows]), encoding="utf-8")


@pytest.fixture
def office(tmp_path: Path) -> Path:
    for name in ("one", "other"):
        new_key(tmp_path / f"{name}.key")
    for year in ("2026", "2027"):
        firms(tmp_path / f"firms_{year}.csv")
    return tmp_path


def publish(folder: Path, key: str, asked: str = "", *, more: str = "", account: str = YEAR) -> Published:
    text = RELEASE.format(
        account=account, key=key, bundle=f"bundle-{key}", more=more, path="firms_2026.csv", asked=asked
    )
    (folder / "release.toml").write_text(text, encoding="utf-8")
    return run(load(folder / "release.toml"))


def publish_period(folder: Path, key: str, year: str, *, rekeyed: bool = False, revise: str | None = None) -> Published:
    more = ("rekeyed = true" if rekeyed else "") + SERIES
    text = RELEASE.format(account="", key=key, bundle="bundle", more=more, path="firms_{period}.csv", asked="")
    (folder / "release.toml").write_text(text, encoding="utf-8")
    return run(load(folder / "release.toml", year), revise=revise)


def test_a_filter_that_leaves_nothing_out_is_no_way_to_another_key(office: Path) -> None:
    publish(office, "one")
    for asked in (EVERYTHING, 'where = { place = ["01", "02"] }', ""):
        with pytest.raises(KeyFileError, match="average"):
            publish(office, "other", asked)
    with pytest.raises(KeyFileError, match="average"):
        publish(office, "other", EVERYTHING, account='population = "others"\nperiod = "2026"')
    assert publish(office, "one", EVERYTHING).charged == ("turnover",)


def test_after_a_leak_the_new_key_is_the_one_that_is_expected(office: Path) -> None:
    publish(office, "one")
    assert publish(office, "other", EVERYTHING, more="rekeyed = true").charged == ("turnover",)
    assert publish(office, "other", 'where = { place = ["01", "02"] }').charged == ("turnover",)
    assert publish(office, "one", more="rekeyed = true").charged == (), "what was published stays as it was"
    with pytest.raises(KeyFileError, match="average"):
        publish(office, "one", 'where = { place = ["03"] }')


def test_neither_a_revision_nor_the_next_period_of_a_series_has_another_key(office: Path) -> None:
    publish_period(office, "one", "2026")
    firms(office / "firms_2026.csv", first=2000)
    with pytest.raises(KeyFileError, match="the series was published with last"):
        publish_period(office, "other", "2026", revise="late report")
    with pytest.raises(KeyFileError, match="the series was published with last"):
        publish_period(office, "other", "2027")
    publish_period(office, "one", "2026", revise="late report")
    assert publish_period(office, "other", "2027", rekeyed=True).charged


def test_a_revised_period_keeps_its_own_key_after_a_later_one_got_another(office: Path) -> None:
    publish_period(office, "one", "2026")
    firms(office / "firms_2027.csv", first=3000)
    publish_period(office, "other", "2027", rekeyed=True)
    firms(office / "firms_2026.csv", first=2000)
    with pytest.raises(KeyFileError, match="average"):
        publish_period(office, "other", "2026", revise="late report")
    assert publish_period(office, "one", "2026", revise="late report").charged
