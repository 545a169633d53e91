"""Errors of values after tables were made to agree, from published numbers alone; docs/adjust.md has the reasons.

Agreed values are x = P·y, where P follows public weights only. So the noise of each is Σ P·noise, and its mean square
Σ P²·σ². P is never written down: signs drawn at random, times the errors of all protected values, are made to agree
like values, and the mean square of what becomes of them is Σ P²·e². A cell that keeps its own value has its own error
exactly, whatever the signs.
"""

from collections.abc import Mapping
from hashlib import shake_256

import numpy as np

from sfumato.agree.reconcile import Above, Protected, projected, shared_margins, unrelated
from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.method import PublishedFigures

ERROR = "millionths of its error after agreeing"
_MOST_TRIALS, _LEAST_TRIALS, _MOST_CELLS = 32, 8, 2_000_000
"""As many trials as look at so many cells in all, between these two: 32 tell errors to 13 %, and 8 to 25 %."""
_PRECISION = 0.01
_OF_A_SUM = 4 / np.pi
"""A sum's mean absolute error over the root of the sum of their squares, squared, if noise of such shape is normal."""
_OF_90_PERCENT = 1.645 * 2**0.5
"""Sums of noise are about normal, and its root mean square is √2 times its mean, as that of Laplace noise is."""


def errors_after(
    tables: Mapping[str, Protected], errors: Mapping[str, Floats], above: Above = unrelated
) -> dict[str, Floats]:
    """The error of every agreed value, `errors` being those of the protected ones; NaN where these are."""
    margins = shared_margins(tables, above)
    variances = {name: np.square(np.nan_to_num(table.errors)) for name, table in tables.items()}
    known = {name: np.nan_to_num(errors[name]) for name in tables}
    squares = {name: np.zeros(len(own)) for name, own in known.items()}
    own_part = {name: np.zeros(len(own)) for name, own in known.items()}
    trials = min(max(_MOST_CELLS // max(sum(map(len, known.values())), 1), _LEAST_TRIALS), _MOST_TRIALS)
    fixed = {name: table for name, table in tables.items() if table.fixed}
    among = shared_margins(fixed, above)
    for trial in range(trials):
        drawn = {name: own * _signs(f"{name} {trial}", len(own)) for name, own in known.items()}
        if among:  # tables that were published before agree with one another, and so does their noise
            noise = {name: np.square(known[name]) for name in fixed}
            drawn |= projected({name: drawn[name] for name in fixed}, noise, among, precision=_PRECISION)
        for name, value in projected(drawn, variances, margins, precision=_PRECISION).items():
            squares[name] += np.square(value) / trials
            own_part[name] += np.sign(drawn[name]) * value / trials
    found = {}
    for name, mean in squares.items():
        own = np.minimum(np.square(own_part[name]), mean)  # what is left of its own noise has the shape it had
        found[name] = np.where(np.isnan(errors[name]), np.nan, np.sqrt(own + _OF_A_SUM * (mean - own)))
    return found


def _signs(name: str, number: int) -> Floats:
    """Signs that are the same on every machine."""
    bits = np.frombuffer(shake_256(name.encode()).digest(-(-number // 8)), dtype=np.uint8)
    return np.unpackbits(bits, count=number).astype(np.float64) * 2 - 1


def with_errors(agreed: Cells, errors: Floats) -> Cells:
    """Agreed values with the errors they have; where none is known, nothing is told."""
    stored: Integers = np.where(np.isnan(errors), -1, np.ceil(np.nan_to_num(errors) * 1e6)).astype(np.int64)
    return agreed.with_column(ERROR, stored)


def figures_after(agreed: Cells, before: PublishedFigures) -> PublishedFigures:
    """The figures of agreed values, at 90 %; those of the protected values where tables were not made to agree."""
    if ERROR not in agreed.columns:
        return before
    known, value = agreed[ERROR] >= 0, agreed["value"].astype(np.float64)
    error: Floats = agreed[ERROR] / 1e6
    away = _OF_90_PERCENT * error
    return PublishedFigures(
        error=np.where(known, error, before.error),
        low=np.where(known, np.maximum(np.floor(value - away), 0.0), before.low),
        high=np.where(known, np.maximum(np.ceil(value + away), 0.0), before.high),
    )
