"""What a history's rows cost, added up: the functions of cells, and the largest value of their sum.

The sum is kept in a form to which more can be added: an elimination of its axes, or boxes that
cover all cells where that is too large. Functions of the same axes are added up while that is
small, so that a long history is a few thousand functions.

Nothing here knows weights' owners, prices or charges (history_cost.py). Proof:
proofs/table_cost.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from accountant.cost.cell_function import CellFunction, added
from accountant.cost.cover import Cover
from accountant.cost.elimination import Elimination, eliminated, pieces_of
from accountant.cost.level_costs import LevelCosts
from accountant.cost.row_cost import row_cost
from cube.measurement import PlannedMeasurement
from cube.query import Scope
from cube.schema import RowsByLevel

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


@dataclass(frozen=True, slots=True, eq=False)
class SummedCosts:
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
        The same sum with nothing added up; empty if there are more than are ever covered.
    n_rows : int
        How many there are.
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
    n_rows: int = 0
    cover: Cover | None = None

    @classmethod
    def nothing(cls, n_cells_max: int, rows_per_unit: int, by: RowsByLevel | None) -> "SummedCosts":
        """Of no row."""
        return cls(
            rows_per_unit, by, (), 0, eliminated_sum((), n_cells_max, rows_per_unit, by), exact=True
        )

    @property
    def kept(self) -> "KeptSum":
        """What a checkpoint keeps of it."""
        return KeptSum(self.functions, self.rows, self.n_rows, self.exact, self.cost)

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
        self, plan: Sequence[PlannedMeasurement], n_cells_max: int, after: "SummedCosts | None"
    ) -> "SummedCosts":
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

    def with_added(self, plan: Sequence[PlannedMeasurement]) -> "SummedCosts":
        """The cost once `plan` is paid for too, in the present order, or of the present boxes."""
        longer = self._with_functions(plan)
        added_now = longer.functions[len(self.functions) :]
        if self.cover is not None:
            cover = self.cover.added(added_now)
            if cover is None:
                return self._afresh(plan).reordered(self.elimination.n_cells_max)
            after = replace(longer, cover=cover)
            if isinstance(self.elimination, LevelCosts):
                return replace(after, elimination=self.elimination.added(added_now))
            return after
        elimination = self.elimination.added(added_now)
        return replace(longer, elimination=elimination)

    def _afresh(self, plan: Sequence[PlannedMeasurement]) -> "SummedCosts":
        """The functions once `plan` is paid for too, not eliminated yet."""
        return replace(self._with_functions(plan), n_ordered=0, cover=None)

    def reordered(self, n_cells_max: int) -> "SummedCosts":
        """The same sum, eliminated again in a new order, or covered if that gives no more."""
        functions = _fewer(self.functions, n_cells_max)
        n_cells = _n_cells_of_each(functions, n_cells_max)
        n_ordered = max(len(functions), N_ORDERED_LEAST)
        elimination = eliminated_sum(
            functions, n_cells, self.rows_per_unit, self.by, before=self.elimination
        )
        found = replace(
            self, functions=functions, n_ordered=n_ordered, elimination=elimination, cover=None
        )
        if elimination.maximum.exact or self.n_rows > N_COVERED_MAX:
            return found
        cover = Cover().added(self.rows)
        if cover is None:
            return found
        covered = replace(found, cover=cover.refined(0, N_BOXES_FIRST))
        return covered if covered.cost.units <= found.cost.units else found

    def refined(self, enough: int) -> "SummedCosts":
        """The same cost with a lower bound, after a little work."""
        if self.cover is None:
            return self
        n_boxes = min(N_LOOKED_AT_MAX, N_COSTS_LOOKED_AT // max(1, self.n_rows))
        of_cell = enough if self.by is None else enough // self.rows_per_unit
        return replace(self, cover=self.cover.refined(of_cell, max(1, n_boxes)))

    def _with_functions(self, plan: Sequence[PlannedMeasurement]) -> "SummedCosts":
        """The functions followed by those of `plan`, not added to the elimination or cover yet."""
        k = self.rows_per_unit
        costs = [row_cost(planned, rows_per_unit=k, by=self.by) for planned in plan]
        parts = [part for cost in costs for part in cost.parts]
        n_rows = self.n_rows + len(parts)
        return replace(
            self,
            functions=(*self.functions, *parts),
            exact=self.exact and all(cost.exact for cost in costs),
            rows=() if n_rows > N_COVERED_MAX else (*self.rows, *parts),
            n_rows=n_rows,
        )


@dataclass(frozen=True, slots=True, eq=False)
class KeptSum:
    """A sum of costs without its elimination, which is ten times as large.

    Parameters
    ----------
    functions, rows, n_rows, exact
        As of `SummedCosts`.
    cost : TableCost
        What was found to be the largest value of the sum.
    """

    functions: tuple[CellFunction, ...]
    rows: tuple[CellFunction, ...]
    n_rows: int
    exact: bool
    cost: TableCost

    def summed(self, n_cells_max: int, rows_per_unit: int, by: RowsByLevel | None) -> SummedCosts:
        """The sum, eliminated anew."""
        nothing = SummedCosts.nothing(n_cells_max, rows_per_unit, by)
        functions, rows, n_rows = self.functions, self.rows, self.n_rows
        found = replace(nothing, functions=functions, rows=rows, n_rows=n_rows, exact=self.exact)
        return found.reordered(n_cells_max)


def eliminated_sum(
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


def _n_cells_of_each(functions: Sequence[CellFunction], n_cells_max: int) -> int:
    """The most cells of one table, so that all of them together stay within a limit."""
    return min(n_cells_max, max(N_CELLS_ALL_MAX // max(1, len(functions)), N_CELLS_LEAST))


def _fewer(functions: Sequence[CellFunction], n_cells_max: int) -> tuple[CellFunction, ...]:
    """The same sum in fewer functions: those on the same axes are added up while sums are small."""
    by_scope: dict[Scope, list[CellFunction]] = {}
    for function in functions:
        by_scope.setdefault(function.axes, []).append(function)
    limit = min(n_cells_max, N_MERGED_CELLS_MAX)
    return tuple(added(piece) for same in by_scope.values() for piece in pieces_of(same, limit))
