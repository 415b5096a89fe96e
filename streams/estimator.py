"""The estimate from a noisy number of ones, and its mean squared error.

``(ones / n - p0) / (p1 - p0)`` is an unbiased estimate of the share of occupied places, whatever
the share; it is not cut off at 0 or 1, as that would bias it.
"""

from streams.mechanism import Mechanism


def estimated_density(noisy_ones: int, n_bits: int, mechanism: Mechanism) -> float:
    """The unbiased estimate of the share of occupied places."""
    state = mechanism.state
    return float((noisy_ones - n_bits * state.p0) / (n_bits * state.separation))


def mean_squared_error(
    mechanism: Mechanism, n_bits: int, *, universe: int | None = None, density: float = 0.5
) -> float:
    """The mean squared error of an estimated density, exact.

    Parameters
    ----------
    mechanism : Mechanism
    n_bits : int
    universe : int, optional
        Of a sample without replacement: the number of users it is from. Without it, or if all of
        them have a bit, the error is that of the noise alone, whatever the density.
    density : float
        The share of the universe that is present; half of it is the worst for a sample.
    """
    scale = n_bits * mechanism.state.separation
    noise = float(mechanism.variance_of_ones(n_bits) / scale**2)
    if universe is None or universe <= n_bits:
        return noise
    of_sample = density * (1 - density) / n_bits * (universe - n_bits) / (universe - 1)
    return noise + of_sample
