"""The posterior: intervals, probabilities and bins, from the law of the noise and nothing else."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.block_estimates import half_widths, narrowest, widest
from inference.noise_law.law import NoiseLaw, law_of_noise
from inference.posterior import NotEstimable, Posterior, RowEstimate, ends_about

N_REPLICATES = 40_000
FALSE_ALARM = 1e-9  # probability that the coverage test fails although all is right


def two_scales() -> NoiseLaw:
    return law_of_noise(np.array([3.0, 1.0]))


def test_the_interval_is_the_value_plus_and_minus_the_half_width() -> None:
    posterior = Posterior(10.0, two_scales())
    low, high = posterior.interval(0.95)
    assert posterior.half_width(0.95) == pytest.approx(9.33988712983894109, abs=1e-9)
    assert low == pytest.approx(10.0 - 9.33988712983894109, abs=1e-9)
    assert high == pytest.approx(10.0 + 9.33988712983894109, abs=1e-9)
    assert low <= 10.0 - posterior.half_width(0.95)
    assert high >= 10.0 + posterior.half_width(0.95)


def test_the_lattice_widens_every_interval_by_its_certain_bound() -> None:
    narrow, wide = Posterior(0.0, two_scales()), Posterior(0.0, two_scales(), lattice_widening=0.5)
    for confidence in (0.1, 0.95, 0.999):
        assert wide.half_width(confidence) == narrow.half_width(confidence) + 0.5
    assert wide.interval(0.95)[1] == pytest.approx(narrow.interval(0.95)[1] + 0.5)


def test_the_public_range_clips_and_never_widens() -> None:
    posterior = Posterior(2.0, two_scales(), low=0.0, high=5.0)
    assert posterior.interval(0.95) == (0.0, 5.0)
    assert posterior.half_width(0.95) > 5


@pytest.mark.parametrize("value", [-100.0, -0.5, 5.5, 100.0])
def test_the_interval_of_a_value_outside_of_the_range_is_not_cut(value: float) -> None:
    uncut = Posterior(value, two_scales()).interval(0.95)
    assert Posterior(value, two_scales(), low=0.0, high=5.0).interval(0.95) == uncut


@given(
    value=st.floats(-1e6, 1e6),
    half_width=st.floats(0, 1e6),
    ends=st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)).map(sorted),
)
def test_a_value_is_in_its_interval_which_is_cut_if_the_value_needs_not_be(
    value: float, half_width: float, ends: list[float]
) -> None:
    low, high = ends_about(value, half_width, *ends)
    assert low <= value <= high
    if ends[0] <= value <= ends[1]:
        assert ends[0] <= low <= high <= ends[1]
    else:
        assert high - low >= 2 * half_width * (1 - 1e-9)


@given(
    value=st.floats(-50, 50),
    ends=st.tuples(st.floats(-40, 40), st.floats(-40, 40)).map(sorted),
    confidence=st.floats(0.01, 0.999),
)
def test_clipping_keeps_every_possible_truth_that_was_inside(
    value: float, ends: list[float], confidence: float
) -> None:
    low, high = Posterior(value, two_scales()).interval(confidence)
    clipped_low, clipped_high = Posterior(value, two_scales(), low=ends[0], high=ends[1]).interval(
        confidence
    )
    assert low <= clipped_low <= clipped_high <= high
    for truth in np.linspace(ends[0], ends[1], 7):
        if low <= truth <= high:
            assert clipped_low <= truth <= clipped_high


def test_probabilities_are_those_of_the_noise() -> None:
    posterior = Posterior(10.0, two_scales())
    # Pr(X > 5) for scales 3 and 1, by partial fractions.
    assert posterior.exceeds(15.0) == pytest.approx(0.105821404908685692, abs=2e-12)
    assert posterior.exceeds(5.0) == pytest.approx(1 - 0.105821404908685692, abs=2e-12)
    assert posterior.exceeds(10.0) == 0.5
    assert posterior.probability(5.0, 15.0) == pytest.approx(
        1 - 2 * 0.105821404908685692, abs=4e-12
    )
    assert posterior.probability() == 1.0
    assert posterior.probability(high=15.0) == pytest.approx(1 - posterior.exceeds(15.0))
    assert posterior.probability(7.0, 7.0) == 0.0


def test_probabilities_ignore_the_public_range() -> None:
    assert Posterior(1.0, two_scales(), low=0.0).exceeds(0.0) < 1


@given(st.floats(-50, 50), st.floats(0.01, 0.999))
def test_an_interval_has_at_least_the_probability_it_claims(
    value: float, confidence: float
) -> None:
    posterior = Posterior(value, two_scales())
    assert posterior.probability(*posterior.interval(confidence)) >= confidence - 1e-11


def test_the_standard_deviation_is_that_of_the_sum() -> None:
    assert Posterior(0.0, two_scales()).standard_deviation == pytest.approx(math.sqrt(20))


def test_the_bins_are_centred_on_the_value_and_hold_everything() -> None:
    posterior = Posterior(10.0, two_scales())
    points, masses = posterior.pmf(0.5)
    assert points[points.size // 2] == 10.0
    np.testing.assert_allclose(np.diff(points), 0.5)
    assert masses.sum() == pytest.approx(1.0, abs=1e-11)
    assert masses @ points == pytest.approx(10.0, abs=1e-9)
    # Sheppard: the bins add step**2 / 12 to the variance, up to a term of order step**4.
    variance = masses @ np.square(points - 10.0)
    assert variance == pytest.approx(20 + 0.25 / 12, abs=1e-3)
    inside = posterior.probability(9.75, 10.25)
    assert masses[points == 10.0][0] == pytest.approx(inside, abs=1e-11)


def test_the_bins_of_a_single_laplace_law_are_right_to_their_error() -> None:
    points, masses = Posterior(0.0, law_of_noise(np.array([2.0]))).pmf(1.0)
    exact = math.exp(-0.25) * -math.expm1(-0.5) / 2  # between 0.5 and 1.5
    assert masses[points == 1.0][0] == pytest.approx(exact, abs=1e-10)


def test_without_noise_the_truth_is_the_value() -> None:
    posterior = Posterior(3.0, law_of_noise(np.array([])))
    assert posterior.interval(0.99) == (3.0, 3.0)
    assert posterior.exceeds(3.0) == 0.0
    assert posterior.exceeds(math.nextafter(3.0, 0.0)) == 1.0
    assert posterior.standard_deviation == 0.0
    points, masses = posterior.pmf(1.0)
    assert points.tolist() == [3.0]
    assert masses.tolist() == [1.0]


def test_a_lattice_alone_still_widens() -> None:
    low, high = Posterior(3.0, law_of_noise(np.array([])), lattice_widening=0.25).interval(0.9)
    assert low == pytest.approx(2.75)
    assert high == pytest.approx(3.25)


def coverage(claimed: NoiseLaw, scales: list[float], *, step: float) -> int:
    """How often the 90 % interval held 0, with noise on a lattice of this step."""
    generator = np.random.default_rng(41)
    error = np.zeros(N_REPLICATES)
    for scale in scales:
        unit = step / scale
        # A discrete Laplace variate is a difference of two geometric ones.
        first, second = generator.geometric(-math.expm1(-unit), size=(2, N_REPLICATES))
        error += step * (first - second)
    half_width = Posterior(0.0, claimed, lattice_widening=step * len(scales)).half_width(0.9)
    return int((np.abs(error) <= half_width).sum())


def binomial_slack(n_trials: int) -> float:
    """Hoeffding: the count strays farther than this with probability FALSE_ALARM."""
    return math.sqrt(n_trials * math.log(2 / FALSE_ALARM) / 2)


def test_intervals_cover_with_their_confidence_under_lattice_noise() -> None:
    hits = coverage(two_scales(), [3.0, 1.0], step=2**-10)
    assert abs(hits - 0.9 * N_REPLICATES) < binomial_slack(N_REPLICATES)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_coverage_check_catches_a_scale_ten_percent_wrong(factor: float) -> None:
    wrong = law_of_noise(np.array([3.0, 1.0]) * factor)
    hits = coverage(wrong, [3.0, 1.0], step=2**-10)
    assert abs(hits - 0.9 * N_REPLICATES) > binomial_slack(N_REPLICATES)


def test_even_a_coarse_lattice_keeps_the_coverage() -> None:
    assert coverage(two_scales(), [3.0, 1.0], step=1.0) >= 0.9 * N_REPLICATES


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_estimate_that_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Posterior(value, two_scales())


@pytest.mark.parametrize("widening", [-1.0, math.nan, math.inf])
def test_a_widening_that_narrows_is_refused(widening: float) -> None:
    with pytest.raises(ValueError, match="lattice_widening"):
        Posterior(0.0, two_scales(), lattice_widening=widening)


@pytest.mark.parametrize(("low", "high"), [(1.0, 0.0), (math.nan, 1.0), (0.0, math.nan)])
def test_an_empty_range_is_refused(low: float, high: float) -> None:
    with pytest.raises(ValueError, match="empty"):
        Posterior(0.0, two_scales(), low=low, high=high)
    with pytest.raises(ValueError, match="empty"):
        Posterior(0.0, two_scales()).probability(low, high)


@pytest.mark.parametrize("step", [0.0, -1.0, math.nan, math.inf])
def test_a_bin_without_width_is_refused(step: float) -> None:
    with pytest.raises(ValueError, match="step"):
        Posterior(0.0, two_scales()).pmf(step)


def test_not_estimable_says_why() -> None:
    assert NotEstimable("age has never been measured").reason == "age has never been measured"
    with pytest.raises(ValueError, match="reason"):
        NotEstimable("")


def test_the_widths_of_many_rows_are_those_of_each() -> None:
    """Laws that rows share, laws of their own, and rows of which nothing is known."""
    shared = law_of_noise(np.array([2.0]))
    rows: list[RowEstimate] = [
        Posterior(1.0, shared),
        Posterior(2.0, shared, lattice_widening=0.25),
        Posterior(3.0, law_of_noise(np.array([1.0, 3.0]))),
        NotEstimable("nothing was measured"),
        Posterior(4.0, shared),
    ]
    expected = [row.half_width(0.9) if isinstance(row, Posterior) else math.inf for row in rows]
    assert half_widths(rows, 0.9).tolist() == expected
    assert widest(rows, 0.9) == math.inf
    assert widest(rows[:3], 0.9) == max(expected[:3])
    assert widest((), 0.9) == 0.0
    turned = rows[::-1]
    kept = narrowest(rows, turned, 0.9)
    assert half_widths(kept, 0.9).tolist() == list(map(min, expected, expected[::-1]))
    again = [replace(one) if isinstance(one, Posterior) else one for one in rows]
    assert narrowest(rows, again, 0.9) is rows, "the first, if neither is narrower"
