"""An epoch of a stream: one state, and one release, which every later question gets again.

A value: `released` gives the epoch that follows. Who keeps it makes the release durable before
anybody reads it, charges for the epoch before that, and erases the state behind it. A state that
was not released yet may be counted again after a crash, as nobody has seen what was drawn then.
"""

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cube.refusals import InvalidRequest
from streams.entropy import Entropy, SystemEntropy
from streams.estimator import estimated_density
from streams.interval import CountInterval, count_interval
from streams.mechanism import Mechanism
from streams.population import Population
from streams.state import BitState


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch.

    Parameters
    ----------
    stream, name : str
        Which stream, and which of its epochs.
    population : Population
    mechanism : Mechanism
    has_departures : bool
        Whether users may leave again, as the stream was declared. A user is present or not, however
        often they came. What is lost is the same.
    noisy_ones : int, optional
        What was released; none while the epoch is open.
    """

    stream: str
    name: str
    population: Population
    mechanism: Mechanism
    has_departures: bool = False
    noisy_ones: int | None = None

    def __post_init__(self) -> None:
        if self.has_departures and not self.population.is_known:
            raise ValueError("who leaves a bucket would take along all who share it")

    @property
    def is_open(self) -> bool:
        """Whether users are observed; once something is released, never again."""
        return self.noisy_ones is None

    @property
    def state_name(self) -> bytes:
        """What the header of its state says: 32 bytes that no other epoch's state has."""
        text = self.stream.encode() + b"\0" + self.name.encode()
        return hashlib.sha256(len(self.stream).to_bytes(4, "little") + text).digest()

    def observe(
        self,
        state: BitState,
        ids: NDArray[np.int64],
        *,
        present: bool | NDArray[np.bool_] = True,
    ) -> None:
        """Note users who arrived, or who left: of those that have a place, the bit is drawn anew.

        Parameters
        ----------
        state : BitState
            Of this epoch.
        ids : (n,) ndarray of int64
        present : bool or (n,) ndarray of bool
            Whether they arrived, or which of them; of a user who is there several times, the last
            one stands.

        Raises
        ------
        InvalidRequest
            If the epoch is over, or an id is nobody's, or users leave a stream that was declared
            without departures. Then nothing was noted.
        """
        if not self.is_open:
            raise InvalidRequest("The epoch of the stream is over.")
        if not (self.has_departures or np.all(present)):
            raise InvalidRequest("The stream was declared without departures.")
        if not isinstance(present, np.ndarray) or present.all():
            state.redraw(self.population.places(ids), present=bool(np.all(present)))
            return
        last = _last_of_each(ids)
        arrived = self.population.places(ids[last[present[last]]])
        left = self.population.places(ids[last[~present[last]]])
        state.redraw(arrived, present=True)
        state.redraw(left, present=False)

    def released(self, state: BitState, entropy: Entropy | None = None) -> "Epoch":
        """The epoch with a release; one that has one already stays as it is, and draws nothing.

        Parameters
        ----------
        state : BitState
            Of this epoch.
        entropy : Entropy, optional
            For tests; the system's by default.
        """
        if not self.is_open:
            return self
        noise = self.mechanism.output.draw(SystemEntropy() if entropy is None else entropy)
        return replace(self, noisy_ones=state.count_ones() + noise)

    @property
    def density(self) -> float:
        """The estimated share of places that are occupied; unbiased, so it may lie beyond 0 or 1.

        Of an epoch that is released, like all that follows.
        """
        return estimated_density(self._ones, self.population.n_bits, self.mechanism)

    @property
    def n_users(self) -> float:
        """The estimated number of distinct users."""
        return self.population.users(self.density)

    def interval(self, confidence: float) -> CountInterval:
        """An interval for the number of distinct users."""
        return count_interval(self._ones, self.population, self.mechanism, confidence)

    @property
    def _ones(self) -> int:
        if self.noisy_ones is None:
            raise ValueError("nothing of this epoch is released yet")
        return self.noisy_ones


def _last_of_each(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of the last one of each id; of no two are the ids equal."""
    _, from_behind = np.unique(ids[::-1], return_index=True)
    return ids.size - 1 - from_behind
