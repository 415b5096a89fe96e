"""Independence tested on randomised answers: the law of simulated tables, level, power, teeth."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2_contingency, ks_2samp

from cube.measurement import UNITS_PER_EPSILON
from inference.independence.chi_square import Decision, IndependenceTest, independence_test
from local_dp.channels.channel import Floats
from local_dp.channels.choice import AnyChannel
from local_dp.channels.local_hashing import LocalHashing
from local_dp.channels.randomised_response import RandomisedResponse
from local_dp.channels.unary_encoding import UnaryEncoding
from local_dp.estimates.shares import Tally, estimated
from local_dp.estimates.simulated import AnsweredTable, CellsOfTable, drawn_counts
from tests.support.answering import simulated

N = 5000
HALF, LESS = Fraction(1, 2), Fraction(221, 1000)
CHANNELS: dict[str, AnyChannel] = {
    "response": RandomisedResponse.uniform(4, LESS),
    "fakes": RandomisedResponse((1, 2, 3, 4), HALF),
    "unary": UnaryEncoding.for_epsilon(4, UNITS_PER_EPSILON),
    "hashing": LocalHashing.for_epsilon(4, UNITS_PER_EPSILON),
}
INDEPENDENT = np.outer([0.6, 0.4], [0.55, 0.45])
# The bar for the rate of rejecting what is true, at level .05. With 2000 trials its ends are 6
# standard deviations off: odds of 1e-9. With 300 they are 2.4 off, and the odds are .017 for each
# channel, once for all: the generator is seeded.
RATE_MIN, RATE_MAX = 0.02, 0.08


def dependent(shift: float) -> Floats:
    return INDEPENDENT + shift * np.array([[1, -1], [-1, 1]])


def table_of(
    blocks: Sequence[Tally], shape: tuple[int, ...], coefficients: Floats | None = None
) -> AnsweredTable:
    estimate = estimated(blocks)
    own = np.eye(estimate.n_cells) if coefficients is None else coefficients
    return AnsweredTable((CellsOfTable(estimate, own),), shape)


def outcome_of(
    table: AnsweredTable, rng: np.random.Generator, n_replicates: int = 199
) -> IndependenceTest:
    return independence_test(table.counts, table, generator=rng, n_replicates=n_replicates)


def rates(
    channel: AnyChannel, shares: Floats, n_trials: int, n: int = N, n_replicates: int = 199
) -> tuple[float, float]:
    """How often independence is rejected: by the test, and by the textbook's on what it looks at.

    The textbook's takes the estimated counts for counts, raised to 1 where they are below.
    """
    rng = np.random.default_rng(5)
    n_ours = n_classical = 0
    for _ in range(n_trials):
        table = table_of([simulated(channel, shares.ravel(), n, rng)], shares.shape)
        n_ours += outcome_of(table, rng, n_replicates).decision is Decision.REJECTED
        as_counts = np.maximum(table.counts, 1.0)
        n_classical += bool(chi2_contingency(as_counts, correction=False).pvalue <= 0.05)
    return n_ours / n_trials, n_classical / n_trials


@pytest.mark.parametrize("name", CHANNELS)
def test_independence_of_answers_is_rejected_at_the_rate_of_the_level(name: str) -> None:
    rate, _ = rates(CHANNELS[name], INDEPENDENT, 300)
    assert RATE_MIN <= rate <= RATE_MAX


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANNELS)
def test_the_level_holds_for_every_channel(name: str) -> None:
    rate, _ = rates(CHANNELS[name], INDEPENDENT, 2000)
    assert RATE_MIN <= rate <= RATE_MAX


@pytest.mark.parametrize(("keep", "classical"), [(HALF, 0.34), (LESS, 0.69)])
def test_the_classical_test_takes_randomisation_for_dependence(
    keep: Fraction, classical: float
) -> None:
    """The figures of the specification, of 300 trials each: both within 3.5 standard errors."""
    _, found = rates(RandomisedResponse.uniform(4, keep), INDEPENDENT, 300, n_replicates=19)
    assert abs(found - classical) <= 3.5 * math.sqrt(2 * classical * (1 - classical) / 300)


@pytest.mark.parametrize(("keep", "power"), [(HALF, 0.82), (LESS, 0.22)])
def test_a_dependence_is_found_as_often_as_the_specification_says(
    keep: Fraction, power: float
) -> None:
    """Of .02 in each cell; 300 trials against 300: within 3.5 standard errors."""
    found, _ = rates(RandomisedResponse.uniform(4, keep), dependent(0.02), 300)
    assert abs(found - power) <= 3.5 * math.sqrt(2 * power * (1 - power) / 300)


def test_dependence_is_found_more_often_with_more_epsilon_and_more_answers() -> None:
    """Neighbours differ by .2 and more; the standard deviation of a difference is .07 at most."""
    by_epsilon = [
        rates(RandomisedResponse.for_epsilon((1,) * 4, units), dependent(0.02), 100)[0]
        for units in (UNITS_PER_EPSILON // 4, UNITS_PER_EPSILON, 3 * UNITS_PER_EPSILON)
    ]
    by_answers = [
        rates(CHANNELS["unary"], dependent(0.03), 100, n)[0] for n in (1_000, 5_000, 25_000)
    ]
    assert min(np.diff(by_epsilon)) > 0.1, by_epsilon
    assert min(np.diff(by_answers)) > 0.1, by_answers
    assert by_answers[-1] > 0.9


def test_the_test_of_a_law_without_the_channel_would_not_hold_its_level() -> None:
    """Teeth: tables that are drawn as if answers told the truth have far too little noise."""
    truthful = RandomisedResponse.uniform(4, Fraction(999_999, 1_000_000))
    rng, n_rejected = np.random.default_rng(6), 0
    for _ in range(100):
        table = table_of([simulated(CHANNELS["response"], INDEPENDENT.ravel(), N, rng)], (2, 2))
        wrong = table_of([simulated(truthful, INDEPENDENT.ravel(), N, rng)], (2, 2))
        found = independence_test(table.counts, wrong, generator=rng, n_replicates=99)
        n_rejected += found.decision is Decision.REJECTED
    assert n_rejected > 40


@pytest.mark.parametrize("seed", range(6))
def test_with_all_of_epsilon_it_is_the_test_of_the_textbook(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = np.outer(rng.dirichlet([5, 5, 5]), rng.dirichlet([5, 5]))
    tied = shares * (1 + (seed % 2) * 0.2 * rng.choice([-1, 1], (3, 2)))
    honest = RandomisedResponse.uniform(6, 1 - Fraction(1, 10**9))
    table = table_of([simulated(honest, (tied / tied.sum()).ravel(), 3000, rng)], (3, 2))
    expected = chi2_contingency(table.counts, correction=False)
    found = outcome_of(table, rng, 999)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-5)
    assert found.p_value == pytest.approx(expected.pvalue, abs=0.05)
    assert abs(expected.pvalue - 0.05) > 0.02, "a case that is too close to call"
    assert (found.decision is Decision.REJECTED) == (expected.pvalue <= 0.05)


@pytest.mark.parametrize("name", CHANNELS)
def test_counts_are_drawn_as_single_answers_are(name: str) -> None:
    """Each place's count has one law, drawn answer by answer or all at once: 800 of both.

    Kolmogorov and Smirnov's test at .0005 for each place; 62 places: odds of .03, but seeded.
    """
    channel, shares = CHANNELS[name], np.array([0.5, 0.3, 0.15, 0.05])
    rng = np.random.default_rng(7)
    block = simulated(channel, shares, 300, rng)
    at_once = np.concatenate(list(drawn_counts(block, shares, 800, rng)))
    one_by_one = np.array([simulated(channel, shares, 300, rng).counts for _ in range(800)])
    assert at_once.shape == one_by_one.shape
    for place in range(channel.n_tallies):
        assert ks_2samp(at_once[:, place], one_by_one[:, place]).pvalue > 0.0005
    together = [np.cov(one @ channel.contributions(np.eye(4)), rowvar=False) for one in
                (at_once, one_by_one)]  # fmt: skip
    # Of 800 draws each: 4 standard errors of a variance are .2 of it.
    assert np.abs(together[0] - together[1]).max() <= 0.25 * np.abs(together[1]).max()


def test_tables_of_a_part_of_the_answers_keep_what_is_beside_them() -> None:
    """WHERE leaves half of 8 cells; 400 draws, 4.5 standard errors."""
    channel = UnaryEncoding.for_epsilon(8, 2 * UNITS_PER_EPSILON)
    shares = np.array([0.3, 0.1, 0.05, 0.05, 0.2, 0.1, 0.1, 0.1])
    inside = np.zeros((8, 4))
    inside[[0, 2, 4, 6], [0, 1, 2, 3]] = 1
    rng = np.random.default_rng(8)
    table = table_of([simulated(channel, shares, 20_000, rng)], (2, 2), inside)
    wanted = np.array([[0.4, 0.1], [0.3, 0.2]])
    drawn = table.noisy_tables(wanted, 12_000.0, 400, rng)
    error = drawn.std(axis=0) / math.sqrt(400)
    assert (np.abs(drawn.mean(axis=0) - 12_000 * wanted) <= 4.5 * error).all()
    cells = table.parts[0].with_shares(np.array([0.5, 0.0, 0.1, 0.0]))
    assert cells.sum() == pytest.approx(1)
    assert cells[[0, 2, 4, 6]] == pytest.approx([0.5, 0, 0.1, 0])
    assert cells[[1, 3, 5, 7]] == pytest.approx(
        0.4 * table.parts[0].estimate.likely_shares[[1, 3, 5, 7]]
        / table.parts[0].estimate.likely_shares[[1, 3, 5, 7]].sum()
    )  # fmt: skip


def test_a_cell_that_nobody_is_thought_to_be_in_is_filled_evenly() -> None:
    counts = np.array([0, 0, 900, 100])
    channel = RandomisedResponse.uniform(4, HALF)
    table = table_of([Tally(channel, 1000, counts)], (2,), np.repeat(np.eye(2), 2, axis=0))
    assert table.parts[0].estimate.likely_shares[:2].tolist() == [0, 0]
    assert table.parts[0].with_shares(np.array([0.5, 0.5]))[:2].tolist() == [0.25, 0.25]


def test_combinations_and_blocks_are_pooled_and_drawn_as_they_are() -> None:
    """Two blocks of one combination, and another with more columns; 400 draws, 4.5 errors."""
    rng = np.random.default_rng(9)
    blocks = [
        simulated(RandomisedResponse((1, 2, 3, 4), HALF), INDEPENDENT.ravel(), 3000, rng),
        simulated(RandomisedResponse.uniform(4, LESS), INDEPENDENT.ravel(), 2000, rng),
    ]
    wide = simulated(
        UnaryEncoding.for_epsilon(8, UNITS_PER_EPSILON),
        np.repeat(INDEPENDENT.ravel() / 2, 2), 5000, rng
    )  # fmt: skip
    table = AnsweredTable(
        (
            CellsOfTable(estimated(blocks), np.eye(4)),
            CellsOfTable(estimated([wide]), np.repeat(np.eye(4), 2, axis=0)),
        ),
        (2, 2),
    )
    assert table.n_answers == 10_000
    assert table.counts.sum() == pytest.approx(10_000)
    drawn = table.noisy_tables(INDEPENDENT, 10_000.0, 400, rng)
    error = drawn.std(axis=0) / math.sqrt(400)
    assert (np.abs(drawn.mean(axis=0) - 10_000 * INDEPENDENT) <= 4.5 * error).all()
    # The spread is that at equal shares, about: with these shares, and 400 draws, within a fifth.
    assert drawn.std(axis=0) == pytest.approx(table.scales, rel=0.2)
    assert np.abs(table.counts - 10_000 * INDEPENDENT).max() <= 4.5 * table.scales.max()


def test_what_is_no_table_of_a_combination_is_refused() -> None:
    estimate = estimated([Tally(RandomisedResponse.uniform(4, HALF), 4, np.ones(4, np.int64))])
    for coefficients in (np.ones((3, 2)), np.full((4, 1), 0.5), np.ones((4, 2)), np.ones(4)):
        with pytest.raises(ValueError, match=r"coefficients|count for"):
            CellsOfTable(estimate, coefficients)
    with pytest.raises(ValueError, match="of a table of shape"):
        AnsweredTable((CellsOfTable(estimate, np.eye(4)),), (2, 3))
    with pytest.raises(ValueError, match="of a table of shape"):
        AnsweredTable((), (2, 2))
