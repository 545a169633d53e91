"""The bin that holds a percentile, chosen by the exponential mechanism."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy

from sfumato.arrays import Floats, Integers
from sfumato.methods.cumulative_curve import Ends, Percentiles, shares_of
from sfumato.methods.log_normal_fit import WITHIN, LogNormalFit
from sfumato.methods.public_bins import PublicBins
from sfumato.methods.small_samples import NORMAL
from sfumato.methods.summed_curve import with_geometric_noise
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Randomness
from sfumato.noise.weighted_choice import WeightedChoice


@dataclass(frozen=True, kw_only=True)
class ChosenBins:
    """Each percentile is a bin, chosen with a probability that falls with the number of people it is off by.

    ε is divided evenly over the percentiles and the count. The error does not grow with the number of bins, but nothing
    is known of where in its bin a percentile is.
    """

    bins: PublicBins
    at: tuple[Fraction, ...]
    epsilon: Fraction

    @property
    def noise(self) -> Geometric:
        """Of the count."""
        return Geometric(epsilon=self.epsilon / (len(self.at) + 1))

    def choice(self, place: Fraction) -> WeightedChoice:
        """How one percentile's bin is chosen: one person more moves no cost by more than the larger of a and b − a."""
        share = place / 100
        moved = max(share.numerator, share.denominator - share.numerator)
        return WeightedChoice(rate=self.epsilon / (len(self.at) + 1) / (2 * moved))

    def costs(self, counts: Integers, place: Fraction) -> Integers:
        """By how many people, times b, every bin misses the percentile a/b: 0 for the bin that holds it."""
        share = place / 100
        ends = np.cumsum(counts, axis=1)
        wanted = share.numerator * ends[:, -1:]
        too_high = share.denominator * (ends - counts) - wanted
        too_low = wanted - share.denominator * ends
        costs: Integers = np.maximum(np.maximum(too_high, too_low), 0)
        return costs

    def measured(self, counts: Integers, randomness: Randomness) -> Integers:
        """The noisy count, and a bin for each percentile."""
        people = with_geometric_noise(counts.sum(axis=1), self.noise, randomness)
        chosen = [self.choice(place).sample(self.costs(counts, place), randomness) for place in self.at]
        return np.stack([people, *chosen], axis=1)

    def expected(self, counts: Floats) -> Integers:
        """The number of people, and the bins that hold the percentiles."""
        whole = np.rint(counts).astype(np.int64)
        bins = [self.costs(whole, place).argmin(axis=1) for place in self.at]
        return np.stack([whole.sum(axis=1), *bins], axis=1)

    def percentiles(self, measured: Integers) -> Percentiles:
        """The middles of the chosen bins, in order."""
        people, chosen = measured[:, 0], np.sort(measured[:, 1:], axis=1)
        logs = self.bins.middles[chosen]
        errors = self._errors(people, logs)
        lowest, highest = (
            np.searchsorted(self.bins.logs[1:-1], logs + side * NORMAL * errors, side="right") for side in (-1, 1)
        )
        ends = Ends.of(self.bins, at=chosen, lowest=lowest, highest=highest)
        return Percentiles(logs=logs, errors=errors, likely=errors, people=people, ends=ends)

    def _errors(self, people: Integers, logs: Floats) -> Floats:
        """What choosing would do to a log-normal cell with these percentiles, which may be anywhere in their bins."""
        shares = shares_of(self.at)
        z = scipy.special.ndtri(shares)
        usual = WITHIN * self.bins.guess[1]
        away = z - z.mean()
        spread = np.full(len(logs), usual)
        if len(shares) > 1:
            spread = np.clip((logs @ away) / (away @ away), 0.2 * usual, 2 * usual)
        fit = LogNormalFit(
            bins=self.bins,
            people=np.maximum(people, 1).astype(np.float64),
            mean=logs.mean(axis=1) - spread * z.mean(),
            spread=spread,
        )
        counts = np.rint(fit.people[:, None] * np.diff(fit.below, axis=1)).astype(np.int64)
        errors = np.empty_like(logs)
        for column, place in enumerate(self.at):
            chances = self.choice(place).probabilities(self.costs(counts, place))
            holds = chances.argmax(axis=1)
            missed = np.sum(chances * (self.bins.middles - self.bins.middles[holds, None]) ** 2, axis=1)
            errors[:, column] = np.sqrt(missed + np.diff(self.bins.logs)[holds] ** 2 / 12)
        return errors
