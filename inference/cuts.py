"""Which queries a history plainly cannot determine: by where rows change, without their algebra.

Along each axis a row is written by its value on the first level and its steps from level to level.
A condition on an ordered column has two steps, a conjunction of conditions the products of theirs:
a handful of *cuts*, however many cells. This changes basis, so what adds up to what stays the same.

If some measured rows add up to a query, then of these rows and the query each cut is in two at
least, or it would be left over. So a row with a cut that no other row has adds up to nothing and is
put aside, then the rows that are left with such a cut, and so on. If the query is put aside too, it
is in no such sum: there is no unbiased estimate of it. If it is left, nothing is said, and linear
algebra has to tell (`blue.py`).

Nothing here knows noisy values or weights.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, product
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cube.block import QueryBlock
from cube.encoding import fingerprint
from cube.query import Scope

N_CUTS_MAX = 64  # of a row; one with more is taken to have every cut on its axes
N_ROWS_MAX = 32  # of a block that is looked at row by row
N_LOOKED_AT_MAX = 1000  # rows, some milliseconds; beyond it linear algebra is to tell

Cut: TypeAlias = tuple[tuple[str, int], ...]
"""An axis and a level for each axis with a step there; on all others it is the first value."""

Row: TypeAlias = tuple[Cut, ...]
"""The cuts of a row; rows with the same cuts are told apart by identity."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """What an index has taken in by itself.

    Parameters
    ----------
    having : mapping
        The rows with a cut, each with the scope of its block.
    wide : set
        The scopes of rows that are not looked at closely.
    measured : mapping
        For a block's fingerprint, the rows of every measurement of it.
    """

    having: dict[Cut, list[tuple[Scope, Row]]] = field(default_factory=dict)
    wide: set[Scope] = field(default_factory=set)
    measured: dict[str, list[tuple[Row, ...]]] = field(default_factory=dict)


class CutIndex:
    """The cuts of a history's rows."""

    def __init__(self, before: "tuple[_Layer, ...]" = ()) -> None:
        self._own = _Layer()
        self._layers = (self._own, *before)

    def fork(self) -> "CutIndex":
        """An index that grows on its own, on top of this one."""
        return CutIndex(self._layers)

    def add(self, block: QueryBlock) -> None:
        """Take in a measurement of a block, unless it raises an earlier one of the same."""
        rows = rows_of(block)
        self._own.measured.setdefault(fingerprint(block), []).append(rows or ())
        if rows is None:
            self._own.wide.add(block.scope)
            return
        for row in rows:
            for cut in row:
                self._own.having.setdefault(cut, []).append((block.scope, row))

    def is_apart(self, block: QueryBlock, scopes: Collection[Scope]) -> bool:
        """Whether surely no combination of a block's rows is one of other rows on some scopes.

        Then none is estimable from these; or, if the block was measured itself, what was measured
        is all that it can be estimated from. False says nothing.
        """
        rows = rows_of(block)
        name = fingerprint(block)
        own = [found for layer in self._layers for found in layer.measured.get(name, ())]
        if rows is None or len(own) > 1:
            return False
        aside = {id(row) for measured in own for row in measured}
        return _Sieve(self, frozenset(scopes), rows, aside).puts_all_aside()

    def rows_with(self, cut: Cut, scopes: Collection[Scope]) -> Iterator[Row]:
        """The rows on some scopes that have a cut."""
        return (
            row
            for layer in self._layers
            for scope, row in layer.having.get(cut, ())
            if scope in scopes
        )

    def wide_scopes(self) -> set[Scope]:
        """The scopes of rows that are not looked at closely."""
        return {scope for layer in self._layers for scope in layer.wide}


class _Sieve:
    """Puts rows aside that surely are in no sum that comes to nothing."""

    def __init__(
        self, index: CutIndex, scopes: Collection[Scope], asked: Sequence[Row], aside: set[int]
    ) -> None:
        self._index = index
        self._scopes = scopes
        self._wide = index.wide_scopes().intersection(scopes)
        self._asked = asked
        self._cuts_asked = {cut for row in asked for cut in row}
        self._aside = aside

    def puts_all_aside(self) -> bool:
        """Whether all that is asked is put aside; not if it takes too long to tell."""
        left = {id(row): row for row in self._asked}
        pending = list(self._asked)
        seen = {*self._aside, *left}
        while pending:
            for cut in pending.pop():
                for row in self._index.rows_with(cut, self._scopes):
                    if id(row) in seen:
                        continue
                    seen.add(id(row))
                    if len(seen) > N_LOOKED_AT_MAX:
                        return False
                    if not self._is_alone(row):
                        left[id(row)] = row
                        pending.append(row)
        self._put_aside(left)
        return not any(id(row) in left for row in self._asked)

    def _put_aside(self, left: dict[int, Row]) -> None:
        """Take out rows with a cut that no other has, until there are none."""
        rows_with: dict[Cut, dict[int, Row]] = {}
        for name, row in left.items():
            for cut in row:
                rows_with.setdefault(cut, {})[name] = row
        pending = [cut for cut, rows in rows_with.items() if len(rows) == 1]
        while pending:
            cut = pending.pop()
            if len(rows_with[cut]) != 1 or self._is_wide(cut):
                continue
            ((name, row),) = rows_with[cut].items()
            del left[name]
            for other in row:
                del rows_with[other][name]
                if len(rows_with[other]) == 1:
                    pending.append(other)

    def _is_alone(self, row: Row) -> bool:
        """Whether a row is the only one with some cut, so that it need not be looked at further."""
        for cut in row:
            if cut not in self._cuts_asked and not self._is_wide(cut):
                others = self._index.rows_with(cut, self._scopes)
                if next(islice(others, 1, None), None) is None:
                    return True
        return False

    def _is_wide(self, cut: Cut) -> bool:
        """Whether a row that is not looked at closely may have a cut."""
        return any(all(axis in scope for axis, _ in cut) for scope in self._wide)


# A block is looked at again and again while it is asked for. Weak: it may hold megabytes.
_ROWS: WeakKeyDictionary[QueryBlock, tuple[Row, ...] | None] = WeakKeyDictionary()


def rows_of(block: QueryBlock) -> tuple[Row, ...] | None:
    """The cuts of each row of a block; None if they are many, or not simply products."""
    if block not in _ROWS:
        _ROWS[block] = _rows_of(block)
    return _ROWS[block]


def _rows_of(block: QueryBlock) -> tuple[Row, ...] | None:
    if block.n_rows > N_ROWS_MAX or len(block.query.terms) != 1:
        return None
    factors = block.query.terms[0].factors
    steps = [_cuts_of(factor.axes, factor.values) for factor in factors]
    if block.partition is None:
        row = _row(steps)
        return None if row is None else (row,)
    axes, labels = block.partition.axes, block.partition.labels
    if any(not set(axes).isdisjoint(factor.axes) for factor in factors):
        return None
    rows = []
    for group in range(block.n_rows):
        row = _row([*steps, _cuts_of(axes, (labels == group).astype(np.int64))])
        if row is None:
            return None
        rows.append(row)
    return tuple(rows)


def _row(steps: Sequence[Sequence[Cut] | None]) -> Row | None:
    """The cuts of a product, from those of its factors, which share no axis."""
    n_cuts, known = 1, []
    for one in steps:
        n_cuts *= len(one or ())
        if one is None or n_cuts > N_CUTS_MAX:
            return None
        known.append(one)
    return tuple(tuple(sorted(chain.from_iterable(each))) for each in product(*known))


def _cuts_of(axes: Scope, values: NDArray[np.int64]) -> list[Cut] | None:
    """The cuts of an array over the levels of a few axes; None if they are many."""
    for dimension in range(values.ndim):
        changed = values.copy()
        ahead, behind = values.swapaxes(0, dimension)[1:], values.swapaxes(0, dimension)[:-1]
        np.subtract(ahead, behind, out=changed.swapaxes(0, dimension)[1:])
        values = changed
    places = values.nonzero()
    if places[0].size > N_CUTS_MAX:
        return None
    # A place is the first value along the axes where it is 0, and a step along the others.
    return [
        tuple((name, level) for name, level in zip(axes, place, strict=True) if level)
        for place in zip(*(along.tolist() for along in places), strict=True)
    ]
