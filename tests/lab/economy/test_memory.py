"""Memory grows with the establishments, not with the jobs."""

import pytest

from tests.lab.economy.memory import peak

MADE = """
from pathlib import Path
from sfumato_lab.economy.jobs.generate import generate
generate(Path(sys.argv[1]), jobs=int(sys.argv[2]))
"""


@pytest.mark.slow
def test_eight_million_jobs_more_need_far_less_memory_than_their_columns(tmp_path):
    # The smaller economy already has as many chunks as are ever in memory together.
    few, many = 2_900_000, 10_900_000
    jobs_table = (many - few) * 3 * 8
    (_, least), (_, most) = (peak(MADE, tmp_path / str(jobs), jobs) for jobs in (few, many))
    assert most - least < jobs_table / 2
