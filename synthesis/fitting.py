"""Consistent tables of one and two columns, fitted to noisy ones.

Each is non-negative, all have the same total, and a pair table has its columns' one-way tables as
margins. The pair tables of three columns may still contradict each other; drawing the rows settles
that (`synthesis.drawing`).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from synthesis.tables import Floats, TableEstimate, combined

N_PROJECTIONS = 3  # further ones move a table by less than its noise does
N_SCALINGS = 20  # after these, margins agree to far below one row
VISIBLE_SDS = 3.0  # as for levels (`synthesis.buckets`)
N_NOISE_MIN = 4  # cells of a row or column that are noise, from which on they are worth excluding
EXCLUDED = -1e9  # a count for each unit of variance, so that projecting gives 0
FLOOR = 1e-9  # share of independence in each pair table, so that noise excludes no cell


def projected(values: Floats, totals: Floats, variance: Floats) -> Floats:
    """Each row's nearest non-negative values with a given sum.

    Parameters
    ----------
    values : (n_rows, n_cells) ndarray of float64
    totals : (n_rows,) ndarray of float64
        Not negative; a row with total 0 is 0.
    variance : (n_rows, n_cells) ndarray of float64
        Positive. Distance is ``sum (x - values)**2 / variance``: noisier cells move more.

    Notes
    -----
    The minimum is ``max(values - m * variance, 0)`` with the unique ``m`` that gives the sum. The
    cells that stay positive are those with the largest ``values / variance``, so one sort finds
    them; with equal variances this is the projection onto the simplex [1]_.

    References
    ----------
    .. [1] J. Duchi, S. Shalev-Shwartz, Y. Singer, T. Chandra, "Efficient Projections onto the
       l1-Ball for Learning in High Dimensions", ICML 2008, figure 1.

    Examples
    --------
    >>> projected(np.array([[3.0, 1.0, -2.0]]), np.array([3.0]), np.ones((1, 3)))
    array([[2.5, 0.5, 0. ]])
    """
    ratio = values / variance
    order = np.argsort(-ratio, axis=1)
    excess = np.cumsum(np.take_along_axis(values, order, 1), axis=1) - totals[:, np.newaxis]
    multiplier = excess / np.cumsum(np.take_along_axis(variance, order, 1), axis=1)
    positive = np.take_along_axis(ratio, order, 1) > multiplier
    n_positive = np.maximum(positive.sum(axis=1, keepdims=True), 1)
    chosen = np.take_along_axis(multiplier, n_positive - 1, 1)
    within = np.maximum(values - chosen * variance, 0.0)
    return np.asarray(np.where(totals[:, np.newaxis] > 0, within, 0.0), dtype=np.float64)


def fitted_margin(estimates: Sequence[TableEstimate], total: float) -> Floats:
    """A column's counts: non-negative, with the given total, from independent estimates."""
    best = combined(estimates)
    return projected(best.values[np.newaxis], np.array([total]), best.variance[np.newaxis]).ravel()


def fitted_pair(table: TableEstimate, rows: Floats, columns: Floats) -> Floats:
    """A pair table that is non-negative and has the given margins.

    Parameters
    ----------
    table : TableEstimate
    rows, columns : (n,) and (m,) ndarray of float64
        Margins; not negative, with the same sum.

    Notes
    -----
    Alternating projections onto the tables with either margin [1]_ approach the closest table with
    both; alternately scaling rows and columns [2]_ then gives both margins.

    References
    ----------
    .. [1] L. M. Bregman, "The method of successive projection for finding a common point of convex
       sets", Soviet Mathematics Doklady 6, 1965.
    .. [2] W. E. Deming, F. F. Stephan, "On a Least Squares Adjustment of a Sampled Frequency Table
       When the Expected Marginal Totals are Known", Annals of Mathematical Statistics 11, 1940.
    """
    total = rows.sum()
    if not total > 0:
        return np.zeros_like(table.values)
    counts = np.where(noise_of_ties(table), EXCLUDED * table.variance, table.values)
    for _ in range(N_PROJECTIONS):
        counts = projected(counts, rows, table.variance)
        counts = projected(counts.T, columns, table.variance.T).T
    counts = counts + FLOOR * np.outer(rows, columns) / total
    for _ in range(N_SCALINGS):
        counts = counts * ratio_or_zero(rows, counts.sum(axis=1))[:, np.newaxis]
        counts = counts * ratio_or_zero(columns, counts.sum(axis=0))
    return np.asarray(counts, dtype=np.float64)


def noise_of_ties(table: TableEstimate) -> NDArray[np.bool_]:
    """The cells whose counts are noise beside those that a tie between the columns leaves.

    Parameters
    ----------
    table : TableEstimate
        An estimated table of two columns.

    Returns
    -------
    (n, m) ndarray of bool

    Notes
    -----
    Where one column determines the other (a time is NULL where a flight was cancelled), a row of
    the table has one visible count and many that are noise. Projections keep the largest of these,
    which together can be a large share of a small row. Cells are taken for noise if they are below
    `VISIBLE_SDS` standard deviations, and if all such cells of their row add up to nothing, within
    a standard deviation, beside a visible count; and so for their column, and for whichever of the
    two has `N_NOISE_MIN` such cells or more: fewer say little, and do no harm.
    """
    small = table.values < VISIBLE_SDS * np.sqrt(table.variance)
    is_noise, is_judged = small.copy(), np.zeros_like(small)
    for axis in (0, 1):
        summed = np.where(small, table.values, 0.0).sum(axis=axis, keepdims=True)
        noise = np.sqrt(np.where(small, table.variance, 0.0).sum(axis=axis, keepdims=True))
        is_tied = (summed < noise) & ~small.all(axis=axis, keepdims=True)
        is_long = small.sum(axis=axis, keepdims=True) >= N_NOISE_MIN
        is_noise &= is_tied | ~is_long
        is_judged |= is_long
    return is_noise & is_judged


def ratio_or_zero(numerator: Floats, denominator: Floats) -> Floats:
    """``numerator / denominator``, and 0 where it is not defined."""
    zero = np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape))
    return np.divide(numerator, denominator, out=zero, where=denominator > 0)
