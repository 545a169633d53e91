"""The strata of the sample: industry by size, and in each industry the establishments taken for sure."""

from typing import Final

from sfumato.arrays import Floats
from sfumato.economy import industries
from sfumato.economy.codelists import OWNERSHIP as EVERY_OWNERSHIP
from sfumato.economy.codelists import Codelist
from sfumato.economy.industries import INDUSTRY
from sfumato.economy.requirements.sizes import SIZE, worker_shares

PER_INDUSTRY: Final = len(SIZE) + 1
"""Strata of an industry: one for each size, and one for those taken for sure."""
SURE: Final = len(SIZE)
"""The position of the latter within an industry."""
STRATUM: Final = Codelist(
    name="stratum",
    label="Stratum",
    entries=tuple(
        (f"{industry}/{size}", f"{label}: {words}")
        for industry, label in INDUSTRY.entries
        for size, words in (*SIZE.entries, ("sure", "taken for sure"))
    ),
)
OWNERSHIP: Final = Codelist(
    name="ownership",
    label=EVERY_OWNERSHIP.label,
    entries=tuple(entry for entry in EVERY_OWNERSHIP.entries if entry[0] != "federal"),
)
"""Federal workers are not in the survey."""
WORKERS: Final = 130_000_000
"""In the country, whatever the size of the survey."""


def workers() -> Floats:
    """The workers of every stratum but those taken for sure: a row per industry, a column per size."""
    by_industry = industries.column("establishments") * industries.column("size")
    shares: Floats = (by_industry / by_industry.sum())[:, None] * worker_shares()
    return WORKERS * shares


def ownership_shares() -> Floats:
    """The shares of ownerships in every industry: a row each, summing to one."""
    kept = [EVERY_OWNERSHIP.codes.index(code) for code in OWNERSHIP.codes]
    shares = industries.ownership_shares()[:, kept]
    without_federal: Floats = shares / shares.sum(axis=1, keepdims=True)
    return without_federal
