"""What a ledger notes of streams: that one was opened, its epochs, what was released, its end.

    stream_opened   how a stream counts, and what an epoch of it loses: public numbers, all whole
    epoch_begun     an epoch was paid for: noted before there is a state of it
    epoch_released  the noisy numbers of ones of an epoch; once, and then never others
    stream_dropped  nothing of it is observed or released any more; what was lost stays lost

The name of the stream stands where other entries have their table. Values that check themselves,
the epsilon against the two laws as well; whether they follow from each other is in stream_book.py.
The auditor computes the epsilon on its own.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

from accountant.ledger.limits import Window, check_name
from cube.exponential import epsilon_units_of

GRID: Final = 2**64  # probabilities of streams are whole numbers of this many parts
N_PLACES_MAX: Final = 2**32
N_PREDICATES_MAX: Final = 16
ONLY_EPOCH: Final = "all"  # of a stream whose epochs do not end by the clock
_KEY: Final = re.compile("([0-9a-f]{2}){16,64}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOpened:
    """A stream is observed from now on.

    Parameters
    ----------
    column : str
        What its users are called in a statement.
    universe : int
        The number of users there can be; 0 if nobody knows, and users fall into buckets.
    n_places : int
        The bits of a state: of everybody, of a sample, or of buckets.
    p1, alpha : int
        In units of ``2**-64``: the probability of a 1 for a user who is present, and the ratio of
        the probabilities of two neighbouring values of a release's noise.
    epsilon_units : int
        What an epoch loses, its state and its release together, over all of its estimators.
    epochs : Window
        When an epoch ends; if never, with its release.
    has_departures : bool
        Whether users may leave again.
    key : str
        In hexadecimal: who is in the sample or in which bucket. Public; empty if everybody has a
        bit.
    budget_units : int, optional
        The most that all epochs may lose together.
    by : str
    predicates : tuple of str
        Those whose users are counted too, each by an estimator of its own.
    """

    column: str
    universe: int
    n_places: int
    p1: int
    alpha: int
    epsilon_units: int
    epochs: Window
    has_departures: bool
    key: str
    budget_units: int | None
    by: str
    predicates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check_columns()
        self._check_places()
        if not GRID // 2 < self.p1 < GRID or not 0 < self.alpha < GRID:
            raise ValueError("a stream whose bits or noise have no law")
        if not self.lost_units <= self.epsilon_units:
            raise ValueError("a stream whose epochs lose more than is noted")
        if self.budget_units is not None and self.budget_units < self.epsilon_units:
            raise ValueError("a stream whose budget is below its first epoch")

    def _check_columns(self) -> None:
        names = self.column, *self.predicates
        for name in names:
            check_name(name)
        if len({name.casefold() for name in names}) < len(names):
            raise ValueError("a predicate with the name of another one, or of the users")
        if len(self.predicates) > N_PREDICATES_MAX:
            raise ValueError("a stream with too many predicates")

    def _check_places(self) -> None:
        if not 0 <= self.universe <= N_PLACES_MAX or self.n_places < 1:
            raise ValueError("a stream with too many users, or without a place")
        if self.n_places * self.n_estimators > N_PLACES_MAX:
            raise ValueError("a stream with too many places")
        if self.universe and self.n_places > self.universe:
            raise ValueError("a stream with more places than users")
        if (self.universe == self.n_places) != (not self.key):
            raise ValueError("a key says who has a place, unless everybody has one")
        if self.key and not _KEY.fullmatch(self.key):
            raise ValueError("a key that is not 16 to 64 bytes in hexadecimal")
        if self.has_departures and not self.universe:
            raise ValueError("departures from buckets, which users share")

    @property
    def n_estimators(self) -> int:
        """One for everybody, and one for each predicate."""
        return 1 + len(self.predicates)

    @property
    def lost_units(self) -> int:
        """What the two laws lose together, once for each estimator.

        Proof: streams/proofs/pan_privacy.md.
        """
        p1, p0, alpha = self.p1, GRID - self.p1, self.alpha
        ratio = Fraction(p1, p0) * (Fraction(p0, GRID) + Fraction(p1, alpha))
        return self.n_estimators * epsilon_units_of(ratio)

    def epoch_at(self, at: str) -> str:
        """The name of the epoch that a moment is in: the first day of its window."""
        return self.epochs.start(at)[:10] or ONLY_EPOCH


@dataclass(frozen=True, slots=True)
class EpochBegun:
    """An epoch is paid for; then there may be a state of it.

    Parameters
    ----------
    epoch : str
    units_before, units_after : int
        What all epochs of the stream lose together.
    """

    epoch: str
    units_before: int
    units_after: int


@dataclass(frozen=True, slots=True)
class EpochReleased:
    """What was released of an epoch.

    Parameters
    ----------
    epoch : str
    noisy_ones : tuple of int
        Each a number of ones with noise, which may be below 0: of everybody, then of each
        predicate.
    """

    epoch: str
    noisy_ones: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.noisy_ones:
            raise ValueError("a release of nothing")


@dataclass(frozen=True, slots=True)
class StreamDropped:
    """The stream is over; its name is not used again."""

    by: str


StreamBody: TypeAlias = StreamOpened | EpochBegun | EpochReleased | StreamDropped
STREAM_BODIES: Final = (StreamOpened, EpochBegun, EpochReleased, StreamDropped)
