"""The law of the noise, by every method, against closed forms, published values and each other."""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.laplace_oracles import equal_scales_tail, partial_fractions_tail
from inference.noise_law.laplace_sum import chernoff_half_width, standard_deviation
from inference.noise_law.law import ContourLaw, LawMethod, NoiseLaw, SingleLaplaceLaw, law_of_noise
from inference.noise_law.paper_methods import ConvolutionLaw, MonteCarloLaw, PaperConvolutionLaw
from tests.support.examples import examples

Scales = NDArray[np.float64]
LawMaker = Callable[[Scales], NoiseLaw]

# Tails Pr(X > z) at z = .1, 1, 5, 50, and the 95 % half-width: partial fractions in 60 digits.
Z_VALUES = (0.1, 1.0, 5.0, 50.0)
GOLDEN_TAILS = {
    (3.0, 1.0): (
        0.487506717893880847,
        0.380056397124541308,
        0.105821404908685692,
        3.24998354217326492e-8,
    ),
    (5.0, 2.0, 0.5): (
        0.492987878165487213,
        0.430692111935755062,
        0.212848956967237282,
        2.72967336555903416e-5,
    ),
    (100.0, 1.0, 0.01): (
        0.499504959012049921,
        0.495056031616355144,
        0.475661946270088125,
        0.303295662455215562,
    ),
}
GOLDEN_HALF_WIDTHS = {
    (3.0, 1.0): 9.33988712983894109,
    (5.0, 2.0, 0.5): 15.893496608814636,
    (100.0, 1.0, 0.01): 299.58322885543244,
}

N_DRAWS = 20_000  # with DKW's 1e-9, a false alarm is one run in 10**9 per law, and seeded besides


def contour(scales: Scales) -> NoiseLaw:
    return law_of_noise(scales, LawMethod.CONTOUR)


def convolution(scales: Scales) -> NoiseLaw:
    return law_of_noise(scales, LawMethod.CONVOLUTION)


def paper_convolution(scales: Scales) -> NoiseLaw:
    # Fine where that is affordable; the stated error follows the step.
    step = float(scales.max()) / (200 if scales.size < 100 else 20) if scales.size else 1.0
    return law_of_noise(scales, LawMethod.PAPER_CONVOLUTION, grid_step=step)


def monte_carlo(scales: Scales) -> NoiseLaw:
    generator = np.random.default_rng(20120812)
    return law_of_noise(scales, LawMethod.MONTE_CARLO, generator=generator, n_draws=N_DRAWS)


METHODS: list[LawMaker] = [contour, convolution, paper_convolution, monte_carlo]
PRECISE: list[LawMaker] = [contour, convolution]

scale_lists = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=12)


@pytest.mark.parametrize("make", METHODS)
@pytest.mark.parametrize("scales", GOLDEN_TAILS)
def test_tails_are_the_exact_ones_to_the_stated_error(
    make: LawMaker, scales: tuple[float, ...]
) -> None:
    law = make(np.array(scales))
    for z, exact in zip(Z_VALUES, GOLDEN_TAILS[scales], strict=True):
        assert abs(law.tail(z) - exact) <= law.tail_error
        assert abs(law.tail(-z) - (1 - exact)) <= law.tail_error + 1e-15


@pytest.mark.parametrize("make", METHODS)
@pytest.mark.parametrize("scales", GOLDEN_HALF_WIDTHS)
def test_half_widths_are_never_below_the_exact_ones(
    make: LawMaker, scales: tuple[float, ...]
) -> None:
    assert make(np.array(scales)).half_width(0.95) >= GOLDEN_HALF_WIDTHS[scales]


@pytest.mark.parametrize("make", PRECISE)
@pytest.mark.parametrize("scales", GOLDEN_HALF_WIDTHS)
def test_the_precise_methods_have_the_exact_half_widths(
    make: LawMaker, scales: tuple[float, ...]
) -> None:
    # A stated tail error e moves the half-width by e / density; the density there is about
    # the tail over the largest scale.
    law = make(np.array(scales))
    slack = 4 * law.tail_error * scales[0] / 0.025
    assert law.half_width(0.95) <= GOLDEN_HALF_WIDTHS[scales] + slack


@pytest.mark.parametrize("make", METHODS)
@pytest.mark.parametrize(
    ("n_scales", "z", "exact"),
    [(10, 5.0, 0.126888196057296158), (1000, 100.0, 0.0126919464971129543)],
)
def test_equal_scales_have_their_closed_form(
    make: LawMaker, n_scales: int, z: float, exact: float
) -> None:
    law = make(np.ones(n_scales))
    assert abs(law.tail(z) - exact) <= law.tail_error
    assert abs(equal_scales_tail(n_scales, 1.0, z) - exact) < 1e-13


@pytest.mark.parametrize("method", LawMethod)
def test_one_scale_is_the_laplace_law_itself(method: LawMethod) -> None:
    law = law_of_noise(np.array([0.0, 7.0, 0.0]), method)
    assert isinstance(law, SingleLaplaceLaw)
    assert law.tail(7.0) == pytest.approx(math.exp(-1) / 2, abs=law.tail_error)
    assert law.tail(-7.0) == pytest.approx(1 - math.exp(-1) / 2, abs=law.tail_error)
    assert law.half_width(0.95) == pytest.approx(7 * math.log(20), rel=1e-14)
    assert law.half_width(0.95) >= 7 * math.log(20)


@pytest.mark.parametrize(
    "make",
    [
        ContourLaw,
        ConvolutionLaw,
        lambda scales: PaperConvolutionLaw(scales, grid_step=0.01),
        lambda scales: MonteCarloLaw(scales, generator=np.random.default_rng(7), n_draws=N_DRAWS),
    ],
)
def test_every_method_also_gets_one_scale_right_by_its_own_means(make: LawMaker) -> None:
    law = make(np.array([2.0]))
    for z in (-3.0, 0.0, 0.5, 4.0, 30.0):
        exact = math.exp(-z / 2) / 2 if z >= 0 else 1 - math.exp(z / 2) / 2
        assert abs(law.tail(z) - exact) <= law.tail_error
    assert law.half_width(0.9) >= 2 * math.log(10)


@pytest.mark.parametrize("method", LawMethod)
@pytest.mark.parametrize("scales", [[], [0.0], [0.0, 0.0]])
def test_no_noise_is_a_point_mass_at_zero(method: LawMethod, scales: list[float]) -> None:
    law = law_of_noise(np.array(scales), method)
    assert [law.tail(z) for z in (-1.0, -1e-300, 0.0, 1e-300, 1.0)] == [1.0, 1.0, 0.0, 0.0, 0.0]
    assert law.half_width(0.999) == 0.0
    assert law.tail_error == 0.0
    assert standard_deviation(law.scales) == 0.0


@pytest.mark.parametrize("make", METHODS)
def test_the_far_ends_are_zero_and_one(make: LawMaker) -> None:
    law = make(np.array([2.0, 1.0]))
    assert law.tail(math.inf) <= law.tail_error
    assert law.tail(-math.inf) >= 1 - law.tail_error


@given(scale_lists, st.floats(0.001, 0.999), st.floats(0.001, 10))
@settings(deadline=None, max_examples=examples(60))
def test_contour_and_convolution_agree_to_their_stated_errors(
    scales: list[float], confidence: float, deviations: float
) -> None:
    array = np.array(scales)
    first, second = contour(array), convolution(array)
    z = deviations * standard_deviation(array)
    assert abs(first.tail(z) - second.tail(z)) <= first.tail_error + second.tail_error
    exact_enough = first.tail_error + second.tail_error
    half_width = second.half_width(confidence)
    assert 2 * first.tail(half_width) <= 1 - confidence + 2 * exact_enough
    if (1 - confidence) / 2 > 10 * exact_enough:
        assert 2 * first.tail(half_width) >= 1 - confidence - 4 * exact_enough


@given(scale_lists, st.lists(st.floats(-1e5, 1e5), min_size=2, max_size=6))
@settings(deadline=None, max_examples=examples(60))
def test_tails_fall_and_are_symmetric(scales: list[float], points: list[float]) -> None:
    law = contour(np.array(scales))
    tails = [law.tail(z) for z in sorted(points)]
    assert all(0 <= tail <= 1 for tail in tails)
    assert all(right <= left + 2 * law.tail_error for left, right in pairwise(tails))
    for z in points:
        assert law.tail(z) + law.tail(-z) == pytest.approx(1.0, abs=2 * law.tail_error)


@given(scale_lists, st.floats(0.01, 0.9999), st.floats(1e-6, 1e6))
@settings(deadline=None, max_examples=examples(60))
def test_stretching_the_scales_stretches_the_law(
    scales: list[float], confidence: float, factor: float
) -> None:
    array = np.array(scales)
    half_width = contour(array).half_width(confidence)
    assert contour(array * factor).half_width(confidence) == pytest.approx(
        factor * half_width, rel=1e-7
    )


@given(scale_lists, st.floats(1e-6, 1 - 1e-6))
@settings(deadline=None, max_examples=examples(60))
def test_half_width_and_tail_are_inverse(scales: list[float], confidence: float) -> None:
    law = contour(np.array(scales))
    beyond = 2 * law.tail(law.half_width(confidence))
    assert 1 - confidence - 6 * law.tail_error <= beyond <= 1 - confidence + 2 * law.tail_error


@given(scale_lists)
@settings(deadline=None, max_examples=examples(40))
def test_a_higher_confidence_never_has_a_narrower_interval(scales: list[float]) -> None:
    law = contour(np.array(scales))
    widths = [law.half_width(c) for c in (1e-12, 0.01, 0.5, 0.9, 0.999, 1 - 1e-9, 1 - 2**-30)]
    assert widths == sorted(widths)
    assert widths[0] >= 0


@given(scale_lists, st.floats(-30, -0.7))
@settings(deadline=None, max_examples=examples(40))
def test_chernoffs_half_width_is_wide_enough_and_not_absurd(
    scales: list[float], log_probability: float
) -> None:
    array = np.array(scales)
    law, wide = ContourLaw(array), chernoff_half_width(array, log_probability)
    assert law.tail(wide) <= math.exp(log_probability) + law.tail_error
    if -20 < log_probability < -3:
        assert wide <= 4 * law.half_width(1 - 2 * math.exp(log_probability) + 1e-9)


def test_zero_scales_and_their_order_do_not_matter() -> None:
    law = law_of_noise(np.array([1.0, 0.0, 3.0]))
    assert law is law_of_noise(np.array([3.0, 1.0]))


def test_a_confidence_beyond_the_arithmetic_gets_a_proved_half_width() -> None:
    confidence = 1 - 2.0**-50
    for make in METHODS:
        half_width = make(np.array([3.0, 1.0])).half_width(confidence)
        assert math.isfinite(half_width)
        assert partial_fractions_tail(np.array([3.0, 1.0]), half_width) <= (1 - confidence) / 2


@pytest.mark.parametrize("make", METHODS)
def test_a_wrong_scale_is_caught(make: LawMaker) -> None:
    # The comparisons above mean something: they tell the scales apart from others this near.
    law = make(np.array([5.0, 2.0, 0.5]))
    relative = max(1e-9, 40 * law.tail_error)
    wrong = np.array([5.0, 2.0, 0.5]) * (1 + relative)
    z = 5.0
    assert abs(law.tail(z) - partial_fractions_tail(wrong, z)) > law.tail_error


@pytest.mark.parametrize("bad", [[-1.0, 2.0], [math.nan, 1.0], [math.inf, 1.0]])
@pytest.mark.parametrize("method", LawMethod)
def test_invalid_scales_are_refused(method: LawMethod, bad: list[float]) -> None:
    with pytest.raises(ValueError, match="scales must be finite"):
        law_of_noise(np.array(bad), method)


@pytest.mark.parametrize("scale", [-1.0, math.nan, math.inf])
def test_a_single_scale_that_is_none_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="scales must be finite"):
        SingleLaplaceLaw(scale)
    with pytest.raises(ValueError, match="scales must be finite"):
        law_of_noise(np.array([scale]))


def test_scales_in_a_table_are_refused() -> None:
    with pytest.raises(ValueError, match="one-dimensional"):
        law_of_noise(np.ones((2, 2)))


@pytest.mark.parametrize("make", METHODS)
@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 2.0, math.nan])
def test_a_confidence_that_is_none_is_refused(make: LawMaker, confidence: float) -> None:
    for scales in (np.array([]), np.array([1.0]), np.array([3.0, 1.0])):
        with pytest.raises(ValueError, match="confidence"):
            make(scales).half_width(confidence)


@pytest.mark.parametrize("make", METHODS)
def test_a_tail_at_nan_is_refused(make: LawMaker) -> None:
    for scales in (np.array([]), np.array([1.0]), np.array([3.0, 1.0])):
        with pytest.raises(ValueError, match="NaN"):
            make(scales).tail(math.nan)


@pytest.mark.parametrize("law", [ContourLaw, ConvolutionLaw])
def test_a_tolerance_out_of_reach_is_refused(law: type[ContourLaw | ConvolutionLaw]) -> None:
    for tolerance in (0.0, 1e-16, 0.1, math.nan):
        with pytest.raises(ValueError, match="tolerance"):
            law(np.array([3.0, 1.0]), tolerance=tolerance)
