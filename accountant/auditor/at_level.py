"""Rows as they are at one level of a column: what they cost the cells with that level.

A row that costs none of these cells anything is left out. Nothing here knows charges or bounds.
Proof: proofs/units.md, "The auditor".
"""

from collections.abc import Sequence

import numpy as np

from accountant.auditor.classes import AxisClasses, classes_of
from accountant.auditor.curves import Curve
from accountant.auditor.rows import LevelArray, Share, Term, share_of
from accountant.auditor.tables import Row
from accountant.auditor.tiled import Tiled

Keys = tuple[int, ...]


class ByLevel:
    """The rows of a history at every level of a column.

    Parameters
    ----------
    rows : sequence of Row
    column : str

    Attributes
    ----------
    levels : list of int
        One for each class of levels that no row tells apart; or the ends of what is cheapest
        between them (classes.py).
    ends : list of (int, int)
        For each segment of levels, the classes of its first and last level.
    n_levels : list of int
        For each segment, how many levels it has.
    """

    def __init__(self, rows: Sequence[Row], column: str, n_rows: int) -> None:
        self._rows = rows
        self._column = column
        classes = classes_of([row.share.arrays for row in rows]).get(column)
        self._keys: dict[LevelArray, list[int]] = {}
        self._shares: dict[tuple[Share, Keys], Share] = {}
        self._arrays: dict[tuple[LevelArray, int], LevelArray] = {}
        if classes is None:  # every level costs the same, and there are enough of them
            self.levels, self.ends, self.n_levels = [0], [(0, 0)], [n_rows]
            return
        self.levels = classes.levels.tolist()
        self.ends = list(zip(*classes.ends.tolist(), strict=True))
        self.n_levels = np.diff(classes.segments, append=classes.n_levels).tolist()
        self._read_keys(classes)

    def _read_keys(self, classes: AxisClasses) -> None:
        arrays = dict.fromkeys(array for row in self._rows for array in row.share.arrays)
        for array in arrays:
            if self._column in array.axes:
                keys = array.keys(self._column)
                at = keys.at(classes.levels) if isinstance(keys, Curve) else keys[classes.levels]
                self._keys[array] = at.tolist()

    def rows_at(self, place: int) -> tuple[list[Row], list[int]]:
        """The rows at one class, and the place of each in the history."""
        found, places = [], []
        for number, row in enumerate(self._rows):
            share = self._share(row.share, place)
            if share.bound:
                found.append(row if share is row.share else Row(share, row.price))
                places.append(number)
        return found, places

    def _share(self, share: Share, place: int) -> Share:
        along = [array for array in share.arrays if array in self._keys]
        if not along:
            return share
        name = share, tuple(self._keys[array][place] for array in along)
        known = self._shares.get(name)
        if known is None:
            known = self._shares[name] = self._restricted(share, place)
        return known

    def _restricted(self, share: Share, place: int) -> Share:
        terms = [self._term(term, place) for term in share.terms]
        if share.inside is None:
            return share_of(terms, None)
        inside = self._array(share.inside, place)
        if isinstance(inside, int):
            return share_of(terms if inside else [], None)
        if inside.is_constant:
            return share_of(terms if inside.ends[0] else [], None)
        return share_of(terms, inside)

    def _term(self, term: Term, place: int) -> Term:
        scale, arrays = term.scale, []
        for array in term.arrays:
            found = self._array(array, place)
            if isinstance(found, int):
                scale *= found
            else:
                arrays.append(found)
        return Term(scale, tuple(arrays))

    def _array(self, array: LevelArray, place: int) -> LevelArray | int:
        """An array at a class of the column: over its other axes, or a number."""
        if array not in self._keys:
            return array
        key = self._keys[array][place]
        if len(array.axes) == 1:
            return key
        known = self._arrays.get((array, key))
        if known is None:
            known = self._arrays[array, key] = self._sliced(array, place)
        return known

    def _sliced(self, array: LevelArray, place: int) -> LevelArray:
        dimension = array.axes.index(self._column)
        others = array.axes[:dimension] + array.axes[dimension + 1 :]
        numbers = array.numbers
        if isinstance(numbers, Curve):
            raise TypeError("a curve along several axes")
        if isinstance(numbers, Tiled):
            values = np.asarray(numbers.values.take(self._keys[array][place], axis=dimension))
            along = numbers.along[:dimension] + numbers.along[dimension + 1 :]
            return LevelArray(others, Tiled(along, values))
        return LevelArray(others, np.asarray(numbers.take(self.levels[place], axis=dimension)))
