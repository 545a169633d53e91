"""A synthetic employer-employee economy, from its places down to the earnings of every job."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from sfumato_lab.economy import files
from sfumato_lab.economy.files import attributes_text
from sfumato_lab.economy.frame import SEEDS, Made, Progress, Purpose, check_request, stream
from sfumato_lab.economy.industries import INDUSTRY
from sfumato_lab.economy.jobs.codelists import AGE, EDUCATION, ETHNICITY, OWNERSHIP, PLACE_SIZE, RACE, SEX, Codelist
from sfumato_lab.economy.jobs.draws import (
    CHUNK,
    Establishments,
    Jobs,
    Layout,
    Places,
    Workers,
    Workforces,
    chunks,
    draw_establishments,
    draw_people,
    draw_places,
    draw_workforces,
    second,
)
from sfumato_lab.economy.jobs.residence import homes_of
from sfumato_lab.economy.maps import write_island

# The register of persons: workers and their jobs, drawn by several threads, written in order, in chunks.

T = TypeVar("T")

_CODES = pa.dictionary(pa.int8(), pa.string())
_WORKERS = pa.schema([("worker", pa.int64()), *((c.name, _CODES) for c in (AGE, SEX, RACE, ETHNICITY, EDUCATION))])
_RESIDENCE = pa.field("residence", pa.dictionary(pa.int32(), pa.string()))
_JOBS = pa.schema([("worker", pa.int64()), ("workplace", pa.int64()), ("earnings", pa.int64())])


def write_people(
    folder: Path,
    *,
    layout: Layout,
    workforces: Workforces,
    residence: Callable[[int, Jobs], pa.Array] | None = None,
    seed: int,
    threads: int,
    progress: Progress | None,
) -> None:
    """Write every worker and job to the folder, holding no more than a few chunks in memory.

    `residence` says where the workers of a chunk live, given their jobs.
    """

    def draw(chunk: int) -> tuple[pa.Table, pa.Table]:
        workers, jobs = draw_people(chunk, layout=layout, workforces=workforces, seed=seed)
        table = _workers_table(workers)
        if residence is not None:
            table = table.append_column("residence", residence(chunk, jobs))
        return table, _jobs_table(jobs)

    schema = _WORKERS if residence is None else _WORKERS.append(_RESIDENCE)
    done = 0
    with (
        files.open_parquet(folder / files.WORKERS, schema=schema) as workers_file,
        files.open_parquet(folder / files.JOBS, schema=_JOBS) as jobs_file,
    ):
        for workers, jobs in _in_order(draw, chunks(layout.jobs), threads=threads):
            workers_file.write_table(workers)
            jobs_file.write_table(jobs)
            done += len(jobs)
            if progress is not None:
                progress(done, layout.jobs)


def _in_order(draw: Callable[[int], T], count: int, *, threads: int) -> Iterator[T]:
    """The results of `draw` for 0, 1, … in order, never more than one waiting beyond those being drawn."""
    numbers = iter(range(count))
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[T]] = deque(pool.submit(draw, n) for n in islice(numbers, threads + 1))
        try:
            while waiting:
                yield waiting.popleft().result()
                waiting.extend(pool.submit(draw, n) for n in islice(numbers, 1))
        finally:
            # Only after an error is anything left: do not draw the rest of the economy before reporting it.
            pool.shutdown(cancel_futures=True)


def _workers_table(workers: Workers) -> pa.Table:
    return files.table(
        {
            "worker": workers.worker,
            "age": (workers.age, AGE),
            "sex": (workers.sex, SEX),
            "race": (workers.race, RACE),
            "ethnicity": (workers.ethnicity, ETHNICITY),
            "education": (workers.education, EDUCATION),
        }
    )


def _jobs_table(jobs: Jobs) -> pa.Table:
    return files.table({"worker": jobs.worker, "workplace": jobs.workplace, "earnings": jobs.earnings})


# The release file that comes with an economy, ready to run.

_HEAD = """\
# A release: which tables to publish from these data, and how to protect them.
# Everything here can be changed; the comments say what each part means.

[release]
title = "Jobs by place and industry"
population = "jobs"                          # what is counted: one row of the jobs table each
period = "2025"
budget = { alpha = 0.1, epsilon = 4.0 }      # all tables together may cost no more than this

[data]
engine = "duckdb"
jobs = { path = "jobs.parquet", worker = "worker", workplace = "workplace" }
workplaces = { path = "workplaces.parquet", key = "workplace" }
workers = { path = "workers.parquet", key = "worker" }
# Known to everyone about an establishment; all other attributes are confidential.
public = ["place", "industry", "ownership", "place_size"]

[data.attributes]
"""

_TAIL = """
[data.measures]
earnings = { label = "Earnings", unit = "dollars a year" }

# Each table states its share of the budget: 2 + 1 + 1 = 4.
[[table]]
name = "jobs_by_place_industry"
title = "Jobs by place, industry and ownership"
count = "jobs"
by = ["place", "industry", "ownership"]
protect = { method = "smooth-pareto", epsilon = 2.0 }

[[table]]
name = "jobs_by_industry"
title = "Jobs by industry and population of the place"
count = "jobs"
by = ["industry", "place_size"]
protect = { method = "smooth-pareto", epsilon = 1.0 }

[[table]]
name = "jobs_by_place"
title = "Jobs by place"
count = "jobs"
by = ["place"]
protect = { method = "smooth-pareto", epsilon = 1.0 }
"""


_COMMUTING = """
# Where people live who work in a place. Places are too many to list all pairs of them: only those from a threshold on
# are, which is public. Of epsilon, 2 more: 4 + 2 = 6.
[[table]]
name = "commuting"
title = "Jobs by place of residence and place of work"
count = "jobs"
by = ["residence", "place"]
protect = { method = "sparse-laplace", epsilon = 2.0 }
"""


def release_text(codelists: tuple[Codelist, ...], *, residence: bool = False) -> str:
    """The text of the release file on data with these attributes; with `residence` it publishes commuting too."""
    if not residence:
        return _HEAD + attributes_text(codelists, on_maps=["place"]) + _TAIL
    home = 'residence = { label = "Place of residence", codelist = "codelists/place.csv", origin_of = "place" }\n'
    return (
        _HEAD.replace("epsilon = 4.0", "epsilon = 6.0")
        + attributes_text(codelists, on_maps=["place"])
        + home
        + _TAIL
        + _COMMUTING
    )


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
    residence: bool = False,
    seed: int = 1,
    overwrite: bool = False,
    threads: int = 2,
    progress: Progress | None = None,
) -> Economy:
    """Write an economy with exactly this many jobs to a folder.

    The content depends on `jobs`, `establishments` and `seed` alone. `establishments` are those with jobs; without it
    there are as many as were published for so many jobs. With `residence` the workers have a place where they live, and
    all else is the same. Memory grows with the establishments, never with the jobs.
    `progress` is told how many jobs are done, of how many.
    """
    check_request("economy", jobs=(jobs, FEWEST_JOBS, MOST_JOBS), seed=(seed, *SEEDS), threads=(threads, 1, 64))
    if establishments is not None:
        check_request("economy", establishments=(establishments, jobs // LARGEST_MEAN, jobs // SMALLEST_MEAN))
    folder = Path(folder)
    with files.staging(folder, overwrite=overwrite) as aside:
        places = draw_places(jobs=jobs, seed=seed)
        drawn = draw_establishments(places, jobs=jobs, active=establishments, seed=seed)
        _write_codelists(aside, places, residence=residence)
        _write_workplaces(aside, drawn, places)
        layout = Layout(ends=np.cumsum(drawn.size), start=int(stream(seed, Purpose.LAYOUT).integers(jobs)))
        write_people(
            aside,
            layout=layout,
            workforces=draw_workforces(drawn, places, seed=seed),
            residence=_residence(places, drawn, seed=seed) if residence else None,
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


def _residence(places: Places, drawn: Establishments, *, seed: int) -> Callable[[int, Jobs], pa.Array]:
    """Where the workers of a chunk live, by the place of their first job; the same in whichever order chunks are."""
    homes, codes = homes_of(places), pa.array(places.codelist.codes, pa.string())

    def draw(chunk: int, jobs: Jobs) -> pa.Array:
        side_job = second(np.arange(chunk * CHUNK, chunk * CHUNK + len(jobs.worker)))
        workplaces = drawn.place[jobs.workplace[~side_job] - 1].astype(np.int64)
        drawn_homes = homes.draw(workplaces, stream(seed, Purpose.RESIDENCES, chunk))
        return pa.DictionaryArray.from_arrays(pa.array(drawn_homes), codes)

    return draw


def _write_codelists(folder: Path, places: Places, *, residence: bool) -> None:
    files.write_codelist(
        folder / "codelists" / "place.csv",
        places.codelist,
        population=places.populations.tolist(),
        place_size=places.sizes,
    )
    files.write_codelists(folder, files.FIXED_CODELISTS)
    write_island(folder / files.map_name("place"), places.codelist.codes)
    text = release_text((places.codelist, *files.FIXED_CODELISTS), residence=residence)
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
