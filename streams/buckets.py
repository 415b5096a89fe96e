"""Buckets for a universe that nobody knows: each id has one, by a keyed hash.

A user touches one bucket however often they come, so a bucket's bit protects them as their own bit
would (proofs/pan_privacy.md, "Buckets"). Double tabulation: two layers of four tables each, from
SHAKE-256 of the key, which spread any set of ids as random functions would.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cube.cached import cached_property
from streams.sampling import KEY_BYTES_MIN, keyed_words

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
        if not 2 <= self.n_buckets <= N_BUCKETS_MAX:  # noqa: PLR2004 - one bucket counts nobody
            raise ValueError(f"there are 2 to {N_BUCKETS_MAX} buckets")
        if len(self.key) < KEY_BYTES_MIN:
            raise ValueError(f"a key has at least {KEY_BYTES_MIN} bytes")

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
