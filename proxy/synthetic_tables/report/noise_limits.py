"""How far measured counts can be from the truth by noise alone: limits from the law of the noise.

A limit is exceeded at most at the given odds. Counts of one table have independent noise of one
scale, Laplace or Gaussian; no law is replaced by another that it resembles.
"""

import numpy as np
from scipy.special import gammainccinv, log_ndtr

from inference.noise_law.law import law_of_noise

_TILTS = np.geomspace(1e-4, 30.0, 500)  # where the bound is tried; it holds at each of them


def total_limit(n_counts: int, scale: float, odds: float, *, is_gaussian: bool) -> float:
    """The limit of ``sum |noise|`` over some counts.

    Parameters
    ----------
    n_counts : int
    scale : float
        Of Laplace noise; for Gaussian noise, of Laplace noise with the same variance.
    odds : float
        Between 0 and 1.
    is_gaussian : bool

    Notes
    -----
    ``|noise| / scale`` of Laplace noise is exponential, so its sum over `n` counts has the gamma
    law with shape `n`, exactly. For Gaussian noise it is Chernoff's bound [1]_: with
    ``E exp(s |Z|) = 2 exp(s**2 / 2) Phi(s)``, the sum exceeds
    ``(n (log 2 Phi(s) + s**2 / 2) - log odds) / s`` at most at these odds, for every ``s > 0``.

    References
    ----------
    .. [1] H. Chernoff, "A Measure of Asymptotic Efficiency for Tests of a Hypothesis Based on the
       Sum of Observations", Annals of Mathematical Statistics 23, 1952.

    Examples
    --------
    >>> round(total_limit(1, 1.0, 0.05, is_gaussian=False), 3)
    2.996
    """
    if n_counts == 0:
        return 0.0
    if not is_gaussian:
        return scale * float(gammainccinv(n_counts, odds))
    of_each = np.log(2) + log_ndtr(_TILTS) + _TILTS**2 / 2
    bounds = (n_counts * of_each - np.log(odds)) / _TILTS
    return float(np.sqrt(2) * scale * bounds.min())


def sum_limit(n_counts: int, scale: float, odds: float, *, is_gaussian: bool) -> float:
    """The limit of ``|sum of noises|`` of some counts; parameters as for `total_limit`.

    >>> round(sum_limit(1, 1.0, 0.05, is_gaussian=False), 3)
    2.996
    >>> round(sum_limit(4, 1.0, 0.05, is_gaussian=True), 2)
    5.54
    """
    if n_counts == 0:
        return 0.0
    if is_gaussian:
        law = law_of_noise(np.empty(0), gaussian=float(np.sqrt(2 * n_counts) * scale))
    else:
        law = law_of_noise(np.full(n_counts, scale))
    return law.half_width(1 - odds)
