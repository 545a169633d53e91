"""The release file that comes with an economy, ready to run."""

from sfumato.economy.codelists import Codelist
from sfumato.economy.files import attributes_text

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


def release_text(codelists: tuple[Codelist, ...]) -> str:
    """The text of the release file on data with these attributes."""
    return _HEAD + attributes_text(codelists) + _TAIL
