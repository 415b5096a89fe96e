"""Which levels of a scope's axes a source may count together.

Rows that tell no difference between two levels need no count of each: COUNT(*) with a condition on
four columns is two runs of levels along each, whatever the number of rows. A `Grouping` is a few
runs of levels for each axis. It contains no data: it follows from the charge alone
(`exact/counted_together.py`), and each source answers it in its own way.

Proof that answers stay the same: proofs/noise.md, "Exact answers".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cube.query import Scope, check_scope
from cube.runtime import cached_property

Whole = NDArray[np.int64]

BY_ITSELF: Final = -1
NOT_COUNTED: Final = -2
_FROM_THE_FIRST: Whole = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class LevelRuns:
    """How the levels of one axis are counted: run after run of consecutive levels.

    Parameters
    ----------
    n_levels : int
        The number of levels.
    starts : (n_runs,) ndarray of int64
        The first level of each run; the first at 0, and increasing.
    counted_as : (n_runs,) ndarray of int64
        The level as which all levels of a run are counted: several runs may have the same one, and
        it need not be among them. Or `BY_ITSELF`, if each level is, or `NOT_COUNTED`: then rows
        with such a level are left out.
    """

    n_levels: int
    starts: Whole
    counted_as: Whole

    def __post_init__(self) -> None:
        if self.starts.dtype != np.int64 or self.counted_as.dtype != np.int64:
            raise TypeError("runs of levels must be int64")
        if self.starts.ndim != 1 or self.starts.shape != self.counted_as.shape:
            raise ValueError("each run must be counted in exactly one way")
        rises = bool((self.starts[1:] > self.starts[:-1]).all())
        if not self.starts.size or self.starts[0] != 0 or not rises:
            raise ValueError("runs must begin at level 0 and be ascending")
        if self.starts[-1] >= self.n_levels:
            raise ValueError("a run must begin at a level that exists")
        if self.counted_as.min() < NOT_COUNTED or self.counted_as.max() >= self.n_levels:
            raise ValueError("runs must be counted as levels of the axis")
        self.starts.flags.writeable = False
        self.counted_as.flags.writeable = False

    @classmethod
    def of_each(cls, n_levels: int) -> "LevelRuns":
        """Every level by itself."""
        return cls(n_levels, _FROM_THE_FIRST, np.full(1, BY_ITSELF, dtype=np.int64))

    @property
    def n_runs(self) -> int:
        """The number of runs."""
        return self.starts.size

    @cached_property
    def ends(self) -> Whole:
        """The level after each run, (n_runs,)."""
        return np.append(self.starts[1:], self.n_levels)

    @property
    def counts_each(self) -> bool:
        """Whether every level is counted by itself."""
        return bool((self.counted_as == BY_ITSELF).all())

    @cached_property
    def n_counted(self) -> int:
        """The most levels as which rows are counted."""
        alone = self.counted_as == BY_ITSELF
        together = np.unique(self.counted_as[self.counted_as >= 0]).size
        return int((self.ends - self.starts)[alone].sum()) + together

    def at(self, levels: Whole) -> Whole:
        """The level as which each of some levels is counted, (n,); or `NOT_COUNTED`."""
        found = self.counted_as[self.starts.searchsorted(levels, side="right") - 1]
        return np.where(found == BY_ITSELF, levels, found)


@dataclass(frozen=True, eq=False)
class Grouping:
    """How the cells of a scope are counted: cells that each axis counts alike are one.

    Parameters
    ----------
    scope : Scope
    runs : tuple of LevelRuns
        One for each axis of the scope.
    """

    scope: Scope
    runs: tuple[LevelRuns, ...]

    def __post_init__(self) -> None:
        check_scope(self.scope)
        if len(self.runs) != len(self.scope):
            raise ValueError("each axis needs exactly one list of runs")

    @classmethod
    def of_each(cls, scope: Scope, sizes: Sequence[int]) -> "Grouping":
        """Every cell of a scope whose axes have so many levels, by itself."""
        return cls(scope, tuple(LevelRuns.of_each(size) for size in sizes))

    @property
    def n_cells_max(self) -> int:
        """The most cells as which rows are counted."""
        return math.prod(runs.n_counted for runs in self.runs)

    @cached_property
    def content(self) -> tuple[Scope, tuple[bytes, ...]]:
        """Equal for equal runs on equal axes."""
        each = (
            one.n_levels.to_bytes(8) + one.starts.tobytes() + one.counted_as.tobytes()
            for one in self.runs
        )
        return self.scope, tuple(each)
