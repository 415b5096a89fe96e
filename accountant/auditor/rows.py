"""Measured rows as a charge records them: a linear query, and groups of cells.

    coefficient of a cell = sum over terms of  scale * product of the term's arrays at the cell

A row of the block is the query on one group; groups share no cell, so one unit of weight costs a
cell the magnitude of its coefficient if it is in a group, and nothing otherwise. Arrays are over
the levels of a few axes, written as runs, as pieces or by classes.

A curve is the numbers along one axis of many levels, as pieces that are polynomials. A piece is a
length and a value; or a length, and the first value with its first and second difference, so that
the numbers at places s, s + 1, s + 2, ... after it are

    value + first (p - s) + second (p - s)(p - s - 1) / 2

It is written apart from the server's own (cube/pieces.py), with which it shares the form only.

Groups over several axes, one of them with many levels, are tiled: a ledger writes the class of each
level along every axis as runs, and then the group of each product of classes.

Nothing here knows weights or charges. Proof: proofs/ledger.md, "The most expensive cell" and "Along
a column of many levels".
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant.auditor.fields import Fields, Json, Wrong, check_set, fields_of, fraction, list_of
from cube.encoding import canonical_json
from cube.query import COEFFICIENT_MAX, N_FACTOR_CELLS_MAX, N_GROUPS_MAX, N_TERMS_MAX

N_LEVELS_MAX: Final = 2**20
FIRST_MAX: Final = 2**40
SECOND_MAX: Final = 2**20
VALUE_MAX: Final = 2**62

Numbers = NDArray[np.int64]
Piece = tuple[int, int, int, int]  # where it begins, and the three numbers there


@dataclass(frozen=True, eq=False)
class Curve:
    """Numbers at the places ``0 .. size - 1``.

    Parameters
    ----------
    size : int
    pieces : tuple of Piece
        In order; each ends where the next begins, the last at `size`.
    """

    size: int
    pieces: tuple[Piece, ...]

    @cached_property
    def starts(self) -> Numbers:
        """Where each piece begins."""
        return np.array([start for start, *_ in self.pieces], dtype=np.int64)

    @cached_property
    def _numbers(self) -> Numbers:
        return np.array([numbers for _, *numbers in self.pieces], dtype=np.int64)

    def at(self, places: Numbers) -> Numbers:
        """The numbers at some places."""
        which = np.searchsorted(self.starts, places, side="right") - 1
        steps = places - self.starts[which]
        value, first, second = np.moveaxis(self._numbers[which], -1, 0)
        found: Numbers = value + first * steps + second * (steps * (steps - 1) // 2)
        return found

    def dense(self) -> Numbers:
        """The numbers at all places."""
        return self.at(np.arange(self.size, dtype=np.int64))

    def in_runs(self) -> "Curve":
        """The same numbers as flat pieces only."""
        numbers = self.dense()
        starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
        flat = zip(starts.tolist(), numbers[starts].tolist(), strict=True)
        return Curve(self.size, tuple((start, value, 0, 0) for start, value in flat))

    def spans(self) -> Iterator[tuple[Piece, int]]:
        """Each piece, and the place after its last."""
        ends = [*(start for start, *_ in self.pieces[1:]), self.size]
        return zip(self.pieces, ends, strict=True)

    @cached_property
    def corners(self) -> Numbers:
        """The first and the last place of every piece."""
        last = [end - 1 for _, end in self.spans()]
        return np.unique(np.concatenate((self.starts, np.array(last, dtype=np.int64))))

    @property
    def is_flat(self) -> bool:
        """Whether every piece has one value."""
        return not self._numbers[:, 1:].any()

    @property
    def is_curved(self) -> bool:
        """Whether a piece has a second difference."""
        return bool(self._numbers[:, 2].any())

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The least and the largest number."""
        parts = [_values(piece, end) if piece[3] else _corners(piece, end)
                 for piece, end in self.spans()]  # fmt: skip
        return min(int(part.min()) for part in parts), max(int(part.max()) for part in parts)

    def magnitude(self) -> "Curve":
        """The same without signs, cut where the sign changes.

        A piece whose magnitude is larger in between than at both ends has its largest everywhere.
        """
        return Curve(self.size, tuple(_joined(_unsigned_pieces(self.spans()))))

    def at_least_zero(self) -> "Curve":
        """1 where the number is not negative, 0 elsewhere; of a flat curve."""
        return Curve(self.size, tuple((p[0], int(p[1] >= 0), 0, 0) for p in self.pieces))


def curve_of(listed: Sequence[Json], size: int) -> Curve:
    """The curve that a ledger writes as a list of pieces; Wrong if it is none."""
    pieces: list[Piece] = []
    place = 0
    for one in listed:
        if type(one) is not list or len(one) not in (2, 4) or any(type(n) is not int for n in one):
            raise Wrong("a piece must be two or four whole numbers")
        length, value, first, second = (*one, 0, 0)[:4]
        if length < 1 or abs(value) >= VALUE_MAX:
            raise Wrong("a piece has no length or holds a number that is too large")
        if abs(first) > FIRST_MAX or abs(second) > SECOND_MAX:
            raise Wrong("the differences of a piece are too large")
        pieces.append((place, value, first, second))
        place += length
    if place != size or size > N_LEVELS_MAX:
        raise Wrong("the pieces do not fill their array")
    return Curve(size, tuple(pieces))


def _unsigned_pieces(spans: Iterable[tuple[Piece, int]]) -> Iterator[Piece]:
    for piece, end in spans:
        start, value, first, second = piece
        if not first and not second:
            yield start, abs(value), 0, 0
            continue
        values = _values(piece, end)
        below = values < 0
        cuts = [0, *(np.flatnonzero(below[1:] != below[:-1]) + 1).tolist(), end - start]
        for begin, stop in pairwise(cuts):
            own = np.abs(values[begin:stop])
            bend = -second if below[begin] else second
            if bend < 0:
                yield start + begin, int(own.max()), 0, 0
                continue
            slope = first + second * begin
            yield start + begin, int(own[0]), -slope if below[begin] else slope, bend


def _joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Without a piece that goes on with the flat one before it."""
    before: Piece | None = None
    for piece in pieces:
        if before is None or before[1:] != piece[1:] or piece[2] or piece[3]:
            yield piece
        before = piece


def _values(piece: Piece, end: int) -> Numbers:
    start, value, first, second = piece
    steps = np.arange(end - start, dtype=np.int64)
    return value + first * steps + second * (steps * (steps - 1) // 2)


def _corners(piece: Piece, end: int) -> Numbers:
    start, value, first, _ = piece
    return np.array([value, value + first * (end - 1 - start)], dtype=np.int64)


GroupNumbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tiled:
    """An array over the levels of several axes.

    Parameters
    ----------
    along : tuple of Curve
        The class of each level of each axis.
    values : (n_classes of the first axis, ...) ndarray of int64
    """

    along: tuple[Curve, ...]
    values: GroupNumbers

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each axis."""
        return tuple(one.size for one in self.along)

    def at(self, places: Sequence[NDArray[np.intp]]) -> GroupNumbers:
        """The numbers at levels of each axis, which broadcast against each other."""
        classes = tuple(one.at(place) for one, place in zip(self.along, places, strict=True))
        return np.asarray(self.values[classes], dtype=np.int64)

    def at_least_zero(self) -> "Tiled":
        """1 where the number is not negative, 0 elsewhere."""
        return Tiled(self.along, (self.values >= 0).astype(np.int64))


def n_classes(classes: Curve) -> int:
    """The number of classes; Wrong if they are not numbered from 0."""
    found = np.unique(classes.at(classes.starts))
    if not classes.is_flat or not np.array_equal(found, np.arange(found.size)):
        raise Wrong("the classes are not numbered 0, 1, 2, ...")
    return int(found.size)


TERM_MAX: Final = 2**80  # of a product of coefficients: far beyond any row that is measured
N_DENSE_LEVELS_MAX: Final = 2**12  # of one axis; an array over more is a curve
N_DIMENSIONS_MAX: Final = 32  # of one array; not every version of numpy allows more

Scope: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LevelArray:
    """Whole numbers over the levels of a few axes. Equal arrays are one object.

    Over one axis with many levels they are a curve; over several, as the ledger writes them.
    """

    axes: Scope
    numbers: NDArray[np.int64] | Curve | Tiled

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each axis."""
        return (self.numbers.size,) if isinstance(self.numbers, Curve) else self.numbers.shape

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The least and the largest number."""
        if isinstance(self.numbers, Curve):
            return self.numbers.ends
        values = self.numbers.values if isinstance(self.numbers, Tiled) else self.numbers
        return int(values.min()), int(values.max())

    @property
    def bound(self) -> int:
        """The largest magnitude."""
        return max(map(abs, self.ends))

    @cached_property
    def magnitude(self) -> "LevelArray":
        """The same without signs; of a curve, perhaps larger between the ends of a piece."""
        if isinstance(self.numbers, Curve):
            return LevelArray(self.axes, self.numbers.magnitude())
        if self.ends[0] >= 0:
            return self
        if isinstance(self.numbers, Tiled):
            raise Wrong("coefficients were expected, but groups were found")
        return LevelArray(self.axes, np.abs(self.numbers))

    @cached_property
    def inside(self) -> "LevelArray | None":
        """For labels of groups: 1 where there is a group, 0 elsewhere; None if 1 everywhere."""
        if self.ends[0] >= 0:
            return None
        if isinstance(self.numbers, Curve | Tiled):
            return LevelArray(self.axes, self.numbers.at_least_zero())
        return LevelArray(self.axes, (self.numbers >= 0).astype(np.int64))

    @property
    def is_constant(self) -> bool:
        """Whether all levels have the same number."""
        return self.ends[0] == self.ends[1]

    @property
    def is_curved(self) -> bool:
        """Whether the numbers are a curve with second differences."""
        return isinstance(self.numbers, Curve) and self.numbers.is_curved

    @cached_property
    def n_classes(self) -> int:
        """The number of products of classes of levels that it distinguishes."""
        return math.prod(_n_different(self.keys(axis)) for axis in self.axes)

    def keys(self, axis: str) -> NDArray[np.int64] | Curve:
        """A number for each level of an axis; equal numbers where the array is equal."""
        if isinstance(self.numbers, Tiled):
            return self.numbers.along[self.axes.index(axis)]
        if isinstance(self.numbers, Curve) or self.numbers.ndim == 1:
            return self.numbers
        slices = np.moveaxis(self.numbers, self.axes.index(axis), 0)
        flat = slices.reshape(slices.shape[0], -1)
        _, keys = np.unique(flat, axis=0, return_inverse=True)
        return keys.ravel().astype(np.int64)

    def at(self, places: Sequence[NDArray[np.intp]]) -> NDArray[np.int64]:
        """The numbers at levels of each axis, which broadcast against each other."""
        if isinstance(self.numbers, Curve):
            return self.numbers.at(places[0])
        if isinstance(self.numbers, Tiled):
            return self.numbers.at(places)
        return self.numbers[tuple(places)]


def _n_different(keys: NDArray[np.int64] | Curve) -> int:
    return int(np.unique(keys.at(keys.corners) if isinstance(keys, Curve) else keys).size)


@dataclass(frozen=True, eq=False)
class Term:
    """A whole number times arrays on different axes."""

    scale: int
    arrays: tuple[LevelArray, ...]

    @cached_property
    def bound(self) -> int:
        """The largest magnitude of the term."""
        return abs(self.scale) * math.prod(array.bound for array in self.arrays)


@dataclass(frozen=True, eq=False)
class Share:
    """The cost of one unit of weight on every row of a block, for each cell.

    Parameters
    ----------
    terms : tuple of Term
        The cost is the magnitude of their sum, in cells that are `inside`.
    inside : LevelArray, optional
        1 for cells in some group and 0 for others; None if every cell is in one.
    """

    terms: tuple[Term, ...]
    inside: LevelArray | None

    @cached_property
    def axes(self) -> Scope:
        """The axes it depends on, sorted."""
        return tuple(sorted({name for array in self.arrays for name in array.axes}))

    @cached_property
    def arrays(self) -> tuple[LevelArray, ...]:
        """Everything it is computed from."""
        arrays = [array for term in self.terms for array in term.arrays]
        return (*arrays, *(() if self.inside is None else (self.inside,)))

    @cached_property
    def bound(self) -> int:
        """A bound on the cost of every cell; it is reached if there is one term and no `inside`."""
        return sum(term.bound for term in self.terms)


@dataclass(frozen=True, eq=False)
class Block:
    """Rows that were measured together. Equal blocks are one object.

    Parameters
    ----------
    n_rows : int
    share : Share
    labels : LevelArray, optional
        The row of each cell, or -1; None for one row of all cells.
    """

    n_rows: int
    share: Share
    labels: LevelArray | None = None


class BlockReader:
    """Reads blocks, and caches what it has read: a year of queries uses few predicates."""

    def __init__(self) -> None:
        self._blocks: dict[str, Block] = {}
        self._equal: dict[tuple[object, ...], Block] = {}
        self._arrays: dict[tuple[Json, ...], LevelArray] = {}
        self._flat: dict[LevelArray, LevelArray] = {}

    def block(self, value: Json) -> Block:
        """The block for JSON values; Wrong if they are not a block."""
        name = canonical_json(value)
        known = self._blocks.get(name)
        if known is None:
            known = self._blocks[name] = self._block(value)
        return known

    def labels(self, value: Json) -> LevelArray:
        """Groups of the levels of a few axes; Wrong if the values are not such groups."""
        labels = self._array(value)
        numbers = labels.numbers
        if isinstance(numbers, Curve) and not numbers.is_flat:
            # Groups have no order: that their numbers rise along an axis says nothing.
            flat = LevelArray(labels.axes, numbers.in_runs())
            labels = self._flat.setdefault(labels, flat)
        _n_groups(labels)
        return labels

    def counted_within(self, factor: Json) -> Share:
        """The share of a count within one factor; Wrong if the factor is of several axes."""
        share = self._block({"terms": [{"factors": [factor], "scale": "1"}], "constant": "0"}).share
        if any(len(array.axes) != 1 for array in share.arrays):
            raise Wrong("a choice is made within several axes at once")
        return share

    def _block(self, value: Json) -> Block:
        fields = fields_of(value, ("terms", "constant"), ("partition",))
        if fraction(fields, "constant") != 0:
            raise Wrong("a measured row has a constant")
        found = list_of(fields, "terms", dict)
        if not 0 < len(found) <= N_TERMS_MAX:
            raise Wrong(f"a query has {len(found)} terms, but 1 to {N_TERMS_MAX} are allowed")
        terms = tuple(self._term(one) for one in found)
        labels = self.labels(fields["partition"]) if "partition" in fields else None
        n_rows = 1 if labels is None else _n_groups(labels)
        # An array has two ways to be written, and so has a block.
        content = (labels, *((term.scale, *term.arrays) for term in terms))
        if content not in self._equal:
            self._equal[content] = Block(n_rows, _share(terms, labels), labels)
        return self._equal[content]

    def _term(self, value: Json) -> Term:
        fields = fields_of(value, ("factors", "scale"))
        scale = fraction(fields, "scale")
        if scale.denominator != 1:
            raise Wrong("the coefficients of a row must be whole numbers")
        arrays = tuple(self._array(one) for one in list_of(fields, "factors", dict))
        axes = [name for array in arrays for name in array.axes]
        if len(set(axes)) != len(axes):
            raise Wrong("two factors of one term share an axis")
        if any(isinstance(array.numbers, Tiled) for array in arrays):
            raise Wrong("a factor is written in the form of groups")
        if any(array.bound > COEFFICIENT_MAX for array in arrays):
            raise Wrong("a coefficient exceeds 2**40")
        term = Term(scale.numerator, arrays)
        if abs(scale) > TERM_MAX or term.bound > TERM_MAX:
            raise Wrong("a coefficient exceeds 2**80")
        return term

    def _array(self, value: Json) -> LevelArray:
        fields = fields_of(value, ("axes", "shape"), ("classes", "pieces", "runs"))
        axes = check_set(list_of(fields, "axes", str), "axes")
        shape = tuple(list_of(fields, "shape", int))
        if not 0 < len(axes) == len(shape) <= N_DIMENSIONS_MAX or min(shape) < 1:
            raise Wrong("the shape of an array does not match its axes")
        if ("pieces" in fields) == ("runs" in fields):
            raise Wrong("an array must be written either as pieces or as runs")
        written = "pieces" if "pieces" in fields else "runs"
        kind = list if written == "pieces" else int
        classes = list_of(fields, "classes", list) if "classes" in fields else []
        name = (axes, shape, canonical_json([classes, list_of(fields, written, kind)]))
        known = self._arrays.get(name)
        if known is None:
            numbers = _numbers(fields, shape)
            # By what it is, however it is written: a row is raised whose text was of another kind.
            content = (axes, shape, _digest(numbers))
            known = self._arrays.setdefault(content, LevelArray(axes, numbers))
            self._arrays[name] = known
        return known


def _numbers(fields: Fields, shape: tuple[int, ...]) -> NDArray[np.int64] | Curve | Tiled:
    """The numbers that runs or pieces stand for; a curve, of one axis with many levels."""
    if "classes" in fields:
        return _tiled(fields, shape)
    if "pieces" in fields:
        if len(shape) != 1:
            raise Wrong("pieces must lie along one axis")
        curve = curve_of(fields["pieces"], shape[0])
        return curve if shape[0] > N_DENSE_LEVELS_MAX else curve.dense()
    if len(shape) == 1 and shape[0] > N_DENSE_LEVELS_MAX:
        return _flat_curve(fields["runs"], shape[0])
    lengths, values = _runs(fields["runs"], math.prod(shape))
    return np.repeat(values, lengths).reshape(shape)


def _tiled(fields: Fields, shape: tuple[int, ...]) -> Tiled:
    """Groups of products of classes."""
    classes = fields["classes"]
    if len(classes) != len(shape):
        raise Wrong("each axis needs exactly one list of classes")
    along = tuple(
        _flat_curve(list_of({"classes": one}, "classes", int), size)
        for one, size in zip(classes, shape, strict=True)
    )
    sizes = tuple(map(n_classes, along))
    if "pieces" in fields:
        return Tiled(along, curve_of(fields["pieces"], math.prod(sizes)).dense().reshape(sizes))
    lengths, values = _runs(fields["runs"], math.prod(sizes))
    return Tiled(along, np.repeat(values, lengths).reshape(sizes))


def _flat_curve(runs: list[int], size: int) -> Curve:
    lengths, values = _runs(runs, size)
    starts = (np.cumsum(lengths) - lengths).tolist()
    flat = zip(starts, values.tolist(), strict=True)
    return Curve(size, tuple((start, value, 0, 0) for start, value in flat))


def _runs(runs: list[int], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The lengths and values of runs."""
    lengths = runs[0::2]
    if size > N_FACTOR_CELLS_MAX or len(runs) % 2 or min(lengths, default=0) < 1:
        raise Wrong("an array is too large or has a run without length")
    if sum(lengths) != size:
        raise Wrong("the runs of an array do not fill it")
    try:
        values = np.array(runs[1::2], dtype=np.int64)
    except OverflowError:
        raise Wrong("a number exceeds 64 bits") from None
    return np.array(lengths, dtype=np.int64), values


def _digest(numbers: NDArray[np.int64] | Curve | Tiled) -> bytes:
    if isinstance(numbers, Tiled):  # written in one way only
        parts = [*(one.at(one.corners) for one in numbers.along), numbers.values]
        places = [one.corners for one in numbers.along]
        return hashlib.sha256(b"".join(part.tobytes() for part in [*places, *parts])).digest()
    dense = numbers.dense() if isinstance(numbers, Curve) else numbers
    return hashlib.sha256(np.ascontiguousarray(dense).tobytes()).digest()


def _n_groups(labels: LevelArray) -> int:
    """The number of groups; Wrong if a group has no cell."""
    if isinstance(labels.numbers, Curve):
        found = np.unique(labels.numbers.at(labels.numbers.starts))
    elif isinstance(labels.numbers, Tiled):
        found = np.unique(labels.numbers.values)
    else:
        found = np.unique(labels.numbers)
    n_groups = int(found[-1]) + 1
    has_outside = int(found[0]) < 0
    if int(found[0]) < -1 or found.size - has_outside != n_groups or n_groups > N_GROUPS_MAX:
        raise Wrong("the groups are not numbered 0, 1, 2, ...")
    return n_groups


def _share(terms: tuple[Term, ...], labels: LevelArray | None) -> Share:
    """The cost of the rows for each cell."""
    return share_of(terms, None if labels is None else labels.inside)


def share_of(terms: Sequence[Term], inside: LevelArray | None) -> Share:
    """The magnitude of a sum of terms where it is inside, in its simplest form."""
    plain = [_plain(term) for term in terms if term.bound]
    kept = [term for term in plain if term.arrays]
    constant = sum(term.scale for term in plain if not term.arrays)
    if constant or not kept:
        kept.append(Term(constant, ()))
    if len(kept) > 1 and any(array.is_curved for term in kept for array in term.arrays):
        # Nowhere below the magnitude of the sum, and largest at the ends of pieces.
        kept = [_plain(_unsigned_term(term)) for term in kept]
    if len(kept) == 1:  # the magnitude of one product is the product of magnitudes
        kept = [_plain(_unsigned_term(kept[0]))]
    return Share(tuple(kept), inside)


def _unsigned_term(term: Term) -> Term:
    return Term(abs(term.scale), tuple(array.magnitude for array in term.arrays))


def _plain(term: Term) -> Term:
    """The same term, with constant arrays moved into its scale."""
    scale, arrays = term.scale, []
    for array in term.arrays:
        if array.is_constant:
            scale *= array.ends[0]
        else:
            arrays.append(array)
    return Term(scale, tuple(arrays))
