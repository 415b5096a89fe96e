"""Plans how many users need a bit, before a stream begins: by a theorem, and by the exact law.

The theorem bounds the chance that a density is missed by a share or more, by Hoeffding's inequality
for the sample and for the bits, and by the tail of the release's noise; how the error is divided
among the three is chosen best. The exact law needs a fifth to an eighth of its users. All of a
universe may be too few for what is asked: then the plan says what they reach.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streams.estimates import ErrorLaw
from streams.mechanism import Mechanism, best_mechanism
from streams.population import KEY_BYTES_MIN, Everyone, Population, Sample

N_POINTS: Final = 33
N_ZOOMS: Final = 7


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """What the theorem needs to know of a mechanism.

    Parameters
    ----------
    separation : float
        By how much presence raises the probability of a 1.
    rate, factor : float
        The noise of a release is beyond `x` ones with probability at most
        ``factor * exp(-rate * x)``.
    """

    separation: float
    rate: float
    factor: float = 1.0

    @classmethod
    def of(cls, mechanism: Mechanism) -> "ErrorRates":
        """Those of a mechanism: of its noise, ``2 / (1 + alpha) * alpha**x``."""
        factor = 2 / (1 + float(mechanism.output.alpha))
        return cls(float(mechanism.state.separation), mechanism.output.rate, factor)


@dataclass(frozen=True, slots=True)
class SamplePlan:
    """How many users have a bit, and what that reaches.

    Parameters
    ----------
    n_bits : int
    reached : float
        By the theorem, the chance of an error; by the exact law, the half-width in users.
    is_enough : bool
        Whether it is what was asked for; if not, `n_bits` is the whole universe.
    """

    n_bits: int
    reached: float
    is_enough: bool


def error_bound(rates: ErrorRates, n_bits: int, error: float, *, is_everyone: bool) -> float:
    """The theorem's bound on the chance that a density is missed by `error` or more.

    Parameters
    ----------
    rates : ErrorRates
    n_bits : int
    error : float
        A share of the universe.
    is_everyone : bool
        Whether all users have a bit: then there is no error of the sample.

    Notes
    -----
    The sample may take ``(1 - a) error``, the bits ``a (1 - b) error`` and the noise the rest; the
    best `a` and `b` are found on finer and finer grids of their logits.
    """
    if not 0 < error < 1:
        raise ValueError(
            "an error is a share of the universe: it must lie strictly between 0 and 1"
        )
    if is_everyone:
        # Nearly all for the bits and the noise: a one-dimensional search.
        return min(1.0, math.exp(_least(lambda _, b: _log_bound(rates, n_bits, error, None, b))))
    return min(1.0, math.exp(_least(lambda a, b: _log_bound(rates, n_bits, error, a, b))))


def sample_size(
    rates_of: Callable[[int], ErrorRates], error: float, chance: float, universe: int
) -> SamplePlan:
    """The fewest users with which the theorem's bound is at most `chance`.

    Parameters
    ----------
    rates_of : callable
        The rates of the mechanism for a number of bits.
    error : float
        A share of the universe.
    chance : float
        How often a density may be missed by as much.
    universe : int
    """

    def bound(n_bits: int) -> float:
        return error_bound(rates_of(n_bits), n_bits, error, is_everyone=n_bits == universe)

    return _fewest(bound, chance, universe)


def sample_for_error(epsilon: Fraction, error: float, chance: float, universe: int) -> SamplePlan:
    """The same for what is built: an epsilon that is divided for each number of bits.

    >>> plan = sample_for_error(Fraction(1), error=0.1, chance=0.1, universe=100_000)
    >>> plan.n_bits, plan.is_enough
    (3328, True)
    """
    return sample_size(
        lambda n_bits: ErrorRates.of(best_mechanism(epsilon, n_bits)), error, chance, universe
    )


def sample_for_half_width(
    epsilon: Fraction, half_width: float, confidence: float, universe: int
) -> SamplePlan:
    """The fewest users with which an estimate has a half-width, by the exact law.

    Parameters
    ----------
    epsilon : Fraction
    half_width : float
        The half-width, in users.
    confidence : float
    universe : int
        Half of it is taken to be present, which is the worst for a sample.
    """
    if not half_width > 0:
        raise ValueError("a half-width must be positive")
    return _fewest(
        lambda n_bits: half_width_of(epsilon, n_bits, confidence, universe), half_width, universe
    )


def half_width_of(epsilon: Fraction, n_bits: int, confidence: float, universe: int) -> float:
    """The half-width of an estimate, in users, by the exact law; half of a universe is present."""
    population: Population = (
        Everyone(universe)
        if n_bits == universe
        else Sample(universe, n_bits, bytes(KEY_BYTES_MIN))  # any sample has the same law
    )
    law = ErrorLaw(population, best_mechanism(epsilon, n_bits), universe // 2)
    return law.half_width(confidence)


def _fewest(reached: Callable[[int], float], asked: float, universe: int) -> SamplePlan:
    """The smallest number that reaches what is asked, or all there are."""
    low, high = 1, universe
    of_all = reached(universe)
    if of_all > asked:
        return SamplePlan(universe, of_all, is_enough=False)
    while low < high:
        middle = (low + high) // 2
        if reached(middle) <= asked:
            high = middle
        else:
            low = middle + 1
    return SamplePlan(low, reached(low), is_enough=True)


Shares = NDArray[np.float64]


def _log_bound(rates: ErrorRates, n_bits: int, error: float, a: Shares | None, b: Shares) -> Shares:
    """The logarithm of the bound, for shares of the error; without `a`, nothing is the sample's."""
    part = np.ones_like(b) if a is None else a
    of_bits = math.log(2) - 2 * n_bits * (rates.separation * error * part * (1 - b)) ** 2
    reach = error * part * b * n_bits * rates.separation
    found = np.logaddexp(of_bits, math.log(rates.factor) - rates.rate * reach)
    if a is None:
        return found
    return np.logaddexp(found, math.log(2) - 2 * n_bits * (error * (1 - a)) ** 2)


def _least(function: Callable[[Shares, Shares], Shares]) -> float:
    """The least value over two shares, on grids of their logits that grow finer."""
    centre, reach = np.zeros(2), 12.0
    least = math.inf
    for _ in range(N_ZOOMS):
        first = np.linspace(centre[0] - reach, centre[0] + reach, N_POINTS)
        second = np.linspace(centre[1] - reach, centre[1] + reach, N_POINTS)
        grid = function(*np.meshgrid(_logistic(first), _logistic(second), indexing="ij"))
        place = np.unravel_index(int(np.argmin(grid)), grid.shape)
        least = min(least, float(grid[place]))
        centre = np.array([first[place[0]], second[place[1]]])
        reach /= N_POINTS / 6
    return least


def _logistic(logits: Shares) -> Shares:
    return 1 / (1 + np.exp(-logits))
