"""Levels read from private rows, for owners who request it. This is not private.

Used only by `tacit init --read-levels-from-data`; the server never reads levels from data.
"""

import datetime as dt
from collections.abc import Callable
from typing import Any, TypeAlias

from cube.axis import INTEGER_MAX, N_LEVELS_MAX
from proxy.cli.init_toml import toml_string
from proxy.sources.closed import name_sql

N_LEVELS_LISTED_MAX = 1000  # a longer list is free text or a key, and is not copied
N_BINS = 10

Ask: TypeAlias = Callable[[str], list[tuple[Any, ...]]]  # SQL in, rows out


def found_levels(relation: str, name: str, kind: str, ask: Ask) -> list[str]:
    """Lines of TOML with the levels that occur; empty if there are none or too many."""
    column = name_sql(name)
    ((has_null,),) = ask(f"SELECT count(*) > count({column}) FROM {relation}")  # noqa: S608 - quoted names
    null = ["null = true"] if has_null else []
    match kind:
        case "category":
            lines = _listed(relation, column, ask)
        case "integer":
            lines = _range(relation, column, ask)
        case "numeric":
            lines = _bins(relation, column, ask)
        case "date":
            lines = _range(relation, column, ask)
        case _:
            return null
    return [*lines, *null] if lines else []


def _listed(relation: str, column: str, ask: Ask) -> list[str]:
    rows = ask(
        f"SELECT DISTINCT CAST({column} AS VARCHAR) AS level FROM {relation} "  # noqa: S608 - quoted names
        f"WHERE {column} IS NOT NULL ORDER BY level LIMIT {N_LEVELS_LISTED_MAX + 1}"
    )
    if not 1 <= len(rows) <= N_LEVELS_LISTED_MAX:
        return []
    listed = "".join(f"  {toml_string(level)},\n" for (level,) in rows)
    return [f"levels = [\n{listed}]"]


def _range(relation: str, column: str, ask: Ask) -> list[str]:
    low, high = _ends(relation, column, ask)
    if isinstance(low, int) and isinstance(high, int):
        is_axis = high - low < N_LEVELS_MAX and max(abs(low), abs(high)) <= INTEGER_MAX
        return [f"low = {low}", f"high = {high}"] if is_axis else []
    if isinstance(low, dt.date) and isinstance(high, dt.date):
        return [f"low = {low.isoformat()}", f"high = {high.isoformat()}"]
    return []


def _bins(relation: str, column: str, ask: Ask) -> list[str]:
    value = f"CASE WHEN isfinite(CAST({column} AS DOUBLE)) THEN CAST({column} AS DOUBLE) END"
    low, high = _ends(relation, value, ask)
    if low is None:
        return []
    width = (high - low) / N_BINS
    edges = sorted({low, *(low + width * step for step in range(1, N_BINS)), high})
    if len(edges) == 1:
        edges.append(low + 1.0)
    return [f"edges = {edges!r}"]


def _ends(relation: str, value: str, ask: Ask) -> tuple[Any, Any]:
    (row,) = ask(f"SELECT min({value}), max({value}) FROM {relation}")  # noqa: S608 - quoted names
    return row[0], row[1]
