"""A synthetic employer-employee economy, from its places down to the earnings of every job."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sfumato.economy import files
from sfumato.economy.codelists import OWNERSHIP, PLACE_SIZE
from sfumato.economy.establishments import Establishments, draw_establishments
from sfumato.economy.industries import INDUSTRY
from sfumato.economy.layout import Layout
from sfumato.economy.made import SEEDS, Made, Progress, check_request
from sfumato.economy.places import Places, draw_places
from sfumato.economy.register import write_people
from sfumato.economy.release import release_text
from sfumato.economy.streams import Purpose, stream
from sfumato.economy.workforces import draw_workforces

FEWEST_JOBS = 10_000
MOST_JOBS = 150_000_000
LARGEST_MEAN = 100
"""Jobs for each establishment, on average, at most: more and the largest could not all be kept small enough."""
SMALLEST_MEAN = 2
_ROW_GROUP = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Economy(Made):
    """What was generated, and where."""

    jobs: int
    workers: int
    establishments: int
    """Establishments with at least one job."""
    without_jobs: int
    """Establishments in the register that have no job."""
    places: int

    @property
    def names(self) -> tuple[str, ...]:
        """Every file, the release file last."""
        return files.FILES

    @property
    def words(self) -> str:
        """What it holds, in a sentence without its end."""
        return (
            f"{self.jobs:,} jobs of {self.workers:,} workers in {self.establishments:,} establishments and "
            f"{self.places:,} places"
        )


def generate(
    folder: Path,
    *,
    jobs: int = 1_000_000,
    establishments: int | None = None,
    seed: int = 1,
    overwrite: bool = False,
    threads: int = 2,
    progress: Progress | None = None,
) -> Economy:
    """Write an economy with exactly this many jobs to a folder.

    The content depends on `jobs`, `establishments` and `seed` alone. `establishments` are those with jobs; without it
    there are as many as were published for so many jobs. Memory grows with the establishments, never with the jobs.
    `progress` is told how many jobs are done, of how many.
    """
    check_request("economy", jobs=(jobs, FEWEST_JOBS, MOST_JOBS), seed=(seed, *SEEDS), threads=(threads, 1, 64))
    if establishments is not None:
        check_request("economy", establishments=(establishments, jobs // LARGEST_MEAN, jobs // SMALLEST_MEAN))
    folder = Path(folder)
    with files.staging(folder, overwrite=overwrite) as aside:
        places = draw_places(jobs=jobs, seed=seed)
        drawn = draw_establishments(places, jobs=jobs, active=establishments, seed=seed)
        _write_codelists(aside, places)
        _write_workplaces(aside, drawn, places)
        layout = Layout(ends=np.cumsum(drawn.size), start=int(stream(seed, Purpose.LAYOUT).integers(jobs)))
        write_people(
            aside,
            layout=layout,
            workforces=draw_workforces(drawn, places, seed=seed),
            seed=seed,
            threads=threads,
            progress=progress,
        )
    return Economy(
        folder=folder,
        seed=seed,
        jobs=jobs,
        workers=layout.workers,
        establishments=drawn.with_jobs,
        without_jobs=len(drawn) - drawn.with_jobs,
        places=len(places),
    )


def _write_codelists(folder: Path, places: Places) -> None:
    files.write_codelist(
        folder / "codelists" / "place.csv",
        places.codelist,
        population=places.populations.tolist(),
        place_size=places.sizes,
    )
    files.write_codelists(folder, files.FIXED_CODELISTS)
    text = release_text((places.codelist, *files.FIXED_CODELISTS))
    (folder / files.RELEASE).write_text(text, encoding="utf-8")


def _write_workplaces(folder: Path, establishments: Establishments, places: Places) -> None:
    table = files.table(
        {
            "workplace": np.arange(1, len(establishments) + 1),
            "place": (establishments.place, places.codelist),
            "industry": (establishments.industry, INDUSTRY),
            "ownership": (establishments.ownership, OWNERSHIP),
            "place_size": (places.strata[establishments.place], PLACE_SIZE),
        }
    )
    with files.open_parquet(folder / files.WORKPLACES, schema=table.schema) as writer:
        writer.write_table(table, row_group_size=_ROW_GROUP)
