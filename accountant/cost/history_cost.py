"""The cost of a history: the largest privacy loss of one record, over all cells.

    B_cell = sum over measured rows of  weight * |coefficient of the row at the cell|
    table cost = max over cells of B_cell

This is Theorem 5.4 of Xiao & Xiong 2012, "Bayesian Inference under Differential Privacy", for
neighbours that differ by one record added or removed, and it holds for rows and weights chosen
adaptively. A row with Gaussian noise costs order * precision * coefficient**2 in the same sum
(row_cost.py); what it costs beside that is in zcdp_account.py. Where a unit has up to k records, a
cell pays for k of them, and the loss is that of a unit (proofs/units.md); where it has at most m at
each level of an axis, summed_costs.py finds the largest sum. Costs are whole units of 2**-40
epsilon; no float is involved, and where the maximum is out of reach it is replaced by a proved
upper bound, never by an estimate.

Nothing here reads data or stores charges. Proof: proofs/table_cost.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from accountant.cost.cell_function import CellFunction
from accountant.cost.elimination import N_TABLE_CELLS_MAX
from accountant.cost.row_cost import most_of, row_cost
from accountant.cost.summed_costs import KeptSum, SummedCosts, TableCost, eliminated_sum
from cube.encoding import fingerprint
from cube.measurement import UNITS_PER_EPSILON, GaussianTerms, PlannedMeasurement
from cube.schema import RowsByLevel

N_ALONE_CELLS_MAX = 2**12  # of a table, for what rows cost by themselves: milliseconds
N_PRICED_KEPT = 4  # plans whose cost is kept, so that pricing a longer plan starts from there


@dataclass(frozen=True, slots=True)
class Price:
    """The table's cost before and after a plan, in units of 2**-40 epsilon.

    `exact` says whether `units_after` is the cost itself or a proved upper bound on it.
    """

    units_before: int
    units_after: int
    exact: bool

    @property
    def epsilon(self) -> Fraction:
        """The increase."""
        return Fraction(self.units_after - self.units_before, UNITS_PER_EPSILON)


class CostState:
    """The cost of every cell so far. A charge makes a new state and changes no existing one.

    Parameters
    ----------
    n_cells_max : int
        The most cells that one table may span.
    rows_per_unit : int
        The most records of one unit.
    by : RowsByLevel, optional
        The most of them at each level of an axis.

    Notes
    -----
    A state only lists what was charged until its cost is needed: reading a ledger back takes one
    computation, not one for each entry. A state that follows one with a known cost starts from
    that cost. Of a state from a checkpoint the largest cost is known, and its sum is eliminated
    once more is needed.
    """

    def __init__(
        self,
        n_cells_max: int = N_TABLE_CELLS_MAX,
        rows_per_unit: int = 1,
        by: RowsByLevel | None = None,
    ) -> None:
        self.n_cells_max = n_cells_max
        self.rows_per_unit = rows_per_unit
        self.by = by
        self._before: CostState | None = None
        self._plan: Sequence[PlannedMeasurement] = ()
        self._is_at_its_limit = False
        self._priced: tuple[_Priced, ...] = ()  # the most recently used first
        self._known: SummedCosts | None = None  # until it is asked for
        self._kept: KeptSum | None = None  # of a first state, from a checkpoint

    @classmethod
    def of_kept(
        cls,
        kept: KeptSum | None,
        rows: Sequence[PlannedMeasurement],
        n_cells_max: int,
        rows_per_unit: int,
        by: RowsByLevel | None,
    ) -> "CostState":
        """The state whose `kept` is this."""
        first = cls(n_cells_max, rows_per_unit, by)
        first._kept = kept
        return first.charged(rows) if rows else first

    def charged(self, plan: Sequence[PlannedMeasurement]) -> "CostState":
        """The state after the rows of `plan` are paid for."""
        after = CostState(self.n_cells_max, self.rows_per_unit, self.by)
        after._before, after._plan = self, tuple(plan)
        return after

    def table_cost(self) -> TableCost:
        """The largest cost of a cell."""
        kept = self._kept
        return self._computed().cost if kept is None else kept.cost

    def cost_with(self, plan: Sequence[PlannedMeasurement], enough: int = 0) -> TableCost:
        """What `table_cost` would be after `plan`, or a bound on it that is faster to compute.

        Some work is done for a lower bound, if it is above `enough`.
        """
        found = self._priced_with(plan)
        if found.after.cover is None or found.is_refined or found.cost.units <= enough:
            return found.cost
        after = found.after.refined(enough)
        self._keep(_Priced(found.name, after, after.cost, is_refined=True))
        return after.cost

    def _priced_with(self, plan: Sequence[PlannedMeasurement]) -> "_Priced":
        before = self._computed()
        name, priced = _name(plan), self._priced
        start = _longest_beginning(priced, name)
        if start is not None and start.name == name:
            return start
        known, n_known = (before, 0) if start is None else (start.after, len(start.name))
        after = known.with_added(plan[n_known:])
        cost = after.cost
        if before.cost.exact and not cost.exact and not self._is_at_its_limit:
            afresh = after.reordered(self.n_cells_max)
            self._is_at_its_limit = not afresh.cost.exact  # do not try again for every price
            cost = min(cost, afresh.cost, key=lambda one: one.units)
        found = _Priced(name, after, cost)
        self._keep(found, start)
        return found

    def _keep(self, latest: "_Priced", start: "_Priced | None" = None) -> None:
        """Keep a priced plan, and the one that it started from, before others."""
        first = [latest, *([] if start is None else [start])]
        others = [one for one in self._priced if all(one.name != kept.name for kept in first)]
        self._priced = (*first, *others)[:N_PRICED_KEPT]

    def units_without(self, rows: Sequence[PlannedMeasurement]) -> int:
        """The cost of the history if some of its rows had not been bought, or at less weight.

        For comparisons only: nothing is charged by it. Once boxes have taken the place of the
        elimination, rows that were bought since are not in it, and sparing them saves nothing or
        too much.
        """
        known = self._computed()
        if not rows:
            return known.elimination.maximum.value
        spared = [part.scaled(-1) for part in self._parts(rows) if not part.degree]
        return max(0, known.elimination.added(spared).maximum.value)

    def units_alone(self, rows: Sequence[PlannedMeasurement]) -> int:
        """At least what some rows would cost, had nothing else been paid for; the same holds."""
        n_cells_max = min(self.n_cells_max, N_ALONE_CELLS_MAX)
        alone = eliminated_sum(self._parts(rows), n_cells_max, self.rows_per_unit, self.by)
        return alone.maximum.value

    @property
    def kept(self) -> tuple[KeptSum | None, tuple[PlannedMeasurement, ...]]:
        """The sum of costs that is known, if any is, and the rows charged on top of it."""
        first, known, plans, _ = self._chain()
        summed = first if known is None else known.kept
        return summed, tuple(planned for plan in plans for planned in plan)

    def summed(self) -> SummedCosts:
        """The sum of the costs of all rows."""
        return self._computed()

    def _parts(self, rows: Sequence[PlannedMeasurement]) -> list[CellFunction]:
        """The cost of each of some rows at the cells."""
        return [
            part
            for planned in rows
            for part in row_cost(planned, rows_per_unit=self.rows_per_unit, by=self.by).parts
        ]

    def _chain(self) -> "_Chain":
        """The nearest earlier state that has its cost, or the first, and what was charged since."""
        plans: list[Sequence[PlannedMeasurement]] = []
        state = self
        while True:
            # Read in this order: the thread that cuts a link (below) writes `_known` before it.
            plan, before, known = state._plan, state._before, state._known
            if known is not None or before is None:
                return _Chain(state._kept, known, plans[::-1], state._priced)
            plans.append(plan)
            state = before

    def _computed(self) -> "SummedCosts":
        """The eliminated cost, computed from the nearest earlier state that has it."""
        kept, known, plans, priced = self._chain()
        if known is None:
            units = self.n_cells_max, self.rows_per_unit, self.by
            known = SummedCosts.nothing(*units) if kept is None else kept.summed(*units)
        if plans:
            everything = [planned for plan in plans for planned in plan]
            name = _name(everything) if priced else ()  # a whole history has a long name
            after = next((one.after for one in priced if one.name == name), None)
            known = known.followed_by(everything, self.n_cells_max, after)
        self._known = known
        self._before, self._plan = None, ()  # or thousands of states would stay in memory
        return known


_Name: TypeAlias = tuple[tuple[str, int, GaussianTerms | None], ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Priced:
    """A plan by its `_name`, the cost after it in the old order, and the cost that was found.

    `is_refined` says whether work has been done on its cover.
    """

    name: _Name
    after: SummedCosts
    cost: TableCost
    is_refined: bool = False


class _Chain(NamedTuple):
    """How the cost of a state is found; `plans` are those after the state that is known."""

    kept: KeptSum | None
    known: SummedCosts | None
    plans: list[Sequence[PlannedMeasurement]]
    priced: tuple[_Priced, ...]


def _longest_beginning(priced: Sequence[_Priced], name: _Name) -> _Priced | None:
    """The longest of the priced plans that a plan begins with."""
    beginnings = (one for one in priced if one.name == name[: len(one.name)])
    return max(beginnings, key=lambda one: len(one.name), default=None)


def _name(plan: Sequence[PlannedMeasurement]) -> _Name:
    """The name of a plan: its rows, weights and terms, on which its cost depends."""
    return tuple((fingerprint(one.block), one.weight.units, one.terms) for one in plan)


def price_of(state: CostState, units_spent: int, plan: Sequence[PlannedMeasurement]) -> Price:
    """The units that `plan` would add to a history that has been charged `units_spent`.

    Notes
    -----
    `units_spent` is itself a proved bound. The new cost is at most the newly computed bound, and at
    most the old one plus the largest cost of each new block; the smaller of the two is used, but
    never less than what is already charged, so that spending never falls.
    """
    found = state.cost_with(plan, units_spent)
    k = state.rows_per_unit
    added_at_most = sum(most_of(planned, rows_per_unit=k, by=state.by) for planned in plan)
    units_after = max(units_spent, min(found.units, units_spent + added_at_most))
    return Price(units_spent, units_after, exact=found.exact and found.units == units_after)
