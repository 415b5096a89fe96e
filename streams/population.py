"""Who is counted: all of a small universe, a sample of a large one, or buckets of an unknown one.

A population gives each user who arrives a place among the bits, or none, and says what the number
of occupied places tells of the number of users. All of it is public, and chosen before the stream.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cube.cached import cached_property
from cube.refusals import InvalidRequest
from streams.buckets import KeyedBuckets
from streams.sampling import UNIVERSE_MAX, KeyedPermutation
from streams.windows import Window, hypergeometric, occupied


class Population(Protocol):
    """Who has which bit, and what the bits say of everybody."""

    @property
    def n_bits(self) -> int:
        """The number of places."""

    @property
    def is_known(self) -> bool:
        """Whether the universe is: then there are no users beyond `n_users_max`."""

    @property
    def n_users_max(self) -> int:
        """The most users there can be; of an unknown universe, the most that can be told apart."""

    def places(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The places of those of the users who have one.

        Raises
        ------
        InvalidRequest
            If an id is no user's. Then nothing of the call was done.
        """

    def occupied(self, n_users: int) -> Window:
        """The law of the number of occupied places, if so many users are present."""

    def users(self, density: float) -> float:
        """The number of users for a share of occupied places, which noise may put beyond 0 or 1."""


@dataclass(frozen=True)
class Everyone:
    """Each of the users ``0 .. universe - 1`` has a bit.

    Parameters
    ----------
    universe : int
    """

    universe: int

    def __post_init__(self) -> None:
        _check_universe(self.universe)

    @property
    def n_bits(self) -> int:
        """The number of places."""
        return self.universe

    @property
    def is_known(self) -> bool:
        """Yes."""
        return True

    @property
    def n_users_max(self) -> int:
        """All of them."""
        return self.universe

    def places(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The places of the users: their ids."""
        _check_ids(ids, self.universe)
        return ids

    def occupied(self, n_users: int) -> Window:
        """As many places as users."""
        return Window.certain(n_users)

    def users(self, density: float) -> float:
        """The same share of the universe; unbiased, and not cut off."""
        return density * self.universe


@dataclass(frozen=True)
class Sample:
    """A uniform sample of the users ``0 .. universe - 1`` has bits, drawn before the stream.

    Parameters
    ----------
    universe : int
    n_bits : int
    key : bytes
        Who is in the sample.
    """

    universe: int
    n_bits: int
    key: bytes

    def __post_init__(self) -> None:
        _check_universe(self.universe)
        if not 1 <= self.n_bits <= self.universe:
            raise ValueError("a sample has at least one user, and no more than there are")
        KeyedPermutation(self.universe, self.key)

    @property
    def is_known(self) -> bool:
        """Yes."""
        return True

    @property
    def n_users_max(self) -> int:
        """The universe."""
        return self.universe

    def places(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The places of those in the sample."""
        _check_ids(ids, self.universe)
        permuted = self._permutation.places(ids)
        return permuted[permuted < self.n_bits]

    def occupied(self, n_users: int) -> Window:
        """Drawn without replacement."""
        return hypergeometric(self.universe, n_users, self.n_bits)

    def users(self, density: float) -> float:
        """The same share of the universe; unbiased, and not cut off."""
        return density * self.universe

    @cached_property
    def _permutation(self) -> KeyedPermutation:
        return KeyedPermutation(self.universe, self.key)


@dataclass(frozen=True)
class Buckets:
    """Any 64-bit id is a user; each falls into one of the buckets, which have the bits.

    Parameters
    ----------
    n_bits : int
        Buckets: a few times as many as users are expected, or not much fewer.
    key : bytes
        Which bucket each id is in.
    """

    n_bits: int
    key: bytes

    def __post_init__(self) -> None:
        KeyedBuckets(self.n_bits, self.key)

    @property
    def is_known(self) -> bool:
        """No."""
        return False

    @property
    def n_users_max(self) -> int:
        """So many that a bucket is left empty once in ``exp(30)`` times; more look the same."""
        return math.ceil(self.n_bits * (math.log(self.n_bits) + 30))

    def places(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The bucket of each."""
        return self.hashed.places(ids)

    def occupied(self, n_users: int) -> Window:
        """Users share buckets at random."""
        return occupied(n_users, self.n_bits)

    def users(self, density: float) -> float:
        """How many users leave so many buckets empty on average; of less than half a bucket, half.

        >>> round(Buckets(1000, bytes(16)).users(0.5))
        693
        """
        empty = max(1 - density, 0.5 / self.n_bits)
        return math.log(empty) / math.log1p(-1 / self.n_bits)

    @cached_property
    def hashed(self) -> KeyedBuckets:
        """The hash, which also makes ids of texts."""
        return KeyedBuckets(self.n_bits, self.key)


def _check_universe(universe: int) -> None:
    if not 1 <= universe <= UNIVERSE_MAX:
        raise ValueError(f"a universe has 1 to {UNIVERSE_MAX} users")


def _check_ids(ids: NDArray[np.int64], universe: int) -> None:
    """Refuse ids of nobody. Which ones they were is not said: a message may end in a log."""
    if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < universe:
        raise InvalidRequest(
            f"An id lies outside the universe of the stream, which is 0 to {universe - 1}.",
            hint="None of the ids beside it was observed; send them again without that one.",
        )
