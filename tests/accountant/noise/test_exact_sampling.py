"""Exact geometric samples: the law by walking every path, and by drawing, with teeth."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from accountant.noise import sampling as exact_sampling
from accountant.noise.sampling import bernoulli_exp, geometric
from tests.support.branches import LeftOut, Path, law_of

N_TRIALS_WALKED = 9
N_COINS_WALKED = 60
N_SAMPLES = 10_000
P_VALUE_MIN = 1e-9  # a sound sampler fails one run in a billion


@pytest.mark.parametrize(
    ("numerator", "denominator"), [(0, 5), (1, 7), (1, 2), (2, 3), (1, 1), (2, 2)]
)
def test_a_coin_has_its_bias_exactly(
    monkeypatch: pytest.MonkeyPatch, numerator: int, denominator: int
) -> None:
    """Left out are paths on which the first nine trials succeed, `rate**9 / 9!` in all."""

    def program(path: Path) -> bool:
        def walk(below: int) -> int:
            if below > N_TRIALS_WALKED * denominator:
                raise LeftOut
            return path.choose([mpmath.mpf(1) / below] * below)

        monkeypatch.setattr(exact_sampling, "randbelow", walk)
        return bernoulli_exp(numerator, denominator)

    with mpmath.workdps(40):
        rate = mpmath.mpf(numerator) / denominator
        law = law_of(program)
        left_out = rate**N_TRIALS_WALKED / mpmath.factorial(N_TRIALS_WALKED)
        assert mpmath.almosteq(law[True] + law[False], 1 - left_out, 1e-30)
        assert law[True] <= mpmath.exp(-rate) * (1 + mpmath.mpf(10) ** -30)
        assert law[True] >= mpmath.exp(-rate) - left_out - mpmath.mpf(10) ** -30


@pytest.mark.parametrize(
    "rate", [Fraction(1, 3), Fraction(2, 3), Fraction(3, 10), Fraction(5, 2), Fraction(7)]
)
def test_a_geometric_variable_has_its_law_exactly(
    monkeypatch: pytest.MonkeyPatch, rate: Fraction
) -> None:
    """Given exact coins. A rejected digit begins again from nothing, so its path is left out."""

    def program(path: Path) -> int:
        n_digits = n_coins = 0

        def digit(below: int) -> int:
            nonlocal n_digits
            n_digits += 1
            if n_digits > 1:
                raise LeftOut
            return path.choose([mpmath.mpf(1) / below] * below)

        def coin(numerator: int, denominator: int) -> bool:
            nonlocal n_coins
            n_coins += 1
            if n_coins > N_COINS_WALKED:
                raise LeftOut
            bias = mpmath.exp(-mpmath.mpf(numerator) / denominator)
            return path.choose([1 - bias, bias]) == 1

        monkeypatch.setattr(exact_sampling, "randbelow", digit)
        monkeypatch.setattr(exact_sampling, "bernoulli_exp", coin)
        return geometric(rate)

    with mpmath.workdps(40):
        law = law_of(program)
        kept = mpmath.fsum(law.values())
        ratio = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)
        for value in range(10):
            expected = (1 - ratio) * ratio**value
            assert mpmath.almosteq(law[value] / kept, expected, 1e-20, 1e-24)


def exponential_p_value(drawn: NDArray[np.float64], claimed: float) -> float:
    """A chi-square test over 40 equal bins."""
    counts, _ = np.histogram(np.exp(-drawn * claimed), bins=40, range=(0, 1))
    return float(stats.chisquare(counts).pvalue)


@pytest.mark.parametrize(
    "rate", [Fraction(1, 2**45), 1 / Fraction(1310719.9999952319), Fraction(3**60, 2**140)]
)
def test_tiny_rates_are_drawn_right_and_a_wrong_one_would_show(rate: Fraction) -> None:
    """At tiny rates a geometric variable is exponential but for less than the rate."""
    drawn = np.array([float(geometric(rate) * rate) for _ in range(N_SAMPLES)])
    assert exponential_p_value(drawn, 1.0) > P_VALUE_MIN
    assert exponential_p_value(drawn, 1.2) < P_VALUE_MIN
    assert exponential_p_value(drawn, 0.8) < P_VALUE_MIN


def test_no_float_is_used_as_the_last_bit_is_fair() -> None:
    """A float of this size is even."""
    n_odd = sum(geometric(Fraction(1, 2**100)) % 2 for _ in range(2000))
    assert stats.binomtest(n_odd, 2000).pvalue > P_VALUE_MIN


def test_rates_without_a_law_are_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        geometric(Fraction(0))
    for numerator in (-1, 3):
        with pytest.raises(ValueError, match="between 0 and 1"):
            bernoulli_exp(numerator, 2)
