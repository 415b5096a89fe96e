"""The spending for a synthetic table: what is bought for it, and how much of its budget is used.

Budgets are floats or fractions from planning; they become whole units, rounded down, so that a
synthetic table never costs more than requested. Every purchase is charged separately.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from accountant.ledger.limits import Payer
from cube.classes import tiled
from cube.measurement import UNITS_PER_EPSILON, Weight
from cube.pieces import runs_of
from cube.query import Partition, Scope
from cube.statistic import Asked, PlannedStatistic, Statistic
from proxy.synthetic_tables.request import Progress, Watch
from proxy.tables.private_table import ServedTable

N_CELLS_LISTED_MAX: Final = 2**14  # of a partition whose groups are kept cell by cell


class LaplaceSpending:
    """Pays for one synthetic table.

    Parameters
    ----------
    table : ServedTable
    payer : Payer
    epsilon : Fraction
        The most that all of it may cost.
    watch : callable
        Called before each step.
    """

    distances_cost_all: ClassVar[bool] = False  # also the cells that they do not look at

    def __init__(self, table: ServedTable, payer: Payer, epsilon: Fraction, watch: Watch) -> None:
        self.table = table
        self.spent = Fraction(0)
        self._payer = payer
        self._epsilon = epsilon
        self._watch = watch

    def budget_of(self, epsilon: Fraction) -> Fraction:
        """The budget that an epsilon pays for: the sum of weights over the tables of a record."""
        return self.table.info.schema.per_row(epsilon)

    def step(self, name: str, done: float) -> None:
        """Report that a step begins."""
        self._watch(Progress(name, done, self.spent))

    def buy(self, budgets: Mapping[Partition | None, float | Fraction]) -> None:
        """Add weight to the counts of partitions.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge, LedgerUnavailable, SourceUnavailable
        """
        weights = {partition: _weight(budget) for partition, budget in budgets.items()}
        added = {partition: weight for partition, weight in weights.items() if weight is not None}
        self.spent += self.table.buy_tables(added, self._payer, epsilon_cap=self._left)

    def ask(self, statistics: Sequence[Statistic], budget: float | Fraction) -> tuple[float, ...]:
        """Noisy statistics, each with a weight of at most `budget`.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge, LedgerUnavailable, SourceUnavailable
        """
        weight = _weight(budget)
        if weight is None:
            raise ValueError("a statistic costs at least one unit")
        return self.told([PlannedStatistic(one, weight) for one in statistics])

    def told(self, asked: Sequence[Asked]) -> tuple[float, ...]:
        """The released values of statistics, each at the price that it names.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge, LedgerUnavailable, SourceUnavailable
        """
        values, paid = self.table.ask_statistics(asked, self._payer, epsilon_cap=self._left)
        self.spent += paid
        return values

    @property
    def _left(self) -> Fraction:
        return self._epsilon - self.spent


def product_partition(
    scope: Scope, labels: Mapping[str, NDArray[np.int64]], outside: NDArray[np.bool_] | None = None
) -> Partition:
    """The product of partitions of a scope's axes; the last axis' groups vary fastest.

    Parameters
    ----------
    scope : tuple of str
    labels : mapping of str to ndarray of int64
        The group of each level, of each axis.
    outside : ndarray of bool, optional
        The cells that are left out, of a shape that goes with the product's.

    Notes
    -----
    Where there are many cells, and none is left out, only the groups along each axis are stored: a
    charge and the history keep every partition that was ever scored or counted.
    """
    n_cells = math.prod(labels[name].size for name in scope)
    if len(scope) > 1 and outside is None and n_cells > N_CELLS_LISTED_MAX:
        n_groups = [int(labels[name].max()) + 1 for name in scope]
        numbers = np.arange(math.prod(n_groups), dtype=np.int64).reshape(n_groups)
        return Partition(scope, tiled(tuple(runs_of(labels[name]) for name in scope), numbers))
    product = np.zeros((1,) * len(scope), dtype=np.int64)
    for axis, name in enumerate(scope):
        shape = [-1 if one == axis else 1 for one in range(len(scope))]
        product = product * (int(labels[name].max()) + 1) + labels[name].reshape(shape)
    if outside is not None:
        product = np.where(outside, -1, product)
    return Partition(scope, np.ascontiguousarray(product, dtype=np.int64))


def _weight(budget: float | Fraction) -> Weight | None:
    """A budget as a weight, rounded down; None if it is less than one unit."""
    units = int(Fraction(budget) * UNITS_PER_EPSILON)
    return Weight(units) if units > 0 else None
