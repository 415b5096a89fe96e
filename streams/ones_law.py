"""The law of a noisy number of ones, if so many users are present: binomials, sample and noise.

Their characteristic functions are multiplied and inverted on the whole numbers: that is the
convolution of the laws, and nothing is approximated by a normal law. What it misses in any
probability is at most `LAW_ERROR`: some 1e-15 for what lies outside the windows, and the rounding
of the transform.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cube.pace import checkpoint
from streams.mechanism import Mechanism
from streams.windows import EXPONENT_CUT, Window, reach

LAW_ERROR: Final = 1e-9  # far above what is seen
NEGLIGIBLE: Final = -46.0  # a logarithm: such factors of a transform change nothing by 1e-15
N_TERMS_AT_ONCE: Final = 2**21


@dataclass(frozen=True, slots=True, eq=False)
class OnesLaw:
    """The law of the noisy number of ones.

    Parameters
    ----------
    start : int
        The first number of the window.
    at_most : (n,) ndarray of float64
        The probability of at most each number of the window.
    """

    start: int
    at_most: NDArray[np.float64]

    @property
    def values(self) -> NDArray[np.int64]:
        """The numbers of the window."""
        return np.arange(self.start, self.start + self.at_most.size)

    def probability_at_most(self, ones: int) -> float:
        """The probability of so many ones or fewer, to `LAW_ERROR`."""
        place = ones - self.start
        if place < 0:
            return 0.0
        return float(self.at_most[min(place, self.at_most.size - 1)])

    def probability_at_least(self, ones: int) -> float:
        """The probability of so many ones or more, to `LAW_ERROR`."""
        return 1.0 - self.probability_at_most(ones - 1)


def ones_law(mechanism: Mechanism, n_bits: int, occupied: Window) -> OnesLaw:
    """The law of the noisy number of ones, for a law of the number of occupied places.

    Notes
    -----
    A bit of an occupied place and one of an empty place have characteristic functions of the same
    modulus, as ``p0 = 1 - p1``; so the number of occupied places only turns the phase, by the
    angle between the two, and its own characteristic function at that angle is what is averaged.

    That one is computed only where it matters. The number of occupied places is a sum of
    independent indicators (windows.py), so at an angle `t` the modulus of its characteristic
    function is at most ``exp(-2 variance sin(t / 2)**2)``: of an indicator of probability `q`, its
    square is ``1 - 4 q (1 - q) sin(t / 2)**2``.
    """
    p0, p1 = float(mechanism.state.p0), float(mechanism.state.p1)
    alpha, left = float(mechanism.output.alpha), float(1 - mechanism.output.alpha)
    separation = float(mechanism.state.separation)
    far = (
        reach(n_bits * p0 * p1)
        + math.ceil(separation * reach(occupied.variance))
        + math.ceil(EXPONENT_CUT / mechanism.output.rate)
    )
    length = 1 << (2 * far + 2).bit_length()
    kept_at = round(occupied.mean)
    centre = round(n_bits * p0 + kept_at * separation)
    angles = 2 * math.pi / length * np.arange(length // 2 + 1)
    chord = 4 * np.sin(angles / 2) ** 2
    log_modulus = n_bits / 2 * np.log1p(-p0 * p1 * chord)
    log_modulus += 2 * math.log(left) - np.log(left**2 + alpha * chord)
    empty_phase = np.arctan2(p0 * np.sin(angles), p1 + p0 * np.cos(angles))
    turn = np.arctan2(p1 * np.sin(angles), p0 + p1 * np.cos(angles)) - empty_phase
    of_occupied = -2 * occupied.variance * np.sin(turn / 2) ** 2
    kept = np.flatnonzero(log_modulus + of_occupied > NEGLIGIBLE)
    phase = n_bits * empty_phase[kept] + kept_at * turn[kept] - centre * angles[kept]
    transform = np.zeros(angles.size, np.complex128)
    transform[kept] = np.exp(log_modulus[kept] - 1j * phase) * np.conj(
        _characteristic(occupied, kept_at, turn[kept])
    )
    law = np.fft.fftshift(np.fft.irfft(transform, length))
    return OnesLaw(centre - length // 2, np.clip(np.cumsum(law), 0.0, 1.0))


def _characteristic(law: Window, about: int, angles: NDArray[np.float64]) -> NDArray[np.complex128]:
    """The characteristic function of a number less `about`.

    Notes
    -----
    The numbers are laid out in rows of about as many as there are rows: then only those of a first
    row and a first column have to be turned by each angle, and the rest is one product of matrices.
    """
    width = max(1, math.isqrt(law.weights.size))
    n_rows = -(-law.weights.size // width)
    weights = np.zeros(n_rows * width)
    weights[: law.weights.size] = law.weights
    across = np.arange(width, dtype=np.float64)
    down = law.start - about + width * np.arange(n_rows, dtype=np.float64)
    found = np.empty(angles.size, np.complex128)
    step = max(1, N_TERMS_AT_ONCE // n_rows)
    for begin in range(0, angles.size, step):
        checkpoint()
        piece = angles[begin : begin + step]
        rows = np.exp(1j * np.outer(piece, across)) @ weights.reshape(n_rows, width).T
        found[begin : begin + step] = (rows * np.exp(1j * np.outer(piece, down))).sum(axis=1)
    return found
