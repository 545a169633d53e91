"""Tables of flows and graphs with selections, loops and earnings, from a release file to a bundle and its report."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.bundle.read import published_network
from sfumato.checking import checked
from sfumato.cli import app
from sfumato.errors import SfumatoError
from sfumato.plan import Plan
from sfumato.release import load
from sfumato.report.assess import Assessment, assess
from sfumato.running import run
from sfumato.statistics.panel.infused_sums import LEAST_FACTORS
from sfumato_lab.economy.federal.generate import generate_federal
from tests.conftest import same_key
from tests.docs.blocks import blocks

TABLES = """
all | graph = { attribute = "industry", weight = "workers" } | minimum = 0
looped | graph = { attribute = "industry", weight = "workers", loops = true } | minimum = 0
some | graph = { attribute = "industry", weight = "workers" }; where = { industry = ["land", "justice"] } | minimum = 0
ratio | graph = { attribute = "industry", weight = "workers", loops = true }; by = ["sex"] | convergence = true
pay | flow = { attribute = "industry", weight = "earnings" }; by = ["quarter"] | minimum = 3
one | graph = { attribute = "industry" }; where = { first_state = ["DC", "VA"] } | minimum = 3
other | graph = { attribute = "industry" }; where = { second_state = ["VA", "DC"] } | minimum = 3
"""


def release(folder: Path, tables: str) -> Path:
    text = (folder / "release.toml").read_text().partition("# Two employers are linked")[0]
    for line in filter(None, tables.strip().splitlines()):
        name, asked, options = (part.strip() for part in line.split("|"))
        keys = asked.replace("; ", "\n")
        text += f'[[table]]\nname = "{name}"\n{keys}\nprotect = {{ method = "noise-infusion", {options} }}\n\n'
    path = folder / "pairs.toml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Plan, Assessment]:
    folder = tmp_path_factory.mktemp("federal")
    generate_federal(folder, persons=5_000, seed=1, quarters=4)
    same_key(folder / "sfumato.key")
    file = release(folder, TABLES)
    run(load(file))
    with checked(load(file), lambda _: None) as ready:
        plan = ready.plan
    return load(file).bundle, plan, assess(load(file))


def rows(published: tuple[Path, Plan, Assessment], name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(published[0] / "tables" / f"{name}.parquet").to_pylist()
    return found


def test_workers_with_one_employer_are_in_the_published_total_with_loops(published: Any) -> None:
    without, looped = (sum(row["value"] for row in rows(published, name)) for name in ("all", "looped"))
    assert published[2].network is not None
    single = published[2].network.single * published[2].network.workers
    assert looped - without == pytest.approx(single, rel=0.1)


def test_a_cell_is_published_alike_whichever_others_are_asked_for(published: Any) -> None:
    every = {(row["first_industry"], row["second_industry"]): row["value"] for row in rows(published, "all")}
    some = {(row["first_industry"], row["second_industry"]): row["value"] for row in rows(published, "some")}
    assert len(some) == 3
    assert some == {pair: every[pair] for pair in some}


def test_either_end_of_an_undirected_pair_may_be_written_first(published: Any) -> None:
    one, other = (table for table in published[1].tables if table.name in ("one", "other"))
    assert one.digest("d") == other.digest("d")
    assert rows(published, "one") == rows(published, "other")
    described = json.loads((published[0] / "structure.json").read_text())["tables"]
    assert {tuple(table["where"]) for table in described if table["name"] in ("one", "other")} == {("first_state",)}


def test_the_convergence_ratio_is_told_where_many_factors_are_and_on_a_coarse_scale(published: Any) -> None:
    cells = pq.read_table(published[2].report.with_name("ratio.parquet")).to_pylist()
    shown = rows(published, "ratio")
    told = [row["convergence_ratio"] for row in shown]
    assert any(told)
    for cell, row in zip(cells, shown, strict=True):
        expected = cell["distinct_factors"] >= LEAST_FACTORS and not row["status"]
        assert (row["convergence_ratio"] is not None) == expected
    scale = {float(step * 10**power) for power in range(4) for step in (1, 1.5, 2, 3, 5, 7)}
    assert set(told) - {None} <= scale
    described = json.loads((published[0] / "structure.json").read_text())["tables"]
    assert {t["name"] for t in described if "convergence_ratio" in t["columns"]} == {"ratio"}


def test_earnings_are_multiples_of_their_base_and_hidden_where_few_moved(published: Any) -> None:
    (pay,) = (table for table in published[1].tables if table.name == "pay")
    base, earnings = pay.roundings
    assert earnings == 100 * base
    seen = [row["value"] for row in rows(published, "pay") if row["status"] == ""]
    assert seen
    assert all(value % earnings == 0 for value in seen)
    cells = pq.read_table(published[2].report.with_name("pay.parquet")).to_pylist()
    suppressed = [cell["true"] for cell in cells if cell["status"] == "suppressed"]
    assert max(suppressed) > min(seen) / 2  # not for their amount: for the workers behind it


def test_the_tables_of_the_page_about_selections_can_be_published(published: Any) -> None:
    page = Path(__file__).parents[3] / "docs/methods/noise-infusion.md"
    found_on = ("links_of_young_workers", "employers_by_degree")
    text = "\n".join(block.text for block in blocks(page) if any(name in block.text for name in found_on))
    folder = published[0].parent
    file = folder / "page.toml"
    head = (folder / "release.toml").read_text().partition("# Two employers are linked")[0]
    file.write_text(head.replace("[data]", 'bundle = "page"\n\n[data]', 1) + text)
    run(load(file))
    found = pq.read_table(folder / "page/tables/earnings_of_movers_from_the_capital.parquet")
    assert found.column_names == ["origin_industry", "destination_industry", "quarter", "value", "status"]
    degrees = pq.read_table(folder / "page/tables/employers_by_degree.parquet")
    assert degrees.column_names == ["state", "degree", "value", "status"]
    assert degrees["degree"].unique().to_pylist() == ["0", "1", "2-4", "5-9", "10-19", "20-49", "50+"]


def test_the_report_has_paths_centralities_and_attacks(published: Any) -> None:
    found = published[2]
    text = found.report.read_text()
    assert "Who is in the middle" in text
    assert "pairs that have the cells of two classes to themselves" in text
    assert found.network.paths.mean >= 1
    assert {one.title for one in found.networks} >= {"All", "Pay"}
    attacked = {attack.attack for exposure in found.exposures for attack in exposure.attacks}
    assert {"growth", "there and back", "size", "factor", "shape"} <= attacked


def test_the_report_has_the_same_for_machines(published: Any) -> None:
    done = CliRunner().invoke(app, ["assess", str(published[0].parent / "pairs.toml"), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["network"]["paths"]["sources"] > 0
    assert set(found["network"]["centralities"]) == {"strength", "closeness", "betweenness", "eigenvector"}
    assert {one["title"] for one in found["networks"]} >= {"All", "Pay"}


def test_the_network_of_a_published_table_needs_the_bundle_alone(published: Any) -> None:
    found, paths = published_network(published[0], "all")
    values = {(row["first_industry"], row["second_industry"]): row["value"] for row in rows(published, "all")}
    (health,) = (row for row in found.to_pylist() if row["industry"] == "health")
    linked = [value for pair, value in values.items() if pair[0] != pair[1] and "health" in pair]
    assert health["strength"] == sum(linked)
    assert health["degree"] == np.count_nonzero(linked)
    assert paths.mean >= 1
    with pytest.raises(SfumatoError, match="one code for each of the others"):
        published_network(published[0], "pay")
    done = CliRunner().invoke(app, ["query", str(published[0]), "pay", "--network", "--where", "quarter=2010-Q2"])
    assert done.exit_code == 0, done.output
    assert "strength_out" in done.output
