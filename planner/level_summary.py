"""Reads numbers off noisy counts of levels: how many levels occur, the largest, the smallest.

``COUNT(DISTINCT city)`` is not linear, and a single record can change it. What is answered instead
follows from counts of the levels alone: a level is taken to occur if its noisy count is above
`threshold`. What is found is the low end of the answer's interval, and every level that may occur
is in its high end. The noisy counts of the levels that were not found add up to the records that
are missed, which tells when many levels are.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cube.axis import LevelValue


class LevelStatistic(StrEnum):
    """What is read off the levels that occur."""

    COUNT = "count"
    SUM = "sum"
    LEAST = "least"
    LARGEST = "largest"
    MODE = "mode"  # the level with the largest noisy count


BOUNDED: Final = (LevelStatistic.COUNT, LevelStatistic.SUM)  # between ends that are known


@dataclass(frozen=True, slots=True)
class LevelSummary:
    """One such number for each row of a part.

    Parameters
    ----------
    aggregate : int
        The position of the aggregate that counts the levels.
    statistic : LevelStatistic
    cells : tuple of int
        For each row of its blocks, ``row of the part * len(values) + level``.
    values : tuple
        The levels, in increasing order; NULL is none.
    sql_type : str
        The type of the number.
    sql : str
        The analyst's own text of it, for notes.
    """

    aggregate: int
    statistic: LevelStatistic
    cells: tuple[int, ...]
    values: tuple[LevelValue, ...]
    sql_type: str
    sql: str = ""

    def __post_init__(self) -> None:
        if any(value is None for value in self.values):
            raise ValueError("NULL cannot be among the levels to summarise")

    def rows_of(self, flags: NDArray[np.bool_], n_rows: int) -> NDArray[np.bool_]:
        """The rows of the part that have some of the blocks' rows, which are flagged, (n_rows,)."""
        has_some = np.zeros(n_rows, dtype=np.bool_)
        has_some[np.array(self.cells, dtype=np.int64)[flags] // max(len(self.values), 1)] = True
        return has_some

    @property
    def stand_in(self) -> LevelValue:
        """A value that it may have, whatever the counts are; None if it has none but NULL."""
        if self.statistic in (LevelStatistic.COUNT, LevelStatistic.SUM):
            return 1
        return self.values[0] if self.values else None


def threshold(standard_deviation: float, n_levels: int, confidence: float) -> float:
    """The noisy count above which a level is taken to occur.

    Parameters
    ----------
    standard_deviation : float
        Of the noise in the count.
    n_levels : int
        The number of levels that are compared with it.
    confidence : float
        The probability that no level without records is above it.

    Notes
    -----
    A Laplace variable of scale ``b`` is above ``t`` with probability ``exp(-t / b) / 2``; the
    levels share the error probability. A sum of several variables has a lighter tail for its
    standard deviation. Counts are whole, so one half at least is asked for.

    Examples
    --------
    >>> round(threshold(10.0, 1, 0.95), 2), round(threshold(10.0, 100, 0.95), 2)
    (16.28, 48.85)
    >>> threshold(0.0, 100, 0.95)
    0.5
    """
    scale = standard_deviation / math.sqrt(2)
    return max(0.5, scale * math.log(n_levels / (2 * (1 - confidence))))
