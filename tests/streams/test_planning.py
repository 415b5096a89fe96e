"""Plans: the table of section 3.2, and that what is planned is what is reached."""

import math
from fractions import Fraction

import pytest

from streams.estimates import ErrorLaw
from streams.mechanism import best_mechanism
from streams.planning import (
    ErrorRates,
    error_bound,
    sample_for_error,
    sample_for_half_width,
    sample_size,
)
from streams.population import Everyone, Sample

NO_LIMIT = 2**32


def dwork(epsilon: float) -> tuple[ErrorRates, ErrorRates]:
    """As published, and with the simple correction of its release."""
    return ErrorRates(epsilon / 4, 4.0), ErrorRates(epsilon / 4, epsilon)


def optbern(epsilon: float) -> tuple[ErrorRates, ErrorRates]:
    separation = math.tanh(epsilon / 2)
    return ErrorRates(separation, epsilon / separation), ErrorRates(separation, epsilon)


@pytest.mark.parametrize(
    ("epsilon", "of_dwork", "of_optbern"),
    [
        (0.05, (1_004_384, 1_177_248), (263_408, 337_536)),
        (0.1, (261_712, 304_288), (71_424, 89_452)),
        (0.2, (70_586, 80_936), (20_644, 24_927)),
        (0.3, (33_637, 38_113), (10_453, 12_267)),
        (0.4, (20_194, 22_645), (6_632, 7_604)),
        (0.5, (13_743, 15_270), (4_751, 5_344)),
    ],
)
def test_the_table_of_sample_sizes(
    epsilon: float, of_dwork: tuple[int, int], of_optbern: tuple[int, int]
) -> None:
    """To .1 %: with the published release, and with its simple correction."""
    for rates, expected in zip(
        dwork(epsilon) + optbern(epsilon), of_dwork + of_optbern, strict=True
    ):
        plan = sample_size(lambda _, rates=rates: rates, 0.1, 0.1, NO_LIMIT)  # type: ignore[misc]
        assert math.isclose(plan.n_bits, expected, rel_tol=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "in_optberns", "in_roths"),
    [
        (0.05, 3.81, 11.7),
        (0.1, 3.66, 11.3),
        (0.2, 3.42, 10.4),
        (0.3, 3.22, 9.7),
        (0.4, 3.05, 9.1),
        (0.5, 2.89, 8.6),
    ],
)
def test_how_many_times_smaller_samples_became(
    epsilon: float, in_optberns: float, in_roths: float
) -> None:
    """Dwork's in terms of OptBern's, and those of the bound before it in terms of Dwork's."""
    n_dwork, n_optbern = (
        sample_size(lambda _, rates=one: rates, 0.1, 0.1, NO_LIMIT).n_bits  # type: ignore[misc]
        for one in (dwork(epsilon)[0], optbern(epsilon)[0])
    )
    assert math.isclose(n_dwork / n_optbern, in_optberns, abs_tol=0.006)
    before = 128 * math.log(10) / (epsilon * 0.1) ** 2
    assert math.isclose(before / n_dwork, in_roths, abs_tol=0.051)


@pytest.mark.parametrize(
    ("error", "chance", "epsilon", "of_dwork", "of_optbern"),
    [
        (0.1, 0.05, 0.1, 320_336, 86_956),
        (0.1, 0.05, 0.5, 16_597, 5_679),
        (0.05, 0.05, 0.1, 1_277_600, 344_624),
        (0.05, 0.05, 0.5, 65_758, 22_177),
    ],
)
def test_other_errors_and_chances(
    error: float, chance: float, epsilon: float, of_dwork: int, of_optbern: int
) -> None:
    for rates, expected in ((dwork(epsilon)[0], of_dwork), (optbern(epsilon)[0], of_optbern)):
        plan = sample_size(lambda _, rates=rates: rates, error, chance, NO_LIMIT)  # type: ignore[misc]
        assert math.isclose(plan.n_bits, expected, rel_tol=1e-3)
        assert error_bound(rates, plan.n_bits, error, is_everyone=False) <= chance
        assert error_bound(rates, plan.n_bits - 1, error, is_everyone=False) > chance


def test_more_is_needed_for_less_epsilon_error_and_chance() -> None:
    def size(epsilon: str, error: float, chance: float) -> int:
        return sample_for_error(Fraction(epsilon), error, chance, NO_LIMIT).n_bits

    assert size("0.5", 0.1, 0.1) > size("1", 0.1, 0.1) > size("2", 0.1, 0.1)
    assert size("1", 0.05, 0.1) > size("1", 0.1, 0.1) > size("1", 0.2, 0.1)
    assert size("1", 0.1, 0.01) > size("1", 0.1, 0.1)


def test_a_universe_that_is_too_small_says_what_it_reaches() -> None:
    plan = sample_size(lambda _: optbern(0.05)[0], 0.1, 0.1, 100_000)
    assert (plan.n_bits, plan.is_enough) == (100_000, False)
    assert 0.1 < plan.reached < 1
    # All of them have no error of a sample, so the bound is less than that of as many of more.
    assert plan.reached < error_bound(optbern(0.05)[0], 100_000, 0.1, is_everyone=False)
    wide = sample_for_half_width(Fraction(1, 10), 1.0, 0.95, 1000)
    assert (wide.n_bits, wide.is_enough) == (1000, False)
    assert wide.reached > 1


@pytest.mark.parametrize("n_bits", [1000, 10_000])
def test_the_theorem_bounds_the_exact_law(n_bits: int) -> None:
    mechanism = best_mechanism(Fraction(1), n_bits)
    rates = ErrorRates.of(mechanism)
    universe = 10 * n_bits
    for error in (0.01, 0.03, 0.1):
        sampled = error_bound(rates, n_bits, error, is_everyone=False)
        law = ErrorLaw(Sample(universe, n_bits, bytes(16)), mechanism, universe // 2)
        assert 2 * law.tail(error * universe) <= sampled + 1e-8
        everyone = error_bound(rates, n_bits, error, is_everyone=True)
        law = ErrorLaw(Everyone(n_bits), mechanism, n_bits // 2)
        assert 2 * law.tail(error * n_bits) <= everyone + 1e-8
        assert everyone <= sampled


def test_the_exact_law_needs_fewer_users_and_reaches_what_was_asked() -> None:
    universe = 20_000
    exact = sample_for_half_width(Fraction(1), 0.1 * universe, 0.9, universe)
    by_theorem = sample_for_error(Fraction(1), 0.1, 0.1, universe)
    assert exact.is_enough
    assert exact.reached <= 0.1 * universe
    assert by_theorem.n_bits / 8 < exact.n_bits < by_theorem.n_bits / 4


def test_plans_without_a_meaning_are_refused() -> None:
    with pytest.raises(ValueError, match="share"):
        sample_for_error(Fraction(1), 1.5, 0.1, 1000)
    with pytest.raises(ValueError, match="half-width"):
        sample_for_half_width(Fraction(1), 0.0, 0.9, 1000)
    with pytest.raises(ValueError, match="confidence"):
        sample_for_half_width(Fraction(1), 10.0, 1.0, 1000)
