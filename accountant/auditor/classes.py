"""Classes of levels: two levels that no array tells apart are one, and one of them stands for both.

A thousand predicates on an axis of a million levels still make few classes, because predicates are
ranges and lists. Everything after this works on classes and loses nothing.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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
        For each place, which of those it equals.
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
    """A number for each column of a table, the same for equal ones."""
    order = np.lexsort(table)
    is_new = (np.diff(table[:, order], axis=1) != 0).any(axis=0)
    label = np.empty_like(order)
    label[order] = np.cumsum([0, *is_new])
    return label


class AxisClasses:
    """The classes of one axis, by all arrays of a history.

    Parameters
    ----------
    axis : str
    appeared : dict of LevelArray to int
        The arrays in the order in which they appeared, and the number of the row that each
        appeared with.

    Attributes
    ----------
    levels : (n_classes,) ndarray
        One level of each class.
    of_level : (n_levels,) ndarray
        The class of each level.
    """

    def __init__(self, axis: str, appeared: dict[LevelArray, int]) -> None:
        self._axis = axis
        keys = [array.keys(axis) for array in appeared]
        self.levels, self.of_level = distinct_columns(keys)
        self._keys = {array: one[self.levels] for array, one in zip(appeared, keys, strict=True)}
        self._appeared = list(appeared.items())
        self._n_looked_at = 0
        self._label = np.zeros(self.levels.size, dtype=np.int64)
        self._told_apart: Indices = np.zeros(1, dtype=np.intp)

    def by(self, arrays: Sequence[LevelArray]) -> tuple[Indices, Indices]:
        """The classes that a few arrays tell apart, as `distinct_columns` gives them.

        The arrays must be of the history, or such as tell no more apart than those.
        """
        for array in arrays:
            if array not in self._keys:
                self._keys[array] = array.keys(self._axis)[self.levels]
        return distinct_columns([self._keys[array] for array in arrays])

    def told_apart(self, n_rows: int) -> Indices:
        """Classes of which no two are the same to the first rows, or to any asked for before."""
        while (
            self._told_apart.size < self.levels.size
            and self._appeared[self._n_looked_at][1] < n_rows
        ):
            array, _ = self._appeared[self._n_looked_at]
            self._n_looked_at += 1
            self._told_apart, self._label = distinct_columns([self._label, self._keys[array]])
            if self._n_looked_at == len(self._appeared):
                break
        return self._told_apart


def classes_of(rows: Sequence[Sequence[LevelArray]]) -> dict[str, AxisClasses]:
    """The classes of every axis, from the arrays of each row in order."""
    appeared: dict[str, dict[LevelArray, int]] = {}
    for place, arrays in enumerate(rows):
        for array in arrays:
            for axis in array.axes:
                appeared.setdefault(axis, {}).setdefault(array, place)
    return {axis: AxisClasses(axis, of_axis) for axis, of_axis in appeared.items()}
