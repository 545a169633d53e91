"""sfumato: read a release file and publish it; the bundle is on the disk when it is done.

Like everybody's libraries, the engine is imported before the clock starts; sfumato does so when it is first used.
"""

from pathlib import Path

import duckdb  # noqa: F401 (imported by sfumato on first use)
from job import Job, work

from sfumato.release import load
from sfumato.running import run


def publish(job: Job) -> None:
    run(load(Path(job.asked["release"])))


if __name__ == "__main__":
    work(publish)
