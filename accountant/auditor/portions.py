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

N_ROUNDS: Final = 24
STEP: Final = 3.0
SLOWER: Final = 0.7  # a round that gains nothing makes the next steps this much smaller
LEAST: Final = 1e-9

Inside = NDArray[np.bool_]
Floats = NDArray[np.float64]


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
            self._mean_left.append(1 - mean / self._largest[-1])

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

    def bounds(self, wanted: int) -> Numbers:
        """A bound for each box; better portions are looked for while one is above `wanted`."""
        portions = self._shared_out([left + LEAST for left in self._mean_left])
        best = [one.copy() for one in portions]
        lowest, paid = self._tried(portions)
        step = np.full((lowest.size, 1), STEP)
        for _ in range(N_ROUNDS):
            if (lowest <= wanted).all():
                break
            moved = [own * np.exp(-step * full) for own, full in zip(portions, paid, strict=True)]
            portions = self._shared_out(moved)
            found, paid = self._tried(portions)
            is_lower = found < lowest
            lowest = np.minimum(found, lowest)
            step[~is_lower] *= SLOWER
            for kept, own in zip(best, portions, strict=True):
                kept[is_lower] = own[is_lower]
        return self._bounds_of(best)

    def _shared_out(self, portions: Sequence[Floats]) -> list[Floats]:
        """Portions of each product that sum to one."""
        total = np.zeros(self.costs.shape)
        for own, one in zip(portions, self._along, strict=True):
            total[:, one.places] += own
        return [own / total[:, one.places] for own, one in zip(portions, self._along, strict=True)]

    def _tried(self, portions: Sequence[Floats]) -> tuple[Floats, list[Floats]]:
        """About the bounds, and how far each product is paid in the most expensive classes."""
        lowest = np.zeros(len(self.costs))
        paid = []
        for place, own in enumerate(portions):
            one, largest = self._along[place], self._largest[place]
            sums = (own * self.costs[:, one.places] / largest) @ one.shares
            sums[~self._inside[place]] = -1.0
            worst = sums.argmax(axis=1)
            lowest += sums[np.arange(worst.size), worst]
            paid.append(one.shares[:, worst].T / largest)
        return lowest, paid

    def _bounds_of(self, portions: Sequence[Floats]) -> Numbers:
        """The bounds, in whole numbers, of whatever portions: the last axis has what is left."""
        left = self.costs.copy()
        last = _last_axes(self._along, left.shape[1])
        total = np.zeros(len(left), dtype=np.int64)
        for place, own in enumerate(portions):
            one = self._along[place]
            rounded = np.floor(own * self.costs[:, one.places])
            part = np.clip(rounded, 0, left[:, one.places]).astype(np.int64)  # all below 2**53
            part = np.where(last[one.places] == place, left[:, one.places], part)
            left[:, one.places] -= part
            sums = -(-part * WHOLE // self._largest[place]) @ one.shares
            total += np.where(self._inside[place], sums, 0).max(axis=1)
        bounds: Numbers = total // WHOLE  # a cost is a whole number, and at most this
        return bounds


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
