"""Power plants that report every month what they generate: skewed, seasonal, with plants that open, close and stop.

Made after what is publicly known of such collections: a few large plants have most of what a state generates, the same
plants report month after month, who reports is settled every January (1 % of plants are new then, 1 % are gone), and
a plant stands still now and then.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.conftest import same_key

STATES = tuple(f"S{number:02d}" for number in range(1, 51))
FUELS = ("coal", "gas", "hydro", "nuclear", "wind")
_SHARES = (0.16, 0.34, 0.24, 0.03, 0.23)
_SIZES = (12.3, 11.0, 9.6, 13.6, 10.0)
_SPREADS = (1.0, 1.5, 1.6, 0.35, 1.1)
_PEAKS = (6, 6, 4, 0, 2)
_SWINGS = (0.02, 0.04, 0.08, 0.01, 0.06)
"""Of each fuel: how common it is, how large its plants are and how unequal, and when and by how much it swings."""
_DEMAND = 0.2
"""By how much all plants swing together, with the demand of the season."""


def months(number: int, *, first: int = 2021) -> tuple[str, ...]:
    """Months in a row, as the files write them."""
    return tuple(f"{first + at // 12}-{at % 12 + 1:02d}" for at in range(number))


def write_plants(
    folder: Path, *, plants: int = 1500, number: int = 60, apart: float = 0.03, seed: int = 1, key: int = 18
) -> tuple[str, ...]:
    """Write `plants.parquet`, one row a plant and month in which it reports, and a key; returns the months.

    `apart` is the standard deviation of what a plant generates in a month beside the season, as a share. The key of a
    number is the same in every run.
    """
    rng = np.random.default_rng(seed)
    fuel = rng.choice(len(FUELS), plants, p=_SHARES)
    state = rng.choice(STATES, plants)
    size = np.exp(rng.normal(np.array(_SIZES)[fuel], np.array(_SPREADS)[fuel]))
    at = np.arange(number)
    season = 1 + np.array(_SWINGS)[fuel, None] * np.cos(2 * np.pi * (at - np.array(_PEAKS)[fuel, None]) / 12)
    season *= 1 + _DEMAND * np.cos(2 * np.pi * (at - 6) / 12)
    drift = np.exp(np.cumsum(rng.normal(0, apart / 4, (plants, number)), axis=1))
    own = np.exp(rng.normal(0, apart, (plants, number)))
    generated = np.rint(size[:, None] * season * drift * own).astype(np.int64)
    years = max(number // 12, 1)
    opened = np.where(rng.random(plants) < 0.01 * years, 12 * rng.integers(0, years, plants), 0)
    closed = np.where(rng.random(plants) < 0.01 * years, 12 * rng.integers(1, years + 1, plants), number)
    reports = (at >= opened[:, None]) & (at < closed[:, None])
    generated[rng.random((plants, number)) < 0.002] = 0  # it stood still, and reports so
    plant, month = np.nonzero(reports)
    codes = months(number)
    columns = {
        "row": np.arange(len(plant)),
        "plant": plant,
        "month": np.array(codes)[month],
        "state": state[plant],
        "fuel": np.array(FUELS)[fuel[plant]],
        "generated": generated[plant, month],
    }
    pq.write_table(pa.table(columns), folder / "plants.parquet")
    if not (folder / "sfumato.key").exists():
        same_key(folder / "sfumato.key", key)
    return codes


def release(codes: tuple[str, ...], tables: str, *, unit: str = "plant", period: bool = True) -> str:
    """A release file of these plants with some tables."""
    listed = ", ".join(f'"{code}"' for code in codes)
    quoted = [", ".join(f'"{code}"' for code in some) for some in (STATES, FUELS)]
    return f"""
[release]
title = "Electricity generated"
period = "{codes[0]} to {codes[-1]}"
key = "sfumato.key"

[data]
records = {{ path = "plants.parquet", unit = "{unit}"{', period = "month"' if period else ""} }}

[data.attributes]
month = {{ codes = [{listed}] }}
state = {{ codes = [{quoted[0]}] }}
fuel = {{ codes = [{quoted[1]}] }}

[data.measures]
generated = {{ unit = "megawatt-hours", minimum = 0 }}
{tables}"""
