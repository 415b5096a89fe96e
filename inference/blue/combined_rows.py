"""Which measured rows are combined to estimate a block, and the workspace that combines them.

Where few rows are related to a block, it has a workspace of its own; else it shares the workspace
of the relevant scopes. Rows are chosen by what they are, never by their noisy values.

Which queries a history clearly cannot determine is found from where rows change, without algebra.
Along each axis, a row is described by its value on the first level and its steps from level to
level. A condition on an ordered column has two steps, and a conjunction of conditions has the
products of their steps: a few *cuts*, however many cells there are. This is a change of basis, so
linear relations between rows stay the same. Along an axis of many levels, the steps are those of
the coefficients of pieces (`cube/pieces.py`).

If a query is a linear combination of measured rows, then among these rows and the query every cut
occurs at least twice, or it could not cancel. So a row with a cut that no other row has is in no
such combination and is put aside; then the rows that now have such a cut, and so on. If the query
is put aside too, it is in no such combination: it has no unbiased estimate. If it remains, nothing
is decided, and linear algebra must find out (`blue.py`).

Nothing here knows noisy values or weights, or makes a posterior; `estimator.py` does, from a
workspace.
"""

import threading
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, product
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cube.classes import Tiles
from cube.encoding import fingerprint
from cube.grid import Grid
from cube.pieces import Pieces, constant_pieces
from cube.query import Factor, QueryBlock, Scope
from cube.schema import Schema
from inference.blue.workspaces import RelevantRows, Workspace, Workspaces, relevant_rows
from inference.history import N_JOINT_ROWS_MAX, History

N_CUTS_MAX = 64  # of a row; a row with more is assumed to have every cut on its axes
N_ROWS_MAX = 128  # of a block whose rows are examined one by one
POWER = 2**24  # more than the levels of an axis: a step of a higher power is a number beyond it
N_LOOKED_AT_MAX = 1000  # rows, some milliseconds; beyond this it is left to linear algebra

Cut: TypeAlias = tuple[tuple[str, int], ...]
"""An axis and a level for each axis with a step there; all others are at their first level."""

Row: TypeAlias = tuple[Cut, ...]
"""The cuts of a row; rows with the same cuts are distinguished by identity."""

_RowsWith: TypeAlias = dict[Cut, list[tuple[str, Row]]]

_EXAMINING = threading.Lock()  # layers are shared by indexes of several threads


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """The blocks that one index has added by itself.

    Those on a scope are examined once it is asked for: of tens of thousands that a server reads
    when it starts, few are about what is asked next.

    Parameters
    ----------
    having : mapping
        By scope, the rows with a cut, each with the fingerprint of its block. By scope, so that a
        search passes over no row of the others: a few rows of tens of thousands are on its scopes.
    scopes : mapping
        The scope of every block, by fingerprint.
    wide : mapping
        By scope, the blocks whose rows are not examined one by one.
    waiting : mapping
        By scope, the blocks that are not examined yet.
    """

    having: dict[Scope, _RowsWith] = field(default_factory=dict)
    scopes: dict[str, Scope] = field(default_factory=dict)
    wide: dict[Scope, list[str]] = field(default_factory=dict)
    waiting: dict[Scope, list[QueryBlock]] = field(default_factory=dict)

    def examine(self, scopes: frozenset[Scope]) -> None:
        """Examine the blocks on some scopes; another thread may read what is about others."""
        with _EXAMINING:
            for scope in self.waiting.keys() & scopes:
                for block in self.waiting[scope]:
                    self._examine(block, scope)
                del self.waiting[scope]

    def with_later(self, later: "_Layer") -> "_Layer":
        """A layer with everything in this one and in a later one."""
        with _EXAMINING:
            both = _Layer(scopes=self.scopes | later.scopes)
            for one in (self, later):
                for scope, having in one.having.items():
                    known = both.having.setdefault(scope, {})
                    for cut, rows in having.items():
                        known.setdefault(cut, []).extend(rows)
                for scope, names in one.wide.items():
                    both.wide.setdefault(scope, []).extend(names)
                for scope, blocks in one.waiting.items():
                    both.waiting.setdefault(scope, []).extend(blocks)
            return both

    def _examine(self, block: QueryBlock, scope: Scope) -> None:
        rows, name = rows_of(block), fingerprint(block)
        if rows is None:
            self.wide.setdefault(scope, []).append(name)
            return
        having = self.having.setdefault(scope, {})
        for row in rows:
            for cut in row:
                having.setdefault(cut, []).append((name, row))


class CutIndex:
    """The cuts of a history's blocks."""

    def __init__(self, before: "tuple[_Layer, ...]" = ()) -> None:
        self._own = _Layer()
        self._layers = (self._own, *before)

    def fork(self) -> "CutIndex":
        """An index that grows independently, on top of this one."""
        return CutIndex(self._layers)

    def snapshot(self) -> "CutIndex":
        """A copy of the index as it is now, for another thread; this one may grow meanwhile.

        No block is added to the shared layers again. Layers of similar size are merged, so that
        there are few, however many snapshots are taken.
        """
        if self._own.scopes:
            sealed = list(self._layers)
            while len(sealed) > 1 and 2 * len(sealed[0].scopes) >= len(sealed[1].scopes):
                sealed[:2] = [sealed[1].with_later(sealed[0])]
            self._own = _Layer()
            self._layers = (self._own, *sealed)
        return CutIndex(self._layers[1:])

    @property
    def state(self) -> Hashable:
        """A value that stays equal, also in forks, as long as no further block is added."""
        return tuple((layer, len(layer.scopes)) for layer in self._layers if layer.scopes)

    def add(self, blocks: Iterable[QueryBlock]) -> None:
        """Add blocks that were measured."""
        before, own = [layer.scopes for layer in self._layers[1:]], self._own
        for block in blocks:
            name = fingerprint(block)
            if name in own.scopes or any(name in known for known in before):
                continue
            own.scopes[name] = block.scope
            own.waiting.setdefault(block.scope, []).append(block)

    def related(self, block: QueryBlock, scopes: Collection[Scope]) -> frozenset[str] | None:
        """The other blocks on some scopes from which a block's rows, or sums of them, may follow.

        If there are none, then it is certain that no combination of its rows follows from others:
        the block is not estimable, and once it is measured itself, nothing else helps to estimate
        it.

        Returns
        -------
        frozenset of str or None
            Fingerprints; all others have a coefficient of zero in the best estimate of every row.
            None if this is not easily decided.
        """
        asked, own = rows_of(block), fingerprint(block)
        if asked is None or not all(asked):
            return None
        among = frozenset(scopes)
        for layer in self._layers:
            layer.examine(among)
        wide = {
            scope
            for layer in self._layers
            for scope in layer.wide.keys() & among
            if any(name != own for name in layer.wide[scope])
        }
        on_scopes = [
            layer.having[scope]
            for layer in self._layers
            for scope in sorted(layer.having.keys() & among)
        ]
        return _Sieve(on_scopes, wide, own).left_beside(asked)


class _Sieve:
    """Puts aside the rows that are certainly in no linear relation, of those in some tables."""

    def __init__(self, tables: Sequence[_RowsWith], wide: Collection[Scope], own: str) -> None:
        self._tables = tables
        self._wide = wide
        self._own = own
        self._is_shared: dict[Cut, bool] = {}

    def left_beside(self, asked: Sequence[Row]) -> frozenset[str] | None:
        """The blocks of the rows left, if any asked row is left; None if not easily decided."""
        cuts_asked = {cut for row in asked for cut in row}
        left = {id(row): (self._own, row) for row in asked}
        seen, pending, followed = set(left), list(asked), set[Cut]()
        while pending:
            for cut in pending.pop():
                if cut in followed:
                    continue  # many rows may have it: one for each day of a table that grows
                followed.add(cut)
                for name, row in self._rows_with(cut):
                    if name == self._own or id(row) in seen:
                        continue
                    seen.add(id(row))
                    if len(seen) > N_LOOKED_AT_MAX:
                        return None
                    if not self._is_alone(row, cuts_asked):
                        left[id(row)] = (name, row)
                        pending.append(row)
        self._put_aside(left)
        if not any(id(row) in left for row in asked):
            return frozenset()
        if any(self._is_wide(cut) for _, row in left.values() for cut in row):
            return None  # a wide row may involve any row with a cut on its axes
        return frozenset(name for name, _ in left.values()) - {self._own}

    def _rows_with(self, cut: Cut) -> Iterator[tuple[str, Row]]:
        """The rows that have a cut, and the names of their blocks."""
        return chain.from_iterable(
            found for table in self._tables if (found := table.get(cut)) is not None
        )

    def _put_aside(self, left: dict[int, tuple[str, Row]]) -> None:
        """Remove rows with a cut that no other row has, until there are none."""
        rows_with: dict[Cut, dict[int, Row]] = {}
        for key, (_, row) in left.items():
            for cut in row:
                rows_with.setdefault(cut, {})[key] = row
        pending = [cut for cut, rows in rows_with.items() if len(rows) == 1]
        while pending:
            cut = pending.pop()
            if len(rows_with[cut]) != 1 or self._is_wide(cut):
                continue
            ((key, row),) = rows_with[cut].items()
            del left[key]
            for other in row:
                del rows_with[other][key]
                if len(rows_with[other]) == 1:
                    pending.append(other)

    def _is_alone(self, row: Row, cuts_asked: set[Cut]) -> bool:
        """Whether a row is the only one with some cut, so that it can be put aside at once."""
        return any(cut not in cuts_asked and not self._may_cancel(cut) for cut in row)

    def _may_cancel(self, cut: Cut) -> bool:
        """Whether two rows have a cut, or a row that is not examined may."""
        if cut not in self._is_shared:
            rows = self._rows_with(cut)
            is_shared = next(islice(rows, 1, None), None) is not None
            self._is_shared[cut] = is_shared or self._is_wide(cut)
        return self._is_shared[cut]

    def _is_wide(self, cut: Cut) -> bool:
        """Whether a row that is not examined may have the cut."""
        return any(all(axis in scope for axis, _ in cut) for scope in self._wide)


# A block is examined repeatedly while it is estimated. Weak: a block may hold megabytes.
_ROWS: WeakKeyDictionary[QueryBlock, tuple[Row, ...] | None] = WeakKeyDictionary()


def rows_of(block: QueryBlock) -> tuple[Row, ...] | None:
    """The cuts of each row of a block; None if they are many, or not products of factors' cuts."""
    if block not in _ROWS:
        _ROWS[block] = _rows_of(block)
    return _ROWS[block]


def _rows_of(block: QueryBlock) -> tuple[Row, ...] | None:
    if block.n_rows > N_ROWS_MAX or len(block.query.terms) != 1:
        return None
    factors = block.query.terms[0].factors
    steps = [_cuts_of_factor(factor) for factor in factors]
    if block.partition is None:
        row = _row(steps)
        return None if row is None else (row,)
    axes, groups = block.partition.axes, block.partition.groups
    if isinstance(groups, Tiles):
        return None
    if any(not set(axes).isdisjoint(factor.axes) for factor in factors):
        return None
    rows = []
    for group in range(block.n_rows):
        row = _row([*steps, _cuts_of(axes, _members(groups, group))])
        if row is None:
            return None
        rows.append(row)
    return tuple(rows)


# Many blocks share few conditions. Weak, as above.
_STEPS: WeakKeyDictionary[Factor, list[Cut] | None] = WeakKeyDictionary()


def _cuts_of_factor(factor: Factor) -> list[Cut] | None:
    """The cuts of a factor; None if they are many."""
    if factor not in _STEPS:
        _STEPS[factor] = _cuts_of(factor.axes, factor.numbers)
    return _STEPS[factor]


def _row(steps: Sequence[Sequence[Cut] | None]) -> Row | None:
    """The cuts of a product, from the cuts of its factors, which share no axis."""
    n_cuts, known = 1, []
    for one in steps:
        n_cuts *= len(one or ())
        if one is None or n_cuts > N_CUTS_MAX:
            return None
        known.append(one)
    return tuple(tuple(sorted(chain.from_iterable(each))) for each in product(*known))


def _members(groups: NDArray[np.int64] | Pieces, group: int) -> NDArray[np.int64] | Pieces:
    """1 on the levels of one group, 0 elsewhere."""
    if isinstance(groups, Pieces):
        inside = (groups.coefficients[:, 0] == group).astype(np.int64)
        return constant_pieces(groups.starts, inside, groups.size)
    members: NDArray[np.int64] = (groups == group).astype(np.int64)
    return members


def _cuts_of(axes: Scope, values: NDArray[np.int64] | Pieces) -> list[Cut] | None:
    """The cuts of an array over the levels of a few axes; None if they are many."""
    if isinstance(values, Pieces):
        return _cuts_of_pieces(axes[0], values)
    for dimension in range(values.ndim):
        changed = values.copy()
        ahead, behind = values.swapaxes(0, dimension)[1:], values.swapaxes(0, dimension)[:-1]
        np.subtract(ahead, behind, out=changed.swapaxes(0, dimension)[1:])
        values = changed
    places = values.nonzero()
    if places[0].size > N_CUTS_MAX:
        return None
    # Index 0 along an axis stands for the first value, any other index for a step.
    return [
        tuple((name, level) for name, level in zip(axes, place, strict=True) if level)
        for place in zip(*(along.tolist() for along in places), strict=True)
    ]


def _cuts_of_pieces(axis: str, pieces: Pieces) -> list[Cut] | None:
    """Where each coefficient of the polynomial changes, with the power that changes there."""
    steps = np.diff(pieces.coefficients, axis=0, prepend=0)
    places, powers = steps.nonzero()
    if places.size > N_CUTS_MAX:
        return None
    codes = pieces.starts[places] + powers * POWER
    return [((axis, code),) if code else () for code in codes.tolist()]


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
        The history, which grows before `add` is called.
    n_bytes_max : int
        The memory limit for all workspaces of a kind, in bytes.
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
