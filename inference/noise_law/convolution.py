"""The law of Laplace variables and one Gaussian, added, by Fourier series, with stated error.

The characteristic function ``exp(-(sigma t)**2 / 2) prod_k 1 / (1 + (b_k t)**2)`` is sampled at odd
multiples of a frequency; the sine series of these samples is the tail of `X`, except for the mass
beyond the period and the omitted terms, both bounded below. One discrete sine transform gives the
tail, or the masses of bins, on a whole grid.

This is the convolution of Xiao & Xiong 2012 (section 4.3) with the rounding to a grid removed;
``paper_convolution.py`` is their algorithm itself.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dst, next_fast_len

from cube.cached import cached_property
from inference.noise_law.laplace_sum import (
    check_bound,
    check_confidence,
    check_deviation,
    check_tolerance,
    chernoff_half_width,
    positive_scales,
    tail_root,
)

N_TERMS_MIN = 64
N_TERMS_MAX = 2**20  # of the series: reached only when one scale is far above the others
N_FACTORS_MAX = 2**27  # scales times terms: about a second
N_POINTS_MAX = 2**22  # of a grid of masses
BLOCK = 2**22  # factors in memory at once
UNIT_ROUNDOFF = 2.0**-53


class ConvolutionLaw:
    """The law of ``X = sum_k b_k L_k + sigma Z`` by its Fourier series.

    Parameters
    ----------
    scales : (n,) ndarray of float64
        The ``b_k``; zeros are dropped.
    gaussian : float
        The deviation ``sigma`` of the Gaussian part; 0 for none. It, or a scale, must be positive.
    tolerance : float
        The error to aim for. `tail_error` states the error that is reached: more, where a single
        scale is far above all others and the series converges slowly.

    Notes
    -----
    Let ``q`` be the square wave that is ``sign(x)`` for ``|x| < H`` and has period ``2 H``. Its
    Fourier series gives, with ``t_k = (2 k + 1) pi / H`` and as `X` is symmetric,

        1/2 - (2 / pi) sum_k sin(t_k z) phi(t_k) / (2 k + 1) = E (1 - q(z - X)) / 2,

    and this differs from ``Pr(X > z) = E (1 - sign(z - X)) / 2`` only on the event
    ``|X - z| >= H``. With ``H`` twice a Chernoff half-width `reach` and ``0 <= z <= reach`` that
    has at most the probability of ``|X| >= reach``. Terms beyond the last one kept, at ``t``, add
    at most ``phi(t) (1 + t**-2) / 2 pi`` when the largest scale is 1, because ``phi`` falls at
    least as fast as ``1 / (1 + t**2)``. So it does where `sigma` is the square root of 2, as
    ``exp(-t**2) (1 + t**2)`` falls: a Gaussian counts with the scale of Laplace noise as wide.

    Examples
    --------
    >>> law = ConvolutionLaw(np.array([5.0, 2.0, 0.5]))
    >>> abs(law.tail(1.0) - 0.430692111935755) < law.tail_error < 1e-10
    True
    """

    def __init__(
        self, scales: NDArray[np.float64], *, gaussian: float = 0.0, tolerance: float = 1e-12
    ) -> None:
        self.scales = positive_scales(scales)
        check_deviation(gaussian)
        self.gaussian = gaussian
        if self.scales.size == 0 and gaussian == 0:
            raise ValueError("a Fourier series needs at least one positive scale")
        check_tolerance(tolerance)
        self._largest = _largest(self.scales, gaussian)
        self._unit = unit = _Unit(self.scales / self._largest, gaussian / self._largest)
        self._reach = unit.chernoff(math.log(tolerance / 4))
        n_terms = N_TERMS_MIN
        n_max = max(N_TERMS_MIN, min(N_TERMS_MAX, N_FACTORS_MAX // max(1, self.scales.size)))
        while _truncation(unit, self._reach, n_terms) > tolerance / 4 and n_terms < n_max:
            n_terms *= 2
        self._frequencies, self._coefficients = _series(unit, self._reach, n_terms)
        self.tail_error = (
            tolerance / 2
            + _truncation(unit, self._reach, n_terms)
            + _rounding(unit, self._coefficients)
        )

    def tail(self, z: float) -> float:
        """``Pr(X > z)``, to within `tail_error`."""
        check_bound(z)
        if z < 0:
            return 1.0 - self.tail(-z)
        if z >= self._reach * self._largest:
            return 0.0
        return min(max(self._tail_and_density(z / self._largest)[0], 0.0), 0.5)

    def half_width(self, confidence: float) -> float:
        """The smallest ``h`` with ``Pr(|X| > h) <= 1 - confidence``, rounded up by the error."""
        check_confidence(confidence)
        probability = (1 - confidence) / 2
        if probability <= 2 * self.tail_error:
            return self._largest * self._unit.chernoff(math.log(probability))
        target = probability - self.tail_error
        step = self._reach / self._grid.size
        # The first grid point whose tail is small enough; the root lies in the step before it.
        above = int((self._grid <= target).argmax())
        return self._largest * tail_root(
            self._tail_and_density, target, low=above * step, start=(above + 1) * step
        )

    @cached_property
    def _grid(self) -> NDArray[np.float64]:
        """Tails at ``reach / n``, ``2 reach / n``, ..., `reach`."""
        return 0.5 - dst(self._coefficients, type=2) / 2

    def _tail_and_density(self, z: float) -> tuple[float, float]:
        angles = self._frequencies * z
        tail = 0.5 - float((self._coefficients * np.sin(angles)).sum())
        return tail, float((self._coefficients * self._frequencies * np.cos(angles)).sum())


def masses_on_grid(
    scales: NDArray[np.float64], step: float, *, gaussian: float = 0.0, tolerance: float = 1e-12
) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
    """The probabilities of bins centred on the multiples of `step`.

    Parameters
    ----------
    scales : (n,) ndarray of float64
        Zeros are dropped; without noise, all the mass is in the bin of 0.
    step : float
        Width of a bin, in units of the scales.
    gaussian : float
        The deviation of the Gaussian part.
    tolerance : float
        The error to aim for in each mass, and a bound on the mass omitted at both ends together.

    Returns
    -------
    (indices, masses, error)
        ``(2 n + 1,)`` each: ``masses[i]`` is the probability of the bin
        ``(indices[i] +- 1/2) * step`` to within `error`.

    Raises
    ------
    ValueError
        If `step` is not positive, or so fine that more than ``2**22`` points would be needed.
    """
    if not (math.isfinite(step) and step > 0):
        raise ValueError(f"step must be a positive number, not {step}")
    check_tolerance(tolerance)
    check_deviation(gaussian)
    positive = positive_scales(scales)
    if positive.size == 0 and gaussian == 0:
        return np.zeros(1, dtype=np.int64), np.ones(1), 0.0
    largest = _largest(positive, gaussian)
    unit, unit_step = _Unit(positive / largest, gaussian / largest), step / largest
    shortest = max(unit.chernoff(math.log(tolerance / 4)), unit_step)
    if 2 * shortest / unit_step > N_POINTS_MAX:
        raise ValueError(
            f"step {step} is too fine: {2 * shortest * largest / N_POINTS_MAX} will do"
        )
    n_max = min(N_POINTS_MAX, max(N_TERMS_MIN, N_FACTORS_MAX // max(1, positive.size)))
    spacing = unit_step / 2  # bin edges are odd multiples of it
    n_points = next_fast_len(math.ceil(shortest / spacing), real=True)
    while _truncation(unit, n_points * spacing, n_points) > tolerance / 4 and 2 * n_points <= n_max:
        spacing /= 2
        n_points *= 2
    reach = n_points * spacing
    _, coefficients = _series(unit, reach, n_points)
    tails = np.concatenate(([0.5], 0.5 - dst(coefficients, type=2) / 2))
    stride = round(unit_step / spacing)
    edges = tails[stride // 2 :: stride]
    right = np.maximum(edges[:-1] - edges[1:], 0.0)
    masses = np.concatenate((right[::-1], [1 - 2 * edges[0]], right))
    error = tolerance + 2 * (_truncation(unit, reach, n_points) + _rounding(unit, coefficients))
    return np.arange(-right.size, right.size + 1), masses, error


@dataclass(frozen=True, slots=True, eq=False)
class _Unit:
    """Scales and the deviation of a Gaussian part, in units of the largest scale."""

    scales: NDArray[np.float64]
    gaussian: float

    def chernoff(self, log_probability: float) -> float:
        """A half-width that is proved large enough."""
        return chernoff_half_width(self.scales, log_probability, self.gaussian)


def _largest(scales: NDArray[np.float64], gaussian: float) -> float:
    """The largest scale; a Gaussian part counts with that of Laplace noise as wide."""
    return max(float(scales.max(initial=0.0)), gaussian / math.sqrt(2))


def _series(
    unit: _Unit, reach: float, n_terms: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Frequencies ``t_k`` and ``2 phi(t_k) / pi (2 k + 1)``, for ``H = 2 reach``."""
    odd = np.arange(1, 2 * n_terms, 2, dtype=np.float64)
    frequencies = odd * (math.pi / (2 * reach))
    squares = np.square(frequencies)
    logs = -(unit.gaussian**2) / 2 * squares
    block = max(1, BLOCK // n_terms)
    for first in range(0, unit.scales.size, block):
        factors = np.square(unit.scales[first : first + block])[:, np.newaxis]
        logs -= np.log1p(factors * squares).sum(axis=0)
    return frequencies, np.exp(logs) * (2 / math.pi) / odd


def _truncation(unit: _Unit, reach: float, n_terms: int) -> float:
    """Bound on the terms beyond the first `n_terms`; see the notes of `ConvolutionLaw`."""
    square = ((2 * n_terms - 1) * math.pi / (2 * reach)) ** 2
    log_last = -float(np.log1p(np.square(unit.scales) * square).sum())
    log_last -= unit.gaussian**2 / 2 * square
    return math.exp(log_last) * (1 + 1 / square) / (2 * math.pi)


def _rounding(unit: _Unit, coefficients: NDArray[np.float64]) -> float:
    """First-order bound on rounding: of each coefficient, of the sines' arguments, of the sum."""
    odd = np.arange(1, 2 * coefficients.size, 2, dtype=np.float64)
    relative = unit.scales.size + 64 + 16 * math.log2(coefficients.size)
    sizes = coefficients * (relative + 4 * math.pi * odd)
    return UNIT_ROUNDOFF * float(sizes.sum())
