"""A private table that is a histogram in memory: what benchmarks on given counts are run against.

It is used behind a real gate like any source; `tacit serve` does not offer it.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from accountant.grouping import Grouping
from accountant.source import CellCounts, UnitCells


class HistogramSource:
    """Counts of every cell of a few axes.

    Parameters
    ----------
    axes : sequence of str
    counts : (n_levels of axes[0], ...) ndarray of int64
    """

    def __init__(self, axes: Sequence[str], counts: NDArray[np.int64]) -> None:
        self._axes = tuple(axes)
        self._counts = counts

    def fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - a protocol
        """The same table every time."""
        return key.hex()

    def rows_fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - a protocol
        """The same rows every time."""
        return key.hex()

    def measure(self, grouping: Grouping) -> CellCounts:
        """Sum the histogram over the axes outside of the scope; each cell by itself."""
        scope = grouping.scope
        outside = tuple(place for place, name in enumerate(self._axes) if name not in scope)
        kept = [name for name in self._axes if name in scope]
        table = self._counts.sum(axis=outside).transpose([kept.index(name) for name in scope])
        levels = tuple(axis.ravel() for axis in np.indices(table.shape, dtype=np.int64))
        return CellCounts(levels, table.ravel())

    def measure_units(self, grouping: Grouping) -> UnitCells:
        """Never asked: every record is a unit."""
        raise ValueError(f"the records of {grouping.scope} are units")
