"""Quantiles computed from counts of levels, exact or noisy, for many draws at once."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from planner.workload import QuantileFormula

N_DECIMALS = 6  # of a count; noise is never that small


def quantiles(
    formula: QuantileFormula, counts: NDArray[np.float64], n_groups: int
) -> NDArray[np.float64]:
    """The quantile of each group in each draw.

    Parameters
    ----------
    formula : QuantileFormula
    counts : (n_cells, n_draws) ndarray of float64
        The count of each cell listed in `formula`.
    n_groups : int

    Returns
    -------
    (n_groups, n_draws) ndarray of float64
        NaN for a group that has no records by its counts.

    Notes
    -----
    With whole counts this is PERCENTILE_CONT or PERCENTILE_DISC. Cumulated noisy counts may
    decrease; their running maximum is used instead.
    """
    n_levels, n_draws = len(formula.levels), counts.shape[1]
    by_level = np.zeros((n_groups * n_levels, n_draws))
    # Whole counts stay whole, despite rounding errors of the estimate.
    by_level[np.array(formula.cells, dtype=np.int64)] = np.round(counts, N_DECIMALS)
    below = np.cumsum(by_level.reshape(n_groups, n_levels, n_draws), axis=1)
    below = np.maximum.accumulate(np.maximum(below, 0.0), axis=1)
    total = below[:, -1, :]
    if formula.is_bracketed:
        found = _brackets(formula, below, total)
    elif formula.upper:
        found = _inside_bins(formula, below, formula.fraction * total)
    elif formula.is_interpolated:
        rank = formula.fraction * np.maximum(total - 1, 0.0)
        lower = _level_at(formula.levels, below, np.floor(rank))
        upper = _level_at(formula.levels, below, np.minimum(np.ceil(rank), np.ceil(total) - 1))
        found = lower + (rank - np.floor(rank)) * (upper - lower)
    else:
        found = _level_at(
            formula.levels, below, np.maximum(np.ceil(formula.fraction * total) - 1, 0.0)
        )
    return np.where(total > 0, found, np.nan)


def _brackets(
    formula: QuantileFormula, below: NDArray[np.float64], total: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The quantile itself, and in turn the lower and the upper end of the bins it is in.

    A quantile that interpolates is between two records: the lower one's bin has the lower end, and
    the upper one's the upper end.
    """
    found = _inside_bins(formula, below, formula.fraction * total)
    last = np.maximum(np.ceil(total) - 1, 0.0)
    rank = np.minimum(formula.fraction * np.maximum(total - 1, 0.0), last)
    if not formula.is_interpolated:
        rank = np.clip(np.ceil(formula.fraction * total) - 1, 0.0, last)
    found[:, 1::2] = _level_at(formula.levels, below, np.floor(rank))[:, 1::2]
    found[:, 2::2] = _level_at(formula.upper, below, np.ceil(rank))[:, 2::2]
    return found


def _level_at(
    values: Sequence[float], below: NDArray[np.float64], rank: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The level of the record with `rank` records before it, (n_groups, n_draws)."""
    place = (below <= rank[:, None, :]).sum(axis=1)
    levels = np.array(values)
    return np.asarray(levels[np.minimum(place, levels.size - 1)], dtype=np.float64)


def _inside_bins(
    formula: QuantileFormula, below: NDArray[np.float64], rank: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The value with `rank` records below it, if records are spread evenly within a bin."""
    place = np.minimum((below < rank[:, None, :]).sum(axis=1), below.shape[1] - 1)[:, None, :]
    upto = np.take_along_axis(below, place, axis=1)
    before = np.where(place > 0, np.take_along_axis(below, np.maximum(place - 1, 0), axis=1), 0.0)
    share = np.where(
        upto > before, (rank[:, None, :] - before) / np.maximum(upto - before, 1e-300), 0.0
    )
    low, high = np.array(formula.levels)[place], np.array(formula.upper)[place]
    return np.asarray((low + np.clip(share, 0.0, 1.0) * (high - low))[:, 0, :], dtype=np.float64)
