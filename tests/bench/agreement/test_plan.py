"""Plans that are measured: tables that are not measured are sums of those they lie in, by levels too."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from bench.agreement.nation import release_text
from bench.agreement.plan import added_up, counted, measure
from sfumato.errors import SfumatoError
from sfumato.release import load


@pytest.fixture
def nation(release_folder: Path) -> Path:
    """The tables of a nation, of the small economy: districts, counties and states are digits of places."""
    path = release_folder / "together.toml"
    path.write_text(release_text("together"), encoding="utf-8")
    return path


def test_true_values_of_every_table_are_sums_of_the_finest(nation: Path) -> None:
    truth, above = counted(load(nation))
    finest = truth["place_industry"]
    for cells in truth.values():
        sums = added_up(cells, {"place_industry": (finest, finest["count"].astype(np.float64))}, above)
        assert sums.tolist() == cells["count"].tolist()
    with pytest.raises(SfumatoError, match="a measured table whose cells add up to its own"):
        added_up(finest, {"place": (truth["place"], truth["place"]["count"].astype(np.float64))}, above)


def test_a_plan_with_tables_that_are_sums_by_levels_is_measured(nation: Path) -> None:
    names = [table.name for table in load(nation).tables]
    found = measure(nation, dict.fromkeys(names, "50%"), Fraction(8), 20.0, 1)["splits"]["plan"]
    assert not found["epsilon"]["state_sector"]
    assert found["measured"].keys() == set(names)
