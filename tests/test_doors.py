"""The public doors: what a program needs, under one name, opened when it is used."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato


def test_the_doors_lead_from_a_release_file_to_a_bundle(release_folder: Path) -> None:
    release = sfumato.load(release_folder / "release.toml")
    found = sfumato.check(release)
    assert found.refusal is None
    published = sfumato.run(release)
    bundle = sfumato.open_bundle(published.bundle)
    names = [item.name for item in bundle.contents]
    assert names == [table.name for table in published.plan.tables]
    rows = bundle.rows(names[0])
    assert len(rows) > 0
    assert set(rows.column_names) >= {*bundle.structure["tables"][0]["columns"]} - {"establishments"}
    assert bundle.codes(bundle.structure["tables"][0]["dimensions"][0]["name"])
    assert release.about.title in bundle.statement
    assert sfumato.assess(release).report.is_file()


def test_every_door_is_listed_and_no_other_leads_anywhere() -> None:
    assert {*sfumato.__all__} <= {*dir(sfumato)}
    assert all(callable(getattr(sfumato, name)) for name in sfumato.__all__)
    with pytest.raises(AttributeError, match="publish"):
        sfumato.publish  # type: ignore[attr-defined]  # noqa: B018


def test_a_door_stays_a_door_whatever_was_imported_before() -> None:
    code = (
        "import sfumato.running, sfumato.checking, sfumato.measures.risk, sfumato; import json; "
        "print(json.dumps([type(getattr(sfumato, name)).__name__ for name in sfumato.__all__]))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert set(json.loads(found)) == {"function"}
