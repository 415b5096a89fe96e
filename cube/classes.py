"""Classes of an axis's levels, which no array distinguishes; and arrays equal on their products.

On an axis of many levels an array may rise from level to level, as the levels of a measure do.
There, a class is what no array's *polynomial* distinguishes (`pieces.py`), and has one part for
each power up to the axis's degree: what an array is on the class is one coefficient for each part.
On all other axes a class has one part, and the coefficient is the value.

Arrays that are told by their coefficients add up and cancel as the arrays do, so sums of products
of arrays are computed on parts as they would be on levels. See `classes.md`.

Tiles are whole numbers over several axes, equal on products of classes of levels. GROUP BY a range
of amounts and a city is twenty groups for each range, however many amounts there are: a class for
each level along every axis, and one number for each product of classes. For arrays over a few
thousand cells this is not worth its while; they are kept as they are. The classes of tiles are the
fewest, and numbered as they appear: equal arrays have equal tiles.

Nothing here knows queries, columns or data.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cube.pieces import Pieces, constant_runs, runs_of
from cube.runtime import cached_property

CODE_MAX = 2**62  # of the classes of several divisions, told by one number
N_FEW = 48  # up to this many labels are numbered faster by a dictionary than by sorting
N_FEW_VECTORS = 4  # up to this many are numbered one after the other
N_CODES_MAX = 2**22  # numbers that are laid out at once: 32 MB

Indices = NDArray[np.int64]

_NOTHING: Indices = np.zeros(1, dtype=np.int64)
_NOTHING.flags.writeable = False


@dataclass(frozen=True, eq=False)
class AxisClasses:
    """The classes of one axis's levels, numbered by first appearance.

    Parameters
    ----------
    n_levels : int
        The number of levels.
    starts : (n_runs,) ndarray of int64
        Where each run of levels of one class begins; the first at 0, and increasing.
    of_run : (n_runs,) ndarray of int64
        The class of each run.
    degree : int
        The highest power that has a part.
    """

    n_levels: int
    starts: Indices
    of_run: Indices
    degree: int = 0

    @classmethod
    def of_labels(cls, labels: Indices | Pieces) -> "AxisClasses":
        """The classes of levels, (n_levels,) or constant pieces, numbered by first appearance."""
        if isinstance(labels, Pieces):
            return cls(labels.size, labels.starts, np.ascontiguousarray(labels.coefficients[:, 0]))
        starts = run_starts(labels)
        return cls(labels.size, starts, labels[starts])

    @classmethod
    def undivided(cls, n_levels: int) -> "AxisClasses":
        """One class of all levels."""
        return cls(n_levels, _NOTHING, _NOTHING)

    @cached_property
    def digest(self) -> bytes:
        """Equal for the same classes of the same levels."""
        content = hashlib.blake2b(f"{self.n_levels} {self.degree}".encode(), digest_size=16)
        content.update(np.concatenate((self.starts, self.of_run)).tobytes())
        return content.digest()

    @property
    def of_level(self) -> Indices:
        """The class of each level, (n_levels,); made anew each time."""
        return np.repeat(self.of_run, self.lengths)

    @cached_property
    def lengths(self) -> Indices:
        """The number of levels of each run."""
        return _lengths(self.starts, self.n_levels)

    @cached_property
    def n_classes(self) -> int:
        """The number of classes."""
        return int(self.of_run.max()) + 1

    @cached_property
    def n_powers(self) -> int:
        """The number of parts of each class."""
        return self.degree + 1

    @cached_property
    def n_parts(self) -> int:
        """The number of parts of all classes; the powers of one class are next to each other."""
        return self.n_classes * self.n_powers

    @cached_property
    def powers(self) -> Indices:
        """The power of each part, (n_parts,)."""
        return np.tile(np.arange(self.n_powers), self.n_classes)

    @cached_property
    def first_levels(self) -> Indices:
        """The first level of each class, (n_classes,)."""
        return self.starts[first_places(self.of_run)]

    @cached_property
    def last_levels(self) -> Indices:
        """The last level of each class, (n_classes,)."""
        last = np.zeros(self.n_classes, dtype=np.int64)
        last[self.of_run] = self.starts + self.lengths - 1  # the last written stays
        return last

    @cached_property
    def representatives(self) -> Indices:
        """A level of the class of each part, (n_parts,)."""
        return self._for_parts(self.first_levels)

    @cached_property
    def sizes(self) -> Indices:
        """The number of levels of the class of each part, (n_parts,)."""
        sizes = np.bincount(self.of_run, self.lengths, self.n_classes).astype(np.int64)
        return self._for_parts(sizes)

    def _for_parts(self, by_class: Indices) -> Indices:
        return np.repeat(by_class, self.n_powers) if self.degree else by_class

    def refined(self, *keys: Indices | Pieces) -> "AxisClasses":
        """Split the classes where one of some arrays, (n_levels,), differs within one."""
        # Neither the arrays nor classes change within these runs, so one level of each suffices: a
        # range on an axis of a million levels is three runs.
        arrays = [one if isinstance(one, Pieces) else runs_of(one) for one in keys]
        degree = max([self.degree, *(one.degree for one in arrays)])
        if self.n_classes == self.n_levels and degree == self.degree:
            return self  # nothing divides a level
        starts = _merged(self.starts, *(one.starts for one in arrays))
        n_together = max(1, N_CODES_MAX // starts.size)
        labels, n_classes = self.at(starts), self.n_classes
        for first in range(0, len(arrays), n_together):
            codes = [labels]
            for one in arrays[first : first + n_together]:
                which = _containing(one.starts, starts)
                codes += [one.coefficients[which, power] for power in range(one.degree + 1)]
            labels, n_classes = _numbered_together(codes)
        if n_classes == self.n_classes and degree == self.degree:
            return self
        changes = run_starts(labels)
        return AxisClasses(self.n_levels, starts[changes], labels[changes], degree)

    def refined_by(self, others: Sequence["AxisClasses"]) -> "AxisClasses":
        """The coarsest classes that refine these and others; these, if they refine the others."""
        if not others:
            return self
        starts = _merged(self.starts, *(one.starts for one in others))
        labels, n_labels = self.at(starts), self.n_classes
        for one in others:
            if n_labels * one.n_classes > CODE_MAX:
                labels, n_labels = _numbered(labels)
            labels, n_labels = labels * one.n_classes + one.at(starts), n_labels * one.n_classes
        labels, n_labels = _numbered(labels)
        degree = max(self.degree, *(one.degree for one in others))
        if n_labels == self.n_classes and degree == self.degree:
            return self
        return AxisClasses(self.n_levels, starts, labels, degree)

    def refines(self, coarser: "AxisClasses") -> bool:
        """Whether each class is within one of the coarser classes, which have no higher degree."""
        if coarser.degree > self.degree:
            return False
        starts = _merged(self.starts, coarser.starts)
        return bool((coarser.at(self.first_levels)[self.at(starts)] == coarser.at(starts)).all())

    def equals(self, other: "AxisClasses") -> bool:
        """Whether both have the same classes and powers."""
        return (
            self.degree == other.degree
            and np.array_equal(self.starts, other.starts)
            and np.array_equal(self.of_run, other.of_run)
        )

    def merged(self, into: Indices) -> "AxisClasses":
        """Coarser classes: for each class, the number of the one it becomes a part of."""
        return AxisClasses(self.n_levels, self.starts, into[self.of_run], self.degree)

    @property
    def constant(self) -> "AxisClasses":
        """The same classes with one part each."""
        return AxisClasses(self.n_levels, self.starts, self.of_run)

    def parents(self, finer: "AxisClasses") -> Indices:
        """The part that each part of finer classes is a piece of; -1 for a power that is new."""
        if not finer.degree:
            return self.at(finer.representatives)
        old = self.at(finer.representatives) * self.n_powers + finer.powers
        return np.where(finer.powers < self.n_powers, old, -1)

    def between(self, start: int, end: int) -> tuple["AxisClasses", Indices]:
        """The classes of the levels ``start .. end - 1``, as of an axis that has no others.

        Returns
        -------
        classes : AxisClasses
            The finer classes, of degree 0.
        before : (n_classes,) ndarray
            For each class, the earlier class that contains it.
        """
        first = int(self.starts.searchsorted(start, side="right")) - 1
        last = int(self.starts.searchsorted(end, side="left"))
        of_run = self.of_run[first:last]
        labels, _ = _numbered(of_run)
        starts = np.maximum(self.starts[first:last], start) - start
        return AxisClasses(end - start, starts, labels), of_run[first_places(labels)]

    def at(self, levels: Indices) -> Indices:
        """The class of some levels."""
        return self.of_run[_containing(self.starts, levels)]

    def coefficients(self, numbers: Indices | Pieces) -> Indices:
        """What an array that distinguishes no more is on each part, (n_parts,).

        Of the polynomial ``a + b p + c p (p - 1) / 2`` these are a, b and c.
        """
        if self.degree == 0:
            if isinstance(numbers, Pieces):
                return numbers.at(self.representatives)
            return numbers[self.representatives]
        pieces = numbers if isinstance(numbers, Pieces) else runs_of(numbers)
        which = _containing(pieces.starts, self.representatives)
        return pieces.coefficients[which, self.powers]

    @property
    def part_scales(self) -> NDArray[np.float64]:
        """The largest magnitude, over all levels, of the power of each part, (n_parts,)."""
        if not self.degree:
            return np.ones(self.n_classes)
        n = float(max(1, self.n_levels - 1))
        return np.array([1.0, n, max(1.0, n * (n - 1) / 2)])[self.powers]


def first_places(labels: Indices) -> Indices:
    """The first place of each label; labels are ``0 .. n - 1``, each of them used."""
    first = np.empty(int(labels.max()) + 1, dtype=np.int64)
    # Written in reverse, so that the first place is written last and stays.
    first[labels[::-1]] = np.arange(labels.size - 1, -1, -1)
    return first


def run_starts(values: Indices) -> Indices:
    """Place 0, and the places where a vector differs from the place before."""
    (changes,) = (values[1:] != values[:-1]).nonzero()
    starts = np.empty(changes.size + 1, dtype=np.int64)
    starts[0] = 0
    np.add(changes, 1, out=starts[1:])
    return starts


def by_first_appearance(codes: Indices) -> Indices:
    """Equal labels for equal codes, ``0 .. n - 1`` in the order in which they first appear."""
    starts = run_starts(codes)
    labels, _ = _numbered(codes[starts])
    return np.repeat(labels, _lengths(starts, codes.size))


def _numbered(codes: Indices, keys: Indices | None = None) -> tuple[Indices, int]:
    """Labels, by first appearance, equal where both vectors are equal; and how many there are."""
    if codes.size <= N_FEW:
        numbers: dict[Any, int] = {}
        each = codes.tolist() if keys is None else zip(codes.tolist(), keys.tolist(), strict=True)
        labels = [numbers.setdefault(one, len(numbers)) for one in each]
        return np.array(labels, dtype=np.int64), len(numbers)
    if keys is not None:
        _, key = np.unique(keys, return_inverse=True)
        codes = codes * (int(key.max()) + 1) + key
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(first.size)
    return rank[inverse], first.size


def _numbered_together(codes: Sequence[Indices]) -> tuple[Indices, int]:
    """`_numbered`, of any number of vectors."""
    if len(codes) <= N_FEW_VECTORS:
        labels, n_labels = _numbered(codes[0])
        for one in codes[1:]:
            labels, n_labels = _numbered(labels, one)
        return labels, n_labels
    numbers: dict[bytes, int] = {}
    rows = np.stack(codes, axis=1)
    found = [numbers.setdefault(row.tobytes(), len(numbers)) for row in rows]
    return np.array(found, dtype=np.int64), len(numbers)


def _lengths(starts: Indices, end: int) -> Indices:
    """The lengths of the runs that begin at `starts`; the last run ends at `end`."""
    lengths = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
    lengths[-1] = end - starts[-1]
    return lengths


def _containing(starts: Indices, places: Indices) -> Indices:
    """The piece that each place is in."""
    return starts.searchsorted(places, side="right") - 1


def _merged(*vectors: Indices) -> Indices:
    """The distinct numbers of increasing vectors, increasing."""
    together = np.concatenate(vectors)
    together.sort(kind="stable")  # a merge: each of them is in order
    return together[run_starts(together)]


Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tiles:
    """An array over the levels of several axes.

    Parameters
    ----------
    along : tuple of Pieces
        For each axis, the class of each level.
    values : (n_classes of the first axis, ...) ndarray of int64
        The number of each product of classes.
    """

    along: tuple[Pieces, ...]
    values: Whole

    def __post_init__(self) -> None:
        if self.values.shape != tuple(int(one.ends[1]) + 1 for one in self.along):
            raise ValueError("each product of classes needs exactly one number")
        if any(one.degree or one.ends[0] for one in self.along):
            raise ValueError("classes must be numbered from 0")
        self.values.flags.writeable = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each axis."""
        return tuple(one.size for one in self.along)

    @property
    def n_stored(self) -> int:
        """How many numbers are stored."""
        return self.values.size + sum(one.n_pieces for one in self.along)

    @property
    def content(self) -> bytes:
        """Equal for equal values over levels of one shape."""
        return b"".join([*(one.content for one in self.along), self.values.tobytes()])

    def at(self, places: tuple[Whole, ...]) -> Whole:
        """The numbers at levels of each axis, which broadcast against each other."""
        classes = tuple(one.at(place) for one, place in zip(self.along, places, strict=True))
        return np.asarray(self.values[classes], dtype=np.int64)

    def dense(self) -> Whole:
        """The numbers of all combinations of levels."""
        return self.at(np.ix_(*(np.arange(size) for size in self.shape)))

    @property
    def n_at_least_zero(self) -> int:
        """How many numbers are not negative, of all combinations of levels, exactly."""
        left = (self.values >= 0).astype(object)
        for one in reversed(self.along):
            n_levels = np.bincount(one.coefficients[:, 0], weights=one.lengths)
            left = left @ np.array([int(number) for number in n_levels], dtype=object)
        return int(left)

    def with_values(self, values: Whole) -> "Tiles":
        """Other numbers on the same products of classes; fewer classes may then differ."""
        return tiled(self.along, values)


def tiled(along: tuple[Pieces, ...], values: Whole) -> Tiles:
    """Tiles from classes that may be finer than needed, or numbered in another order."""
    merged = []
    for dimension, classes in enumerate(along):
        of_run = classes.coefficients[:, 0]
        slices = np.moveaxis(values, dimension, 0).reshape(values.shape[dimension], -1)
        _, same = np.unique(slices, axis=0, return_inverse=True)
        labels = by_first_appearance(same.ravel()[of_run])
        values = values.take(of_run[first_places(labels)], axis=dimension)
        merged.append(constant_runs(classes.starts, labels, classes.size))
    return Tiles(tuple(merged), np.ascontiguousarray(values, dtype=np.int64))
