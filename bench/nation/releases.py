"""The releases of a nation: each of the two marginals by itself, and seven tables that are counted in one scan."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.jobs.floor import BY, OF_WORKERS
from bench.shared.release import codelists, listed

WORKER = (*BY, "sex", "education")

RELEASES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "workplace": {"jobs_by_workplace": BY},
    "worker": {"jobs_by_worker": WORKER},
    "seven": {
        "jobs_by_workplace": BY,
        "jobs_by_worker": WORKER,
        "jobs_by_place": ("place",),
        "jobs_by_place_industry": ("place", "industry"),
        "jobs_by_industry_ownership": ("industry", "ownership"),
        "jobs_by_industry_place_size": ("industry", "place_size"),
        "jobs_by_industry_sex_age": ("industry", "ownership", "sex", "age"),
    },
}
"""Every release with its tables, and what each is classified by."""
NAMES = {"workplace": "place × industry × ownership", "worker": "… × sex × education", "seven": "seven tables"}
MEMORY = 6
"""GB that DuckDB may use, alone or within sfumato; the rest of the machine is for everything else."""

_EPSILON = 2
_HEAD = """\
[release]
title = "Jobs of a nation"
period = "2025"
budget = {{ alpha = 0.1, epsilon = {epsilon} }}
ledger = "{name}.sqlite"
bundle = "{name}.bundle"

[data]
{memory}jobs = {{ path = "jobs.parquet", worker = "worker", workplace = "workplace" }}
workplaces = {{ path = "workplaces.parquet", key = "workplace" }}
workers = {{ path = "workers.parquet", key = "worker" }}
public = ["place", "industry", "ownership", "place_size"]

[data.attributes]
{attributes}

[data.measures]
earnings = {{ unit = "dollars a year" }}
"""
_TABLE = """
[[table]]
name = "{name}"
count = "jobs"
by = {by}
protect = {{ method = "smooth-pareto", epsilon = {epsilon} }}
"""


@dataclass(frozen=True, kw_only=True)
class Nation:
    """A folder with an economy and the releases of it."""

    folder: Path
    memory: int | None = None
    """GB that DuckDB may use, alone or within sfumato; as many as it likes by default."""

    def file(self, release: str) -> Path:
        """The release file."""
        return self.folder / f"{release}.toml"

    def write(self) -> None:
        """Write every release file beside the data; each has its own ledger."""
        attributes = (*BY, "place_size", *OF_WORKERS)
        for release, tables in RELEASES.items():
            text = _HEAD.format(
                name=release,
                memory="" if self.memory is None else f"memory = {self.memory}\n",
                epsilon=_EPSILON * len(tables),
                attributes=codelists(attributes),
            )
            for name, by in tables.items():
                text += _TABLE.format(name=name, by=listed(by), epsilon=_EPSILON)
            self.file(release).write_text(text, encoding="utf-8")
