"""What is bought for a synthetic table, with Laplace or Gaussian noise, and how much it cost.

The spending for a synthetic table: what is bought for it, and how much of its budget is used.

Budgets are floats or fractions from planning; they become whole units, rounded down, so that a
synthetic table never costs more than requested. Every purchase is charged separately.

The spending for a synthetic table that is measured with Gaussian noise, under a delta.

The purchases are the same as with Laplace noise; budgets are parts of ``mu**2``, twice the rho that
the epsilon buys under the table's terms. Counts are rows of the history, which SQL queries use too.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from accountant.cost import constant_of
from accountant.ledger import Payer
from cube.classes import tiled
from cube.measurement import (
    PRECISION_UNITS_MAX,
    UNITS_PER_EPSILON,
    UNITS_PER_RHO,
    GaussianTerms,
    Precision,
    Rho,
    Weight,
)
from cube.pieces import runs_of
from cube.query import Partition, Scope
from cube.refusals import InvalidRequest
from cube.statistic import Asked, Distance, PlannedGaussian, PlannedStatistic, Statistic
from planner.measuring import GaussianKind
from proxy.synthetic_tables.request import Progress, Watch
from proxy.tables import ServedTable

N_CELLS_LISTED_MAX: Final = 2**14  # of a partition whose groups are kept cell by cell


class LaplaceSpending:
    """Pays for one synthetic table.

    Parameters
    ----------
    epsilon : Fraction
        The most that all of it may cost.
    watch : callable
        Called before each step.
    levels : sequence of int, optional
        Of a federated table: the holders whose rows are meant; all by default.
    """

    distances_cost_all: ClassVar[bool] = False  # also the cells that they do not look at

    def __init__(
        self,
        table: ServedTable,
        payer: Payer,
        epsilon: Fraction,
        watch: Watch,
        levels: Sequence[int] | None = None,
    ) -> None:
        self.table = table
        self.levels = all_levels(table) if levels is None else tuple(levels)
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

    def buy(
        self,
        budgets: Mapping[Partition | None, float | Fraction],
        levels: Collection[int] | None = None,
    ) -> None:
        """Add weight to the counts of partitions; with `levels`, of some holders' rows alone.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge, LedgerUnavailable, SourceUnavailable
        """
        weights = {partition: _weight(budget) for partition, budget in budgets.items()}
        added = {partition: weight for partition, weight in weights.items() if weight is not None}
        self.spent += self.table.buy_tables(
            added, self._payer, epsilon_cap=self._left, levels=levels or self.levels
        )

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


def all_levels(table: ServedTable) -> tuple[int, ...]:
    """The holders of a federated table; none of any other."""
    holders = table.extent.holders
    return () if holders is None else tuple(range(holders.n_holders))


def product_partition(
    scope: Scope, labels: Mapping[str, NDArray[np.int64]], outside: NDArray[np.bool_] | None = None
) -> Partition:
    """The product of partitions of a scope's axes; the last axis' groups vary fastest.

    Parameters
    ----------
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


RHO_PER_BUDGET: Final = Fraction(1, 2)  # rho = mu**2 / 2


@dataclass(frozen=True, slots=True)
class GaussianBudget:
    """How much Gaussian noise an epsilon buys on a table, in its current state.

    Parameters
    ----------
    opening : Fraction
        The epsilon that the first charge pays for the terms; 0 once they are paid for.
    budget : Fraction
        In ``mu**2``, for a record.
    times : int
        What a unit costs for each record's rho: the square of its most records. On a federated
        table whose units may be at several holders it is that sum over holders.
    """

    terms: GaussianTerms
    opening: Fraction
    budget: Fraction
    times: int = 1

    @classmethod
    def of(cls, table: ServedTable, epsilon: Fraction, delta: Fraction) -> "GaussianBudget":
        """The most that can be bought.

        Raises
        ------
        InvalidRequest
            If the table's Gaussian noise is accounted under another delta; or if a federated table
            has none yet, and the first costs more than `epsilon`.
        """
        account = table.gate.history.gaussian
        declared = table.first_terms if table.is_federated else None
        if account.terms is None and declared is not None:
            terms = _affordable(declared, table, epsilon)
        else:
            terms = account.terms_for(delta, epsilon)
        rows = account.rows_per_unit
        times = rows * table.extent.schema.of_one_holder.rows_per_unit_max
        units = account.most_rho_units(terms, epsilon) * rows**2
        budget = Fraction(units, UNITS_PER_RHO * times) / RHO_PER_BUDGET
        opening = constant_of(terms) if account.terms is None else Fraction(0)
        return cls(terms, opening, budget, times)

    @property
    def epsilon_per_budget(self) -> Fraction:
        """The epsilon that one unit of the budget costs, beyond the opening."""
        return self.times * self.terms.order * RHO_PER_BUDGET


def _affordable(terms: GaussianTerms, table: ServedTable, epsilon: Fraction) -> GaussianTerms:
    """The terms that a federated table's owner declares, if the first noise costs less than that.

    Its holders have terms of their own, whatever one synthetic table costs; where these are the
    same, no holder charges more than the coordinator.
    """
    opening = constant_of(terms)
    if opening >= epsilon:
        raise InvalidRequest(
            f"The first Gaussian noise of {table.info.schema.table} costs epsilon "
            f"{float(opening):.3g} once, which is more than is given.",
            hint="Give more, or leave delta out. With a smaller expected_epsilon in the settings "
            "of the table and of its holders, the first noise costs less.",
        )
    return terms


class GaussianSpending(LaplaceSpending):
    """Pays for one synthetic table in rho.

    Parameters
    ----------
    table, payer, epsilon, watch, levels
        As for `LaplaceSpending`; the epsilon is the most by which the table's cost may grow.
    delta : Fraction
        The delta that the table offers.

    Raises
    ------
    InvalidRequest
        If the table's Gaussian noise is accounted under another delta.
    """

    distances_cost_all = True

    def __init__(  # noqa: PLR0913, PLR0917 - as its base, and the delta
        self,
        table: ServedTable,
        payer: Payer,
        epsilon: Fraction,
        watch: Watch,
        delta: Fraction,
        levels: Sequence[int] | None = None,
    ) -> None:
        super().__init__(table, payer, epsilon, watch, levels)
        bought = GaussianBudget.of(table, epsilon, delta)
        self._terms, self.budget, self._bought = bought.terms, bought.budget, bought

    def buy(
        self,
        budgets: Mapping[Partition | None, float | Fraction],
        levels: Collection[int] | None = None,
    ) -> None:
        """Add precision to the counts of partitions; see `LaplaceSpending.buy`."""
        precisions = {partition: self._precision(budget) for partition, budget in budgets.items()}
        added = {partition: one for partition, one in precisions.items() if one is not None}
        kind = GaussianKind(self._terms)
        self.spent += self.table.buy_tables(
            added, self._payer, epsilon_cap=self._left, kind=kind, levels=levels or self.levels
        )

    def ask(self, statistics: Sequence[Statistic], budget: float | Fraction) -> tuple[float, ...]:
        """Noisy distances, each for a part `budget` of ``mu**2``; see `LaplaceSpending.ask`."""
        asked = [one for one in statistics if isinstance(one, Distance)]
        if len(asked) < len(statistics):
            raise ValueError("a choice cannot be made with Gaussian noise")
        units = int(Fraction(budget) * RHO_PER_BUDGET * UNITS_PER_RHO * self._paid_by_holder)
        if not units or not asked:
            return ()
        return self.told([PlannedGaussian(one, Rho(units), self._terms) for one in asked])

    @property
    def _paid_by_holder(self) -> Fraction:
        """What of a budget a statistic of one holder may have.

        Of a table that grows, its cost is that of every cell, and those of all holders add up.
        """
        holders, account = self.table.extent.holders, self.table.gate.history.gaussian
        if holders is None or account.holders or holders.n_holders == 1:
            return Fraction(1)
        return Fraction(self._bought.times, holders.n_holders * account.rows_per_unit**2)

    def _precision(self, budget: float | Fraction) -> Precision | None:
        """The most precise counts that cost no more than a budget; None if that buys nothing.

        What rows cost a cell is rounded up to whole units of epsilon, so the budget is first
        rounded down to them.
        """
        cost_units = int(Fraction(budget) * self._bought.epsilon_per_budget * UNITS_PER_EPSILON)
        units = GaussianKind(self._terms).affordable(cost_units) // self._bought.times
        return Precision(min(units, PRECISION_UNITS_MAX)) if units else None
