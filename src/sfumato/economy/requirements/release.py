"""The release file that comes with a survey of requirements: its data described, and one cube."""

from sfumato.economy.files import attributes_text
from sfumato.economy.requirements.codelists import CODELISTS

_HEAD = """\
# Publish it with `sfumato run release.toml`; docs/methods/hypercube.md explains the cube.

[release]
title = "What jobs require, by occupation"
population = "jobs"
period = "2025"
# What single quotes may cost; alpha, about sizes of establishments, plays no part here.
budget = {{ alpha = 1, epsilon = 3, delta = 1e-5, definition = "individuals" }}

[data]
engine = "duckdb"
records = {{ path = "quotes.parquet", unit = "quote", levels = ["establishment"], weight = "weight"{replicates} }}

[data.attributes]
"""
_REPLICATES = ', replicates = { columns = "rw_*", rule = "successive-difference" }'
_TAIL = """
[data.measures]
prep_days = { label = "Preparation", unit = "days", minimum = 0, maximum = 3650 }

[[cube]]
name = "requirements"
title = "Jobs by occupation and requirements"
by = ["occupation", "strength", "education", "keyboarding", "credentials", "telework"]
epsilon = 2
cap = 7
controls = [
    { by = ["occupation"], epsilon = 0.5 },
    { by = ["strength", "education"], epsilon = 0.5 },
]
measures = ["prep_days"]
least_count = 10   # the query tool marks figures of fewer quotes,
largest_cv = 0.3   # and those with a larger coefficient of variation
"""


def release_text(*, replicates: bool) -> str:
    """The text of the release file, on records with replicate weights or without."""
    head = _HEAD.format(replicates=_REPLICATES if replicates else "")
    return head + attributes_text(CODELISTS) + _TAIL
