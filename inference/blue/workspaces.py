"""Workspaces that are kept from one query to the next, and updated from the history when needed.

There are two kinds. One holds all rows that are relevant to a scope, and serves every query there.
The other holds only the rows from which one block can follow, where its cuts tell which these are
(`estimability.py`): a few, however long the history is.

A dropped workspace is built again when it is needed. A fork may work in one thread while the
original goes on in another: the fork copies a workspace that has not changed since, and builds a
new one in place of one that has.
"""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cube.query import Scope
from cube.schema import Schema
from inference.blue.relevance import RelevantRows
from inference.blue.workspace import Workspace
from inference.history import History

N_WORKSPACES_MAX = 64  # of each kind

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """A workspace at its last use: its rows, its number of changes, the length of the history."""

    workspace: Workspace
    n_changes: int
    relevant: RelevantRows | None = None
    n_seen: int = 0


class Workspaces:
    """The workspaces of one history.

    Parameters
    ----------
    schema : Schema
    n_bytes_max : int
        Of all workspaces of a kind, except the one in use.
    """

    def __init__(self, schema: Schema, n_bytes_max: int) -> None:
        self._schema = schema
        self._n_bytes_max = n_bytes_max
        self._of_scopes: OrderedDict[Scope, _Kept] = OrderedDict()
        self._of_blocks: OrderedDict[str, _Kept] = OrderedDict()
        self._is_fork = False

    def __len__(self) -> int:
        return len(self._of_scopes) + len(self._of_blocks)

    def fork(self) -> "Workspaces":
        """The same workspaces, which change independently from now on."""
        other = Workspaces(self._schema, self._n_bytes_max)
        other._of_scopes = self._of_scopes.copy()
        other._of_blocks = self._of_blocks.copy()
        other._is_fork = True
        return other

    def of_scopes(self, relevant: RelevantRows, history: History) -> Workspace:
        """The workspace of all rows on some scopes."""
        known, places = self._behind(relevant, history)
        workspace = self._gone_on_with(known)
        if workspace is None:
            workspace = self._made(relevant.axes)
            places = [list(history.in_use(relevant.scopes))]
        for some in places:
            workspace.add(history, some)
        kept = _Kept(workspace, workspace.n_changes, relevant, len(history))
        _keep(self._of_scopes, relevant.axes, kept, self._n_bytes_max)
        return workspace

    def n_rows_behind(self, relevant: RelevantRows, history: History) -> int:
        """How many rows the workspace of some scopes still has to add."""
        _, places = self._behind(relevant, history)
        return sum(history[place].block.n_rows for some in places for place in some)

    def of_block(
        self, name: str, axes: Scope, places: Sequence[int], history: History
    ) -> Workspace:
        """The workspace of the measurements at some places, for the block with that name.

        Parameters
        ----------
        name : str
            The fingerprint of the block.
        axes : tuple of str
            The axes of the block and of the measurements.
        places : sequence of int
            Sorted; none of a replaced measurement.
        history : History
        """
        workspace = self._gone_on_with(self._made_for(name, axes)) or self._made(axes)
        workspace.add(history, [place for place in places if not workspace.has(place)])
        _keep(self._of_blocks, name, _Kept(workspace, workspace.n_changes), self._n_bytes_max)
        return workspace

    def n_rows_missing(
        self, name: str, axes: Scope, places: Sequence[int], history: History
    ) -> int:
        """How many rows `of_block` would have to add."""
        known = self._made_for(name, axes)
        missing = (one for one in places if known is None or not known.workspace.has(one))
        return sum(history[place].block.n_rows for place in missing)

    def _behind(
        self, relevant: RelevantRows, history: History
    ) -> tuple[_Kept | None, list[list[int]]]:
        """A workspace that can be extended, if there is one, and the places that it lacks."""
        known = self._of_scopes.get(relevant.axes)
        if known is None or known.relevant is None:
            return None, [list(history.in_use(relevant.scopes))]
        if not set(known.relevant.scopes).issubset(relevant.scopes):
            return None, [list(history.in_use(relevant.scopes))]
        further = sorted(set(relevant.scopes).difference(known.relevant.scopes))
        seen = list(history.in_use(known.relevant.scopes, since=known.n_seen))
        return known, [seen, list(history.in_use(further))]

    def _made_for(self, name: str, axes: Scope) -> _Kept | None:
        known = self._of_blocks.get(name)
        return known if known is not None and set(axes).issubset(known.workspace.axes) else None

    def _made(self, axes: Scope) -> Workspace:
        return Workspace(axes, self._schema.sizes(axes))

    def _gone_on_with(self, known: _Kept | None) -> Workspace | None:
        """A workspace that may be changed; None if it was changed elsewhere since."""
        if known is None:
            return None
        return known.workspace.copy_of(known.n_changes) if self._is_fork else known.workspace


def _keep(kept: OrderedDict[K, _Kept], key: K, value: _Kept, n_bytes_max: int) -> None:
    """Store as the most recently used; drop the least recently used while limits are exceeded."""
    kept.pop(key, None)
    kept[key] = value
    n_bytes = sum(one.workspace.n_bytes for one in kept.values())
    while len(kept) > 1 and (len(kept) > N_WORKSPACES_MAX or n_bytes > n_bytes_max):
        _, forgotten = kept.popitem(last=False)
        n_bytes -= forgotten.workspace.n_bytes
