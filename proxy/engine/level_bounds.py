"""Between which ends a number of levels is, in each row of a part: those found, and those possible.

A level is found if its noisy count is above what noise alone reaches, and possible unless its noisy
count is so far below one record that noise alone does not explain it. An empty level errs by being
found, one with records by not being possible: either happens in one tail of its noise, so that all
levels of a row together err with the error probability that is asked for. So the number of levels
is at least that of those found, and at most that of those possible.

Where fewer than half of the possible levels were found, the number found is no estimate of those
that there are, and is not shown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cube.runtime import cached_property
from inference.block_estimates import half_widths, values
from inference.posterior import Posterior
from planner.level_summary import LevelStatistic, LevelSummary

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LevelCounts:
    """Noisy counts of the levels in each row.

    Parameters
    ----------
    counts : (n_rows, n_levels) ndarray of float64
        0 where no record can be.
    half_widths : callable
        Returns the half-width of each count's interval at a confidence, (n_rows, n_levels); 0 where
        no record can be. The noise is beyond it on either side equally often.
    is_counted : (n_rows, n_levels) ndarray of bool
        Where records can be.
    """

    counts: Floats
    half_widths: Callable[[float], Floats]
    is_counted: Flags

    @classmethod
    def of(cls, summary: LevelSummary, posteriors: Sequence[Posterior], n_rows: int) -> Self:
        """Those of the aggregate that counts the levels of a summary."""
        shape = n_rows, len(summary.values)
        at = np.unravel_index(np.array(summary.cells, dtype=np.int64), (n_rows, max(shape[1], 1)))

        def placed(found: Floats) -> Floats:
            array = np.zeros(shape)
            array[at] = found
            return array

        @cache
        def widths(confidence: float) -> Floats:
            return placed(half_widths(posteriors, confidence))

        return cls(placed(values(posteriors)), widths, placed(np.ones(len(posteriors))) > 0)

    def found(self, confidence: float) -> Flags:
        """The levels that occur, (n_rows, n_levels): none of a row is empty, so probably."""
        return np.asarray(self.counts > self._thresholds(confidence))

    def possible(self, confidence: float) -> Flags:
        """The levels that may occur, (n_rows, n_levels): all that do are, so probably."""
        return np.asarray(self.counts + self._thresholds(confidence) >= 1)

    def _thresholds(self, confidence: float) -> Floats:
        """What noise alone reaches, (n_rows, n_levels); counts are whole, so one half at least.

        A half-width leaves as much on either side. Each level errs on one side alone, with its
        share of the error probability.
        """
        at_each = 1 - 2 * (1 - confidence) / max(self.counts.shape[1], 1)
        return np.maximum(self.half_widths(at_each) if at_each > 0 else 0.0, 0.5)


@dataclass(frozen=True, eq=False)
class LevelLaw:
    """A count of levels, or a sum of them, in each row of a part.

    Parameters
    ----------
    levels : LevelCounts
    adds : (n_levels,) ndarray of float64
        What each level adds: one to a count.
    confidence : float
        With which the levels that the shown number is of are not empty.
    is_lost : (n_rows,) ndarray of bool
        The rows of which too little is known to say anything.
    """

    levels: LevelCounts
    adds: Floats
    confidence: float
    is_lost: Flags

    @classmethod
    def of(cls, summary: LevelSummary, levels: LevelCounts, confidence: float) -> Self:
        """That of a count or a sum of levels."""
        is_count = summary.statistic is LevelStatistic.COUNT
        adds = np.ones(len(summary.values)) if is_count else np.array(summary.values, np.float64)
        is_lost = np.zeros(len(levels.counts), dtype=np.bool_)
        return cls(levels, adds, confidence, is_lost)

    @cached_property
    def values(self) -> Floats:
        """What the levels that were found add up to, (n_rows,); NaN where that is not shown."""
        found, possible = self._ends(self.confidence)
        is_shown = 2 * found.sum(axis=1) >= possible.sum(axis=1)
        return np.where(is_shown & ~self.is_lost, found @ self.adds, np.nan)

    @property
    def is_undivided(self) -> Flags:
        """Nowhere, (n_rows,): it divides by nothing."""
        return np.zeros(self.is_lost.shape, dtype=np.bool_)

    def interval(self, confidence: float) -> tuple[Floats, Floats]:
        """The ends between which each row's number is, (n_rows,) each; what is shown is inside."""
        found, possible = self._ends(confidence)
        sure, others = found @ self.adds, possible & ~found
        low = np.fmin(sure + others @ np.minimum(self.adds, 0.0), self.values)
        return low, np.fmax(sure + others @ np.maximum(self.adds, 0.0), self.values)

    def spreads(self, confidence: float) -> Floats:
        """Half of how far the ends lie apart, (n_rows,)."""
        low, high = self.interval(confidence)
        return (high - low) / 2

    def standard_errors(self) -> Floats:
        """NaN, (n_rows,): between its ends, nothing says how likely a number is."""
        return np.full(self.is_lost.shape, np.nan)

    def hidden(self, lost: Flags) -> Self:
        """The same without values in some rows, of which some levels are not known at all."""
        return replace(self, is_lost=self.is_lost | lost)

    def _ends(self, confidence: float) -> tuple[Flags, Flags]:
        """The levels that were found, and all that are possible, (n_rows, n_levels) each."""
        lost = self.is_lost[:, None]
        found = self.levels.found(confidence) & ~lost
        return found, self.levels.possible(confidence) | (self.levels.is_counted & lost)
