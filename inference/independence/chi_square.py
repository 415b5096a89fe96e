"""The test of independence on a noisy table: Pearson's statistic, its threshold by simulation.

Noise makes the classical test reject independence where it holds: the noise looks like dependence.
Here the threshold comes from simulated tables of independent columns, with the same noise added and
treated in the same way, so that the noise is on both sides of the comparison.

The decision is valid for columns that are chosen without looking at the noisy values. Of many
tested pairs some appear dependent by chance, with noise or without.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from inference.independence.cell_noise import Floats, TableLaw
from inference.independence.table_fit import fitted_tables, independent_tables

SMALLEST_EXPECTED = 5.0  # the usual least expected count of a cell, for Pearson's statistic
N_CELLS_AT_ONCE = 2**17  # cells of the tables simulated at once: bounds the memory to some 20 MB


class Decision(StrEnum):
    """What the test says about independence."""

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
        Pearson's statistic of the noisy table, and its threshold at the level of the test; both
        NaN if the cells are too small.
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
        Of the chi-square law that the statistic would have without noise.
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
            raise ValueError("there are more small replicates than replicates")
        if (self.reason is Reason.ABOVE_THRESHOLD) != (self.decision is Decision.REJECTED):
            raise ValueError(f"'{self.reason}' is not a reason for '{self.decision}'")
        if (self.reason is Reason.ABOVE_THRESHOLD) != (self.statistic > self.threshold):
            raise ValueError(f"{self.statistic} against {self.threshold} is not '{self.reason}'")


def independence_test(  # noqa: PLR0913 - two subjects, and what a test must be told, by keyword
    noisy: Floats,
    noise: TableLaw,
    *,
    generator: np.random.Generator,
    level: float = 0.05,
    n_records: int | None = None,
    n_replicates: int = 999,
) -> IndependenceTest:
    """Test whether the first two columns of a noisy table are independent, given the others.

    Parameters
    ----------
    noisy : (n_rows, n_columns, ...) ndarray of float64
        Noisy counts. With two axes, independence is tested; with more, independence given the
        columns of all further axes.
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

    Returns
    -------
    IndependenceTest

    Notes
    -----
    This is MCIndep of [1]_. With ``T`` the table fitted to ``W`` (`fitted_tables`) and ``m`` its
    independent version, the statistic is ``q = sum (W - m)**2 / m``. Each replicate is
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
    noisy = _checked(noisy, noise, n_records)
    n_rejecting = _n_rejecting(level, n_replicates)
    n_rows, n_columns, *given = noisy.shape
    degrees_of_freedom = (n_rows - 1) * (n_columns - 1) * math.prod(given)
    totals, expected, statistics = _examined(noisy[np.newaxis], noise, n_records)
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
            degrees_of_freedom=degrees_of_freedom,
        )
    replicates = _replicates(
        int(totals[0]),
        expected[0],
        noise,
        n_records,
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
        degrees_of_freedom=degrees_of_freedom,
    )


def _examined(
    noisy: Floats, noise: TableLaw, n_records: int | None
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
    expected = independent_tables(fitted.reshape(noisy.shape))
    means = expected.reshape(n_tables, -1)
    statistics = np.full(n_tables, -math.inf)
    tested = means.min(axis=1) >= SMALLEST_EXPECTED
    means_tested = means[tested]
    statistics[tested] = (np.square(cells[tested] - means_tested) / means_tested).sum(axis=1)
    return totals, expected, statistics


def _replicates(  # noqa: PLR0913 - all there is to a simulated table
    total: int,
    expected: Floats,
    noise: TableLaw,
    n_records: int | None,
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
        found.append(_examined(noisy, noise, n_records)[2])
    return np.concatenate(found)


def _checked(noisy: Floats, noise: TableLaw, n_records: int | None) -> Floats:
    table = np.asarray(noisy, dtype=np.float64)
    if table.ndim < 2 or min(table.shape[:2]) < 2:  # noqa: PLR2004 - two columns, two levels each
        raise ValueError(f"the test needs two columns of two levels or more, not {table.shape}")
    if table.shape != noise.scales.shape:
        raise ValueError(f"noise of shape {noise.scales.shape} for a table of {table.shape}")
    if not np.isfinite(table).all():
        raise ValueError("noisy counts must be finite")
    if n_records is not None and n_records < 1:
        raise ValueError(f"a table of {n_records} records cannot be tested")
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
