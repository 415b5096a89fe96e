"""SQL that finds, for numbers of many columns at once, between which edges they lie.

A binary search that the engine does with whole columns: each stage is one comparison with an edge
in a list, and halves what is left of every search. It takes no sort and no join, and so no memory
beside the rows that are on their way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa


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
        return (len(self.edges) - 1).bit_length()


def edges_table(searches: Mapping[int, Search]) -> pa.Table:
    """One row: the edges of each search, as a list."""
    columns = {
        _edges(place): pa.ListArray.from_arrays(
            pa.array([0, len(one.edges)], pa.int32()), one.edges
        )
        for place, one in searches.items()
    }
    return pa.table(columns)


def found(place: int) -> str:
    """SQL for the place of the last edge that is at most the value; NULL if none is."""
    return f"CASE WHEN value_{place} >= {_edges(place)}[1] THEN found_{place} END"


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
    begun = [f"{one.value} AS value_{place}" for place, one in searches.items()]
    begun += [f"0 AS found_{place}" for place in searches]
    kept = [*columns, *map(_edges, searches)]
    sql = f"SELECT {', '.join([*kept, *begun])} FROM ({relation}), {edges}"  # noqa: S608 - from the public schema and quoted names
    kept += [f"value_{place}" for place in searches]
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


def _edges(place: int) -> str:
    return f"edges_{place}"
