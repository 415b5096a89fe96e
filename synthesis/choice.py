"""How to divide a budget and which tables to buy, by noisy scores that are shrunk first.

The budget is divided between one-way tables and pairs, and among the tables; and the pairs to buy
are chosen. Everything here is a function of public numbers (sizes, budgets) and of noisy numbers
that are paid for; the accountant sets prices and limits.

The largest of many noisy scores owe their rank partly to noise, so they promise more than measuring
the tables would give. So each score is first shrunk towards the usual score.
"""

from dataclasses import dataclass, replace
from math import comb, gamma
from typing import Final

import numpy as np

from synthesis.tables import Floats, Integers, TableEstimate, expected_l1

# Tuned on the five tables of the benchmark and on artificial ones (`benchmarks.synthesis_share`)
ONE_WAY_SHARE_MIN = 0.2  # one-way tables decide how levels are merged and split again
ONE_WAY_SHARE_MAX = 0.85  # without anything left for pairs, columns would be independent
NOISE_PER_SCORE_SHARE = 0.44  # the noise of a score, as a share of the rows, for a share of 1
SCORE_SHARE_MIN = 0.02
SCORE_SHARE_MAX = 0.4  # pairs that are scored but not measured are of no use
SCORE_NOISE_MAX = 0.7  # of the rows, of a score at its largest budget: more hides strong pairs
N_PRICES_MAX = 500  # at which sets are compared: thousands of tables need no better price
PRICE_STEP = 1e-12  # below a price at which a table enters, so that it has entered


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseCost:
    """The noise for a budget: a cell's expected ``|noise|`` is ``deviation / budget**power``.

    Budgets of several tables add up.

    Parameters
    ----------
    deviation, power : float
        The deviation at budget 1 and its power in the budget, both positive.
    one_way_error : float
        The mean total variation distance that is the goal for one-way tables.

    Notes
    -----
    Pure epsilon: a weight ``w`` gives Laplace noise of scale ``1 / w``. Gaussian differential
    privacy: a budget ``mu**2`` gives Gaussian noise of standard deviation ``1 / mu``, whose mean
    absolute value is ``sqrt(2 / pi) / mu``; squares of mu add up under composition [1]_.

    References
    ----------
    .. [1] J. Dong, A. Roth, W. J. Su, "Gaussian Differential Privacy", Journal of the Royal
       Statistical Society B 84, 2022, Corollary 3.3.
    """

    deviation: float
    power: float
    one_way_error: float

    def __post_init__(self) -> None:
        if not (self.deviation > 0 and self.power > 0):
            raise ValueError("noise must be positive, and must fall as the budget grows")

    def of_holders(self, n_holders: int) -> "NoiseCost":
        """The noise of sums over holders that each spend the budget.

        Deviations of Gaussian noise grow by a square root.
        """
        is_gaussian = self.power == GAUSSIAN.power
        times = n_holders**0.5 if is_gaussian else noise_of_sum(n_holders)
        return replace(self, deviation=self.deviation * times)

    def split(self, n_cells: Integers | Floats, budget: float) -> Floats:
        """Budgets of tables, with sum `budget`, for the least total expected L1 noise.

        Notes
        -----
        Stationary where ``n / b**(power + 1)`` is the same for all tables: ``b`` is proportional
        to ``n**(1 / (1 + power))``, the square root of the size for Laplace noise.
        """
        roots = self.roots(n_cells)
        return np.asarray(budget * roots / roots.sum(), dtype=np.float64)

    def least_l1(self, n_cells: Integers, budget: float) -> float:
        """Expected L1 noise of all tables at the best split."""
        return float(
            self.deviation * self.roots(n_cells).sum() ** (1 + self.power) / budget**self.power
        )

    def budget_for(self, n_cells: Integers, l1: float) -> float:
        """The budget at which the expected L1 noise of all tables is `l1`."""
        return float((self.least_l1(n_cells, 1.0) / l1) ** (1 / self.power))

    def roots(self, n_cells: Integers | Floats) -> Floats:
        """The numbers that the budgets of tables are proportional to."""
        return np.asarray(n_cells, dtype=np.float64) ** (1 / (1 + self.power))


def noise_of_sum(n_holders: int) -> float:
    """The mean magnitude of a sum of so many Laplace variables of scale 1.

    >>> noise_of_sum(1), noise_of_sum(2)
    (1.0, 1.5)
    """
    return 2 * n_holders * comb(2 * n_holders, n_holders) / 4.0**n_holders


# The errors are tuned in the same way as the shares above; results change little around them.
LAPLACE = NoiseCost(deviation=1.0, power=1.0, one_way_error=0.006)
GAUSSIAN = NoiseCost(deviation=float(np.sqrt(2 / np.pi)), power=0.5, one_way_error=0.008)


def one_way_share(sizes: Integers, n_rows: float, budget: float, cost: NoiseCost) -> float:
    """The share of a budget for one-way tables.

    Parameters
    ----------
    sizes : (n_columns,) ndarray of int64
        The number of levels of each column.
    n_rows : float
        The approximate number of rows: a public or a noisy number.
    budget : float
    cost : NoiseCost

    Notes
    -----
    Total variation distance is half the L1 distance over the rows. Let ``needed`` be the budget at
    which its mean over the columns is `cost.one_way_error`. The share is
    ``needed / (needed + budget)``, within limits: close to what is needed where that is little, and
    something is left for pairs where it is much. Where noise would hide which pairs matter, all of
    it is for columns: a table of independent columns is better than one with pairs by chance.
    """
    if n_rows <= 0:
        return 1.0
    needed = cost.budget_for(sizes, 2 * cost.one_way_error * n_rows * sizes.size)
    share = float(np.clip(needed / (needed + budget), ONE_WAY_SHARE_MIN, ONE_WAY_SHARE_MAX))
    n_pairs = sizes.size * (sizes.size - 1) // 2
    for_scores = SCORE_SHARE_MAX * (1 - share) * budget
    hidden = cost.deviation * (n_pairs / for_scores) ** cost.power > SCORE_NOISE_MAX * n_rows
    return 1.0 if hidden else share


def score_share(n_pairs: int, n_rows: float, budget: float, cost: NoiseCost) -> float:
    """The share for the scores of all pairs, of the budget that one-way tables leave.

    Parameters
    ----------
    n_pairs : int
        The number of pairs, positive.
    n_rows : float
        The approximate number of rows.
    budget : float
        The budget to divide, positive.
    cost : NoiseCost

    Notes
    -----
    With a share `s` each score has noise of about ``deviation * (n_pairs / (s * budget))**power``.
    Scores only need to distinguish strong pairs from weak ones: where their noise is small compared
    with the number of rows, more spent on them is wasted, and where it is large, pairs are chosen
    by chance. The share is proportional to that noise over the number of rows.

    Examples
    --------
    >>> round(score_share(91, 48842, 0.64, LAPLACE), 3)
    0.081
    >>> score_share(91, 48842, 0.02, LAPLACE)
    0.4
    """
    noise = cost.deviation * (n_pairs / budget) ** cost.power / max(1.0, n_rows)
    share = (noise / NOISE_PER_SCORE_SHARE) ** (1 / (1 + cost.power))
    return float(min(max(share, SCORE_SHARE_MIN), SCORE_SHARE_MAX))


def choose_tables(
    scores: Floats,
    n_cells: Integers | Floats,
    budget: float,
    cost: NoiseCost,
    subjects: Integers | None = None,
) -> tuple[Integers, Floats]:
    """Which tables to measure, and at what budgets, for the least total expected L1 error.

    Parameters
    ----------
    scores : (n_tables,) ndarray of float64
        A noisy estimate of the L1 error that each table removes if it is measured without noise.
    n_cells : (n_tables,) ndarray of int64 or float64
        How much noise each has at a budget.
    budget : float
    cost : NoiseCost
    subjects : (n_tables,) ndarray of int64, optional
        Numbers from 0: of tables about the same subject, one at most is chosen. All are about
        different ones by default.

    Returns
    -------
    chosen : (n_chosen,) ndarray of int64
        Positions in `scores`; empty if no measurement would reduce the error.
    budgets : (n_chosen,) ndarray of float64
        Their sum is `budget`.

    Notes
    -----
    Maximises ``sum of scores - expected L1 noise`` over sets of tables, each set at its best split:
    the objective of SWIFT [1]_ without its limits on combinations of tables. The noise grows with
    the sum of a set's roots (`NoiseCost.split`). At the optimum each table's score is more than its
    root times a price that is the same for all, so the sets to compare are those of the prices at
    which some table enters or gives way to another about its subject.

    References
    ----------
    .. [1] The mechanism of that name in Google's library dpsynth, 2026.
    """
    if not scores.size:
        return np.empty(0, dtype=np.int64), np.empty(0)
    roots = cost.roots(n_cells)
    subjects = np.arange(scores.size) if subjects is None else subjects
    best, most = np.empty(0, dtype=np.int64), 0.0
    prices = _prices(scores, roots, subjects)
    if prices.size > N_PRICES_MAX:
        prices = prices[np.linspace(0, prices.size - 1, N_PRICES_MAX).astype(np.int64)]
    unit = cost.least_l1(np.ones(1, dtype=np.int64), budget)
    for price in prices:
        chosen = _best_at(price, scores, roots, subjects)
        turn = chosen[np.argsort(-scores[chosen] / roots[chosen], kind="stable")]
        noise = unit * np.cumsum(roots[turn]) ** (1 + cost.power)
        gain = np.cumsum(scores[turn]) - noise  # of equal tables, some may be one too many
        if gain.size and gain.max() > most:
            best, most = turn[: int(gain.argmax()) + 1], float(gain.max())
    return best, cost.split(n_cells[best], budget) if best.size else np.empty(0)


def tells_more_than_noise(table: TableEstimate) -> bool:
    """Whether a pair's table is better used than its columns by themselves.

    Parameters
    ----------
    table : TableEstimate
        A table of two columns that was not chosen because of its values.

    Notes
    -----
    With the table, the error is its noise; without it, the dependence of the columns. What it shows
    of dependence is both: about the root of the sum of their squares, in L1. So the dependence is
    the greater one if it shows more than ``sqrt(2)`` times the noise.
    """
    rows, columns = table.values.sum(axis=1), table.values.sum(axis=0)
    total = float(table.values.sum())
    if not total > 0:
        return False
    shown = float(np.abs(table.values - np.outer(rows, columns) / total).sum())
    return shown > 2**0.5 * expected_l1(table)


def _prices(scores: Floats, roots: Floats, subjects: Integers) -> Floats:
    """Prices of a unit of root between which the best set stays the same, the highest first."""
    entering = scores / roots
    order = np.lexsort((roots, subjects))
    bigger, smaller = order[1:], order[:-1]
    rivals = subjects[bigger] == subjects[smaller]
    added = roots[bigger] - roots[smaller]
    giving_way = np.divide(
        scores[bigger] - scores[smaller], added, out=np.zeros(added.size), where=added > 0
    )[rivals & (added > 0)]
    prices = np.unique(np.concatenate([entering, giving_way, [0.0]]))
    return prices[prices >= 0][::-1] * (1 - PRICE_STEP)


def _best_at(price: float, scores: Floats, roots: Floats, subjects: Integers) -> Integers:
    """For each subject, the table with the largest gain at a price, if that is positive."""
    gains = scores - price * roots
    order = np.lexsort((-gains, subjects))
    first = np.ones(order.size, dtype=bool)
    first[1:] = subjects[order[1:]] != subjects[order[:-1]]
    chosen = order[first]
    return np.sort(chosen[gains[chosen] > 0])


N_GRID: Final = 80
N_STEPS: Final = 200  # more change the result by less than its noise
SMALLEST: Final = 1e-3  # positive score on the grid, as a share of the largest


def shrunk_scores(scores: Floats, largest: float, budget: float, cost: NoiseCost) -> Floats:
    """The expected true scores, given the noisy ones and the law of their noise.

    Parameters
    ----------
    scores : (n_scores,) ndarray of float64
        The noisy scores, each with independent noise.
    largest : float
        No true score is larger; none is negative.
    budget : float
        The budget that was spent on each score.
    cost : NoiseCost
        The noise for a budget.

    Returns
    -------
    (n_scores,) ndarray of float64
        From 0 to `largest`, in the same order of size as `scores`.

    Notes
    -----
    Empirical Bayes: the true scores are taken for draws from one distribution, which is estimated
    by maximum likelihood among all distributions on a grid [1]_ with expectation maximisation, from
    these and one made-up score of 0, without which a single score would be believed as it is. The
    noise has the density ``exp(-c |x|**(1 / power))`` up to a factor: Laplace for a power of 1,
    normal for 1/2.

    References
    ----------
    .. [1] R. Koenker, I. Mizera, "Convex Optimization, Shape Constraints, Compound Decisions, and
       Empirical Bayes Rules", Journal of the American Statistical Association 109, 2014.

    Examples
    --------
    >>> from synthesis.choice import LAPLACE
    >>> noisy = np.array([-12.0, 3.0, 9.0, 400.0])
    >>> shrunk_scores(noisy, 1000.0, 0.1, LAPLACE).round()
    array([  0.,   0.,   0., 400.])
    """
    if not scores.size or largest <= 0:
        return np.zeros(scores.size)
    grid = _grid(scores, largest)
    likelihood = _likelihood(scores, grid, cost.deviation / budget**cost.power, 1 / cost.power)
    prior = np.full(grid.size, 1 / grid.size)
    for _ in range(N_STEPS):
        prior = prior * (likelihood.T @ (1 / (likelihood @ prior)))
        prior[0] += 1  # the made-up score
        prior /= prior.sum()
    return np.asarray(likelihood @ (prior * grid) / (likelihood @ prior), dtype=np.float64)


def _grid(scores: Floats, largest: float) -> Floats:
    """Values that a true score may have: spread evenly by their logarithms, and as scores are."""
    spread = np.geomspace(SMALLEST * largest, largest, N_GRID)
    n_quantiles = min(scores.size, N_GRID)
    seen = np.quantile(np.clip(scores, 0.0, largest), np.linspace(0, 1, n_quantiles))
    return np.unique(np.concatenate([[0.0], spread, seen]))


def _likelihood(scores: Floats, grid: Floats, mean: float, exponent: float) -> Floats:
    """Likelihoods, at most 1, of scores (rows) for true values (columns)."""
    scale = mean * gamma(1 / exponent) / gamma(2 / exponent)
    logs = -((np.abs(scores[:, np.newaxis] - grid) / scale) ** exponent)
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)), dtype=np.float64)
