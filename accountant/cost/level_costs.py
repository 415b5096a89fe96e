"""What a unit loses that has at most so many rows at each level of an axis, and in all.

    loss = largest, over n_l <= m with a sum of at most k, of  sum over levels l of  n_l M_l
    M_l  = the largest cost of a cell with level l, for one row

The largest sum takes m rows at the levels where M is largest until k are taken. To find M, the
levels are cut into ranges, each with an elimination of its own that keeps the axis
(elimination.py). A range is cut in two where a table would be too large, down to levels that no row
tells apart: there, elimination is as large as for a history of these levels alone. A row changes
the ranges in which it costs anything. In a range that is bounded all the same, a new row adds its
largest cost at each level until everything is computed anew. Nothing here knows about budgets or
data.
Proof: proofs/units.md, "Rows by level".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from accountant.cost.cell_function import CellFunction, Whole, joint_classes
from accountant.cost.elimination import Elimination, Maximum, eliminated
from cube.classes import Indices
from cube.runtime import cached_property
from cube.schema import RowsByLevel

N_RANGES_MAX = 2**9  # beyond this, a table that is too large is bounded

Runs = tuple[Whole, Indices]  # costs of levels in a row, and where each run of them begins


@dataclass(frozen=True, eq=False)
class _Range:
    """The levels ``start .. end - 1``, and the elimination of what cells with them cost."""

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
        What is added up: what each row costs a cell, for one row of a unit.
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
        """The elimination at some levels, and of what."""
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
