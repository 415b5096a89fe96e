"""Whole numbers over several axes, equal on products of classes of levels.

GROUP BY a range of amounts and a city is twenty groups for each range, however many amounts there
are: a class for each level along every axis, and one number for each product of classes. For arrays
over a few thousand cells this is not worth its while; they are kept as they are.

The classes are the fewest, and numbered as they appear: equal arrays have equal tiles. Nothing here
knows queries, columns or data.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cube.classes import by_first_appearance, first_places
from cube.pieces import Pieces, constant_runs

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
            raise ValueError("one number for each product of classes")
        if any(one.degree or one.ends[0] for one in self.along):
            raise ValueError("classes are numbered from 0")
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
        """Other numbers on the same products of classes, of which fewer may be told apart."""
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
