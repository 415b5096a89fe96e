"""What a history's rows cost, added up: the functions of cells, and the largest value of their sum.

The sum is kept in a form to which more can be added: an elimination of its axes, or boxes that
cover all cells where that is too large. Functions of the same axes are added up while that is
small, so that a long history is a few thousand functions.

Where a unit has at most so many rows at each level of an axis, and in all, it loses

    loss = largest, over n_l <= m with a sum of at most k, of  sum over levels l of  n_l M_l
    M_l  = the largest cost of a cell with level l, for one row

The largest sum takes m rows at the levels where M is largest until k are taken. To find M, the
levels are cut into ranges, each with an elimination of its own that keeps the axis
(elimination.py). A range is cut in two where a table would be too large, down to levels that no row
tells apart: there, elimination is as large as for a history of these levels alone. A row changes
the ranges in which it costs anything. In a range that is bounded all the same, a new row adds its
largest cost at each level until everything is computed anew.

Nothing here knows budgets, weights' owners, prices or charges (history_cost.py), or data. Proof:
proofs/table_cost.md; proofs/units.md, "Rows by level".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from accountant.cost.cell_function import CellFunction, Whole, added, joint_classes
from accountant.cost.cover import Cover
from accountant.cost.elimination import Elimination, Maximum, eliminated, pieces_of
from accountant.cost.row_cost import row_cost
from cube.classes import Indices
from cube.measurement import PlannedMeasurement
from cube.query import Scope
from cube.runtime import cached_property
from cube.schema import RowsByLevel

N_RANGES_MAX = 2**9  # beyond this, a table that is too large is bounded

Runs = tuple[Whole, Indices]  # costs of levels in a row, and where each run of them begins


@dataclass(frozen=True, eq=False)
class _Range:
    """The levels ``start .. end - 1``, and the elimination of the costs of their cells."""

    start: int
    end: int
    costs: Elimination

    @cached_property
    def by_level(self) -> CellFunction:
        """The largest cost of a cell with each level of the range, as of an axis of its own."""
        return self.costs.by_level

    @cached_property
    def runs(self) -> Runs:
        """The costs of runs of levels, and where on the axis each run begins."""
        whole = self.by_level
        if not whole.axes:
            return whole.values.reshape(1), np.array([self.start])
        (classes,) = whole.classes
        return whole.values[classes.of_run], self.start + classes.starts


@dataclass(frozen=True, eq=False)
class LevelCosts:
    """The cost of every level of one axis, in a form to which more can be added.

    Parameters
    ----------
    bound : RowsByLevel
    n_rows : int
        The most rows of a unit in all.
    n_cells_max : int
        The most cells that one table may span.
    functions : tuple of CellFunction
        The functions to add up: the cost of each row to a cell, for one row of a unit.
    ranges : tuple of _Range
        In order; together all levels of the axis. While no function depends on the axis, a single
        level stands for them.
    """

    bound: RowsByLevel
    n_rows: int
    n_cells_max: int
    functions: tuple[CellFunction, ...] = ()
    ranges: tuple[_Range, ...] = ()

    @classmethod
    def of(
        cls,
        functions: Sequence[CellFunction],
        n_cells_max: int,
        bound: RowsByLevel,
        n_rows: int,
        cuts: Iterable[int] = (),
    ) -> "LevelCosts":
        """The costs of a sum; `cuts` is where ranges begin that are known to be of use."""
        costs = cls(bound, n_rows, n_cells_max, tuple(functions))
        n_levels = _n_levels(functions, bound.axis)
        inner = sorted({cut for cut in cuts if 0 < cut < n_levels})
        ranges: list[_Range] = []
        for n_after, start, end in zip(
            range(len(inner), -1, -1), [0, *inner], [*inner, n_levels], strict=True
        ):
            ranges += costs._cut(start, end, N_RANGES_MAX - len(ranges) - n_after - 1)
        return cls(bound, n_rows, n_cells_max, tuple(functions), tuple(ranges))

    @property
    def cuts(self) -> list[int]:
        """Where ranges begin."""
        return [one.start for one in self.ranges]

    @cached_property
    def maximum(self) -> Maximum:
        """The largest loss of a unit, or a bound on it."""
        exact = all(one.by_level.exact for one in self.ranges)
        return Maximum(self._loss(*self._runs), exact)

    def within(self, limit: CellFunction) -> int:
        """A bound on the loss, if no cell costs more than `limit` at its level."""
        costs, starts = self._runs
        if not limit.axes:
            return self._loss(np.minimum(costs, limit.values), starts)
        (classes,) = limit.classes
        both = np.union1d(starts, classes.starts)
        own = costs[starts.searchsorted(both, side="right") - 1]
        return self._loss(np.minimum(own, limit.values[classes.at(both)]), both)

    def added(self, functions: Sequence[CellFunction]) -> "LevelCosts":
        """The costs of the sum with more functions; only ranges in which they cost anything."""
        after = LevelCosts(
            self.bound, self.n_rows, self.n_cells_max, (*self.functions, *functions), self.ranges
        )
        if self._is_undivided and _n_levels(functions, self.bound.axis) > 1:
            return LevelCosts.of(after.functions, self.n_cells_max, self.bound, self.n_rows)
        ranges: list[_Range] = []
        room = N_RANGES_MAX - len(self.ranges)
        for one in self.ranges:
            coming = after._between(functions, one.start, one.end)
            if not coming:
                ranges.append(one)
                continue
            if one.costs.is_split:  # a bound already, of tables that are slow to change
                coming = [_largest_along(function, self.bound.axis) for function in coming]
            grown = one.costs.added(coming)
            if grown.is_split and not one.costs.is_split and room > 0:
                new = after._cut(one.start, one.end, room)
                room -= len(new) - 1
            else:
                new = [_Range(one.start, one.end, grown)]
            ranges += new
        return LevelCosts(self.bound, self.n_rows, self.n_cells_max, after.functions, tuple(ranges))

    @property
    def _is_undivided(self) -> bool:
        """Whether no function depends on the axis so far."""
        return self.ranges[-1].end == 1

    def _between(
        self, functions: Sequence[CellFunction], start: int, end: int
    ) -> list[CellFunction]:
        """Functions at some levels, without those that are 0 there."""
        cut = [function.between(self.bound.axis, start, end) for function in functions]
        return [function for function in cut if not function.is_nothing]

    def _cut(self, start: int, end: int, room: int) -> list[_Range]:
        """Levels as one range, or as several, at most `room` more, if a table is too large.

        Not where it is too large for a single level, too.
        """
        costs, functions = self._eliminated(start, end)
        classes = joint_classes(functions).get(self.bound.axis)
        if not costs.is_split or classes is None or room < 1:
            return [_Range(start, end, costs)]
        middle = start + int(classes.starts[(classes.starts.size + 1) // 2])
        if self._eliminated(middle, middle + 1)[0].is_split:
            return [_Range(start, end, costs)]
        first = self._cut(start, middle, (room - 1) // 2)
        return [*first, *self._cut(middle, end, room - len(first))]

    def _eliminated(self, start: int, end: int) -> tuple[Elimination, list[CellFunction]]:
        """The elimination at some levels, and the functions that it eliminated."""
        functions = self._between(self.functions, start, end)
        return eliminated(functions, self.n_cells_max, self.bound.axis), functions

    @cached_property
    def _runs(self) -> Runs:
        """The costs of all levels."""
        found = [one.runs for one in self.ranges]
        return np.concatenate([costs for costs, _ in found]), np.concatenate(
            [at for _, at in found]
        )

    def _loss(self, costs: Whole, starts: Indices) -> int:
        """The largest sum that rows of a unit can reach."""
        n_levels = np.diff(starts, append=self.ranges[-1].end)
        left, loss = self.n_rows, 0
        for place in np.argsort(-costs, kind="stable").tolist():
            taken = left
            if not self._is_undivided:
                taken = self.bound.at_levels(int(n_levels[place]), left)
            loss += taken * int(costs[place])
            left -= taken
            if not left:
                break
        return loss


def _largest_along(function: CellFunction, axis: str) -> CellFunction:
    """A function of one axis, nowhere below another at any cell."""
    for name in function.axes:
        if name != axis:
            function = function.maximised(name)
    return replace(function.flattened(), exact=False)


def _n_levels(functions: Sequence[CellFunction], axis: str) -> int:
    """How many levels the axis has, from the first function that depends on it; else 1."""
    of_axis = (one for one in functions if axis in one.axes)
    first = next(of_axis, None)
    return 1 if first is None else first.classes[first.axes.index(axis)].n_levels


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
        The largest value of the sum, in units of 2**-40 epsilon.
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
        The cost of each row, in units; some are already added up.
    n_ordered : int
        The number of functions when the order of elimination was chosen.
    elimination : Elimination or LevelCosts
        The elimination of the sum of all functions; by level, if rows are bounded by level.
    exact : bool
        Whether that sum is ``B``, or only nowhere below it.
    rows : tuple of CellFunction
        The same sum with nothing added up; empty if there are more than are ever covered.
    n_rows : int
        The number of rows.
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
        """A sum of no rows."""
        return cls(
            rows_per_unit, by, (), 0, eliminated_sum((), n_cells_max, rows_per_unit, by), exact=True
        )

    @property
    def kept(self) -> "KeptSum":
        """The part that a checkpoint keeps."""
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
        The largest value of the sum, as found.
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
