"""Algorithm 2 of Xiao & Xiong 2012, corrected: convolve the terms' masses on a common grid.

Kept so that the paper's results can be reproduced and compared. Each term is rounded to the grid
before it is added, so the result is a law on the grid, with an error that vanishes only with the
grid's step. The paper's bound covers the cut tails and omits this part, which dominates: with a
thousand scales of 0.05 on the unit grid nearly every term rounds to 0.

For tails to many digits use ``contour.py`` or ``convolution.py``.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from inference.noise_law.laplace_sum import (
    check_bound,
    check_confidence,
    chernoff_half_width,
    positive_scales,
    standard_deviation,
)

N_POINTS_MAX = 2**22
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
        if 2 * float(lengths.sum()) > N_POINTS_MAX:
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
