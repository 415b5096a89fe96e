"""Which measured rows are combined to estimate a block, and the workspace that combines them.

Where few rows are related to a block, it has a workspace of its own; else it shares that of the
relevant scopes. Rows are chosen by what they are, never by their noisy values.

Nothing here makes a posterior; `estimator.py` does, from a workspace.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Final
from weakref import WeakKeyDictionary

from cube.block import QueryBlock
from cube.encoding import fingerprint
from cube.grid import Grid
from cube.query import Scope
from cube.schema import Schema
from inference.blue.estimability import CutIndex
from inference.blue.relevance import RelevantRows, relevant_rows
from inference.blue.workspace import Workspace
from inference.blue.workspaces import Workspaces
from inference.history import N_JOINT_ROWS_MAX, History

N_WORKING_CELLS_MAX: Final = 2**14  # products of classes in a workspace: built fast
N_WORKING_ROWS_MAX: Final = 256  # rows from several scopes: combined from scratch in milliseconds
N_RELATED_ROWS_MAX: Final = 128  # related rows, up to which a block has a workspace of its own
N_ROWS_TAKEN_IN: Final = 16  # added at once while another estimate is narrow enough
N_RELATED_TAKEN_IN: Final = 64  # the same, for a block's own workspace: some milliseconds


class CombinedRows:
    """The rows of one history, as they are combined with each other.

    Parameters
    ----------
    schema : Schema
    history : History
        Grows before `add` is called.
    n_bytes_max : int
        Of all workspaces of a kind.
    """

    def __init__(self, schema: Schema, history: History, n_bytes_max: int) -> None:
        self._schema = schema
        self._n_bytes_max = n_bytes_max
        self._history = history
        axes = tuple(sorted(schema.by_name))
        self._classes = Grid.undivided(axes, schema.sizes(axes))
        self._workspaces = Workspaces(schema, n_bytes_max)
        self._relevant_by_scope: dict[Scope, RelevantRows] = {}
        self._cuts = CutIndex()
        self._related: WeakKeyDictionary[QueryBlock, tuple[Hashable, frozenset[str] | None]]
        self._related = WeakKeyDictionary()

    def forked(self, history: History, *, lasts: bool) -> "CombinedRows":
        """A copy for a copy of the history, which may last or is for forecasts only."""
        other = CombinedRows(self._schema, history, self._n_bytes_max)
        other._classes = self._classes
        other._workspaces = self._workspaces.fork()
        other._relevant_by_scope = self._relevant_by_scope.copy()
        other._cuts = self._cuts.snapshot() if lasts else self._cuts.fork()
        other._related = self._related
        return other

    def add(self, blocks: Sequence[QueryBlock], n_rows: Mapping[Scope, int]) -> None:
        """Take in blocks that were added to the history, which had `n_rows` before."""
        classes = self._classes
        self._classes = classes.refined(blocks)
        if self._classes is not classes or self._history.n_rows != n_rows:
            self._relevant_by_scope.clear()
        self._cuts.add(block for block in blocks if block.n_rows <= N_JOINT_ROWS_MAX)

    def has_no_relations(self, measured: QueryBlock) -> bool:
        """Whether it is certain that only a block's own measurement, if any, can estimate it."""
        is_own_at_most = len(self._history.in_use_of(fingerprint(measured))) <= 1
        return is_own_at_most and self._relations(measured) == frozenset()

    def _relations(self, measured: QueryBlock) -> frozenset[str] | None:
        """The other blocks from which a block may be estimated; None if not easily decided."""
        state = self._cuts.state
        known, related = self._related.get(measured, (None, None))
        if known != state:
            related = self._cuts.related(measured, self._relevant(measured.scope).scopes)
            self._related[measured] = (state, related)
        return related

    def _places(self, measured: QueryBlock) -> list[int] | None:
        """The measurements from which a block is estimated; None for all on the relevant scopes."""
        related = self._relations(measured)
        if related is None:
            return None
        names = (*related, fingerprint(measured))
        places = sorted(place for name in names for place in self._history.in_use_of(name))
        n_rows = sum(self._history[place].block.n_rows for place in places)
        return places if n_rows <= N_RELATED_ROWS_MAX else None

    def workspace(self, measured: QueryBlock) -> Workspace:
        """The workspace in which a block is estimated, updated from the history."""
        places = self._places(measured)
        if places is None:
            return self._workspaces.of_scopes(self._relevant(measured.scope), self._history)
        axes = self._axes_of(measured, places)
        return self._workspaces.of_block(fingerprint(measured), axes, places, self._history)

    def is_crowded(self, measured: QueryBlock) -> bool:
        """Whether more rows are relevant to a block than are combined in milliseconds."""
        return self._relevant(measured.scope).n_rows > N_WORKING_ROWS_MAX

    def takes_long(self, measured: QueryBlock) -> bool:
        """Whether that workspace has many rows to add."""
        places = self._places(measured)
        if places is None:
            relevant = self._relevant(measured.scope)
            return self._workspaces.n_rows_behind(relevant, self._history) > N_ROWS_TAKEN_IN
        axes = self._axes_of(measured, places)
        name = fingerprint(measured)
        n_rows = self._workspaces.n_rows_missing(name, axes, places, self._history)
        return n_rows > N_RELATED_TAKEN_IN

    def _axes_of(self, measured: QueryBlock, places: Sequence[int]) -> Scope:
        scopes = (self._history[place].block.scope for place in places)
        return tuple(sorted({*measured.scope, *(name for scope in scopes for name in scope)}))

    def _relevant(self, scope: Scope) -> RelevantRows:
        """The rows from which a query of `scope` is estimated."""
        relevant = self._relevant_by_scope.get(scope)
        if relevant is None:
            n_classes = dict(zip(self._classes.axes, self._classes.shape, strict=True))
            relevant = self._relevant_by_scope[scope] = relevant_rows(
                scope,
                self._history.n_rows,
                n_classes,
                n_cells_max=N_WORKING_CELLS_MAX,
                n_rows_max=N_WORKING_ROWS_MAX,
            )
        return relevant
