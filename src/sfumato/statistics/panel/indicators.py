"""Workforce indicators of a job history: what each one counts, and when it can be known."""

from dataclasses import dataclass
from typing import Literal

NAME = "indicator"
"""The dimension that tells the indicators of a table apart."""


@dataclass(frozen=True, kw_only=True)
class Indicator:
    """One indicator for a period t, from jobs with positive earnings in t and its neighbours."""

    code: str
    label: str
    unit: Literal["jobs", "earnings"]
    before: int = 0
    """How many periods before t it looks at: four quarters, or years, for new hires."""
    after: int = 0
    """How many periods after t it looks at."""
    additive: bool = True
    """Whether it adds up over any partition of the jobs; a ratio does not."""


INDICATORS = (
    Indicator(code="employment", label="Jobs with any earnings in the period", unit="jobs"),
    Indicator(code="beginning", label="Jobs at the beginning of the period", unit="jobs", before=1),
    Indicator(code="end", label="Jobs at the end of the period", unit="jobs", after=1),
    Indicator(code="full_quarter", label="Jobs held the whole period", unit="jobs", before=1, after=1),
    Indicator(code="accessions", label="Jobs that began", unit="jobs", before=1),
    Indicator(code="separations", label="Jobs that ended", unit="jobs", after=1),
    Indicator(code="new_hires", label="Jobs that began, new to the employer", unit="jobs", before=4),
    Indicator(code="recalls", label="Jobs that began again after one to three periods away", unit="jobs", before=4),
    Indicator(code="job_creation", label="Jobs gained by growing employers", unit="jobs", before=1, after=1),
    Indicator(code="job_destruction", label="Jobs lost by shrinking employers", unit="jobs", before=1, after=1),
    Indicator(code="payroll", label="Total payroll", unit="earnings"),
    Indicator(
        code="full_quarter_payroll", label="Payroll of jobs held the whole period", unit="earnings", before=1, after=1
    ),
    Indicator(
        code="average_monthly_earnings",
        label="Average monthly earnings of jobs held the whole period",
        unit="earnings",
        before=1,
        after=1,
        additive=False,
    ),
)
"""Every indicator, in the order of a table; docs/methods/noise-infusion.md defines them."""

CODES = tuple(indicator.code for indicator in INDICATORS)

_COUNTED = {"payroll": "employment", "full_quarter_payroll": "full_quarter", "average_monthly_earnings": "full_quarter"}
BEHIND = tuple(CODES.index(_COUNTED.get(code, code)) for code in CODES)
"""For every indicator, the place of the one that counts the jobs behind it."""

ROUNDED_INDICATORS = 8
"""How many indicators are rounded by themselves: four stocks, new hires, creation, two payrolls. Others follow."""
