"""Plausible tables: the nearest non-negative table of a given total, and its independent version.

The two steps of Gaboardi et al.: first the table that best explains the noisy one, then the
product of that table's marginals. Both handle many tables at once, because a test fits a thousand.

Nothing here is random, and nothing knows where tables come from.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def fitted_tables(noisy: Floats, scales: Floats, totals: Floats, *, squared_share: float) -> Floats:
    """The non-negative tables of given totals that are nearest to noisy ones.

    Parameters
    ----------
    noisy : (n_tables, n_cells) ndarray of float64
    scales : (n_cells,) ndarray of float64
        The size of the noise in each cell.
    totals : (n_tables,) ndarray of float64
        Positive: the total of each fitted table.
    squared_share : float
        ``gamma`` in (0, 1]. 1 is weighted least squares; near 0, the likelihood of Laplace noise.

    Returns
    -------
    (n_tables, n_cells) ndarray of float64

    Notes
    -----
    With ``u_i = (T_i - W_i) / b_i`` the fit minimises [1]_

        ``sum_i (1 - gamma) |u_i| + gamma u_i**2``   subject to  ``sum T = n``, ``T >= 0``.

    Deviations are in units of each cell's noise, so that cells with different noise are weighted as
    in the likelihood, and a fit does not depend on the unit of the counts.

    Only the total couples the cells. Given its multiplier ``p``, a cell is
    ``T_i(p) = max(0, W_i + b_i sign(p) max(0, |b_i p| - (1 - gamma)) / (2 gamma))``: piecewise
    linear in ``p``, flat where no further deviation pays, and never decreasing. So is the sum,
    whose kinks are the cells' kinks; ``p`` is interpolated between two of them. There is no
    iteration and no tolerance.

    References
    ----------
    .. [1] M. Gaboardi, H. Lim, R. Rogers, S. Vadhan, "Differentially Private Chi-Squared Hypothesis
       Testing: Goodness of Fit and Independence Testing", ICML 2016, section 5.

    Examples
    --------
    A negative cell becomes 0, and the surplus is taken where the noise is largest.

    >>> noisy, scales = np.array([[-3.0, 50.0, 60.0]]), np.array([1.0, 1.0, 10.0])
    >>> fitted_tables(noisy, scales, np.array([100.0]), squared_share=0.01).round(6)
    array([[ 0., 50., 50.]])
    """
    if not 0 < squared_share <= 1:
        raise ValueError(f"squared_share must lie in (0, 1], not {squared_share}")
    if not bool((totals > 0).all()):
        raise ValueError("the total of a fitted table must be positive")
    multiplier = _multipliers(noisy, scales, totals, squared_share)
    pull = multiplier[:, np.newaxis] * scales
    moved = np.maximum(np.abs(pull) - (1 - squared_share), 0.0) / (2 * squared_share)
    return np.maximum(noisy + np.copysign(moved, pull) * scales, 0.0)


def _multipliers(
    noisy: Floats, scales: Floats, totals: Floats, squared_share: float
) -> NDArray[np.float64]:
    """The multiplier of each table's total, (n_tables,)."""
    slopes = np.square(scales) / (2 * squared_share)
    edge = (1 - squared_share) / scales
    positive = noisy > 0
    # The multipliers at which cells reach or leave 0: a positive cell while falling, others rising.
    starts = np.where(positive, -edge, edge) - noisy / slopes
    edges = np.broadcast_to(edge, noisy.shape)
    kinks = np.concatenate([starts, -edges, edges], axis=1)
    rests = slopes * positive  # only a positive cell has its flat piece above 0
    turns = np.concatenate([np.broadcast_to(slopes, noisy.shape), -rests, rests], axis=1)

    order = np.argsort(kinks, axis=1)
    kinks = np.take_along_axis(kinks, order, axis=1)
    slope = np.cumsum(np.take_along_axis(turns, order, axis=1), axis=1)
    sums = np.zeros_like(kinks)  # the total of the table at each kink
    np.cumsum(slope[:, :-1] * np.diff(kinks, axis=1), axis=1, out=sums[:, 1:])

    last = (sums < totals[:, np.newaxis]).sum(axis=1) - 1
    here = np.arange(len(noisy)), last
    after = np.minimum(last + 1, kinks.shape[1] - 1)
    to_next = np.where(after > last, kinks[np.arange(len(noisy)), after] - kinks[here], np.inf)
    # On a flat piece the slope is 0 up to rounding, and any point up to the next kink will do.
    step = np.divide(
        totals - sums[here], slope[here], out=np.zeros_like(totals), where=slope[here] > 0
    )
    return np.asarray(kinks[here] + np.minimum(step, to_next), dtype=np.float64)


def independent_tables(tables: Floats) -> Floats:
    """The tables with the same marginals in which the first two columns are independent.

    Parameters
    ----------
    tables : (n_tables, n_rows, n_columns, ...) ndarray of float64
        Not negative. Independence is conditional on the axes after the third.

    Returns
    -------
    ndarray of float64
        In the same shape: ``T_x.z T_.yz / T_..z``, and 0 where ``T_..z`` is 0.
    """
    rows = tables.sum(axis=2, keepdims=True)
    columns = tables.sum(axis=1, keepdims=True)
    totals = rows.sum(axis=1, keepdims=True)
    shares = np.divide(rows, totals, out=np.zeros_like(rows), where=totals > 0)
    return np.asarray(shares * columns, dtype=np.float64)
