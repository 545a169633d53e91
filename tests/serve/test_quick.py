"""What takes long is worked out in a thread of its own: the server answers others meanwhile."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import get_ident

import pytest

from sfumato.serve.app import make_app
from sfumato.serve.core import figures as cube_figures
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import BundleSource, Catalogue, open_catalogue
from sfumato.serve.core.figures import CubeFigures
from sfumato.serve.core.model import Figures, Selection
from sfumato.serve.core.selection import read_groupings
from tests.serve.in_thread import asking

HALVES = """[[grouping]]
name = "halves"
dimension = "region"
label = "Halves"
groups = { a = { label = "A", codes = ["N"] }, b = { label = "B", codes = ["S"] } }
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Noting(CubeFigures):
    """The figures of a cube, and the threads they were worked out in."""

    threads: list[int] = field(default_factory=list)

    def figures(self, selection: Selection) -> Figures:
        self.threads.append(get_ident())
        return super().figures(selection)


@pytest.fixture
def noting(bundles: dict[str, Path], tmp_path: Path) -> Catalogue:
    """The cube of the survey with groups of regions; nothing was asked yet."""
    file = tmp_path / "groupings.toml"
    file.write_text(HALVES, encoding="utf-8")
    opened = open_catalogue([BundleSource(folder=bundles["survey"])], groupings=read_groupings(file))
    table = opened["people"]
    source = table.source
    assert isinstance(source, CubeFigures)
    noted = Noting(cube=source.cube, metrics=source.metrics, groupings=source.groupings)
    return Catalogue(tables={**opened.tables, table.id: replace(table, source=noted)})


def threads(catalogue: Catalogue, state: Path, *questions: str) -> list[int]:
    """The thread of every question, in numbers from 0 on; the server's own is that of the first."""
    source = catalogue["people"].source
    assert isinstance(source, Noting)
    with asking(make_app(catalogue, Settings(state=state, calls=0))) as client:
        for question in questions:
            assert client.get(question).status_code == 200
    return [[*dict.fromkeys(source.threads)].index(thread) for thread in source.threads]


V2 = "/api/v2/tables/people/data?valueCodes[contents]=weighted&"


def test_groups_are_summed_in_another_thread(noting: Catalogue, tmp_path: Path) -> None:
    grouped = V2 + "codelist[region]=agg_halves&valueCodes[region]=*"
    assert threads(noting, tmp_path / "state", V2 + "valueCodes[region]=N", grouped) == [0, 1]


def test_only_the_first_cell_of_a_large_table_is_worked_out_in_another_thread(
    noting: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cube_figures, "QUICK_CELLS", len(noting["people"].dimensions[0]))
    large = V2 + "valueCodes[region]=N&valueCodes[job]="
    jobs = next(dimension for dimension in noting["people"].dimensions if dimension.name == "job").codes
    asked = [V2 + "valueCodes[region]=N", large + jobs[0], large + jobs[1]]
    assert threads(noting, tmp_path / "state", *asked) == [0, 1, 0]


def test_sdmx_does_the_same(noting: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cube_figures, "QUICK_CELLS", len(noting["people"].dimensions[0]))
    asked = [V2 + "valueCodes[region]=N", *(f"/sdmx/2.1/data/people/{code}...weighted" for code in "NS")]
    assert threads(noting, tmp_path / "state", *asked) == [0, 1, 0]
