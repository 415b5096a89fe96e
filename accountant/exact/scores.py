"""Scores: how well parents predict a child, from exact counts; and the scores' sensitivities.

Three scores of Zhang et al. [1]_, times the number of records `n`, which is private and so cannot
be part of a sensitivity:

    R   n R = 1/2 sum |c - r s / n|                     distance from independence
    I   n I = sum f(c) - sum f(r) - sum f(s) + f(n)     f(m) = m log2 m
    F   n F = - min over assignments of  (n/2 - K0)+ + (n/2 - K1)+

with counts `c`, their sums over parents `r` (child) and over the child `s` (parents). In F every
combination of the parents is assigned a value of the binary child; `K_x` counts the records that
have value `x` where it is assigned.

Scores are whole units of 2**-20, computed in whole numbers and in correctly rounded decimals; no
binary float. They are private: nothing here keeps or shows any of them.

Proof: proofs/choices.md, "Sensitivities".

References
----------
.. [1] J. Zhang, G. Cormode, C. Procopiuc, D. Srivastava, X. Xiao, "PrivBayes: Private Data Release
   via Bayesian Networks", ACM Transactions on Database Systems 42, 2017, section 4.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accountant.exact.assignment import least_lack
from cube.statistic import Score

SCORE_UNITS: Final = 2**20  # of one record
N_SMALL_MAX: Final = 2**31  # a number of records whose square fits into int64
N_CELLS_DENSE_MAX: Final = 2**20  # up to here all cells are numbered; beyond, only occupied ones
N_DIGITS: Final = 30  # n log2 n for n = 2**40, in units of 2**-20, has 20 before the point


@dataclass(frozen=True, eq=False, repr=False)
class Contingency:
    """Exact counts of the occupied cells of child times parents. Private.

    Parameters
    ----------
    child, parents : (n_cells,) ndarray of int64
        The class of each cell's child, and the number of its combination of parents' classes.
    counts : (n_cells,) ndarray of int64
        Positive. No two cells are the same.
    """

    child: NDArray[np.int64]
    parents: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        child: NDArray[np.int64],
        parents: Iterable[tuple[NDArray[np.int64], int]],
        counts: NDArray[np.int64],
    ) -> "Contingency":
        """Add up the counts of equal classes.

        Parameters
        ----------
        child : (n,) ndarray of int64
        parents : iterable of ((n,) ndarray of int64, int)
            The classes of each parent, and their number.
        counts : (n,) ndarray of int64
        """
        combination, n_combinations = np.zeros_like(child), 1
        for classes, n_classes in parents:
            combination, n_combinations = _paired(combination, n_combinations, classes, n_classes)
        n_child = int(child.max(initial=0)) + 1
        cell, n_cells = _paired(combination, n_combinations, child, n_child)
        summed = _sums(cell, counts, n_cells)
        of_child, of_parents = np.zeros_like(summed), np.zeros_like(summed)
        of_child[cell], of_parents[cell] = child, combination
        occupied = np.flatnonzero(summed)
        return cls(of_child[occupied], of_parents[occupied], summed[occupied])

    def __repr__(self) -> str:
        return "Contingency(<private>)"

    @property
    def n_records(self) -> int:
        """The number of records."""
        return int(self.counts.sum())

    @property
    def of_child(self) -> NDArray[np.int64]:
        """The number of records of each class of the child."""
        return _sums(self.child, self.counts, int(self.child.max(initial=0)) + 1)

    @property
    def of_parents(self) -> NDArray[np.int64]:
        """The number of records of each combination of the parents."""
        return _sums(self.parents, self.counts, int(self.parents.max(initial=0)) + 1)


def sensitivity(score: Score, n_records_max: int) -> int:
    """The most units by which one record, added or removed, moves a score.

    Parameters
    ----------
    score : Score
    n_records_max : int
        A public bound on the number of records, including the added one.
    """
    match score:
        case Score.DISTANCE:
            return 2 * SCORE_UNITS
        case Score.INFORMATION:
            return _n_log_n(n_records_max) - _n_log_n(n_records_max - 1) + 5
        case Score.FULL_DEPENDENCE:
            return SCORE_UNITS


def grid_scores(score: Score, tables: Iterable[Contingency]) -> list[int]:
    """The scores of tables, in whole units of 2**-20. Private."""
    match score:
        case Score.DISTANCE:
            return [_distance(table) for table in tables]
        case Score.INFORMATION:
            known: dict[int, int] = {}  # one count occurs in many tables
            return [_information(table, known) for table in tables]
        case Score.FULL_DEPENDENCE:
            return [_full_dependence(table) for table in tables]


def _distance(table: Contingency) -> int:
    """``n R``, rounded down.

    The differences ``c - r s / n`` sum to zero, so half the sum of their magnitudes is the sum of
    the positive ones, which are at occupied cells.
    """
    n = table.n_records
    if n == 0:
        return 0
    counts, child, parents = (
        _wide(array, n) for array in (table.counts, table.of_child, table.of_parents)
    )
    excess = n * counts - child[table.child] * parents[table.parents]
    return int(excess[excess > 0].sum()) * SCORE_UNITS // n


def _information(table: Contingency, known: dict[int, int]) -> int:
    """``n I``, each of its terms rounded down."""

    def total(counts: NDArray[np.int64]) -> int:
        numbers, times = np.unique(counts, return_counts=True)
        for number in numbers.tolist():
            if number not in known:
                known[number] = _n_log_n(number)
        return sum(
            known[number] * n for number, n in zip(numbers.tolist(), times.tolist(), strict=True)
        )

    n = np.array([table.n_records])
    return total(table.counts) + total(n) - total(table.of_child) - total(table.of_parents)


def _n_log_n(n: int) -> int:
    """``n log2 n`` in units of 2**-20, rounded down, with an error below one unit. 0 for 0."""
    if n <= 1:
        return 0
    context = Context(prec=N_DIGITS)
    bits = context.divide(context.ln(Decimal(n)), context.ln(Decimal(2)))
    units = context.multiply(Decimal(n * SCORE_UNITS), bits)
    return int(units.to_integral_value(ROUND_FLOOR))


def _full_dependence(table: Contingency) -> int:
    """``n F``, exactly: twice the lack is a whole number."""
    by_value = np.zeros((2, table.of_parents.size), dtype=np.int64)
    by_value[table.child, table.parents] = table.counts
    return -least_lack(by_value, table.n_records) * (SCORE_UNITS // 2)


def _wide(array: NDArray[np.int64], n_records: int) -> NDArray[Any]:
    """The array in a type that holds the square of `n_records`: Python integers if needed."""
    return array if n_records <= N_SMALL_MAX else array.astype(object)


def _sums(groups: NDArray[np.int64], counts: NDArray[np.int64], n_groups: int) -> NDArray[np.int64]:
    """The sum of the counts of each group."""
    sums = np.zeros(n_groups, dtype=np.int64)
    np.add.at(sums, groups, counts)
    return sums


def _paired(
    first: NDArray[np.int64], n_first: int, second: NDArray[np.int64], n_second: int
) -> tuple[NDArray[np.int64], int]:
    """Number the pairs of two classes, all of them or only those that occur; and how many.

    int64 is enough: there are at most as many first classes as rows or cells in memory, and at most
    `N_GROUPS_MAX` second classes.
    """
    pairs = first * n_second + second
    if n_first * n_second <= N_CELLS_DENSE_MAX:
        return pairs, n_first * n_second
    occurring, numbers = np.unique(pairs, return_inverse=True)
    return numbers.astype(np.int64), occurring.size
