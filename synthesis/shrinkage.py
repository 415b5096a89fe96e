"""What noisy scores of many tables say together: each is drawn towards what is usual among them.

Of many noisy scores the largest owe their rank to noise, so their values promise more than
measuring the tables would give. Post-processing of what is paid for; what is bought with the result
is decided in `synthesis.choice`.
"""

from math import gamma
from typing import Final

import numpy as np

from synthesis.choice import NoiseCost
from synthesis.tables import Floats

N_GRID: Final = 80
N_STEPS: Final = 200  # more change the result by less than its noise
SMALLEST: Final = 1e-3  # positive score on the grid, as a share of the largest


def shrunk_scores(scores: Floats, largest: float, budget: float, cost: NoiseCost) -> Floats:
    """The expected true scores, given the noisy ones and the law of their noise.

    Parameters
    ----------
    scores : (n_scores,) ndarray of float64
        Each with independent noise.
    largest : float
        No true score is larger; none is negative.
    budget : float
        That was spent on each.
    cost : NoiseCost
        The noise for a budget.

    Returns
    -------
    (n_scores,) ndarray of float64
        From 0 to `largest`, in the same order of size as `scores`.

    Notes
    -----
    Empirical Bayes: the true scores are taken for draws from one distribution, which is estimated
    by maximum likelihood among all distributions on a grid [1]_ with expectation maximisation, from
    these and one made-up score of 0, without which a single score would be believed as it is. The
    noise has the density ``exp(-c |x|**(1 / power))`` up to a factor: Laplace for a power of 1,
    normal for 1/2.

    References
    ----------
    .. [1] R. Koenker, I. Mizera, "Convex Optimization, Shape Constraints, Compound Decisions, and
       Empirical Bayes Rules", Journal of the American Statistical Association 109, 2014.

    Examples
    --------
    >>> from synthesis.choice import LAPLACE
    >>> noisy = np.array([-12.0, 3.0, 9.0, 400.0])
    >>> shrunk_scores(noisy, 1000.0, 0.1, LAPLACE).round()
    array([  0.,   0.,   0., 400.])
    """
    if not scores.size or largest <= 0:
        return np.zeros(scores.size)
    grid = _grid(scores, largest)
    likelihood = _likelihood(scores, grid, cost.deviation / budget**cost.power, 1 / cost.power)
    prior = np.full(grid.size, 1 / grid.size)
    for _ in range(N_STEPS):
        prior = prior * (likelihood.T @ (1 / (likelihood @ prior)))
        prior[0] += 1  # the made-up score
        prior /= prior.sum()
    return np.asarray(likelihood @ (prior * grid) / (likelihood @ prior), dtype=np.float64)


def _grid(scores: Floats, largest: float) -> Floats:
    """Values that a true score may have: spread evenly by their logarithms, and as scores are."""
    spread = np.geomspace(SMALLEST * largest, largest, N_GRID)
    n_quantiles = min(scores.size, N_GRID)
    seen = np.quantile(np.clip(scores, 0.0, largest), np.linspace(0, 1, n_quantiles))
    return np.unique(np.concatenate([[0.0], spread, seen]))


def _likelihood(scores: Floats, grid: Floats, mean: float, exponent: float) -> Floats:
    """Of each score (rows) for each true value (columns), at most 1, for a mean ``|noise|``."""
    scale = mean * gamma(1 / exponent) / gamma(2 / exponent)
    logs = -((np.abs(scores[:, np.newaxis] - grid) / scale) ** exponent)
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)), dtype=np.float64)
