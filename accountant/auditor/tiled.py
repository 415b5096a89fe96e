"""Groups over several axes, one of them with many levels: numbers of products of classes of levels.

A ledger writes the class of each level along every axis as runs, and then the group of each product
of classes. Nothing here knows weights or charges. Proof: proofs/ledger.md, "Along a column of many
levels".
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accountant.auditor.curves import Curve
from accountant.auditor.wrong import Wrong

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tiled:
    """An array over the levels of several axes.

    Parameters
    ----------
    along : tuple of Curve
        The class of each level of each axis.
    values : (n_classes of the first axis, ...) ndarray of int64
    """

    along: tuple[Curve, ...]
    values: Numbers

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each axis."""
        return tuple(one.size for one in self.along)

    def at(self, places: Sequence[NDArray[np.intp]]) -> Numbers:
        """The numbers at levels of each axis, which broadcast against each other."""
        classes = tuple(one.at(place) for one, place in zip(self.along, places, strict=True))
        return np.asarray(self.values[classes], dtype=np.int64)

    def at_least_zero(self) -> "Tiled":
        """1 where the number is not negative, 0 elsewhere."""
        return Tiled(self.along, (self.values >= 0).astype(np.int64))


def n_classes(classes: Curve) -> int:
    """The number of classes; Wrong if they are not numbered from 0."""
    found = np.unique(classes.at(classes.starts))
    if not classes.is_flat or not np.array_equal(found, np.arange(found.size)):
        raise Wrong("classes that are not numbered 0, 1, 2, ...")
    return int(found.size)
