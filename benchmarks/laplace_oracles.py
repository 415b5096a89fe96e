"""Independent computations of the tail of Laplace variables and one Gaussian, added, as checks.

Each is slow or limited to some scales, and shares no code and no method with ``inference``:
partial fractions in many digits, Erlang mixtures for equal scales, Gil-Pelaez inversion with its
own period and length. The deviation of the Gaussian part is 0 where there is none.
"""

import math

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, gammaln

GIL_PELAEZ_ERROR = 2e-14  # aliasing, truncation and rounding together, for ten or more scales
GIL_PELAEZ_DEVIATIONS = 120.0  # half-period in standard deviations: tails beyond are under 1e-30
DIGITS_PER_SCALE = 6  # spent on cancellation between neighbouring scales


def partial_fractions_tail(scales: NDArray[np.float64], z: float, gaussian: float = 0.0) -> float:
    """``Pr(X > z)``, ``z >= 0``, for distinct scales: ``sum_k c_k Pr(b_k L + sigma Z > z)``.

    ``c_k = prod_{j != k} b_k**2 / (b_k**2 - b_j**2)``, evaluated with enough digits that
    cancellation between close scales does no harm.
    """
    with mpmath.workdps(50 + DIGITS_PER_SCALE * scales.size):
        exact = [mpmath.mpf(float(scale)) for scale in scales]
        total = mpmath.mpf(0)
        for k, scale in enumerate(exact):
            weight = mpmath.mpf(1)
            for j, other in enumerate(exact):
                if j != k:
                    weight *= scale**2 / (scale**2 - other**2)
            total += weight * _laplace_and_gaussian_tail(scale, mpmath.mpf(z), gaussian)
        return float(total)


def _laplace_and_gaussian_tail(scale: mpmath.mpf, z: mpmath.mpf, deviation: float) -> mpmath.mpf:
    """``Pr(b L + sigma Z > z)``, by integrating the Laplace tail over the normal density.

    With ``r = sigma / b``: ``Q(z / sigma) + exp(r**2 / 2) / 2 * (exp(-z / b) Q(r - z / sigma) -
    exp(z / b) Q(r + z / sigma))``, ``Q`` the normal tail.
    """
    if deviation == 0:
        return mpmath.exp(-z / scale) / 2
    sigma = mpmath.mpf(deviation)
    ratio, standard = sigma / scale, z / sigma
    near = mpmath.exp(-z / scale + ratio**2 / 2) * _normal_tail(ratio - standard)
    far = mpmath.exp(z / scale + ratio**2 / 2) * _normal_tail(ratio + standard)
    return _normal_tail(standard) + (near - far) / 2


def _normal_tail(z: mpmath.mpf) -> mpmath.mpf:
    return mpmath.erfc(z / mpmath.sqrt(2)) / 2


def equal_scales_tail(n_scales: int, scale: float, z: float) -> float:
    """``Pr(X > z)``, ``z >= 0``, for equal scales: a mixture of Erlang tails, all terms positive.

    The density is the closed form of Xiao & Xiong 2012, eq. 23, integrated term by term.
    """
    k = np.arange(n_scales)
    log_weights = gammaln(n_scales + k) - gammaln(n_scales) - gammaln(k + 1)
    weights = np.exp(log_weights - (n_scales + k) * math.log(2))
    return float((weights * gammaincc(n_scales - k, z / scale)).sum())


def gil_pelaez_tail(scales: NDArray[np.float64], z: float, gaussian: float = 0.0) -> float:
    """``Pr(X > z)``, ``z >= 0``, to within `GIL_PELAEZ_ERROR`, for ten or more comparable scales.

    Raises
    ------
    ValueError
        If the characteristic function decays too slowly for a short sum.
    """
    deviation = math.hypot(math.sqrt(2 * float(np.square(scales).sum())), gaussian)
    spacing = 2 * math.pi / (GIL_PELAEZ_DEVIATIONS * deviation)
    total = 0.0
    for first in range(0, 2**16, 256):
        order = np.arange(first, first + 256) + 0.5
        frequency = spacing * order
        factors = np.square(scales)[:, np.newaxis] * np.square(frequency)
        transform = np.exp(-np.log1p(factors).sum(axis=0) - np.square(gaussian * frequency) / 2)
        total += float((np.sin(frequency * z) * transform / order).sum())
        # The transform falls at least like order**-4 from here on, so the rest is smaller.
        if transform[-1] < GIL_PELAEZ_ERROR / 4:
            return 0.5 - total / math.pi
    raise ValueError("too few scales, or one of them dwarfs the rest")
