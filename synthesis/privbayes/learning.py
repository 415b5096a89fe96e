"""The PrivBayes method: chooses useful parents greedily, and measures a table for each column.

The parents that a column may have: sets that keep its table useful and cannot be extended.

Everything follows from public sizes and one number of cells, so it costs nothing.

Only the flow. Reading private data is a port: its implementation pays for it. Neighbouring tables
differ by one record, added or removed, so the number of records is private.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Final, Protocol, TypeAlias

import numpy as np

from cube.query import N_GROUPS_MAX, Partition
from cube.statistic import N_CANDIDATES_MAX, N_PARENTS_MAX, Choice, ChoiceCandidate, Score
from synthesis.privbayes.network import (
    Attribute,
    BayesianNetwork,
    Node,
    Parent,
    check_distinct,
    fitted_network,
)
from synthesis.tables import Floats

# Places of columns, each with the number of its view, ascending.
ParentSet: TypeAlias = tuple[tuple[int, int], ...]

N_FINEST_MAX: Final = 2**20  # combinations of the finest levels of a table's columns: 8 MB
N_COLUMNS_MAX: Final = 256  # so that all pairs of a child and a single parent fit in one choice


def useful_cells(budget: float, n_tables: int, n_rows: float, theta: float) -> float:
    """The most cells of a table at which a cell's average count is `theta` times its noise.

    Parameters
    ----------
    budget : float
        The budget for all tables, divided into equal parts.
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
        The most cells of a table of a child and its parents.
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


N_BINARY: Final = 2


class ChoiceMeasurer(Protocol):
    """The only access to private data; what it returns is released and paid for."""

    def choose(self, choice: Choice, budget: Fraction) -> int:
        """The place of the chosen candidate, at a weight of at most `budget`."""
        ...

    def tables(self, views: Sequence[tuple[Partition, ...]], budget: Fraction) -> Sequence[Floats]:
        """Measure tables over the classes of views, each at a weight of at most `budget`.

        Returns
        -------
        Noisy counts, with one axis for each view of a tuple, in its order.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningSettings:
    """The parameters of the method.

    Parameters
    ----------
    score : Score
        F is for columns of two classes; parents of others are chosen by R.
    network_share : Fraction
        Share of the budget for the choice of the network; the rest is for tables.
    theta : float
        The least usefulness of a table: the average count of a cell over its average noise.
    degree : int
        The most parents of a column.
    """

    score: Score = Score.DISTANCE
    network_share: Fraction = Fraction(3, 10)
    theta: float = 4.0
    degree: int = 3

    def __post_init__(self) -> None:
        if not (0 < self.network_share < 1 and self.theta > 0):
            raise ValueError("network_share must be between 0 and 1, and theta above 0")
        if not 0 <= self.degree <= N_PARENTS_MAX:
            raise ValueError(f"a column must have 0 to {N_PARENTS_MAX} parents")


DEFAULTS = LearningSettings()


def learned_network(  # noqa: PLR0913 - what to buy, from whom, and how, which is by keyword
    attributes: Sequence[Attribute],
    measurer: ChoiceMeasurer,
    rng: np.random.Generator,
    *,
    budget: Fraction,
    n_rows: float,
    settings: LearningSettings = DEFAULTS,
) -> BayesianNetwork:
    """Buy a network and its tables.

    Parameters
    ----------
    attributes : sequence of Attribute
    measurer : ChoiceMeasurer
    rng : numpy.random.Generator
        Chooses the first column; protects nothing.
    budget : Fraction
        Never exceeded. What the choices do not use is spent on tables.
    n_rows : float
        The approximate number of rows, public or noisy: it decides which tables are useful.
    settings : LearningSettings

    Notes
    -----
    With `d` columns, each of at most ``d - 1`` choices has an equal part of the network's share of
    the budget, and each of `d` tables an equal part of the rest [1]_. A choice with one candidate
    costs nothing.

    References
    ----------
    .. [1] J. Zhang, G. Cormode, C. Procopiuc, D. Srivastava, X. Xiao, "PrivBayes: Private Data
       Release via Bayesian Networks", ACM Transactions on Database Systems 42, 2017.
    """
    nodes, measured = bought_tables(
        attributes, measurer, rng, budget=budget, n_rows=n_rows, settings=settings
    )
    return fitted_network(attributes, nodes, measured)


def bought_tables(  # noqa: PLR0913 - what to buy, from whom, and how, which is by keyword
    attributes: Sequence[Attribute],
    measurer: ChoiceMeasurer,
    rng: np.random.Generator,
    *,
    budget: Fraction,
    n_rows: float,
    settings: LearningSettings = DEFAULTS,
) -> tuple[list[Node], Sequence[Floats]]:
    """The nodes of a network and a noisy table for each; see `learned_network`.

    Returns
    -------
    nodes : list of Node
    tables : sequence of (n_classes of child, n_classes of parent, ...) ndarray of float64
    """
    check_affords(attributes, budget)
    tables = budget * (1 - settings.network_share)
    n_useful = useful_cells(float(tables), len(attributes), n_rows, settings.theta)
    n_cells_max = min(n_useful, N_GROUPS_MAX)
    price = budget * settings.network_share / max(1, len(attributes) - 1)
    n_paid = 0

    def choose(choice: Choice) -> int:
        nonlocal n_paid
        n_paid += 1
        return measurer.choose(choice, price)

    nodes = chosen_nodes(attributes, choose, rng, n_cells_max, settings)
    by_name = {attribute.name: attribute for attribute in attributes}
    views = [views_of(by_name, node) for node in nodes]
    return nodes, measurer.tables(views, (budget - n_paid * price) / len(views))


def views_of(by_name: Mapping[str, Attribute], node: Node) -> tuple[Partition, ...]:
    """The views of a node's table: its child's finest view, and its parents' chosen views."""
    parents = (by_name[parent.column].views[parent.level] for parent in node.parents)
    return (by_name[node.child].views[0], *parents)


def check_affords(attributes: Sequence[Attribute], budget: Fraction) -> None:
    """Raise ValueError, before anything is bought, if no network can be learned."""
    check_distinct(attributes)
    if len(attributes) > N_COLUMNS_MAX:
        raise ValueError(
            f"there are {len(attributes)} columns; at most {N_COLUMNS_MAX} are allowed"
        )
    if not budget > 0:
        raise ValueError("a budget must be positive")


def chosen_nodes(  # noqa: PLR0913, PLR0917 - what to choose from, who chooses, and the limits
    attributes: Sequence[Attribute],
    choose: Callable[[Choice], int],
    rng: np.random.Generator,
    n_cells_max: float,
    settings: LearningSettings,
    n_candidates_max: int = N_CANDIDATES_MAX,
) -> list[Node]:
    """Columns in the order of the network, with their parents.

    Parameters
    ----------
    attributes : sequence of Attribute
    choose : callable
        The place of the chosen candidate.
    rng : numpy.random.Generator
        For what is drawn without data: the first column, for example.
    n_cells_max : float
        The most cells of a table of a column and its parents.
    settings : LearningSettings
    n_candidates_max : int
        While a step has more, it allows one parent less.

    Notes
    -----
    If no remaining column has a useful table with those before it, one of `possible_roots` comes
    next, without parents.

    Scores F and R cannot be compared. So for F, each step first draws which columns it is about,
    those of two classes or the others, in proportion to how many of either can come next. The draw
    reads public sizes only, and every choice has the price that it always has.
    """
    nodes: list[Node] = []
    before: list[int] = []
    while len(nodes) < len(attributes):
        pairs, degree = candidate_pairs(
            attributes, before, n_cells_max, settings.degree, n_candidates_max
        )
        if not pairs:
            roots = possible_roots(attributes, before, n_cells_max)
            pairs = [(roots[int(rng.integers(len(roots)))], ())]
        score = settings.score
        if score is Score.FULL_DEPENDENCE:
            pairs, score = _of_one_score(attributes, pairs, rng)
        is_open = len(pairs) > 1
        child, parents = pairs[choose(_choice(attributes, pairs, score)) if is_open else 0]
        before.append(child)
        seen = tuple(Parent(attributes[place].name, level) for place, level in parents)
        nodes.append(Node(attributes[child].name, seen, degree))
    return nodes


def _of_one_score(
    attributes: Sequence[Attribute],
    pairs: Sequence[tuple[int, ParentSet]],
    rng: np.random.Generator,
) -> tuple[list[tuple[int, ParentSet]], Score]:
    """The pairs whose children have two classes, and F; or the others, and R."""
    binary = {child for child, _ in pairs if attributes[child].size <= N_BINARY}
    wider = {child for child, _ in pairs} - binary
    is_binary = int(rng.integers(len(binary) + len(wider))) < len(binary)
    kept = binary if is_binary else wider
    score = Score.FULL_DEPENDENCE if is_binary else Score.DISTANCE
    return [pair for pair in pairs if pair[0] in kept], score


def _choice(
    attributes: Sequence[Attribute], pairs: Sequence[tuple[int, ParentSet]], score: Score
) -> Choice:
    """The choice among columns with their sets of parents, in the given order."""
    views = tuple(view for attribute in attributes for view in attribute.views)
    first = np.cumsum([0, *(len(attribute.views) for attribute in attributes)]).tolist()
    candidates = (
        ChoiceCandidate(first[child], tuple(first[place] + level for place, level in parents))
        for child, parents in pairs
    )
    return Choice(score, views, tuple(candidates))
