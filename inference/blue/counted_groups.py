"""The counted groups of a history, and the ways to read a query as a sum of them.

Disjoint groups that were counted together are a partition of the cells of a few axes. A query is
read from the cells of one scope, from a hierarchy of partitions of one scope, and, if it is about
one column or none, from the margins of all scopes with it. On a table that grows, it is read from
the same query on other stretches of time. Each way is exact about its noise; which one is the
narrowest, the estimator finds out. Readers are kept between queries.

Margins are counts of one column, or of the whole table, from every table that was counted with the
column. A table of counts by two columns or more says something about each of them: summed over the
others, it is another independent count of the column's groups. Synthetic tables and dashboards
leave dozens of such tables. Those whose partitions of the column are nested are combined: equal
partitions are averaged by their precision, and the levels of the nesting as a hierarchy's are
(`hierarchy_reader.py`). What the tables say about each other through two columns at once is left
out, so the combination is unbiased and not the best.

Nothing here chooses among estimates, or knows budgets or what accuracy is asked for; values play no
part in the choice of coefficients.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cube.classes import AxisClasses
from cube.grid import Grid
from cube.measurement import Measurement
from cube.query import QueryBlock, Scope
from cube.schema import Schema
from inference.blue.atoms import row_signature
from inference.blue.hierarchy_reader import GroupNumbers as Floats
from inference.blue.hierarchy_reader import HierarchyReader, NestedGroups, divided, extends
from inference.blue.partition_reader import N_READ_CELLS_MAX, PartitionReader, Reading
from inference.blue.stretches import StretchesReader
from inference.history import History

N_TABLES_MAX = 64  # the most precise; more of them add little, and take time
N_CELLS_MAX = 2**16  # of all tables together: a sum of so many noises takes ten milliseconds
N_NUMBERS_MAX = 2**20  # groups of the finest partition times rows that are read together

Integers = NDArray[np.int64]


class MarginReader:
    """All tables that were counted with one column, or with any.

    Parameters
    ----------
    axes : tuple of str
        The column; empty for the whole table.
    measured : mapping of int to Measurement
        Partitions whose axes include the column, by place. See `history.counts_groups`.
    known : mapping of int to _Margin, optional
        The margins of measurements that another reader has worked out, by place.
    """

    def __init__(
        self,
        axes: Scope,
        measured: Mapping[int, Measurement],
        known: "Mapping[int, _Margin]" = MappingProxyType({}),
    ) -> None:
        self._axes = axes
        self._measured = frozenset(measured)
        self._read: WeakKeyDictionary[QueryBlock, Reading | None] = WeakKeyDictionary()
        margins = {
            place: known.get(place) or _Margin.of(axes, place, measured[place])
            for place in _least_noisy(measured)
        }
        self._known = {place: one for place, one in margins.items() if one is not None}
        self._levels = _nested(list(self._known.values()))
        if not self._levels:
            return
        chain = [level[0].classes for level in self._levels]
        self._finest = Grid(axes, (chain[0],) if axes else ())
        self._tree = NestedGroups.of(chain, np.array([_precision(one) for one in self._levels]))

    def reading(self, measured: Mapping[int, Measurement]) -> "MarginReader":
        """The reader of these measurements: this one, or one that extends it."""
        if self._measured == measured.keys():
            return self
        return MarginReader(self._axes, measured, self._known)

    @property
    def n_tables(self) -> int:
        """The number of tables that are combined."""
        return sum(len(level) for level in self._levels)

    def read(self, block: QueryBlock) -> Reading | None:
        """The rows of a block as sums of noisy counts.

        None if they are too many, if the block tells apart what was counted together, or if there
        is only one table, which other readers read.
        """
        if self.n_tables < 2:  # noqa: PLR2004 - nothing to combine
            return None
        if block not in self._read:
            self._read[block] = self._combined(block)
        return self._read[block]

    def _combined(self, block: QueryBlock) -> Reading | None:
        if self._finest.n_cells * block.n_rows > N_NUMBERS_MAX:
            return None
        if self._finest.refined([block]) is not self._finest:
            return None  # it cuts the finest groups
        coefficient, row = row_signature(self._finest, block)
        (touched,) = np.nonzero(row >= 0)
        asked = np.zeros((coefficient.size, block.n_rows))
        asked[touched, row[touched]] = coefficient[touched]
        found = self._tree.coefficients(asked, 0)
        parts = []
        for level, start, end in zip(
            self._levels, self._tree.starts, self._tree.starts[1:], strict=False
        ):
            groups, rows = np.nonzero(found[start:end])
            shares = found[start:end][groups, rows] / _precision(level)
            parts += [one.terms(groups, rows, shares * one.precision) for one in level]
        return _joined(parts, block.n_rows)


@dataclass(frozen=True, eq=False, slots=True)
class _Margin:
    """A table's counts, summed over all its axes but one.

    Parameters
    ----------
    place : int
        The measurement's place in the history.
    measurement : Measurement
    classes : AxisClasses
        The partition of the axis.
    rows : (n_rows,) ndarray of int64
        The table's rows, those of each class together.
    n_rows : int
        The number of rows of each class.
    """

    place: int
    measurement: Measurement
    classes: AxisClasses
    rows: Integers
    n_rows: int

    @classmethod
    def of(cls, axes: Scope, place: int, one: Measurement) -> "_Margin | None":
        """The margin of a table; None if its groups are not products over the axes."""
        partition, every = one.block.partition, np.arange(one.block.n_rows)
        along = divided(one.block)
        if not axes:
            is_whole = partition is None or along is not None
            undivided = AxisClasses.undivided(1)
            return cls(place, one, undivided, every, every.size) if is_whole else None
        if partition is None or along is None:
            return None
        grid = Grid(partition.axes, along)
        dimension = partition.axes.index(axes[0])
        groups = grid.labels(partition.axes, partition.groups).reshape(grid.shape)
        rows = np.moveaxis(groups, dimension, 0).reshape(grid.shape[dimension], -1)
        return cls(place, one, along[dimension], rows.ravel(), rows.shape[1])

    @property
    def precision(self) -> float:
        """The precision of the count of a class, up to a factor that all margins share."""
        return float(1 / (self.n_rows * self.measurement.noise_scale**2))

    def terms(self, groups: Integers, rows: Integers, coefficients: Floats) -> Reading:
        """Multiples of the counts of some classes, for some rows of a block."""
        one, n = self.measurement, self.n_rows
        used = self.rows.reshape(-1, n)[groups].ravel()
        return Reading(
            row=np.repeat(rows, n),
            coefficient=np.repeat(coefficients, n),
            value=one.values[used],
            noise_scale=np.full(used.size, one.noise_scale),
            is_gaussian=np.full(used.size, one.is_gaussian),
            lattice_widening=np.full(used.size, one.lattice_widening),
            noise_place=np.full(used.size, self.place),
            noise_row=used,
            is_covered=np.empty(0, dtype=np.bool_),
        )


def _least_noisy(measured: Mapping[int, Measurement]) -> list[int]:
    """The places of the tables with the least noise in the sum of all counts."""
    noise = {place: one.block.n_rows * one.noise_scale**2 for place, one in measured.items()}
    found, n_cells = [], 0
    for place in sorted(noise, key=lambda place: (noise[place], place))[:N_TABLES_MAX]:
        n_cells += measured[place].block.n_rows
        if n_cells <= N_CELLS_MAX:
            found.append(place)
    return found


def _nested(margins: Sequence[_Margin]) -> list[list[_Margin]]:
    """Margins over equal classes together, the finest first; those not nested are left out."""
    levels: list[list[_Margin]] = []
    for one in sorted(margins, key=lambda one: (-one.classes.n_classes, -one.precision)):
        equal = next((level for level in levels if level[0].classes.equals(one.classes)), None)
        if equal is not None:
            equal.append(one)
        elif not levels or extends([level[0].classes for level in levels], one.classes):
            levels.append([one])
    return levels


def _precision(level: Sequence[_Margin]) -> float:
    return sum(one.precision for one in level)


def _joined(parts: Sequence[Reading], n_rows: int) -> Reading:
    """Several readings of the same rows as one."""

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(one, name) for one in parts])

    return Reading(
        row=joined("row"),
        coefficient=joined("coefficient"),
        value=joined("value"),
        noise_scale=joined("noise_scale"),
        is_gaussian=joined("is_gaussian"),
        lattice_widening=joined("lattice_widening"),
        noise_place=joined("noise_place"),
        noise_row=joined("noise_row"),
        is_covered=np.ones(n_rows, dtype=np.bool_),
    )


N_READINGS_TRIED = 4  # scopes from which to read a query, the most promising first


class CountedGroups:
    """The readers of one history's partitions.

    Parameters
    ----------
    schema : Schema
    history : History
        Read only. It may grow meanwhile.
    """

    def __init__(self, schema: Schema, history: History) -> None:
        self._schema = schema
        self._history = history
        self._cells: dict[Scope, PartitionReader] = {}
        self._hierarchies: dict[Scope, HierarchyReader] = {}
        self._margins: dict[Scope, MarginReader] = {}
        axis = schema.grows
        self._stretches = None if axis is None else StretchesReader(axis, schema.by_name[axis].size)

    def forked(self, history: History) -> "CountedGroups":
        """The same for a copy of the history, which grows independently."""
        other = CountedGroups(self._schema, history)
        other._cells = self._cells.copy()
        other._hierarchies = self._hierarchies.copy()
        other._margins = self._margins.copy()
        other._stretches = None if self.stretches is None else self.stretches.forked()
        return other

    @property
    def stretches(self) -> StretchesReader | None:
        """The reader along the axis by which the table grows; None if the table does not grow."""
        if self._stretches is not None:
            self._stretches.take_in(self._history)
        return self._stretches

    def readings(self, block: QueryBlock) -> Iterator[Reading]:
        """A block in lowest terms as sums of groups counted on one scope, or of its stretches."""
        scope = block.scope
        for axes in self.scopes_of_cells(scope):
            yield self._cells_of(axes).read(block)
        others = [
            self._hierarchy(axes).read_with_rest(block, self._measured)
            for axes in self._scopes_of_hierarchies(scope)
        ]
        if self.stretches is not None:
            others.append(self.stretches.read(block))
        yield from (reading for reading in others if reading is not None)

    def of_margins(self, block: QueryBlock) -> Reading | None:
        """A block in lowest terms from all tables with its column; None if that is no way to it."""
        return self._margins_of(block.scope).read(block) if len(block.scope) <= 1 else None

    def rests(self, row: QueryBlock) -> dict[Scope, QueryBlock]:
        """For each hierarchy, by its axes, what it leaves of a row in lowest terms."""
        found = {}
        for axes in self._scopes_of_hierarchies(row.scope):
            parts = self._hierarchy(axes).divided(row)
            if parts is not None and parts.rest is not None:
                found[axes] = parts.rest
        return found

    def scopes_of_cells(self, scope: Scope) -> list[Scope]:
        """Scopes whose counted groups may add up to a query of `scope`, the least noisy first."""
        wanted = frozenset(scope)
        noise = {
            axes: n_cells * min(one.noise_scale for one in self._history.partitions_on(axes)) ** 2
            for axes in self._history.partition_scopes
            if wanted.issubset(axes) and (n_cells := self._schema.n_cells(axes)) <= N_READ_CELLS_MAX
        }
        return sorted(noise, key=lambda axes: (noise[axes], axes))[:N_READINGS_TRIED]

    def _scopes_of_hierarchies(self, scope: Scope) -> list[Scope]:
        """Scopes with several partitions, or too wide to be read by cells; the smallest first."""
        wanted, history = frozenset(scope), self._history
        found = [
            axes
            for axes in history.partition_scopes
            if wanted.issubset(axes)
            and (
                len(history.partition_places(axes)) > 1
                or self._schema.n_cells(axes) > N_READ_CELLS_MAX
            )
        ]
        return sorted(found, key=lambda axes: (len(axes), axes))[:N_READINGS_TRIED]

    def _cells_of(self, axes: Scope) -> PartitionReader:
        measured, known = self._history.partitions(axes), self._cells.get(axes)
        if known is None:
            reader = PartitionReader(axes, self._schema.sizes(axes), measured)
        else:
            reader = known.reading(measured)
        self._cells[axes] = reader
        return reader

    def _hierarchy(self, axes: Scope) -> HierarchyReader:
        measured = self._history.partition_places(axes)
        reader = self._hierarchies.get(axes)
        if reader is None or not reader.is_of(measured):
            reader = self._hierarchies[axes] = HierarchyReader(axes, measured)
        return reader

    def _margins_of(self, scope: Scope) -> MarginReader:
        measured, known = self._history.partitions_with(scope), self._margins.get(scope)
        reader = MarginReader(scope, measured) if known is None else known.reading(measured)
        self._margins[scope] = reader
        return reader

    def _measured(self, row: QueryBlock) -> tuple[int, Measurement] | None:
        """The place and the most precise measurement of a row."""
        place = self._history.most_precise(row)
        return None if place is None else (place, self._history[place])
