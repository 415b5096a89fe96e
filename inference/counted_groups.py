"""The counted groups of a history, and the ways to read a query as a sum of them.

Disjoint groups that were counted together are a partition of the cells of a few axes. A query is
read from the cells of one scope, from a hierarchy of partitions of one scope, and, if it is about
one column or none, from the margins of all scopes with it. On a table that grows, it is read from
the same query on other stretches of time. Each way is exact about its noise; which one is the
narrowest, the estimator finds out. Readers are kept between queries.

Nothing here chooses among estimates, or knows what accuracy is asked for.
"""

from collections.abc import Iterator

from cube.block import QueryBlock
from cube.measurement import Measurement
from cube.query import Scope
from cube.schema import Schema
from inference.blue.hierarchy_reader import HierarchyReader
from inference.blue.margin_reader import MarginReader
from inference.blue.partition_reader import N_READ_CELLS_MAX, PartitionReader, Reading
from inference.blue.stretches_reader import StretchesReader
from inference.history import History

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
        """What is known along the axis by which the table grows; None if it does not."""
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
