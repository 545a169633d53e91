"""The release file that comes with a federal workforce, ready to run once there is a key."""

from sfumato.economy.federal.codelists import CODELISTS
from sfumato.economy.files import attributes_text
from sfumato.periods import Span

_HEAD = """\
# A release of a federal workforce: which tables to publish, and how to protect them.
# Factors come from a key: make one with `sfumato keys new sfumato.key` before the first run.

[release]
title = "Federal workers who link employers and states"
population = "federal jobs"
period = "{period}"
key = "sfumato.key"                          # secret; permanent factors are computed from it

[data]
engine = "duckdb"
"""
_JOBS = 'jobs = { path = "jobs.parquet", worker = "worker", workplace = "employer" }\n'
_HISTORIES = """\
jobs = {{ path = "histories.parquet", worker = "worker", workplace = "employer", period = "quarter", \
first = "{first}", last = "{last}", earnings = "earnings" }}
"""
_UNITS = """\
workplaces = { path = "employers.parquet", key = "employer" }
workers = { path = "workers.parquet", key = "worker" }
# Known to everyone about an employer; all other attributes are confidential.
public = ["state", "agency", "industry"]

[data.attributes]
"""
_GRAPHS = """
# Two employers are linked when somebody has worked for both. A link takes the factor of one of the two, by a rule for
# their identifiers of twelve characters.
[[table]]
name = "links_between_states"
title = "Pairs of employers that share a worker, by state of both"
graph = { between = "employers", attribute = "state", weight = "edges" }
protect = { method = "noise-infusion", edges = "twelve-characters" }

[[table]]
name = "workers_between_states"
title = "Workers shared by pairs of employers, by state of both"
graph = { between = "employers", attribute = "state", weight = "workers" }
protect = { method = "noise-infusion", edges = "twelve-characters" }
"""
_PANEL = """
[[table]]
name = "indicators"
title = "Workforce indicators by state, agency and quarter"
indicators = "all"
by = ["state", "agency", "quarter"]
protect = { method = "noise-infusion" }

[[table]]
name = "flows_between_states"
title = "Workers who left an employer and joined another in the same quarter, by state of both"
flow = { attribute = "state", weight = "workers" }
by = ["quarter"]
protect = { method = "noise-infusion", edges = "twelve-characters" }
"""


def release_text(*, period: str, span: Span | None) -> str:
    """The text of the release file, on jobs of a period or on histories of the quarters of a span."""
    jobs = _JOBS if span is None else _HISTORIES.format(first=span.first, last=span.last)
    tables = _GRAPHS if span is None else _GRAPHS + _PANEL
    return _HEAD.format(period=period) + jobs + _UNITS + attributes_text(CODELISTS) + tables
