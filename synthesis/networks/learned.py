"""A learned network as values, JSON and Graphviz text, and how long learning one will take.

The module names the learners, but does not contain them. A learned network holds only names of
columns and released numbers.

The time is estimated before any table is bought, from the numbers of columns, levels and rows.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np

from synthesis.networks.graph import Dag, EquivalenceClass
from synthesis.networks.score import N_CELLS_MAX, BicScore, null_draws
from synthesis.networks.search import best_network, chow_liu, hill_climbed
from synthesis.networks.source import TableSource
from synthesis.tables import Floats


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


@dataclass(frozen=True, eq=False)
class LearnedLaw:
    """The shares of a column's levels given its parents, in the table that it was learned from.

    Parameters
    ----------
    column : str
    parents : tuple of str
    shares : (n_levels of parent, ..., n_levels of column) ndarray of float64
        With sum 1 along the last axis; equal where no row has the parents' levels.
    """

    column: str
    parents: tuple[str, ...]
    shares: Floats


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
    laws : tuple of LearnedLaw
        In the order of the columns.
    """

    dag: Dag
    arcs: tuple[LearnedArc, ...]
    method: Method
    degree: int
    score: float
    n_effective: float
    laws: tuple[LearnedLaw, ...]


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
    laws = tuple(_law(score.source, dag, place) for place in range(len(dag.columns)))
    return LearnedNetwork(dag, tuple(arcs), method, score.degree, total, score.n_effective, laws)


def _law(source: TableSource, dag: Dag, child: int) -> LearnedLaw:
    """The law of the column at a place; the columns of the graph are those of the source."""
    parents = dag.parents(dag.columns[child])
    places = [dag.columns.index(name) for name in parents]
    table = source.table(sorted((*places, child))).shares
    joint = np.moveaxis(table, sorted((*places, child)).index(child), -1)
    sums = joint.sum(axis=-1, keepdims=True)
    equal = np.full_like(joint, 1 / joint.shape[-1])
    return LearnedLaw(
        dag.columns[child], parents, np.divide(joint, sums, out=equal, where=sums > 0)
    )


def network_json(network: LearnedNetwork, levels: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """A network as JSON values, with the names of each column's levels."""
    return {
        "columns": list(network.dag.columns),
        "arcs": [
            {
                "from": one.parent,
                "to": one.child,
                "directed": one.is_directed,
                "support": one.support,
            }
            for one in network.arcs
        ],
        "method": network.method.value,
        "degree": network.degree,
        "score": network.score,
        "effective_rows": network.n_effective,
        "levels": {name: list(levels[name]) for name in network.dag.columns},
        "laws": [
            {"column": one.column, "parents": list(one.parents), "law": one.shares.tolist()}
            for one in network.laws
        ],
    }


def network_dot(network: LearnedNetwork) -> str:
    """A network in the language of Graphviz; an arc whose direction is open has no arrowhead."""
    lines = [f"  {_quoted(name)};" for name in network.dag.columns]
    for one in network.arcs:
        style = "" if one.is_directed else " [dir=none]"
        lines.append(f"  {_quoted(one.parent)} -> {_quoted(one.child)}{style};")
    return "\n".join(["digraph network {", "  node [shape=box];", *lines, "}", ""])


def _quoted(name: str) -> str:
    r"""A name as a quoted text.

    >>> print(_quoted('a "b" \\'))
    "a \"b\" \\"
    """
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


Reading: TypeAlias = Callable[[tuple[int, ...]], float]  # of the table of some columns, its work

N_WORK_MAX: Final = 2 * 10**10  # 3 nanoseconds each on one core: a minute
WORK_OF_CELL: Final = 100  # drawing a cell, making it a share, and taking its logarithm
N_SCOPES_MAX: Final = (
    20_000  # that are looked at one by one; of more, each is taken for the largest
)


def work(
    sizes: Sequence[int], *, degree: int, method: Method, is_noisy: bool, reading: Reading
) -> float:
    """The work of learning a network, in units of about 3 nanoseconds.

    Parameters
    ----------
    sizes : sequence of int
        The number of levels of each column.
    degree : int
        The most parents of a column.
    method : Method
    is_noisy : bool
        Whether tables have noise, so that tables of independent columns are drawn.
    reading : callable
        The work of reading a table, by the places of its columns.

    Notes
    -----
    An exact search looks at every table. A tree looks at the pairs, and so does a climb, which
    looks at few wider tables: about one for each child and each other column, for each number of
    parents. That is no proved bound, and has not been exceeded by twice.
    """
    total = 0.0
    for width in range(2, degree + 2):
        n_all = math.comb(len(sizes), width)
        n_seen = n_all
        if method is not Method.EXACT and width > 2:  # noqa: PLR2004 - pairs are all looked at
            n_seen = min(n_all, len(sizes) ** 2)
        if n_all <= N_SCOPES_MAX:
            each = [
                _of_table(scope, sizes, reading, is_noisy=is_noisy)
                for scope in combinations(range(len(sizes)), width)
            ]
            total += sum(each) if n_seen == n_all else min(sum(each), n_seen * max(each))
        else:
            largest = _largest(sizes, width)
            total += n_seen * _of_table(largest, sizes, reading, is_noisy=is_noisy)
    return total


def _largest(sizes: Sequence[int], width: int) -> tuple[int, ...]:
    """The places of so many columns whose table is about the largest that is looked at.

    The widest one first, as long as the narrowest others still fit in beside it.
    """
    falling = sorted(range(len(sizes)), key=lambda place: -sizes[place])
    found: list[int] = []
    n_cells = 1
    for at, place in enumerate(falling):
        n_left = width - len(found) - 1
        others = falling[len(falling) - n_left :]
        is_needed = len(falling) - at == width - len(found)
        narrowest = math.prod(sizes[other] for other in others)
        if is_needed or n_cells * sizes[place] * narrowest <= N_CELLS_MAX:
            found.append(place)
            n_cells *= sizes[place]
        if len(found) == width:
            break
    return tuple(sorted(found))


def _of_table(
    scope: tuple[int, ...], sizes: Sequence[int], reading: Reading, *, is_noisy: bool
) -> float:
    """Reading a table, and comparing it for each column in it; nothing if it is never looked at."""
    n_cells = math.prod(sizes[place] for place in scope)
    if n_cells > N_CELLS_MAX:
        return 0.0
    n_drawn = sum(
        null_draws(sizes[place], n_cells // sizes[place]) if is_noisy else 1 for place in scope
    )
    return reading(scope) + WORK_OF_CELL * n_cells * n_drawn
