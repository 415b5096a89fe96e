"""Derives a stream's population, laws and epochs from its declared public numbers.

Who notes them, and where, is not known here.
"""

from functools import lru_cache
from typing import Final, Protocol, TypeAlias

from streams.counters import CounterMechanism
from streams.epoch import Epoch
from streams.mechanism import Mechanism
from streams.population import Buckets, Everyone, Population, Sample
from streams.randomness import GeometricNoise, TwoPoint
from streams.visit_epoch import VisitEpoch

N_POPULATIONS_KEPT: Final = 32
AnyEpoch: TypeAlias = Epoch | VisitEpoch


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
    def levels(self) -> int:
        """Up to which number a user's visits are counted; 0 if only distinct users are."""

    @property
    def n_releases(self) -> int:
        """How many releases an epoch has."""

    @property
    def has_departures(self) -> bool:
        """Whether users may leave again."""

    @property
    def predicates(self) -> tuple[str, ...]:
        """Those that have an estimator, beside the one of everybody."""

    @property
    def key(self) -> str:
        """In hexadecimal, who is in the sample or in which bucket; empty if all have a bit."""


def epoch_of(stream: str, declared: DeclaredStream, name: str, noisy: tuple[int, ...]) -> AnyEpoch:
    """An epoch of a stream; with what was released of it, if anything was."""
    population, predicates = population_of(declared), declared.predicates
    if declared.levels:
        counters = counters_of(declared)
        return VisitEpoch(stream, name, population, counters, predicates, noisy)
    return Epoch(
        stream,
        name,
        population,
        mechanism_of(declared),
        has_departures=declared.has_departures,
        predicates=predicates,
        noisy_ones=noisy,
    )


def counters_of(declared: DeclaredStream) -> CounterMechanism:
    """The laws of a stream's cells and of its noise."""
    law, noise = TwoPoint(declared.p1), GeometricNoise(declared.alpha)
    return CounterMechanism(declared.levels, law, noise, declared.n_releases)


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
