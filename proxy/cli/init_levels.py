"""Levels and bounds read from private rows, for owners who request it. This is not private.

Used only by `tacit init --read-levels-from-data`; the server never reads levels from data. Bounds
are rounded outwards to numbers that somebody might have written down, since the exact ones are two
rows: what is publicly known is still the owner's to say.
"""

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from cube.axis import INTEGER_MAX, N_LEVELS_MAX
from proxy.cli.init_toml import toml_string
from proxy.sources.closed import name_sql

N_LEVELS_LISTED_MAX = 1000  # a longer list is free text or a key, and is not copied
N_STEPS = 1000  # of a measure that is neither whole nor money
CENT = Decimal("0.01")

Ask: TypeAlias = Callable[[str], list[tuple[Any, ...]]]  # SQL in, rows out


def found_levels(relation: str, name: str, kind: str, ask: Ask) -> list[str]:
    """Lines of TOML with the levels that occur; empty if there are none or too many."""
    column = name_sql(name)
    ((has_null,),) = ask(f"SELECT count(*) > count({column}) FROM {relation}")  # noqa: S608 - quoted names
    null = ["null = true"] if has_null else []
    match kind:
        case "category":
            lines = _listed(relation, column, ask)
        case "integer" | "date":
            lines = _range(relation, column, ask)
        case "timestamp":
            lines = _range(relation, f"CAST({column} AS TIMESTAMP)", ask)
        case "measure":
            lines = _bounds(relation, column, ask)
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
        first, last = int(outwards(Decimal(low), up=False)), int(outwards(Decimal(high), up=True))
        is_axis = last - first < N_LEVELS_MAX and max(abs(first), abs(last)) <= INTEGER_MAX
        return [f"low = {first}", f"high = {last}"] if is_axis else []
    if isinstance(low, dt.datetime) and isinstance(high, dt.datetime):
        return _moments(low, high)
    if isinstance(low, dt.date) and isinstance(high, dt.date):
        return [f"low = {low.year:04}-01-01", f"high = {high.year:04}-12-31"]
    return []


def _moments(low: dt.datetime, high: dt.datetime) -> list[str]:
    """Whole years, by the hour or by the finest coarser step that makes an axis of them."""
    first, last = dt.date(low.year, 1, 1), dt.date(high.year, 12, 31)
    n_hours = ((last - first).days + 1) * 24
    step = "hour" if n_hours <= N_LEVELS_MAX else "day"
    return [f"low = {first}", f"high = {last}", f'step = "{step}"']


def _bounds(relation: str, column: str, ask: Ask) -> list[str]:
    """Bounds and a step: 1 where every number is whole, 0.01 where all are money."""
    value = f"CASE WHEN isfinite(CAST({column} AS DOUBLE)) THEN CAST({column} AS DOUBLE) END"
    low, high = _ends(relation, value, ask)
    if low is None:
        return []
    first, last = outwards(Decimal(repr(low)), up=False), outwards(Decimal(repr(high)), up=True)
    ((is_whole, is_money),) = ask(
        "SELECT bool_and(v = round(v)), bool_and(abs(v * 100 - round(v * 100)) < 1e-6) "  # noqa: S608 - quoted names
        f"FROM (SELECT {value} AS v FROM {relation})"
    )
    step = Decimal(1) if is_whole else CENT
    if not (is_whole or is_money) or (last - first) / step >= N_LEVELS_MAX:
        step = Decimal(1).scaleb(math.floor(((max(last - first, CENT)) / N_STEPS).log10()))
    first = math.floor(first / step) * step
    last = max(math.ceil(last / step) * step, first + step)
    return [f"low = {first:f}", f"high = {last:f}", f"step = {step:f}"]


def outwards(number: Decimal, *, up: bool) -> Decimal:
    """A number of one digit that is not 0 and another of 0 or 5, not above or not below a number.

    >>> [str(outwards(Decimal(n), up=False)) for n in ("36", "7", "-412", "0")]
    ['35', '0', '-450', '0']
    >>> str(outwards(Decimal("4873.22"), up=True))
    '5000'
    """
    if number == 0 or (not up and 0 < number < 10):  # noqa: PLR2004 - few columns begin at 1 to 9
        return Decimal(0)
    unit = 5 * Decimal(10) ** (number.adjusted() - 1)
    return (math.ceil if up else math.floor)(number / unit) * unit


def _ends(relation: str, value: str, ask: Ask) -> tuple[Any, Any]:
    (row,) = ask(f"SELECT min({value}), max({value}) FROM {relation}")  # noqa: S608 - quoted names
    return row[0], row[1]
