"""Counts of the answers that went through one channel: all that a server keeps of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cube.runtime import cached_property
from local_dp.channels.channel import Floats
from local_dp.channels.choice import AnyChannel
from local_dp.channels.local_hashing import LocalHashing


@dataclass(frozen=True, eq=False)
class Tally:
    """How many of some answers count at each place of their channel.

    Parameters
    ----------
    channel : RandomisedResponse, UnaryEncoding or LocalHashing
    n_answers : int
    counts : (n_tallies,) ndarray of int64
    """

    channel: AnyChannel
    n_answers: int
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        counts = np.array(self.counts, dtype=np.int64, copy=True)
        if counts.shape != (self.channel.n_tallies,):
            raise ValueError(f"{self.channel.n_tallies} counts are needed, not {counts.shape}")
        if counts.min() < 0 or counts.max() > self.n_answers:
            raise ValueError("a count is from 0 to the number of answers")
        if self.channel.is_categorical and int(counts.sum()) != self.n_answers:
            raise ValueError("every answer counts at one place")
        counts.flags.writeable = False
        object.__setattr__(self, "counts", counts)

    @classmethod
    def of_answers(cls, channel: AnyChannel, answers: Iterable[int]) -> "Tally":
        """The counts of some answers."""
        counts, n_answers = np.zeros(channel.n_tallies, dtype=np.int64), 0
        for answer in answers:
            n_answers += 1
            counts[list(channel.tallies_of(answer))] += 1
        return cls(channel, n_answers, counts)

    @property
    def rates(self) -> Floats:
        """The part of the answers that counts at each place."""
        if self.n_answers == 0:
            raise ValueError("there are no answers")
        return np.asarray(self.counts / self.n_answers)

    @cached_property
    def supports(self) -> Floats:
        """Of local hashing: for each cell, how many answers have it in their bucket."""
        if not isinstance(self.channel, LocalHashing):
            raise TypeError("answers support cells where these are hashed")
        return self.channel.supports(self.counts)


def merged(tallies: Sequence[Tally]) -> tuple[Tally, ...]:
    """One tally for each channel, of all its answers; those without answers are left out."""
    found: dict[AnyChannel, Tally] = {}
    for tally in tallies:
        if tally.n_answers:
            known = found.get(tally.channel)
            found[tally.channel] = (
                tally
                if known is None
                else Tally(
                    tally.channel, known.n_answers + tally.n_answers, known.counts + tally.counts
                )
            )
    return tuple(found.values())
