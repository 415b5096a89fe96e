"""The nearest shares to any numbers: the projection onto the simplex."""

import numpy as np

from local_dp.channels.channel import Floats


def project_simplex(values: Floats, total: float = 1.0) -> Floats:
    """The nearest point, in Euclidean distance, that is nowhere negative and adds up to `total`.

    Exact, by sorting: all values are lowered by one threshold, and those below it become 0. Biased
    where it clips, so sums and intervals come from the values themselves.

    Examples
    --------
    >>> project_simplex(np.array([0.75, 0.5, -0.25])).tolist()
    [0.625, 0.375, 0.0]
    """
    if not total > 0:
        raise ValueError("a total is positive")
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError("finite values of one dimension are needed")
    falling = np.sort(values)[::-1]
    thresholds = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
    n_kept = int(np.flatnonzero(falling > thresholds)[-1]) + 1
    return np.asarray(np.maximum(values - thresholds[n_kept - 1], 0.0))
