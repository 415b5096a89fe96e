"""The only access to private data, and what it returns.

Only the gate may call `measure`; a test searches the code for other callers. What it returns is
exact: `CellCounts` exists only as a local of one function, and its `repr` shows nothing.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cube.query import Scope


@dataclass(frozen=True, eq=False, repr=False)
class CellCounts:
    """Exact counts of the occupied cells of a scope. Private.

    Parameters
    ----------
    levels : tuple of (n_occupied,) ndarray of int64
        For each axis of the scope, the position of every occupied cell's level.
    counts : (n_occupied,) ndarray of int64
        The number of records in each. The empty scope has one cell, occupied or not.
    """

    levels: tuple[NDArray[np.int64], ...]
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        if any(array.dtype != np.int64 for array in (*self.levels, self.counts)):
            raise TypeError("levels and counts are int64")
        if any(array.shape != self.counts.shape for array in self.levels) or self.counts.ndim != 1:
            raise ValueError("one level of each axis, and one count, for each occupied cell")

    def __repr__(self) -> str:
        return "CellCounts(<private>)"


class Source(Protocol):
    """A private table: an immutable snapshot of at most ``n_records_max`` records."""

    def fingerprint(self, key: bytes) -> str:
        """A keyed digest of the data, the same whatever is read from it."""
        ...

    def rows_fingerprint(self, key: bytes) -> str:
        """A keyed digest of what is read from the data: of every cell with its count."""
        ...

    def measure(self, scope: Scope) -> CellCounts:
        """Exact counts of the occupied cells of `scope`."""
        ...


class ReadRows(Protocol):
    """The rows of the first levels of a growing table's axis: an immutable snapshot."""

    def measure(self, scope: Scope) -> CellCounts:
        """Exact counts of the occupied cells of `scope`."""
        ...

    def period_fingerprint(self, start: int, end: int, key: bytes) -> str:
        """A keyed digest of what was read of some levels: of every cell with its count."""
        ...


@runtime_checkable
class GrowingSource(Protocol):
    """A private table of which more and more can be read.

    Which rows of a unit are kept does not depend on its rows of later levels.
    """

    def fingerprint(self, key: bytes) -> str:
        """A keyed digest of where the data is."""
        ...

    def read_up_to(self, horizon: int) -> ReadRows:
        """Read the data as it is now: the rows of so many levels, from the first."""
        ...
