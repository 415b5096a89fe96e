"""Boxes that together contain every cell, each with bounds on what its cells have paid.

The boxes of the largest bounds are bounded again with the rows added since (portions.py), and split
along an axis where that is not enough. This proves totals of histories on many columns, of which no
list of the most expensive cells can be made. Portions that were found once bound the totals after
each of many charges, so that these are proved together. Proof: proofs/ledger.md, "Boxes".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accountant.auditor.portions import Inside, Known, Portions
from accountant.auditor.products import HEIGHTS_MAX, Numbers, Products
from accountant.auditor.tables import Layout, Row

N_TOGETHER: Final = 2**6  # boxes that are looked at, or split, at once
N_ROUNDS: Final = 8
N_ROUNDS_OF_SPLIT: Final = 4
N_PARTS_TOGETHER: Final = 2**6
N_BOXES_MAX: Final = 2**13  # of the tree
GROWTH: Final = 1.125  # of the rows, after which the tree grows again from the first box
UNITS_MAX: Final = 2 * HEIGHTS_MAX  # no bound is above


@dataclass(frozen=True, slots=True)
class Due:
    """A total that is to be proved.

    Parameters
    ----------
    n_rows : int
        How many rows it is for, the first of the history.
    units : int
        No cell is to have paid more for them.
    """

    n_rows: int
    units: int


class Boxes:
    """A tree of boxes: the parts of a box contain all its cells, and the first box every cell.

    Parameters
    ----------
    rows : sequence of Row
        The whole history.
    layout : Layout

    Attributes
    ----------
    is_able : bool
        Whether the numbers are small enough. If not, nothing else may be used.
    n_looked_at : int
        How many costs, of a row in a box, were looked at so far.
    value : int
        No cell has paid more for the rows of the last total that was to be proved.
    """

    def __init__(self, rows: Sequence[Row], layout: Layout) -> None:
        self.n_looked_at = 0
        self.value = sum(row.bound for row in rows)
        self.is_able = self.value <= HEIGHTS_MAX and bool(layout.classes)
        if not self.is_able:
            return
        self._axes = list(layout.classes)
        self._classes = layout.classes
        self._products = Products(layout)
        sizes = [classes.levels.size for classes in layout.classes.values()]
        self._inside: list[Inside] = [np.ones((1, size), dtype=bool) for size in sizes]
        self._parts: list[Numbers | None] = [None]  # the places of each one's parts, once split
        # The portions with which each was bounded last.
        self._known: list[Known] = [[np.zeros(0, dtype=np.float32) for _ in sizes]]
        self._most, self._worst = self.value, 0
        self._n_rows_first = 0

    def proved(self, due: Sequence[Due], n_costs_max: int) -> int:
        """How many totals were proved, before the first that was not.

        Parameters
        ----------
        due : sequence of Due
            Of more and more rows.
        n_costs_max : int
            How many costs, of a row in a box, are looked at; about.
        """
        if due[-1].n_rows > GROWTH * self._n_rows_first or len(self._parts) >= N_BOXES_MAX:
            self._start_again(due[-1].n_rows)
        search = _Search(due, self._most)
        enough = self.n_looked_at + n_costs_max
        while self.n_looked_at < enough and self._step(search):
            pass
        self.value, self._worst = search.largest()
        return int(search.n_proved.min())

    def cell(self) -> Mapping[str, int]:
        """A class of each axis in the box with the largest bound: the first inside."""
        return {
            axis: int(self._classes[axis].levels[int(inside[self._worst].argmax())])
            for axis, inside in zip(self._axes, self._inside, strict=True)
        }

    def _start_again(self, n_rows: int) -> None:
        """Forget all boxes but the first: with more rows, others are split better."""
        self._inside = [inside[:1] for inside in self._inside]
        self._parts, self._known, self._n_rows_first = [None], self._known[:1], n_rows

    def _step(self, search: "_Search") -> bool:
        """Look at the worst boxes, or put their parts in their place; False if there is none."""
        worst = search.worst()
        if not worst.size:
            return False
        is_known = search.is_known[worst]
        if is_known[0]:
            self._open(worst[is_known], search)
        else:
            self._look_at(worst[~is_known], search)
        return True

    def _open(self, numbers: Numbers, search: "_Search") -> None:
        """Put the parts of some boxes in their place; or give up, if the first has none."""
        if len(self._parts) < N_BOXES_MAX:
            self._split(numbers, search)
        parts = [self._parts[place] for place in search.places[numbers]]
        split = {int(n): own for n, own in zip(numbers, parts, strict=True) if own is not None}
        if int(numbers[0]) in split:
            search.replace(split)
        else:
            search.give_up(int(numbers[0]))

    def _portions(self, places: Sequence[int], n_rows: int) -> Portions:
        products = self._products
        n_products = products.ends[n_rows]
        along = [one.first(n_products) for one in products.along]
        inside = [one[places] for one in self._inside]
        return Portions(products.heights[:n_products], along, inside)

    def _look_at(self, numbers: Numbers, search: "_Search") -> None:
        """Bound some boxes after the rows of each total."""
        is_split = np.array([self._parts[place] is not None for place in search.places[numbers]])
        numbers = numbers[is_split == is_split[0]]
        n_rounds = N_ROUNDS_OF_SPLIT if is_split[0] else N_ROUNDS
        places = search.places[numbers].tolist()
        rows = [one.n_rows for one in search.due]
        constants = np.array([self._products.constants[n_rows] for n_rows in rows])
        ends = np.array([self._products.ends[n_rows] for n_rows in rows])
        # Below the least total, all are proved; as it is out of reach, good portions are found.
        wanted = int(search.units.min() - constants[-1])
        known = [self._known[place] for place in places]
        portions = self._portions(places, rows[-1])
        found, known = portions.bounds(wanted, ends, known, n_rounds)
        search.take(numbers, found + constants)
        for place, own in zip(places, known, strict=True):
            self._known[place] = own
        self.n_looked_at += len(places) * max(1, rows[-1])

    def _split(self, numbers: Numbers, search: "_Search") -> None:
        """Split some boxes that are not; not those in which every cell costs the same."""
        places = [n for n in search.places[numbers].tolist() if self._parts[n] is None]
        if not places:
            return
        portions = self._portions(places, search.due[-1].n_rows)
        grown = [[inside] for inside in self._inside]
        n_before = len(self._parts)
        for number, (place, axis) in enumerate(zip(places, portions.splits(), strict=True)):
            if axis is None or len(self._parts) - n_before >= N_PARTS_TOGETHER:
                break
            parts = self._divided(place, axis, portions.costs[number] > 0)
            self._parts[place] = np.arange(len(self._parts), len(self._parts) + len(parts))
            self._parts += [None] * len(parts)
            self._known += [self._known[place]] * len(parts)
            for other, inside in enumerate(self._inside):
                same = np.repeat(inside[[place]], len(parts), axis=0)
                grown[other].append(parts if other == axis else same)
        self._inside = [np.concatenate(of_axis) for of_axis in grown]

    def _divided(self, place: int, axis: int, is_paid: NDArray[np.bool_]) -> Inside:
        """The classes of a box along an axis, in parts on which all rows cost the same."""
        one = self._products.along[axis].first(is_paid.size)
        classes = np.flatnonzero(self._inside[axis][place])
        _, part = np.unique(
            one.shares[is_paid[one.places]][:, classes], axis=1, return_inverse=True
        )
        parts = np.zeros((int(part.max()) + 1, self._inside[axis].shape[1]), dtype=bool)
        parts[part.ravel(), classes] = True
        return parts


class _Search:
    """What is known of boxes that contain every cell, while totals are to be proved.

    Parameters
    ----------
    due : sequence of Due
    most : int
        No cell pays more for the whole history.

    Attributes
    ----------
    units : (n_due,) ndarray
    places : (n_boxes,) ndarray
        Where the boxes are among those of the tree.
    n_proved : (n_boxes,) ndarray
        The number of totals that no cell of a box is above, before the first that one may be.
    is_known : (n_boxes,) ndarray
        Whether the box itself was looked at, and not only one that contains it.
    """

    def __init__(self, due: Sequence[Due], most: int) -> None:
        self.due = due
        self.units = np.array([min(one.units, UNITS_MAX) for one in due], dtype=np.int64)
        self.places: Numbers = np.zeros(1, dtype=np.int64)
        self.n_proved: Numbers = np.zeros(1, dtype=np.int64)
        self.is_known = np.zeros(1, dtype=bool)
        self._bounds: Numbers = np.array([most], dtype=np.int64)  # for the last total
        self._excess = self._bounds - self.units.min()  # where it is largest
        self._n_hoped = len(due)  # no more can be proved

    def worst(self) -> Numbers:
        """The numbers of boxes that are the furthest above a total that may still be proved."""
        above = np.flatnonzero(self.n_proved < self._n_hoped)
        return above[np.argsort(-self._excess[above], kind="stable")[:N_TOGETHER]]

    def largest(self) -> tuple[int, int]:
        """The largest bound for the last total, and the place of its box."""
        worst = int(self._bounds.argmax())
        return int(self._bounds[worst]), int(self.places[worst])

    def take(self, numbers: Numbers, found: Numbers) -> None:
        """Bounds on each total, of some boxes."""
        excess = found - self.units
        is_above = excess > 0
        first = np.where(is_above.any(axis=1), is_above.argmax(axis=1), len(self.due))
        self._bounds[numbers] = np.minimum(self._bounds[numbers], found[:, -1])
        self._excess[numbers] = np.minimum(self._excess[numbers], excess.max(axis=1))
        self.n_proved[numbers] = np.maximum(self.n_proved[numbers], first)
        self.is_known[numbers] = True

    def give_up(self, number: int) -> None:
        """A box that cannot be bounded better."""
        self._n_hoped = int(self.n_proved[number])

    def replace(self, parts: Mapping[int, Numbers]) -> None:
        """Put parts in the place of some boxes, by the number of each."""
        kept = np.delete(np.arange(self.places.size), list(parts))
        order = np.concatenate((kept, np.repeat(list(parts), [own.size for own in parts.values()])))
        self.places = np.concatenate((self.places[kept], *parts.values()))
        self.n_proved, self._bounds = self.n_proved[order], self._bounds[order]
        self._excess, self.is_known = self._excess[order], self.is_known[order]
        self.is_known[kept.size :] = False
