"""The only access to private data, and what it returns.

Only the gate may call `measure` and `measure_units`; a test searches the code for other callers.
What they return is exact: `CellCounts` and `UnitCells` exist only as locals of one function, and
their `repr` shows nothing.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from accountant.grouping import Grouping


@dataclass(frozen=True, eq=False, repr=False)
class CellCounts:
    """Exact counts of the occupied cells of a scope, as some levels are counted together. Private.

    Parameters
    ----------
    levels : tuple of (n_occupied,) ndarray of int64
        For each axis of the scope, the position of the level as which each is counted.
    counts : (n_occupied,) ndarray of int64
        The number of records in each. The empty scope has one cell, occupied or not.
    """

    levels: tuple[NDArray[np.int64], ...]
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        if any(array.dtype != np.int64 for array in (*self.levels, self.counts)):
            raise TypeError("levels and counts must be int64")
        if any(array.shape != self.counts.shape for array in self.levels) or self.counts.ndim != 1:
            raise ValueError("each occupied cell needs one level of each axis and one count")

    def __repr__(self) -> str:
        return "CellCounts(<private>)"


@dataclass(frozen=True, eq=False, repr=False)
class UnitCells:
    """The cells of a scope in which each unit has records, each pair once. Private.

    Parameters
    ----------
    levels : tuple of (n_pairs,) ndarray of int64
        For each axis of the scope, the position of the level as which the cell is counted.
    units : (n_pairs,) ndarray of int64
        A number of the unit, from 0: equal for the same unit, and for no other.
    digests : (n_pairs,) ndarray of int64
        A keyed digest of the unit, from 0: it depends on the unit and the key alone.
    were_cut : (n_pairs,) ndarray of int64
        1 where some records of the unit were left out, 0 elsewhere.
    counts : (n_pairs,) ndarray of int64
        The number of records of the unit in the cell, at least 1.
    """

    levels: tuple[NDArray[np.int64], ...]
    units: NDArray[np.int64]
    digests: NDArray[np.int64]
    were_cut: NDArray[np.int64]
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        arrays = (*self.levels, self.units, self.digests, self.were_cut, self.counts)
        if any(array.dtype != np.int64 or array.ndim != 1 for array in arrays):
            raise TypeError("the vectors that describe units must be int64")
        if any(array.shape != self.units.shape for array in arrays):
            raise ValueError(
                "each pair needs one level of each axis and one entry in every other vector"
            )

    def __repr__(self) -> str:
        return "UnitCells(<private>)"


class Source(Protocol):
    """A private table: an immutable snapshot of at most ``n_records_max`` records.

    There may be several ways to make digests, and each digest names its own. A digest that is
    compared with another is made `like` it; by default, in the newest way.
    """

    def fingerprint(self, key: bytes, like: str = "") -> str:
        """A keyed digest of the data, the same whatever is read from it."""
        ...

    def rows_fingerprint(self, key: bytes, like: str = "") -> str:
        """A keyed digest of the rows read from the data: of every cell with its count."""
        ...

    def measure(self, grouping: Grouping) -> CellCounts:
        """Exact counts of the occupied cells of a scope, each level as it is counted.

        Cells may be told apart that are counted alike: the answers are the same
        (proofs/noise.md, "Exact answers"). Fewer are less work.
        """
        ...

    def measure_units(self, grouping: Grouping) -> UnitCells:
        """The cells of a scope in which each unit has records, each level as it is counted.

        Raises
        ------
        ValueError
            If the table's schema says that no unit has several: then records are units.
        """
        ...


@runtime_checkable
class WatchedSource(Protocol):
    """A source whose rows are where others may write."""

    def look(self) -> None:
        """Find out, before anything is charged, whether its rows can be measured.

        Raises
        ------
        SourceUnavailable
            If they cannot be read, or are known not to be what they were.
        """
        ...


class ReadRows(Protocol):
    """The rows of the first levels of a growing table's axis: an immutable snapshot."""

    def measure(self, grouping: Grouping) -> CellCounts:
        """As `Source.measure`."""
        ...

    def measure_units(self, grouping: Grouping) -> UnitCells:
        """As `Source.measure_units`."""
        ...

    def period_fingerprint(self, start: int, end: int, key: bytes, like: str = "") -> str:
        """A keyed digest of the rows read at some levels: of every cell with its count."""
        ...


@runtime_checkable
class Reaching(Protocol):
    """A growing source that says how far it can be read, as holders of a federated table do."""

    def reach(self) -> int:
        """The number of levels that can be read, from the first.

        Raises
        ------
        SourceUnavailable
            If that cannot be found out now.
        """
        ...


@runtime_checkable
class GrowingSource(Protocol):
    """A private table that grows: more and more of it can be read.

    Which rows of a unit are kept does not depend on its rows of later levels.
    """

    def fingerprint(self, key: bytes) -> str:
        """A keyed digest of where the data is."""
        ...

    def read_up_to(self, horizon: int) -> ReadRows:
        """Read the data as it is now: the rows of so many levels, from the first."""
        ...
