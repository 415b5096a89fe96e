"""SQL that finds, for numbers of many columns at once, between which edges they lie.

A binary search that the engine does with whole columns. Among few edges it is a tree of cases, in
which each edge is written out: a third of the time of a stage after the other. Among many, each
stage is one comparison with an edge in a list, and halves what is left of every search. It takes no
sort and no join, and so no memory beside the rows that are on their way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

N_EDGES_IN_CASES_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class Search:
    """What to look for, and among which edges.

    Parameters
    ----------
    value : str
        SQL for the number; NULL for none.
    edges : pyarrow.Array
        In order, the first perhaps repeated. At least one.
    """

    value: str
    edges: pa.Array

    @property
    def n_stages(self) -> int:
        """How often the edges that are left are halved before one is."""
        return 0 if self.is_in_cases else (len(self.edges) - 1).bit_length()

    @property
    def is_in_cases(self) -> bool:
        """Whether the edges are so few that they are written out."""
        return len(self.edges) <= N_EDGES_IN_CASES_MAX

    def found(self, place: int) -> str:
        """SQL for the place of the last edge that is at most the value; NULL if none is.

        Parameters
        ----------
        place : int
            Of the column, in a relation that `searched` made.
        """
        if self.is_in_cases:
            return f"found_{place}"
        return f"CASE WHEN value_{place} >= {_edges(place)}[1] THEN found_{place} END"


def edges_table(searches: Mapping[int, Search]) -> pa.Table:
    """One row: the edges of each search, as a list."""
    columns = {
        _edges(place): pa.ListArray.from_arrays(
            pa.array([0, len(one.edges)], pa.int32()), one.edges
        )
        for place, one in searches.items()
        if not one.is_in_cases
    }
    return pa.table(columns)


def searched(
    relation: str, columns: Sequence[str], searches: Mapping[int, Search], edges: str
) -> str:
    """SQL for a relation with what `found` needs beside its columns.

    Parameters
    ----------
    relation : str
        SQL of a relation, whose columns the values are of.
    columns : sequence of str
        All of its columns. They are named at each stage: with a star, the engine takes a time to
        understand hundreds of them that grows as their square.
    searches : mapping of int to Search
        By the place of the column in the schema.
    edges : str
        The name of the table with the edges.
    """
    if not searches:
        return relation
    listed = [place for place, one in searches.items() if not one.is_in_cases]
    begun = [f"{one.value} AS value_{place}" for place, one in searches.items()]
    kept = [*columns, *map(_edges, listed)]
    beside = f", {edges}" if listed else ""
    sql = f"SELECT {', '.join([*kept, *begun])} FROM ({relation}){beside}"  # noqa: S608 - from the public schema and quoted names
    kept += [f"value_{place}" for place in searches]
    first = [f"{_first(one, place)} AS found_{place}" for place, one in searches.items()]
    sql = f"SELECT {', '.join([*kept, *first])} FROM ({sql})"  # noqa: S608 - the same
    for stage in reversed(range(max(one.n_stages for one in searches.values()))):
        halved = [
            _halved(place, 2**stage) if stage < one.n_stages else f"found_{place}"
            for place, one in searches.items()
        ]
        sql = f"SELECT {', '.join([*kept, *halved])} FROM ({sql})"  # noqa: S608 - the same
    return sql


def _halved(place: int, step: int) -> str:
    """SQL for one stage of a search: by a step on, if the edge there is at most the value."""
    reached = f"value_{place} >= {_edges(place)}[found_{place} + {step + 1}]"
    return f"found_{place} + CASE WHEN {reached} THEN {step} ELSE 0 END AS found_{place}"


def _first(one: Search, place: int) -> str:
    """SQL for where a search begins; among few edges, for what it finds."""
    if not one.is_in_cases:
        return "0"
    value = f"value_{place}"
    cases = _cases(one.edges, value, 0, len(one.edges))
    return f"CASE WHEN {value} >= {_literal(one.edges[0])} THEN {cases} END"


def _cases(edges: pa.Array, value: str, first: int, end: int) -> str:
    """SQL for the place of the last of some edges that is at most a value, as the first is."""
    if end - first == 1:
        return str(first)
    middle = (first + end) // 2
    above, below = _cases(edges, value, middle, end), _cases(edges, value, first, middle)
    return f"CASE WHEN {value} >= {_literal(edges[middle])} THEN {above} ELSE {below} END"


def _literal(edge: pa.Scalar) -> str:
    kind = "DOUBLE"
    if pa.types.is_decimal(edge.type):
        kind = f"DECIMAL({edge.type.precision}, {edge.type.scale})"
    written = edge.as_py()
    return "NULL" if written is None else f"CAST('{written}' AS {kind})"


def _edges(place: int) -> str:
    return f"edges_{place}"
