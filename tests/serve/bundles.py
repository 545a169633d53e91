"""Bundles of every kind, published by real releases of small synthetic data; the same figures in every run."""

import shutil
from pathlib import Path

from sfumato.durable import alone
from sfumato.release import load
from sfumato.running import run
from sfumato_lab.economy.business.generate import generate_business
from sfumato_lab.economy.federal.generate import generate_federal
from tests.conftest import same_key
from tests.running.same_draws import same_draws
from tests.statistics.cube import survey

KINDS = ("jobs", "business", "federal", "survey")
MORE_JOBS = """
[[table]]
name = "jobs_by_industry_ownership"
title = "Jobs by industry and ownership"
count = "jobs"
by = ["industry", "ownership"]
protect = { method = "smooth-pareto", epsilon = 0.5 }

[[table]]
name = "jobs_by_ownership"
title = "Jobs by ownership"
count = "jobs"
by = ["ownership"]
protect = { method = "smooth-pareto", epsilon = 0.5 }

[[table]]
name = "private_by_place_industry"
title = "Private jobs by place and industry"
count = "jobs"
by = ["place", "industry"]
where = { ownership = ["private"] }
structural_zeros = "implied"
protect = { method = "smooth-pareto", epsilon = 1 }
"""


def published(root: Path, economy: Path) -> dict[str, Path]:
    """A bundle of every kind in a folder that several processes share: one publishes, the others wait for it."""
    root.mkdir(exist_ok=True)
    found = {}
    for kind in KINDS:
        done = root / f"{kind}.done"
        with alone(root / f"{kind}.lock"):
            if not done.exists():
                done.write_text(str(publish(kind, root / kind, economy)), encoding="utf-8")
        found[kind] = Path(done.read_text(encoding="utf-8"))
    return found


def publish(kind: str, folder: Path, economy: Path) -> Path:
    """Publish one kind of bundle into a new folder and return it."""
    if kind == "jobs":
        shutil.copytree(economy, folder)
        release = folder / "release.toml"
        text = release.read_text(encoding="utf-8").replace("epsilon = 4.0 }", "epsilon = 6.0 }")
        release.write_text(text + MORE_JOBS, encoding="utf-8")
    elif kind == "business":
        generate_business(folder, businesses=2_000)
        same_key(folder / "sfumato.key")
    elif kind == "federal":
        generate_federal(folder, persons=20_000, quarters=6)
        same_key(folder / "sfumato.key")
    else:
        survey.release(folder)
    with same_draws():
        return run(load(folder / "release.toml")).bundle
