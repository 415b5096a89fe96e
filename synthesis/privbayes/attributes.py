"""Columns as a network sees them: at their finest, and at coarser levels as parents.

Public values only: which levels of a column go together is declared, or follows from the schema.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cube.query import Partition
from cube.runtime import cached_property
from synthesis.tables import Integers


@dataclass(frozen=True, eq=False)
class Attribute:
    """A column, and the views of it that candidates may have.

    Parameters
    ----------
    name : str
        The axis.
    views : tuple of Partition
        Partitions of all levels of that axis. Rows consist of classes of the first view; each
        further view merges classes of the one before, into at least two. A column may be a parent
        at any view.
    """

    name: str
    views: tuple[Partition, ...]

    def __post_init__(self) -> None:
        if not self.views:
            raise ValueError(f"{self.name} has no view")
        for view in self.views:
            if view.axes != (self.name,) or int(view.labels.min()) < 0:
                raise ValueError(f"a view of {self.name} is a partition of all its levels")
        for finer, coarser in zip(self.views, self.views[1:], strict=False):
            merged = np.unique(np.stack([finer.labels, coarser.labels]), axis=1)
            if merged.shape[1] != finer.n_groups or not 1 < coarser.n_groups < finer.n_groups:
                raise ValueError(f"a coarser view of {self.name} merges classes of the finer one")

    @classmethod
    def plain(cls, name: str, size: int) -> "Attribute":
        """A column with its levels as the only view."""
        return cls(name, (Partition((name,), np.arange(size)),))

    @property
    def size(self) -> int:
        """The number of classes in rows: those of the finest view."""
        return self.views[0].n_groups

    @property
    def parent_sizes(self) -> tuple[int, ...]:
        """The number of classes at each view; empty for a column with only one class."""
        return tuple(view.n_groups for view in self.views if view.n_groups > 1)

    @cached_property
    def classes(self) -> tuple[Integers, ...]:
        """For each view, the class of every class of the finest view."""
        finest, first = np.unique(self.views[0].labels, return_index=True)
        if not np.array_equal(finest, np.arange(self.size)):
            raise ValueError("a partition must number its groups consecutively")
        return tuple(view.labels[first] for view in self.views)


def check_distinct(attributes: Sequence[Attribute]) -> None:
    """Raise ValueError if there are none, or two with the same name."""
    if not attributes or len({one.name for one in attributes}) != len(attributes):
        raise ValueError("columns must have distinct names, and at least one is needed")
