"""Where the noises are that answers name: among the rows of a history, or beside it.

An answer's terms name noises by places (`noise_law/error_terms.py`). Those of rows are places of
the history; counts of units, which are no rows, have places of their own after all of them. The
joint law of several answers needs both (`joint.py`).

Nothing is estimated here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from cube.measurement import Measurement
from inference.history import History

FIRST_BESIDE: Final = 2**32  # more than a history has; numbers made of places fit 64 bits


class Places(Protocol):
    """Measurements by their places."""

    def __len__(self) -> int:
        """The number of rows' measurements."""
        ...

    def __getitem__(self, place: int, /) -> Measurement:
        """The measurement at a place."""
        ...

    def has(self, place: int) -> bool:
        """Whether there is a measurement at a place."""
        ...

    def earlier(self, place: int) -> Iterator[int]:
        """The places of the measurements from which one was raised, the latest first."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class NoisePlaces:
    """A history of rows, and what was measured beside it.

    Parameters
    ----------
    rows : History
    beside : sequence of Measurement
        At the places from `FIRST_BESIDE` on; each supersedes another of them.
    """

    rows: History
    beside: Sequence[Measurement]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> Measurement:
        return self.rows[place] if place < FIRST_BESIDE else self.beside[place - FIRST_BESIDE]

    def has(self, place: int) -> bool:
        """Whether there is a measurement at a place."""
        return self.rows.has(place) or 0 <= place - FIRST_BESIDE < len(self.beside)

    def earlier(self, place: int) -> Iterator[int]:
        """The places of the measurements from which one was raised, the latest first."""
        if place < FIRST_BESIDE:
            yield from self.rows.earlier(place)
            return
        before = self[place].supersedes
        while before is not None:
            yield FIRST_BESIDE + before
            before = self.beside[before].supersedes
