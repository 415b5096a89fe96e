"""Independent computations of the tail of a sum of Laplace variables, as checks of the package.

Each is slow or limited to some scales, and shares no code and no method with ``inference``:
partial fractions in many digits, Erlang mixtures for equal scales, Gil-Pelaez inversion with its
own period and length.
"""

import math

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, gammaln

GIL_PELAEZ_ERROR = 2e-14  # aliasing, truncation and rounding together, for ten or more scales
GIL_PELAEZ_DEVIATIONS = 120.0  # half-period in standard deviations: tails beyond are under 1e-30
DIGITS_PER_SCALE = 6  # spent on cancellation between neighbouring scales


def partial_fractions_tail(scales: NDArray[np.float64], z: float) -> float:
    """``Pr(X > z)``, ``z >= 0``, for distinct scales: ``1/2 sum_k c_k exp(-z / b_k)``.

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
            total += weight * mpmath.exp(-mpmath.mpf(z) / scale)
        return float(total / 2)


def equal_scales_tail(n_scales: int, scale: float, z: float) -> float:
    """``Pr(X > z)``, ``z >= 0``, for equal scales: a mixture of Erlang tails, all terms positive.

    The density is the closed form of Xiao & Xiong 2012, eq. 23, integrated term by term.
    """
    k = np.arange(n_scales)
    log_weights = gammaln(n_scales + k) - gammaln(n_scales) - gammaln(k + 1)
    weights = np.exp(log_weights - (n_scales + k) * math.log(2))
    return float((weights * gammaincc(n_scales - k, z / scale)).sum())


def gil_pelaez_tail(scales: NDArray[np.float64], z: float) -> float:
    """``Pr(X > z)``, ``z >= 0``, to within `GIL_PELAEZ_ERROR`, for ten or more comparable scales.

    Raises
    ------
    ValueError
        If the characteristic function decays too slowly for a short sum.
    """
    deviation = math.sqrt(2 * float(np.square(scales).sum()))
    spacing = 2 * math.pi / (GIL_PELAEZ_DEVIATIONS * deviation)
    total = 0.0
    for first in range(0, 2**16, 256):
        order = np.arange(first, first + 256) + 0.5
        frequency = spacing * order
        factors = np.square(scales)[:, np.newaxis] * np.square(frequency)
        transform = np.exp(-np.log1p(factors).sum(axis=0))
        total += float((np.sin(frequency * z) * transform / order).sum())
        # The transform falls at least like order**-4 from here on, so the rest is smaller.
        if transform[-1] < GIL_PELAEZ_ERROR / 4:
            return 0.5 - total / math.pi
    raise ValueError("too few scales, or one of them dwarfs the rest")
