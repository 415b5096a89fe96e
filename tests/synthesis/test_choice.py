"""Budgets against a numeric optimum, the choice of tables against every other choice."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from synthesis.choice import (
    GAUSSIAN,
    LAPLACE,
    NOISE_PER_SCORE_SHARE,
    ONE_WAY_SHARE_MAX,
    ONE_WAY_SHARE_MIN,
    SCORE_SHARE_MAX,
    SCORE_SHARE_MIN,
    NoiseCost,
    choose_tables,
    one_way_share,
    score_share,
    tells_more_than_noise,
)
from synthesis.tables import TableEstimate

COSTS = pytest.mark.parametrize("cost", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
N_DRAWS = 400_000


def l1(cost: NoiseCost, n_cells: np.ndarray, budgets: np.ndarray) -> float:
    return float((cost.deviation * n_cells / budgets**cost.power).sum())


@COSTS
def test_the_split_is_the_numeric_optimum(cost: NoiseCost) -> None:
    n_cells = np.array([2, 100, 9, 85, 42])

    def noise(logits: np.ndarray) -> float:
        return l1(cost, n_cells, 0.7 * np.exp(logits) / np.exp(logits).sum())

    found = minimize(noise, np.zeros(5), method="BFGS", options={"gtol": 1e-6})
    split = cost.split(n_cells, 0.7)
    assert split.sum() == pytest.approx(0.7)
    assert l1(cost, n_cells, split) == pytest.approx(found.fun, rel=1e-6)
    assert cost.least_l1(n_cells, 0.7) == pytest.approx(l1(cost, n_cells, split))
    assert cost.budget_for(n_cells, cost.least_l1(n_cells, 0.7)) == pytest.approx(0.7)


def test_the_powers_are_those_of_the_noise() -> None:
    """Square root of the size for Laplace, two thirds for Gaussian noise."""
    assert LAPLACE.split(np.array([1, 4]), 3.0).tolist() == [1.0, 2.0]
    assert GAUSSIAN.split(np.array([1, 8]), 5.0) == pytest.approx([1.0, 4.0])


def test_a_budget_gives_its_noise() -> None:
    """The mean of N_DRAWS is off by 0.5 % with a chance below 1e-3; the seed is fixed."""
    rng = np.random.default_rng(5)
    laplace = np.abs(rng.laplace(0.0, 1 / 0.3, N_DRAWS)).mean()
    gaussian = np.abs(rng.normal(0.0, 0.3**-0.5, N_DRAWS)).mean()
    assert LAPLACE.least_l1(np.array([1]), 0.3) == pytest.approx(laplace, rel=0.005)
    assert GAUSSIAN.least_l1(np.array([1]), 0.3) == pytest.approx(gaussian, rel=0.005)


@pytest.mark.parametrize(("cost", "n_rows"), [(LAPLACE, 6_000.0), (GAUSSIAN, 2_000.0)])
def test_the_one_way_share_follows_what_is_needed(cost: NoiseCost, n_rows: float) -> None:
    sizes = np.array([85, 9, 16, 2])
    share = one_way_share(sizes, n_rows, 2.0, cost)
    assert ONE_WAY_SHARE_MIN < share < ONE_WAY_SHARE_MAX
    needed = 2.0 * share / (1 - share)
    noise = l1(cost, sizes, cost.split(sizes, needed))
    assert noise / 2 / n_rows / 4 == pytest.approx(cost.one_way_error)


def test_the_one_way_share_has_limits() -> None:
    sizes = np.array([85, 9])
    assert one_way_share(sizes, 1e9, 1.0, LAPLACE) == ONE_WAY_SHARE_MIN
    assert one_way_share(sizes, 100.0, 1.0, LAPLACE) == ONE_WAY_SHARE_MAX
    assert one_way_share(sizes, -4.0, 1.0, LAPLACE) == 1.0


@COSTS
def test_nothing_is_left_for_pairs_that_noise_would_hide(cost: NoiseCost) -> None:
    """A score is then off by most of the rows, even at the most that would be spent on it."""
    for n_columns in (5, 20, 100):
        sizes = np.full(n_columns, 8)
        shares = [one_way_share(sizes, n_rows, 0.05, cost) for n_rows in np.geomspace(10, 1e9, 200)]
        assert shares == sorted(shares, reverse=True)
        assert shares[0] == 1.0
        assert shares[-1] == ONE_WAY_SHARE_MIN
        assert not any(ONE_WAY_SHARE_MAX < share < 1 for share in shares)


def best_gain(scores: np.ndarray, n_cells: np.ndarray, cost: NoiseCost) -> float:
    places = range(scores.size)
    return max(
        float(scores[list(some)].sum()) - cost.least_l1(n_cells[list(some)], 1.0)
        for size in range(1, scores.size + 1)
        for some in combinations(places, size)
    )


@COSTS
@given(st.lists(st.tuples(st.floats(-50, 500), st.integers(1, 60)), min_size=1, max_size=7))
def test_no_choice_is_better_by_more_than_one_table(
    cost: NoiseCost, tables: list[tuple[float, int]]
) -> None:
    """Tables could not be divided, else it were the best; of equal sizes it is the best."""
    scores, n_cells = (np.array(column) for column in zip(*tables, strict=True))
    for sizes, slack in ((n_cells, max(scores.max(), 0.0)), (np.full_like(n_cells, 4), 0.0)):
        chosen, budgets = choose_tables(scores, sizes, 1.0, cost)
        gain = scores[chosen].sum() - l1(cost, sizes[chosen], budgets)
        assert gain >= max(best_gain(scores, sizes, cost), 0.0) - slack - 1e-9
        assert budgets.sum() == pytest.approx(1.0 if chosen.size else 0.0)


def test_nothing_is_bought_where_noise_would_be_worse() -> None:
    chosen, budgets = choose_tables(np.array([3.0, -1.0]), np.array([9, 4]), 1.0, LAPLACE)
    assert chosen.size == budgets.size == 0
    assert choose_tables(np.empty(0), np.empty(0, dtype=int), 1.0, LAPLACE)[0].size == 0


def test_noise_that_would_not_fall_is_refused() -> None:
    with pytest.raises(ValueError, match="must fall"):
        NoiseCost(deviation=1.0, power=0.0, one_way_error=0.01)


def test_scores_get_more_where_they_are_noisier_and_within_limits() -> None:
    shares = [score_share(91, 50_000.0, budget, LAPLACE) for budget in (0.02, 0.2, 0.6, 50.0)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == SCORE_SHARE_MAX
    assert shares[-1] == SCORE_SHARE_MIN
    for cost, n_rows in ((LAPLACE, 2_000.0), (GAUSSIAN, 500.0)):
        share = score_share(91, n_rows, 4.0, cost)
        noise = cost.least_l1(np.array([1]), share * 4.0 / 91)
        assert noise / n_rows == pytest.approx(NOISE_PER_SCORE_SHARE * share)
    assert score_share(91, 0.0, 1.0, LAPLACE) == SCORE_SHARE_MAX


@COSTS
@given(
    st.lists(
        st.tuples(st.floats(0, 500), st.integers(1, 60), st.integers(0, 2)), min_size=1, max_size=6
    )
)
def test_of_tables_about_one_subject_one_is_chosen_and_no_choice_is_better_by_more_than_one(
    cost: NoiseCost, tables: list[tuple[float, int, int]]
) -> None:
    scores, n_cells, subjects = (np.array(column) for column in zip(*tables, strict=True))
    chosen, budgets = choose_tables(scores, n_cells, 1.0, cost, subjects)
    assert len(set(subjects[chosen].tolist())) == chosen.size
    gain = scores[chosen].sum() - l1(cost, n_cells[chosen], budgets)
    places = range(scores.size)
    best = max(
        float(scores[list(some)].sum()) - cost.least_l1(n_cells[list(some)], 1.0)
        for size in range(1, scores.size + 1)
        for some in combinations(places, size)
        if len(set(subjects[list(some)].tolist())) == size
    )
    assert gain >= max(best, 0.0) - scores.max() - 1e-9


@pytest.mark.parametrize("shift", [0.0, 0.3, 3.0])
def test_a_pair_is_used_if_its_dependence_is_more_than_its_noise(shift: float) -> None:
    """The error of using it, and of leaving it out, on 400 tables: mostly the smaller is chosen.

    Where a table is all noise it is used once in twenty times; where it is mostly signal, always.
    """
    rng = np.random.default_rng(int(10 * shift))
    independent = np.outer([600.0, 400.0, 200.0], [0.3, 0.3, 0.2, 0.2])
    pattern = rng.choice([-1.0, 1.0], (3, 4))
    pattern -= pattern.mean(axis=0)
    pattern -= pattern.mean(axis=1, keepdims=True)
    deviation = 10.0
    exact = independent + shift * deviation * pattern
    used = []
    for _ in range(400):
        noisy = exact + rng.normal(0, deviation, exact.shape)
        used.append(tells_more_than_noise(TableEstimate(("a", "b"), noisy, np.array(deviation**2))))
    assert np.mean(used) == pytest.approx(1.0 if shift == 3.0 else 0.0, abs=0.05)


def test_an_empty_table_tells_nothing() -> None:
    assert not tells_more_than_noise(
        TableEstimate(("a", "b"), np.full((2, 2), -1.0), np.array(1.0))
    )
