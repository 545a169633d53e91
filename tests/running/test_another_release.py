"""A run does not publish over the bundle of another release, unless it is told to."""

from pathlib import Path

import pytest

from sfumato.bundle.write import refuse_another
from sfumato.errors import BundleError
from sfumato.release import load
from sfumato.running import run
from tests.cli.call import call
from tests.release.test_release_file import GOOD, written

OTHER = GOOD.replace('title = "Jobs"', 'title = "Posts"').replace('name = "by_', 'name = "posts_by_')


@pytest.mark.slow
def test_the_bundle_of_another_release_is_replaced_only_when_that_is_said(tiny: Path) -> None:
    bundle = run(load(written(tiny, GOOD))).bundle
    before, charged = (bundle / "manifest.json").read_bytes(), (tiny / "ledger.sqlite").read_bytes()
    file = written(tiny, OTHER)
    refused = call("run", file, refused=True).stderr
    assert "the bundle of another release, 'Jobs', with by_place, by_industry" in refused
    assert "--replace" in refused
    assert (bundle / "manifest.json").read_bytes() == before
    assert (tiny / "ledger.sqlite").read_bytes() == charged, "refused before anything is charged"
    call("run", file, "--replace")
    assert (bundle / "tables/posts_by_place.csv").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('title = "Jobs"', 'title = "Jobs, revised"'),
        ('name = "by_', 'name = "jobs_by_'),
        ("epsilon = 2.0", "epsilon = 1"),
    ],
    ids=["title", "tables", "protection"],
)
def test_a_release_that_changed_is_published_over_its_own_bundle(old: str, new: str, tiny: Path) -> None:
    run(load(written(tiny, GOOD)))
    changed = load(written(tiny, GOOD.replace(old, new)))
    names = [table.name for table in changed.tables]
    refuse_another(changed.bundle, changed.about, names)
    elsewhere = changed.about.model_copy(update={"title": "Others", "population": "others"})
    with pytest.raises(BundleError, match="another release"):
        refuse_another(changed.bundle, elsewhere, names)
