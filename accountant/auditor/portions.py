"""What the cells of boxes have paid at most, from portions of each row's cost for its axes.

In a box a product (products.py) costs at most C, and in a class with a smaller share than the
largest one of the box, in proportion less. Divide C into a portion for each axis: then a cell pays
at most the sum over axes of the portion, times the share of its class in the largest. Summed over
products, an axis has a most expensive class; the sum of those, over axes, is a bound.

Any division gives a bound. A good one is looked for in floats; the bound is then computed from it
in whole numbers. Proof: proofs/ledger.md, "Boxes".
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accountant.auditor.products import WHOLE, Along, Numbers

STEP: Final = 3.0
SLOWER: Final = 0.7  # a round that gains nothing makes the next steps this much smaller
LEAST: Final = 1e-9
N_SUMS_MAX: Final = 2**20  # numbers, after each row in each class, that are held at once
APART: Final = 0.1  # of portions that are known: or those near 0 could hardly rise again

Inside = NDArray[np.bool_]
Floats = NDArray[np.float32]
Known = list[NDArray[np.float32]]  # portions of one box, for each axis


class Portions:
    """Some boxes, and what each product costs there.

    Parameters
    ----------
    heights : (n_products,) ndarray
    along : sequence of Along
        For each axis.
    inside : sequence of (n_boxes, n_classes) ndarray
        For each axis, the classes in each box.

    Attributes
    ----------
    costs : (n_boxes, n_products) ndarray
        The most that a product costs a cell of a box.
    """

    def __init__(self, heights: Numbers, along: Sequence[Along], inside: Sequence[Inside]) -> None:
        self._along = along
        self._inside = inside
        self.costs = np.tile(heights, (len(inside[0]), 1))
        self._largest: list[Numbers] = []
        self._mean_left: list[Floats] = []
        for one, classes in zip(along, inside, strict=True):
            largest, mean = _of_boxes(one.shares, classes)
            self.costs[:, one.places] = share_of(self.costs[:, one.places], largest)
            self._largest.append(np.maximum(largest, 1))
            self._mean_left.append((1 - mean / self._largest[-1]).astype(np.float32))
        self._of_largest: list[Floats] = [
            (1 / largest).astype(np.float32) for largest in self._largest
        ]
        self._per_share: list[Floats] = [
            self.costs[:, one.places].astype(np.float32) * inverse
            for one, inverse in zip(along, self._of_largest, strict=True)
        ]

    def splits(self) -> list[int | None]:
        """For each box, the axis on which its costs differ most; None if they do on none."""
        gains = np.stack(
            [
                (self.costs[:, one.places] * left).sum(axis=1)
                / np.log2(np.maximum(classes.sum(axis=1), 2))
                for one, left, classes in zip(
                    self._along, self._mean_left, self._inside, strict=True
                )
            ]
        )
        best = gains.argmax(axis=0)
        return [int(axis) if gains[axis, box] > 0 else None for box, axis in enumerate(best)]

    def bounds(
        self, wanted: int, ends: Numbers, known: Sequence[Known], n_rounds: int
    ) -> tuple[Numbers, list[Known]]:
        """Bounds for each box, and the portions of each with which they were found.

        Parameters
        ----------
        wanted : int
            Better portions are looked for while the bound of a box is above.
        ends : (n_ends,) ndarray
            Numbers of products, ascending; the last is of all.
        known : sequence of list of (n,) ndarray
            For each box, portions to start from: for each axis, of its first products.
        n_rounds : int
            How often better portions are looked for, at the most.

        Returns
        -------
        bounds : (n_boxes, n_ends) ndarray
            Once the first products have been paid for, for each of `ends`.
        portions : list of list of (n,) ndarray
        """
        portions = self._first(known)
        best = [own.copy() for own in portions]
        n_boxes = len(self.costs)
        lowest, step = np.full(n_boxes, np.inf), np.full((n_boxes, 1), STEP, dtype=np.float32)
        active = np.arange(n_boxes)
        for n_left in range(n_rounds, -1, -1):
            found, paid = self._tried(portions, active)
            is_lower = found < lowest[active]
            for kept, own in zip(best, portions, strict=True):
                kept[active[is_lower]] = own[is_lower]
            step[active[~is_lower]] *= SLOWER
            lowest[active] = np.minimum(found, lowest[active])
            is_left = lowest[active] > wanted
            active = active[is_left]
            if n_left == 0 or not active.size:
                break
            portions = self._shared_out(
                [
                    own[is_left] * np.exp(-step[active] * full[is_left])
                    for own, full in zip(portions, paid, strict=True)
                ]
            )
        return self._bounds_of(best, ends), [list(of_box) for of_box in zip(*best, strict=True)]

    def _first(self, known: Sequence[Known]) -> list[Floats]:
        """Those known, a little apart; else more on the axes on which fewer classes pay."""
        portions = self._shared_out([left + np.float32(LEAST) for left in self._mean_left])
        for box, of_box in enumerate(known):
            for own, before in zip(portions, of_box, strict=True):
                first = own[box, : before.size]
                first += (1 - APART) * (before[: first.size] - first)
        return self._shared_out(portions)

    def _shared_out(self, portions: Sequence[Floats]) -> list[Floats]:
        """Portions of each product that sum to one."""
        total = np.zeros((len(portions[0]), self.costs.shape[1]), dtype=np.float32)
        for own, one in zip(portions, self._along, strict=True):
            total[:, one.places] += own
        return [own / total[:, one.places] for own, one in zip(portions, self._along, strict=True)]

    def _tried(
        self, portions: Sequence[Floats], boxes: Numbers
    ) -> tuple[NDArray[np.float64], list[Floats]]:
        """About the bounds, and how far each product is paid in the most expensive classes."""
        lowest = np.zeros(boxes.size)
        paid = []
        for place, own in enumerate(portions):
            one = self._along[place]
            sums = (own * self._per_share[place][boxes]) @ one.about
            sums[~self._inside[place][boxes]] = -1.0
            worst = sums.argmax(axis=1)
            lowest += sums[np.arange(worst.size), worst]
            paid.append(one.about[:, worst].T * self._of_largest[place][boxes])
        return lowest, paid

    def _bounds_of(self, portions: Sequence[Floats], ends: Numbers) -> Numbers:
        """The bounds, in whole numbers, of whatever portions: the last axis has what is left."""
        left = self.costs.copy()
        last = _last_axes(self._along, left.shape[1])
        total = np.zeros((len(left), ends.size), dtype=np.int64)
        for place, own in enumerate(portions):
            one = self._along[place]
            rounded = np.floor(own.astype(np.float64) * self.costs[:, one.places])
            # What floats have come to is cut, also where it is no number; all are below 2**53.
            part = np.fmin(np.fmax(rounded, 0), left[:, one.places]).astype(np.int64)
            part = np.where(last[one.places] == place, left[:, one.places], part)
            left[:, one.places] -= part
            per_share = -(-part * WHOLE // self._largest[place])
            total += self._most_paid(place, per_share, np.searchsorted(one.places, ends))
        bounds: Numbers = total // WHOLE  # a cost is a whole number, and at most this
        return bounds

    def _most_paid(self, place: int, per_share: Numbers, ends: Numbers) -> Numbers:
        """What is paid along an axis in the most expensive class, after the first products."""
        shares, first = self._along[place].shares, int(ends[0])
        after = np.zeros((len(per_share), ends.size), dtype=np.int64)
        paid = per_share[:, :first] @ shares[:first]
        n_at_once = max(1, N_SUMS_MAX // max(1, shares[first : ends[-1]].size))
        for begin in range(0, len(per_share), n_at_once):
            some = slice(begin, begin + n_at_once)
            since = per_share[some, first : ends[-1], np.newaxis] * shares[first : ends[-1]]
            sums = np.cumsum(np.concatenate((paid[some, np.newaxis], since), axis=1), axis=1)
            most = np.where(self._inside[place][some, np.newaxis], sums, 0).max(axis=2)
            after[some] = most[:, ends - first]
        return after


def _of_boxes(shares: Numbers, inside: Inside) -> tuple[Numbers, Floats]:
    """The largest share and the mean one of each product, over the classes in each box."""
    known: dict[bytes, tuple[Numbers, Floats]] = {}
    names = [classes.tobytes() for classes in inside]
    for name, classes in zip(names, inside, strict=True):
        if name not in known:
            here = shares[:, classes]
            known[name] = here.max(axis=1), here.mean(axis=1)
    largest, mean = zip(*(known[name] for name in names), strict=True)
    return np.stack(largest), np.stack(mean)


def _last_axes(along: Sequence[Along], n_products: int) -> NDArray[Any]:
    """For each product, the last of its axes."""
    last = np.zeros(n_products, dtype=np.int64)
    for place, one in enumerate(along):
        last[one.places] = place
    return last


def share_of(costs: Numbers, shares: Numbers) -> Numbers:
    """A share of costs, rounded up."""
    part: Numbers = -(-costs * shares // WHOLE)
    return part
