"""Defines an epoch of a stream that counts visits: its state of cells, and what is released of it.

The state is a file (state.py) with a position and a bit for each place, a byte each, behind a
header that is written once: no id, time or true count, and nothing of a generator. What a visit
does, and why the file tells nothing of anybody: counters.py.

As an epoch of bits (epoch.py) this one has an estimator for everybody and one for each predicate,
and is a value: `released` gives the epoch that follows. Each event counts, not only the last one of
a user, so a message that is sent twice counts twice. Users cannot leave, and have a place of their
own: in a bucket, the visits of several users would add up.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streams.arrivals import Arrivals
from streams.counters import CounterMechanism
from streams.epoch import check_observed, state_name
from streams.population import Population
from streams.randomness import GRID, WORDS_IN_PIECE, Entropy, SystemEntropy
from streams.state import StateFile, check_name, create_file, open_file
from streams.visit_estimates import ReleasedVisits, VisitEstimate, at_least

MAGIC: Final = b"TACITVIS"
HEADER: Final = struct.Struct("<8sQQ32sQ")  # magic, places, threshold, name, levels
N_CELLS_MAX: Final = 2**32


class CellState(StateFile):
    """The cells of an open epoch. Use `created` or `opened`, and `close`.

    Parameters
    ----------
    descriptor : int
        Of the file, open for reading and writing, and locked; closed with this.
    path : Path
    n_cells : int
    mechanism : CounterMechanism
    entropy : Entropy
    """

    def __init__(
        self,
        descriptor: int,
        path: Path,
        n_cells: int,
        mechanism: CounterMechanism,
        entropy: Entropy,
    ) -> None:
        super().__init__(descriptor, path, HEADER.size, n_cells, entropy)
        self.n_cells = n_cells
        self._levels = mechanism.levels
        self._threshold = np.uint64(mechanism.state.threshold)

    @classmethod
    def created(
        cls,
        path: Path,
        n_cells: int,
        mechanism: CounterMechanism,
        name: bytes,
        *,
        entropy: Entropy | None = None,
    ) -> "CellState":
        """A new state without visits: positions are uniform, and bits those of absent users.

        Parameters
        ----------
        path : Path
            Where there is no file yet.
        n_cells : int
        mechanism : CounterMechanism
        name : bytes
            32 bytes that say whose state it is.
        entropy : Entropy, optional
            For tests; the system's by default.

        Raises
        ------
        FileExistsError
            If there is a file of that name; it is left as it is.
        OSError
            If the file cannot be written; nothing is left behind.
        """
        source = SystemEntropy() if entropy is None else entropy
        return create_file(
            path,
            _header(n_cells, mechanism, name),
            _drawn_cells(n_cells, mechanism, source),
            lambda descriptor: cls(descriptor, path, n_cells, mechanism, source),
        )

    @classmethod
    def opened(
        cls,
        path: Path,
        n_cells: int,
        mechanism: CounterMechanism,
        name: bytes,
        *,
        entropy: Entropy | None = None,
    ) -> "CellState":
        """The state that a process left, to go on with.

        Raises
        ------
        DataChanged
            If there is no such file, or it is of another stream, law or length.
        StoreUnavailable
            If another process has it open.
        """
        header = _header(n_cells, mechanism, name)
        descriptor = open_file(path, header, HEADER.size + n_cells)
        return cls(descriptor, path, n_cells, mechanism, entropy or SystemEntropy())

    def visit(self, places: NDArray[np.int64]) -> None:
        """Note visits: of a place that is there several times, as many.

        Parameters
        ----------
        places : (n,) ndarray of int64

        Notes
        -----
        However often a position comes to 0 in one call, the bit is drawn once: only the last draw
        stands. A word is drawn for each place, also where no bit is drawn, so that neither time nor
        the words used tell who passed 0.
        """
        if places.size and not 0 <= int(places.min()) <= int(places.max()) < self.n_cells:
            raise IndexError("a place is outside the state")
        for begin in range(0, places.size, WORDS_IN_PIECE):
            where, n_visits = np.unique(places[begin : begin + WORDS_IN_PIECE], return_counts=True)
            drawn = self._entropy.words(where.size) < self._threshold
            with self._lock:
                cells = self._bytes[where]
                moved = (cells >> np.uint8(1)).astype(np.int64) + n_visits
                bits = np.where(moved >= self._levels, drawn, cells & np.uint8(1))
                self._bytes[where] = (moved % self._levels << 1 | bits).astype(np.uint8)

    def is_of(self, mechanism: CounterMechanism) -> bool:
        """Whether its cells are drawn by these laws."""
        mine = (self._levels, int(self._threshold))
        return mine == (mechanism.levels, mechanism.state.threshold)

    def pieces(self) -> Iterator[bytes]:
        """The cells, for a state that takes the place of this one. As secret as the state."""
        for at in range(0, self.n_cells, WORDS_IN_PIECE):
            with self._lock:
                piece = self._bytes[at : at + WORDS_IN_PIECE].tobytes()
            yield piece

    def signed_counts(self, start: int = 0, end: int | None = None) -> NDArray[np.int64]:
        """At each position, the number of ones less that of zeros; of shape (levels,).

        As secret as the state: only a release reads it, and adds noise.

        Parameters
        ----------
        start, end : int, optional
            The places to count, the last one not among them; all by default.
        """
        last = self.n_cells if end is None else end
        if not 0 <= start <= last <= self.n_cells:
            raise IndexError("a place is outside the state")
        found = np.zeros(2 * self._levels, np.int64)
        with self._lock:
            for at in range(start, last, WORDS_IN_PIECE):
                piece = self._bytes[at : min(last, at + WORDS_IN_PIECE)]
                found += np.bincount(piece, minlength=found.size)
        return found[1::2] - found[::2]


def file_length(n_cells: int) -> int:
    """The length of the file in bytes, whatever arrives."""
    return HEADER.size + n_cells


def merge(
    path: Path,
    states: Sequence[CellState],
    mechanism: CounterMechanism,
    name: bytes,
    *,
    entropy: Entropy | None = None,
) -> CellState:
    """A state with the cells of several ones, of different users, one behind the other.

    It loses as much as one of them, since each user has a cell in only one of them
    (proofs/pan_privacy.md, "Merging"). Those that are merged stay as they are: erase them, since
    two copies of different moments are two looks.

    Parameters
    ----------
    path : Path
        Where there is no file yet.
    states : sequence of CellState
        States of this mechanism, of servers that have no user in common.
    mechanism : CounterMechanism
    name : bytes
        32 bytes that say whose state it is.
    entropy : Entropy, optional
        For tests; the system's by default.
    """
    if any(not state.is_of(mechanism) for state in states):
        raise ValueError("states of different laws cannot be merged")
    n_cells = sum(state.n_cells for state in states)
    source = SystemEntropy() if entropy is None else entropy
    return create_file(
        path,
        _header(n_cells, mechanism, name),
        (piece for state in states for piece in state.pieces()),
        lambda descriptor: CellState(descriptor, path, n_cells, mechanism, source),
    )


def _header(n_cells: int, mechanism: CounterMechanism, name: bytes) -> bytes:
    if not 1 <= n_cells <= N_CELLS_MAX:
        raise ValueError(f"a state must have 1 to {N_CELLS_MAX} cells")
    check_name(name)
    return HEADER.pack(MAGIC, n_cells, mechanism.state.threshold, name, mechanism.levels)


def _drawn_cells(n_cells: int, mechanism: CounterMechanism, entropy: Entropy) -> Iterator[bytes]:
    """Cells of absent users."""
    absent = np.uint64(GRID - mechanism.state.threshold)
    for begin in range(0, n_cells, WORDS_IN_PIECE):
        n = min(WORDS_IN_PIECE, n_cells - begin)
        positions = _uniform(n, mechanism.levels, entropy)
        bits = entropy.words(n) < absent
        yield (positions << np.uint8(1) | bits).astype(np.uint8).tobytes()


def _uniform(n: int, levels: int, entropy: Entropy) -> NDArray[np.uint8]:
    """Positions, each equally likely: words of an incomplete last round are drawn again."""
    words = entropy.words(n).copy()
    last = np.uint64(GRID - GRID % levels - 1)
    while (again := np.flatnonzero(words > last)).size:
        words[again] = entropy.words(again.size)
    return (words % np.uint64(levels)).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class VisitEpoch:
    """One epoch.

    Parameters
    ----------
    stream, name : str
        Which stream, and which of its epochs.
    population : Population
        Whose users are known.
    mechanism : CounterMechanism
        The mechanism of each estimator.
    predicates : tuple of str
        Those that have an estimator.
    noisy : tuple of int
        What was released: a number for each position, of everybody, and then of each predicate in
        order; empty while the epoch is open.
    """

    stream: str
    name: str
    population: Population
    mechanism: CounterMechanism
    predicates: tuple[str, ...] = ()
    noisy: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.population.is_known:
            raise ValueError("a stream of buckets cannot count visits: users share buckets")
        if self.noisy and len(self.noisy) != len(self.estimators) * self.mechanism.levels:
            raise ValueError(
                "a release must have a number for each level, for all users and each predicate"
            )

    @property
    def is_open(self) -> bool:
        """Whether users are observed; once the last release is made, never again."""
        return not self.noisy

    @property
    def has_departures(self) -> bool:
        """No."""
        return False

    @property
    def estimators(self) -> tuple[str | None, ...]:
        """What each counts: visits of everybody, then those while a predicate held."""
        return (None, *self.predicates)

    @property
    def n_cells(self) -> int:
        """The cells of its state: those of each estimator behind those of the one before."""
        return self.population.n_bits * len(self.estimators)

    def created(self, path: Path) -> CellState:
        """A new state; see `CellState.created`."""
        return CellState.created(path, self.n_cells, self.mechanism, self._state_name)

    def opened(self, path: Path) -> CellState:
        """The state that a process left; see `CellState.opened`."""
        return CellState.opened(path, self.n_cells, self.mechanism, self._state_name)

    def observe(self, state: StateFile, arrivals: Arrivals) -> None:
        """Note visits: each event of a user with a place is one.

        Parameters
        ----------
        state : CellState
            The state of this epoch.
        arrivals : Arrivals

        Raises
        ------
        InvalidRequest
            If the epoch is over, an id is outside the universe, a predicate was not declared, or
            users leave. Then nothing was noted.
        """
        cells = _cells(state)
        check_observed(self, arrivals)
        visited = [
            self.population.places(arrivals.counted(estimator).ids) + start
            for start, estimator in zip(self._starts, self.estimators, strict=True)
        ]
        for places in visited:
            cells.visit(places)

    def noisy_numbers(self, state: StateFile, entropy: Entropy | None = None) -> tuple[int, ...]:
        """Numbers to release: each of a position, with noise of its own.

        Each call draws again, and costs a release: the mechanism says how many an epoch may have.

        Parameters
        ----------
        state : CellState
            The state of this epoch.
        entropy : Entropy, optional
            For tests; the system's by default.
        """
        cells, source = _cells(state), SystemEntropy() if entropy is None else entropy
        n = self.population.n_bits
        return tuple(
            int(signed) + self.mechanism.output.draw(source)
            for start in self._starts
            for signed in cells.signed_counts(start, start + n)
        )

    def released(self, state: StateFile, entropy: Entropy | None = None) -> "VisitEpoch":
        """The epoch with its last release; one that has it stays as it is, and draws nothing."""
        if not self.is_open:
            return self
        return replace(self, noisy=self.noisy_numbers(state, entropy))

    def visits(self, predicate: str | None = None) -> ReleasedVisits:
        """What was released of the visits while a predicate held, or of all."""
        if self.is_open:
            raise ValueError("this epoch is not released yet")
        levels = self.mechanism.levels
        start = self.estimators.index(predicate) * levels
        return ReleasedVisits(self.population, self.mechanism, self.noisy[start : start + levels])

    def count(self, predicate: str | None = None) -> VisitEstimate:
        """The estimated number of users who came, or came while a predicate held."""
        return self.visits(predicate).estimate(at_least(1, self.mechanism.levels))

    @property
    def _state_name(self) -> bytes:
        return state_name(self.stream, self.name)

    @property
    def _starts(self) -> range:
        """Where the cells of each estimator begin."""
        return range(0, self.n_cells, self.population.n_bits)


def _cells(state: StateFile) -> CellState:
    if not isinstance(state, CellState):
        raise TypeError("a stream that counts visits has a state of cells")
    return state
