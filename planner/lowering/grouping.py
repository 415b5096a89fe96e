"""GROUP BY as a partition of public cells, with the key values of each result row.

Every group that contains some public cell satisfying WHERE is shown, whatever the data: which
groups appear reveals nothing. Groups are ordered by their keys, NULL last.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from cube.axis import Axis, DateAxis, IntegerAxis, LevelValue, MeasureAxis, TimestampAxis
from cube.classes import Tiles, by_first_appearance, first_places, tiled
from cube.grid import slice_keys
from cube.pieces import Pieces, runs_of
from cube.query import N_FACTOR_CELLS_MAX, N_GROUPS_MAX, N_NARROW_LEVELS_MAX, Partition, Scope
from cube.refusals import TooLarge
from cube.schema import Schema
from planner.domain.allowance import Allowance
from planner.domain.domain import KeyArray, LevelArray, spread
from planner.lowering.products import N_SHARED_CELLS_MAX, connected, independent
from planner.workload import GroupKey

N_VALUES_MAX = 2**20  # of all keys of all groups


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups of one SELECT; `partition` is None if no group is possible."""

    partition: Partition | None
    keys: tuple[GroupKey, ...]

    @property
    def n_rows(self) -> int:
        """The number of groups; one of everything without keys."""
        if not self.keys:
            return 1
        return 0 if self.partition is None else self.partition.n_groups


@dataclass(frozen=True, eq=False)
class _Part:
    """Groups over a few columns that are independent of all other columns.

    `labels` is -1 where WHERE holds on no cell; `chosen` holds, for each group, the code of every
    key in `members`, as an array of shape (n_groups, n_members).
    """

    axes: Scope
    labels: NDArray[np.int64]
    members: list[int]
    chosen: NDArray[np.int64]

    @property
    def n_groups(self) -> int:
        return len(self.chosen)


def grouping(
    keys: Sequence[KeyArray],
    where: Sequence[LevelArray],
    schema: Schema,
    allowance: Allowance,
) -> Grouping:
    """The groups of `keys` (at least one) that cells satisfying `where` can fall into.

    Raises
    ------
    TooLarge
        If there are more than `N_GROUPS_MAX`, or too many combinations of levels behind them, or
        too many values of keys in them.
    """
    axes = tuple(sorted({name for key in keys for name in key.axes}))
    factors = independent(where, schema, allowance)
    possible = all(factor.values.any() for factor in factors)
    parts = _parts(keys, [_reach(factor, axes) for factor in factors], schema) if possible else []
    n_groups = math.prod(part.n_groups for part in parts) if possible else 0
    if n_groups > N_GROUPS_MAX:
        raise TooLarge(
            f"GROUP BY makes {n_groups} groups; {N_GROUPS_MAX} are allowed.",
            hint=narrower([schema.by_name[key.axes[0]] for key in keys if len(key.axes) == 1]),
        )
    if n_groups == 0:
        return Grouping(None, tuple(GroupKey(key.sql_type, ()) for key in keys))
    is_tiled = len(axes) > 1 and (
        max(schema.sizes(axes)) > N_NARROW_LEVELS_MAX or schema.n_cells(axes) > N_FACTOR_CELLS_MAX
    )
    if not is_tiled:
        _check_cells(axes, schema)
        allowance.cells(schema.n_cells(axes))
    check_values(n_groups, len(keys))
    rows = _rows(keys, parts)
    order = sorted(range(n_groups), key=lambda row: [_sort_key(value) for value in rows[row]])
    rank = np.empty(n_groups + 1, dtype=np.int64)
    rank[order], rank[n_groups] = np.arange(n_groups), -1  # -1, no group, picks the last entry
    if is_tiled:
        partition = Partition(axes, _tiles(parts, axes, rank, allowance))
    else:
        partition = _shared(axes, rank[_joint_labels(parts, axes, schema.sizes(axes))])
    columns = zip(*(rows[row] for row in order), strict=True)
    return Grouping(
        partition,
        tuple(GroupKey(key.sql_type, values) for key, values in zip(keys, columns, strict=True)),
    )


# Like factors: partitions that many statements share are one object; the key includes the shape.
_PARTITIONS: WeakValueDictionary[tuple[Scope, tuple[int, ...], bytes], Partition]
_PARTITIONS = WeakValueDictionary()


def _shared(axes: Scope, labels: NDArray[np.int64]) -> Partition:
    if labels.size > N_SHARED_CELLS_MAX:
        return Partition(axes, labels)
    key = (axes, labels.shape, labels.tobytes())
    known = _PARTITIONS.get(key)
    if known is None:
        known = _PARTITIONS[key] = Partition(axes, labels)
    return known


def _reach(factor: LevelArray, key_axes: Scope) -> LevelArray:
    """Which levels of the key columns a condition allows for some levels of other columns."""
    others = tuple(d for d, name in enumerate(factor.axes) if name not in key_axes)
    kept = tuple(name for name in factor.axes if name in key_axes)
    return LevelArray(kept, np.asarray(factor.values.any(axis=others), dtype=np.int64))


def _parts(keys: Sequence[KeyArray], reaches: Sequence[LevelArray], schema: Schema) -> list[_Part]:
    """Groups of keys and conditions that share no column with one another."""
    relevant = [reach for reach in reaches if reach.axes]
    scopes = [key.axes for key in keys] + [reach.axes for reach in relevant]
    parts = []
    for group in connected(scopes):
        members = [position for position in group if position < len(keys)]
        axes = tuple(sorted({name for position in group for name in scopes[position]}))
        _check_cells(axes, schema)
        reachable = np.ones(schema.sizes(axes), dtype=np.bool_)
        for position in group[len(members) :]:
            reach = relevant[position - len(keys)]
            reachable &= spread(reach.values, reach.axes, axes).astype(np.bool_)
        parts.append(_part(axes, members, keys, reachable))
    return parts


def _part(
    axes: Scope, members: list[int], keys: Sequence[KeyArray], reachable: NDArray[np.bool_]
) -> _Part:
    cells = np.flatnonzero(reachable)
    joint = np.zeros(cells.size, dtype=np.int64)
    codes = [
        np.broadcast_to(
            spread(keys[member].codes, keys[member].axes, axes), reachable.shape
        ).reshape(-1)[cells]
        for member in members
    ]
    for member, code in zip(members, codes, strict=True):
        # Renumbered after each key, so that the running number stays far below 2**63.
        _, joint = np.unique(joint * len(keys[member].values) + code, return_inverse=True)
    _, first = np.unique(joint, return_index=True)
    labels = np.full(reachable.size, -1, dtype=np.int64)
    labels[cells] = joint
    chosen = np.stack([code[first] for code in codes], axis=1)
    return _Part(axes, labels.reshape(reachable.shape), members, chosen)


def _rows(keys: Sequence[KeyArray], parts: Sequence[_Part]) -> list[tuple[LevelValue, ...]]:
    """The key values of every combination of the parts' groups, the last part running fastest."""
    n_groups = math.prod(part.n_groups for part in parts)
    columns: list[list[LevelValue]] = [[] for _ in keys]
    repeats = n_groups
    for part in parts:
        repeats //= part.n_groups
        place = np.arange(n_groups) // repeats % part.n_groups
        for column, member in enumerate(part.members):
            values = keys[member].values
            columns[member] = [values[code] for code in part.chosen[place, column]]
    return list(zip(*columns, strict=True))


def _tiles(
    parts: Sequence[_Part], axes: Scope, rank: NDArray[np.int64], allowance: Allowance
) -> Tiles:
    """The same as tiles, where a column has many levels: the levels of a part's group are one."""
    along: dict[str, Pieces] = {}
    small = []
    for part in parts:
        labels = part.labels
        for dimension, name in enumerate(part.axes):
            keys = slice_keys(labels, dimension)
            along[name] = classes = runs_of(by_first_appearance(np.asarray(keys)))
            first = first_places(classes.coefficients[:, 0])
            labels = labels.take(classes.starts[first], axis=dimension)
        small.append(replace(part, labels=labels))
    sizes = tuple(along[name].ends[1] + 1 for name in axes)
    if math.prod(sizes) > N_FACTOR_CELLS_MAX:
        raise TooLarge(
            f"GROUP BY uses {math.prod(sizes)} combinations of groups of levels, "
            f"{N_FACTOR_CELLS_MAX} are allowed.",
            hint="Group by fewer columns, or by columns with fewer levels.",
        )
    allowance.cells(math.prod(sizes))
    return tiled(tuple(along[name] for name in axes), rank[_joint_labels(small, axes, sizes)])


def _joint_labels(parts: Sequence[_Part], axes: Scope, sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """The number of each cell's combination in `_rows`; -1 where it is in no group."""
    joint = np.zeros(sizes, dtype=np.int64)
    outside = np.zeros(sizes, dtype=np.bool_)
    for part in parts:
        labels = spread(part.labels, part.axes, axes)
        joint = joint * part.n_groups + labels
        outside |= labels < 0
    joint[outside] = -1
    return joint


def _sort_key(value: LevelValue) -> tuple[bool, LevelValue]:
    return (True, 0) if value is None else (False, value)


def narrower(axes: Sequence[Axis]) -> str:
    """What to group by instead of these columns, when there are too many groups."""
    widest = max(axes, key=lambda axis: axis.size, default=None)
    if isinstance(widest, IntegerAxis | MeasureAxis):
        low, high = (f"{float(end):.15g}" for end in (widest.low, widest.high))
        ranges = f"WIDTH_BUCKET({widest.name}, {low}, {high}, 10)"
    elif isinstance(widest, DateAxis | TimestampAxis):
        ranges = f"DATE_TRUNC('month', {widest.name})"
    else:
        return "Group by fewer columns or by ranges, or narrow the groups in WHERE."
    return f"Group by ranges, as in {ranges}, or by fewer columns; or narrow the groups in WHERE."


def check_values(n_groups: int, n_keys: int) -> None:
    """Raise TooLarge if groups have too many values of keys to be written out."""
    if n_groups * n_keys > N_VALUES_MAX:
        raise TooLarge(
            f"GROUP BY makes {n_groups} groups of {n_keys} keys, so {n_groups * n_keys} values; "
            f"{N_VALUES_MAX} are allowed.",
            hint=f"Use at most {N_VALUES_MAX // n_groups} keys, or narrow the groups in WHERE.",
        )


def _check_cells(axes: Scope, schema: Schema) -> None:
    n_cells = schema.n_cells(axes)
    if n_cells > N_FACTOR_CELLS_MAX:
        raise TooLarge(
            f"GROUP BY uses {', '.join(axes)}: {n_cells} combinations of levels, "
            f"{N_FACTOR_CELLS_MAX} are allowed.",
            hint="Group by fewer columns, or by columns with fewer levels.",
        )
