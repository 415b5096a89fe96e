"""Joint draws against laws, least squares, and the sampler that refines noise."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from accountant.noise.sampling import Refinement
from cube.axis import IntegerAxis
from cube.measurement import Measurement, Weight
from cube.query import Factor, LinearQuery, Partition, QueryBlock, counting
from cube.schema import Schema
from inference import joint
from inference.error_terms import ErrorTerms
from inference.estimator import Estimator
from inference.history import History
from inference.joint import draw_errors
from inference.noise_law.law import NoiseLaw, law_of_noise
from inference.posterior import Posterior
from tests.support.cubes import dense_rows

FALSE_ALARM = 1e-9  # probability that one comparison fails although all is right
N_DRAWS = 60_000
WRONG_SCALE = 1.2  # an error that every comparison of laws has to catch
CONFIDENCE = 0.9
SIZES = {"x": 3, "y": 2}
SCHEMA = Schema(
    table="t",
    axes=tuple(IntegerAxis(name=name, low=0, high=size - 1) for name, size in SIZES.items()),
    n_records_max=10_000,
)
TOTAL = QueryBlock(counting())
GROUPS = QueryBlock(counting(), Partition(("x",), np.arange(3)))
CELLS = QueryBlock(counting(), Partition(("x", "y"), np.arange(6).reshape(3, 2)))
FIRST_Y = QueryBlock(counting([Factor(("y",), np.array([1, 0]))]))


def bought(block: QueryBlock, weight: float, supersedes: int | None = None) -> Measurement:
    paid = Weight.at_least(weight)
    scale = math.nextafter(1 / float(paid.exact), math.inf)
    return Measurement(block, paid, 20, scale, (0,) * block.n_rows, supersedes)


def known(measurements: Sequence[Measurement]) -> Estimator:
    estimator = Estimator(SCHEMA)
    estimator.add(measurements)
    return estimator


def answers(estimator: Estimator, *blocks: QueryBlock) -> list[Posterior]:
    rows = [row for block in blocks for row in estimator.estimate(block, CONFIDENCE)]
    found = [row for row in rows if isinstance(row, Posterior)]
    assert len(found) == len(rows)
    return found


def multiple(block: QueryBlock, factor: Fraction, constant: int) -> QueryBlock:
    query = block.query.scaled(factor) + LinearQuery((), Fraction(constant))
    return QueryBlock(query, block.partition)


def distance(draws: NDArray[np.float64], law: NoiseLaw) -> float:
    """Kolmogorov's, over a grid of 199 points: never more than over all of them."""
    points = np.array([law.half_width(confidence) for confidence in np.linspace(0.01, 0.99, 99)])
    points = np.concatenate([-points[::-1], [0.0], points])
    below = np.searchsorted(np.sort(draws), points, side="right") / draws.size
    above = np.array([law.tail(z) for z in points.tolist()])
    return float(np.abs(below + above - 1).max())


def allowed_distance(n_draws: int) -> float:
    """Exceeded with probability FALSE_ALARM at most: Dvoretzky, Kiefer, Wolfowitz and Massart."""
    return math.sqrt(math.log(2 / FALSE_ALARM) / (2 * n_draws))


def allowed_share(n_draws: int) -> float:
    """What a share of draws strays by with probability FALSE_ALARM at most: Hoeffding."""
    return math.sqrt(math.log(2 / FALSE_ALARM) / (2 * n_draws))


def check_law(draws: NDArray[np.float64], law: NoiseLaw) -> None:
    """The law is right, and would be found out if its scales were wrong by a fifth."""
    assert distance(draws, law) <= allowed_distance(draws.size)
    for factor in (WRONG_SCALE, 1 / WRONG_SCALE):
        wrong = law_of_noise(law.scales * factor)
        assert distance(draws, wrong) > allowed_distance(draws.size)


def check_moments(
    draws: NDArray[np.float64], covariance: NDArray[np.float64], n_deviations: float = 6.2
) -> None:
    """Sample covariances within 6.2 standard errors: odds of 6e-10 each, the sums being normal."""
    for i, j in np.ndindex(covariance.shape):
        products = draws[i] * draws[j]
        error = products.std() / math.sqrt(products.size)
        assert abs(products.mean() - covariance[i, j]) <= n_deviations * error


def test_each_answer_has_the_law_it_claims() -> None:
    """Alone, read off cells, combined; multiplied by a negative number; raised afterwards."""
    history = [bought(CELLS, 1.0), bought(TOTAL, 0.5), bought(FIRST_Y, 0.25)]
    estimator = known(history)
    some = QueryBlock(counting([Factor(("x",), np.array([1, 3, 0]))]))
    asked = [CELLS, TOTAL, GROUPS, FIRST_Y, multiple(some, Fraction(-1, 3), 5)]
    before = answers(estimator, *asked)
    estimator.add([bought(CELLS, 2.0, supersedes=0), bought(TOTAL, 4.0, supersedes=1)])
    posteriors = [*before, *answers(estimator, *asked)]
    assert len(posteriors) == 2 * (6 + 1 + 3 + 1 + 1)
    draws = draw_errors(posteriors, estimator.history, N_DRAWS, np.random.default_rng(11))
    for row, posterior in zip(draws, posteriors, strict=True):
        check_law(row, posterior.law)


def test_answers_vary_together_as_least_squares_says() -> None:
    """Best estimates have the covariance ``2 Q pinv(H' W**2 H) Q'``, from scratch and dense."""
    history = [bought(GROUPS, 1.0), bought(FIRST_Y, 2.0), bought(TOTAL, 0.5), bought(CELLS, 0.25)]
    asked = [GROUPS, TOTAL, multiple(FIRST_Y, Fraction(-2), 1)]
    rows = np.array(
        [row for one in history for row in dense_rows(one.block, SIZES)], dtype=np.float64
    )
    weights = np.concatenate([np.full(one.block.n_rows, 1 / one.noise_scale) for one in history])
    wanted = np.array([row for one in asked for row in dense_rows(one, SIZES)], dtype=np.float64)
    information = (rows.T * np.square(weights)) @ rows
    covariance = 2 * wanted @ np.linalg.pinv(information) @ wanted.T
    estimator = known(history)
    posteriors = answers(estimator, *asked)
    draws = draw_errors(posteriors, estimator.history, N_DRAWS, np.random.default_rng(12))
    assert np.abs(covariance[np.triu_indices(5, 1)]).min() > 0.01
    check_moments(draws, covariance)
    with pytest.raises(AssertionError):
        check_moments(draws, covariance * WRONG_SCALE**2)
    with pytest.raises(AssertionError):  # what forgetting that noise is shared would claim
        check_moments(draws, np.diag(covariance.diagonal()))


def test_a_multiple_has_the_error_of_its_row_times_the_factor() -> None:
    estimator = known([bought(CELLS, 1.0), bought(GROUPS, 1.0)])
    posteriors = answers(estimator, TOTAL, multiple(TOTAL, Fraction(2), 3), TOTAL)
    posteriors += answers(estimator, multiple(TOTAL, Fraction(-1, 3), 3))
    assert posteriors[1].value == 2 * posteriors[0].value + 3
    draws = draw_errors(posteriors, estimator.history, 100, np.random.default_rng(13))
    np.testing.assert_allclose(draws[1], 2 * draws[0], rtol=1e-12)
    np.testing.assert_allclose(draws[2], draws[0], rtol=1e-12)
    np.testing.assert_allclose(draws[3], -draws[0] / 3, rtol=1e-12)


def tails_that_meet(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """How often both are positive, or both in the outer half of their absolute values."""
    same_sign = ((first > 0) & (second > 0)).mean()
    outer = [np.abs(one) > np.median(np.abs(one)) for one in (first, second)]
    return float(max(abs(same_sign - 1 / 4), abs((outer[0] & outer[1]).mean() - 1 / 4)))


def test_answers_from_different_measurements_have_independent_errors() -> None:
    """Other rows of a block, other blocks, and a second measurement that was not a raise."""
    estimator = known([bought(GROUPS, 1.0), bought(FIRST_Y, 1.0)])
    posteriors = answers(estimator, GROUPS, FIRST_Y)
    later = known([bought(GROUPS, 1.0), bought(FIRST_Y, 1.0), bought(FIRST_Y, 3.0)])
    terms = ErrorTerms(np.array([2]), np.array([0]), np.ones(1))
    posteriors.append(Posterior(0.0, law_of_noise(np.array([1 / 3])), terms=terms))
    draws = draw_errors(posteriors, later.history, N_DRAWS, np.random.default_rng(14))
    for i in range(len(draws)):
        for j in range(i):
            # The medians are those of the draws: twice the room is enough for that.
            assert tails_that_meet(draws[i], draws[j]) <= 2 * allowed_share(N_DRAWS)
    assert tails_that_meet(draws[0], draws[0] + draws[1]) > 2 * allowed_share(N_DRAWS)


def chain(weights: Sequence[float], block: QueryBlock = TOTAL) -> tuple[History, list[Posterior]]:
    """A block raised from weight to weight, and its first row's answer after each purchase."""
    history = [
        bought(block, weight, place - 1 if place else None) for place, weight in enumerate(weights)
    ]
    estimator, posteriors = Estimator(SCHEMA), []
    for one in history:
        estimator.add([one])
        posteriors.append(answers(estimator, block)[0])
    return estimator.history, posteriors


@pytest.mark.parametrize("used", [(0, 1, 2), (2, 0), (1, 0), (2, 1)])
def test_answers_before_and_after_raises_have_the_joint_law_of_the_raises(
    used: tuple[int, ...],
) -> None:
    """The later noise, and an independent jump that is nothing as often as the law says."""
    weights = (0.5, 1.0, 1.25)
    history, posteriors = chain(weights, GROUPS)
    asked = [posteriors[place] for place in used]
    draws = dict(
        zip(used, draw_errors(asked, history, N_DRAWS, np.random.default_rng(15)), strict=True)
    )
    scales = [1 / weight for weight in weights]
    for place in used:
        check_law(draws[place], law_of_noise(np.array([scales[place]])))
    for earlier in used:
        for later in (place for place in used if place > earlier):
            jump = draws[earlier] - draws[later]
            stays = (scales[later] / scales[earlier]) ** 2
            is_still = np.abs(jump) < 1e-12 * np.abs(draws[earlier])
            assert abs(is_still.mean() - stays) <= allowed_share(N_DRAWS)
            check_law(jump[~is_still], law_of_noise(np.array([scales[earlier]])))
            both = np.stack([jump, draws[later]])
            variance = 2 * np.array([scales[earlier] ** 2, scales[later] ** 2])
            check_moments(both, np.diag([variance[0] - variance[1], variance[1]]))
            moved = both[:, ~is_still]
            assert tails_that_meet(moved[0], moved[1]) <= 2 * allowed_share(moved.shape[1])


def test_the_raises_of_a_chain_jump_independently() -> None:
    history, posteriors = chain((0.5, 1.0, 1.25))
    draws = draw_errors(posteriors, history, N_DRAWS, np.random.default_rng(16))
    first, second = draws[0] - draws[1], draws[1] - draws[2]
    covariance = 2 * np.array([[4.0, 1, 0.64], [1, 1, 0.64], [0.64, 0.64, 0.64]])
    check_moments(draws, covariance)
    check_moments(np.stack([first, second]), np.diag([6.0, 0.72]))
    moved = [np.abs(one) > 1e-12 for one in (first, second)]
    assert abs((moved[0] & moved[1]).mean() - 0.75 * 0.36) <= allowed_share(N_DRAWS)


def test_the_joint_law_is_the_one_that_refined_noise_is_drawn_from() -> None:
    """Sums and differences of both noises, against the exact sampler on a fine lattice.

    The sampler draws from the system's entropy, so that every run is another: the odds are those
    of two comparisons of two empirical laws each, FALSE_ALARM a law.
    """
    n_refined, n_steps = 40_000, 2000
    history, posteriors = chain((0.5, 1.0))
    draws = draw_errors(posteriors, history, N_DRAWS, np.random.default_rng(17))
    refinement = Refinement.of_scales(2.0 * n_steps, 1.0 * n_steps)
    coarse = np.random.default_rng(18).laplace(scale=2.0 * n_steps, size=n_refined).round()
    fine = np.array([refinement.draw(int(one)) for one in coarse])
    # Two variables lie on the lattice, and have densities of at most 1/2 but for the atom at 0.
    allowed = allowed_distance(N_DRAWS) + allowed_distance(n_refined) + 1 / n_steps
    points = np.linspace(-6, 6, 97) + 0.5 / n_steps  # between the lattice's
    for sign in (-1, 1):
        drawn, refined, unrelated = (
            np.searchsorted(np.sort(one), points) / one.size
            for one in (
                draws[0] + sign * draws[1],
                (coarse + sign * fine) / n_steps,
                draws[0] + sign * draws[1][::-1],
            )
        )
        assert np.abs(drawn - refined).max() <= allowed
        assert np.abs(drawn - unrelated).max() > allowed


@pytest.mark.parametrize("step", [0.001, 0.1, 2.0])
@pytest.mark.parametrize("scales", [(2.0, 1.0), (1.001, 1.0), (50.0, 0.3)])
def test_on_a_lattice_a_jump_is_nothing_hardly_less_often(
    scales: tuple[float, float], step: float
) -> None:
    """The chance by the law of the refinement's proof, against the bound that is stated here."""
    coarse, fine = (math.exp(-step / scale) for scale in scales)
    on_lattice = fine / coarse * ((1 - coarse) / (1 - fine)) ** 2
    sines = math.sinh(step / 2 / scales[0]) / math.sinh(step / 2 / scales[1])
    assert on_lattice == pytest.approx(sines**2, rel=1e-9)
    continuous = (scales[1] / scales[0]) ** 2
    rounding = 1e-12
    assert -rounding <= continuous - on_lattice <= (step / scales[1]) ** 2 / 12 + rounding


def test_only_noises_that_an_answer_rests_on_are_drawn() -> None:
    axes = (IntegerAxis(name="x", low=0, high=9999),)
    estimator = Estimator(Schema(table="wide", axes=axes, n_records_max=10))
    everything = QueryBlock(counting(), Partition(("x",), np.arange(10_000)))
    estimator.add([bought(everything, 1.0)])
    posteriors = answers(estimator, everything)[5000:5002]
    parts = joint._parts(posteriors, estimator.history)
    assert parts.scale.size == parts.coefficients.nnz == 2


def test_draws_in_many_chunks_are_as_good_as_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = known([bought(CELLS, 1.0)])
    posteriors = answers(estimator, TOTAL, GROUPS)
    for limit in (6 * 1000 + 1, 1):
        monkeypatch.setattr(joint, "N_VARIATES_MAX", limit)
        n_draws = N_DRAWS if limit > 1 else 50
        draws = draw_errors(posteriors, estimator.history, n_draws, np.random.default_rng(19))
        assert draws.shape == (4, n_draws)
        np.testing.assert_allclose(draws[0], draws[1:].sum(axis=0), atol=1e-12)
        assert np.unique(draws[0]).size == n_draws
        if limit > 1:
            check_law(draws[0], posteriors[0].law)


def test_draws_repeat_with_their_generator_and_differ_without() -> None:
    history, posteriors = chain((0.5, 1.0))
    draws = [draw_errors(posteriors, history, 5, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


def test_without_noise_or_without_answers_there_is_nothing_to_draw() -> None:
    constant = answers(Estimator(SCHEMA), QueryBlock(LinearQuery((), Fraction(3))))
    rng = np.random.default_rng(1)
    assert not draw_errors(constant, History(), 7, rng).any()
    assert draw_errors([], History(), 7, rng).shape == (0, 7)
    with pytest.raises(ValueError, match="n_draws"):
        draw_errors(constant, History(), 0, rng)


def test_terms_that_are_not_of_this_history_are_refused() -> None:
    rng = np.random.default_rng(1)
    history, posteriors = chain((0.5, 1.0))
    other, _ = chain((0.25, 1.0))
    bare = Posterior(0.0, posteriors[0].law)
    with pytest.raises(ValueError, match="do not match its law"):
        draw_errors([posteriors[0]], other, 1, rng)
    with pytest.raises(ValueError, match="do not match its law"):
        draw_errors([*posteriors, bare], history, 1, rng)
    with pytest.raises(ValueError, match="places"):
        draw_errors([posteriors[1]], chain((0.5,))[0], 1, rng)
    with pytest.raises(ValueError, match="rows"):
        draw_errors([answers(known([bought(GROUPS, 0.5)]), GROUPS)[1]], history, 1, rng)


def test_a_measurement_that_was_raised_twice_or_to_more_noise_has_no_joint_law() -> None:
    rng = np.random.default_rng(1)
    fork = [bought(TOTAL, 0.5), bought(TOTAL, 1.0, 0), bought(TOTAL, 2.0, 0)]
    worse = [bought(TOTAL, 1.0), bought(TOTAL, 0.5, 0)]
    for measurements, reason in ((fork, "twice"), (worse, "noisier")):
        history = History()
        history.add(measurements)
        posteriors = [
            Posterior(
                0.0,
                law_of_noise(np.array([one.noise_scale])),
                terms=ErrorTerms(np.array([place]), np.array([0]), np.ones(1)),
            )
            for place, one in enumerate(measurements)
        ]
        with pytest.raises(ValueError, match=reason):
            draw_errors(posteriors, history, 1, rng)
