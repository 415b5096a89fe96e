"""The test of independence on a noisy table: its statistic, and the threshold by simulation.

Noise makes the classical test reject independence where it holds: the noise looks like dependence.
Here the threshold comes from simulated tables of independent columns, with the same noise added and
treated in the same way, so that the noise is on both sides of the comparison.

The decision is valid for columns that are chosen without looking at the noisy values. Of many
tested pairs some appear dependent by chance, with noise or without.

Plausible tables are fitted in the two steps of Gaboardi et al.: first the nearest non-negative
table of a given total, which best explains the noisy one, then the product of that table's
marginals, its independent version. Both handle many tables at once, because a test fits a thousand.
Nothing is random in them.

A noisy table that is answered from the history is put into the form that the test needs: counts and
noise. Cells that are answered from shared measurements have dependent errors, and so are their
draws. Only noisy values, weights and scales are read; the history is not changed.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from inference.error_terms import Places
from inference.independence.cell_noise import Floats, SampledCells, TableLaw
from inference.joint import draw_errors
from inference.posterior import Posterior

Tables = NDArray[np.float64]


def fitted_tables(noisy: Tables, scales: Tables, totals: Tables, *, squared_share: float) -> Tables:
    """The non-negative tables of given totals that are nearest to noisy ones.

    Parameters
    ----------
    noisy : (n_tables, n_cells) ndarray of float64
    scales : (n_cells,) ndarray of float64
        The size of the noise in each cell.
    totals : (n_tables,) ndarray of float64
        Positive: the total of each fitted table.
    squared_share : float
        ``gamma`` in (0, 1]. 1 is weighted least squares; near 0, the likelihood of Laplace noise.

    Returns
    -------
    (n_tables, n_cells) ndarray of float64

    Notes
    -----
    With ``u_i = (T_i - W_i) / b_i`` the fit minimises [1]_

        ``sum_i (1 - gamma) |u_i| + gamma u_i**2``   subject to  ``sum T = n``, ``T >= 0``.

    Deviations are in units of each cell's noise, so that cells with different noise are weighted as
    in the likelihood, and a fit does not depend on the unit of the counts.

    Only the total couples the cells. Given its multiplier ``p``, a cell is
    ``T_i(p) = max(0, W_i + b_i sign(p) max(0, |b_i p| - (1 - gamma)) / (2 gamma))``: piecewise
    linear in ``p``, flat where no further deviation pays, and never decreasing. So is the sum,
    whose kinks are the cells' kinks; ``p`` is interpolated between two of them. There is no
    iteration and no tolerance.

    References
    ----------
    .. [1] M. Gaboardi, H. Lim, R. Rogers, S. Vadhan, "Differentially Private Chi-Squared Hypothesis
       Testing: Goodness of Fit and Independence Testing", ICML 2016, section 5.

    Examples
    --------
    A negative cell becomes 0, and the surplus is taken where the noise is largest.

    >>> noisy, scales = np.array([[-3.0, 50.0, 60.0]]), np.array([1.0, 1.0, 10.0])
    >>> fitted_tables(noisy, scales, np.array([100.0]), squared_share=0.01).round(6)
    array([[ 0., 50., 50.]])
    """
    if not 0 < squared_share <= 1:
        raise ValueError(f"squared_share must lie in (0, 1], not {squared_share}")
    if not bool((totals > 0).all()):
        raise ValueError("the total of a fitted table must be positive")
    multiplier = _multipliers(noisy, scales, totals, squared_share)
    pull = multiplier[:, np.newaxis] * scales
    moved = np.maximum(np.abs(pull) - (1 - squared_share), 0.0) / (2 * squared_share)
    return np.maximum(noisy + np.copysign(moved, pull) * scales, 0.0)


def _multipliers(
    noisy: Tables, scales: Tables, totals: Tables, squared_share: float
) -> NDArray[np.float64]:
    """The multiplier of each table's total, (n_tables,)."""
    slopes = np.square(scales) / (2 * squared_share)
    edge = (1 - squared_share) / scales
    positive = noisy > 0
    # The multipliers at which cells reach or leave 0: a positive cell while falling, others rising.
    starts = np.where(positive, -edge, edge) - noisy / slopes
    edges = np.broadcast_to(edge, noisy.shape)
    kinks = np.concatenate([starts, -edges, edges], axis=1)
    rests = slopes * positive  # only a positive cell has its flat piece above 0
    turns = np.concatenate([np.broadcast_to(slopes, noisy.shape), -rests, rests], axis=1)

    order = np.argsort(kinks, axis=1)
    kinks = np.take_along_axis(kinks, order, axis=1)
    slope = np.cumsum(np.take_along_axis(turns, order, axis=1), axis=1)
    sums = np.zeros_like(kinks)  # the total of the table at each kink
    np.cumsum(slope[:, :-1] * np.diff(kinks, axis=1), axis=1, out=sums[:, 1:])

    last = (sums < totals[:, np.newaxis]).sum(axis=1) - 1
    here = np.arange(len(noisy)), last
    after = np.minimum(last + 1, kinks.shape[1] - 1)
    to_next = np.where(after > last, kinks[np.arange(len(noisy)), after] - kinks[here], np.inf)
    # On a flat piece the slope is 0 up to rounding, and any point up to the next kink will do.
    step = np.divide(
        totals - sums[here], slope[here], out=np.zeros_like(totals), where=slope[here] > 0
    )
    return np.asarray(kinks[here] + np.minimum(step, to_next), dtype=np.float64)


def independent_tables(tables: Tables, n_tested: int = 2) -> Tables:
    """The tables with the same marginals in which the first columns are independent of each other.

    Parameters
    ----------
    tables : (n_tables, n_rows, n_columns, ...) ndarray of float64
        Not negative. Independence is conditional on the axes after those of the tested columns.
    n_tested : int
        How many columns are independent, from the first: two or more. Of three and more, all of
        them together, and not each pair alone.

    Returns
    -------
    ndarray of float64
        In the same shape: ``T_x.z T_.yz / T_..z`` for two columns, ``T_w..z T_.x.z T_..yz /
        T_...z**2`` for three, and so on; 0 where ``T_..z`` is 0.

    Examples
    --------
    Two coins and whether they are equal: every two are independent, the three are not.

    >>> coins = np.array([[[[0.0, 2.0], [2.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]]]])
    >>> independent_tables(coins.sum(axis=3))[0].tolist(), coins.sum(axis=3)[0].tolist()
    ([[2.0, 2.0], [2.0, 2.0]], [[2.0, 2.0], [2.0, 2.0]])
    >>> independent_tables(coins, 3)[0].tolist()
    [[[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]]
    """
    axes = range(1, n_tested + 1)
    *margins, last = (
        tables.sum(axis=tuple(other for other in axes if other != axis), keepdims=True)
        for axis in axes
    )
    totals = last.sum(axis=n_tested, keepdims=True)
    for margin in margins:
        shares = np.divide(margin, totals, out=np.zeros_like(margin), where=totals > 0)
        last = shares * last
    return np.asarray(last, dtype=np.float64)


def degrees_of_freedom(shape: Sequence[int], n_tested: int = 2) -> int:
    """The degrees of freedom of the chi-square law that a statistic has without noise.

    Parameters
    ----------
    shape : sequence of int
        The number of levels of each column, the tested ones first.
    n_tested : int

    Notes
    -----
    For each combination of the given columns: the cells, less 1, less a level less 1 of each tested
    column. Of two columns, ``(r - 1) (c - 1)``.

    >>> degrees_of_freedom((3, 4)), degrees_of_freedom((2, 2, 2), 3), degrees_of_freedom((2, 2, 2))
    (6, 4, 2)
    """
    tested, given = shape[:n_tested], shape[n_tested:]
    return (math.prod(tested) - 1 - sum(size - 1 for size in tested)) * math.prod(given)


class Statistic(StrEnum):
    """How far a table is from an independent one."""

    PEARSON = "pearson"  # sum (W - m)**2 / m
    G2 = "g2"  # 2 sum T log(T / m), the likelihood ratio


def table_from_history(
    cells: Sequence[Posterior], history: Places, shape: tuple[int, ...]
) -> tuple[Floats, SampledCells]:
    """The noisy counts and the joint law of their noise.

    Parameters
    ----------
    cells : sequence of Posterior
        The answers for the cells of a table, the last axis fastest; from `history`, as it is now or
        as it was when it was shorter.
    history : Places
        The history whose places the terms of the answers name. It may grow while the noise is in
        use.
    shape : tuple of int
        The shape of the table.

    Returns
    -------
    (noisy, noise)
        The values in the table's shape, and the law of their errors.

    Raises
    ------
    ValueError
        If the cells do not fill the table, or an answer has no noise.
    """
    if len(cells) != math.prod(shape):
        raise ValueError(f"{len(cells)} answers do not fill a table of the shape {shape}")
    answers = tuple(cells)

    def errors(n_tables: int, generator: np.random.Generator) -> Floats:
        return draw_errors(answers, history, n_tables, generator).T.reshape(n_tables, *shape)

    values = np.array([cell.value for cell in answers], dtype=np.float64)
    spread = np.array([cell.standard_deviation for cell in answers], dtype=np.float64)
    return values.reshape(shape), SampledCells(spread.reshape(shape), errors)


SMALLEST_EXPECTED = 5.0  # the usual least expected count of a cell, for Pearson's statistic
N_CELLS_AT_ONCE = 2**17  # cells of the tables simulated at once: bounds the memory to some 20 MB


class Decision(StrEnum):
    """The decision of the test about independence."""

    REJECTED = "rejected"
    NOT_REJECTED = "not_rejected"


class Reason(StrEnum):
    """Why the test decides so."""

    ABOVE_THRESHOLD = "statistic above threshold"
    WITHIN_THRESHOLD = "statistic within threshold"
    SMALL_CELLS = "small cells"


@dataclass(frozen=True, slots=True)
class IndependenceTest:
    """The outcome of a test.

    Parameters
    ----------
    statistic, threshold : float
        The statistic of the noisy table, and its threshold at the level of the test; both NaN if
        the cells are too small.
    p_value : float
        The share of tables, the simulated ones and this one, whose statistic is at least this
        one's; 1 if the cells are too small.
    decision : Decision
    reason : Reason
    n_replicates : int
        The number of simulated tables; 0 if the cells are too small.
    n_small_replicates : int
        How many of them had small cells, and counted as below every statistic.
    degrees_of_freedom : int
        The degrees of freedom of the chi-square law that the statistic would have without noise.
    """

    statistic: float
    threshold: float
    p_value: float
    decision: Decision
    reason: Reason
    n_replicates: int
    n_small_replicates: int
    degrees_of_freedom: int

    def __post_init__(self) -> None:
        if not 0 < self.p_value <= 1:
            raise ValueError(f"a p-value must lie in (0, 1], not {self.p_value}")
        if not 0 <= self.n_small_replicates <= self.n_replicates:
            raise ValueError(
                "the number of small replicates must not exceed the number of replicates"
            )
        if (self.reason is Reason.ABOVE_THRESHOLD) != (self.decision is Decision.REJECTED):
            raise ValueError(
                f"the reason '{self.reason}' does not match the decision '{self.decision}'"
            )
        if (self.reason is Reason.ABOVE_THRESHOLD) != (self.statistic > self.threshold):
            raise ValueError(
                f"the reason '{self.reason}' does not match the statistic {self.statistic} "
                f"and the threshold {self.threshold}"
            )


def independence_test(  # noqa: PLR0913 - two subjects, and what a test must be told, by keyword
    noisy: Floats,
    noise: TableLaw,
    *,
    generator: np.random.Generator,
    level: float = 0.05,
    n_records: int | None = None,
    n_replicates: int = 999,
    n_tested: int = 2,
    kind: Statistic = Statistic.PEARSON,
) -> IndependenceTest:
    """Test whether the first columns of a noisy table are independent, given the others.

    Parameters
    ----------
    noisy : (n_rows, n_columns, ...) ndarray of float64
        Noisy counts: an axis for each tested column, then one for each given column.
    noise : TableLaw
        How such tables come about, in the same shape.
    generator : numpy.random.Generator
        For the simulated tables; passed by the caller, so that a test can be repeated.
    level : float
        The approximate probability of rejecting independence where it holds.
    n_records : int, optional
        The total of the exact table, where it is public. Otherwise the rounded noisy total is used
        instead, here and for every simulated table.
    n_replicates : int
        How many tables are simulated; at least ``1 / level - 1``.
    n_tested : int
        How many columns are tested: two, or more, whose mutual independence is tested.
    kind : Statistic

    Returns
    -------
    IndependenceTest

    Notes
    -----
    This is MCIndep of [1]_. With ``T`` the table fitted to ``W`` (`fitted_tables`) and ``m`` its
    independent version, the statistic is ``q = sum (W - m)**2 / m``, or the likelihood ratio
    ``2 sum T log(T / m)``, of ``T`` because ``W`` may be negative. Each replicate is
    ``Multinomial(n, m / n)`` plus noise, or through the channels of randomised answers and back,
    fitted and measured like ``W`` was. With ``k`` the largest
    whole number not above ``(n_replicates + 1) level``, the threshold is the ``k``-th largest
    replicate, and ``p = (1 + #{q_b >= q}) / (n_replicates + 1)``: the statistic is above the
    threshold exactly if ``p <= level``.

    Cells are small if some expected count, a cell of ``m``, is below 5. Then no test is made. A
    replicate with small cells would not be rejected either, and counts as below every statistic.
    (The paper uses the cells of ``T`` instead. Then the strongest dependence, with empty cells,
    would never be found.)

    References
    ----------
    .. [1] M. Gaboardi, H. Lim, R. Rogers, S. Vadhan, "Differentially Private Chi-Squared Hypothesis
       Testing: Goodness of Fit and Independence Testing", ICML 2016, section 5.
    """
    noisy = _checked(noisy, noise, n_records, n_tested)
    n_rejecting = _n_rejecting(level, n_replicates)
    degrees = degrees_of_freedom(noisy.shape, n_tested)
    examined = partial(_examined, noise=noise, n_records=n_records, n_tested=n_tested, kind=kind)
    totals, expected, statistics = examined(noisy[np.newaxis])
    statistic = float(statistics[0])
    if statistic == -math.inf:
        return IndependenceTest(
            statistic=math.nan,
            threshold=math.nan,
            p_value=1.0,
            decision=Decision.NOT_REJECTED,
            reason=Reason.SMALL_CELLS,
            n_replicates=0,
            n_small_replicates=0,
            degrees_of_freedom=degrees,
        )
    replicates = _replicates(
        int(totals[0]),
        expected[0],
        noise,
        examined,
        n_replicates=n_replicates,
        generator=generator,
    )
    threshold = float(np.partition(replicates, -n_rejecting)[-n_rejecting])
    above = statistic > threshold
    return IndependenceTest(
        statistic=statistic,
        threshold=threshold,
        p_value=(1 + int((replicates >= statistic).sum())) / (n_replicates + 1),
        decision=Decision.REJECTED if above else Decision.NOT_REJECTED,
        reason=Reason.ABOVE_THRESHOLD if above else Reason.WITHIN_THRESHOLD,
        n_replicates=n_replicates,
        n_small_replicates=int((replicates == -math.inf).sum()),
        degrees_of_freedom=degrees,
    )


def _examined(
    noisy: Floats, *, noise: TableLaw, n_records: int | None, n_tested: int, kind: Statistic
) -> tuple[Floats, Floats, Floats]:
    """Fit tables, and measure their distance from independence.

    Returns
    -------
    (totals, expected, statistics)
        ``(n_tables,)``, ``(n_tables, *shape)`` and ``(n_tables,)``. The statistic of a table with
        small cells is ``-inf``.
    """
    n_tables = len(noisy)
    cells = noisy.reshape(n_tables, -1)
    # No table fits a total of 0 or less. A total of 1 works, and its cells are small.
    totals = (
        np.maximum(np.rint(cells.sum(axis=1)), 1.0)
        if n_records is None
        else np.full(n_tables, float(n_records))
    )
    fitted = fitted_tables(cells, noise.scales.ravel(), totals, squared_share=noise.squared_share)
    expected = independent_tables(fitted.reshape(noisy.shape), n_tested)
    means = expected.reshape(n_tables, -1)
    statistics = np.full(n_tables, -math.inf)
    tested = means.min(axis=1) >= SMALLEST_EXPECTED
    statistics[tested] = _statistics(cells[tested], fitted[tested], means[tested], kind)
    return totals, expected, statistics


def _statistics(noisy: Floats, fitted: Floats, means: Floats, kind: Statistic) -> Floats:
    """The distance of each table, (n_tables, n_cells), from its independent version."""
    if kind is Statistic.PEARSON:
        return np.asarray((np.square(noisy - means) / means).sum(axis=1))
    return np.asarray(2 * xlogy(fitted, fitted / means).sum(axis=1))


def _replicates(  # noqa: PLR0913 - all there is to a simulated table
    total: int,
    expected: Floats,
    noise: TableLaw,
    examined: Callable[[Floats], tuple[Floats, Floats, Floats]],
    *,
    n_replicates: int,
    generator: np.random.Generator,
) -> Floats:
    """The statistics of simulated tables, (n_replicates,)."""
    probabilities = expected / expected.sum()
    n_at_once = max(1, N_CELLS_AT_ONCE // expected.size)
    found = []
    for start in range(0, n_replicates, n_at_once):
        n_tables = min(n_at_once, n_replicates - start)
        noisy = noise.noisy_tables(probabilities, total, n_tables, generator)
        found.append(examined(noisy)[2])
    return np.concatenate(found)


def _checked(noisy: Floats, noise: TableLaw, n_records: int | None, n_tested: int) -> Floats:
    table = np.asarray(noisy, dtype=np.float64)
    if not 2 <= n_tested <= table.ndim or min(table.shape[:n_tested]) < 2:  # noqa: PLR2004 - columns, levels
        raise ValueError(
            "the test needs two columns or more of at least two levels, not a table of the shape "
            f"{table.shape}"
        )
    if table.shape != noise.scales.shape:
        raise ValueError(
            f"the noise has the shape {noise.scales.shape}, but the table has {table.shape}"
        )
    if not np.isfinite(table).all():
        raise ValueError("noisy counts must be finite")
    if n_records is not None and n_records < 1:
        raise ValueError(f"a table of {n_records} records is too small to be tested")
    return table


def _n_rejecting(level: float, n_replicates: int) -> int:
    """Which replicate, counted from the largest, is the threshold."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, not {level}")
    # As floats, 0.07 * 100 is just above 7 and 0.29 * 100 just below 29: 7 and 29 are meant.
    n_rejecting = math.floor(level * (n_replicates + 1) * (1 + 1e-12))
    if n_rejecting < 1:
        raise ValueError(f"{n_replicates} replicates are too few for level {level}")
    return n_rejecting
