"""The largest value of a sum of cell functions, over cells that are never enumerated.

Axes are eliminated one after the other: the functions that depend on an axis are added up, and
their sum's maximum over that axis is a function of the other axes. The result is exact. Where a sum
would span too many cells it is split, and the maxima of its pieces are added: this is never below
the true maximum, and it is marked as a bound.

One axis may be kept: what is left is then a function of its levels, the maximum over the cells of
each. Intermediate results stay, so that one more function takes a path through the axes and not a
pass over the whole history. Nothing here knows about budgets or data.
Proof: proofs/table_cost.md, "Elimination".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from accountant.cost.cell_function import CellFunction, added, joint_classes, joint_of
from cube.classes import AxisClasses
from cube.query import Scope

N_TABLE_CELLS_MAX = 2**16  # cells of one table: half a megabyte, well under a millisecond
N_REDUCED_CELLS_MAX = (
    2**10
)  # a larger message is passed on unchanged: merging takes longer than it saves

NOTHING = CellFunction.constant(0)


@dataclass(frozen=True, slots=True)
class Maximum:
    """A maximum, or a proved upper bound on it."""

    value: int
    exact: bool


@dataclass(frozen=True, eq=False, slots=True)
class _Piece:
    """Functions of one bucket, their sum, and its maximum over the axis of the bucket."""

    functions: tuple[CellFunction, ...]
    total: CellFunction
    message: CellFunction

    @classmethod
    def of(cls, functions: Sequence[CellFunction], total: CellFunction, axis: str) -> "_Piece":
        message = total.maximised(axis)
        if message.size <= N_REDUCED_CELLS_MAX:
            message = message.reduced()
        return cls(tuple(functions), total, message)

    def followed_by(
        self, functions: Sequence[CellFunction], change: CellFunction, axis: str
    ) -> "_Piece":
        """The piece with other functions, whose sum is `change` more; it may keep its message."""
        after = _Piece.of(functions, added([self.total, change]), axis)
        if self.message.equals(after.message):
            return _Piece(after.functions, after.total, self.message)
        return after


@dataclass(frozen=True, eq=False, slots=True)
class Elimination:
    """A sum of functions with every axis eliminated, in a form to which more can be added.

    Parameters
    ----------
    order : tuple of str
        The axes, in the order of their elimination.
    buckets : tuple of tuple of _Piece
        For each axis, the pieces whose functions have it as their first axis in that order: given
        functions, and messages of earlier buckets.
    constant : int
        The sum of all functions and messages without an axis, where no axis is kept.
    n_cells_max : int
        The most cells a piece may span, unless it is a single function.
    kept : str, optional
        An axis that is not eliminated.
    along : CellFunction
        The sum of all functions and messages without an axis but the one that is kept.
    """

    order: Scope = ()
    buckets: tuple[tuple[_Piece, ...], ...] = ()
    constant: int = 0
    n_cells_max: int = N_TABLE_CELLS_MAX
    kept: str | None = None
    along: CellFunction = NOTHING

    @property
    def maximum(self) -> Maximum:
        """The largest value over all cells, or a bound on it, where no axis is kept."""
        return Maximum(self.constant, self.is_exact)

    @property
    def by_level(self) -> CellFunction:
        """The largest value over the cells of each level of the kept axis, or a bound on it."""
        whole = self.along.flattened()
        return replace(whole, exact=whole.exact and self.is_exact)

    @property
    def is_exact(self) -> bool:
        """Whether no step was replaced by a bound."""
        return not self.is_split and all(
            piece.message.exact for pieces in self.buckets for piece in pieces
        )

    @property
    def is_split(self) -> bool:
        """Whether some sum would have spanned too many cells."""
        return any(len(pieces) > 1 for pieces in self.buckets)

    def added(self, functions: Sequence[CellFunction]) -> "Elimination":
        """The elimination of the sum with more functions.

        Only the pieces that receive a new function or a changed message are computed again.
        """
        new = {name for function in functions for name in function.axes}
        new -= {*self.order, self.kept}
        order = (*self.order, *sorted(new))
        buckets = [*self.buckets, *(() for _ in new)]
        moves = _Moves(order, self.kept)
        for function in functions:
            moves.send(function)
        for place, axis in enumerate(order):
            coming, leaving = moves.coming[place], moves.leaving[place]
            if not coming and not leaving:
                continue
            before = buckets[place]
            after = _exchanged(before, leaving, coming, axis, self.n_cells_max)
            buckets[place] = after
            kept = {id(piece.message) for piece in before} & {id(piece.message) for piece in after}
            for piece in before:
                if id(piece.message) not in kept:
                    moves.withdraw(piece.message)
            for piece in after:
                if id(piece.message) not in kept:
                    moves.send(piece.message)
        along = self.along
        if moves.along:
            along = added([along, *moves.along]).reduced()
        constant = self.constant + moves.constant
        return Elimination(order, tuple(buckets), constant, self.n_cells_max, self.kept, along)


class _Moves:
    """Functions to be added to the bucket of their first axis, and messages to be removed."""

    def __init__(self, order: Scope, kept: str | None) -> None:
        self._left = [] if kept is None else [(), (kept,)]
        self._place = {name: place for place, name in enumerate(order)}
        self.coming: list[list[CellFunction]] = [[] for _ in order]
        self.leaving: list[set[int]] = [set() for _ in order]
        """By `id`: what is removed is the very message object that its bucket holds."""
        self.constant = 0
        self.along: list[CellFunction] = []

    def send(self, function: CellFunction) -> None:
        """Add a function."""
        if function.axes in self._left:
            self.along.append(function)
        elif function.axes:
            self.coming[self._first(function)].append(function)
        else:
            self.constant += int(function.values)

    def withdraw(self, message: CellFunction) -> None:
        """Remove a message."""
        if message.axes in self._left:
            self.along.append(message.scaled(-1))
        elif message.axes:
            self.leaving[self._first(message)].add(id(message))
        else:
            self.constant -= int(message.values)

    def _first(self, function: CellFunction) -> int:
        return min(self._place[name] for name in function.axes if name in self._place)


def eliminated(
    functions: Sequence[CellFunction], n_cells_max: int, kept: str | None = None
) -> Elimination:
    """Eliminate the axes of a sum; the next is always the one that makes the smallest table.

    Parameters
    ----------
    functions : sequence of CellFunction
        Functions of one cube.
    n_cells_max : int
        The most cells an intermediate sum may span.
    kept : str, optional
        An axis that is not eliminated.

    Notes
    -----
    Bucket elimination and its mini-bucket relaxation [1]_. Functions that share no axis never meet
    in a table, so independent parts of a history are maximised separately.

    .. [1] R. Dechter and I. Rish, "Mini-buckets: a general scheme for bounded inference",
       Journal of the ACM 50(2), 2003.
    """
    n_classes = {name: one.n_parts for name, one in joint_classes(functions).items()}
    remaining = list(functions)
    order: list[str] = []
    buckets: list[tuple[_Piece, ...]] = []
    sizes: dict[str, int] = {}
    unordered = set(n_classes) - {kept}
    while unordered:
        for name in unordered - sizes.keys():
            sizes[name] = _table_size(name, remaining, n_classes)
        axis = min(sorted(unordered), key=sizes.__getitem__)
        bucket = [function for function in remaining if axis in function.axes]
        remaining = [function for function in remaining if axis not in function.axes]
        pieces = _exchanged((), set(), bucket, axis, n_cells_max)
        remaining += [piece.message for piece in pieces]
        order.append(axis)
        buckets.append(pieces)
        unordered.discard(axis)
        touched = {name for function in bucket for name in function.axes}
        sizes = {name: size for name, size in sizes.items() if name not in touched}
    if kept is None:
        constant = sum(int(function.values) for function in remaining)
        return Elimination(tuple(order), tuple(buckets), constant, n_cells_max)
    along = added([NOTHING, *remaining]).reduced()
    return Elimination(tuple(order), tuple(buckets), 0, n_cells_max, kept, along)


def maximum(functions: Sequence[CellFunction], n_cells_max: int = N_TABLE_CELLS_MAX) -> Maximum:
    """The largest value over all cells of a sum of functions, or a bound on it."""
    return eliminated(functions, n_cells_max).maximum


def _table_size(axis: str, functions: Sequence[CellFunction], n_classes: dict[str, int]) -> int:
    """An upper bound on the cells that eliminating `axis` would span."""
    scope = {name for function in functions if axis in function.axes for name in function.axes}
    return math.prod(n_classes[name] for name in scope)


def pieces_of(functions: Sequence[CellFunction], n_cells_max: int) -> list[list[CellFunction]]:
    """Split functions, largest first, into lists whose sums each span few enough cells."""
    return [draft.functions for draft in _filled([], functions, n_cells_max)]


class _Draft:
    """A piece while functions are added and removed."""

    def __init__(self, piece: _Piece | None = None, function: CellFunction | None = None) -> None:
        self.piece = piece
        self.functions = [] if piece is None else list(piece.functions)
        self.joint: dict[str, AxisClasses] = {}
        self._change: list[CellFunction] = []
        self._refined: set[tuple[str, int]] = set()
        """Axes and classes, by `id`, that its own are known to refine; functions hold them."""
        if piece is not None:
            self.joint = dict(zip(piece.total.axes, piece.total.classes, strict=True))
        if function is not None:
            self.joint = dict(zip(function.axes, function.classes, strict=True))
            self.functions.append(function)
            self._change.append(function)

    def remove(self, leaving: set[int]) -> None:
        """Remove functions; the classes stay as fine as they are."""
        gone = [function for function in self.functions if id(function) in leaving]
        if gone:
            self.functions = [one for one in self.functions if id(one) not in leaving]
            self._change += [function.scaled(-1) for function in gone]

    def takes(self, functions: Sequence[CellFunction], n_cells_max: int) -> bool:
        """Add functions if the sum then still spans at most `n_cells_max` cells."""
        finer = self._finer(functions)
        if finer:
            joint = {**self.joint, **finer}
            if math.prod(classes.n_parts for classes in joint.values()) > n_cells_max:
                return False
            self.joint = joint
        self.functions += functions
        self._change += functions
        return True

    def _finer(self, functions: Sequence[CellFunction]) -> dict[str, AxisClasses]:
        """The classes of the axes that the functions divide further."""
        dividing: dict[str, list[AxisClasses]] = {}
        for function in functions:
            for name, classes in zip(function.axes, function.classes, strict=True):
                if (name, id(classes)) not in self._refined:  # many functions share few classes
                    dividing.setdefault(name, []).append(classes)
        finer: dict[str, AxisClasses] = {}
        for name, parts in dividing.items():
            own = self.joint.get(name)
            together = joint_of(parts if own is None else [own, *parts])
            if together is own:
                self._refined.update((name, id(classes)) for classes in parts)
            else:
                finer[name] = together
        return finer

    def finished(self, axis: str) -> _Piece:
        """The piece."""
        if self.piece is None:
            return _Piece.of(self.functions, added(self._change), axis)
        if not self._change:
            return self.piece
        # Added and removed functions have few classes: combine them before touching the sum.
        return self.piece.followed_by(self.functions, added(self._change).reduced(), axis)


def _exchanged(
    pieces: tuple[_Piece, ...],
    leaving: set[int],
    coming: list[CellFunction],
    axis: str,
    n_cells_max: int,
) -> tuple[_Piece, ...]:
    """Pieces with some functions removed and others added, the largest placed first."""
    drafts = [_Draft(piece) for piece in pieces]
    if leaving:
        for draft in drafts:
            draft.remove(leaving)
        drafts = [draft for draft in drafts if draft.functions]
    return tuple(draft.finished(axis) for draft in _filled(drafts, coming, n_cells_max))


def _filled(
    drafts: list[_Draft], functions: Sequence[CellFunction], n_cells_max: int
) -> list[_Draft]:
    """Each function in the first draft with room for it, or in one of its own."""
    if not functions:
        return drafts
    by_size = sorted(functions, key=lambda function: -function.size)
    first = drafts[0] if drafts else _Draft()
    # Once there are several, the first is mostly full.
    if len(drafts) <= 1 and first.takes(by_size, n_cells_max):  # so would it take them one by one
        return [first]
    rooms = _Rooms(drafts, functions, n_cells_max)
    for function in by_size:
        for place in rooms.worth_trying(function):
            if drafts[place].takes([function], n_cells_max):
                rooms.note(place, drafts[place])
                break
        else:
            drafts.append(_Draft(function=function))
            rooms.note(len(drafts) - 1, drafts[-1])
    return drafts


class _Rooms:
    """How many parts each draft has along each axis: tells quickly where there is no room.

    A long history has hundreds of full drafts, and each function would be tried in all of them.
    """

    def __init__(
        self, drafts: Sequence[_Draft], functions: Sequence[CellFunction], n_cells_max: int
    ) -> None:
        axes = {name for function in functions for name in function.axes}
        axes.update(name for draft in drafts for name in draft.joint)
        self._column = {name: column for column, name in enumerate(sorted(axes))}
        self._n_parts = np.ones((len(drafts) + len(functions), len(axes)))
        self._n_drafts = 0
        self._n_cells_max = n_cells_max
        for place, draft in enumerate(drafts):
            self.note(place, draft)

    def note(self, place: int, draft: _Draft) -> None:
        """Take down the parts of a new draft, or of one that was changed."""
        self._n_drafts = max(self._n_drafts, place + 1)
        for name, classes in draft.joint.items():
            self._n_parts[place, self._column[name]] = classes.n_parts

    def worth_trying(self, function: CellFunction) -> list[int]:
        """The places of the drafts that may have room, in order."""
        n_parts = self._n_parts[: self._n_drafts].copy()
        for name, classes in zip(function.axes, function.classes, strict=True):
            along = n_parts[:, self._column[name]]
            np.maximum(along, classes.n_parts, out=along)
        # Products of floats are exact up to 2**53, and no smaller than that beyond it.
        (places,) = (n_parts.prod(axis=1) <= self._n_cells_max).nonzero()
        found: list[int] = places.tolist()
        return found
