"""An epoch of a stream: one state, and one release, which every later question gets again.

A value: `released` gives the epoch that follows. Who keeps it makes the release durable before
anybody reads it, charges for the epoch before that, and erases the state behind it. A state that
was not released yet may be counted again after a crash, as nobody has seen what was drawn then.
"""

import hashlib
from dataclasses import dataclass, replace

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
    noisy_ones : int, optional
        What was released; none while the epoch is open.
    """

    stream: str
    name: str
    population: Population
    mechanism: Mechanism
    noisy_ones: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether users are observed; once something is released, never again."""
        return self.noisy_ones is None

    @property
    def state_name(self) -> bytes:
        """What the header of its state says: 32 bytes that no other epoch's state has."""
        text = self.stream.encode() + b"\0" + self.name.encode()
        return hashlib.sha256(len(self.stream).to_bytes(4, "little") + text).digest()

    def released(self, state: BitState, entropy: Entropy | None = None) -> "Epoch":
        """This epoch with its release; one that has one already stays as it is, and draws nothing.

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
