"""Workspaces: parts of the history on a few axes, prepared for estimates and kept between queries.

A workspace holds the atoms of its rows and the online best linear unbiased estimator over them.
Rows that would exceed a limit on size are left out, which widens intervals and introduces no bias.
One thread works in it. Another thread may copy an earlier state of it, if it has not changed since.

There are two kinds. One holds all rows that are relevant to a scope, and serves every query there.
The other holds only the rows from which one block can follow, where its cuts tell which these are
(`combined_rows.py`): a few, however long the history is.

Which rows are relevant has a limit. Rows can be left out safely: an estimate from a subset of the
history is still unbiased and its interval still exact, only wider. So the rows are taken scope by
scope, the most relevant first, while the product of their axes' classes and the number of rows stay
within limits.

Workspaces are updated from the history when needed. A dropped workspace is built again when it is
needed. A fork may work in one thread while the original goes on in another: the fork copies a
workspace that has not changed since, and builds a new one in place of one that has.
"""

from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cube.query import QueryBlock, Scope
from cube.schema import Schema
from inference.blue.atoms import N_ENTRIES_MAX, Atoms, RowsOnAtoms
from inference.blue.blue import OnlineBlue
from inference.history import History


@dataclass(frozen=True, slots=True)
class RelevantRows:
    """The rows from which a query is estimated.

    Parameters
    ----------
    axes : tuple of str
        The axes of the query and of the rows.
    scopes : tuple of tuple of str
        The scopes of the rows that are used, sorted.
    n_rows : int
        The number of these rows.
    """

    axes: Scope
    scopes: tuple[Scope, ...]
    n_rows: int


def relevant_rows(
    scope: Scope,
    n_rows: Mapping[Scope, int],
    n_classes: Mapping[str, int],
    *,
    n_cells_max: int,
    n_rows_max: int,
) -> RelevantRows:
    """Choose the rows from which a query of `scope` is estimated.

    Parameters
    ----------
    scope : tuple of str
        The axes that the query touches; always part of the result.
    n_rows : mapping
        The number of rows that the history has on each scope.
    n_classes : mapping
        The number of classes into which the history cuts each axis.
    n_cells_max : int
        The limit on the product of classes (the query's own axes are exempt).
    n_rows_max : int
        The limit on the number of rows (the most relevant scope is exempt).

    Notes
    -----
    Rows whose scope contains the query's scope come first (their sums answer it), then rows that
    share an axis, then the others (which are relevant through totals only); smaller ones first.
    """
    wanted = frozenset(scope)

    def cells(axes: Collection[str]) -> int:
        n_cells = 1
        for name in axes:  # every scope of the history is asked about: no generator
            n_cells *= n_classes.get(name, 1)
        return n_cells

    def relevance(candidate: Scope) -> tuple[bool, bool, int, Scope]:
        is_within = len(candidate) >= len(wanted) and wanted.issubset(candidate)
        return (not is_within, wanted.isdisjoint(candidate), cells(candidate), candidate)

    axes, scopes, n_chosen = set(wanted), list[Scope](), 0
    for candidate in sorted((known for known in n_rows if n_rows[known]), key=relevance):
        n_together = n_chosen + n_rows[candidate]
        if scopes and n_together > n_rows_max:
            continue
        if axes.issuperset(candidate) or cells(axes | set(candidate)) <= n_cells_max:
            axes |= set(candidate)
            scopes.append(candidate)
            n_chosen = n_together
    return RelevantRows(tuple(sorted(axes)), tuple(sorted(scopes)), n_chosen)


N_ATOMS_MAX = 4096  # with N_VALUES_MAX: matrices of at most 128 MB and answers in milliseconds
N_VALUES_MAX = 4096
N_APART_MAX = 256  # rows of a block; beyond this the test takes longer than it saves


@dataclass(frozen=True, eq=False)
class LinearEstimates:
    """Estimates of the rows of a block, as coefficients on noisy values.

    Parameters
    ----------
    coefficients : (n_rows, n_values) ndarray of float64
        Estimate = coefficients @ noisy values.
    is_estimable : (n_rows,) ndarray of bool
        Rows that the history determines.
    residual : (n_rows,) ndarray of float64
        Largest error of any cell's coefficient; times the number of records, it bounds the bias.
    """

    coefficients: NDArray[np.float64]
    is_estimable: NDArray[np.bool_]
    residual: NDArray[np.float64]


@dataclass(slots=True)
class _Asked:
    """Values cached for one block. They do not depend on weights: raising rows keeps them valid.

    Parameters
    ----------
    block : QueryBlock, optional
    rows : RowsOnAtoms, optional
        None if not computed yet, or too large.
    is_apart : bool, optional
        None if not computed yet.
    """

    block: QueryBlock | None = None
    rows: RowsOnAtoms | None = None
    is_apart: bool | None = None

    @property
    def n_bytes(self) -> int:
        return 0 if self.rows is None else self.rows.coefficients.nbytes


class Workspace:
    """Rows of the history over some axes."""

    def __init__(self, axes: Scope, sizes: tuple[int, ...]) -> None:
        self.axes = axes
        self._sizes = sizes
        self._atoms = Atoms.undivided(axes, sizes)
        self._blue = OnlineBlue(self._atoms.sizes)
        self._asked = _Asked()
        self._changing = Lock()
        self.n_changes = 0
        """How often rows were added, or the factorisation recomputed."""
        self._rows: dict[int, slice] = {}
        """Which rows belong to a measurement, by its place in the history."""
        self.values: NDArray[np.float64] = np.empty(0)
        """The noisy values in use, (n_values,)."""
        self.noise_scales: NDArray[np.float64] = np.empty(0)
        """The scale of each one's noise, (n_values,); see `Measurement.noise_scale`."""
        self.is_gaussian: NDArray[np.bool_] = np.empty(0, dtype=np.bool_)
        """Whether each one's noise is Gaussian, (n_values,)."""
        self.lattice_widenings: NDArray[np.float64] = np.empty(0)
        """The error that the lattice adds to each, (n_values,)."""
        self.noise_places: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        """The place in the history of the measurement of each value, (n_values,)."""
        self.noise_rows: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        """The row of the measurement's block for each value, (n_values,)."""

    @property
    def n_bytes(self) -> int:
        """The memory that its matrices use."""
        return self._blue.n_bytes + self._asked.n_bytes

    def has(self, place: int) -> bool:
        """Whether the measurement at a place is in use."""
        return place in self._rows

    def copy_of(self, n_changes: int) -> "Workspace | None":
        """An equal workspace that grows independently.

        None if this one has changed more than `n_changes` times. Thread-safe.
        """
        with self._changing:
            return self._copy() if self.n_changes == n_changes else None

    def _copy(self) -> "Workspace":
        other = Workspace(self.axes, self._sizes)
        other._atoms = self._atoms
        other._blue = self._blue.copy()
        other._asked = self._asked
        other._rows = self._rows.copy()
        other.values = self.values.copy()
        other.noise_scales = self.noise_scales.copy()
        other.is_gaussian = self.is_gaussian.copy()
        other.lattice_widenings = self.lattice_widenings.copy()
        other.noise_places = self.noise_places.copy()
        other.noise_rows = self.noise_rows.copy()
        return other

    def add(self, history: History, places: Iterable[int]) -> None:
        """Add the measurements at these places, except those that would exceed a limit.

        A measurement that was raised from one in use replaces it.
        """
        raised: list[tuple[int, int]] = []
        new: list[int] = []
        for place in places:
            before = next((held for held in history.earlier(place) if held in self._rows), None)
            if before is None:
                new.append(place)
            else:
                raised.append((before, place))
        if raised or new:
            with self._changing:
                self.n_changes += 1
                self._raise(history, raised)
                self._add(history, new)

    def _raise(self, history: History, raised: Sequence[tuple[int, int]]) -> None:
        """Replace measurements in use by those that were raised from them."""
        if not raised:
            return
        for before, place in raised:
            rows = self._rows[place] = self._rows.pop(before)
            self.values[rows] = history[place].values
            self.noise_scales[rows] = history[place].noise_scale
            self.is_gaussian[rows] = history[place].is_gaussian
            self.lattice_widenings[rows] = history[place].lattice_widening
            self.noise_places[rows] = place
        changed = np.concatenate([np.r_[self._rows[place]] for _, place in raised])
        self._blue.raise_weights(changed, 1.0 / self.noise_scales[changed])

    def _add(self, history: History, places: Sequence[int]) -> None:
        """Add measurements as new rows, except those that would exceed a limit."""
        if self._take(history, places) or len(places) == 1:
            return  # a single measurement that exceeds a limit is left out
        fitting = self._atoms.fitting(
            [history[place].block for place in places],
            n_atoms_max=N_ATOMS_MAX,
            n_rows_max=N_VALUES_MAX - self.values.size,
        )
        if fitting is not None and self._take(history, [places[one] for one in fitting]):
            return
        half = len(places) // 2
        self._add(history, places[:half])
        self._add(history, places[half:])

    def _take(self, history: History, places: Sequence[int]) -> bool:
        """Add all of them at once, or none if together they exceed a limit."""
        if not places:
            return True
        # The largest first: a partition's rows share no cell, and as the first rows in the
        # estimator they are orthogonal already.
        places = sorted(places, key=lambda place: -history[place].block.n_rows)
        measurements = [history[place] for place in places]
        n_rows = [one.block.n_rows for one in measurements]
        if self.values.size + sum(n_rows) > N_VALUES_MAX:
            return False
        refinement = self._atoms.refined([one.block for one in measurements], N_ATOMS_MAX)
        if refinement is None:
            return False
        atoms, parents, rows = refinement
        if atoms.n_atoms > self._atoms.n_atoms:
            self._blue.split(parents, atoms.sizes)
        self._atoms, self._asked = atoms, _Asked()
        scales = np.repeat([one.noise_scale for one in measurements], n_rows)
        is_gaussian = np.repeat([one.is_gaussian for one in measurements], n_rows)
        widenings = np.repeat([one.lattice_widening for one in measurements], n_rows)
        self._blue.add(rows, 1.0 / scales)
        ends = self.values.size + np.cumsum([0, *n_rows])
        for place, start, end in zip(places, ends[:-1], ends[1:], strict=True):
            self._rows[place] = slice(int(start), int(end))
        self.values = np.concatenate((self.values, *(one.values for one in measurements)))
        self.noise_scales = np.concatenate((self.noise_scales, scales))
        self.is_gaussian = np.concatenate((self.is_gaussian, is_gaussian))
        self.lattice_widenings = np.concatenate((self.lattice_widenings, widenings))
        self.noise_places = np.concatenate((self.noise_places, np.repeat(places, n_rows)))
        self.noise_rows = np.concatenate((self.noise_rows, *(np.arange(n) for n in n_rows)))
        return True

    def is_apart(self, block: QueryBlock) -> bool:
        """Whether it is certain that no combination of a block's rows follows from those in use."""
        if block.n_rows > N_APART_MAX:
            return False
        asked = self._asked_about(block)
        if asked.is_apart is None:
            found = self._atoms.sums(block)
            asked.is_apart = found is not None and self._blue.are_apart(*found)
        return asked.is_apart

    def estimate(self, block: QueryBlock) -> LinearEstimates | None:
        """The best linear unbiased estimate of each row of a block.

        None if the block is too fine to be written on cells together with this history.
        """
        if block.n_rows * self.values.size > N_ENTRIES_MAX:
            return None
        asked = self._asked_about(block)
        rows = asked.rows = asked.rows or self._atoms.rows(block)
        if rows is None:
            return None
        combination = self._blue.combine(rows.coefficients)
        return LinearEstimates(
            coefficients=combination.coefficients,
            is_estimable=combination.estimable & rows.is_constant,
            # At a level, the errors of all powers add up.
            residual=combination.residual * self._atoms.grid.n_powers,
        )

    def _asked_about(self, block: QueryBlock) -> "_Asked":
        """The values cached for a block; the cache holds one block at a time."""
        if self._asked.block is not block:
            self._asked = _Asked(block)
        return self._asked

    def refresh(self) -> None:
        """Recompute the estimator's factorisation from its rows."""
        with self._changing:
            self._blue.refresh()
            self.n_changes += 1


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
        The memory limit, in bytes, for all workspaces of a kind except the one in use.
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
