"""The best report for a noisy count, against the best mechanism that the linear programme finds."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.laplace_oracles import partial_fractions_tail
from inference.noise_law.law import law_of_noise
from inference.posterior import Posterior
from inference.remap import (
    BestReport,
    CountPrior,
    Loss,
    LossTable,
    PowerLoss,
    ZeroOneLoss,
    best_of,
    best_report,
    count_posterior,
    credible_interval,
    law_under,
    posterior_under,
)

cp = pytest.importorskip("cvxpy")

Floats = NDArray[np.float64]
TOLERATED = Fraction(1, 10**11)  # of sums of probabilities

LOSSES: list[Loss] = [PowerLoss(1), PowerLoss(1.5), PowerLoss(2), PowerLoss(3), ZeroOneLoss()]


def truncated_geometric(n: int, alpha: float) -> Floats:
    """``Pr(r | i)``, (n + 1, n + 1): the geometric law clamped to ``0..n``."""
    counts = np.arange(n + 1)
    column_scale = np.full(n + 1, (1 - alpha) / (1 + alpha))
    column_scale[[0, n]] = 1 / (1 + alpha)
    found: Floats = alpha ** np.abs(counts[:, np.newaxis] - counts) * column_scale
    return found


def table_of(loss: Loss, n: int) -> Floats:
    distance = np.abs(np.subtract.outer(np.arange(n + 1), np.arange(n + 1))).astype(np.float64)
    match loss:
        case PowerLoss():
            powers: Floats = distance**loss.exponent
            return powers
        case ZeroOneLoss():
            return (distance > 0).astype(np.float64)
        case LossTable():
            return loss.losses


def loss_of_the_best_mechanism(prior: Floats, losses: Floats, alpha: float) -> float:
    """The linear programme over all mechanisms for which neighbouring counts are as private."""
    size = prior.size
    channel = cp.Variable((size, size), nonneg=True)
    problem = cp.Problem(
        cp.Minimize(prior @ cp.sum(cp.multiply(channel, losses), axis=1)),
        [
            channel[:-1] >= alpha * channel[1:],
            channel[1:] >= alpha * channel[:-1],
            cp.sum(channel, axis=1) == 1,
        ],
    )
    exact = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    problem.solve(solver=cp.SCIPY, scipy_options=exact)
    return float(problem.value)


def report_for(released: float, *, noise_scale: float, prior: Floats, loss: Loss) -> BestReport:
    return best_report(count_posterior(released, noise_scale=noise_scale, prior=prior), loss)


def reports_of(prior: Floats, loss: Loss, alpha: float) -> list[BestReport]:
    scale = -1 / math.log(alpha)
    return [
        report_for(released, noise_scale=scale, prior=prior, loss=loss)
        for released in range(prior.size)
    ]


def loss_of_reports(prior: Floats, loss: Loss, alpha: float) -> float:
    probabilities = prior @ truncated_geometric(prior.size - 1, alpha)
    losses = [report.expected_loss for report in reports_of(prior, loss, alpha)]
    return float(probabilities @ losses)


def increasing_loss(n: int, rng: np.random.Generator) -> LossTable:
    """A loss that grows with the distance, differently for each truth and on each side."""
    losses = np.zeros((n + 1, n + 1))
    for truth in range(n + 1):
        losses[truth, truth:] = np.cumsum(rng.random(n + 1 - truth))
        losses[truth, truth::-1] = np.cumsum(rng.random(truth + 1))
        losses[truth, truth] = 0.0
    return LossTable(losses)


@pytest.mark.parametrize("seed", range(200))
def test_no_private_mechanism_loses_less_than_the_reports(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 13))
    alpha = float(rng.uniform(0.1, 0.9))
    prior = rng.dirichlet(np.full(n + 1, rng.choice([0.3, 1.0, 5.0])))
    loss = [*LOSSES, increasing_loss(n, rng)][seed % (len(LOSSES) + 1)]
    found = loss_of_reports(prior, loss, alpha)
    best = loss_of_the_best_mechanism(prior, table_of(loss, n), alpha)
    assert found == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("seed", range(20))
def test_reports_over_the_counts_of_a_prior_alone_lose_no_more(seed: int) -> None:
    """The same programme, where the prior allows only some of the counts."""
    rng = np.random.default_rng(1000 + seed)
    n, alpha, loss = 8, float(rng.uniform(0.1, 0.9)), LOSSES[seed % len(LOSSES)]
    chosen = np.sort(rng.choice(n + 1, size=4, replace=False))
    prior = CountPrior.of_weights(
        dict(zip(chosen.tolist(), rng.dirichlet(np.ones(4)), strict=True))
    )
    counts, weights = np.array(prior.counts, np.float64), np.array(prior.probabilities)
    full = np.zeros(n + 1)
    full[chosen] = weights
    found = 0.0
    for released, probability in enumerate(full @ truncated_geometric(n, alpha)):
        law = law_under(estimate(released, -1 / math.log(alpha)), counts, weights)
        assert isinstance(loss, PowerLoss | ZeroOneLoss)
        found += probability * best_of(counts, law, loss).expected_loss
    best = loss_of_the_best_mechanism(full, table_of(loss, n), alpha)
    assert found == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize(
    ("prior", "expected_loss", "remap"),
    [
        ([1 / 2, 2 / 9, 2 / 9, 1 / 18], 0.67020692, [0, 1, 1, 2]),
        ([1 / 4, 1 / 4, 1 / 4, 1 / 4], 0.81904, [1, 1, 2, 2]),
        ([1 / 2, 1 / 4, 1 / 8, 1 / 8], 0.71512, [0, 1, 1, 2]),
    ],
)
def test_the_published_instances_have_their_optimum(
    prior: list[float], expected_loss: float, remap: list[int]
) -> None:
    # alpha = 1/2, n = 3, loss |d|**1.5; the values are the linear programme's.
    reports = reports_of(np.array(prior), PowerLoss(1.5), 0.5)
    assert [report.value for report in reports] == remap
    found = loss_of_reports(np.array(prior), PowerLoss(1.5), 0.5)
    assert found == pytest.approx(expected_loss, abs=5e-6)


def test_a_prior_with_a_typing_error_is_refused_and_corrected_has_its_optimum() -> None:
    printed = np.array([1 / 2, 1 / 4, 2 / 9, 0.0])
    with pytest.raises(ValueError, match="sum to 1"):
        report_for(0, noise_scale=1.0, prior=printed, loss=PowerLoss(1.5))
    prior = printed / printed.sum()
    assert [one.value for one in reports_of(prior, PowerLoss(1.5), 0.5)] == [0, 1, 1, 1]
    found = loss_of_reports(prior, PowerLoss(1.5), 0.5) * printed.sum()
    assert found == pytest.approx(0.53994175, abs=1e-8)


@given(
    weights=st.lists(st.integers(0, 9), min_size=1, max_size=12).filter(any),
    released=st.integers(-80, 120).map(lambda steps: steps / 4),
    noise_scale=st.floats(0.05, 50),
    loss=st.sampled_from(LOSSES),
)
def test_a_report_is_the_best_of_all_and_the_smallest_of_equals(
    weights: list[int], released: float, noise_scale: float, loss: Loss
) -> None:
    prior = np.array(weights) / sum(weights)
    n = prior.size - 1
    # In longhand: the unclamped law at the released value, times the prior, normalised.
    distances = [abs(count - released) for count in range(n + 1) if weights[count]]
    posterior = [
        weight * math.exp(-(abs(count - released) - min(distances)) / noise_scale)
        for count, weight in enumerate(weights)
    ]
    losses = table_of(loss, n)
    expected = [
        math.fsum(p * losses[truth, report] for truth, p in enumerate(posterior)) / sum(posterior)
        for report in range(n + 1)
    ]
    report = report_for(released, noise_scale=noise_scale, prior=prior, loss=loss)
    assert report.expected_loss == pytest.approx(min(expected), rel=1e-9, abs=1e-12)
    assert all(other > report.expected_loss for other in expected[: report.value])


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_and_its_table_give_the_same_report(loss: Loss) -> None:
    prior = np.random.default_rng(1).dirichlet(np.ones(40))
    by_table = LossTable(table_of(loss, 39))
    for released in (-3.0, 0.0, 17.25, 39.0, 60.0):
        one = report_for(released, noise_scale=4.0, prior=prior, loss=loss)
        other = report_for(released, noise_scale=4.0, prior=prior, loss=by_table)
        assert one.value == other.value
        assert one.expected_loss == pytest.approx(other.expected_loss, rel=1e-12)


def test_reports_are_never_worse_than_what_was_released() -> None:
    rng = np.random.default_rng(2)
    for loss in LOSSES:
        prior = rng.dirichlet(np.ones(8))
        plain = prior @ (truncated_geometric(7, 0.6) * table_of(loss, 7)).sum(axis=1)
        assert loss_of_reports(prior, loss, 0.6) <= plain + 1e-12


def test_without_beliefs_the_report_is_the_noisy_count() -> None:
    prior = np.full(101, 1 / 101)
    for loss in LOSSES:
        assert report_for(50, noise_scale=2.0, prior=prior, loss=loss).value == 50


@pytest.mark.parametrize(
    ("loss", "value"), [(PowerLoss(1), 2), (PowerLoss(2), 4), (ZeroOneLoss(), 2)]
)
def test_of_equal_reports_the_smallest_is_given(loss: Loss, value: int) -> None:
    prior = np.zeros(10)
    prior[[2, 7]] = 0.5  # equally far from what was released; the mean is 4.5
    assert report_for(4.5, noise_scale=3.0, prior=prior, loss=loss).value == value


def test_a_belief_that_the_release_all_but_excludes_is_still_a_belief() -> None:
    prior = np.zeros(1_000_001)
    prior[[10, 20]] = 0.5
    report = report_for(1e6, noise_scale=0.1, prior=prior, loss=PowerLoss(2))
    assert report.value == 20
    assert report.expected_loss == pytest.approx(0.0, abs=1e-12)


def test_extra_penalty_for_reporting_too_few_raises_the_report() -> None:
    distance = np.subtract.outer(np.arange(21.0), np.arange(21.0))
    prior = np.full(21, 1 / 21)
    careful = LossTable(np.where(distance > 0, 9 * distance, -distance))
    assert report_for(10, noise_scale=3.0, prior=prior, loss=PowerLoss(1)).value == 10
    assert report_for(10, noise_scale=3.0, prior=prior, loss=careful).value > 12


@pytest.mark.parametrize(
    "prior", [[0.5, 0.6], [1.5, -0.5], [math.nan, 1.0], [], [[1.0]], [0.5, 0.5 - 1e-6]]
)
def test_an_invalid_prior_is_refused(prior: list[float]) -> None:
    with pytest.raises(ValueError, match="prior"):
        report_for(1, noise_scale=1.0, prior=np.array(prior), loss=ZeroOneLoss())


@pytest.mark.parametrize("posterior", [[0.5, 0.6], [math.nan], []])
def test_an_invalid_posterior_is_refused(posterior: list[float]) -> None:
    with pytest.raises(ValueError, match="posterior"):
        best_report(np.array(posterior), ZeroOneLoss())


def test_clamping_changes_no_posterior() -> None:
    # The column of the clamped channel itself, for each value that it can release.
    prior, alpha = np.random.default_rng(3).dirichlet(np.ones(6)), 0.7
    joint = prior[:, np.newaxis] * truncated_geometric(5, alpha)
    for released in range(6):
        found = count_posterior(released, noise_scale=-1 / math.log(alpha), prior=prior)
        np.testing.assert_allclose(found, joint[:, released] / joint[:, released].sum())
    beyond = count_posterior(9.5, noise_scale=-1 / math.log(alpha), prior=prior)
    np.testing.assert_allclose(beyond, joint[:, 5] / joint[:, 5].sum())


@pytest.mark.parametrize("noise_scale", [0.0, -1.0, math.inf, math.nan])
def test_noise_without_a_size_is_refused(noise_scale: float) -> None:
    with pytest.raises(ValueError, match="scale"):
        report_for(1, noise_scale=noise_scale, prior=np.ones(1), loss=ZeroOneLoss())


@pytest.mark.parametrize("released", [math.inf, math.nan])
def test_a_release_that_is_no_number_is_refused(released: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        report_for(released, noise_scale=1.0, prior=np.ones(1), loss=ZeroOneLoss())


@pytest.mark.parametrize("exponent", [0.5, 17.0, math.nan])
def test_a_loss_that_is_not_convex_or_no_number_is_refused(exponent: float) -> None:
    with pytest.raises(ValueError, match="exponent"):
        PowerLoss(exponent)


@pytest.mark.parametrize("losses", [np.ones(3), np.ones((2, 3)), np.array([[math.inf]])])
def test_an_invalid_table_of_losses_is_refused(losses: Floats) -> None:
    with pytest.raises(ValueError, match="losses"):
        LossTable(losses)


def test_a_table_of_losses_for_other_counts_is_refused() -> None:
    with pytest.raises(ValueError, match="losses for 3 counts"):
        report_for(1, noise_scale=1.0, prior=np.ones(1), loss=LossTable(np.eye(3)))


def estimate(value: float, *scales: float) -> Posterior:
    return Posterior(value, law_of_noise(np.array(scales)))


def test_an_estimate_of_one_measurement_has_the_posterior_of_its_noise() -> None:
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    found = posterior_under(estimate(1.7, 2.0), prior)
    assert found == pytest.approx(count_posterior(1.7, noise_scale=2.0, prior=prior))


def test_an_estimate_of_several_is_weighed_by_the_law_of_their_sum() -> None:
    rng = np.random.default_rng(2)
    prior = rng.dirichlet(np.ones(12))
    truths = rng.choice(12, size=2_000_000, p=prior)
    seen = truths + rng.laplace(scale=2.0, size=truths.size) + rng.laplace(size=truths.size)
    near = truths[np.abs(seen - 4.0) < 0.5]
    simulated = np.bincount(near, minlength=12) / near.size
    assert posterior_under(estimate(4.0, 2.0, 1.0), prior) == pytest.approx(simulated, abs=0.01)


def test_a_prior_far_from_the_estimate_is_weighed_all_the_same() -> None:
    prior = np.zeros(2001)
    prior[[1000, 2000]] = 0.5
    found = posterior_under(estimate(0.0, 2.0, 1.0), prior)
    assert found[1000] == pytest.approx(1.0)


def test_a_number_without_noise_needs_no_posterior() -> None:
    with pytest.raises(ValueError, match="without noise"):
        posterior_under(estimate(3.0), np.array([1.0]))


def mixed(value: float, deviation: float, *scales: float) -> Posterior:
    return Posterior(value, law_of_noise(np.array(scales), gaussian=deviation))


def test_an_estimate_with_one_gaussian_noise_is_weighed_by_its_density() -> None:
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    expected = prior * np.exp(-np.square(np.arange(4) - 1.7) / 8)
    assert posterior_under(mixed(1.7, 2.0), prior) == pytest.approx(expected / expected.sum())
    # Beyond the range, a Gaussian release still says how far beyond it is.
    expected = prior * np.exp(-np.square(np.arange(4) - 9.0) / 8)
    assert posterior_under(mixed(9.0, 2.0), prior) == pytest.approx(expected / expected.sum())


def test_an_estimate_with_noise_of_both_kinds_is_weighed_by_the_law_of_their_sum() -> None:
    rng = np.random.default_rng(2)
    prior = rng.dirichlet(np.ones(12))
    truths = rng.choice(12, size=2_000_000, p=prior)
    seen = truths + rng.laplace(scale=1.5, size=truths.size) + rng.normal(0, 2.0, truths.size)
    near = truths[np.abs(seen - 4.0) < 0.5]
    simulated = np.bincount(near, minlength=12) / near.size
    assert posterior_under(mixed(4.0, 2.0, 1.5), prior) == pytest.approx(simulated, abs=0.01)
    assert posterior_under(mixed(4.0, 2.6, 1.5), prior) != pytest.approx(simulated, abs=0.01)


@pytest.mark.parametrize(
    ("deviation", "scale", "nearest"), [(5.0, 1.0, 60), (1.0, 3.0, 200), (20.0, 0.5, 200)]
)
def test_a_prior_far_from_an_estimate_of_both_kinds_is_weighed_by_its_density(
    deviation: float, scale: float, nearest: int
) -> None:
    prior = np.zeros(nearest + 10)
    far = nearest + np.array([0, 1, 4])
    prior[far] = [0.5, 0.25, 0.25]
    found = posterior_under(mixed(0.0, deviation, scale), prior)[far]
    tails = [
        partial_fractions_tail(np.array([scale]), z, deviation)
        for z in np.concatenate((far - 1e-4, far + 1e-4)).tolist()
    ]
    expected = prior[far] * (np.array(tails[:3]) - np.array(tails[3:]))
    assert tails[0] < 1e-10
    assert found == pytest.approx(expected / expected.sum(), rel=1e-6)


@given(
    weights=st.dictionaries(st.integers(0, 30), st.integers(1, 9), min_size=1, max_size=12),
    confidence=st.sampled_from([0.01, 0.3, 0.5, 0.75, 0.9, 0.95, 0.999]),
)
def test_a_credible_interval_is_the_shortest_that_is_probable_enough(
    weights: dict[int, int], confidence: float
) -> None:
    """Against every pair of counts, with exact probabilities."""
    prior = CountPrior.of_weights(weights)
    found = credible_interval(
        np.array(prior.counts, np.float64), np.array(prior.probabilities), confidence
    )
    total = sum(weights.values())
    masses = {
        (low, high): Fraction(sum(w for k, w in weights.items() if low <= k <= high), total)
        for low in weights
        for high in weights
    }
    enough = [ends for ends, mass in masses.items() if mass >= Fraction(confidence) - TOLERATED]
    expected = min(enough, key=lambda ends: (ends[1] - ends[0], -masses[ends], ends))
    assert (found.low, found.high) == expected
    assert found.probability == pytest.approx(float(masses[expected]))


@pytest.mark.parametrize("confidence", [0.0, 1.0, math.nan])
def test_an_interval_needs_a_confidence_between_0_and_1(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        credible_interval(np.zeros(1), np.ones(1), confidence)


N_WORLDS = 4000


def test_under_its_prior_an_interval_holds_the_truth_as_often_as_stated() -> None:
    """Truths from the prior, noisy counts from the geometric law.

    The share of intervals that hold their truth is within four standard errors of the mean of the
    stated probabilities: a false alarm in 1 of 16,000 runs. Intervals that take the noise for half
    as large are outside.
    """
    rng = np.random.default_rng(5)
    prior = CountPrior.of_weights({count: 1 + count % 5 for count in range(0, 60, 2)})
    counts, probabilities = np.array(prior.counts, np.float64), np.array(prior.probabilities)
    alpha = 0.8
    truths = rng.choice(counts, size=N_WORLDS, p=probabilities)
    noises = rng.geometric(1 - alpha, N_WORLDS) - rng.geometric(1 - alpha, N_WORLDS)
    gaps = []
    for shrink in (1.0, 0.5):
        scale, held, stated = -shrink / math.log(alpha), 0, 0.0
        for truth, noise in zip(truths, noises, strict=True):
            law = law_under(estimate(truth + noise, scale), counts, probabilities)
            one = credible_interval(counts, law, 0.8)
            held, stated = held + (one.low <= truth <= one.high), stated + one.probability
        gaps.append((held - stated) / math.sqrt(0.25 * N_WORLDS))
    assert abs(gaps[0]) < 4 < abs(gaps[1])


@pytest.mark.parametrize(
    ("counts", "probabilities"),
    [
        ((), ()),
        ((1,), (0.5, 0.5)),
        ((-1,), (1.0,)),
        ((2, 1), (0.5, 0.5)),
        ((1, 1), (0.5, 0.5)),
        ((10**6 + 1,), (1.0,)),
        ((1, 2), (0.5, 0.6)),
        (tuple(range(10_001)), (1 / 10_001,) * 10_001),
    ],
)
def test_what_is_no_prior_over_counts_is_refused(
    counts: tuple[int, ...], probabilities: tuple[float, ...]
) -> None:
    with pytest.raises(ValueError, match="a prior"):
        CountPrior(counts, probabilities)


@pytest.mark.parametrize("weights", [{1: 0.0}, {1: -1.0, 2: 2.0}, {1: math.inf}, {1: math.nan}])
def test_weights_that_make_no_prior_are_refused(weights: dict[int, float]) -> None:
    with pytest.raises(ValueError, match="weights"):
        CountPrior.of_weights(weights)
