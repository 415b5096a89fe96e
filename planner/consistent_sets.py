"""Counts of overlapping groups that are to agree: how, and which tables they are."""

from dataclasses import dataclass
from enum import StrEnum


class Consistency(StrEnum):
    """How counts of overlapping groups are made to agree.

    Raw tables as measured; the closest tables that agree; tables that are also nowhere negative;
    the marginals of one joint table.
    """

    RAW = "raw"
    EXACT = "exact"
    NONNEGATIVE = "nonnegative"
    GLOBAL = "global"


@dataclass(frozen=True, slots=True)
class ConsistentSets:
    """The grouping sets of a part as tables whose counts are to agree.

    Parameters
    ----------
    consistency : Consistency
    sets : tuple of tuple of int
        The keys of each set, by their positions; rows are in their order, the last key varying
        fastest.
    sizes : tuple of int
        The number of values of each key.
    """

    consistency: Consistency
    sets: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
