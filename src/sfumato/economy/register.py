"""The register of persons: workers and their jobs, drawn by several threads, written in order, in chunks."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from sfumato.economy import files
from sfumato.economy.codelists import AGE, EDUCATION, ETHNICITY, RACE, SEX
from sfumato.economy.layout import Layout
from sfumato.economy.made import Progress
from sfumato.economy.people import Jobs, Workers, chunks, draw_people
from sfumato.economy.workforces import Workforces

T = TypeVar("T")

_CODES = pa.dictionary(pa.int8(), pa.string())
_WORKERS = pa.schema([("worker", pa.int64()), *((c.name, _CODES) for c in (AGE, SEX, RACE, ETHNICITY, EDUCATION))])
_JOBS = pa.schema([("worker", pa.int64()), ("workplace", pa.int64()), ("earnings", pa.int64())])


def write_people(
    folder: Path,
    *,
    layout: Layout,
    workforces: Workforces,
    seed: int,
    threads: int,
    progress: Progress | None,
) -> None:
    """Write every worker and job to the folder, holding no more than a few chunks in memory."""

    def draw(chunk: int) -> tuple[pa.Table, pa.Table]:
        workers, jobs = draw_people(chunk, layout=layout, workforces=workforces, seed=seed)
        return _workers_table(workers), _jobs_table(jobs)

    done = 0
    with (
        files.open_parquet(folder / files.WORKERS, schema=_WORKERS) as workers_file,
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
