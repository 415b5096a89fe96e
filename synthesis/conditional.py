"""The law of a column given a few others, from its pair tables with each of them.

Fitted over the combinations that occur in the rows already drawn, never over all possible ones, so
the work grows with the rows. No table of three columns is measured or kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from synthesis.fitting import ratio_or_zero
from synthesis.tables import Floats, Integers

N_SWEEPS = 10  # further sweeps change two-way tables by less than rounding does


@dataclass(frozen=True, eq=False)
class Conditional:
    """``Pr(column | partners)``, proportional to a product of one factor for each partner.

    Parameters
    ----------
    base : (n_levels,) ndarray of float64
        The column's own shares.
    factors : tuple of (n_partner_levels, n_levels) ndarray of float64
    """

    base: Floats
    factors: tuple[Floats, ...]

    def given(self, combinations: Integers) -> Floats:
        """Shares of the levels, (n_combinations, n_levels), given the partners' levels.

        Parameters
        ----------
        combinations : (n_combinations, n_partners) ndarray of int64
        """
        shares = np.tile(self.base, (len(combinations), 1))
        for factor, levels in zip(self.factors, combinations.T, strict=True):
            shares *= factor[levels]
        sums = shares.sum(axis=1, keepdims=True)
        # If the partners' factors exclude every level, the column's own shares are used
        return np.where(sums > 0, ratio_or_zero(shares, sums), self.base)


def fit_conditional(
    base: Floats, tables: Sequence[Floats], combinations: Integers, counts: Integers
) -> Conditional:
    """Fit the law of a column so that it agrees with its pair table with every partner.

    Parameters
    ----------
    base : (n_levels,) ndarray of float64
        The column's shares.
    tables : sequence of (n_partner_levels, n_levels) ndarray of float64
        Counts, one table for each partner.
    combinations : (n_combinations, n_partners) ndarray of int64
        Partners' levels in rows that exist, distinct.
    counts : (n_combinations,) ndarray of int64
        The number of rows with each combination.

    Notes
    -----
    Proportional fitting [1]_ of the joint law of the column and the existing combinations, starting
    from independence: ``shares *= wanted / found`` for the pair table with each partner in turn,
    then normalised, so that the law of the combinations stays the same. ``wanted`` is the pair
    table's law of the column given the partner, times the partner's counts in the rows. Of all
    joint laws that agree with the tables, this is the one of greatest entropy [2]_.

    References
    ----------
    .. [1] W. E. Deming, F. F. Stephan, "On a Least Squares Adjustment of a Sampled Frequency Table
       When the Expected Marginal Totals are Known", Annals of Mathematical Statistics 11, 1940.
    .. [2] I. Csiszar, "I-Divergence Geometry of Probability Distributions and Minimization
       Problems", Annals of Probability 3, 1975.
    """
    partners = [
        _Partner.of(table, levels, counts)
        for table, levels in zip(tables, combinations.T, strict=True)
    ]
    shares = np.tile(base, (len(combinations), 1))
    factors = [np.ones(table.shape) for table in tables]
    weights = counts.astype(np.float64)
    ones = np.ones(base.size)
    step = np.empty_like(shares)
    for _ in range(N_SWEEPS if partners else 0):
        for place, partner in enumerate(partners):
            ratio = ratio_or_zero(partner.wanted, partner.found(shares, weights))
            factors[place] = factors[place] * ratio
            np.take(ratio, partner.levels, axis=0, out=step)
            shares *= step
            # The weights of the next step normalise the shares, which saves a pass over them
            weights = ratio_or_zero(counts.astype(np.float64), shares @ ones)
        shares *= (weights / counts)[:, np.newaxis]
        weights = counts.astype(np.float64)
    return Conditional(base, tuple(_scaled(factor) for factor in factors))


@dataclass(frozen=True, eq=False)
class _Partner:
    """One partner's side of the fit.

    Parameters
    ----------
    wanted : (n_partner_levels, n_levels) ndarray of float64
    levels : (n_combinations,) ndarray of int64
        The partner's level in each combination.
    by_level : (n_combinations,) ndarray of int64
        Combinations, sorted by that level.
    starts : (n_partner_levels + 1,) ndarray of int64
        Where each level begins in that order.
    """

    wanted: Floats
    levels: Integers
    by_level: Integers
    starts: Integers

    @classmethod
    def of(cls, table: Floats, levels: Integers, counts: Integers) -> "_Partner":
        n_rows = np.bincount(levels, weights=counts, minlength=len(table))
        wanted = ratio_or_zero(table, table.sum(axis=1, keepdims=True)) * n_rows[:, np.newaxis]
        by_level = np.argsort(levels, kind="stable")
        starts = np.searchsorted(levels[by_level], np.arange(len(table) + 1))
        return cls(wanted, levels, by_level, starts)

    def found(self, shares: Floats, weights: Floats) -> Floats:
        """The pair table that the shares imply, with each combination weighted."""
        shape = (self.starts.size - 1, self.by_level.size)
        summing = sparse.csr_array((weights[self.by_level], self.by_level, self.starts), shape)
        return np.asarray(summing @ shares, dtype=np.float64)


def _scaled(factor: Floats) -> Floats:
    """A factor scaled so that each row has the maximum 1; a row of zeros becomes ones."""
    largest = factor.max(axis=1, keepdims=True)
    return np.where(largest > 0, ratio_or_zero(factor, largest), 1.0)
