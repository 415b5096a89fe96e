"""The noise of a release: drawn word by word, and its law."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from streams.randomness import GRID, TRIALS_IN_PIECE, GeometricNoise, SystemEntropy
from tests.support.entropy import SeededWords, WrittenWords

P_VALUE_MIN = 1e-9  # a sound sampler fails one run in a billion


def piece(*words: int) -> list[int]:
    """Words of one piece; those behind the ones that matter are never looked at."""
    return [*words, *[GRID - 1] * (TRIALS_IN_PIECE - len(words))]


def test_a_value_counts_the_words_below_alpha_before_the_first_that_is_not() -> None:
    noise = GeometricNoise(100)
    three = piece(0, 99, 5, 100, 7)
    none = piece(100, 0, 0)
    assert noise.draw(WrittenWords(*three, *none)) == 3
    assert noise.draw(WrittenWords(*none, *three)) == -3


def test_a_value_may_be_longer_than_a_piece() -> None:
    long = [0] * TRIALS_IN_PIECE + piece(0, 0, 100)
    assert GeometricNoise(100).draw(WrittenWords(*long, *piece(100))) == TRIALS_IN_PIECE + 2


@pytest.mark.parametrize("alpha", [0.1, 0.7, 0.97])
def test_drawn_values_have_the_law_and_another_law_is_noticed(alpha: float) -> None:
    noise = GeometricNoise(int(alpha * GRID))
    entropy = SeededWords(1)
    drawn = np.array([noise.draw(entropy) for _ in range(6000)])
    places = np.arange(-60, 61)

    def p_value(of: float) -> float:
        law = (1 - of) / (1 + of) * of ** np.abs(places)
        kept = law * drawn.size > 5
        seen = np.array([np.sum(drawn == z) for z in places[kept]])
        rest = drawn.size - seen.sum()
        expected = law[kept] * drawn.size
        rest_expected = drawn.size - expected.sum()
        if rest_expected > 5:
            seen, expected = np.append(seen, rest), np.append(expected, rest_expected)
        return float(stats.chi2.sf(np.sum((seen - expected) ** 2 / expected), seen.size - 1))

    assert p_value(alpha) > P_VALUE_MIN
    assert p_value(alpha**1.3) < P_VALUE_MIN  # a scale that is 30 % off


def test_the_variance_and_the_rate_are_those_of_the_law() -> None:
    noise = GeometricNoise(3 * GRID // 4)
    assert noise.variance == 2 * Fraction(3, 4) * 16
    z = np.arange(1, 2000)
    assert math.isclose(2 * np.sum(z**2 * 0.75**z) / 7, float(noise.variance), rel_tol=1e-9)
    assert math.isclose(noise.rate, -math.log(0.75))
    assert math.isclose(GeometricNoise(1).rate, 64 * math.log(2))
    assert math.isclose(GeometricNoise(GRID - 1).rate, 2.0**-64)


def test_the_system_gives_words_that_differ() -> None:
    words = SystemEntropy().words(1000)
    assert words.dtype == np.uint64
    assert np.unique(words).size == 1000


@pytest.mark.parametrize("threshold", [0, GRID, -5])
def test_noise_that_hides_nothing_or_everything_is_refused(threshold: int) -> None:
    with pytest.raises(ValueError, match="alpha"):
        GeometricNoise(threshold)
    with pytest.raises(TypeError):
        GeometricNoise(0.5)  # type: ignore[arg-type]
