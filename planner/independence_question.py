"""A test of independence, as a question to the engine about the counts of one table."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IndependenceQuestion:
    """Whether the first two keys of a part are independent given the others.

    The part's only aggregate counts the cells of their table, the last key varying fastest.

    Parameters
    ----------
    shape : tuple of int
        The number of values of each key.
    level : float
        The probability of rejecting a true hypothesis.
    n_replicates : int
        The number of simulated tables.
    """

    shape: tuple[int, ...]
    level: float
    n_replicates: int
