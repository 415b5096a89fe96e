"""Classes of levels: levels that no array distinguishes are one class, represented by one of them.

A thousand predicates on an axis of a million levels still make few classes, because predicates are
ranges and lists. All further computation is on classes, and loses nothing. Along an axis with
curves, the levels where a piece begins or ends stand for all between them, as what rows cost is
nowhere larger there.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from accountant.auditor.curves import Curve
from accountant.auditor.rows import LevelArray

N_STACKED_MAX = 2**22  # numbers sorted at once

Indices = NDArray[np.intp]


def distinct_columns(vectors: Sequence[NDArray[np.int64]]) -> tuple[Indices, Indices]:
    """The places at which vectors of one length differ.

    Returns
    -------
    first : (n_distinct,) ndarray
        A place for each distinct column.
    label : (length,) ndarray
        For each place, the number of the column that it equals.
    """
    length = vectors[0].size
    changes = np.zeros(length, dtype=bool)
    changes[0] = True
    for vector in vectors:
        changes[1:] |= vector[1:] != vector[:-1]
    starts = np.flatnonzero(changes)
    label = np.zeros(starts.size, dtype=np.int64)
    n_at_once = max(1, N_STACKED_MAX // starts.size)
    for begin in range(0, len(vectors), n_at_once):
        some = [vector[starts] for vector in vectors[begin : begin + n_at_once]]
        label = _label(np.stack([label, *some]))
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    return starts[first], np.repeat(inverse.ravel(), np.diff(starts, append=length))


def _label(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each column of a table; equal columns have equal numbers."""
    order = np.lexsort(table)
    is_new = (np.diff(table[:, order], axis=1) != 0).any(axis=0)
    label = np.empty_like(order)
    label[order] = np.cumsum([0, *is_new])
    return label


def _at(keys: NDArray[np.int64] | Curve, levels: Indices) -> NDArray[np.int64]:
    """The numbers at some levels."""
    return keys.at(levels) if isinstance(keys, Curve) else keys[levels]


def _dense(keys: NDArray[np.int64] | Curve) -> NDArray[np.int64]:
    return keys.dense() if isinstance(keys, Curve) else keys


def _starts(keys: NDArray[np.int64] | Curve) -> Indices:
    """Where pieces, or runs, begin."""
    if isinstance(keys, Curve):
        return keys.starts
    return np.append(0, np.flatnonzero(keys[1:] != keys[:-1]) + 1)


class AxisClasses:
    """The classes of one axis, from all arrays of a history.

    Parameters
    ----------
    axis : str
    appeared : dict of LevelArray to int
        The arrays in the order in which they appear, each with the number of the first row that
        uses it.

    Attributes
    ----------
    levels : (n_classes,) ndarray
        One level of each class.
    n_levels : int
        The number of all levels.
    segments : (n_segments,) ndarray
        Where levels begin that follow one another and cost the same, or no more than the ends do.
    ends : (2, n_segments) ndarray
        The class of the first and of the last level of each segment.
    """

    def __init__(self, axis: str, appeared: dict[LevelArray, int]) -> None:
        self._axis = axis
        keys = [array.keys(axis) for array in appeared]
        if any(isinstance(key, Curve) for key in keys):
            self._take_ends(appeared, keys)
        else:
            self.levels, of_level = distinct_columns([_dense(key) for key in keys])
            self.segments = np.flatnonzero(np.diff(of_level, prepend=-1))
            self.ends = np.stack((of_level[self.segments], of_level[self.segments]))
            self.n_levels = of_level.size
            self._keys = {
                one: _at(key, self.levels) for one, key in zip(appeared, keys, strict=True)
            }
        self._appeared = list(appeared.items())
        self._n_looked_at = 0
        self._label = np.zeros(self.levels.size, dtype=np.int64)
        self._distinguished: Indices = np.zeros(1, dtype=np.intp)

    def _take_ends(
        self, appeared: Iterable[LevelArray], keys: Sequence[NDArray[np.int64] | Curve]
    ) -> None:
        """Classes of the levels at which a piece of some array begins or ends."""
        self.n_levels = keys[0].size
        self.segments = np.unique(np.concatenate([_starts(key) for key in keys]))
        last = np.append(self.segments[1:], self.n_levels) - 1
        places = np.concatenate((self.segments, last))
        at_places = [_at(key, places) for key in keys]
        first, label = distinct_columns(at_places)
        self.levels, self.ends = places[first], label.reshape(2, -1)
        self._keys = {one: key[first] for one, key in zip(appeared, at_places, strict=True)}

    def by(self, arrays: Sequence[LevelArray]) -> tuple[Indices, Indices]:
        """The classes that a few arrays distinguish, in the form of `distinct_columns`.

        The arrays must be from the history, or distinguish no more than those.
        """
        for array in arrays:
            if array not in self._keys:
                self._keys[array] = _at(array.keys(self._axis), self.levels)
        return distinct_columns([self._keys[array] for array in arrays])

    def distinguished(self, n_rows: int) -> Indices:
        """Representatives of the classes that the first `n_rows` rows, at least, distinguish."""
        while (
            self._distinguished.size < self.levels.size
            and self._appeared[self._n_looked_at][1] < n_rows
        ):
            array, _ = self._appeared[self._n_looked_at]
            self._n_looked_at += 1
            self._distinguished, self._label = distinct_columns([self._label, self._keys[array]])
            if self._n_looked_at == len(self._appeared):
                break
        return self._distinguished


def classes_of(rows: Sequence[Sequence[LevelArray]]) -> dict[str, AxisClasses]:
    """The classes of every axis, from the arrays of each row in order."""
    appeared: dict[str, dict[LevelArray, int]] = {}
    for place, arrays in enumerate(rows):
        for array in arrays:
            for axis in array.axes:
                appeared.setdefault(axis, {}).setdefault(array, place)
    return {axis: AxisClasses(axis, of_axis) for axis, of_axis in appeared.items()}
