"""Describes users who came or left in one message, with the predicates that held for them.

An estimator counts some events only: that of everybody counts all of them, that of a predicate
arrivals for which it held. Who leaves, leaves every estimator.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Truth: TypeAlias = bool | NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Users, in the order in which they came.

    Parameters
    ----------
    ids : (n,) ndarray of int64
    present : bool or (n,) ndarray of bool
        Whether they arrived, or which of them; the others left.
    where : mapping of str to (bool or (n,) ndarray of bool)
        By predicate, whether it held for those who arrived, or for which of them. A predicate that
        is not given held for none of them.
    """

    ids: NDArray[np.int64]
    present: Truth = True
    where: Mapping[str, Truth] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for one in (self.present, *self.where.values()):
            if isinstance(one, np.ndarray) and one.shape != self.ids.shape:
                raise ValueError(
                    "a truth value must be one bool for all users, or an array with one bool for "
                    "each"
                )

    @property
    def has_departures(self) -> bool:
        """Whether anybody left."""
        return not np.all(self.present)

    def counted(self, predicate: str | None) -> "Arrivals":
        """The events that an estimator counts: of a predicate, or of everybody.

        Parameters
        ----------
        predicate : str, optional
        """
        if predicate is None:
            return Arrivals(self.ids, self.present)
        holds = self.where.get(predicate, False)
        if holds is True:
            return Arrivals(self.ids, self.present)
        counted = np.broadcast_to(holds | np.logical_not(self.present), self.ids.shape)
        present = self.present if isinstance(self.present, bool) else self.present[counted]
        return Arrivals(self.ids[counted], present)

    @property
    def last_states(self) -> tuple[tuple[NDArray[np.int64], bool], ...]:
        """Who is present in the end, and who is not: the last event of each user stands."""
        if not isinstance(self.present, np.ndarray) or self.present.all():
            return ((self.ids, bool(np.all(self.present))),)
        last = _last_of_each(self.ids)
        arrived = self.present[last]
        return (self.ids[last[arrived]], True), (self.ids[last[~arrived]], False)


def _last_of_each(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of the last one of each id; of no two are the ids equal."""
    _, from_behind = np.unique(ids[::-1], return_index=True)
    return ids.size - 1 - from_behind
