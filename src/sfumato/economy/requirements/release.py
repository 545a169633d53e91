"""The release file that comes with a survey of requirements: its data described, a cube sketched."""

from sfumato.economy.requirements.codelists import CODELISTS

_HEAD = """\
# Not yet loadable: it describes the data, but the keys of a cube do not exist so far and are only sketched below.

[release]
title = "What jobs require, by occupation"
population = "jobs"
period = "2025"

[data]
engine = "duckdb"
records = {{ path = "quotes.parquet", unit = "quote", levels = ["establishment"], weight = "weight"{replicates} }}

[data.attributes]
"""
_REPLICATES = ', replicates = { columns = "rw_*", rule = "successive-difference" }'
_TAIL = """
[data.measures]
prep_days = { label = "Preparation", unit = "days", minimum = 0, maximum = 3650 }

# [[cube]]
# name = "requirements"
# title = "Jobs by occupation and requirements"
# by = ["occupation", "strength", "education", "keyboarding", "credentials", "telework"]
# protect = { method = "truncated-laplace", epsilon = 2.0, cap = 7 }
# control = [
#     { by = ["occupation"], epsilon = 0.5 },
#     { by = ["strength", "education"], epsilon = 0.5 },
# ]
# calibrate = "least-squares"
"""


def release_text(*, replicates: bool) -> str:
    """The text of the release file, on records with replicate weights or without."""
    attributes = (
        f'{codelist.name} = {{ label = "{codelist.label}", codelist = "codelists/{codelist.name}.csv" }}\n'
        for codelist in CODELISTS
    )
    return _HEAD.format(replicates=_REPLICATES if replicates else "") + "".join(attributes) + _TAIL
