"""The law of Laplace variables and one Gaussian, added, by simulation.

This is Algorithm 1 of Xiao & Xiong 2012, with a Gaussian part beside the Laplace variables.

It is for laws without a closed transform, and a test of the other methods. Its error bound holds
with high probability only, and falls with the square root of the number of draws.

The draws are double-precision variates, suitable for studying a law and never for releasing
an answer: noise that protects data comes from the accountant alone.
"""

import math

import numpy as np
from numpy.typing import NDArray

from inference.noise_law.laplace_sum import (
    check_bound,
    check_confidence,
    check_deviation,
    chernoff_half_width,
    positive_scales,
)

FAILURE_PROBABILITY = 1e-9  # that some tail of one set of draws is off by more than stated
BLOCK = 64  # scales whose draws are in memory at once


class MonteCarloLaw:
    """The empirical law of draws of ``|X|``, ``X = sum_k b_k L_k + sigma Z``.

    Parameters
    ----------
    scales : (n,) ndarray of float64
        The ``b_k``; zeros are dropped.
    generator : numpy.random.Generator
        Passed by the caller, so that a study can be repeated.
    n_draws : int
        Number of draws of `X`.
    gaussian : float
        The deviation ``sigma`` of the Gaussian part.

    Notes
    -----
    Algorithm 1, with its loop over the rows running to the last one (as printed it stops one
    short) and without its rounding to whole numbers. `X` is symmetric, so draws of ``|X|``
    suffice, at half the error.
    """

    def __init__(
        self,
        scales: NDArray[np.float64],
        *,
        generator: np.random.Generator,
        n_draws: int,
        gaussian: float = 0.0,
    ) -> None:
        if n_draws < 1:
            raise ValueError(f"n_draws must be at least 1, not {n_draws}")
        self.scales = positive_scales(scales)
        check_deviation(gaussian)
        self.gaussian = gaussian
        draws = np.zeros(n_draws)
        for first in range(0, self.scales.size, BLOCK):
            block = self.scales[first : first + BLOCK]
            draws += block @ generator.laplace(size=(block.size, n_draws))
        if gaussian:
            draws += gaussian * generator.standard_normal(n_draws)
        self._sizes = np.sort(np.abs(draws))

    @property
    def tail_error(self) -> float:
        """Bound on the error of every tail at once, failing for one set of draws in 10**9.

        Notes
        -----
        The Dvoretzky-Kiefer-Wolfowitz inequality with Massart's constant: the empirical law of
        ``|X|`` is within ``sqrt(log(2 / failure) / 2 n)``. A tail of `X` is half of one of ``|X|``.
        """
        return math.sqrt(math.log(2 / FAILURE_PROBABILITY) / (2 * self._sizes.size)) / 2

    def tail(self, z: float) -> float:
        """``Pr(X > z)``, to within `tail_error`."""
        check_bound(z)
        n_draws = self._sizes.size
        if z < 0:
            return 1 - (n_draws - int(self._sizes.searchsorted(-z))) / (2 * n_draws)
        return (n_draws - int(self._sizes.searchsorted(z, side="right"))) / (2 * n_draws)

    def half_width(self, confidence: float) -> float:
        """Smallest ``h`` with ``Pr(|X| > h) <= 1 - confidence``, allowing for the draws' error.

        With few draws the error exceeds ``1 - confidence``; then the half-width is Chernoff's
        bound, which it never exceeds.
        """
        check_confidence(confidence)
        proved = chernoff_half_width(
            self.scales, math.log((1 - confidence) / 2), gaussian=self.gaussian
        )
        n_beyond = math.floor((1 - confidence - 2 * self.tail_error) * self._sizes.size)
        if n_beyond < 0:
            return proved
        return min(proved, float(self._sizes[max(self._sizes.size - 1 - n_beyond, 0)]))
