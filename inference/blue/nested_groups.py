"""Least squares along one axis whose partitions are nested: a tree, in two passes.

Each partition's groups were counted with noise of one precision. For a query of the finest groups
this finds the coefficient of every noisy count; see Hay, Rastogi, Miklau and Suciu 2010, "Boosting
the accuracy of differentially private histograms through consistency".

Nothing here knows measurements or values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cube.classes import AxisClasses

Floats: TypeAlias = NDArray[np.float64]


def extends(chain: Sequence[AxisClasses], coarser: AxisClasses) -> bool:
    """Whether a partition is coarser than all of a chain."""
    return coarser.n_classes < chain[-1].n_classes and chain[-1].refines(coarser)


@dataclass(frozen=True, eq=False, slots=True)
class NestedGroups:
    """Nested partitions along one axis, with the precision of the counts of each.

    Parameters
    ----------
    parents : tuple of ndarray of int64
        For each level but the last, the group of the next level that contains each group.
    precisions : (n_levels,) ndarray of float64
    starts : tuple of int
        Where each level begins, when the groups of all levels follow each other; and the end.
    """

    parents: tuple[NDArray[np.int64], ...]
    precisions: Floats
    starts: tuple[int, ...]

    @classmethod
    def of(cls, chain: Sequence[AxisClasses], precisions: Floats) -> "NestedGroups":
        """The nesting of partitions, the finest first, each counted at a precision."""
        parents = tuple(coarser.parents(finer) for finer, coarser in pairwise(chain))
        starts = np.cumsum([0, *(one.n_classes for one in chain)])
        return cls(parents, precisions, tuple(starts.tolist()))

    def coefficients(self, asked: Floats, dimension: int) -> Floats:
        """The coefficients of the groups of all levels, for queries of the finest groups.

        Notes
        -----
        With ``M`` the sum over levels of precision times the levels' Gram matrices, the solution of
        ``M x = c``, summed over each group and multiplied by its precision, is the group's
        coefficient. A level adds the same number to all pairs within a group, so that the inverse
        follows from that of the finer levels (Sherman and Morrison): on the way up, `ones` and
        `sums` are those of ``M_g^-1 1`` and ``M_g^-1 c`` over each group; on the way down, what the
        coarser groups have explained is taken off.
        """
        c = np.moveaxis(asked, dimension, 0)
        ones = [np.full(c.shape[0], 1 / self.precisions[0])]
        sums = [c / self.precisions[0]]
        for parent, precision in zip(self.parents, self.precisions[1:], strict=True):
            together = _summed(ones[-1][:, np.newaxis], parent)[:, 0]
            shrunk = 1 + precision * together
            ones.append(together / shrunk)
            sums.append(_summed(sums[-1], parent) / _beside(shrunk, c))
        explained = np.zeros_like(sums[-1])
        found: list[Floats] = []
        for level in reversed(range(len(sums))):
            own = self.precisions[level] * (sums[level] - explained * _beside(ones[level], c))
            found.insert(0, own)
            if level:
                explained = (explained + own)[self.parents[level - 1]]
        return np.moveaxis(np.concatenate(found), 0, dimension)


def _beside(values: Floats, c: Floats) -> Floats:
    """A number for each of the first dimension, to be multiplied with all that follow."""
    return values.reshape((-1, *([1] * (c.ndim - 1))))


def _summed(values: Floats, parent: NDArray[np.int64]) -> Floats:
    """Sums over the groups of the next level."""
    order = np.argsort(parent, kind="stable")
    starts = np.searchsorted(parent[order], np.arange(int(parent.max()) + 1))
    return np.add.reduceat(values[order], starts, axis=0)
