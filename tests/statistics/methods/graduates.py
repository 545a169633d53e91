"""Cells of people with log-normal earnings, whose means and spreads differ as much as those of graduates."""

from fractions import Fraction

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells, Dimension
from sfumato.statistics.people.bins import PublicBins
from sfumato.statistics.people.percentiles import CurveName, bins_of_guess

AT = (Fraction(25), Fraction(50), Fraction(75))
MEDIAN, MINIMUM, MAXIMUM = 45_000, 0, 2_000_000
SIZES = (30, 40, 50, 70, 100, 150, 200, 300, 500, 1_000, 3_000)


def bins(number: int) -> PublicBins:
    """Bins of a guess that is right about all graduates together, roughly."""
    return PublicBins.equal_mass(median=MEDIAN, sigma=Fraction("0.75"), number=number, minimum=MINIMUM, maximum=MAXIMUM)


def bins_for(curve: CurveName, number: int) -> PublicBins:
    """The bins that a release file with this guess makes for a curve."""
    return bins_of_guess(curve, median=MEDIAN, sigma=Fraction("0.75"), number=number, minimum=MINIMUM, maximum=MAXIMUM)


def earnings(cells: int, size: int, *, seed: int, part_time: float = 0.0) -> Floats:
    """One row a cell; a share of people may earn about a third, which no log-normal distribution has."""
    rng = np.random.default_rng([seed, size])
    mean = np.log(MEDIAN) + 0.35 * rng.standard_normal((cells, 1))
    spread = 0.62 * np.exp(0.2 * rng.standard_normal((cells, 1)))
    logs = mean + spread * rng.standard_normal((cells, size))
    logs -= 1.1 * (rng.random((cells, size)) < part_time)
    return np.clip(np.rint(np.exp(logs)), MINIMUM, MAXIMUM - 1)


def percentiles(earned: Floats) -> Floats:
    """The true ones, halfway between the ranks on either side: one row a cell."""
    shares = [float(place / 100) for place in AT]
    return np.quantile(earned, shares, axis=1, method="hazen").T


def counted(earned: Floats, public: PublicBins) -> Integers:
    """How many people of each cell are in each bin."""
    places = np.searchsorted(public.edges[1:-1], earned, side="right") + len(public) * np.arange(len(earned))[:, None]
    return np.bincount(places.ravel(), minlength=len(earned) * len(public)).reshape(len(earned), -1)


def cells_of_bins(counts: Integers) -> Cells:
    """Cells of one public dimension and the bins."""
    rows, columns = counts.shape
    group = Dimension(name="field", codes=tuple(map(str, range(rows))))
    bin_ = Dimension(name="bin", codes=tuple(map(str, range(columns))))
    return Cells(
        dimensions=(group, bin_), positions=np.arange(counts.size), columns={"count": counts.ravel().astype(np.int64)}
    )
