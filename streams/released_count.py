"""What one released number of ones says of the number of users: an estimate, and an interval."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from streams.estimator import estimated_density
from streams.interval import CountInterval, ErrorLaw, count_interval
from streams.mechanism import Mechanism
from streams.population import Population

N_KEPT: Final = 2**14


@dataclass(frozen=True, slots=True)
class ReleasedCount:
    """One number of an epoch's release.

    Parameters
    ----------
    population : Population
    mechanism : Mechanism
    noisy_ones : int
    """

    population: Population
    mechanism: Mechanism
    noisy_ones: int

    @property
    def density(self) -> float:
        """The estimated share of places that are occupied; unbiased, so maybe beyond 0 or 1."""
        return estimated_density(self.noisy_ones, self.population.n_bits, self.mechanism)

    @property
    def n_users(self) -> float:
        """The estimated number of distinct users."""
        return self.population.users(self.density)

    @property
    def law(self) -> ErrorLaw:
        """The law of the estimate's error, if as many users were there as estimated."""
        present = min(self.population.n_users_max, max(0, round(self.n_users)))
        return ErrorLaw(self.population, self.mechanism, present)

    def interval(self, confidence: float) -> CountInterval:
        """An interval for the number of distinct users."""
        return _interval(self, confidence)


# A release never changes, and a statement asks for each interval several times.
@lru_cache(maxsize=N_KEPT)
def _interval(count: ReleasedCount, confidence: float) -> CountInterval:
    return count_interval(count.noisy_ones, count.population, count.mechanism, confidence)
