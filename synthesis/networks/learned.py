"""A learned network with what is to be said of it: what speaks for each arc, and its direction.

Which learner is used, and nothing of how it works.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from synthesis.networks.chow_liu import chow_liu
from synthesis.networks.exact_search import best_network
from synthesis.networks.graph import Dag, EquivalenceClass
from synthesis.networks.hill_climbing import hill_climbed
from synthesis.networks.score import BicScore


class Method(StrEnum):
    """How a network is searched."""

    CHOW_LIU = "chow-liu"
    HILL_CLIMBING = "hill-climbing"
    EXACT = "exact"


LEARNERS: Final[Mapping[Method, Callable[[BicScore], Dag]]] = MappingProxyType(
    {
        Method.CHOW_LIU: chow_liu,
        Method.HILL_CLIMBING: lambda score: hill_climbed(score).dag,
        Method.EXACT: best_network,
    }
)


@dataclass(frozen=True, slots=True)
class LearnedArc:
    """An arc of a learned network.

    Parameters
    ----------
    parent, child : str
    is_directed : bool
        Whether the tables tell its direction: every graph that says the same of them has it.
    support : float
        How much the score falls without it, in nats.
    """

    parent: str
    child: str
    is_directed: bool
    support: float


@dataclass(frozen=True, slots=True)
class LearnedNetwork:
    """A network, and what it rests on.

    Parameters
    ----------
    dag : Dag
    arcs : tuple of LearnedArc
        In the order of the children.
    method : Method
    degree : int
        The most parents that a column was allowed.
    score : float
        BIC, higher is better; see `score.BicScore`.
    n_effective : float
        The number of rows that the score is about.
    """

    dag: Dag
    arcs: tuple[LearnedArc, ...]
    method: Method
    degree: int
    score: float
    n_effective: float


def learned(score: BicScore, method: Method) -> LearnedNetwork:
    """The network that a method finds.

    Raises
    ------
    TooManyColumns
        If an exact search is asked for more columns than it can search.
    """
    dag = LEARNERS[method](score)
    directed = EquivalenceClass.of(dag).directed
    places = {one.name: place for place, one in enumerate(score.columns)}
    arcs = []
    for child in dag.columns:
        own = [places[name] for name in dag.parents(child)]
        with_all = score.local(places[child], own)
        for parent in dag.parents(child):
            without = score.local(places[child], [one for one in own if one != places[parent]])
            is_directed = (parent, child) in directed
            arcs.append(LearnedArc(parent, child, is_directed, with_all - without))
    total = score.total(dag)
    return LearnedNetwork(dag, tuple(arcs), method, score.degree, total, score.n_effective)
