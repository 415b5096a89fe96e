"""SQL that finds, for numbers of many columns at once, between which edges they lie.

A binary search that the engine does with whole columns. Among few edges it is a tree of cases, in
which each edge is written out: a third of the time of a stage after the other; and if these lie at
even steps, only for values that are close to one. Among many, each stage is one comparison with an
edge in a list, and halves what is left of every search. It takes no sort and no join, and so no
memory beside the rows that are on their way.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

N_EDGES_IN_CASES_MAX: Final = 64
N_EVEN_EDGES_MIN: Final = 4
CLOSE: Final = 1e-6  # to an edge, in steps between two


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
    steps = {place: _steps(one.edges, f"value_{place}") for place, one in searches.items()}
    if any(steps.values()):
        begun = [f"{step} AS steps_{place}" for place, step in steps.items() if step]
        sql = f"SELECT {', '.join([*kept, *begun])} FROM ({sql})"  # noqa: S608 - the same
    first = [
        f"{_first(one, place, is_even=bool(steps[place]))} AS found_{place}"
        for place, one in searches.items()
    ]
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


def _first(one: Search, place: int, *, is_even: bool) -> str:
    """SQL for where a search begins; among few edges, for what it finds."""
    if not one.is_in_cases:
        return "0"
    value, steps, n_edges = f"value_{place}", f"steps_{place}", len(one.edges)
    cases = _cases(one.edges, value, 0, n_edges)
    found = f"WHEN {value} >= {_literal(one.edges[0])} THEN {cases}"
    if is_even:
        far = f"{steps} - floor({steps}) BETWEEN {CLOSE} AND {1 - CLOSE}"
        inside = f"{steps} > 0 AND {steps} < {n_edges} AND {far}"
        found = f"WHEN {inside} THEN CAST(floor({steps}) AS INTEGER) {found}"
    return f"CASE {found} END"


def _steps(edges: pa.Array, value: str) -> str:
    """SQL for how many steps a value is above the first of edges at even steps; else empty.

    What is computed of an edge is within a tenth of `CLOSE` of its number. It grows with the value,
    but for three roundings, which are far less of so few steps. So a value whose steps are further
    than `CLOSE` from a whole number lies between the two edges that they say.
    """
    n_edges = len(edges)
    if not (N_EVEN_EDGES_MIN <= n_edges <= N_EDGES_IN_CASES_MAX) or edges.type != pa.float64():
        return ""
    written = edges.to_pylist()
    first, width = written[0], (written[-1] - written[0]) / (n_edges - 1)
    if not (math.isfinite(width) and width > 0):
        return ""
    evenly = all(
        abs((edge - first) / width - place) < CLOSE / 10 for place, edge in enumerate(written)
    )
    if not evenly:
        return ""
    return f"({value} - CAST('{first!r}' AS DOUBLE)) / CAST('{width!r}' AS DOUBLE)"


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
