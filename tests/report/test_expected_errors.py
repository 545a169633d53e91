"""The errors that a report expects of a panel are those that its figures have, over many keys."""

from collections import defaultdict
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from sfumato.keys import new_key
from sfumato.release import load
from sfumato.report.preview import preview
from tests.docs.blocks import ROOT, blocks, run_block

KEYS = 16
BY_SEX = """
[[table]]
name = "by_sex"
indicators = "all"
by = ["region", "industry", "sex", "quarter"]
protect = { method = "noise-infusion" }
"""


@pytest.mark.slow
def test_expected_errors_of_indicators_are_those_observed_over_several_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every indicator has its base, differences are rounded twice, and tables that are sums of a finer one more."""
    monkeypatch.chdir(tmp_path)
    # The same keys in every run: the factors of a few large employers decide how far totals are off.
    drawn = Random(18)
    keys = SimpleNamespace(token_bytes=drawn.randbytes, randbelow=drawn.randrange)
    monkeypatch.setattr("sfumato.keys.secrets", keys)
    for block in blocks(ROOT / "docs/tasks/panel.md"):
        if block.kind != "console":
            run_block(block, {})
    text = Path("release.toml").read_text(encoding="utf-8")
    text = text.replace('["employment", "accessions", "separations", "payroll"]', '"all"') + BY_SEX
    observed, expected = defaultdict[str, float](float), defaultdict[str, float](float)
    for number in range(KEYS):
        new_key(tmp_path / f"{number}.key")
        release = tmp_path / f"{number}.toml"
        release.write_text(text.replace("sfumato.key", f"{number}.key"), encoding="utf-8")
        (candidate,) = preview(load(release), report=tmp_path / "confidential" / "preview.html").candidates
        for utility in candidate.assessment.utilities:
            observed[utility.name] += utility.mean_error
            expected[utility.name] += utility.expected_error
    ratios = {name: observed[name] / expected[name] for name in observed}
    assert len(ratios) == 39
    grown = ("/job_creation", "/job_destruction")  # of coarser tables they are no sums, which is not looked at
    for name, ratio in ratios.items():
        assert (0.5 if name.endswith(grown) else 0.75) < ratio < 1.3, name
