"""What a history costs: the largest, over all cells, of what is paid for one record in that cell.

    B_cell = sum over measured rows of  weight * |coefficient of the row at the cell|
    table cost = max over cells of B_cell

This is Theorem 5.4 of Xiao & Xiong 2012, "Bayesian Inference under Differential Privacy", for
neighbours that differ by one record added or removed, and it holds for rows and weights chosen
adaptively. Costs are whole units of 2**-40 epsilon; no float takes part, and where the maximum is
out of reach a proved upper bound stands for it, never an estimate.

Nothing here reads data or remembers a charge. Proof: proofs/table_cost.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType

from accountant.cell_function import CellFunction, added, joint_size
from accountant.elimination import N_TABLE_CELLS_MAX, maximum
from accountant.profile import profile_of
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement
from cube.query import Scope


@dataclass(frozen=True, slots=True)
class TableCost:
    """The cost of a table's whole history.

    Parameters
    ----------
    units : int
        In units of 2**-40 epsilon.
    exact : bool
        Whether it is the maximum itself, or a proved upper bound.
    """

    units: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Price:
    """What a plan would do to the table's cost, in units of 2**-40 epsilon.

    `exact` tells whether `units_after` is the cost itself or a proved upper bound on it.
    """

    units_before: int
    units_after: int
    exact: bool

    @property
    def epsilon(self) -> Fraction:
        """The increase."""
        return Fraction(self.units_after - self.units_before, UNITS_PER_EPSILON)


@dataclass(frozen=True, eq=False)
class CostState:
    """What every cell has paid so far. Immutable: a charge makes a new state.

    Parameters
    ----------
    paid : mapping of scope to tuple of CellFunction
        Their sum over everything is ``B``, in units. Functions of one scope are added up for as
        long as the sum stays small, so a year of the same dashboards is a handful of tables.
    exact : bool
        Whether the sum is ``B``, or only nowhere below it.
    n_cells_max : int
        The most cells that one table may span.
    """

    paid: Mapping[Scope, tuple[CellFunction, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    exact: bool = True
    n_cells_max: int = N_TABLE_CELLS_MAX

    def charged(self, plan: Sequence[PlannedMeasurement]) -> "CostState":
        """The state after the rows of `plan` are paid for."""
        paid = dict(self.paid)
        exact = self.exact
        for planned in plan:
            profile = profile_of(planned.block)
            exact = exact and profile.exact
            for part in profile.parts:
                cost = part.scaled(planned.weight.units)
                paid[part.axes] = self._merged(paid.get(part.axes, ()), cost)
        return CostState(MappingProxyType(paid), exact, self.n_cells_max)

    def table_cost(self) -> TableCost:
        """The largest cost of a cell."""
        return self._table_cost

    @cached_property
    def _table_cost(self) -> TableCost:
        functions = [function for same in self.paid.values() for function in same]
        found = maximum(functions, self.n_cells_max)
        return TableCost(found.value, found.exact and self.exact)

    def _merged(
        self, same: tuple[CellFunction, ...], cost: CellFunction
    ) -> tuple[CellFunction, ...]:
        """Add a cost to the last of the functions of its scope, or start another."""
        if same and joint_size([same[-1], cost]) <= self.n_cells_max:
            return (*same[:-1], added([same[-1], cost]))
        return (*same, cost)


def price_of(state: CostState, units_spent: int, plan: Sequence[PlannedMeasurement]) -> Price:
    """What `plan` would add to a history that has been charged `units_spent`.

    Notes
    -----
    `units_spent` was itself a proved bound. The new cost is at most the bound found afresh, and at
    most the old one plus the largest cost of each new block; the smaller of the two is taken, and
    never less than what was already charged, so that spending never falls.
    """
    found = state.charged(plan).table_cost()
    added_at_most = sum(planned.weight.units * profile_of(planned.block).bound for planned in plan)
    units_after = max(units_spent, min(found.units, units_spent + added_at_most))
    return Price(units_spent, units_after, exact=found.exact and found.units == units_after)
