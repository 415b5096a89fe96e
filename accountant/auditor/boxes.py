"""Boxes that together contain every cell, each with a bound on what its cells have paid.

The boxes of the largest bounds are bounded again with the rows added since (portions.py), and split
along an axis where that is not enough. This proves totals of histories on many columns, of which no
list of the most expensive cells can be made. Proof: proofs/ledger.md, "Boxes".
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from accountant.auditor.portions import Inside, Portions, share_of
from accountant.auditor.products import HEIGHTS_MAX, Numbers, Products
from accountant.auditor.tables import Layout, Row

N_TOGETHER: Final = 16
N_PARTS_TOGETHER: Final = 2**6
N_BOXES_MAX: Final = 2**13


class Boxes:
    """The first rows of a history, and boxes with bounds on what they cost.

    Parameters
    ----------
    rows : sequence of Row
        The whole history.
    layout : Layout

    Attributes
    ----------
    is_able : bool
        Whether the numbers are small enough. If not, nothing else may be used.
    """

    def __init__(self, rows: Sequence[Row], layout: Layout) -> None:
        self.is_able = sum(row.bound for row in rows) <= HEIGHTS_MAX and bool(layout.classes)
        if not self.is_able:
            return
        self._axes = list(layout.classes)
        self._classes = layout.classes
        self._products = Products(layout)
        self._n_rows = 0
        sizes = [classes.levels.size for classes in layout.classes.values()]
        self._inside: list[Inside] = [np.ones((1, size), dtype=bool) for size in sizes]
        self._bounds: Numbers = np.zeros(1, dtype=np.int64)
        self._n_known: Numbers = np.zeros(1, dtype=np.int64)  # rows, when last bounded

    @property
    def value(self) -> int:
        """No cell has paid more for the rows added so far."""
        return int(self._bounds.max())

    def go_to(self, n_rows: int) -> None:
        """Add rows until `n_rows` are included; rows beyond stay, and are paid for as well."""
        if n_rows <= self._n_rows:
            return
        products = self._products
        first, end = products.ends[self._n_rows], products.ends[n_rows]
        costs = np.tile(products.heights[first:end], (len(self._bounds), 1))
        for one, inside in zip(products.along, self._inside, strict=True):
            lo, hi = np.searchsorted(one.places, (first, end)).tolist()
            for place, shares in zip(one.places[lo:hi] - first, one.shares[lo:hi], strict=True):
                largest = np.where(inside, shares, 0).max(axis=1)
                costs[:, place] = share_of(costs[:, place], largest)
        self._bounds = self._bounds + costs.sum(axis=1) + self._constant_since(n_rows)
        self._n_rows = n_rows

    def lower(self, wanted: int, n_costs_max: int) -> int:
        """Lower the bound to at most `wanted`, or as far as some work suffices.

        Returns
        -------
        int
            The number of costs, of a row in a box, that were looked at; of `n_costs_max`, about.
        """
        n_looked_at = 0
        while n_looked_at < n_costs_max:
            above = np.flatnonzero(self._bounds > wanted)
            worst = above[np.argsort(-self._bounds[above], kind="stable")[:N_TOGETHER]]
            if not worst.size:
                break
            is_known = self._n_known[worst] == self._n_rows
            if is_known[0]:
                worst = self._split(worst[is_known])
                if not worst.size:
                    break
            else:
                worst = worst[~is_known]
            self._look_at(worst, wanted)
            n_looked_at += worst.size * max(1, self._n_rows)
        return n_looked_at

    def cell(self) -> Mapping[str, int]:
        """A class of each axis in the box with the largest bound: the first inside."""
        worst = int(self._bounds.argmax())
        return {
            axis: int(self._classes[axis].levels[int(inside[worst].argmax())])
            for axis, inside in zip(self._axes, self._inside, strict=True)
        }

    def _constant_since(self, n_rows: int) -> int:
        return self._products.constants[n_rows] - self._products.constants[self._n_rows]

    def _portions(self, places: Numbers) -> Portions:
        products = self._products
        n_products = products.ends[self._n_rows]
        along = [one.first(n_products) for one in products.along]
        inside = [one[places] for one in self._inside]
        return Portions(products.heights[:n_products], along, inside)

    def _look_at(self, places: Numbers, wanted: int) -> None:
        constant = self._products.constants[self._n_rows]
        found = self._portions(places).bounds(wanted - constant) + constant
        self._bounds[places] = np.minimum(self._bounds[places], found)
        self._n_known[places] = self._n_rows

    def _split(self, places: Numbers) -> Numbers:
        """Split some boxes; the places of the parts. None if the first is of a single cost."""
        portions = self._portions(places)
        axes = portions.splits()
        is_kept = np.ones(self._bounds.size, dtype=bool)
        came_from: list[int] = []
        changed: list[tuple[int, Inside]] = []
        for number, (place, axis) in enumerate(zip(places.tolist(), axes, strict=True)):
            if axis is None or len(came_from) >= N_PARTS_TOGETHER or is_kept.size >= N_BOXES_MAX:
                break
            parts = self._parts(place, axis, portions.costs[number] > 0)
            came_from += [place] * len(parts)
            changed += [(axis, part) for part in parts]
            is_kept[place] = False
        order = np.concatenate((np.flatnonzero(is_kept), np.array(came_from, dtype=np.int64)))
        n_kept = order.size - len(came_from)
        self._inside = [inside[order] for inside in self._inside]
        for number, (axis, part) in enumerate(changed, start=n_kept):
            self._inside[axis][number] = part
        self._bounds, self._n_known = self._bounds[order], self._n_known[order]
        return np.arange(n_kept, order.size)

    def _parts(self, place: int, axis: int, is_paid: Inside) -> Inside:
        """The classes of a box along an axis, in parts on which all rows cost the same."""
        one = self._products.along[axis].first(is_paid.size)
        classes = np.flatnonzero(self._inside[axis][place])
        _, part = np.unique(
            one.shares[is_paid[one.places]][:, classes], axis=1, return_inverse=True
        )
        parts = np.zeros((int(part.max()) + 1, self._inside[axis].shape[1]), dtype=bool)
        parts[part.ravel(), classes] = True
        return parts
