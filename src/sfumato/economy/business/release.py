"""The release file that comes with a survey of businesses, ready to run once there is a key."""

from sfumato.economy.business.codelists import CODELISTS
from sfumato.economy.business.occupations import OCCUPATION
from sfumato.economy.codelists import SEX
from sfumato.economy.files import attributes_text

_HEAD = """\
# A release of a survey of businesses: which tables to publish, and how to protect them.
# Perturbations come from a key: make one with `sfumato keys new sfumato.key` before the first run.

[release]
title = "Turnover, profit and employment of businesses"
population = "businesses"
period = "2025"
key = "sfumato.key"                          # secret; perturbations are computed from it

[data]
engine = "duckdb"
"""
_RECORDS = """\
# Add consent = "consent" to perturb only businesses that asked to be protected.
records = {{ path = "businesses.parquet", unit = "business", levels = ["enterprise"], weight = "weight"{replicates} }}

[data.attributes]
"""
_REPLICATES = ', replicates = { columns = "rw_*", rule = "jackknife" }'
_TABLES = """
[data.measures]
turnover = { label = "Turnover", unit = "dollars", minimum = 0 }
profit = { label = "Profit", unit = "dollars", minimum = -1e12 }
employees = { label = "Employees", unit = "persons", minimum = 0 }

[[table]]
name = "turnover_by_state_industry"
title = "Turnover by state and industry"
total = "turnover"
by = ["state", "industry"]
totals = true
protect = { method = "top-contributors" }

[[table]]
name = "profit_by_industry_size"
title = "Mean profit by industry and size"
mean = "profit"
by = ["industry", "size"]
totals = true
protect = { method = "top-contributors" }

[[table]]
name = "businesses_by_state_size"
title = "Businesses by state and size"
count = "records"
by = ["state", "size"]
totals = true
protect = { method = "top-contributors" }
"""


def release_text(*, replicates: bool) -> str:
    """The text of the release file, on records with replicate weights or without."""
    described = [codelist for codelist in CODELISTS if codelist not in (OCCUPATION, SEX)]  # those are of employees
    records = _RECORDS.format(replicates=_REPLICATES if replicates else "")
    return _HEAD + records + attributes_text(described) + _TABLES
