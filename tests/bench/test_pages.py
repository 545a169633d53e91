"""The pages about the benchmark name every part and every file, and OpenDP's draws are told as large as they are."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from bench.run import PARTS
from bench.shared.report import update_page

ROOT = Path(__file__).parents[2]
OPENDP = """
def enable_features(name): pass
def l1_distance(T): pass
def linf_distance(T): pass
def atom_domain(T): pass
def vector_domain(of): pass
def max_divergence(): pass
class m:
    make_laplace = lambda *space, scale: lambda zeros: [-3, 1] * (len(zeros) // 2)
    make_geometric = lambda *space, scale, bounds: lambda zeros: [-5] * len(zeros)
    make_noisy_max = lambda *space, scale, negate: lambda row: row.index(min(row))
"""


def test_the_page_lists_every_part_and_its_quick_look_limits_every_size() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    run_it = page[page.index("## Run it") :]
    assert all(f"`{part}`" in run_it for part in PARTS)
    quick = run_it[: run_it.index("# a quick look")].rsplit("bench.run", maxsplit=1)[1]
    options = re.findall(r'"(--\w+)", type=int', (ROOT / "bench" / "run.py").read_text(encoding="utf-8"))
    options += ["--sizes"]
    assert len(options) > 5
    assert all(f"{option} " in quick for option in options)


def test_the_map_of_the_benchmark_names_every_part_and_every_file() -> None:
    text = (ROOT / "bench" / "README.md").read_text(encoding="utf-8")
    assert all(f"| `{part}` |" in text for part in PARTS)
    common = {"__init__", "measure", "claims"}  # in every folder
    bench = ROOT / "bench"
    files = [file.relative_to(bench) for file in bench.glob("*/*.py") if file.stem not in common]
    folders = {file.parent.name for file in bench.glob("*/measure.py")}
    assert [str(file) for file in files if f"`{file}`" not in text] == []
    assert [folder for folder in folders if f"| `{folder}` |" not in text] == []


def test_the_page_and_its_charts_are_what_the_committed_results_say(tmp_path: Path) -> None:
    page = ROOT / "docs" / "benchmarks.md"
    again = Path(shutil.copy(page, tmp_path))
    for name, part in PARTS.items():
        results = json.loads((ROOT / "bench" / "results" / f"{name}.json").read_text(encoding="utf-8"))
        update_page(again, part.section(results))
        if part.draw:
            assert part.draw(results) == (ROOT / "docs" / "images" / f"{name}.svg").read_text(encoding="utf-8")
    assert again.read_text(encoding="utf-8") == page.read_text(encoding="utf-8")


def test_draws_of_opendp_are_told_by_their_size_and_choices_by_their_cost(tmp_path: Path) -> None:
    """With a stand-in for OpenDP, which is in an environment of its own: its laplace draws −3 and 1."""
    (tmp_path / "opendp").mkdir()
    (tmp_path / "opendp" / "prelude.py").write_text(OPENDP, encoding="utf-8")
    asked = {"draws": 4, "scale": 1, "capped_draws": 3, "capped_scale": 1, "bounds": [-9, 9]}
    asked |= {"costs": [[4, 2], [6, 8]], "rate": 0.5, "repeat": 2}
    (tmp_path / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    script = ROOT / "bench" / "peers" / "scripts" / "opendp_draws.py"
    done = subprocess.run(
        [sys.executable, script, tmp_path / "asked.json"],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path)},
    )
    sizes = {name: told["sizes"] for name, told in json.loads(done.stdout).items()}
    assert sizes == {"laplace": [2, 2], "geometric": [5, 5], "choice": [4, 4]}
