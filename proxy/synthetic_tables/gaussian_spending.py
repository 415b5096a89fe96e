"""The spending for a synthetic table that is measured with Gaussian noise, under a delta.

The purchases are the same as with Laplace noise; budgets are parts of ``mu**2``, twice the rho that
the epsilon buys under the table's terms. Counts are rows of the history, which SQL queries use too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from accountant.cost.zcdp_account import constant_of
from accountant.ledger.limits import Payer
from cube.measurement import (
    PRECISION_UNITS_MAX,
    UNITS_PER_EPSILON,
    UNITS_PER_RHO,
    GaussianTerms,
    Precision,
    Rho,
)
from cube.query import Partition
from cube.statistic import Distance, PlannedGaussian, Statistic
from planner.measuring.weights import GaussianKind
from proxy.synthetic_tables.request import Watch
from proxy.synthetic_tables.spending import LaplaceSpending
from proxy.tables.private_table import ServedTable

RHO_PER_BUDGET: Final = Fraction(1, 2)  # rho = mu**2 / 2


@dataclass(frozen=True, slots=True)
class GaussianBudget:
    """How much Gaussian noise an epsilon buys on a table, in its current state.

    Parameters
    ----------
    terms : GaussianTerms
    opening : Fraction
        The epsilon that the first charge pays for the terms; 0 once they are paid for.
    budget : Fraction
        In ``mu**2``.
    rows_per_unit : int
        The most records of one unit.
    """

    terms: GaussianTerms
    opening: Fraction
    budget: Fraction
    rows_per_unit: int = 1

    @classmethod
    def of(cls, table: ServedTable, epsilon: Fraction, delta: Fraction) -> "GaussianBudget":
        """The most that can be bought.

        Raises
        ------
        InvalidRequest
            If the table's Gaussian noise is accounted under another delta.
        """
        account = table.gate.history.gaussian
        terms = account.terms_for(delta, epsilon)
        rho = Fraction(account.most_rho_units(terms, epsilon), UNITS_PER_RHO)
        opening = constant_of(terms) if account.terms is None else Fraction(0)
        return cls(terms, opening, rho / RHO_PER_BUDGET, account.rows_per_unit)

    @property
    def epsilon_per_budget(self) -> Fraction:
        """The epsilon that one unit of the budget costs, beyond the opening."""
        return self.rows_per_unit**2 * self.terms.order * RHO_PER_BUDGET


class GaussianSpending(LaplaceSpending):
    """Pays for one synthetic table in rho.

    Parameters
    ----------
    table, payer, epsilon, watch
        As for `LaplaceSpending`; the epsilon is the most by which the table's cost may grow.
    delta : Fraction
        The delta that the table offers.

    Raises
    ------
    InvalidRequest
        If the table's Gaussian noise is accounted under another delta.
    """

    distances_cost_all = True

    def __init__(
        self, table: ServedTable, payer: Payer, epsilon: Fraction, watch: Watch, delta: Fraction
    ) -> None:
        super().__init__(table, payer, epsilon, watch)
        bought = GaussianBudget.of(table, epsilon, delta)
        self._terms, self.budget, self._bought = bought.terms, bought.budget, bought

    def buy(self, budgets: Mapping[Partition | None, float | Fraction]) -> None:
        """Add precision to the counts of partitions; see `LaplaceSpending.buy`."""
        precisions = {partition: self._precision(budget) for partition, budget in budgets.items()}
        added = {partition: one for partition, one in precisions.items() if one is not None}
        kind = GaussianKind(self._terms)
        self.spent += self.table.buy_tables(added, self._payer, epsilon_cap=self._left, kind=kind)

    def ask(self, statistics: Sequence[Statistic], budget: float | Fraction) -> tuple[float, ...]:
        """Noisy distances, each for a part `budget` of ``mu**2``; see `LaplaceSpending.ask`."""
        asked = [one for one in statistics if isinstance(one, Distance)]
        if len(asked) < len(statistics):
            raise ValueError("a choice cannot be made with Gaussian noise")
        units = int(Fraction(budget) * RHO_PER_BUDGET * UNITS_PER_RHO)
        if not units or not asked:
            return ()
        return self.told([PlannedGaussian(one, Rho(units), self._terms) for one in asked])

    def _precision(self, budget: float | Fraction) -> Precision | None:
        """The most precise counts that cost no more than a budget; None if that buys nothing.

        What rows cost a cell is rounded up to whole units of epsilon, so the budget is first
        rounded down to them.
        """
        cost_units = int(Fraction(budget) * self._bought.epsilon_per_budget * UNITS_PER_EPSILON)
        units = GaussianKind(self._terms).affordable(cost_units, self._bought.rows_per_unit)
        return Precision(min(units, PRECISION_UNITS_MAX)) if units else None
