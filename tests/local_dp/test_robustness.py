"""How often noise changes a decision: the grid of the specification, limits, kinds of noise."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from cube.measurement import UNITS_PER_EPSILON
from local_dp.channels.channel import Floats
from local_dp.channels.choice import AnyChannel, best_channel
from local_dp.channels.local_hashing import LocalHashing
from local_dp.channels.unary_encoding import UnaryEncoding
from local_dp.robustness import (
    LaplaceNoise,
    RandomisedAnswers,
    TableNoise,
    doubt_of_release,
    flip_probability,
)


@dataclass(frozen=True)
class GeometricNoise:
    """Whole noise, two-sided geometric: no server of ours adds it, and others may.

    Parameters
    ----------
    ratio : Fraction
        Of neighbouring probabilities, ``exp(-epsilon / sensitivity)``.
    """

    ratio: Fraction

    def tables(self, table: Floats, n_draws: int, generator: np.random.Generator) -> Floats:
        """The difference of two geometric variables is added."""
        shape = (2, n_draws, *table.shape)
        one, other = generator.geometric(1 - float(self.ratio), shape)
        return np.asarray(table + one - other)

    def truths(self, noisy: Floats, n_draws: int, generator: np.random.Generator) -> Floats:
        """Less noise, which is as often positive as negative."""
        return np.maximum(self.tables(noisy, n_draws, generator), 0.0)


EPSILON = 0.1  # Laplace noise of scale 20: one row is replaced by another
GRID = {  # the number of records and phi: the probability, of 20,000 draws
    (2_000, 0.0): 0.116,
    (2_000, 0.02): 0.198,
    (2_000, 0.03): 0.301,
    (2_000, 0.05): 0.404,
    (2_000, 0.10): 0.027,
    (7_000, 0.0): 0.010,
    (7_000, 0.02): 0.323,
    (7_000, 0.03): 0.190,
    (7_000, 0.05): 0.002,
    (7_000, 0.10): 0.0,
    (12_000, 0.0): 0.001,
    (12_000, 0.02): 0.314,
    (12_000, 0.03): 0.009,
    (12_000, 0.05): 0.0,
    (22_000, 0.0): 0.0,
    (22_000, 0.02): 0.007,
    (22_000, 0.03): 0.0,
}


def associated(n: int, phi: float) -> Floats:
    return n * np.array([[0.25 + phi / 4, 0.25 - phi / 4], [0.25 - phi / 4, 0.25 + phi / 4]])


def check_grid(n_draws: int) -> None:
    for (n, phi), expected in GRID.items():
        found = flip_probability(
            associated(n, phi),
            LaplaceNoise(2 / EPSILON),
            generator=np.random.default_rng(n),
            n_draws=n_draws,
        )
        assert found.statistic == pytest.approx(n * phi**2, rel=0.01, abs=1e-6)
        assert found.critical == pytest.approx(3.8415, abs=1e-4)
        likely = max(expected, 0.001)
        # Both are simulated; what is printed is rounded.
        error = math.sqrt(likely * (1 - likely) * (1 / n_draws + 1 / 20_000))
        assert abs(found.probability - expected) <= 3 * error + 0.0005


def test_the_grid_of_the_specification() -> None:
    """Within 3 standard errors each: all 17 together with odds of .04 against, but seeded."""
    check_grid(4_000)


@pytest.mark.slow
def test_the_grid_of_the_specification_with_all_draws() -> None:
    check_grid(20_000)


def test_a_box_of_noise_is_as_wide_as_its_tails_say() -> None:
    """All four cells are within 4.363 scales in 95 % of tables; the published box has 9 sigma.

    100,000 tables: .003 is 4 standard errors.
    """
    within = 1 - math.exp(-4.363)  # one cell
    assert within**4 == pytest.approx(0.95, abs=1e-4)
    drawn = LaplaceNoise(20.0).tables(np.zeros((2, 2)), 100_000, np.random.default_rng(6))
    assert (np.abs(drawn) <= 4.363 * 20).all(axis=(1, 2)).mean() == pytest.approx(0.95, abs=0.003)
    # What was printed: 9 sigma with another sigma, Chebyshev's bound, and two digits exchanged.
    sigma = math.sqrt(2) * 2 / EPSILON
    assert (sigma, 9 * sigma) == pytest.approx((28.28, 254.6), abs=0.05)
    assert 9 * math.sqrt(2 * 2 / EPSILON) == pytest.approx(56.9, abs=0.05)
    assert math.isclose(0.9876**4, 0.9513, abs_tol=5e-5)
    assert math.exp(-9 * math.sqrt(2)) == pytest.approx(3.0e-6, rel=0.02)
    assert 1 - (1 - math.exp(-9 * math.sqrt(2))) ** 4 == pytest.approx(1.2e-5, rel=0.02)


@pytest.mark.parametrize("phi", [0.0, 0.05])
def test_the_more_epsilon_the_fewer_flips_in_the_end(phi: float) -> None:
    """2,000 records, whose noise at epsilon .1 flips .116 and .404: at epsilon 8 none is left."""
    rng = np.random.default_rng(7)
    found = [
        flip_probability(associated(2_000, phi), noise, generator=rng, n_draws=4_000).probability
        for epsilon in (0.1, 1.0, 8.0)
        for noise in (LaplaceNoise(2 / epsilon),)
    ]
    assert found == sorted(found, reverse=True)
    assert found[0] > 0.1
    # At phi = .05 the statistic is 5.0, and 3.8 is critical: with little noise it stays.
    assert found[-1] < 0.001


def test_the_further_from_the_critical_value_the_fewer_flips() -> None:
    """Either way, for one size of the table: 4,000 draws, with differences of .05 and more."""
    rng = np.random.default_rng(8)
    found = {
        phi: flip_probability(
            associated(7_000, phi), LaplaceNoise(20.0), generator=rng, n_draws=4_000
        ).probability
        for phi in (0.0, 0.015, 0.0234, 0.035, 0.06)
    }
    assert found[0.0] < found[0.015] - 0.05 < found[0.0234] - 0.1
    assert found[0.06] < found[0.035] - 0.05 < found[0.0234] - 0.1
    assert max(found[0.0], found[0.06]) < 0.02


def test_geometric_noise_of_equal_variance_does_about_the_same() -> None:
    """20,000 draws: .02 is 4 standard errors."""
    scale = 20.0
    ratio = Fraction(math.exp(-1 / scale))
    table = associated(2_000, 0.05)
    rng = np.random.default_rng(1)
    one = flip_probability(table, LaplaceNoise(scale), generator=rng)
    other = flip_probability(table, GeometricNoise(ratio), generator=rng)
    assert one.probability == pytest.approx(other.probability, abs=0.02)
    noise = GeometricNoise(ratio).tables(np.zeros((2, 2)), 50_000, rng)
    assert noise.var() == pytest.approx(2 * float(ratio) / (1 - float(ratio)) ** 2, rel=0.03)


@pytest.mark.parametrize("noise", [LaplaceNoise(1e-6), GeometricNoise(Fraction(1, 10**9))])
def test_without_noise_nothing_flips(noise: TableNoise) -> None:
    for phi in (0.0, 0.1):
        found = flip_probability(
            associated(2_000, phi), noise, generator=np.random.default_rng(2), n_draws=200
        )
        assert found.probability == 0
        assert found.is_dependent == (phi > 0)


def test_local_noise_flips_far_more_often_than_central_noise_of_the_same_epsilon() -> None:
    """7,000 people and no dependence, which the noise of answers looks like; 1,000 draws."""
    table = associated(7_000, 0.0)
    rng = np.random.default_rng(3)
    units = int(EPSILON * UNITS_PER_EPSILON)
    central = flip_probability(table, LaplaceNoise(2 / EPSILON), generator=rng, n_draws=1_000)
    local = flip_probability(
        table, RandomisedAnswers(best_channel(4, units)), generator=rng, n_draws=1_000
    )
    assert central.probability < 0.03
    assert local.probability > 0.5
    # With as much epsilon as nobody would give, it does not.
    clear = flip_probability(
        associated(7_000, 0.1),
        RandomisedAnswers(best_channel(4, 8 * UNITS_PER_EPSILON)),
        generator=rng,
        n_draws=200,
    )
    assert clear.probability == 0


@pytest.mark.parametrize(
    "channel",
    [
        best_channel(4, UNITS_PER_EPSILON),
        UnaryEncoding.for_epsilon(4, UNITS_PER_EPSILON),
        LocalHashing.for_epsilon(4, UNITS_PER_EPSILON),
    ],
    ids=repr,
)
def test_local_tables_are_unbiased_for_the_given_counts(channel: UnaryEncoding) -> None:
    """2,000 draws, 4 standard errors."""
    table = np.array([[300.0, 100.0], [50.0, 550.0]])
    found = RandomisedAnswers(channel).tables(table, 2_000, np.random.default_rng(4))
    error = found.std(axis=0) / math.sqrt(2_000)
    assert (np.abs(found.mean(axis=0) - table) < 4 * error).all()
    assert np.allclose(found.sum(axis=(1, 2)), 1000)


def calibration(
    declared: TableNoise,
    drawn: TableNoise,
    truths: Floats,
    inside: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[float, float, float]:
    """How often releases are said to be wrong, how often they are, and the error of both.

    Of tables that are drawn evenly from a box, for releases so far inside of it that its ends don't
    matter: then what is known of the table after a release is what the doubt is made of.
    """
    doubts, wrong = [], []
    for truth in truths:
        noisy = drawn.tables(truth, 1, rng)[0]
        if noisy.min() < inside[0] or noisy.max() > inside[1]:
            continue
        found = doubt_of_release(noisy, declared, generator=rng, n_draws=50)
        doubts.append(found.probability)
        without = flip_probability(truth, NOTHING, generator=rng, n_draws=1)
        wrong.append(found.is_dependent != without.is_dependent)
    error = math.sqrt(np.var(np.array(wrong) - np.array(doubts)) / len(wrong))
    return float(np.mean(doubts)), float(np.mean(wrong)), error


NOTHING = GeometricNoise(Fraction(1, 10**12))


@pytest.mark.parametrize("noise", [LaplaceNoise(20.0), GeometricNoise(Fraction(20, 21))])
def test_a_release_is_as_often_wrong_as_it_is_doubted(noise: TableNoise) -> None:
    """Central noise, some 2,000 releases: within 4 standard errors; half the noise is noticed."""
    rng = np.random.default_rng(9)
    truths = rng.integers(100, 601, (12_000, 2, 2)).astype(float)
    said, is_wrong, error = calibration(noise, noise, truths, (200, 500), rng)
    assert 0.05 < is_wrong < 0.5
    assert error < 0.01
    assert abs(said - is_wrong) < 4 * error
    half = LaplaceNoise(10.0)
    said, is_wrong, error = calibration(half, noise, truths, (200, 500), rng)
    assert abs(said - is_wrong) > 4 * error


@pytest.mark.parametrize(
    "channel",
    [best_channel(4, UNITS_PER_EPSILON), UnaryEncoding.for_epsilon(4, UNITS_PER_EPSILON)],
    ids=repr,
)
def test_a_collection_is_as_often_wrong_as_it_is_doubted(channel: UnaryEncoding) -> None:
    """20,000 people whose answers have noise of some 1 % of them: within 4 standard errors."""
    rng = np.random.default_rng(10)
    shares = rng.uniform(0.2, 0.3, (16_000, 3))
    shares = np.column_stack([shares, 1 - shares.sum(axis=1)])
    shares = shares[(shares[:, 3] > 0.2) & (shares[:, 3] < 0.3)]
    truths = np.rint(20_000 * shares).reshape(-1, 2, 2)
    noise = RandomisedAnswers(channel)
    said, is_wrong, error = calibration(noise, noise, truths, (4_600, 5_400), rng)
    assert 0.05 < is_wrong < 0.5
    assert error < 0.025
    assert abs(said - is_wrong) < 4 * error


CHANNELS = (
    best_channel(4, UNITS_PER_EPSILON // 10),
    UnaryEncoding.for_epsilon(4, UNITS_PER_EPSILON // 10),
    LocalHashing.for_epsilon(4, UNITS_PER_EPSILON // 10),
)


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda one: type(one).__name__)
def test_where_some_are_asked_noise_is_larger_by_the_root_of_how_few(channel: AnyChannel) -> None:
    """At a small epsilon all of it is randomisation; a deviation of 20,000 draws is within .02."""
    table, rng = np.array([[6000.0, 4000.0], [3000.0, 7000.0]]), np.random.default_rng(15)
    every = RandomisedAnswers(channel).tables(table, 20_000, rng)
    some = RandomisedAnswers(channel, 2_000).tables(table, 20_000, rng)
    ratio = some.std(axis=0) / every.std(axis=0)
    assert ratio == pytest.approx(np.full((2, 2), 10**0.5), rel=0.03)
    assert np.abs(some.mean(axis=0) - table).max() < 5 * some.std(axis=0).max() / 20_000**0.5


def test_who_is_asked_is_drawn_without_replacement() -> None:
    """At the largest epsilon hardly anything is randomised: the law is the hypergeometric one."""
    table = np.array([[600.0, 400.0], [300.0, 700.0]])
    channel = best_channel(4, 16 * UNITS_PER_EPSILON)
    found = RandomisedAnswers(channel, 1_500).tables(table, 20_000, np.random.default_rng(16))
    shares = table / 2000
    variance = (2000 / 1500) ** 2 * 1500 * shares * (1 - shares) * 500 / 1999
    assert found.var(axis=0) == pytest.approx(variance, rel=0.06)


def test_a_release_of_few_answers_is_as_often_wrong_as_it_is_doubted() -> None:
    """Noise of some 1 % of the people, but from a fifth of them at a larger epsilon."""
    rng = np.random.default_rng(17)
    shares = rng.uniform(0.2, 0.3, (16_000, 3))
    shares = np.column_stack([shares, 1 - shares.sum(axis=1)])
    shares = shares[(shares[:, 3] > 0.2) & (shares[:, 3] < 0.3)]
    truths = np.rint(20_000 * shares).reshape(-1, 2, 2)
    channel = UnaryEncoding.for_epsilon(4, 4 * UNITS_PER_EPSILON)
    few = RandomisedAnswers(channel, 4_000)
    said, is_wrong, error = calibration(few, few, truths, (4_600, 5_400), rng)
    assert error < 0.025
    assert abs(said - is_wrong) < 4 * error
    every = RandomisedAnswers(channel)
    said, is_wrong, error = calibration(every, few, truths, (4_600, 5_400), rng)
    assert abs(said - is_wrong) > 4 * error, "as if everybody had been asked"


def test_where_no_count_is_small_doubt_is_how_often_the_noise_flips_such_a_table() -> None:
    """Noise that is as often positive as negative; 20,000 draws each: 4 standard errors."""
    rng = np.random.default_rng(11)
    for phi in (0.0, 0.03, 0.05):
        after = doubt_of_release(associated(2_000, phi), LaplaceNoise(20.0), generator=rng)
        before = flip_probability(associated(2_000, phi), LaplaceNoise(20.0), generator=rng)
        error = math.hypot(after.standard_error, before.standard_error)
        assert abs(after.probability - before.probability) < 4 * error
        assert (after.statistic, after.critical) == (before.statistic, before.critical)


@pytest.mark.parametrize(
    "noise",
    [
        LaplaceNoise(20.0),
        GeometricNoise(Fraction(20, 21)),
        RandomisedAnswers(best_channel(4, UNITS_PER_EPSILON)),
        RandomisedAnswers(UnaryEncoding.for_epsilon(4, UNITS_PER_EPSILON)),
        RandomisedAnswers(LocalHashing.for_epsilon(4, UNITS_PER_EPSILON)),
    ],
    ids=repr,
)
def test_tables_that_a_release_may_come_from_have_no_count_below_0(noise: TableNoise) -> None:
    """Though the release has. They are near it, and of as many people where that is known."""
    noisy = np.array([[450.0, -30.0], [20.0, 560.0]])
    truths = noise.truths(noisy, 2_000, np.random.default_rng(12))
    assert truths.shape == (2_000, 2, 2)
    assert truths.min() == 0
    assert np.abs(truths.mean(axis=0) - np.maximum(noisy, 0)).max() < 40
    if isinstance(noise, RandomisedAnswers):
        assert np.allclose(truths.sum(axis=(1, 2)), 1000)
    found = doubt_of_release(noisy, noise, generator=np.random.default_rng(13), n_draws=500)
    assert found.is_dependent
    assert found.probability < 0.01


def test_respondents_who_are_fewer_than_cells_are_not_rounded_away() -> None:
    """100 people in 256 cells of .39 each, at an epsilon at which half of true bits are heard.

    Those who are not heard raise the table that the release may come from by one, in as many cells:
    50 of 100. 50 draws, with a standard error of .7.
    """
    channel = UnaryEncoding.for_epsilon(256, 8 * UNITS_PER_EPSILON)
    noisy = np.full((16, 16), 100 / 256)
    truths = RandomisedAnswers(channel).truths(noisy, 50, np.random.default_rng(14))
    assert np.allclose(truths.sum(axis=(1, 2)), 100)
    assert (truths > 1).sum(axis=(1, 2)).mean() == pytest.approx(50, abs=3)


def test_what_is_no_table_is_refused() -> None:
    rng = np.random.default_rng(5)
    for table in (np.ones(4), np.ones((1, 4)), -np.ones((2, 2)), np.zeros((2, 2))):
        with pytest.raises(ValueError, match="table"):
            flip_probability(table, LaplaceNoise(1.0), generator=rng)
        with pytest.raises(ValueError, match="table"):
            doubt_of_release(table, LaplaceNoise(1.0), generator=rng)
    with pytest.raises(ValueError, match="cells"):
        flip_probability(
            np.ones((2, 3)), RandomisedAnswers(UnaryEncoding(4, Fraction(1, 4))), generator=rng
        )
    local = RandomisedAnswers(UnaryEncoding(4, Fraction(1, 4)))
    with pytest.raises(ValueError, match="whole numbers"):
        flip_probability(np.array([[0.02, 0.48], [0.25, 0.25]]), local, generator=rng)
    with pytest.raises(ValueError, match="at least one respondent"):
        doubt_of_release(np.full((2, 2), 0.2), local, generator=rng)
    with pytest.raises(ValueError, match="scale"):
        LaplaceNoise(0.0)
    with pytest.raises(ValueError, match="level"):
        flip_probability(np.ones((2, 2)), LaplaceNoise(1.0), generator=rng, level=1.0)
