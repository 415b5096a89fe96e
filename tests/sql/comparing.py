"""Whether two result tables say the same, numbers to six digits and types aside.

Counts leave Tacit as doubles, days as dates; DuckDB says whole numbers, decimals and timestamps.
"""

import datetime as dt
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TypeAlias

import duckdb
import pyarrow as pa

Value: TypeAlias = str | bool | float | dt.date | dt.datetime | None
Row: TypeAlias = tuple[Value, ...]
RELATIVE_ERROR_MAX = 1e-6  # doubles in a sum are kept to 26 bits of the largest
ABSOLUTE_ERROR_MAX = 1e-6


def plain(value: object) -> Value:
    """A value as one of few types: a number is a double, midnight is a day."""
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date()
    assert value is None or isinstance(value, str | bool | dt.date), type(value)
    return value


def rows_of(data: pa.Table, ignored: Sequence[str] = ()) -> list[Row]:
    """The rows of an Arrow table, without the columns that cannot be compared."""
    kept = [place for place, name in enumerate(data.column_names) if name not in ignored]
    assert len(data.column_names) - len(kept) == len(ignored)
    columns = [[plain(value) for value in data.column(place).to_pylist()] for place in kept]
    return list(zip(*columns, strict=True))


def oracle_rows(
    database: duckdb.DuckDBPyConnection, sql: str, ignored: Sequence[str] = ()
) -> list[Row]:
    """What DuckDB answers."""
    found = database.execute(sql)
    names = [column[0] for column in found.description]
    kept = [place for place, name in enumerate(names) if name not in ignored]
    return [tuple(plain(row[place]) for place in kept) for row in found.fetchall()]


def agree(one: Row, other: Row) -> bool:
    """Whether two rows have equal values, NULL equal to NULL."""
    return len(one) == len(other) and all(map(_equal, one, other))


def same_rows(some: Sequence[Row], others: Sequence[Row]) -> bool:
    """Whether two tables have the same rows, in whatever order."""
    one, other = _by_exact_values(some), _by_exact_values(others)
    return one.keys() == other.keys() and all(
        len(one[exact]) == len(other[exact]) and all(map(agree, one[exact], other[exact]))
        for exact in one
    )


def same_sequence(some: Sequence[Row], others: Sequence[Row]) -> bool:
    """Whether two tables have the same rows in the same order."""
    return len(some) == len(others) and all(map(agree, some, others))


def _by_exact_values(rows: Iterable[Row]) -> dict[Row, list[Row]]:
    """The numbers of rows, sorted, by what is no number in them."""
    numbers: dict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        exact = tuple("number" if isinstance(value, float) else value for value in row)
        numbers[exact].append(tuple(value for value in row if isinstance(value, float)))
    for found in numbers.values():
        found.sort(key=lambda row: [round(value, 6) for value in row if isinstance(value, float)])
    return numbers


def _equal(one: Value, other: Value) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=RELATIVE_ERROR_MAX, abs_tol=ABSOLUTE_ERROR_MAX) or (
            math.isnan(one) and math.isnan(other)
        )
    return type(one) is type(other) and one == other
