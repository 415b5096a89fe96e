"""All cells that cost more than a given number, found by a search that a bound prunes.

Axes are fixed one after another, to every class that can still lead to such a cell: the sum, over
tables, of the largest value with the axes fixed so far is a bound on all cells with these classes.
When every axis is fixed, it is the value itself. If there are too many cells to examine, the result
says so; nothing is left out silently. Proof: proofs/ledger.md, "The most expensive cell".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from accountant.auditor.bound import Bound
from accountant.auditor.classes import Indices
from accountant.auditor.prices import Whole
from accountant.auditor.rows import LevelArray, Share
from accountant.auditor.tables import Row

N_FOUND_MAX: Final = 2**14  # cells, also partial ones
N_LOOKED_AT_MAX: Final = 2**21  # candidates at one axis


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Cells, by the class of each axis, and the value of a sum of tables there.

    Parameters
    ----------
    levels : mapping of str to (n_cells,) ndarray
        A level of each cell on each axis.
    values : (n_cells,) ndarray
        Nowhere below what the rows added so far cost the cell.
    """

    levels: Mapping[str, Indices]
    values: Whole

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return self.values.size

    @property
    def nothing(self) -> Whole:
        """A zero for each cell."""
        return np.zeros_like(self.values)

    def at(self, places: Indices) -> "Cells":
        """Some of them."""
        levels = {axis: of_axis[places] for axis, of_axis in self.levels.items()}
        return Cells(levels, self.values[places])

    def costs(self, row: Row) -> Whole:
        """The exact cost of one row for each cell."""
        return row.price.of_all(self._share(row.share))

    def _share(self, share: Share) -> Whole:
        total: Whole = np.zeros(self.values.size, dtype=self.values.dtype)
        for term in share.terms:
            product = np.full(self.values.size, term.scale, dtype=self.values.dtype)
            for array in term.arrays:
                product *= self._at_cells(array)
            total += product
        total = np.abs(total)
        return total if share.inside is None else total * self._at_cells(share.inside)

    def _at_cells(self, array: LevelArray) -> Whole:
        return array.at([self.levels[axis] for axis in array.axes])


def cells_above(bound: Bound, threshold: int) -> Cells | None:
    """Every class of cells for which the sum of tables is larger than `threshold`.

    Returns
    -------
    Cells or None
        None if there are too many to examine.
    """
    classes: dict[str, Indices] = {}
    for axis, of_axis in bound.layout.classes.items():
        distinguished = of_axis.distinguished(bound.n_added)
        classes[axis] = distinguished[bound.most(axis)[distinguished] > threshold]
    order = sorted(classes, key=lambda axis: (classes[axis].size, axis))
    tables = [_Partial(bound, number, order) for number in bound.in_use]
    found: dict[str, Indices] = {}
    n_first = int(bound.value > threshold)
    values: Whole = np.full(n_first, bound.value, dtype=bound.layout.dtype)
    for axis in order:
        ways = classes[axis]
        if values.size * ways.size > N_LOOKED_AT_MAX:
            return None
        ahead = np.repeat(values[:, np.newaxis], ways.size, axis=1)
        for table in tables:
            if axis in table.axes:
                ahead += table.gain(axis, found, ways)
        came_from, chosen = np.nonzero(ahead > threshold)
        if came_from.size > N_FOUND_MAX:
            return None
        values = ahead[came_from, chosen]
        found = {name: places[came_from] for name, places in found.items()}
        found[axis] = ways[chosen]
    levels = {axis: bound.layout.classes[axis].levels[places] for axis, places in found.items()}
    return Cells(levels, values)


def climbed(bound: Bound) -> Cells:
    """One cell of high cost: the best class of each axis in turn, until none is better."""
    classes = bound.layout.classes
    chosen = {axis: int(np.argmax(bound.most(axis))) for axis in classes}
    is_better = True
    while is_better:
        is_better = False
        for axis in classes:
            costs = bound.costs_along(axis, chosen)
            best = int(np.argmax(costs))
            if costs[best] > costs[chosen[axis]]:
                chosen[axis], is_better = best, True
    levels = {axis: classes[axis].levels[[place]] for axis, place in chosen.items()}
    return Cells(levels, np.full(1, bound.value, dtype=bound.layout.dtype))


class _Partial:
    """A table's largest values once its first axes are fixed, in the order of the search."""

    def __init__(self, bound: Bound, number: int, order: Sequence[str]) -> None:
        tilted = bound.tables[number]
        places = sorted(
            range(len(tilted.table.axes)), key=lambda p: order.index(tilted.table.axes[p])
        )
        self.axes = [tilted.table.axes[place] for place in places]
        self._label = [tilted.table.label[place] for place in places]
        left = np.transpose(tilted.values, places)
        self._most = [left]
        for place in reversed(places):
            left = _array((left + bound.largest(number, place)).max(axis=-1), left)
            self._most.insert(0, left)

    def gain(self, axis: str, fixed: Mapping[str, Indices], ways: Indices) -> Whole:
        """The change of the bound when an axis is fixed: a row for each cell, a column per way."""
        place = self.axes.index(axis)
        names = self.axes[:place]
        here = tuple(
            label[fixed[name]] for label, name in zip(self._label[:place], names, strict=True)
        )
        before = _array(self._most[place][here], self._most[place])
        after = self._most[place + 1][here]
        gained: Whole = after[..., self._label[place][ways]] - before[..., np.newaxis]
        return gained


def _array(found: Whole | int, like: Whole) -> Whole:
    """An array, also where the result is a single Python integer."""
    return np.asarray(found, dtype=like.dtype)
