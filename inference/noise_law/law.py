"""The law of the noise in an estimate: of ``X = sum_k b_k L_k + sigma Z``.

The ``L_k`` are standard Laplace, ``Z`` is standard normal, all independent. An estimate ``A y``
misses its truth by ``X`` with ``b_k = |A_k|`` times the scale of row ``k``, and ``sigma**2`` the
sum of the variances of the terms with Gaussian noise. Whatever the method, a law knows its tails to
a stated error, and that error never reduces the coverage of an interval.

Nothing here knows rows, weights or queries: scales in, probabilities out.
"""

import math
from enum import StrEnum
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcinv, erfinv

from inference.noise_law.contour import ContourLaw
from inference.noise_law.convolution import ConvolutionLaw
from inference.noise_law.laplace_sum import (
    check_bound,
    check_confidence,
    check_deviation,
    positive_scales,
    standard_deviation,
)
from inference.noise_law.monte_carlo import MonteCarloLaw
from inference.noise_law.paper_convolution import PaperConvolutionLaw

N_LAWS_KEPT = 256  # a GROUP BY needs the same law for every row; a law of 1000 scales is 50 kB


class NoiseLaw(Protocol):
    """The law of a symmetric sum of Laplace variables and one Gaussian."""

    @property
    def scales(self) -> NDArray[np.float64]:
        """The positive scales of the Laplace variables, (n,)."""

    @property
    def gaussian(self) -> float:
        """The deviation of the Gaussian part; 0 where there is none."""

    @property
    def tail_error(self) -> float:
        """Bound on ``|tail(z) - Pr(X > z)|`` over all ``z``."""

    def tail(self, z: float) -> float:
        """``Pr(X > z)`` for any real ``z``."""

    def half_width(self, confidence: float) -> float:
        """Smallest ``h`` with ``Pr(|X| > h) <= 1 - confidence``; never too small, for any error."""


class LawMethod(StrEnum):
    """How the law of a sum of two or more terms is computed."""

    CONTOUR = "contour"
    CONVOLUTION = "convolution"
    PAPER_CONVOLUTION = "paper_convolution"
    MONTE_CARLO = "monte_carlo"


class SingleLaplaceLaw:
    """The law of one Laplace variable in closed form; of scale 0, a point mass at 0."""

    __slots__ = ("gaussian", "scales", "tail_error")

    def __init__(self, scale: float) -> None:
        if not 0 <= scale < math.inf:
            raise ValueError(f"scales must be finite and not negative, not {scale}")
        self.scales = np.array([scale] if scale else [], dtype=np.float64)
        self.scales.flags.writeable = False
        self.gaussian = 0.0
        self.tail_error = 2.0**-52 if scale else 0.0  # one exponential, rounded

    def tail(self, z: float) -> float:
        """``Pr(X > z)``."""
        check_bound(z)
        if z < 0:
            # The point mass lies beyond z; the Laplace law follows by symmetry.
            return 1.0 - self.tail(-z) if self.scales.size else 1.0
        return math.exp(-z / float(self.scales[0])) / 2 if self.scales.size else 0.0

    def half_width(self, confidence: float) -> float:
        """``b log(1 / (1 - confidence))``, rounded up."""
        check_confidence(confidence)
        if not self.scales.size:
            return 0.0
        return -float(self.scales[0]) * math.log1p(-confidence) * (1 + 2.0**-50)


class SingleGaussianLaw:
    """The law of one Gaussian variable in closed form."""

    __slots__ = ("gaussian", "scales", "tail_error")

    def __init__(self, deviation: float) -> None:
        check_deviation(deviation)
        if deviation == 0:
            raise ValueError("a Gaussian law has a positive deviation")
        self.scales = np.empty(0)
        self.scales.flags.writeable = False
        self.gaussian = deviation
        self.tail_error = 2.0**-50  # one error function, rounded

    def tail(self, z: float) -> float:
        """``Pr(X > z)``."""
        check_bound(z)
        return math.erfc(z / (self.gaussian * math.sqrt(2))) / 2

    def half_width(self, confidence: float) -> float:
        """The normal quantile, rounded up by far more than its error."""
        check_confidence(confidence)
        # Each is accurate on its side: 1 - confidence is exact from 1/2 on.
        quantile = erfinv(confidence) if confidence < 0.5 else erfcinv(1 - confidence)  # noqa: PLR2004
        return self.gaussian * math.sqrt(2) * float(quantile) * (1 + 2.0**-40)


def law_of_noise(  # noqa: PLR0913 - each method has its one knob, all keyword-only
    scales: NDArray[np.float64],
    method: LawMethod = LawMethod.CONTOUR,
    *,
    gaussian: float = 0.0,
    tolerance: float = 1e-12,
    generator: np.random.Generator | None = None,
    n_draws: int = 10_000,
    grid_step: float = 1.0,
) -> NoiseLaw:
    """The law of ``X = sum_k b_k L_k + sigma Z``.

    Parameters
    ----------
    scales : (n,) ndarray of float64
        The ``b_k``, in units of the answer. Zeros are dropped. Of one variable, or none, the closed
        form is used whatever the method.
    method : LawMethod
        The contour is exact for all practical purposes, and the fastest; the others serve for
        comparison. The paper's convolution is of Laplace variables alone.
    gaussian : float
        The deviation ``sigma`` of the Gaussian part, in units of the answer; 0 for none.
    tolerance : float
        The numerical error to aim for in a tail probability; for the paper's convolution, the mass
        that may be cut off.
    generator, n_draws
        For Monte Carlo; there is no default generator, the caller passes one.
    grid_step : float
        For the paper's convolution, in units of the answer.

    Returns
    -------
    NoiseLaw
        Its `tail_error` is the error that is reached. Laws by contour are shared between calls
        with the same Gaussian part and the same scales in any order; use does not change them.

    Examples
    --------
    Ten equally noisy rows summed: the 95 % half-width is far from ten times that of one row.

    >>> one, ten = law_of_noise(np.ones(1)), law_of_noise(np.ones(10))
    >>> round(one.half_width(0.95), 3), round(ten.half_width(0.95), 3)
    (2.996, 8.861)
    """
    positive = positive_scales(scales)
    check_deviation(gaussian)
    if positive.size <= 1 and gaussian == 0:
        return SingleLaplaceLaw(float(positive.sum()))
    if positive.size == 0:
        return SingleGaussianLaw(gaussian)
    match method:
        case LawMethod.CONTOUR:
            return _contour_law(np.sort(positive).tobytes(), gaussian, tolerance)
        case LawMethod.CONVOLUTION:
            return ConvolutionLaw(positive, gaussian=gaussian, tolerance=tolerance)
        case LawMethod.PAPER_CONVOLUTION:
            if gaussian:
                raise ValueError("the paper's convolution is of Laplace variables alone")
            return PaperConvolutionLaw(positive, grid_step=grid_step, lost_mass=tolerance)
        case LawMethod.MONTE_CARLO:
            if generator is None:
                raise ValueError("Monte Carlo needs a generator: numpy.random.default_rng(...)")
            return MonteCarloLaw(positive, gaussian=gaussian, generator=generator, n_draws=n_draws)


def law_of_noises(scales: NDArray[np.float64], is_gaussian: NDArray[np.bool_]) -> NoiseLaw:
    """The law of a sum of independent noises, some of which are Gaussian.

    Parameters
    ----------
    scales : (n,) ndarray of float64
        Of each; for Gaussian noise, the scale of Laplace noise of the same variance.
    is_gaussian : (n,) ndarray of bool
    """
    deviation = standard_deviation(scales[is_gaussian])
    return law_of_noise(scales[~is_gaussian], gaussian=deviation)


@lru_cache(maxsize=N_LAWS_KEPT)
def _contour_law(sorted_scales: bytes, gaussian: float, tolerance: float) -> ContourLaw:
    scales = np.frombuffer(sorted_scales, dtype=np.float64)
    return ContourLaw(scales, gaussian=gaussian, tolerance=tolerance)
