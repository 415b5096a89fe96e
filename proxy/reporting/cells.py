"""The privacy loss along each column: for every level, the most that a cell with it has paid.

What a cell has paid is a sum of tables (cost_tables.py). The largest sum among the cells with a
level is found on a dense array if the connected columns span few enough cells, otherwise by
eliminating the other columns one after another (accountant/proofs/table_cost.md has the argument).
An intermediate table that would be too large is split and the maxima are added, so that the result
is an upper bound; if that is still too much work, every table is bounded separately. An upper bound
is shown beside what some cell is known to have paid (dear_cells.py), so that it is not mistaken for
the exact value.

No bound exceeds what the table was charged. Reads no data: rows and weights are the ledger's.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from cube.query import Scope
from proxy.reporting.cost_tables import CostTables, Tables, Whole, spread, tabulated
from proxy.reporting.dear_cells import attained
from proxy.reporting.paid_rows import Cost

N_DENSE_CELLS_MAX: Final = 2**22  # of connected columns: 32 MB
N_BUCKET_CELLS_MAX: Final = 2**16  # of a table made while columns are eliminated
N_ELIMINATED_CELLS_MAX: Final = 2**29  # touched for all columns together: a few seconds


@dataclass(frozen=True, slots=True)
class ColumnCost:
    """The most that a cell with each level of a column has paid, in units of 2**-40 epsilon.

    Parameters
    ----------
    column : str
    n_levels : int
    starts : tuple of int
        Where each segment begins; a segment is a run of levels with the same cost.
    at_most : tuple of int
        No cell with a level of the segment has paid more.
    at_least : tuple of int
        Some cell has paid this much.
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
            raise ValueError("there must be one cost for each segment")

    @property
    def is_exact(self) -> bool:
        """Whether the two bounds are equal."""
        return self.at_most == self.at_least


@dataclass(frozen=True, slots=True, eq=False)
class _Along:
    """Upper and lower bounds on the largest sum, for each segment of a column."""

    at_most: Whole
    at_least: Whole


_Component: TypeAlias = dict[str, _Along]  # connected columns


def column_costs(costs: Iterable[Cost], units_spent: int) -> tuple[ColumnCost, ...]:
    """The cost along every column that some row concerns; no cell paid more than `units_spent`."""
    paid = tabulated(costs)
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
            at_most = [min(units_spent, int(cost) + most_elsewhere) for cost in along.at_most]
            at_least = [int(cost) + least_elsewhere for cost in along.at_least]
            result.append(_column(paid, column, at_most, at_least))
    return tuple(sorted(result, key=lambda cost: cost.column))


def _column(paid: CostTables, column: str, at_most: list[int], at_least: list[int]) -> ColumnCost:
    """A column's cost, with adjacent segments of equal cost merged."""
    starts = paid.segments[column].starts.tolist()
    bounds = list(zip(at_most, at_least, strict=True))
    kept = [place for place, one in enumerate(bounds) if not place or one != bounds[place - 1]]
    return ColumnCost(
        column,
        paid.segments[column].n_levels,
        tuple(starts[place] for place in kept),
        tuple(at_most[place] for place in kept),
        tuple(at_least[place] for place in kept),
    )


def _components(scopes: Iterable[Scope]) -> list[list[Scope]]:
    """Scopes grouped by shared columns, directly or through others."""
    components: list[tuple[set[str], list[Scope]]] = []
    for scope in sorted(filter(None, scopes)):
        touching = [one for one in components if one[0] & set(scope)]
        axes = set(scope).union(*(one[0] for one in touching))
        members = [member for one in touching for member in one[1]]
        components = [one for one in components if one not in touching]
        components.append((axes, [*members, scope]))
    return [members for _, members in components]


def _of_every_cell(tables: Mapping[Scope, Whole]) -> int:
    """What every cell has paid, independent of its levels."""
    return sum(int(values) for scope, values in tables.items() if not scope)


def _component(paid: CostTables, tables: Tables) -> _Component:
    """The bounds along each column of connected tables."""
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
    known = attained(paid, sure, columns)
    return {
        column: _Along(values, values if is_sure and is_exact else known[column])
        for column, (values, is_exact) in found.items()
    }


def _dense(paid: CostTables, tables: Tables, columns: Scope) -> dict[str, tuple[Whole, bool]]:
    total: Whole = np.zeros(paid.sizes(columns), dtype=next(iter(tables.values())).dtype)
    for scope, values in tables.items():
        total += spread(values, scope, columns)
    return {column: (_maximum_but(total, place), True) for place, column in enumerate(columns)}


def _bounded(tables: Tables, column: str) -> Whole:
    """The sum of each table's own maximum."""
    along: Whole = np.zeros(1, dtype=next(iter(tables.values())).dtype)
    for scope, values in tables.items():
        if column in scope:
            along = along + _maximum_but(values, scope.index(column))
        else:
            along = along + values.max()
    return along


def _maximum_but(values: Whole, place: int) -> Whole:
    others = tuple(axis for axis in range(values.ndim) if axis != place)
    return np.asarray(values.max(axis=others), dtype=values.dtype)


def _eliminated(paid: CostTables, tables: Mapping[Scope, Whole], keep: str) -> tuple[Whole, bool]:
    """The largest sum at each segment of `keep`, or a bound where a table had to be split."""
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
    along: Whole = np.zeros(paid.segments[keep].size, dtype=next(iter(tables.values())).dtype)
    for values in remaining.values():
        along = along + values
    return along, exact


def _pieces(paid: CostTables, bucket: Tables) -> list[tuple[Scope, Whole]]:
    """Tables added up into as few sums as stay small, the largest first."""
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


def _sum(
    paid: CostTables, bucket: Tables, axes: set[str], members: list[Scope]
) -> tuple[Scope, Whole]:
    scope: Scope = tuple(sorted(axes))
    total: Whole = np.zeros(paid.sizes(scope), dtype=bucket[members[0]].dtype)
    for member in members:
        total += spread(bucket[member], member, scope)
    return scope, total
