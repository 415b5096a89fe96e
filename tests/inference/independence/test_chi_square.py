"""The test of independence: its level, its power, and the classical one where there is no noise."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from inference.independence.cell_noise import CellNoise, LaplaceCells, SampledCells
from inference.independence.chi_square import (
    N_CELLS_AT_ONCE,
    Decision,
    IndependenceTest,
    Reason,
    Statistic,
    degrees_of_freedom,
    independence_test,
    independent_tables,
)

Floats = NDArray[np.float64]

LATTICE_STEP = 2.0**-18
EPSILONS = [0.02, 0.1, 0.25, 0.35, 1.0]
NOISY = 0.02  # where the noise is twice as wide as the sampling of 5000 records
NOISE_ERROR_CAUGHT = [0.7, 1.4]
# The bar for the rate of rejecting what is true, at level .05. With 2000 trials its ends are 6
# standard deviations off: a right test is outside with odds of 1e-9. With 400 they are 2.7 off, and
# the odds are .006, once for all: the generator is seeded.
RATE_MIN, RATE_MAX = 0.02, 0.08

INDEPENDENT = np.outer([0.6, 0.4], [0.55, 0.45])
# Y depends on X in total, but not given Z.
GIVEN_Z = np.stack(
    [0.6 * np.outer([0.7, 0.3], [0.4, 0.6]), 0.4 * np.outer([0.35, 0.65], [0.7, 0.3])], axis=2
)


def laplace(shape: tuple[int, ...], epsilon: float) -> LaplaceCells:
    return LaplaceCells(np.full(shape, 1 / epsilon), lattice_step=LATTICE_STEP)


def without_noise(shape: tuple[int, ...]) -> LaplaceCells:
    return LaplaceCells(np.full(shape, 1e-9))


def dependent(shift: float) -> Floats:
    return INDEPENDENT + shift * np.array([[1, -1], [-1, 1]])


def rejection_rate(  # noqa: PLR0913 - one setting of a study, by keyword
    probabilities: Floats,
    *,
    n_records: int,
    drawn: CellNoise,
    declared: CellNoise | None = None,
    public: bool = False,
    n_trials: int = 400,
    n_replicates: int = 99,
    **test: Any,
) -> float:
    """How often independence is rejected, in tables with noise of the `drawn` law."""
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(n_trials):
        exact = rng.multinomial(n_records, probabilities.ravel()).reshape(probabilities.shape)
        outcome = independence_test(
            exact + drawn.draw(1, rng)[0],
            drawn if declared is None else declared,
            generator=rng,
            n_records=n_records if public else None,
            n_replicates=n_replicates,
            **test,
        )
        rejected += outcome.decision is Decision.REJECTED
    return rejected / n_trials


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_independence_that_holds_is_rejected_at_the_rate_of_the_level(epsilon: float) -> None:
    rate = rejection_rate(INDEPENDENT, n_records=5000, drawn=laplace((2, 2), epsilon))
    assert RATE_MIN <= rate <= RATE_MAX


@pytest.mark.slow
@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("probabilities", [INDEPENDENT, GIVEN_Z], ids=["two_way", "given"])
def test_the_level_holds_for_every_epsilon(
    probabilities: Floats, epsilon: float, public: bool
) -> None:
    rate = rejection_rate(
        probabilities,
        n_records=5000,
        drawn=laplace(probabilities.shape, epsilon),
        public=public,
        n_trials=2000,
        n_replicates=199,
    )
    assert RATE_MIN <= rate <= RATE_MAX


JOINT = np.einsum("a,b,c->abc", [0.6, 0.4], [0.55, 0.45], [0.3, 0.4, 0.3])
JOINTLY = {"n_tested": 3}
LIKELIHOOD = {"kind": Statistic.G2}


@pytest.mark.parametrize("test", [JOINTLY, LIKELIHOOD, JOINTLY | LIKELIHOOD], ids=str)
def test_every_kind_of_test_has_its_level(test: dict[str, Any]) -> None:
    probabilities = JOINT if "n_tested" in test else INDEPENDENT
    noise = laplace(probabilities.shape, 0.1)
    rate = rejection_rate(probabilities, n_records=5000, drawn=noise, n_trials=200, **test)
    # Of 200 trials the ends are 2 standard deviations off on either side: odds of 5 in 100, once
    # for all, as the generator is seeded. The slow test has ends that are 6 off.
    assert 0.02 <= rate <= 0.085


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("test", [JOINTLY, LIKELIHOOD, JOINTLY | LIKELIHOOD], ids=str)
def test_the_level_of_every_kind_holds_for_every_epsilon(
    test: dict[str, Any], epsilon: float
) -> None:
    probabilities = JOINT if "n_tested" in test else INDEPENDENT
    rate = rejection_rate(
        probabilities,
        n_records=5000,
        drawn=laplace(probabilities.shape, epsilon),
        n_trials=2000,
        n_replicates=199,
        **test,
    )
    assert RATE_MIN <= rate <= RATE_MAX


@pytest.mark.parametrize("factor", NOISE_ERROR_CAUGHT)
@pytest.mark.parametrize("test", [JOINTLY, JOINTLY | LIKELIHOOD], ids=str)
@pytest.mark.slow
def test_the_check_of_the_level_of_every_kind_has_teeth(
    test: dict[str, Any], factor: float
) -> None:
    """Noise that is declared a third too small or too large is caught."""
    noise = laplace(JOINT.shape, NOISY)
    declared = replace(noise, scales=noise.scales * factor)
    rate = rejection_rate(
        JOINT, n_records=5000, drawn=noise, declared=declared, n_trials=2000, **test
    )
    assert not RATE_MIN <= rate <= RATE_MAX


@pytest.mark.parametrize("factor", NOISE_ERROR_CAUGHT)
def test_the_check_of_the_level_has_teeth(factor: float) -> None:
    """Noise that is declared a third too small or too large is caught."""
    noise = laplace((2, 2), NOISY)
    declared = replace(noise, scales=noise.scales * factor)
    rate = rejection_rate(INDEPENDENT, n_records=5000, drawn=noise, declared=declared)
    assert not RATE_MIN <= rate <= RATE_MAX


def test_the_classical_test_takes_the_noise_for_dependence() -> None:
    rng = np.random.default_rng(1)
    noise = laplace((2, 2), NOISY)
    exact = rng.multinomial(5000, INDEPENDENT.ravel(), size=400).reshape(-1, 2, 2)
    noisy = np.maximum(exact + noise.draw(400, rng), 0)
    p_values = [stats.chi2_contingency(one, correction=False).pvalue for one in noisy]
    assert np.mean(np.array(p_values) <= 0.05) > 0.3


def test_noise_of_different_sizes_and_shared_noise_keep_the_level() -> None:
    own = np.array([[2.0, 10.0], [25.0, 5.0]])
    rate = rejection_rate(INDEPENDENT, n_records=5000, drawn=LaplaceCells(own))
    assert RATE_MIN <= rate <= RATE_MAX

    def shared(n_tables: int, generator: np.random.Generator) -> Floats:
        drawn = generator.laplace(0, 10, (n_tables, 3))
        cells = drawn @ np.array([[1, 0, 0, 1], [0, 1, -1, 0], [1, -1, 1, 0]])
        return np.asarray(cells.reshape(-1, 2, 2), dtype=np.float64)

    spread = 10 * np.sqrt(2 * np.array([[2.0, 2.0], [2.0, 1.0]]))
    rate = rejection_rate(INDEPENDENT, n_records=5000, drawn=SampledCells(spread, shared))
    assert RATE_MIN <= rate <= RATE_MAX


def test_dependence_is_found_more_often_with_more_epsilon_and_more_records() -> None:
    by_epsilon = [
        rejection_rate(dependent(0.008), n_records=5000, drawn=laplace((2, 2), epsilon))
        for epsilon in (0.02, 0.05, 1.0)
    ]
    by_records = [
        rejection_rate(dependent(0.008), n_records=n_records, drawn=laplace((2, 2), 0.1))
        for n_records in (1000, 5000, 25_000)
    ]
    # Neighbours differ by .1 and more; the standard deviation of a difference is .035 at most.
    assert min(np.diff(by_epsilon)) > 0.1, by_epsilon
    assert min(np.diff(by_records)) > 0.1, by_records
    assert by_records[-1] > 0.9


def test_conditioning_takes_away_what_the_condition_explains() -> None:
    rng = np.random.default_rng(2)
    exact = rng.multinomial(20_000, GIVEN_Z.ravel()).reshape(2, 2, 2)
    noisy = exact + laplace((2, 2, 2), 0.5).draw(1, rng)[0]
    given = independence_test(noisy, laplace((2, 2, 2), 0.5), generator=rng)
    in_total = independence_test(
        noisy.sum(axis=2),
        SampledCells(
            np.full((2, 2), 4.0), lambda n, rng: rng.laplace(0, 2, (n, 2, 2, 2)).sum(axis=3)
        ),
        generator=rng,
    )
    assert given.decision is Decision.NOT_REJECTED
    assert given.degrees_of_freedom == 2
    assert in_total.decision is Decision.REJECTED
    assert in_total.degrees_of_freedom == 1


def test_without_noise_the_decision_is_the_classical_one() -> None:
    rng = np.random.default_rng(3)
    decisions = set()
    for _ in range(60):
        shape = (int(rng.integers(2, 5)), int(rng.integers(2, 5)))
        product = np.outer(
            rng.dirichlet(np.full(shape[0], 20)), rng.dirichlet(np.full(shape[1], 20))
        )
        probabilities = product * (1 + rng.choice([0.0, 0.2]) * rng.uniform(-1, 1, shape))
        drawn = rng.multinomial(2000, (probabilities / probabilities.sum()).ravel())
        exact = drawn.reshape(shape).astype(np.float64)
        classical = stats.chi2_contingency(exact, correction=False)
        outcome = independence_test(exact, without_noise(shape), generator=rng, n_replicates=999)
        assert outcome.statistic == pytest.approx(classical.statistic, rel=1e-6)
        assert outcome.degrees_of_freedom == classical.dof
        # A p-value by 999 draws misses by .007 (one standard deviation) near .05.
        assert outcome.p_value == pytest.approx(classical.pvalue, abs=0.08)
        if abs(classical.pvalue - 0.05) > 0.03:
            assert (outcome.decision is Decision.REJECTED) == (classical.pvalue <= 0.05)
            decisions.add(outcome.decision)
    assert len(decisions) == 2


@pytest.mark.parametrize("kind", Statistic)
@pytest.mark.parametrize("shape", [(2, 3), (2, 2, 2), (3, 2, 4)])
def test_without_noise_the_test_of_several_columns_is_scipys(
    kind: Statistic, shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(4)
    exact = (50 + rng.integers(0, 30, shape)).astype(np.float64)
    lambda_ = {Statistic.PEARSON: 1.0, Statistic.G2: 0.0}[kind]  # of the power divergence
    classical = stats.chi2_contingency(exact, correction=False, lambda_=lambda_)
    outcome = independence_test(
        exact, without_noise(shape), generator=rng, n_tested=len(shape), kind=kind
    )
    assert outcome.statistic == pytest.approx(classical.statistic, rel=1e-6)
    assert outcome.degrees_of_freedom == classical.dof == degrees_of_freedom(shape, len(shape))
    # A p-value by 999 draws misses by at most .016 (one standard deviation).
    assert outcome.p_value == pytest.approx(classical.pvalue, abs=0.08)
    expected = independent_tables(exact[np.newaxis], len(shape))[0]
    np.testing.assert_allclose(expected, classical.expected_freq)


def test_columns_that_are_independent_in_pairs_alone_are_found_dependent() -> None:
    """Two coins and whether they are equal: no pair depends, the three together do."""
    coins = np.zeros((2, 2, 2))
    for one in range(2):
        for other in range(2):
            coins[one, other, int(one == other)] = 1000
    rng, noise = np.random.default_rng(5), laplace((2, 2, 2), 0.1)
    noisy = coins + noise.draw(1, rng)[0]
    together = independence_test(noisy, noise, generator=rng, n_tested=3)
    assert together.decision is Decision.REJECTED
    for axis in range(3):
        scales = np.full((2, 2), 20.0)
        pair = independence_test(noisy.sum(axis=axis), LaplaceCells(scales), generator=rng)
        assert pair.decision is Decision.NOT_REJECTED


def test_several_columns_given_another_add_up_the_tests_of_its_values() -> None:
    rng = np.random.default_rng(6)
    exact = (40 + rng.integers(0, 30, (2, 3, 2, 2))).astype(np.float64)
    strata = [stats.chi2_contingency(exact[..., z], correction=False) for z in range(2)]
    outcome = independence_test(exact, without_noise(exact.shape), generator=rng, n_tested=3)
    assert outcome.statistic == pytest.approx(sum(one.statistic for one in strata), rel=1e-6)
    assert outcome.degrees_of_freedom == sum(one.dof for one in strata)


def test_without_noise_the_threshold_is_the_classical_one() -> None:
    table = 1000.0 * np.outer([1, 2, 3], [2, 1, 2, 2])
    noise = without_noise((3, 4))
    rng = np.random.default_rng(4)
    outcome = independence_test(table, noise, generator=rng, n_replicates=19_999)
    assert outcome.statistic == pytest.approx(0.0, abs=1e-9)
    assert outcome.p_value == 1.0
    # The standard deviation of the quantile of 19 999 draws is .06.
    assert outcome.threshold == pytest.approx(stats.chi2(6).ppf(0.95), abs=0.35)


def test_the_strongest_dependence_is_found_although_cells_are_empty() -> None:
    noisy = np.array([[2500.0, 3.0], [-4.0, 2500.0]])
    outcome = independence_test(noisy, laplace((2, 2), 0.5), generator=np.random.default_rng(5))
    assert outcome.reason is Reason.ABOVE_THRESHOLD
    assert outcome.p_value == 1 / 1000


@pytest.mark.parametrize(
    "noisy", [[[500.0, 400.0], [3.0, 4.0]], [[-5.0, -6.0], [2.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]
)
def test_small_cells_are_not_tested(noisy: list[list[float]]) -> None:
    outcome = independence_test(
        np.array(noisy), laplace((2, 2), 0.5), generator=np.random.default_rng(6)
    )
    assert outcome.decision is Decision.NOT_REJECTED
    assert outcome.reason is Reason.SMALL_CELLS
    assert outcome.p_value == 1.0
    assert outcome.n_replicates == 0
    assert math.isnan(outcome.statistic)
    assert math.isnan(outcome.threshold)


def test_replicates_with_small_cells_are_counted() -> None:
    noisy = np.array([[500.0, 400.0], [12.0, 14.0]])
    outcome = independence_test(noisy, laplace((2, 2), 0.1), generator=np.random.default_rng(7))
    assert 0 < outcome.n_small_replicates < outcome.n_replicates == 999


def test_the_statistic_is_above_the_threshold_exactly_if_the_p_value_is_within_the_level() -> None:
    rng = np.random.default_rng(8)
    for level in (0.05, 0.07, 0.29, 0.5):
        for _ in range(25):
            noisy = 100 + 10 * rng.normal(size=(2, 3))
            outcome = independence_test(
                noisy, laplace((2, 3), 0.5), generator=rng, level=level, n_replicates=99
            )
            assert (outcome.statistic > outcome.threshold) == (outcome.p_value <= level + 1e-12)


def test_a_public_total_is_used_and_changes_the_statistic() -> None:
    noisy = np.array([[500.0, 400.0], [300.0, 290.0]])
    noise = laplace((2, 2), 0.1)
    outcomes = [
        independence_test(noisy, noise, generator=np.random.default_rng(9), n_records=n_records)
        for n_records in (None, 1490, 1600)
    ]
    assert outcomes[0].statistic == outcomes[1].statistic
    assert outcomes[0].statistic != outcomes[2].statistic


def test_a_test_repeats_with_its_generator() -> None:
    noisy, noise = np.full((16, 20), 200.0), laplace((16, 20), 0.5)
    once, again = (
        independence_test(noisy, noise, generator=np.random.default_rng(10)) for _ in range(2)
    )
    assert once == again
    assert 999 * noisy.size > N_CELLS_AT_ONCE  # so that they were simulated in parts
    assert once.n_replicates == 999


@pytest.mark.parametrize(
    ("noisy", "match"),
    [
        (np.ones(4), "two columns"),
        (np.ones((1, 4)), "two columns"),
        (np.ones((2, 3)), "the noise has the shape"),
        (np.array([[1.0, np.nan], [1.0, 1.0]]), "finite"),
    ],
)
def test_a_table_without_two_columns_is_refused(noisy: Floats, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        independence_test(noisy, laplace((2, 2), 1.0), generator=np.random.default_rng(11))


@pytest.mark.parametrize(
    ("level", "n_replicates", "n_records", "match"),
    [
        (0.0, 999, None, "level"),
        (1.0, 999, None, "level"),
        (0.05, 18, None, "too few"),
        (0.05, 999, 0, "records"),
    ],
)
def test_a_test_that_cannot_be_made_is_refused(
    level: float, n_replicates: int, n_records: int | None, match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        independence_test(
            np.ones((2, 2)),
            laplace((2, 2), 1.0),
            generator=np.random.default_rng(12),
            level=level,
            n_replicates=n_replicates,
            n_records=n_records,
        )


def test_nineteen_replicates_are_enough_for_one_in_twenty() -> None:
    outcome = independence_test(
        np.full((2, 2), 200.0),
        laplace((2, 2), 1.0),
        generator=np.random.default_rng(13),
        n_replicates=19,
    )
    assert outcome.n_replicates == 19


OUTCOME = IndependenceTest(
    statistic=5.0,
    threshold=4.0,
    p_value=0.03,
    decision=Decision.REJECTED,
    reason=Reason.ABOVE_THRESHOLD,
    n_replicates=99,
    n_small_replicates=0,
    degrees_of_freedom=1,
)


@pytest.mark.parametrize(
    "change",
    [
        {"p_value": 0.0},
        {"n_small_replicates": 100},
        {"decision": Decision.NOT_REJECTED},
        {"reason": Reason.WITHIN_THRESHOLD},
        {"statistic": 3.0},
    ],
)
def test_an_outcome_that_contradicts_itself_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"p-value|replicates|reason|against"):
        replace(OUTCOME, **change)
