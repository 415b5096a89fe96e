"""How an epsilon is divided, against the table of section 3.3 and against half and half."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.mechanism import Mechanism, best_mechanism


def variance(mechanism: Mechanism, n_bits: int) -> float:
    """Of an estimated density, for the users who have a bit."""
    return float(mechanism.variance_of_ones(n_bits) / (n_bits * mechanism.state.separation) ** 2)


@pytest.mark.parametrize(
    ("n_bits", "epsilon", "tight_halves", "optimal", "share"),
    [
        (1000, "0.2", 0.1240, 0.0851, 0.71),
        (1000, "1.0", 0.00398, 0.00159, 0.85),
        (5000, "0.2", 0.0209, 0.0102, 0.81),
        (5000, "1.0", 0.00079, 0.00025, 0.91),
        (100, "0.2", 3.40, 3.27, None),
    ],
)
def test_the_figures_of_the_table(
    n_bits: int, epsilon: str, tight_halves: float, optimal: float, share: float | None
) -> None:
    """To the digits that it has."""
    total = Fraction(epsilon)
    best = best_mechanism(total, n_bits)
    assert math.isclose(variance(best, n_bits), optimal, rel_tol=0.02)
    halves = Mechanism.for_epsilon(total, state=total / 2)
    assert math.isclose(variance(halves, n_bits), tight_halves, rel_tol=0.007)
    if share is not None:
        assert math.isclose(best.state.epsilon_units / best.epsilon_units, share, abs_tol=0.006)


@pytest.mark.parametrize(
    ("n_bits", "epsilon", "published", "simple"),
    [
        (1000, 0.2, 0.1001, 0.1801),
        (1000, 1.0, 0.00393, 0.00405),
        (5000, 0.2, 0.0200, 0.0232),
        (5000, 1.0, 0.00078, 0.00079),
        (100, 0.2, 1.02, 9.0),
    ],
)
def test_what_was_published_and_its_simple_correction_have_the_other_figures_of_the_table(
    n_bits: int, epsilon: float, published: float, simple: float
) -> None:
    """Half of epsilon for each; from 1000 bits on, ours is private and yet better than both."""
    half = epsilon / 2
    of_bits = 1 / (4 * n_bits * math.sinh(half / 2) ** 2)
    as_published = of_bits + 2 / (half * n_bits) ** 2
    corrected = of_bits + 2 / (half * n_bits * math.tanh(half / 2)) ** 2
    assert math.isclose(as_published, published, rel_tol=0.01)
    assert math.isclose(corrected, simple, rel_tol=0.01)
    ours = variance(best_mechanism(Fraction(epsilon).limit_denominator(100), n_bits), n_bits)
    assert ours < corrected
    if n_bits >= 1000:
        assert 1.17 < as_published / ours < 3.2


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 10**7),
    st.integers(2**31, 2**43).map(lambda units: Fraction(units, 2**40)),
    st.floats(0.01, 0.99),
)
def test_no_other_share_is_better(n_bits: int, epsilon: Fraction, share: float) -> None:
    other = Mechanism.for_epsilon(epsilon, state=epsilon * Fraction(share))
    best = best_mechanism(epsilon, n_bits)
    assert variance(best, n_bits) <= variance(other, n_bits) * (1 + 1e-6)
    assert best.epsilon_units <= epsilon * 2**40


def test_nearly_all_belongs_to_the_state_once_it_is_large() -> None:
    shares = [
        best.state.epsilon_units / best.epsilon_units
        for best in (best_mechanism(Fraction(1, 2), 10**k) for k in range(1, 9))
    ]
    assert shares == sorted(shares)
    assert shares[-1] > 0.98


def test_a_state_without_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one bit"):
        best_mechanism(Fraction(1), 0)
