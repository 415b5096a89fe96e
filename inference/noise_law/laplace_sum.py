"""The common base of all laws of ``X = sum_k b_k L_k + sigma Z``: cumulants, Chernoff's bound.

The ``L_k`` are independent standard Laplace variables (density ``exp(-|t|) / 2``), the ``b_k`` the
scales; ``Z`` is standard normal, ``sigma`` the deviation of the Gaussian part, 0 where there is
none. `X` is symmetric about 0 and, as a convolution of log-concave laws, log-concave.

Nothing here approximates a law: `chernoff_half_width` is a proved bound, the rest are definitions.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

N_TILTS = 48  # any tilt gives a valid bound; the best of these is within a percent of the optimum
HIGHEST_ODDS = 1e3  # of the tilts in (0, 1): only tails below exp(-1000) need a tilt nearer to 1
TOLERANCE_MIN = 1e-14  # below this, the error of a tail is its rounding
TOLERANCE_MAX = 1e-3
SOLVE_STEPS_MAX = 200
SOLVE_PRECISION = 1e-14
LEAST_SCALE = 1e-100  # relative to a Gaussian part; what is smaller limits no tilt


def positive_scales(scales: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scales that are not zero, as a locked float64 copy.

    Raises
    ------
    ValueError
        If a scale is negative or not a finite number, or the array is not one-dimensional.
    """
    array = np.array(scales, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"scales must be one-dimensional, not {array.ndim}-dimensional")
    # One pass that fails on NaN, infinity and negative numbers alike.
    if not bool(((array >= 0) & (array < math.inf)).all()):
        raise ValueError("scales must be finite and not negative")
    array = array[array > 0]
    array.flags.writeable = False
    return array


def check_deviation(gaussian: float) -> None:
    """Raise ValueError unless `gaussian` is the deviation of a Gaussian part, or 0 for none."""
    if not 0 <= gaussian < math.inf:
        raise ValueError(f"a deviation must be finite and not negative, not {gaussian}")


def check_confidence(confidence: float) -> None:
    """Raise ValueError unless `confidence` lies strictly between 0 and 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1, not {confidence}")


def check_tolerance(tolerance: float) -> None:
    """Raise ValueError unless `tolerance` is one that double precision can honour."""
    if not TOLERANCE_MIN <= tolerance <= TOLERANCE_MAX:
        raise ValueError(
            f"tolerance must lie between {TOLERANCE_MIN} and {TOLERANCE_MAX}, not {tolerance}"
        )


def check_bound(bound: float) -> None:
    """Raise ValueError if the argument of a tail is not a number."""
    if math.isnan(bound):
        raise ValueError("the argument of a tail must be a number, not NaN")


def standard_deviation(scales: NDArray[np.float64], gaussian: float = 0.0) -> float:
    """Standard deviation of `X`: each term has variance ``2 b_k**2``."""
    # Taken out so that no square over- or underflows.
    largest = max(float(scales.max(initial=0.0)), gaussian)
    if largest == 0.0:
        return 0.0
    of_terms = 2 * float(np.square(scales / largest).sum())
    return largest * math.sqrt(of_terms + (gaussian / largest) ** 2)


def log_moment(scales: NDArray[np.float64], tilt: float, gaussian: float = 0.0) -> float:
    """``log E exp(tilt * X)``, for ``|tilt| < 1 / max(b)``.

    It is ``(sigma tilt)**2 / 2 - sum_k log(1 - (tilt b_k)**2)``.
    """
    of_terms = -float(np.log1p(-np.square(scales * tilt)).sum())
    return of_terms + (gaussian * tilt) ** 2 / 2


def chernoff_half_width(
    scales: NDArray[np.float64], log_probability: float, gaussian: float = 0.0
) -> float:
    """A half-width that is proved large enough: ``Pr(X > h) <= exp(log_probability)``.

    Parameters
    ----------
    scales : (n,) ndarray of float64
        The ``b_k``, all positive.
    log_probability : float
        Negative: the logarithm of the allowed one-sided tail.
    gaussian : float
        The deviation of the Gaussian part.

    Notes
    -----
    ``Pr(X > h) <= E exp(t (X - h))`` for each tilt ``0 < t < 1 / max(b)``; solved for ``h``, and
    the smallest over a grid of tilts. It overshoots the exact half-width by a factor that tends
    to 1 as the tail gets thinner. With ``L`` the negative of `log_probability`, the best tilt is
    at most ``sqrt(2 L) / sigma``, the best one for the Gaussian part alone.

    Examples
    --------
    For one standard Laplace variable the exact answer at a tail of 1e-9 is 20.03.

    >>> 20.03 < chernoff_half_width(np.array([1.0]), math.log(1e-9)) < 25
    True
    """
    if scales.size == 0:
        return gaussian * math.sqrt(-2 * log_probability) * (1 + 1e-12)
    largest = max(float(scales.max()), LEAST_SCALE * gaussian)
    spread = standard_deviation(scales, gaussian) / largest
    # The best tilt is near sqrt(2 log(1/p)) / sd for a nearly normal X, and near 1 for one term.
    lowest = min(0.5, 0.5 * math.sqrt(-log_probability) / spread)
    unit, deviation, highest = scales / largest, gaussian / largest, HIGHEST_ODDS
    best_alone = math.sqrt(-2 * log_probability) / deviation if deviation else 1.0
    if best_alone < 1:
        highest = min(highest, best_alone / (1 - best_alone))
    odds = np.geomspace(lowest / (1 - lowest), highest, N_TILTS)
    tilts = odds / (1 + odds)
    heights = [(log_moment(unit, float(t), deviation) - log_probability) / float(t) for t in tilts]
    return largest * min(heights) * (1 + 1e-12)  # the margin covers the rounding of the sums


def tail_root(
    tail_and_density: Callable[[float], tuple[float, float]],
    probability: float,
    *,
    low: float,
    start: float,
) -> float:
    """The root of ``tail(z) = probability``, approached from the right, where it is safe to stop.

    The logarithm of the tail of a log-concave law is concave, so Newton's iterates lie to the
    right of the root from the first step on; bisection takes over where the tail is down to
    rounding error.

    Parameters
    ----------
    tail_and_density : callable
        The tail and the density at a point.
    probability : float
        The tail probability, between 0 and 1/2.
    low, start : float
        A point where the tail exceeds `probability`, and where to begin, not left of it.

    Returns
    -------
    float
        A point whose computed tail does not exceed `probability`.
    """
    high = math.inf
    z = start
    for _ in range(SOLVE_STEPS_MAX):
        tail, density = tail_and_density(z)
        if tail > probability:
            low = z
        else:
            high = z
        if tail > 0 and density > 0:
            newton = z + tail * math.log(tail / probability) / density
        else:
            newton = low
        if high - max(newton, low) <= 4 * SOLVE_PRECISION * z:
            return high
        z = newton + SOLVE_PRECISION * z  # slightly to the right, so that rounding cannot stall it
        if not low < z < high:
            z = 2 * low if math.isinf(high) else (low + high) / 2
    raise ArithmeticError("the search for the half-width did not converge")
