"""The best of all graphs, by dynamic programming over sets of columns.

For at most `N_COLUMNS_MAX` columns: time and memory double with each.
"""

from itertools import combinations
from typing import Final

import numpy as np

from synthesis.networks.graph import Dag
from synthesis.networks.score import BicScore
from synthesis.tables import Floats, Integers

N_COLUMNS_MAX: Final = 16  # 2**16 sets for each: 16 MB, a second; scores take longer (`work`)


class TooManyColumns(ValueError):
    """An exact search was asked for more columns than it can search."""


def best_network(score: BicScore) -> Dag:
    """A graph with the highest score of all, among those whose parents the score allows.

    Raises
    ------
    TooManyColumns
        If there are more than `N_COLUMNS_MAX` columns.

    Notes
    -----
    Some column of a graph has no children. The best graph over a set of columns is therefore the
    best one over all but such a column, with its best parents among them [1]_. For each column the
    best parents within every set of others come first, then the best last column of every set.

    Other graphs of the same equivalence class have the same score, so its directions mean no more
    than the class says (`graph.EquivalenceClass`).

    References
    ----------
    .. [1] T. Silander, P. Myllymaki, "A simple approach for finding the globally optimal Bayesian
       network structure", UAI 2006.
    """
    n_columns = len(score.columns)
    if n_columns > N_COLUMNS_MAX:
        raise TooManyColumns(
            f"{n_columns} columns are too many for an exact search: at most {N_COLUMNS_MAX}"
        )
    values, chosen = _best_parents(score)
    last = _last_columns(values)
    parents: list[list[int]] = [[] for _ in range(n_columns)]
    left = 2**n_columns - 1
    while left:
        child = int(last[left])
        left &= ~(1 << child)
        parents[child] = _members(int(chosen[child, left]))
    return Dag.of_parents([one.name for one in score.columns], parents)


def _best_parents(score: BicScore) -> tuple[Floats, Integers]:
    """For each column and each set of columns, the best score with parents in the set, and them.

    Sets are numbers, with a bit for each column. A column's own bit counts for nothing.
    """
    n_columns = len(score.columns)
    values = np.full((n_columns, 2**n_columns), -np.inf)
    chosen = np.zeros((n_columns, 2**n_columns), dtype=np.int64)
    for width in range(1, min(score.degree + 1, n_columns) + 1):
        for scope in combinations(range(n_columns), width):
            for child in scope:  # one after another, since they share a table
                own = [place for place in scope if place != child]
                if score.may_have(child, own):
                    among = sum(1 << place for place in own)
                    values[child, among] = score.local(child, own)
                    chosen[child, among] = among
    for bit in range(n_columns):
        # Each set beside the one that has this column as well: what is best without it may stay.
        split = (n_columns, -1, 2, 2**bit)
        value, best = values.reshape(split), chosen.reshape(split)
        is_better = value[:, :, 0] > value[:, :, 1]
        value[:, :, 1] = np.where(is_better, value[:, :, 0], value[:, :, 1])
        best[:, :, 1] = np.where(is_better, best[:, :, 0], best[:, :, 1])
    return values, chosen


def _last_columns(values: Floats) -> Integers:
    """A column without children of the best graph over each set of columns."""
    n_columns = len(values)
    sets = np.arange(2**n_columns)
    n_members = sum((sets >> place) & 1 for place in range(n_columns))
    best = np.full(2**n_columns, -np.inf)
    best[0] = 0.0
    last = np.zeros(2**n_columns, dtype=np.int64)
    for size in range(1, n_columns + 1):
        of_size = sets[n_members == size]
        for child in range(n_columns):
            ending = of_size[(of_size >> child) & 1 == 1]
            before = ending & ~(1 << child)
            total = best[before] + values[child, before]
            is_better = total > best[ending]
            best[ending[is_better]] = total[is_better]
            last[ending[is_better]] = child
    return last


def _members(among: int) -> list[int]:
    """The places in a set."""
    return [place for place in range(among.bit_length()) if among >> place & 1]
