"""Laws of the number of occupied places, against exact ones."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from streams.windows import Window, hypergeometric, occupied, reach
from tests.support.occupied import occupied_by_recurrence


def dense(window: Window, length: int) -> NDArray[np.float64]:
    found = np.zeros(length)
    found[window.start : window.start + window.weights.size] = window.weights
    return found


@pytest.mark.parametrize(
    ("n_all", "n_marked", "n_drawn"),
    [(10, 3, 4), (10, 0, 4), (10, 10, 4), (10, 7, 10), (1000, 300, 200), (10**6, 3 * 10**5, 10**4)],
)
def test_a_sample_without_replacement(n_all: int, n_marked: int, n_drawn: int) -> None:
    law = hypergeometric(n_all, n_marked, n_drawn)
    exact = stats.hypergeom.pmf(np.arange(n_drawn + 1), n_all, n_marked, n_drawn)
    assert np.abs(dense(law, n_drawn + 1) - exact).max() < 1e-10
    assert math.isclose(law.mean, n_drawn * n_marked / n_all, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize("n_buckets", [2, 3, 10, 100, 1000, 10**6])
@pytest.mark.parametrize("n_users", [1, 2, 5, 50, 300, 3000])
def test_occupied_buckets(n_users: int, n_buckets: int) -> None:
    """The mean and the variance are exact; the distribution function nearly."""
    exact = occupied_by_recurrence(n_users, n_buckets)
    law = occupied(n_users, n_buckets)
    assert np.abs(np.cumsum(dense(law, exact.size)) - np.cumsum(exact)).max() < 0.03
    k = np.arange(exact.size)
    mean = float(exact @ k)
    assert math.isclose(law.mean, mean, rel_tol=1e-3)
    deviation = math.sqrt(float(exact @ (k - mean) ** 2))
    assert abs(law.mean - mean) < 0.02 * deviation + 1e-6
    assert math.isclose(math.sqrt(law.variance), deviation, rel_tol=0.05, abs_tol=1e-3)


def test_the_occupied_of_nobody_and_of_very_many() -> None:
    assert (occupied(0, 10).start, occupied(0, 10).weights.tolist()) == (0, [1.0])
    full = occupied(10_000, 10)
    assert (full.start, full.weights.tolist()) == (10, [1.0])


@pytest.mark.parametrize(("n", "p"), [(100, 0.5), (10**4, 0.01), (10**4, 1e-5), (10**6, 0.3)])
def test_nothing_that_matters_lies_beyond_a_window(n: int, p: float) -> None:
    far = reach(n * p * (1 - p))
    law = stats.binom(n, p)
    assert law.sf(n * p + far) + law.cdf(n * p - far) < 5e-16


def test_a_window_says_what_it_holds() -> None:
    window = Window(3, np.array([0.25, 0.5, 0.25]))
    assert window.values.tolist() == [3, 4, 5]
    assert (window.mean, window.variance) == (4.0, 0.5)
    assert Window.certain(7).mean == 7
