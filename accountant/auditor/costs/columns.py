"""What each column of a table has cost: for every level, the most that a cell with it has paid.

What a cell has paid is the sum of a bound's tables (tables.py). The largest sum among the cells
with a level is found on a dense array where the columns that hang together span few enough cells,
else by eliminating the other columns one after another. Where a table on the way would be too large
it is split and the maxima are added, so that the result is an upper bound; beyond that, every table
is bounded by itself. Beside a bound stands what some cell is known to have paid, found by moving
cells one column at a time, so that readers see how far the bound may be off.

Whole numbers throughout. Proof: proofs/ledger.md, "Along a column".
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from accountant.auditor.costs.bound import Bound
from accountant.auditor.costs.tables import AxisClasses, Indices, Table
from accountant.auditor.noise import Whole
from accountant.auditor.rows import Scope

N_TABLE_CELLS_MAX: Final = 2**20  # of one table, before it gives up a column
N_CELLS_ALL_MAX: Final = 2**25  # of all tables: 256 MB; the more there are, the smaller each
N_DENSE_CELLS_MAX: Final = 2**22  # of columns that hang together: 32 MB
N_BUCKET_CELLS_MAX: Final = 2**16  # of a table made while columns are eliminated
N_ELIMINATED_CELLS_MAX: Final = 2**29  # touched for all columns together: a few seconds
N_STARTS: Final = 32  # cells that are moved, to find one that paid much
N_ROUNDS_MAX: Final = 8  # of moving every column once; a few are nearly always enough
SEED: Final = 1  # of where they start: nothing is private here, and an audit repeats itself

Tables: TypeAlias = dict[Scope, Whole]  # over the classes of their columns


@dataclass(frozen=True, slots=True)
class ColumnCost:
    """The most that a cell with each level of a column has paid, in units of 2**-40 epsilon.

    Parameters
    ----------
    column : str
    n_levels : int
    starts : tuple of int
        Levels in a row with the same cost are one segment; where each begins. Along a measure, also
        levels whose costs rise or fall together.
    at_most : tuple of int
        For each segment, a number that no cell with these levels passes.
    at_least : tuple of int
        For each segment, an amount that some cell has paid.
    """

    column: str
    n_levels: int
    starts: tuple[int, ...]
    at_most: tuple[int, ...]
    at_least: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.starts or self.starts[0] != 0:
            raise ValueError("the first segment must begin at the first level")
        if not len(self.starts) == len(self.at_most) == len(self.at_least):
            raise ValueError("each segment needs exactly one cost")

    @property
    def is_exact(self) -> bool:
        """Whether nothing is left between the two bounds."""
        return self.at_most == self.at_least


def column_costs(bound: Bound, units_spent: int) -> tuple[ColumnCost, ...]:
    """The cost along every column that some row is about; no cell paid more than `units_spent`.

    Parameters
    ----------
    bound : Bound
        A bound that includes its whole history.
    units_spent : int
        The units of 2**-40 epsilon charged to the table.
    """
    bound.go_to(len(bound.rows))
    paid = _Paid.of(bound)
    most_everywhere, least_everywhere = _of_every_cell(paid.tables), _of_every_cell(paid.sure)
    components = [
        _component(paid, {scope: paid.tables[scope] for scope in scopes})
        for scopes in _components(paid.tables)
    ]
    tops = [min(int(along.at_most.max()) for along in one.values()) for one in components]
    known = [max(int(along.at_least.max()) for along in one.values()) for one in components]
    result = []
    for place, one in enumerate(components):
        most_elsewhere = most_everywhere + sum(tops) - tops[place]
        least_elsewhere = least_everywhere + sum(known) - known[place]
        for column, along in one.items():
            at_most = [min(units_spent, cost + most_elsewhere) for cost in along.at_most.tolist()]
            at_least = [cost + least_elsewhere for cost in along.at_least.tolist()]
            result.append(_column(bound.layout.classes[column], column, at_most, at_least))
    return tuple(sorted(result, key=lambda cost: cost.column))


@dataclass(frozen=True, slots=True, eq=False)
class _Along:
    """Upper and lower bounds on the largest sum, for each class of a column."""

    at_most: Whole
    at_least: Whole


@dataclass(frozen=True, slots=True, eq=False)
class _Paid:
    """What each cell has paid: at most the sum of `tables`, at least that of `sure`.

    Parameters
    ----------
    n_classes : mapping of str to int
        Of every column that some row is about.
    tables : mapping of Scope to ndarray
        One array for each combination of columns, over their classes.
    sure : mapping of Scope to ndarray
        The same without rows whose cost the tables only bound.
    """

    n_classes: Mapping[str, int]
    tables: Tables
    sure: Tables

    @classmethod
    def of(cls, bound: Bound) -> "_Paid":
        layout = bound.layout
        n_classes = {axis: one.levels.size for axis, one in layout.classes.items()}
        constant, sure_constant, doubtful = 0, 0, set()
        for row, parts in zip(bound.rows, layout.parts, strict=True):
            is_sure = len(parts) == 1 and parts[0].row is row
            for part in parts:
                if part.table is None:
                    constant += part.row.bound
                    sure_constant += part.row.bound if is_sure else 0
                elif not is_sure:
                    doubtful.add(part.table)
        n_cells_max = min(N_TABLE_CELLS_MAX, N_CELLS_ALL_MAX // max(1, len(bound.tables)))
        bounded: list[tuple[Scope, Whole]] = []
        sure: list[tuple[Scope, Whole]] = [((), np.array(sure_constant, layout.dtype))]
        if constant > sure_constant:
            bounded.append(((), np.array(constant - sure_constant, layout.dtype)))
        for number, tilted in enumerate(bound.tables):
            scope, values = _fitting(tilted.table, tilted.values, n_classes, n_cells_max)
            is_sure = number not in doubtful and scope == tilted.table.axes
            (sure if is_sure else bounded).append((scope, values))
        together = _absorbed(sure)
        return cls(n_classes, _absorbed([*together.items(), *bounded]), together)

    def sizes(self, scope: Iterable[str]) -> tuple[int, ...]:
        """The number of classes of some columns."""
        return tuple(self.n_classes[axis] for axis in scope)


def _fitting(
    table: Table, values: Whole, n_classes: Mapping[str, int], n_cells_max: int
) -> tuple[Scope, Whole]:
    """A table over the history's classes; of fewer columns, and nowhere below, if it is large."""
    axes, labels = list(table.axes), list(table.label)
    while math.prod(n_classes[axis] for axis in axes) > n_cells_max:
        longest = max(range(len(axes)), key=lambda place: n_classes[axes[place]])
        values = np.asarray(values.max(axis=longest), values.dtype)
        del axes[longest], labels[longest]
    return tuple(axes), values[np.ix_(*labels)] if labels else values


def _absorbed(tables: Iterable[tuple[Scope, Whole]]) -> Tables:
    """The same sum in fewer tables: one whose columns another has too is added to that one."""
    kept: Tables = {}
    for scope, values in sorted(tables, key=lambda table: (-len(table[0]), table[0])):
        home = next((other for other in kept if set(scope) <= set(other)), scope)
        kept[home] = kept[home] + _spread(values, scope, home) if home in kept else values
    return kept


def _spread(values: Whole, scope: Scope, onto: Scope) -> Whole:
    """A table with the dimensions of other columns, among which its own are; to be broadcast."""
    shape = iter(values.shape)
    return values.reshape([next(shape) if axis in scope else 1 for axis in onto])


def _column(
    classes: AxisClasses, column: str, at_most: list[int], at_least: list[int]
) -> ColumnCost:
    """Levels of equal cost next to each other are one segment."""
    bounds = [
        (max(at_most[first], at_most[last]), max(at_least[first], at_least[last]))
        for first, last in classes.ends.T.tolist()
    ]
    kept = [place for place, one in enumerate(bounds) if not place or one != bounds[place - 1]]
    return ColumnCost(
        column,
        classes.n_levels,
        tuple(int(classes.segments[place]) for place in kept),
        tuple(bounds[place][0] for place in kept),
        tuple(bounds[place][1] for place in kept),
    )


def _components(scopes: Iterable[Scope]) -> list[list[Scope]]:
    """Scopes that share columns, directly or through others, together."""
    components: list[tuple[set[str], list[Scope]]] = []
    for scope in sorted(filter(None, scopes)):
        touching = [one for one in components if one[0] & set(scope)]
        axes = set(scope).union(*(one[0] for one in touching))
        members = [member for one in touching for member in one[1]]
        components = [one for one in components if one not in touching]
        components.append((axes, [*members, scope]))
    return [members for _, members in components]


def _of_every_cell(tables: Mapping[Scope, Whole]) -> int:
    """The amount that every cell has paid, whatever its levels."""
    return sum(int(values) for scope, values in tables.items() if not scope)


def _component(paid: _Paid, tables: Tables) -> dict[str, _Along]:
    """The bounds along each column of tables that hang together."""
    columns: Scope = tuple(sorted({axis for scope in tables for axis in scope}))
    sure = {scope: values for scope, values in paid.sure.items() if set(scope) & set(columns)}
    is_sure = sure.keys() == tables.keys() and all(sure[scope] is tables[scope] for scope in sure)
    if math.prod(paid.sizes(columns)) <= N_DENSE_CELLS_MAX:
        found = _dense(paid, tables, columns)
    elif len(columns) * sum(map(np.size, tables.values())) > N_ELIMINATED_CELLS_MAX:
        found = {column: (_bounded(tables, column), False) for column in columns}
    else:
        found = {column: _eliminated(paid, tables, column) for column in columns}
    if is_sure and all(is_exact for _, is_exact in found.values()):
        return {column: _Along(values, values) for column, (values, _) in found.items()}
    known = _attained(paid, sure, columns)
    return {
        column: _Along(values, values if is_sure and is_exact else known[column])
        for column, (values, is_exact) in found.items()
    }


def _dense(paid: _Paid, tables: Tables, columns: Scope) -> dict[str, tuple[Whole, bool]]:
    total: Whole = np.zeros(paid.sizes(columns), dtype=_dtype(tables))
    for scope, values in tables.items():
        total += _spread(values, scope, columns)
    return {column: (_maximum_but(total, place), True) for place, column in enumerate(columns)}


def _bounded(tables: Tables, column: str) -> Whole:
    """The sum of each table's own maximum."""
    along: Whole = np.zeros(1, dtype=_dtype(tables))
    for scope, values in tables.items():
        if column in scope:
            along = along + _maximum_but(values, scope.index(column))
        else:
            along = along + values.max()
    return along


def _maximum_but(values: Whole, place: int) -> Whole:
    others = tuple(axis for axis in range(values.ndim) if axis != place)
    return np.asarray(values.max(axis=others), dtype=values.dtype)


def _eliminated(paid: _Paid, tables: Mapping[Scope, Whole], keep: str) -> tuple[Whole, bool]:
    """The largest sum at each class of `keep`, or a bound where a table had to be split."""
    remaining: Tables = dict(tables)
    exact = True
    left = {axis for scope in tables for axis in scope} - {keep}
    while left:
        joint = {axis: {a for scope in remaining if axis in scope for a in scope} for axis in left}
        axis = min(sorted(left), key=lambda name: math.prod(paid.sizes(joint[name])))
        bucket = {scope: remaining.pop(scope) for scope in list(remaining) if axis in scope}
        pieces = _pieces(paid, bucket)
        exact &= len(pieces) == 1
        for scope, total in pieces:
            place = scope.index(axis)
            rest = scope[:place] + scope[place + 1 :]
            message = np.asarray(total.max(axis=place), dtype=total.dtype)
            remaining[rest] = remaining[rest] + message if rest in remaining else message
        left.discard(axis)
    along: Whole = np.zeros(paid.n_classes[keep], dtype=_dtype(tables))
    for values in remaining.values():
        along = along + values
    return along, exact


def _pieces(paid: _Paid, bucket: Tables) -> list[tuple[Scope, Whole]]:
    """Tables added up in as few sums as stay small, the largest first."""
    drafts: list[tuple[set[str], list[Scope]]] = []
    for scope in sorted(bucket, key=lambda scope: (-bucket[scope].size, scope)):
        for axes, members in drafts:
            if axes >= set(scope) or math.prod(paid.sizes(axes | set(scope))) <= N_BUCKET_CELLS_MAX:
                axes.update(scope)
                members.append(scope)
                break
        else:
            drafts.append((set(scope), [scope]))
    return [_sum(paid, bucket, axes, members) for axes, members in drafts]


def _sum(paid: _Paid, bucket: Tables, axes: set[str], members: list[Scope]) -> tuple[Scope, Whole]:
    scope: Scope = tuple(sorted(axes))
    total: Whole = np.zeros(paid.sizes(scope), dtype=_dtype(bucket))
    for member in members:
        total += _spread(bucket[member], member, scope)
    return scope, total


def _attained(paid: _Paid, tables: Tables, columns: Sequence[str]) -> dict[str, Whole]:
    """For each of the columns, what a cell with each class was found to have paid.

    From a few places in the cube, one column after the other is moved to its most expensive class
    until nothing gets more expensive. What these cells paid is a fact, and no maximum.
    """
    draw = np.random.default_rng(SEED)
    cells = {axis: draw.integers(0, paid.n_classes[axis], N_STARTS) for axis in columns}
    for _ in range(N_ROUNDS_MAX):
        before = {axis: places.copy() for axis, places in cells.items()}
        for axis in columns:
            cells[axis] = _moved_along(paid, tables, cells, axis).argmax(axis=1)
        if all(np.array_equal(before[axis], cells[axis]) for axis in columns):
            break
    return {axis: _moved_along(paid, tables, cells, axis).max(axis=0) for axis in columns}


def _moved_along(paid: _Paid, tables: Tables, cells: Mapping[str, Indices], axis: str) -> Whole:
    """The amount that each cell would have paid in each class of a column, (n_cells, n_classes)."""
    along: Whole = np.zeros((N_STARTS, paid.n_classes[axis]), dtype=_dtype(tables))
    for scope, values in tables.items():
        others = tuple(cells[name] for name in scope if name != axis)
        if axis in scope:
            moved = np.moveaxis(values, scope.index(axis), -1)
            along += moved[others] if others else moved
        else:
            along += values[others][:, np.newaxis]
    return along


def _dtype(tables: Mapping[Scope, Whole]) -> np.dtype[np.generic]:
    return next((values.dtype for values in tables.values()), np.dtype(np.int64))
