"""The release file of one institution: employment and mean earnings of people who left it, year by year."""

from collections.abc import Sequence
from typing import Final

from sfumato.economy.codelists import Codelist
from sfumato.economy.files import attributes_text
from sfumato.economy.university.institutions import Institution
from sfumato.economy.university.titles import MOST_YEARS

MOST_EARNINGS: Final = 400_000
"""Dollars a year; higher earnings count as this."""

_TEXT = """\
# The employee report of one institution. Publish it with `sfumato run {code}.toml`; docs/methods/small-samples.md
# explains means of earnings. All institutions keep their budgets in one ledger, each on an account of its own.

[release]
title = "Employee report: {name}"
population = "employees of the {name}"
period = "2010-2019"
# A person is in one cell of each of {years} years, and in two tables: {years} x (0.25 + 1) = 12.5.
budget = {{ epsilon = 12.5, definition = "individuals", conditional = true }}
ledger = "ledger.sqlite"
bundle = "bundle-{code}"

[data]
engine = "duckdb"
records = {{ path = "{code}.parquet", unit = "person", period = "years" }}

[data.attributes]
{attributes}
[data.measures]
earnings = {{ label = "Earnings", unit = "dollars a year", minimum = 0, maximum = {most}, outside = "clip" }}

# 0.25 for each year.
[[table]]
name = "employment"
title = "People with earnings, by job title, sector and years since leaving"
count = "records"
by = ["title", "sector", "years"]
protect = {{ method = "laplace", epsilon = 2.5 }}

# 1 for each year: 0.8 for the means, 0.2 for the number of people they are of. One more person moves a mean of n by
# less than {most}/n, so that chi needs no look at the data.
[[table]]
name = "earnings"
title = "Mean earnings, by job title, sector and years since leaving"
mean = "earnings"
by = ["title", "sector", "years"]
decimals = 0
protect = {{ method = "mose", epsilon = 10, count_epsilon = 0.2, chi = {most} }}
"""


def release_text(institution: Institution, codelists: Sequence[Codelist]) -> str:
    """The text of the release file of an institution."""
    return _TEXT.format(
        code=institution.code,
        name=institution.name,
        years=MOST_YEARS,
        attributes=attributes_text(codelists),
        most=MOST_EARNINGS,
    )
