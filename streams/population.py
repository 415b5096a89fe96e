"""Chooses who is counted: a small universe, a sample of a large one, or buckets of an unknown one.

A population gives each user who arrives a place among the bits, or none, and says what the number
of occupied places tells of the number of users. All of it is public, and chosen before the stream.

A sample is the first places of a keyed permutation of a universe: a Feistel network over a
rectangle of whole numbers, with rounds from tables that SHAKE-256 makes of the key. Any set of ids,
all even ones for example, is sampled like any other; a linear hash would sample arithmetic
progressions. The holder of the key knows who is in the sample. The sample must be independent of
the stream, but privacy does not depend on it.

Buckets are for an unknown universe: each id has one, by a keyed hash. A user touches one
bucket however often they come, so a bucket's bit protects them as their own bit would
(proofs/pan_privacy.md, "Buckets"). Double tabulation: two layers of four tables each, from
SHAKE-256 of the key, which spread any set of ids as random functions would.
"""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from cube.refusals import InvalidRequest
from cube.runtime import cached_property
from streams.windows import Window, hypergeometric, occupied

UNIVERSE_MAX: Final = 2**32
KEY_BYTES_MIN: Final = 16
N_ROUNDS: Final = 4  # of two steps each


@dataclass(frozen=True, slots=True)
class Rounds:
    """The tables of one round: what is added to either coordinate, by the other."""

    to_row: NDArray[np.uint32]
    to_column: NDArray[np.uint32]


@dataclass(frozen=True)
class KeyedPermutation:
    """A permutation of ``0 .. size - 1``.

    Parameters
    ----------
    size : int
    key : bytes
        At least 16 random bytes, the same as long as the permutation is used.

    Examples
    --------
    >>> mixed = KeyedPermutation(10, bytes(16)).places(np.arange(10))
    >>> sorted(mixed.tolist()) == list(range(10))
    True
    """

    size: int
    key: bytes

    def __post_init__(self) -> None:
        if not 1 <= self.size <= UNIVERSE_MAX:
            raise ValueError(f"a universe must have 1 to {UNIVERSE_MAX} users")
        if len(self.key) < KEY_BYTES_MIN:
            raise ValueError(f"a key must have at least {KEY_BYTES_MIN} bytes")

    @property
    def n_rows(self) -> int:
        """Rows of the rectangle, nearly a square, that holds the universe."""
        return math.isqrt(self.size - 1) + 1

    @property
    def n_columns(self) -> int:
        """Its columns; less than a row of it lies outside the universe."""
        return -(-self.size // self.n_rows)

    def places(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where each id is permuted to. Ids lie in the universe."""
        found = self._once(ids)
        outside = np.flatnonzero(found >= self.size)
        while outside.size:  # goes on along its cycle, which comes back into the universe
            found[outside] = self._once(found[outside])
            outside = outside[found[outside] >= self.size]
        return found

    def _once(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The permutation of the whole rectangle."""
        rows_of, columns_of = np.uint32(self.n_rows), np.uint32(self.n_columns)
        wide = ids // self.n_columns
        row, column = wide.astype(np.uint32), (ids - wide * self.n_columns).astype(np.uint32)
        for tables in self._rounds:
            row += tables.to_row[column]
            row -= rows_of * (row >= rows_of)
            column += tables.to_column[row]
            column -= columns_of * (column >= columns_of)
        return row.astype(np.int64) * self.n_columns + column

    @cached_property
    def _rounds(self) -> tuple[Rounds, ...]:
        def table(label: int, length: int, below: int) -> NDArray[np.uint32]:
            words = keyed_words(self.key, b"round %d of %d" % (label, self.size), length)
            return (words % np.uint64(below)).astype(np.uint32)

        return tuple(
            Rounds(
                table(2 * k, self.n_columns, self.n_rows),
                table(2 * k + 1, self.n_rows, self.n_columns),
            )
            for k in range(N_ROUNDS)
        )


def keyed_words(key: bytes, label: bytes, n: int) -> NDArray[np.uint64]:
    """Words that look random without the key, the same for the same key and label."""
    sponge = hashlib.shake_256(len(key).to_bytes(4, "little") + key + label)
    return np.frombuffer(sponge.digest(8 * n), dtype="<u8").astype(np.uint64)


N_BUCKETS_MAX: Final = 2**32
PIECES: Final = 4  # of 16 bits, in a word
TABLE: Final = 2**16


@dataclass(frozen=True)
class KeyedBuckets:
    """A hash of 64-bit ids to buckets.

    Parameters
    ----------
    n_buckets : int
    key : bytes
        At least 16 random bytes, the same as long as the buckets are.
    """

    n_buckets: int
    key: bytes

    def __post_init__(self) -> None:
        if not 2 <= self.n_buckets <= N_BUCKETS_MAX:  # noqa: PLR2004 - one bucket cannot count
            raise ValueError(f"the number of buckets must be from 2 to {N_BUCKETS_MAX}")
        if len(self.key) < KEY_BYTES_MIN:
            raise ValueError(f"a key must have at least {KEY_BYTES_MIN} bytes")

    def places(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The bucket of each id."""
        words = ids.astype(np.uint64)
        for tables in self._layers:
            words = _tabulated(words, tables)
        return ((words >> np.uint64(32)) * np.uint64(self.n_buckets) >> np.uint64(32)).astype(
            np.int64
        )

    def ids_of_texts(self, texts: Iterable[str]) -> NDArray[np.int64]:
        """Ids of 64 bits for users who are known by a text.

        Two of a billion texts have one id with probability 1/36; they count as one user.
        """
        key = hashlib.sha256(b"texts" + self.key).digest()
        digests = b"".join(
            hashlib.blake2b(text.encode(), digest_size=8, key=key).digest() for text in texts
        )
        return np.frombuffer(digests, dtype="<i8").astype(np.int64)

    @cached_property
    def _layers(self) -> tuple[NDArray[np.uint64], ...]:
        return tuple(
            keyed_words(self.key, b"layer %d" % k, PIECES * TABLE).reshape(PIECES, TABLE)
            for k in range(2)
        )


def _tabulated(words: NDArray[np.uint64], tables: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed = np.zeros_like(words)
    for k in range(PIECES):
        mixed ^= tables[k][(words >> np.uint64(16 * k)) & np.uint64(TABLE - 1)]
    return mixed


class Population(Protocol):
    """Who has which bit, and what the bits say about everybody."""

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
            raise ValueError("a sample must have at least one user, and at most the whole universe")
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
        raise ValueError(f"a universe must have 1 to {UNIVERSE_MAX} users")


def _check_ids(ids: NDArray[np.int64], universe: int) -> None:
    """Refuse ids outside the universe. The message never names them, since it may end in a log."""
    if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < universe:
        raise InvalidRequest(
            f"An id is outside the universe of the stream, which is 0 to {universe - 1}.",
            hint="No id of this call was counted; send the others again without it.",
        )
