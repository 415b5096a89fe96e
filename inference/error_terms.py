"""The error terms of an answer: the noises it contains, their places and their coefficients.

The law of one answer needs only the sizes of its terms. The joint law of several answers needs to
know which of them use the same measurements, which makes their errors dependent; an answer's terms
say so, for `joint.py`.

Terms name noises by places, among the rows of a history or beside it. Those of rows are places of
the history; counts of units, which are no rows, have places of their own after all of them. The
joint law of several answers needs both.

Nothing is estimated here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from cube.measurement import Measurement
from inference.history import History

INTEGER, REAL = np.dtype(np.int64), np.dtype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class ErrorTerms:
    """The error of an answer: ``value - truth = sum coefficient * noise(place, row)``.

    Parameters
    ----------
    place : (n,) ndarray of int64
        The place in the history of a measurement, which may have been replaced since.
    row : (n,) ndarray of int64
        A row of its block. ``noise(place, row)`` is the Laplace noise in that row's value.
    coefficient : (n,) ndarray of float64
        In units of the answer per unit of the row.

    Notes
    -----
    The lattice on which noise is drawn, and the rounding of coefficients, move an error by less
    than the answer's `lattice_widening`, and have no terms. Noises as small as rounding have none
    either (`scaling.split_dust`): each is less than ``1e-13`` of the answer's largest, and there
    are at most as many of them as combined values.
    """

    place: NDArray[np.int64]
    row: NDArray[np.int64]
    coefficient: NDArray[np.float64]

    def __post_init__(self) -> None:
        place, row, coefficient = self.place, self.row, self.coefficient
        if not (place.ndim == 1 and place.shape == row.shape == coefficient.shape):
            raise ValueError(
                f"the arrays of terms must have one shape, not {place.shape}, {row.shape} "
                f"and {coefficient.shape}"
            )
        if not (place.dtype == row.dtype == INTEGER and coefficient.dtype == REAL):
            raise TypeError("places and rows must be int64, coefficients float64")
        # Copies, so that an answer keeps no other answer's array alive, and the terms never change.
        object.__setattr__(self, "place", _locked(place))
        object.__setattr__(self, "row", _locked(row))
        object.__setattr__(self, "coefficient", _locked(coefficient))

    def split(self, ends: NDArray[np.int64]) -> list[Self]:
        """The terms of several answers: those between each two ends.

        Parameters
        ----------
        ends : (n + 1,) ndarray of int64
            From 0 up to the number of terms.
        """
        found = []
        for start, end in pairwise(ends.tolist()):
            # What is checked of all is true of each. Copies, as above.
            terms = object.__new__(type(self))
            object.__setattr__(terms, "place", _locked(self.place[start:end]))
            object.__setattr__(terms, "row", _locked(self.row[start:end]))
            object.__setattr__(terms, "coefficient", _locked(self.coefficient[start:end]))
            found.append(terms)
        return found

    def times(self, multiplier: float) -> Self:
        """The terms of the answer times a number."""
        if multiplier == 1.0:
            return self
        return type(self)(self.place, self.row, multiplier * self.coefficient)


def _locked(part: NDArray[Any]) -> NDArray[Any]:
    own = part.copy()
    own.setflags(write=False)
    return own


NO_TERMS = ErrorTerms(
    np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
)
"""The terms of an answer without noise: none."""


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
