"""What the columns of published tables say, and how far their values are typically off, in words."""

from collections.abc import Iterable
from typing import Any

from sfumato.agree.composite import COMPOSITE, COMPOSITE_ERROR
from sfumato.agree.published import MEASURED
from sfumato.method import CONFIDENCE, SCALE, STATUSES, PlannedError

COLUMNS = {
    "value": "protected value",
    "error": "upper estimate of the error: its mean absolute value if all jobs of the cell were in one establishment; "
    "of a negative value at least the value without its sign",
    "low": f"least true value the published one is consistent with, {CONFIDENCE:.0%} confidence",
    "high": f"greatest true value the published one is consistent with, {CONFIDENCE:.0%} confidence; empty: no limit",
    "rse": "relative standard error in percent, of sampling and perturbation together, rounded up to a coarse scale; "
    "empty: above the scale",
    "status": f"empty, or why a value is missing, made up or a bound: {', '.join(filter(None, STATUSES))}",
    "convergence_ratio": "published jobs behind the value for each employer of the cell in the register; above 1 the "
    "distortions of employers average out more slowly than with as many independent observations",
    MEASURED: "protected value before tables were made to agree",
    COMPOSITE: "composite estimate: the value moved towards what the other cells of the table predict; closer to the "
    "truth on average over cells, and not right on average for each: not to be added up",
    COMPOSITE_ERROR: "root of the estimated mean squared error of the composite estimate, over cells like this one",
    SCALE: "how large the largest establishment of the workplace cell is, with noise, as it was bought for the error "
    "figures: the logarithm of max(alpha times its workers, 1) in steps, of which `bought_steps` make a factor of "
    "1 + alpha; empty where there is no establishment",
    "establishments": "number of establishments, which is public; 0 means that value is exactly 0",
}
"""What the columns of tables say."""
ERROR_WITHIN = (
    "estimate of the error: its mean absolute value if the largest establishment of the cell were as large as finer "
    "tables of the release allow, and as the value; of a negative value at least the value without its sign"
)
"""What the column `error` says where finer tables tell how large an establishment can be."""
ERROR_BOUGHT = (
    "estimate of the error: its mean absolute value if the largest establishment of the cell were as large as the "
    "bought scale allows, which it exceeds in one of ten cases, and as the value; of a negative value at least the "
    "value without its sign"
)
"""What it says where a scale was bought."""
ERROR_AGREED = "estimate of the mean absolute error of the value after tables were made to agree"
"""What it says where they were."""
NOISED = ("error", "low", "high")
"""The error figures of tables with noise."""
ESTABLISHMENTS_KNOWN = {
    (True, True): "listed: a row with establishments = 0 has the value 0, exactly",
    (True, False): "implied: a combination of codes without a row has no establishment and the value 0, exactly",
    (False, True): "listed: a combination without any establishment is a row like others with the value 0",
    (False, False): "implied: a combination of codes without a row has the value 0, with or without an establishment",
}
"""What is known of combinations without an establishment: by whether their number is told, and whether listed."""
_THE_CELLS = "the cell's"


def typical(error: PlannedError, unit: str = "jobs", size: str = "workers") -> str:
    """How far a number is typically off, in words; `size` is what an establishment has many of."""
    if error.share is None:
        return "How far a number is typically off is confidential."
    if not error.share:
        return f"The noise is typically {error.in_a_small_cell} {unit}."
    return (
        f"Where no establishment of a cell has more than {error.floor_size:,} {size} the noise is typically "
        f"{error.in_a_small_cell} {unit}; otherwise it is typically {100 * error.share:.3g} % of "
        f"{error.of.replace('its', _THE_CELLS, 1)}."
    )


def number_left_out(tables: Iterable[Any]) -> str:
    """What is said of tables without the number of establishments whose zeros are not made by noise."""
    names = [f"`{table.name}`" for table in tables if not table.table.establishments and table.tells_establishments]
    if not names:
        return ""
    return (
        f" The number is left out of {', '.join(names)}: a 0 there does not mean that there is no establishment, but a "
        "value above 0 still means that there is one."
    )
