"""How an epsilon is divided between the state and the release: for the least variance.

The noise of the release matters less the more bits there are, as its part of the variance falls by
the square of their number; so most of an epsilon belongs to the state. Half and half, as published,
costs up to three times the variance. The choice depends on public numbers alone, and whatever it
is, `Mechanism` makes the loss exact.
"""

import math
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cube.measurement import UNITS_PER_EPSILON
from streams.mechanism import Mechanism

N_SHARES: Final = 65
N_ZOOMS: Final = 8  # each makes the step 16 times smaller: to 2**-33 of the first range in all


def best_mechanism(epsilon: Fraction, n_bits: int) -> Mechanism:
    """The mechanism with the least variance of an estimated density, for an epsilon.

    Parameters
    ----------
    epsilon : Fraction
        What a state and its release may lose together.
    n_bits : int
        How many users, or buckets, have a bit.

    Examples
    --------
    >>> mechanism = best_mechanism(Fraction(1), 1000)
    >>> round(mechanism.state.epsilon_units / mechanism.epsilon_units, 2)
    0.85
    """
    if n_bits < 1:
        raise ValueError("a state has at least one bit")
    lowest, highest = -12.0, 12.0  # of the share's logit
    share = 0.5
    for _ in range(N_ZOOMS):
        logits = np.linspace(lowest, highest, N_SHARES)
        shares = 1 / (1 + np.exp(-logits))
        best = int(np.argmin(_log_variances(float(epsilon), shares, n_bits)))
        share = float(shares[best])
        step = float(logits[1] - logits[0])
        lowest, highest = logits[best] - 2 * step, logits[best] + 2 * step
    units = max(1, math.floor(epsilon * UNITS_PER_EPSILON * Fraction(share)))
    return Mechanism.for_epsilon(epsilon, state=Fraction(units, UNITS_PER_EPSILON))


def _log_variances(epsilon: float, shares: NDArray[np.float64], n_bits: int) -> NDArray[np.float64]:
    """The logarithm of the variance of an estimated density for each share of the state."""
    state = epsilon * shares
    separation = np.tanh(state / 2)
    p0 = 1 / (1 + np.exp(state))
    p1 = 1 - p0
    # 1 / alpha = 1 + (e**(eps_o) - 1) / p1, as p0 + p1 = 1.
    excess = np.expm1(epsilon - state) / p1
    variance_of_noise = 2 * (1 + excess) / excess**2
    of_ones = n_bits * p0 * p1 + variance_of_noise
    found: NDArray[np.float64] = np.log(of_ones) - 2 * np.log(n_bits * separation)
    return found
