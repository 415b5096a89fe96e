"""Choices among candidates: the exponential mechanism, exactly, and the scores that it weighs.

Candidate `k` is chosen with probability proportional to ``exp(weight * score_k / (2 Delta))``, with
exact scores and their sensitivity Delta. By rejection sampling: a candidate is proposed uniformly
and accepted with probability ``exp(-rate)``, where the rate is its distance from the best score, in
exact rationals; otherwise another is proposed. System entropy; there is no seed to pass.

A score says how well parents predict a child. Three scores of Zhang et al. [1]_, times the number
of records `n`, which is private and so cannot be part of a sensitivity:

    R   n R = 1/2 sum |c - r s / n|                     distance from independence
    I   n I = sum f(c) - sum f(r) - sum f(s) + f(n)     f(m) = m log2 m
    F   n F = - min over assignments of  (n/2 - K0)+ + (n/2 - K1)+

with counts `c`, their sums over parents `r` (child) and over the child `s` (parents). In F every
combination of the parents is assigned a value of the binary child; `K_x` counts the records that
have value `x` where it is assigned. The best assignment is the least number of records by which a
table falls short of one in which the parents determine the child and both its values are equally
likely: a two-sided knapsack, solved by dynamic programming over the reachable states, without those
that another state dominates or a bound excludes. The states left are at most as many as records,
and mostly a few.

Scores are whole units of 2**-20, computed in whole numbers and in correctly rounded decimals; no
binary float. Everything read, and every score, is private and a local of one call; nothing here
keeps or shows any of them. Only the place of the candidate is released.

Several scopes' counts are sums of the counts of their union. Which scopes share a read follows from
public sizes alone, and decides only how much work a choice is.

Proof: proofs/choices.md, "The exponential mechanism", "Sensitivities", "The score F is exact" and
"Counts of several scopes".

References
----------
McSherry & Talwar 2007, "Mechanism Design via Differential Privacy", section 3.

.. [1] J. Zhang, G. Cormode, C. Procopiuc, D. Srivastava, X. Xiao, "PrivBayes: Private Data Release
   via Bayesian Networks", ACM Transactions on Database Systems 42, 2017, section 4.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from secrets import randbelow
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accountant.exact.counted_together import grouping_of_views
from accountant.exact.exact_answers import check_counts
from accountant.grouping import Grouping
from accountant.noise import bernoulli_exp
from accountant.source import CellCounts
from cube.measurement import UNITS_PER_EPSILON, Weight
from cube.query import Scope
from cube.schema import Schema
from cube.statistic import Choice, ChoiceCandidate, Score

N_CELLS_TOGETHER: Final = 2**16  # few enough that adding up is less work than another read


def read_together(scopes: Iterable[Scope], sizes: Mapping[str, int]) -> dict[Scope, Scope]:
    """The scope that is read for each scope: itself, or one with further axes.

    Parameters
    ----------
    scopes : iterable of Scope
    sizes : mapping of str to int
        The number of levels of each axis.

    Notes
    -----
    Axes are dealt into groups of few combinations, and a scope is read with all axes of the groups
    that it touches. A scope of few axes then shares its read with all scopes that touch the same
    groups. An axis of many levels is a group of its own.

    Examples
    --------
    >>> together = read_together([("a", "c"), ("a", "d")], {"a": 2, "b": 2, "c": 2, "d": 99})
    >>> together["a", "c"], together["a", "d"]
    (('a', 'c'), ('a', 'c', 'd'))
    """
    asked = set(scopes)
    group = _groups({axis for scope in asked for axis in scope}, max(map(len, asked)), sizes)
    return {scope: tuple(sorted({axis for one in scope for axis in group[one]})) for scope in asked}


def _groups(axes: Iterable[str], n_touched: int, sizes: Mapping[str, int]) -> dict[str, Scope]:
    """The group of each axis: `n_touched` groups of several axes have few cells together."""
    groups: list[Scope] = []
    n_cells = 1
    for axis in sorted(axes, key=lambda axis: (sizes[axis], axis)):
        n_cells *= sizes[axis]
        if groups and n_cells**n_touched <= N_CELLS_TOGETHER:
            groups[-1] += (axis,)
        else:
            groups.append((axis,))
            n_cells = sizes[axis]
    return {axis: group for group in groups for axis in group}


PRICE_UNITS: Final = 2**16  # of one record in the bound; 2**40 records times 2**18 stay below 2**62


def least_lack(by_value: NDArray[np.int64], n_records: int) -> int:
    """The minimum over assignments of ``(n - 2 K0)+ + (n - 2 K1)+``.

    Parameters
    ----------
    by_value : (2, n_combinations) ndarray of int64
        The records of each combination whose child is 0, and those whose child is 1. ``K_x`` is
        the sum of ``by_value[x]`` over the combinations that are assigned `x`.
    n_records : int
        An upper bound on the sum of the counts.
    """
    # Floats for the order alone: any order gives the minimum
    order = np.argsort(by_value[1] / np.maximum(by_value.sum(axis=0), 1), kind="stable")
    by_value = by_value[:, order]
    zero, one = by_value
    # A first bound: assign 0 to the combinations with the largest share of 0, for every number
    prefixes = np.stack(
        [np.append(0, np.cumsum(zero)), int(one.sum()) - np.append(0, np.cumsum(one))]
    )
    lacks = _lack(prefixes, n_records)
    cut = int(lacks.argmin())
    best = int(lacks[cut])
    start = np.zeros((2, 1), dtype=np.int64)
    prices = max(
        (_prices(by_value, place) for place in (cut - 1, cut, None)),
        key=lambda prices: int(_bounds(start, by_value, prices, n_records)[0]),
    )
    # The clearest combinations first: assigning them otherwise is excluded at once
    clarity = np.abs(zero * prices[0] - one * prices[1])
    by_value = by_value[:, np.argsort(-clarity, kind="stable")]
    reached = start
    for place in range(by_value.shape[1]):
        rest = by_value[:, place + 1 :]
        reached = _with(reached, by_value[:, place])
        reached = reached[:, _bounds(reached, rest, prices, n_records) < best]
        reached = _undominated(reached)
    return min(best, int(_lack(reached, n_records).min(initial=best)))


def _lack(sums: NDArray[np.int64], n_records: int) -> NDArray[np.int64]:
    lacks: NDArray[np.int64] = np.maximum(n_records - 2 * sums, 0).sum(axis=0)
    return lacks


def _prices(by_value: NDArray[np.int64], place: int | None) -> tuple[int, int]:
    """Prices of a record of either value at which one combination is worth the same to both."""
    if place is None or not 0 <= place < by_value.shape[1]:
        return PRICE_UNITS, PRICE_UNITS
    zero, one = (int(count) for count in by_value[:, place])
    largest = max(zero, one, 1)
    return PRICE_UNITS * one // largest, PRICE_UNITS * zero // largest


def _bounds(
    reached: NDArray[np.int64], rest: NDArray[np.int64], prices: tuple[int, int], n_records: int
) -> NDArray[np.int64]:
    """The least lack of each state, however the rest is assigned."""
    priced = rest * np.array(prices)[:, np.newaxis]
    still = 2 * int(priced.max(axis=0).sum())
    lacks = prices[0] * (n_records - 2 * reached[0]) + prices[1] * (n_records - 2 * reached[1])
    bounds: NDArray[np.int64] = -((still - lacks) // PRICE_UNITS)
    return bounds


def _with(reached: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The states reached with one more combination, assigned either way."""
    zero, one = reached.copy(), reached.copy()
    zero[0] += counts[0]
    one[1] += counts[1]
    return np.concatenate((zero, one), axis=1)


def _undominated(reached: NDArray[np.int64]) -> NDArray[np.int64]:
    """The states that no other state matches in both values; of equal states, only one."""
    order = np.lexsort((-reached[1], -reached[0]))
    ones = reached[1, order]
    best_before = np.append(-1, np.maximum.accumulate(ones)[:-1])
    return reached[:, order[ones > best_before]]


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


def chosen(
    choice: Choice, weight: Weight, read: Callable[[Grouping], CellCounts], schema: Schema
) -> int:
    """The place of the chosen candidate.

    Parameters
    ----------
    choice : Choice
        A choice whose views match the schema.
    weight : Weight
        The weight that was paid.
    read : callable
        Returns the exact counts of a scope's cells; called once for each union of scopes that
        are read together.
    schema : Schema

    Raises
    ------
    ValueError
        If counts cannot be those of a table of the schema. The text reveals nothing of them.
    """
    together = _read_together(choice, schema)
    order = [place for places in together.values() for place in places]

    def tables() -> Iterator[Contingency]:
        """The candidates' tables, those of one read together."""
        for scope, places in together.items():
            counts = read(grouping_of_views(choice, scope, schema))
            check_counts(scope, counts, schema)
            yield from _tables(
                choice, [choice.candidates[place] for place in places], scope, counts
            )

    scores = dict(zip(order, grid_scores(choice.score, tables()), strict=True))
    delta = sensitivity(choice.score, schema.n_records_max)
    return exponential([scores[place] for place in range(len(scores))], delta, weight)


def exponential(scores: Sequence[int], delta: int, weight: Weight) -> int:
    """A place, with probability proportional to ``exp(weight * score / (2 * delta))``.

    Notes
    -----
    The best is accepted whenever it is proposed, so that on average there are at most as many
    proposals as scores.
    """
    best = max(scores)
    denominator = 2 * delta * UNITS_PER_EPSILON
    while True:
        place = randbelow(len(scores))
        if _survives(weight.units * (best - scores[place]), denominator):
            return place


def _survives(numerator: int, denominator: int) -> bool:
    """True with probability ``exp(-numerator / denominator)``."""
    n_whole, rest = divmod(numerator, denominator)
    return all(bernoulli_exp(1, 1) for _ in range(n_whole)) and bernoulli_exp(rest, denominator)


def _read_together(choice: Choice, schema: Schema) -> dict[Scope, list[int]]:
    """The tables to read, each with the places of the candidates whose tables follow from it."""
    scopes = [choice.scope(candidate) for candidate in choice.candidates]
    sizes = {axis.name: axis.size for axis in schema.axes}
    wider = read_together(scopes, sizes)
    places: dict[Scope, list[int]] = {}
    for place, scope in enumerate(scopes):
        places.setdefault(wider[scope], []).append(place)
    return places


def _tables(
    choice: Choice, candidates: Sequence[ChoiceCandidate], scope: Scope, counts: CellCounts
) -> Iterator[Contingency]:
    """Candidates' contingency tables, from the counts of a scope with all of their axes."""
    used = {place for one in candidates for place in (one.child, *one.parents)}
    classes = {
        place: view.labels[counts.levels[scope.index(view.axes[0])]]
        for place, view in ((place, choice.views[place]) for place in used)
    }
    for one in candidates:
        parents = [(classes[place], choice.views[place].n_groups) for place in one.parents]
        yield Contingency.of(classes[one.child], parents, counts.counts)
