"""The method: choose a network greedily, measure a table for each of its columns, fit.

Only the flow. Reading private data is a port: its implementation pays for it. Neighbouring tables
differ by one record, added or removed, so the number of records is private.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

import numpy as np

from cube.query import N_GROUPS_MAX, Partition
from cube.statistic import N_PARENTS_MAX, Choice, ChoiceCandidate, Score
from synthesis.privbayes.attributes import Attribute, check_distinct
from synthesis.privbayes.network import BayesianNetwork, Node, Parent, fitted_network
from synthesis.privbayes.parents import (
    N_COLUMNS_MAX,
    ParentSet,
    candidate_pairs,
    possible_roots,
    useful_cells,
)
from synthesis.tables import Floats

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
            raise ValueError(f"a column can have 0 to {N_PARENTS_MAX} parents")


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
    _check(attributes, budget, settings)
    tables = budget * (1 - settings.network_share)
    n_useful = useful_cells(float(tables), len(attributes), n_rows, settings.theta)
    n_cells_max = min(n_useful, N_GROUPS_MAX)
    price = budget * settings.network_share / max(1, len(attributes) - 1)
    n_paid = 0

    def choose(choice: Choice) -> int:
        nonlocal n_paid
        n_paid += 1
        return measurer.choose(choice, price)

    nodes = _chosen_nodes(attributes, choose, rng, n_cells_max, settings)
    by_name = {attribute.name: attribute for attribute in attributes}
    views = [_views(by_name, node) for node in nodes]
    measured = measurer.tables(views, (budget - n_paid * price) / len(views))
    return fitted_network(attributes, nodes, measured)


def _views(by_name: Mapping[str, Attribute], node: Node) -> tuple[Partition, ...]:
    """The views of a node's table: its child's finest view, and its parents' chosen views."""
    parents = (by_name[parent.column].views[parent.level] for parent in node.parents)
    return (by_name[node.child].views[0], *parents)


def _check(attributes: Sequence[Attribute], budget: Fraction, settings: LearningSettings) -> None:
    """Raise ValueError, before anything is bought, if no network can be learned."""
    check_distinct(attributes)
    if len(attributes) > N_COLUMNS_MAX:
        raise ValueError(f"{len(attributes)} columns; {N_COLUMNS_MAX} are allowed")
    if settings.score is Score.FULL_DEPENDENCE and max(one.size for one in attributes) > N_BINARY:
        raise ValueError("the score F is for columns of two classes")
    if not budget > 0:
        raise ValueError("a budget must be positive")


def _chosen_nodes(
    attributes: Sequence[Attribute],
    choose: Callable[[Choice], int],
    rng: np.random.Generator,
    n_cells_max: float,
    settings: LearningSettings,
) -> list[Node]:
    """Columns in the order of the network, with their parents.

    If no remaining column has a useful table with those before it, one of `possible_roots` comes
    next, without parents.
    """
    nodes: list[Node] = []
    before: list[int] = []
    while len(nodes) < len(attributes):
        pairs, degree = candidate_pairs(attributes, before, n_cells_max, settings.degree)
        if not pairs:
            roots = possible_roots(attributes, before, n_cells_max)
            pairs = [(roots[int(rng.integers(len(roots)))], ())]
        is_open = len(pairs) > 1
        child, parents = pairs[choose(_choice(attributes, pairs, settings.score)) if is_open else 0]
        before.append(child)
        seen = tuple(Parent(attributes[place].name, level) for place, level in parents)
        nodes.append(Node(attributes[child].name, seen, degree))
    return nodes


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
