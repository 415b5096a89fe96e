"""The parents that a column may have: sets that keep its table useful and cannot be extended.

Everything follows from public sizes and one number of cells, so it costs nothing.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias

from cube.statistic import N_CANDIDATES_MAX
from synthesis.privbayes.attributes import Attribute

# Places of columns, each with the number of its view, ascending.
ParentSet: TypeAlias = tuple[tuple[int, int], ...]

N_FINEST_MAX: Final = 2**20  # combinations of the finest levels of a table's columns: 8 MB
N_COLUMNS_MAX: Final = 256  # so that all pairs of a child and a single parent fit in one choice


def useful_cells(budget: float, n_tables: int, n_rows: float, theta: float) -> float:
    """The most cells of a table at which a cell's average count is `theta` times its noise.

    Parameters
    ----------
    budget : float
        For all tables, in equal parts.
    n_tables : int
    n_rows : float
        The approximate number of rows: a public or a noisy number.
    theta : float
        The required usefulness.

    Notes
    -----
    A table of `m` cells has ``n / m`` rows in a cell on average. Neighbouring tables differ by one
    record, added or removed, so the noise of each of `d` tables has the scale ``d / eps2``, which
    is also its mean magnitude. Usefulness is the ratio of the two [1]_, hence
    ``m <= n eps2 / (d theta)``. The published bound has a 2 in the denominator: its neighbours have
    one record replaced, so its epsilon buys half as much. At the same noise scale the two bounds
    are equal.

    References
    ----------
    .. [1] J. Zhang, G. Cormode, C. Procopiuc, D. Srivastava, X. Xiao, "PrivBayes: Private Data
       Release via Bayesian Networks", ACM Transactions on Database Systems 42, 2017, section 4.5.
    """
    return max(0.0, n_rows) * budget / (n_tables * theta)


def maximal_parent_sets(
    sizes: Sequence[Sequence[int]],
    n_cells_max: float,
    degree: int,
    n_finest_max: float = N_FINEST_MAX,
) -> Iterator[ParentSet]:
    """The sets of parents that cannot be extended.

    Parameters
    ----------
    sizes : sequence of sequence of int
        The number of classes of each column at each of its views, the finest first.
    n_cells_max : float
        For the product of the sizes of a set.
    degree : int
        The most columns of a set.
    n_finest_max : float
        For the product of the sizes of a set's columns at their finest.

    Yields
    ------
    Sets with at least one column: no column can be added at any view, and no column can have a
    finer view, without exceeding a bound.
    """
    finest = [max(levels, default=math.inf) for levels in sizes]
    coarsest = [min(levels, default=math.inf) for levels in sizes]

    def can_grow(parents: ParentSet, n_cells: int, n_finest: float) -> bool:
        if len(parents) == degree:
            return False
        taken = {place for place, _ in parents}
        return any(
            n_cells * coarsest[place] <= n_cells_max and n_finest * finest[place] <= n_finest_max
            for place in range(len(sizes))
            if place not in taken
        )

    def can_refine(parents: ParentSet, n_cells: int) -> bool:
        return any(
            n_cells // sizes[place][level] * sizes[place][level - 1] <= n_cells_max
            for place, level in parents
            if level > 0
        )

    def extended(
        parents: ParentSet, n_cells: int, n_finest: float, start: int
    ) -> Iterator[ParentSet]:
        if parents and not (can_grow(parents, n_cells, n_finest) or can_refine(parents, n_cells)):
            yield parents
        if len(parents) == degree:
            return
        for place in range(start, len(sizes)):
            n_behind = n_finest * finest[place]
            for level, size in enumerate(sizes[place]):
                if n_cells * size <= n_cells_max and n_behind <= n_finest_max:
                    more = (*parents, (place, level))
                    yield from extended(more, n_cells * size, n_behind, place + 1)

    return extended((), 1, 1, 0)


def possible_roots(
    attributes: Sequence[Attribute], before: Sequence[int], n_cells_max: float
) -> list[int]:
    """The remaining columns that can be a parent of another of them; if none can, all of them."""
    left = [place for place in range(len(attributes)) if place not in set(before)]

    def is_parent_of_any(place: int) -> bool:
        size = min(attributes[place].parent_sizes, default=0)
        others = (attributes[other].size for other in left if other != place)
        return size > 0 and size * min(others, default=0) <= n_cells_max

    return [place for place in left if is_parent_of_any(place)] or left


def candidate_pairs(
    attributes: Sequence[Attribute],
    before: Sequence[int],
    n_cells_max: float,
    degree: int,
    n_max: int = N_CANDIDATES_MAX,
) -> tuple[list[tuple[int, ParentSet]], int]:
    """Each remaining column with each of its maximal sets of parents, and the degree that is used.

    Parameters
    ----------
    attributes : sequence of Attribute
    before : sequence of int
        Places of the columns that are in the network already.
    n_cells_max : float
        For a table, of child and parents.
    degree : int
        The most parents.
    n_max : int
        The most candidates. While there are more, the degree is lowered by one.

    Returns
    -------
    pairs : list of (int, ParentSet)
        Without columns that have no parents.
    degree : int
        At most the requested degree.
    """
    left = [place for place in range(len(attributes)) if place not in set(before)]
    among = sorted(before)
    sizes = [attributes[place].parent_sizes for place in among]

    def pairs(degree: int) -> Iterator[tuple[int, ParentSet]]:
        known: dict[int, list[ParentSet]] = {}
        for child in left:
            size = attributes[child].size
            if size not in known:
                most, finest = n_cells_max / size, N_FINEST_MAX / size
                sets = maximal_parent_sets(sizes, most, degree, finest)
                known[size] = [
                    tuple((among[place], level) for place, level in parents)
                    for parents in islice(sets, n_max + 1)
                ]
            yield from ((child, parents) for parents in known[size])

    while len(found := list(islice(pairs(degree), n_max + 1))) > n_max:
        degree -= 1
    return found, degree
