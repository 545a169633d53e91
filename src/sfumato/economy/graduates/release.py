"""The release file that comes with graduates or veterans: percentiles of earnings, years after."""

from typing import Final

from sfumato.economy.files import attributes_text
from sfumato.economy.graduates.people import Population
from sfumato.economy.graduates.years import AFTER

MEDIAN: Final = {False: 48_000, True: 40_000}
"""Dollars a year: the median that bins are made for, of graduates and of veterans; a round guess, not of the data."""
SIGMA: Final = "0.7"
"""The spread of log earnings that bins are made for."""
BINS: Final = 32

_TEXT = """\
# Publish it with `sfumato run release.toml`; docs/methods/earnings-percentiles.md explains the method.

[release]
title = "Earnings of {who}"
population = "{who}"
period = "{period}"
# A person is in one cell of each of {years} years: {years} x 1.5 = 4.5.
budget = {{ epsilon = 4.5, definition = "individuals" }}

[data]
engine = "duckdb"
records = {{ path = "earnings.parquet", unit = "person", period = "years" }}

[data.attributes]
{attributes}
[data.measures]
earnings = {{ label = "Earnings", unit = "dollars a year", minimum = 0 }}

# Bins hold equal shares of a log-normal distribution that everybody may know. Cells whose noisy count is below 30 are
# withheld.
[[table]]
name = "percentiles"
title = "Percentiles of earnings by {words}"
quantiles = {{ of = "earnings", at = [25, 50, 75], bins = {{ median = {median}, sigma = {sigma}, number = {bins} }} }}
by = {by}
decimals = 0
protect = {{ method = "noisy-quantiles", epsilon = 4.5, minimum = 30 }}
"""


def release_text(population: Population, *, veterans: bool) -> str:
    """The text of the release file on people of these cells."""
    codelists = (*population.codelists, population.years)
    *words, last = (codelist.label[0].lower() + codelist.label[1:] for codelist in codelists)
    return _TEXT.format(
        who="veterans" if veterans else "graduates",
        period="2000-2015" if veterans else "2001-2015",
        years=len(AFTER),
        attributes=attributes_text(codelists),
        words=f"{', '.join(words)} and {last}",
        median=MEDIAN[veterans],
        sigma=SIGMA,
        bins=BINS,
        by="[" + ", ".join(f'"{codelist.name}"' for codelist in codelists) + "]",
    )
