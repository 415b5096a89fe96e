"""All charges as a few tables of whole numbers whose sum is what each cell has paid.

Levels that no row distinguishes become one segment of their column; the costs of blocks over the
same columns become one table over segments. A cost whose table would be too large drops its longest
column: the largest value along it is used for all levels, which is an upper bound. `sure` contains
no such cost, and is a lower bound.

Numbers are whole even where they are stored as floats: floats are used only if a bound on the total
is below 2**53, and then every partial sum is exact in any order.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant.cost.cell_function import CellFunction
from cube.grid import run_starts
from cube.query import Scope
from proxy.reporting.paid_rows import Cost, OtherCost, ProductCost, Runs

FLOAT_SAFE: Final = 2**53  # whole numbers below it are exact as doubles
N_TABLE_CELLS_MAX: Final = 2**20  # of one table, before it drops a column
N_CELLS_ALL_MAX: Final = 2**25  # of all tables: 256 MB; the more tables, the smaller each
N_PIECE_CELLS_MAX: Final = 2**22  # worked on at once while a table is filled: 32 MB

Whole: TypeAlias = NDArray[
    Any
]  # whole numbers: doubles, or Python integers where doubles would round
Tables: TypeAlias = dict[Scope, Whole]


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """A column cut wherever the cost of some row changes along it.

    Parameters
    ----------
    n_levels : int
    starts : (n_segments,) ndarray of int64
        The first level of each segment.
    """

    n_levels: int
    starts: NDArray[np.int64]

    @property
    def size(self) -> int:
        """The number of segments."""
        return self.starts.size


@dataclass(frozen=True, slots=True, eq=False)
class CostTables:
    """What each cell has paid, in units of 2**-40 epsilon: at most the sum of `tables`.

    Parameters
    ----------
    segments : mapping of str to Segments
        The segments of every column that some row concerns.
    tables : mapping of Scope to ndarray
        One array for each combination of columns, over their segments.
    sure : mapping of Scope to ndarray
        The same without costs that are only upper bounds.
    """

    segments: Mapping[str, Segments]
    tables: Mapping[Scope, Whole]
    sure: Mapping[Scope, Whole]

    def sizes(self, scope: Iterable[str]) -> tuple[int, ...]:
        """The number of segments of some columns."""
        return tuple(self.segments[axis].size for axis in scope)


def tabulated(costs: Iterable[Cost]) -> CostTables:
    """Add up the costs of blocks, by the columns they concern."""
    every = list(costs)
    dtype = np.float64 if sum(cost.bound for cost in every) < FLOAT_SAFE else object
    segments = _segments(every)
    n_tables = len({_scope(cost) for cost in every})
    n_cells_max = min(N_TABLE_CELLS_MAX, N_CELLS_ALL_MAX // max(1, n_tables))
    builder = _Builder(segments, dtype, n_cells_max)
    products: dict[tuple[Scope, bool], list[ProductCost]] = {}
    for cost in every:
        if isinstance(cost, OtherCost):
            builder.add_other(cost)
        else:
            kept = builder.fitting(cost)
            products.setdefault((_scope(kept), kept is cost), []).append(kept)
    for (scope, is_sure), same in products.items():
        builder.add_products(scope, same, is_sure=is_sure)
    sure = _absorbed(builder.sure.items())
    return CostTables(segments, _absorbed((*sure.items(), *builder.bounded.items())), sure)


class _Builder:
    """Tables while costs are added to them."""

    def __init__(
        self, segments: Mapping[str, Segments], dtype: Callable[..., Any], n_cells_max: int
    ) -> None:
        self.sure: Tables = {}
        self.bounded: Tables = {}
        self._segments = segments
        self._dtype: Any = dtype
        self._n_cells_max = n_cells_max
        self._vectors: dict[tuple[str, Runs], Whole] = {}

    def fitting(self, cost: ProductCost) -> ProductCost:
        """The cost, or an upper bound on fewer columns whose table is small enough."""
        while self._n_cells(cost.runs) > self._n_cells_max:
            longest = max(sorted(cost.runs), key=lambda axis: self._segments[axis].size)
            units = cost.units * max(cost.runs[longest].values)
            runs = {axis: one for axis, one in cost.runs.items() if axis != longest}
            cost = ProductCost(units, runs)
        return cost

    def add_products(self, scope: Scope, costs: Sequence[ProductCost], *, is_sure: bool) -> None:
        """Add products over the same columns: one matrix multiplication for many blocks."""
        units = np.array([cost.units for cost in costs], dtype=self._dtype)
        if not scope:
            self._add((), units.sum(), is_sure=is_sure)
            return
        shape = tuple(self._segments[axis].size for axis in scope)
        n_at_once = max(1, N_PIECE_CELLS_MAX // math.prod(shape[:-1]))
        for first in range(0, len(costs), n_at_once):
            chunk = costs[first : first + n_at_once]
            left = units[first : first + n_at_once, np.newaxis]
            for axis in scope[:-1]:
                rows = self._rows(axis, chunk)
                left = (left[:, :, np.newaxis] * rows[:, np.newaxis, :]).reshape(len(chunk), -1)
            total = (left.T @ self._rows(scope[-1], chunk)).reshape(shape)
            self._add(scope, total, is_sure=is_sure)

    def add_other(self, cost: OtherCost) -> None:
        """Add any function of the cells."""
        function = cost.function
        is_sure = cost.exact
        while self._n_cells(function.axes) > self._n_cells_max:
            longest = max(function.axes, key=lambda axis: self._segments[axis].size)
            function, is_sure = function.maximised(longest), False
        chosen = [
            classes.of_level[self._segments[axis].starts]
            for axis, classes in zip(function.axes, function.classes, strict=True)
        ]
        values = function.values[np.ix_(*chosen)] if chosen else function.values
        total = values.astype(self._dtype) * self._whole(cost.units)
        self._add(function.axes, total, is_sure=is_sure)

    def _add(self, scope: Scope, values: Any, *, is_sure: bool) -> None:
        tables = self.sure if is_sure else self.bounded
        known = tables.get(scope)
        tables[scope] = np.asarray(values if known is None else known + values, self._dtype)

    def _n_cells(self, axes: Iterable[str]) -> int:
        return math.prod(self._segments[axis].size for axis in axes)

    def _rows(self, axis: str, costs: Sequence[ProductCost]) -> Whole:
        """The magnitudes of each cost along a column, (n_costs, n_segments)."""
        return np.stack([self._vector(axis, cost.runs[axis]) for cost in costs])

    def _vector(self, axis: str, runs: Runs) -> Whole:
        known = self._vectors.get((axis, runs))
        if known is None:
            known = runs.at(self._segments[axis].starts).astype(self._dtype)
            self._vectors[axis, runs] = known
        return known

    def _whole(self, value: int) -> Any:
        return float(value) if self._dtype is np.float64 else value


def _scope(cost: Cost) -> Scope:
    return tuple(sorted(cost.runs)) if isinstance(cost, ProductCost) else cost.function.axes


def _segments(costs: Iterable[Cost]) -> dict[str, Segments]:
    n_levels: dict[str, int] = {}
    cuts: dict[str, set[int]] = {}
    for cost in costs:
        for axis, size, starts in _cuts(cost):
            if n_levels.setdefault(axis, size) != size:
                raise ValueError("two blocks disagree on how many levels a column has")
            cuts.setdefault(axis, set()).update(starts)
    return {
        axis: Segments(n_levels[axis], np.array(sorted(cuts[axis]), dtype=np.int64))
        for axis in sorted(cuts)
    }


def _cuts(cost: Cost) -> Iterable[tuple[str, int, Iterable[int]]]:
    """Each column of a cost: its name, its number of levels, and where the cost changes."""
    if isinstance(cost, ProductCost):
        return [(axis, runs.n_levels, runs.starts) for axis, runs in cost.runs.items()]
    function: CellFunction = cost.function
    return [
        (axis, classes.of_level.size, run_starts(classes.of_level).tolist())
        for axis, classes in zip(function.axes, function.classes, strict=True)
    ]


def _absorbed(tables: Iterable[tuple[Scope, Whole]]) -> Tables:
    """The same sum in fewer tables: a table is added to one that has all of its columns."""
    kept: Tables = {}
    for scope, values in sorted(tables, key=lambda table: (-len(table[0]), table[0])):
        home = next((other for other in kept if set(scope) <= set(other)), scope)
        kept[home] = kept[home] + spread(values, scope, home) if home in kept else values
    return kept


def spread(values: Whole, scope: Scope, onto: Scope) -> Whole:
    """A table with dimensions for a larger set of columns, to be broadcast."""
    shape = iter(values.shape)
    return values.reshape([next(shape) if axis in scope else 1 for axis in onto])
