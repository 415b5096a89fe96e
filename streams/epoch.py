"""Defines an epoch of a stream: one state, and one release that answers every later question.

There is an estimator for everybody, and one for each predicate that was declared: its users are
those who came while it held. Each has bits of its own in the state, and a noisy number of its own
in the release; they are looked at together and released together, and their losses add up.

A value: `released` gives the epoch that follows. Who keeps it makes the release durable before
anybody reads it, charges for the epoch before that, and erases the state behind it. A state that
was not released yet may be counted again after a crash, since its noise was never shown.
"""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from cube.refusals import InvalidRequest
from streams.arrivals import Arrivals
from streams.estimates import ReleasedCount
from streams.mechanism import Mechanism
from streams.population import Population
from streams.randomness import Entropy, SystemEntropy
from streams.state import BitState, StateFile


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch.

    Parameters
    ----------
    stream, name : str
        Which stream, and which of its epochs.
    population : Population
    mechanism : Mechanism
        The mechanism of each estimator.
    has_departures : bool
        Whether users may leave again, as the stream was declared. A user is present or not, however
        often they came. What is lost is the same.
    predicates : tuple of str
        Those that have an estimator.
    noisy_ones : tuple of int
        What was released: of everybody, and of each predicate in order; empty while the epoch is
        open.
    """

    stream: str
    name: str
    population: Population
    mechanism: Mechanism
    has_departures: bool = False
    predicates: tuple[str, ...] = ()
    noisy_ones: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.has_departures and not self.population.is_known:
            raise ValueError("a stream of buckets cannot have departures: users share buckets")
        if self.noisy_ones and len(self.noisy_ones) != len(self.estimators):
            raise ValueError(
                "a release must have one number for all users and one for each predicate"
            )

    @property
    def is_open(self) -> bool:
        """Whether users are observed; once something is released, never again."""
        return not self.noisy_ones

    @property
    def estimators(self) -> tuple[str | None, ...]:
        """What each counts: everybody, then the users of a predicate."""
        return (None, *self.predicates)

    @property
    def n_bits(self) -> int:
        """The bits of its state: those of each estimator behind those of the one before."""
        return self.population.n_bits * len(self.estimators)

    @property
    def state_name(self) -> bytes:
        """What the header of its state says: 32 bytes that no other epoch's state has."""
        return state_name(self.stream, self.name)

    def created(self, path: Path) -> BitState:
        """A new state; see `BitState.created`."""
        return BitState.created(path, self.n_bits, self.mechanism.state, self.state_name)

    def opened(self, path: Path) -> BitState:
        """The state that a process left; see `BitState.opened`."""
        return BitState.opened(path, self.n_bits, self.mechanism.state, self.state_name)

    def observe(self, state: StateFile, arrivals: Arrivals) -> None:
        """Note users who arrived or left: the bits of users with a place are drawn anew.

        Parameters
        ----------
        state : BitState
            The state of this epoch.
        arrivals : Arrivals
            Of a user who is there several times, the last one stands.

        Raises
        ------
        InvalidRequest
            If the epoch is over, an id is outside the universe, a predicate was not declared, or
            users leave a stream that was declared without departures. Then nothing was noted.
        """
        bits = _bits(state)
        check_observed(self, arrivals)
        drawn = [
            (self.population.places(ids) + start, present)
            for start, estimator in zip(self._starts, self.estimators, strict=True)
            for ids, present in arrivals.counted(estimator).last_states
        ]
        for places, present in drawn:
            bits.redraw(places, present=present)

    def released(self, state: StateFile, entropy: Entropy | None = None) -> "Epoch":
        """The epoch with a release; one that has one already stays as it is, and draws nothing.

        Parameters
        ----------
        state : BitState
            The state of this epoch.
        entropy : Entropy, optional
            For tests; the system's by default.
        """
        if not self.is_open:
            return self
        bits, source = _bits(state), SystemEntropy() if entropy is None else entropy
        n = self.population.n_bits
        noisy = tuple(
            bits.count_ones(start, start + n) + self.mechanism.output.draw(source)
            for start in self._starts
        )
        return replace(self, noisy_ones=noisy)

    def count(self, predicate: str | None = None) -> ReleasedCount:
        """The released count of the users of a predicate, or of all users."""
        if self.is_open:
            raise ValueError("this epoch is not released yet")
        ones = self.noisy_ones[self.estimators.index(predicate)]
        return ReleasedCount(self.population, self.mechanism, ones)

    @property
    def _starts(self) -> range:
        """Where the bits of each estimator begin."""
        return range(0, self.n_bits, self.population.n_bits)


class Observed(Protocol):
    """What is known of an epoch that is told of arrivals."""

    @property
    def is_open(self) -> bool:
        """Whether users are observed."""

    @property
    def has_departures(self) -> bool:
        """Whether users may leave."""

    @property
    def predicates(self) -> tuple[str, ...]:
        """Those that were declared."""


def check_observed(epoch: Observed, arrivals: Arrivals) -> None:
    """Refuse arrivals that an epoch cannot note.

    Raises
    ------
    InvalidRequest
        If the epoch is over, a predicate was not declared, or users leave a stream that was
        declared without departures.
    """
    if not epoch.is_open:
        raise InvalidRequest("The epoch of the stream is over.")
    if arrivals.has_departures and not epoch.has_departures:
        raise InvalidRequest(
            "The stream was declared without departures, so users cannot leave it."
        )
    if not arrivals.where.keys() <= set(epoch.predicates):
        declared = ", ".join(epoch.predicates)
        raise InvalidRequest(
            "The stream was not declared with this predicate.",
            hint=f"Its predicates are {declared}." if declared else "It has no predicates.",
        )


def state_name(stream: str, epoch: str) -> bytes:
    """What the header of an epoch's state says: 32 bytes that no other epoch's state has."""
    text = stream.encode() + b"\0" + epoch.encode()
    return hashlib.sha256(len(stream).to_bytes(4, "little") + text).digest()


def _bits(state: StateFile) -> BitState:
    if not isinstance(state, BitState):
        raise TypeError("a stream that counts distinct users has a state of bits")
    return state
