"""What an average of Gaussian values is: its noise, and how far from continuous noise it can be."""

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.ledger.history.raises import averaged, laplace_scale
from accountant.noise.lattice_noise import GaussianNoise
from cube.measurement import Measurement, Precision
from cube.query import QueryBlock, counting

TOTAL = QueryBlock(counting())

precisions = st.floats(1e-9, 0.1).map(Precision.at_least)
looks = st.lists(
    st.tuples(precisions, st.integers(-(2**40), 2**40), st.sampled_from([-1, 0, 1])),
    min_size=2,
    max_size=12,
)


def drawn(precision: Precision, value: int) -> Measurement:
    noise = GaussianNoise.for_precision(precision)
    return Measurement(
        TOTAL, precision, noise.lattice_bits, laplace_scale(noise.variance), (value,)
    )


def averages(looks: Sequence[Measurement]) -> Measurement:
    found, *others = looks
    for place, more in enumerate(others):
        found = averaged(found, more, place)
    return found


@given(looks)
def test_an_average_is_as_near_to_continuous_noise_as_it_says(
    values: list[tuple[Precision, int, int]],
) -> None:
    """Each value is a lattice step from a continuous one, on either side or not at all."""
    measured = [drawn(precision, value) for precision, value, _ in values]
    continuous = [
        Fraction(value - side, 2**one.lattice_bits)
        for one, (_, value, side) in zip(measured, values, strict=True)
    ]
    units = [precision.units for precision, _, _ in values]
    mean = sum(
        (unit * one for unit, one in zip(units, continuous, strict=True)), Fraction(0)
    ) / sum(units)
    found = averages(measured)
    (steps,) = found.lattice_values
    assert found.precision.units == sum(units)
    assert abs(Fraction(steps, 2**found.lattice_bits) - mean) <= Fraction(found.lattice_widening)
    # Far below the noise all the same, and no less than a step.
    assert found.lattice_step <= found.lattice_widening <= 2.0**-15 * found.deviation


def test_one_step_would_not_do() -> None:
    """Without what averaging adds, the bound above is broken."""
    fine, coarse = Precision.at_least(0.02), Precision.at_least(0.0199)
    one, two = drawn(fine, 2), drawn(coarse, 2)
    found = averaged(one, two, 0)
    mean = (
        fine.units * Fraction(1, 2**one.lattice_bits)
        + coarse.units * Fraction(1, 2**two.lattice_bits)
    ) / (fine.units + coarse.units)
    error = abs(Fraction(found.lattice_values[0], 2**found.lattice_bits) - mean)
    assert found.averaging_error > 0
    assert Fraction(found.lattice_step) < error <= Fraction(found.lattice_widening)


def test_the_scale_of_laplace_noise_as_wide_is_rounded_up() -> None:
    for variance in (Fraction(1, 3), Fraction(2), Fraction(10**9, 7)):
        scale = laplace_scale(variance)
        assert 2 * Fraction(scale) ** 2 >= variance
        assert scale == pytest.approx(float(variance / 2) ** 0.5, rel=1e-15)
