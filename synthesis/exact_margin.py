"""Values of rows changed so that every level has the count that it should have.

A law that was fitted to contradictory tables, or to a sample of the rows, gives a column's counts
only nearly, and rounding adds to that. The rows that change are those whose own law is least
against it.
"""

from dataclasses import dataclass

import numpy as np

from synthesis.conditional import Conditional
from synthesis.tables import Floats, Integers

N_LOOKED_AT = 16  # rows, for each that has to change
N_LOOKED_AT_MIN = 200_000  # in all, if there are as many: rows that may change can be rare
N_CELLS_AT_ONCE = 2**20  # of rows and levels, so that memory does not grow with the rows
LEAST_SHARE = 1e-9  # of a level in a row's law


@dataclass(frozen=True, eq=False)
class RowLaws:
    """The law of a column in each row.

    Parameters
    ----------
    law : Conditional
        Of the levels, given the partners.
    combinations : (n_combinations, n_partners) ndarray of int64
        Partners' groups.
    of_row : (n_rows,) ndarray of int64
        The combination of each row.
    """

    law: Conditional
    combinations: Integers
    of_row: Integers

    def given(self, rows: Integers) -> Floats:
        """Shares of the levels in some rows, (n_rows, n_levels)."""
        return self.law.given(self.combinations[self.of_row[rows]])


def with_counts(
    values: Integers, wanted: Integers, laws: RowLaws, rng: np.random.Generator
) -> Integers:
    """The values, with as few of them changed as the wanted counts need.

    Parameters
    ----------
    values : (n_rows,) ndarray of int64
        Levels.
    wanted : (n_levels,) ndarray of int64
        With sum `n_rows`.
    laws : RowLaws
    rng : numpy.random.Generator

    Returns
    -------
    (n_rows,) ndarray of int64
    """
    surplus = np.bincount(values, minlength=wanted.size) - wanted
    missing = np.maximum(-surplus, 0)
    too_many = np.flatnonzero(surplus > 0)
    changed = values.copy()
    for level in rng.permutation(too_many).tolist():
        n_to_change = int(surplus[level])
        rows = np.flatnonzero(values == level)
        n_looked_at = max(N_LOOKED_AT * n_to_change, N_LOOKED_AT_MIN // too_many.size)
        if rows.size > n_looked_at:
            rows = rng.choice(rows, n_looked_at, replace=False)
        keys = _keys(rows, level, missing, laws, rng)
        chosen = rng.permutation(rows[np.argsort(-keys, kind="stable")[:n_to_change]])
        for row, given in zip(chosen.tolist(), laws.given(chosen), strict=True):
            changed[row] = _level(given, missing, rng)
            missing[changed[row]] -= 1
    return changed


def _keys(
    rows: Integers, level: int, missing: Integers, laws: RowLaws, rng: np.random.Generator
) -> Floats:
    """Random numbers for rows that have a level: those with the largest are to change.

    Notes
    -----
    Weighted sampling without replacement [1]_: a row's weight is how much likelier the missing
    levels are in it than the level that it has.

    References
    ----------
    .. [1] P. S. Efraimidis, P. G. Spirakis, "Weighted Random Sampling with a Reservoir",
       Information Processing Letters 97, 2006.
    """
    n_at_once = max(1, N_CELLS_AT_ONCE // missing.size)
    combinations, of_row = np.unique(laws.of_row[rows], return_inverse=True)
    weights = []
    for start in range(0, combinations.size, n_at_once):
        some = combinations[start : start + n_at_once]
        shares = laws.law.given(laws.combinations[some])
        weights.append(shares[:, missing > 0].sum(axis=1) / (shares[:, level] + LEAST_SHARE))
    weight = np.maximum(np.concatenate(weights)[of_row], LEAST_SHARE)
    return np.asarray(np.log(rng.random(rows.size)) / weight, dtype=np.float64)


def _level(given: Floats, missing: Integers, rng: np.random.Generator) -> int:
    """One of the missing levels: by its share in the row's law, and by how many are missing."""
    weights = np.cumsum(given * missing)
    if not weights[-1] > 0:
        weights = np.cumsum(missing.astype(np.float64))
    return int(np.searchsorted(weights, rng.random() * weights[-1], side="right"))
