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
    kept = np.flatnonzero(log_modulus > NEGLIGIBLE)
    angle = angles[kept]
    empty_phase = np.arctan2(p0 * np.sin(angle), p1 + p0 * np.cos(angle))
    full_phase = np.arctan2(p1 * np.sin(angle), p0 + p1 * np.cos(angle))
    phase = (n_bits - kept_at) * empty_phase + kept_at * full_phase - centre * angle
    transform = np.zeros(angles.size, np.complex128)
    transform[kept] = np.exp(log_modulus[kept] - 1j * phase) * np.conj(
        _characteristic(occupied, kept_at, full_phase - empty_phase)
    )
    law = np.fft.fftshift(np.fft.irfft(transform, length))
    return OnesLaw(centre - length // 2, np.clip(np.cumsum(law), 0.0, 1.0))


def _characteristic(law: Window, about: int, angles: NDArray[np.float64]) -> NDArray[np.complex128]:
    """The characteristic function of a number less `about`."""
    values = (law.values - about).astype(np.float64)
    found = np.empty(angles.size, np.complex128)
    step = max(1, N_TERMS_AT_ONCE // values.size)
    for begin in range(0, angles.size, step):
        piece = slice(begin, begin + step)
        found[piece] = np.exp(1j * np.outer(angles[piece], values)) @ law.weights
    return found
