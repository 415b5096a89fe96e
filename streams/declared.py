"""Derives a stream's population, laws and epochs from its declared public numbers.

Who notes them, and where, is not known here.
"""

from functools import lru_cache
from typing import Final, Protocol

from streams.epoch import Epoch
from streams.mechanism import Mechanism
from streams.population import Buckets, Everyone, Population, Sample
from streams.randomness import GeometricNoise, TwoPoint

N_POPULATIONS_KEPT: Final = 32


class DeclaredStream(Protocol):
    """What is public about a stream, and fixed before it."""

    @property
    def universe(self) -> int:
        """The number of possible users; 0 if it is unknown, and users fall into buckets."""

    @property
    def n_places(self) -> int:
        """The bits of a state: of everybody, of a sample, or of buckets."""

    @property
    def p1(self) -> int:
        """The probability of a 1 for a user who is present, in units of ``2**-64``."""

    @property
    def alpha(self) -> int:
        """The ratio of two neighbouring probabilities of a release's noise, in the same units."""

    @property
    def has_departures(self) -> bool:
        """Whether users may leave again."""

    @property
    def predicates(self) -> tuple[str, ...]:
        """Those that have an estimator, beside the one of everybody."""

    @property
    def key(self) -> str:
        """In hexadecimal, who is in the sample or in which bucket; empty if all have a bit."""


def epoch_of(
    stream: str, declared: DeclaredStream, name: str, noisy_ones: tuple[int, ...]
) -> Epoch:
    """An epoch of a stream; with what was released of it, if anything was."""
    return Epoch(
        stream,
        name,
        population_of(declared),
        mechanism_of(declared),
        has_departures=declared.has_departures,
        predicates=declared.predicates,
        noisy_ones=noisy_ones,
    )


def mechanism_of(declared: DeclaredStream) -> Mechanism:
    """The laws of a stream's bits and of its noise; no other than what is noted."""
    return Mechanism(TwoPoint(declared.p1), GeometricNoise(declared.alpha))


def population_of(declared: DeclaredStream) -> Population:
    """Who has which bit."""
    return _population(declared.universe, declared.n_places, declared.key)


# The tables of a keyed hash are 4 MB, and take longer to make than a message to be noted.
@lru_cache(maxsize=N_POPULATIONS_KEPT)
def _population(universe: int, n_places: int, key: str) -> Population:
    who = bytes.fromhex(key)
    if not universe:
        return Buckets(n_places, who)
    if not who:
        return Everyone(universe)
    return Sample(universe, n_places, who)
