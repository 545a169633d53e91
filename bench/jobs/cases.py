"""The cases: a release of one table, with the workers declared or not, on files validated before or never."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.jobs.floor import BY, OF_WORKERS
from bench.shared.release import codelists, forget, listed
from sfumato.release import Release, load
from sfumato.running import run

JOBS = 10_900_000
"""The size of economy that the targets are about."""
TABLE = "jobs_by_place_industry"
BUDGET = "budget = { alpha = 0.1, epsilon = 4.0 }"

# The jobs name their worker in both: the guarantee is about one job each, so repeated rows have to be refused.
_RELEASE = """\
[release]
title = "Jobs by place, industry and ownership"
period = "2025"
{terms}
ledger = "{name}.sqlite"
bundle = "{name}.bundle"

[data]
jobs = {{ path = "jobs.parquet", worker = "worker", workplace = "workplace" }}
workplaces = {{ path = "workplaces.parquet", key = "workplace" }}
{workers}
public = {public}

[data.attributes]
{attributes}

{measures}

[[table]]
name = "{table}"
count = "jobs"
by = {by}
protect = {{ {protect} }}
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One way to publish the table."""

    name: str
    label: str
    file: Path
    first: bool
    """Whether the files are to be validated as if they had never been seen."""

    def prepare(self) -> Release:
        """Forget what earlier runs left, so that the table is charged, tabulated, protected and written anew."""
        release = load(self.file)
        forget(release, validated=not self.first)
        if not self.first and not (release.store / "memory.json").exists():
            raise FileNotFoundError(f"{self.label}: nothing is remembered about the files; validate them first")
        return release

    def publish(self) -> None:
        """What is timed: read the release file and publish it."""
        run(load(self.file))


def write_cases(folder: Path) -> tuple[Case, ...]:
    """Write both release files beside the data of an economy; each keeps its own ledger and memory."""
    plain = _write(folder, "plain", workers=False)
    workers = _write(folder, "workers", workers=True)
    return (
        Case(name="seen", label="sfumato, files validated before", file=plain, first=False),
        Case(name="first", label="sfumato, first validation", file=plain, first=True),
        Case(name="workers_seen", label="…with the workers declared, validated before", file=workers, first=False),
        Case(name="workers_first", label="…with the workers declared, first validation", file=workers, first=True),
    )


def write_release(
    folder: Path, name: str, *, by: Sequence[str], terms: str, protect: str, workers: Sequence[str]
) -> Path:
    """Write the release of one table of jobs, with these attributes of the workers declared, or without any."""
    path = folder / f"{name}.toml"
    path.write_text(
        _RELEASE.format(
            name=name,
            table=TABLE,
            terms=terms,
            by=listed(by),
            public=listed(BY),
            protect=protect,
            workers='workers = { path = "workers.parquet", key = "worker" }' if workers else "",
            attributes=codelists((*BY, *workers)),
            measures='[data.measures]\nearnings = { unit = "dollars a year" }' if workers else "",
        ),
        encoding="utf-8",
    )
    return path


def _write(folder: Path, name: str, *, workers: bool) -> Path:
    return write_release(
        folder,
        name,
        by=BY,
        terms=BUDGET,
        protect='method = "smooth-pareto", epsilon = 2.0',
        workers=OF_WORKERS if workers else (),
    )
