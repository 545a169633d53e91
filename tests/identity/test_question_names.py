"""Which questions are the same: names of version 0.1 stay what they were, and new ones do not depend on order."""

import re
from pathlib import Path

import pytest

from tests.identity.every_kind import CUBES, FILES, planned

NAMES_IN_0_1 = {
    "jobs count": "4f2a86c7b32c163001cff7852c0d5d19c5aa315d58805c5ee21698f30828d097",
    "jobs keyed": "a800be92d1fa184f34f91a2bf67a7c755c31078e164c01a066f1675805bc3da8",
    "jobs keyed any key": "71499162f9e79105650e6ebdbe630e39939e640a53803c8ec6a5f541df3f849c",
    "jobs graph": "60d0a30f74b4967520075575cdadfdd6c0e9ac05f9d0c0bb6b759b24a73f35d7",
    "jobs graph any key": "1abd3a901249fee8e455174631e09fac5e1fb14ea4c585b08027f2012331d2e4",
    "panel indicators": "589d45d35f08a5ef4e259eecff7d0cbc080de5a510d049001c0b33205772192e",
    "panel indicators any key": "16dcfed00b2dd588b77c9db3baafb1b32c5767a9476e341dc10f32add7a2eaca",
    "panel flow": "564b419ccb84b57b1ecba090f14fefae90cf65b9d9d0aa5dac5382cc04dd0036",
    "panel flow any key": "ced528e9cefb9e8ddc36a584a60aa3029e5aa06a441f9e321d8bc18bf9ea9683",
    "panel exchange": "8a973be79a69919c0d2479cf9a6c0c5de0f95c5a3bf04b95d1a09b596c7d77fc",
    "panel exchange any key": "dbe645cebb47579ee1c8ec7206029d00e37387828059e4fc8f4264f26869df12",
    "businesses total": "eda54a78c29c203b570e2c819a2e6ea0eed6cb0856348f321544df1b4ee5e882",
    "businesses total any key": "e58f477f66ab80ed26c813e4e18e543d594b4817183545c6c260d6e6a6aeba0f",
    "businesses mean": "f211a674692c9fbf24fda28bf7eb84653aef075fc0e877ddfd84fba7b8d8c052",
    "businesses mean any key": "85a7143909e7e435ebf7fd2bbdf756f80675ab5d1ae0c0d818e0528c3556523f",
    "businesses records": "f5595d4994d3af371789aa98be4515890790dd4a5fd889685b35bb488077adbb",
    "businesses records any key": "1057b3e029144ebc58121e72c6b0434e90a6b34d7215cd212ab14e81d9e4fbd1",
    "people employment": "33758d9378d46e8c4c4015cebff976c78c9b93fef42a3e19181c2a59462968ee",
    "people earnings": "da2d1b81dedac15ef57734f8dca0ee65cc727bd5a9a8fd3936231216bb42fd9f",
    "people scores": "970856bb35ec63e421cc3eec0191206b557554ff29c1b9d26f2c97241e6da6e8",
    "people percentiles": "78bb57fcdb29a7393b57b021bcc33e3db4fe1ca2b13ceea4c48b52148286edab",
    "cubes people": "883db95b8ce9688281a9bd5a4ed83fa27ef398613843727e3c42aa0b078e2939",
    "cubes levels": "39258c7dd48e6613ea111be4a9d4c0a8f76a3057163bdcc8d4dcd570e134a1bc",
    "cubes public": "8c6d300c2bb4acd5cd748e7d2ee422e4dd7243f3c3cba06dfe7ab4f25a83d93a",
}
"""What version 0.1 called these questions to data called da7a: answers of its time are stored under such names."""


SINCE = {"sparse", "degrees", "growth", "paid_jobs", "pay", "hours", "pay_by_sex", "mean_pay"} | {
    *("jobs_at", "jobs_at_each", "pay_at", "mean_at")
}
SINCE |= {"protected_indicators", "ends", "main_moves"}
SINCE |= {"values", "profits", "mean_of_values"}
SINCE |= {"sum_of_people", "mean_of_people", "counted_people"}
SINCE |= {"true", "true_of_women", "rounded", "rounded_number"}
"""The tables that version 0.1 could not make."""


@pytest.mark.parametrize("file", FILES)
def test_the_names_of_version_0_1_can_still_be_told(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(tmp_path, FILES[file], monkeypatch)
    # Version 0.1 rounded to whole numbers and had other bins: so a question is looked for when the ledger has one.
    tables = [(table.before or table).in_whole_numbers() for table in plan.tables if table.name not in SINCE]
    found = {f"{file} {part.name}": part.digest_as_laid_out("da7a") for part in (*tables, *plan.cubes)}
    keyed = {table.name: table for table in tables if table.key}
    found |= {f"{file} {name} any key": t.digest_as_laid_out("da7a", any_key=True) for name, t in keyed.items()}
    assert found == {name: digest for name, digest in NAMES_IN_0_1.items() if name.split()[0] == file}


REORDERED = {
    "months": [
        ('by = ["month", "state"]', 'by = ["state", "month"]'),
        ('["previous", "year"]', '["year", "previous"]'),
    ],
    "jobs": [
        ('by = ["place", "industry", "sex"]', 'by = ["sex", "industry", "place"]'),
        ('["3", "2"]', '["2", "3"]'),
        ('codes = ["62", "11"]', 'codes = ["11", "62"]'),
        ('by = ["sex", "place"]', 'by = ["place", "sex"]'),
        ('graph = { attribute = ["place", "industry"] }', 'graph = { attribute = ["industry", "place"] }'),
    ],
    "pay": [
        ('by = ["place", "industry"]\nwhere', 'by = ["industry", "place"]\nwhere'),
        ('by = ["sex", "place"]', 'by = ["place", "sex"]'),
        ('codes = ["62", "11"]', 'codes = ["11", "62"]'),
    ],
    "panel": [
        ('by = ["state", "quarter", "sex"]', 'by = ["quarter", "sex", "state"]'),
        ('attribute = ["state", "agency"]', 'attribute = ["agency", "state"]'),
        ('by = ["quarter", "sex"]', 'by = ["sex", "quarter"]'),
        ('codes = ["X", "Y"]', 'codes = ["Y", "X"]'),
    ],
    "at_periods": [
        ('by = ["state", "quarter", "sex"]', 'by = ["quarter", "sex", "state"]'),
        ('["2025-Q1", "2024-Q4"]', '["2024-Q4", "2025-Q1"]'),
        ('{ "2025-Q1" = 1, "2024-Q4" = 2 }', '{ "2024-Q4" = 2, "2025-Q1" = 1 }'),
        ('codes = ["X", "Y"]', 'codes = ["Y", "X"]'),
    ],
    "histories": [
        ('by = ["state", "quarter", "sex"]', 'by = ["quarter", "sex", "state"]'),
        ('["2024-Q3", "2024-Q4"]', '["2024-Q4", "2024-Q3"]'),
        ('["end", "beginning"]', '["beginning", "end"]'),
        ("payroll = 1, changes = 1, counts = 2", "counts = 2, changes = 1, payroll = 1"),
        ('attribute = ["state", "agency"]', 'attribute = ["agency", "state"]'),
        ('codes = ["X", "Y"]', 'codes = ["Y", "X"]'),
    ],
    "people_sums": [
        ('by = ["sector", "title", "year"]', 'by = ["year", "sector", "title"]'),
        ("{ 2001 = 1, 2002 = 2 }", "{ 2002 = 2, 2001 = 1 }"),
    ],
    "values": [
        ('by = ["state", "industry"]', 'by = ["industry", "state"]'),
        ('["Z", "X"]', '["X", "Z"]'),
        ('codes = ["X", "Y", "Z"]', 'codes = ["Z", "Y", "X"]'),
    ],
    "businesses": [
        ('by = ["state", "industry"]', 'by = ["industry", "state"]'),
        ('by = ["industry", "state"]\nwhere', 'by = ["state", "industry"]\nwhere'),
    ],
    "people": [
        ('by = ["title", "sector", "year"]', 'by = ["year", "sector", "title"]'),
        ("at = [25, 75]", "at = [75, 25]"),
        ('by = ["year", "title"]', 'by = ["title", "year"]'),
    ],
    "true_jobs": [('by = ["place", "industry"]', 'by = ["industry", "place"]')],
    "true_records": [('by = ["state", "industry"]', 'by = ["industry", "state"]')],
    "cubes": [
        ('by = ["region", "job", "level"]', 'by = ["level", "region", "job"]'),
        (
            '[{ by = ["region"], epsilon = 0.5 }, { by = ["level", "job"], epsilon = 0.5 }]',
            '[{ by = ["job", "level"], epsilon = 0.5 }, { by = ["region"], epsilon = 0.5 }]',
        ),
        ('levels = [["job"], ["level"]]', 'levels = [["level"], ["job"]]'),
        ('by = ["level", "region"]', 'by = ["region", "level"]'),
        ('region = { codes = ["N", "E", "S", "W"] }', 'region = { codes = ["W", "E", "S", "N"] }'),
    ],
}


@pytest.mark.parametrize("file", FILES)
def test_the_same_question_in_another_order_has_the_same_name(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = FILES[file]
    for old, new in REORDERED[file]:
        assert old in text
        text = text.replace(old, new, 1)
    as_written, reordered = (planned(tmp_path / name, t, monkeypatch) for name, t in (("a", FILES[file]), ("b", text)))
    names = [{one.name: one.digest("da7a") for one in plan.statistics} for plan in (as_written, reordered)]
    assert names[0] == names[1]
    assert as_written != reordered


def test_the_order_of_measures_makes_no_other_cube(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two = CUBES.replace("[data.measures]", "[data.measures]\nhours = {}").replace('["pay"]', '["pay", "hours"]')
    other = two.replace('["pay", "hours"]', '["hours", "pay"]')
    names = [planned(tmp_path / n, t, monkeypatch).cubes[0].digest("da7a") for n, t in (("a", two), ("b", other))]
    assert names[0] == names[1]


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("jobs", 'by = ["place", "industry", "sex"]', 'by = ["place", "sex"]'),
        ("jobs", '["3", "2"]', '["3", "1"]'),
        ("jobs", "epsilon = 3", "epsilon = 3.5"),
        ("pay", "cap = 3000", "cap = 4000"),
        ("pay", 'total = "hours"', 'total = "earnings"'),
        ("pay", 'total = "earnings"', 'total = "hours"'),
        ("panel", 'attribute = "state", directed = false', 'attribute = "state", directed = true'),
        ("panel", 'attribute = "state", directed = false', 'attribute = "agency", directed = false'),
        ("at_periods", 'where = { quarter = ["2025-Q1", "2024-Q4"] }', 'where = { quarter = ["2025-Q1", "2024-Q3"] }'),
        ("at_periods", 'where = { quarter = "2024-Q4" }', 'where = { quarter = "2024-Q3" }'),
        ("at_periods", '"2025-Q1" = 1, "2024-Q4" = 2', '"2025-Q1" = 2, "2024-Q4" = 1'),
        ("histories", "cap = 60000", "cap = 50000"),
        ("histories", '["end", "beginning"]', '["end"]'),
        ("histories", "counts = 2", "counts = 3"),
        ("histories", '"2024-Q3" = 4', '"2024-Q3" = 5'),
        ("histories", 'protect = { method = "laplace", epsilon = 4 }', 'protect = { method = "laplace", epsilon = 5 }'),
        ("people", "at = [25, 75]", "at = [25, 50]"),
        ("cubes", '{ by = ["region"], epsilon = 0.5 }', '{ by = ["job"], epsilon = 0.5 }'),
        ("cubes", 'levels = [["job"], ["level"]]', 'levels = [["job"]]'),
        ("months", '["previous", "year"]', '["previous"]'),
        ("months", 'method = "top-contributors"', 'method = "top-contributors", magnitudes = [0.5]'),
    ],
)
def test_another_question_has_another_name(
    file: str, old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert re.search(re.escape(old), FILES[file])
    texts = (("a", FILES[file]), ("b", FILES[file].replace(old, new, 1)))
    one, other = (planned(tmp_path / name, text, monkeypatch) for name, text in texts)
    changed = [
        a.name for a, b in zip(one.statistics, other.statistics, strict=True) if a.digest("da7a") != b.digest("da7a")
    ]
    assert len(changed) == 1
