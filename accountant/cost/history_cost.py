"""The cost of a history: the largest privacy loss of one record, over all cells.

    B_cell = sum over measured rows of  weight * |coefficient of the row at the cell|
    table cost = max over cells of B_cell

This is Theorem 5.4 of Xiao & Xiong 2012, "Bayesian Inference under Differential Privacy", for
neighbours that differ by one record added or removed, and it holds for rows and weights chosen
adaptively. A row with Gaussian noise costs order * precision * coefficient**2 in the same sum
(row_cost.py); what it costs beside that is in zcdp_account.py. Where a unit has up to k records, a
cell pays for k of them, and the loss is that of a unit (proofs/units.md); where it has at most m at
each level of an axis, level_costs.py finds the largest sum. Costs are whole units of 2**-40
epsilon; no float is involved, and where the maximum is out of reach it is replaced by a proved
upper bound, never by an estimate.

Nothing here reads data or stores charges. Proof: proofs/table_cost.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from accountant.cost.cell_function import CellFunction, added
from accountant.cost.cover import Cover
from accountant.cost.elimination import N_TABLE_CELLS_MAX, Elimination, eliminated, pieces_of
from accountant.cost.level_costs import LevelCosts
from accountant.cost.row_cost import most_of, row_cost
from cube.encoding import fingerprint
from cube.gaussian_terms import GaussianTerms
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement
from cube.query import Scope
from cube.rows_by_level import RowsByLevel

REORDERED_GROWTH = 1.25  # once the history is this much longer, another order of axes is tried
N_ORDERED_LEAST = (
    64  # the least number of functions assumed, so that a short history is not reordered each time
)
BULK_GROWTH = 2.0  # from this growth on, nothing of the old elimination is reused
N_MERGED_CELLS_MAX = (
    2**10
)  # of functions of the same axes: beyond this, two sums are smaller than one
N_CELLS_ALL_MAX = 2**26  # of all tables together, roughly; more functions get smaller tables
N_CELLS_LEAST = 2**8  # of a table; a larger function has a table of its own
N_COVERED_MAX = 2**12  # rows; the cells of a longer history are not covered anew
N_BOXES_FIRST = 2**6  # of a new cover, that are looked at at once
N_LOOKED_AT_MAX = 2**5  # boxes, for one price; of a long history fewer
N_COSTS_LOOKED_AT = 2**13  # of rows in boxes, for one price
N_PRICED_KEPT = 4  # plans whose cost is kept, so that pricing a longer plan starts from there


@dataclass(frozen=True, slots=True)
class TableCost:
    """The cost of a table's whole history.

    Parameters
    ----------
    units : int
        In units of 2**-40 epsilon.
    exact : bool
        Whether it is the maximum itself; otherwise a proved upper bound.
    """

    units: int
    exact: bool


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
    that cost.
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
        self._known: _Known | None = None  # until it is asked for

    def charged(self, plan: Sequence[PlannedMeasurement]) -> "CostState":
        """The state after the rows of `plan` are paid for."""
        after = CostState(self.n_cells_max, self.rows_per_unit, self.by)
        after._before, after._plan = self, tuple(plan)
        return after

    def table_cost(self) -> TableCost:
        """The largest cost of a cell."""
        return self._computed().cost

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
        """What the history would cost, had some of its rows not been paid for, or at less weight.

        For comparisons only: nothing is charged by it. Once boxes have taken the place of the
        elimination, rows that were bought since are not in it, and sparing them saves nothing or
        too much.
        """
        known = self._computed()
        if not rows:
            return known.elimination.maximum.value
        spared = [
            part.scaled(-1)
            for planned in rows
            for part in row_cost(planned, rows_per_unit=self.rows_per_unit, by=self.by).parts
            if not part.degree
        ]
        return max(0, known.elimination.added(spared).maximum.value)

    def _computed(self) -> "_Known":
        """The eliminated cost, computed from the nearest earlier state that has it."""
        plans: list[Sequence[PlannedMeasurement]] = []
        state = self
        while True:
            # Read in this order: the thread that cuts a link (below) writes `_known` before it.
            plan, before, known = state._plan, state._before, state._known
            priced = state._priced
            if known is not None or before is None:
                break
            plans.append(plan)
            state = before
        if known is None:
            nothing = _eliminated((), self.n_cells_max, self.rows_per_unit, self.by)
            known = _Known(self.rows_per_unit, self.by, (), 0, nothing, exact=True)
        if plans:
            everything = [planned for plan in reversed(plans) for planned in plan]
            name = _name(everything) if priced else ()  # a whole history has a long name
            after = next((one.after for one in priced if one.name == name), None)
            known = known.followed_by(everything, self.n_cells_max, after)
        self._known = known
        self._before, self._plan = None, ()  # or thousands of states would stay in memory
        return known


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """A history's cost, eliminated.

    Parameters
    ----------
    rows_per_unit : int
    by : RowsByLevel, optional
    functions : tuple of CellFunction
        What each row costs, in units; some are added up.
    n_ordered : int
        The number of functions when the order of elimination was chosen.
    elimination : Elimination or LevelCosts
        The elimination of the sum of all functions; by level, if rows are bounded by level.
    exact : bool
        Whether that sum is ``B``, or only nowhere below it.
    rows : tuple of CellFunction
        The same sum with nothing added up.
    cover : Cover, optional
        Where elimination is too large to be exact, boxes with lower bounds. It then takes the
        place of the elimination, which is no longer added to; by level, the lower bound is used of
        each level.
    """

    rows_per_unit: int
    by: RowsByLevel | None
    functions: tuple[CellFunction, ...]
    n_ordered: int
    elimination: Elimination | LevelCosts
    exact: bool
    rows: tuple[CellFunction, ...] = ()
    cover: Cover | None = None

    @property
    def cost(self) -> TableCost:
        """The largest value of the sum, or by level the largest loss of a unit."""
        if self.cover is not None and isinstance(self.elimination, LevelCosts):
            limit = self.cover.along_axis(self.elimination.bound.axis)
            return TableCost(self.elimination.within(limit), exact=False)
        if self.cover is not None:
            return TableCost(self.cover.value, exact=False)
        found = self.elimination.maximum
        return TableCost(found.value, found.exact and self.exact)

    def followed_by(
        self, plan: Sequence[PlannedMeasurement], n_cells_max: int, after: "_Known | None"
    ) -> "_Known":
        """The cost once `plan` is paid for too, in a new order where that may help.

        `after` is the cost in the old order, if it is already computed.
        """
        n_functions = len(self.functions) + len(plan)
        if self.cover is None and n_functions > BULK_GROWTH * self.n_ordered:
            return self._afresh(plan).reordered(n_cells_max)
        after = self.with_added(plan) if after is None else after
        if after.cover is not None:
            return after
        has_grown = n_functions > REORDERED_GROWTH * self.n_ordered
        if has_grown or (self.cost.exact and not after.cost.exact):
            afresh = after.reordered(n_cells_max)
            if afresh.cost.units <= after.cost.units:
                return afresh
            # Two bounds: the smaller is kept, and no other order is tried again soon.
            return replace(after, n_ordered=n_functions)
        return after

    def with_added(self, plan: Sequence[PlannedMeasurement]) -> "_Known":
        """The cost once `plan` is paid for too, in the present order, or of the present boxes."""
        functions, rows, exact = self._functions_with(plan)
        added_now = functions[len(self.functions) :]
        if self.cover is not None:
            cover = self.cover.added(added_now)
            if cover is None:
                return self._afresh(plan).reordered(self.elimination.n_cells_max)
            after = replace(self, functions=functions, exact=exact, rows=rows, cover=cover)
            if isinstance(self.elimination, LevelCosts):
                return replace(after, elimination=self.elimination.added(added_now))
            return after
        elimination = self.elimination.added(added_now)
        return replace(self, functions=functions, elimination=elimination, exact=exact, rows=rows)

    def _afresh(self, plan: Sequence[PlannedMeasurement]) -> "_Known":
        """The functions once `plan` is paid for too, not eliminated yet."""
        functions, rows, exact = self._functions_with(plan)
        return replace(self, functions=functions, n_ordered=0, exact=exact, rows=rows, cover=None)

    def reordered(self, n_cells_max: int) -> "_Known":
        """The same sum, eliminated again in a new order, or covered if that gives no more."""
        functions = _fewer(self.functions, n_cells_max)
        n_cells = min(n_cells_max, max(N_CELLS_ALL_MAX // max(1, len(functions)), N_CELLS_LEAST))
        n_ordered = max(len(functions), N_ORDERED_LEAST)
        elimination = _eliminated(
            functions, n_cells, self.rows_per_unit, self.by, before=self.elimination
        )
        found = replace(
            self, functions=functions, n_ordered=n_ordered, elimination=elimination, cover=None
        )
        if elimination.maximum.exact or len(self.rows) > N_COVERED_MAX:
            return found
        cover = Cover().added(self.rows)
        if cover is None:
            return found
        covered = replace(found, cover=cover.refined(0, N_BOXES_FIRST))
        return covered if covered.cost.units <= found.cost.units else found

    def refined(self, enough: int) -> "_Known":
        """The same cost with a lower bound, after a little work."""
        if self.cover is None:
            return self
        n_boxes = min(N_LOOKED_AT_MAX, N_COSTS_LOOKED_AT // max(1, len(self.rows)))
        of_cell = enough if self.by is None else enough // self.rows_per_unit
        return replace(self, cover=self.cover.refined(of_cell, max(1, n_boxes)))

    def _functions_with(
        self, plan: Sequence[PlannedMeasurement]
    ) -> tuple[tuple[CellFunction, ...], tuple[CellFunction, ...], bool]:
        """Functions and rows followed by those of `plan`, and whether their sum is ``B``."""
        k = self.rows_per_unit
        costs = [row_cost(planned, rows_per_unit=k, by=self.by) for planned in plan]
        parts = [part for cost in costs for part in cost.parts]
        exact = self.exact and all(cost.exact for cost in costs)
        return (*self.functions, *parts), (*self.rows, *parts), exact


_Name: TypeAlias = tuple[tuple[str, int, GaussianTerms | None], ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Priced:
    """A plan by its `_name`, the cost after it in the old order, and the cost that was found.

    `is_refined` says whether work has been done on its cover.
    """

    name: _Name
    after: _Known
    cost: TableCost
    is_refined: bool = False


def _longest_beginning(priced: Sequence[_Priced], name: _Name) -> _Priced | None:
    """Of the priced plans, the longest one with which a plan begins."""
    beginnings = (one for one in priced if one.name == name[: len(one.name)])
    return max(beginnings, key=lambda one: len(one.name), default=None)


def _name(plan: Sequence[PlannedMeasurement]) -> _Name:
    """The name of a plan: its rows, weights and terms, on which its cost depends."""
    return tuple((fingerprint(one.block), one.weight.units, one.terms) for one in plan)


def _eliminated(
    functions: Sequence[CellFunction],
    n_cells_max: int,
    rows_per_unit: int,
    by: RowsByLevel | None,
    before: Elimination | LevelCosts | None = None,
) -> Elimination | LevelCosts:
    """The elimination of a sum; by level, in the ranges of an earlier one, or smaller ones."""
    if by is None:
        return eliminated(functions, n_cells_max)
    cuts = before.cuts if isinstance(before, LevelCosts) else ()
    return LevelCosts.of(functions, n_cells_max, by, rows_per_unit, cuts)


def _fewer(functions: Sequence[CellFunction], n_cells_max: int) -> tuple[CellFunction, ...]:
    """The same sum in fewer functions: those on the same axes are added up while sums are small."""
    by_scope: dict[Scope, list[CellFunction]] = {}
    for function in functions:
        by_scope.setdefault(function.axes, []).append(function)
    limit = min(n_cells_max, N_MERGED_CELLS_MAX)
    return tuple(added(piece) for same in by_scope.values() for piece in pieces_of(same, limit))


def price_of(state: CostState, units_spent: int, plan: Sequence[PlannedMeasurement]) -> Price:
    """What `plan` would add to a history that has been charged `units_spent`.

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
