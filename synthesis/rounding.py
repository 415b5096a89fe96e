"""Whole numbers of rows from shares, and values dealt to rows in random order.

Rounding is controlled: every count is the expected one rounded up or down, and each group's counts
sum to its size, so that rounding adds far less noise than independent draws would. Within a group,
the assignment of values to rows is uniform: two columns dealt to one group are independent in it.
"""

import numpy as np

from synthesis.tables import Floats, Integers

WHOLE = 1e-9  # an expected count this little below a whole number counts as that number


def controlled_counts(shares: Floats, sizes: Integers, rng: np.random.Generator) -> Integers:
    """Split each group into whole parts, each within one of its expected size.

    Parameters
    ----------
    shares : (n_groups, n_parts) ndarray of float64
        Not negative, each row with sum 1.
    sizes : (n_groups,) ndarray of int64
    rng : numpy.random.Generator

    Returns
    -------
    (n_groups, n_parts) ndarray of int64
        Rows sum to `sizes`; a count's expectation is ``share * size``.

    Notes
    -----
    The remainders after rounding down are distributed by systematic sampling [1]_: a group's
    cumulative remainders are cut at ``u, u + 1, ...``, with ``u`` uniform on [0, 1).

    References
    ----------
    .. [1] W. G. Madow, "On the Theory of Systematic Sampling, II", Annals of Mathematical
       Statistics 20, 1949.
    """
    expected = shares * sizes[:, np.newaxis]
    floors = np.floor(expected + WHOLE)
    cumulated = np.cumsum(np.maximum(expected - floors, 0.0), axis=1)
    missing = sizes - floors.sum(axis=1)
    scale = np.divide(missing, cumulated[:, -1], out=np.zeros(sizes.size), where=missing > 0)
    cumulated *= scale[:, np.newaxis]
    cumulated[:, -1] = missing
    # Rounding may have raised a sum slightly above the whole number that it should be
    np.minimum(cumulated, missing[:, np.newaxis], out=cumulated)
    cuts = np.ceil(cumulated - rng.random((sizes.size, 1)))
    return np.asarray(floors + np.diff(cuts, axis=1, prepend=0.0), dtype=np.int64)


def dealt(groups: Integers, values: Integers, rng: np.random.Generator) -> Integers:
    """Deal values to rows, at random within each group.

    Parameters
    ----------
    groups : (n_rows,) ndarray of int64
    values : (n_rows,) ndarray of int64
        Sorted by group: first those of the lowest group, then those of the next, and so on.
    rng : numpy.random.Generator

    Returns
    -------
    (n_rows,) ndarray of int64
        The value of each row.
    """
    shuffled = rng.permutation(groups.size)
    result = np.empty(groups.size, dtype=np.int64)
    result[shuffled[np.argsort(groups[shuffled], kind="stable")]] = values
    return result
