"""The law of Laplace variables and one Gaussian, added, by the methods of the founding paper.

They are those of Xiao & Xiong 2012, with a Gaussian part beside the Laplace variables, and checks
of the contour integral and of each other.

*By Fourier series, with stated error.* The characteristic function
``exp(-(sigma t)**2 / 2) prod_k 1 / (1 + (b_k t)**2)`` is sampled at odd multiples of a frequency;
the sine series of these samples is the tail of `X`, except for the mass beyond the period and the
omitted terms, both bounded below. One discrete sine transform gives the tail, or the masses of
bins, on a whole grid; posteriors are plotted by these masses. This is the paper's convolution
(section 4.3) with the rounding to a grid removed.

*By convolution of masses on a common grid*: Algorithm 2, corrected. Kept so that the paper's
results can be reproduced and compared. Each term is rounded to the grid before it is added, so the
result is a law on the grid, with an error that vanishes only with the grid's step. The paper's
bound covers the cut tails and omits this part, which dominates: with a thousand scales of 0.05 on
the unit grid nearly every term rounds to 0. For tails to many digits use the other methods.

*By simulation*: Algorithm 1. It is for laws without a closed transform, and a test of the other
methods. Its error bound holds with high probability only, and falls with the square root of the
number of draws. The draws are double-precision variates, suitable for studying a law and never for
releasing an answer: noise that protects data comes from the accountant alone.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dst, irfft, next_fast_len, rfft

from cube.runtime import cached_property
from inference.noise_law.laplace_sum import (
    check_bound,
    check_confidence,
    check_deviation,
    check_tolerance,
    chernoff_half_width,
    positive_scales,
    standard_deviation,
    tail_root,
)

N_TERMS_MIN = 64
N_TERMS_MAX = 2**20  # of the series: reached only when one scale is far above the others
N_FACTORS_MAX = 2**27  # scales times terms: about a second
N_POINTS_MAX = 2**22  # of a grid of masses
FACTORS_IN_BLOCK = 2**22  # factors in memory at once
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
            f"step {step} is too fine; {2 * shortest * largest / N_POINTS_MAX} is fine enough"
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
    block = max(1, FACTORS_IN_BLOCK // n_terms)
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


N_PAPER_POINTS_MAX = 2**22
MOVED_FARTHER = 1e-9  # probability left to Hoeffding's inequality
ROUNDING_PER_TERM = 2.0**-44  # a generous bound for one fast convolution of sub-probabilities


class PaperConvolutionLaw:
    """The law of ``X = sum_k b_k L_k`` on a grid, by convolving the terms' bin masses.

    Parameters
    ----------
    scales : (n,) ndarray of float64
        The ``b_k``; zeros are dropped, at least one must be positive.
    grid_step : float
        Width of a bin, in units of the scales; the paper's is 1.
    lost_mass : float
        The probability that may be cut off, for all terms together; the paper's gamma.

    Notes
    -----
    The printed algorithm is followed with four corrections: the loop runs to the last row; a
    vector has ``2 ceil(b_k log(n / gamma) / step) + 1`` entries (the factor 2 is missing, and
    without it a fifth of the mass can be lost); a bin's mass uses both branches of the Laplace
    distribution function and the size of ``A_k``; and the error of the rounding is included.
    Rounding moves each term by at most half a step, independently and symmetrically: `X` always
    moves by at most ``n step / 2``, and by Hoeffding's inequality by at most
    ``step sqrt(n log(2 / p) / 2)`` except with probability ``p``.
    """

    def __init__(
        self, scales: NDArray[np.float64], *, grid_step: float = 1.0, lost_mass: float = 1e-12
    ) -> None:
        self.scales = positive_scales(scales)
        self.gaussian = 0.0
        if self.scales.size == 0:
            raise ValueError("a convolution needs at least one positive scale")
        if not (math.isfinite(grid_step) and grid_step > 0):
            raise ValueError(f"grid_step must be a positive number, not {grid_step}")
        if not 0 < lost_mass < 1:
            raise ValueError(f"lost_mass must lie strictly between 0 and 1, not {lost_mass}")
        steps = self.scales / grid_step
        lengths = np.ceil(steps * math.log(self.scales.size / lost_mass))
        if 2 * float(lengths.sum()) > N_PAPER_POINTS_MAX:
            raise ValueError(f"grid_step {grid_step} is too fine for these scales")
        self._step = grid_step
        self._lost_mass = lost_mass
        vectors = [
            _bin_masses(*pair) for pair in zip(steps.tolist(), lengths.tolist(), strict=True)
        ]
        self.masses = np.maximum(_convolve_all(vectors), 0.0)
        centre = self.masses.size // 2
        beyond = np.cumsum(self.masses[: centre - 1 : -1])[::-1]
        # Tails at the bin edges 1/2, 3/2, ..., in steps; the middle bin is split by symmetry.
        self._edge_tails = np.concatenate(
            ([beyond[0] - self.masses[centre] / 2], beyond[1:], [0.0])
        )

    @property
    def tail_error(self) -> float:
        """Bound on the error of a tail: cut mass, rounding to the grid, and arithmetic.

        A shift of `X` by at most ``d`` moves a tail by at most ``2 d`` times the density's
        maximum. That is at most ``1 / 2 |b|``: the characteristic function is at most
        ``1 / (1 + |b|**2 t**2)``, and its integral over ``2 pi`` bounds the density. Spreading the
        law over its bins counts as one more rounded term.
        """
        distance, failure = self._moved(self.scales.size + 1)
        density = 1 / (math.sqrt(2) * standard_deviation(self.scales))
        return min(0.5, 2 * distance * density + failure + self._lost())

    def tail(self, z: float) -> float:
        """``Pr(X > z)``, to within `tail_error`: the grid's law spread evenly over each bin."""
        check_bound(z)
        if z < 0:
            return 1.0 - self.tail(-z)
        edges = np.concatenate(([0.0], np.arange(self._edge_tails.size - 1) + 0.5))
        return min(float(np.interp(z / self._step, edges, self._edge_tails)), 0.5)

    def half_width(self, confidence: float) -> float:
        """A half-width that reaches the confidence in spite of the rounding to the grid.

        The grid's own half-width (Algorithm 3, to the bin's edge and not to its centre), widened
        by the most that rounding can have moved `X`; never more than Chernoff's bound.
        """
        check_confidence(confidence)
        distance, failure = self._moved(self.scales.size)
        proved = chernoff_half_width(self.scales, math.log((1 - confidence) / 2))
        enough = self._edge_tails[1:] <= (1 - confidence - self._lost() - failure) / 2
        if not enough.any():
            return proved
        edge = self._step * (float(enough.argmax()) + 0.5)
        return min(proved, edge + distance)

    def _moved(self, n_terms: int) -> tuple[float, float]:
        """How far rounding this many terms moves their sum, and the probability that it is more."""
        surely = self._step * n_terms / 2
        likely = self._step * math.sqrt(n_terms * math.log(2 / MOVED_FARTHER) / 2)
        return (likely, MOVED_FARTHER) if likely < surely else (surely, 0.0)

    def _lost(self) -> float:
        return self._lost_mass + ROUNDING_PER_TERM * self.scales.size


def _bin_masses(scale: float, length: float) -> NDArray[np.float64]:
    """Laplace masses of the bins centred on ``-length ... length``, both in steps."""
    edges = np.arange(int(length) + 1) + 0.5
    tails = np.exp(-edges / scale) / 2
    right = tails[:-1] - tails[1:]
    middle = [-math.expm1(-0.5 / scale)]
    return np.concatenate((right[::-1], middle, right))


def _convolve_all(vectors: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """All vectors convolved, in pairs: a left fold would convolve the longest one each time."""
    while len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2], strict=False)
        unpaired = vectors[len(vectors) // 2 * 2 :]
        vectors = [_convolved(first, second) for first, second in pairs] + unpaired
    return vectors[0]


def _convolved(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """As scipy.signal has it, which takes half a second to load."""
    size = first.size + second.size - 1
    fast = next_fast_len(size, real=True)
    found: NDArray[np.float64] = irfft(rfft(first, fast) * rfft(second, fast), fast)
    return found[:size]


FAILURE_PROBABILITY = 1e-9  # that some tail of one set of draws is off by more than stated
SCALES_IN_BLOCK = 64  # scales whose draws are in memory at once


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
        for first in range(0, self.scales.size, SCALES_IN_BLOCK):
            block = self.scales[first : first + SCALES_IN_BLOCK]
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
