"""A synthetic survey of businesses: establishments of enterprises, their accounts, weights and staff."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato_lab.economy import files
from sfumato_lab.economy.business.design import CODELISTS, SIZE, Design, draw_design, size_of
from sfumato_lab.economy.business.divisions import INDUSTRY
from sfumato_lab.economy.business.draws import (
    NAMES,
    Establishments,
    Led,
    Staff,
    draw_consent,
    draw_establishments,
    draw_groups,
    draw_profit,
    draw_staff,
    draw_turnover,
    promote,
    replicate_weights,
    without_leaders,
)
from sfumato_lab.economy.business.occupations import OCCUPATION
from sfumato_lab.economy.business.states import STATE, TILES
from sfumato_lab.economy.files import attributes_text
from sfumato_lab.economy.frame import SEEDS, KeyedMade, Progress, Purpose, check_request, stream
from sfumato_lab.economy.jobs.codelists import SEX
from sfumato_lab.economy.maps import write_tiles

# The release file that comes with a survey of businesses, ready to run once there is a key.

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
    return _HEAD + records + attributes_text(described, on_maps=["state"]) + _TABLES


FEWEST, MOST = 1_000, 20_000_000
MOST_EMPLOYEES = 10_000_000
"""Rows of the sample of employees."""
MOST_WITH_REPLICATES = 1_000_000
"""Larger surveys have no replicate weights unless asked for: sixty columns of ten million rows are 5 GB in memory."""
BUSINESSES: Final = "businesses.parquet"
EMPLOYEES: Final = "employees.parquet"
# The release file comes last: a folder that has it has all the others.
FILES: Final = (
    BUSINESSES,
    EMPLOYEES,
    *files.codelist_names(CODELISTS),
    files.map_name("state"),
    files.RELEASE,
)
CHUNK = 1 << 17
"""Establishments drawn together; each chunk has its streams, so changing this changes the survey."""


@dataclass(frozen=True, kw_only=True)
class BusinessSurvey(KeyedMade):
    """What was generated, and where."""

    businesses: int
    enterprises: int
    employees: int
    """Rows of the sample of employees."""
    replicates: bool
    """Whether there are replicate weights."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every file, the release file last."""
        return FILES

    @property
    def words(self) -> str:
        """What it holds, in a sentence without its end."""
        replicates = "with replicate weights" if self.replicates else "without replicate weights"
        return (
            f"{self.businesses:,} businesses of {self.enterprises:,} enterprises, {replicates}, and "
            f"{self.employees:,} of their employees"
        )


@dataclass(frozen=True, kw_only=True)
class _Drawn:
    """A chunk of establishments with everything about them."""

    led: Led
    profit: NDArray[np.int64]
    consent: NDArray[np.bool_]
    group: NDArray[np.int64]
    staff: Staff


def generate_business(
    folder: Path,
    *,
    businesses: int = 100_000,
    seed: int = 1,
    replicates: bool | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> BusinessSurvey:
    """Write a survey of so many businesses to a folder; replicate weights by default up to a million of them.

    The content depends on `businesses` and `seed` alone; leaving the replicate weights out changes nothing else.
    Memory does not grow with the businesses. `progress` is told how many businesses are done, of how many.
    """
    check_request("survey of businesses", businesses=(businesses, FEWEST, MOST), seed=(seed, *SEEDS))
    if replicates is None:
        replicates = businesses <= MOST_WITH_REPLICATES
    folder = Path(folder)
    with files.staging(folder, overwrite=overwrite, names=FILES) as aside:
        files.write_codelists(aside, CODELISTS)
        write_tiles(aside / files.map_name("state"), TILES)
        (aside / files.RELEASE).write_text(release_text(replicates=replicates), encoding="utf-8")
        chunks = _draw(businesses, draw_design(seed), seed=seed)
        enterprises, employees = _write(aside, chunks, businesses, replicates=replicates, progress=progress)
    return BusinessSurvey(
        folder=folder,
        seed=seed,
        businesses=businesses,
        enterprises=enterprises,
        employees=employees,
        replicates=replicates,
    )


def _draw(businesses: int, design: Design, *, seed: int) -> Iterator[_Drawn]:
    """All establishments, one chunk after the other; those that lead a cell are in the first."""
    for chunk, begin in enumerate(range(0, businesses, CHUNK)):
        count = min(CHUNK, businesses - begin)
        establishments = draw_establishments(count, design, stream(seed, Purpose.BUSINESS_ESTABLISHMENTS, chunk))
        rng = stream(seed, Purpose.BUSINESS_ACCOUNTS, chunk)
        turnover = draw_turnover(establishments, rng)
        if chunk == 0:
            led = promote(establishments, turnover, design, scale=businesses / count, rng=rng)
        else:
            led = without_leaders(establishments, turnover)
        yield _Drawn(
            led=led,
            profit=draw_profit(led.establishments, led.turnover, rng),
            consent=draw_consent(led.establishments.employees, rng),
            group=draw_groups(_stratum(led.establishments), stream(seed, Purpose.BUSINESS_REPLICATES, chunk)),
            staff=draw_staff(
                led,
                design,
                limit=MOST_EMPLOYEES * count // businesses,
                rng=stream(seed, Purpose.BUSINESS_STAFF, chunk),
            ),
        )


def _stratum(establishments: Establishments) -> NDArray[np.int64]:
    return establishments.cell * len(SIZE) + size_of(establishments.employees)


def _write(
    folder: Path, chunks: Iterator[_Drawn], businesses: int, *, replicates: bool, progress: Progress | None
) -> tuple[int, int]:
    """Write businesses and employees chunk by chunk; the number of enterprises and of employees.

    Keys run from 1 on, one chunk after the other.
    """
    done = enterprises = employees = 0
    with files.writing(folder) as write:
        for drawn in chunks:
            establishments = drawn.led.establishments
            business = done + 1 + np.arange(len(establishments))
            enterprise = enterprises + 1 + establishments.enterprise
            write(BUSINESSES, _businesses_table(drawn, business, enterprise, replicates=replicates))
            write(EMPLOYEES, _employees_table(drawn, business, enterprise, first=employees + 1))
            done += len(establishments)
            enterprises += establishments.enterprises
            employees += len(drawn.staff)
            if progress is not None:
                progress(done, businesses)
    return enterprises, employees


def _businesses_table(
    drawn: _Drawn, business: NDArray[np.int64], enterprise: NDArray[np.int64], *, replicates: bool
) -> pa.Table:
    establishments = drawn.led.establishments
    table = files.table(
        {
            "business": business,
            "enterprise": enterprise,
            "state": (establishments.state, STATE),
            "industry": (establishments.industry, INDUSTRY),
            "size": (size_of(establishments.employees), SIZE),
            "turnover": drawn.led.turnover,
            "profit": drawn.profit,
            "employees": establishments.employees,
        }
    )
    table = table.append_column("weight", pa.array(establishments.weight))
    if replicates:
        for number, name in enumerate(NAMES):
            table = table.append_column(name, pa.array(replicate_weights(establishments.weight, drawn.group, number)))
    return table.append_column("consent", pa.array(drawn.consent))


def _employees_table(
    drawn: _Drawn, business: NDArray[np.int64], enterprise: NDArray[np.int64], *, first: int
) -> pa.Table:
    establishments, staff = drawn.led.establishments, drawn.staff
    row = staff.establishment
    table = files.table(
        {
            "employee": first + np.arange(len(staff)),
            "business": business[row],
            "enterprise": enterprise[row],
            "state": (establishments.state[row], STATE),
            "industry": (establishments.industry[row], INDUSTRY),
            "occupation": (staff.occupation, OCCUPATION),
            "sex": (staff.sex, SEX),
            "wage": staff.wage,
        }
    )
    return table.append_column("weight", pa.array(staff.weight))
