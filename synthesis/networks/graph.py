"""Directed graphs without cycles over columns, and classes of graphs that no table tells apart.

Graphs only: what they were learned from is not known here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

Arc: TypeAlias = tuple[str, str]  # from, to


@dataclass(frozen=True, slots=True)
class Dag:
    """Columns, and the arcs between them, without a cycle.

    Parameters
    ----------
    columns : tuple of str
    arcs : frozenset of (str, str)
        Each from a parent to its child.

    Raises
    ------
    ValueError
        If a column is listed twice, an arc names another column, or arcs run in a circle.
    """

    columns: tuple[str, ...]
    arcs: frozenset[Arc] = frozenset()

    def __post_init__(self) -> None:
        known = set(self.columns)
        if len(known) != len(self.columns):
            raise ValueError(f"a column is listed twice: {self.columns}")
        strange = {name for arc in self.arcs for name in arc} - known
        if strange:
            raise ValueError(f"the arcs name unknown columns: {sorted(strange)}")
        self.order()

    @classmethod
    def of_parents(cls, columns: Sequence[str], parents: Sequence[Iterable[int]]) -> "Dag":
        """The graph in which the column of each place has the parents of these places."""
        arcs = {
            (columns[parent], columns[child]) for child, own in enumerate(parents) for parent in own
        }
        return cls(tuple(columns), frozenset(arcs))

    def parents(self, column: str) -> tuple[str, ...]:
        """The parents of a column, in the order of the columns."""
        return tuple(name for name in self.columns if (name, column) in self.arcs)

    def order(self) -> tuple[str, ...]:
        """The columns, each after its parents; otherwise in their own order."""
        placed: list[str] = []
        left = {name: set(self.parents(name)) for name in self.columns}
        while left:
            free = next((name for name, missing in left.items() if not missing), None)
            if free is None:
                raise ValueError(f"the arcs form a cycle through {sorted(left)}")
            placed.append(free)
            del left[free]
            for missing in left.values():
                missing.discard(free)
        return tuple(placed)


@dataclass(frozen=True, slots=True)
class EquivalenceClass:
    """The graphs that say the same of every table, as one graph (a CPDAG).

    Parameters
    ----------
    columns : tuple of str
    directed : frozenset of (str, str)
        The arcs that all graphs of the class have.
    undirected : frozenset of frozenset of str
        The edges that have one direction in some graphs of the class, and the other in others.
    """

    columns: tuple[str, ...]
    directed: frozenset[Arc]
    undirected: frozenset[frozenset[str]]

    @classmethod
    def of(cls, dag: Dag) -> "EquivalenceClass":
        """The class of a graph.

        Notes
        -----
        Two graphs say the same if they have the same edges and the same colliders: two parents of
        one child without an edge between them [1]_. The arcs of colliders are common to the class,
        and so are those whose other direction would make a new collider or a cycle; three rules,
        applied until nothing changes, find all of them [2]_.

        References
        ----------
        .. [1] T. Verma, J. Pearl, "Equivalence and Synthesis of Causal Models", UAI 1990.
        .. [2] C. Meek, "Causal inference and causal explanation with background knowledge",
           UAI 1995.
        """
        edges = skeleton(dag)
        directed = {
            arc for one, child, other in colliders(dag) for arc in ((one, child), (other, child))
        }
        left = [arc for arc in sorted(dag.arcs) if arc not in directed]
        while True:
            # Only the direction that the graph itself has can be common to its class.
            forced = [arc for arc in left if _is_forced(arc, directed, edges, dag.columns)]
            if not forced:
                break
            directed.update(forced)
            left = [arc for arc in left if arc not in directed]
        return cls(dag.columns, frozenset(directed), frozenset(map(frozenset, left)))


def skeleton(dag: Dag) -> frozenset[frozenset[str]]:
    """The pairs of columns with an arc between them."""
    return frozenset(map(frozenset, dag.arcs))


def colliders(dag: Dag) -> frozenset[tuple[str, str, str]]:
    """The triples (parent, child, parent) whose parents have no arc between them.

    >>> sorted(colliders(Dag(("a", "b", "c"), frozenset({("a", "c"), ("b", "c")}))))
    [('a', 'c', 'b')]
    """
    edges = skeleton(dag)
    return frozenset(
        (one, child, other)
        for child in dag.columns
        for one in dag.parents(child)
        for other in dag.parents(child)
        if one < other and frozenset((one, other)) not in edges
    )


def _is_forced(
    arc: Arc,
    directed: set[Arc],
    edges: frozenset[frozenset[str]],
    columns: Sequence[str],
) -> bool:
    """Whether the other direction of an arc would make a new collider, or a cycle."""
    tail, head = arc
    for other in columns:
        if (other, tail) in directed and frozenset((other, head)) not in edges:
            return True
        if (tail, other) in directed and (other, head) in directed:
            return True
    open_ones = [  # undirected so far, with an arc to the head
        other
        for other in columns
        if frozenset((tail, other)) in edges
        and (other, head) in directed
        and (tail, other) not in directed
        and (other, tail) not in directed
    ]
    return any(frozenset((one, other)) not in edges for one, other in combinations(open_ones, 2))
