"""Memory grows with the establishments, not with the jobs."""

import subprocess
import sys

import pytest

PEAK = """
import resource, sys
from pathlib import Path
from sfumato_lab.economy.jobs.generate import generate
generate(Path(sys.argv[1]), jobs=int(sys.argv[2]))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(peak if sys.platform == "darwin" else peak * 1024)
"""


def peak(folder, jobs):
    """Bytes of memory a fresh process needs at most."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(folder), str(jobs)], check=True, capture_output=True, text=True
    )
    return int(done.stdout)


@pytest.mark.slow
def test_eight_million_jobs_more_need_far_less_memory_than_their_columns(tmp_path):
    # The smaller economy already has as many chunks as are ever in memory together.
    few, many = 2_900_000, 10_900_000
    jobs_table = (many - few) * 3 * 8
    assert peak(tmp_path / "many", many) - peak(tmp_path / "few", few) < jobs_table / 2
