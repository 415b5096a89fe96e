"""What a server gave for a statement, and how two of them differ."""

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import psycopg

Row = tuple[Any, ...]
RELATIVE: Final = 1e-9  # of doubles, and of decimals that Tacit computes as such
# Whole numbers are bigint and others double precision where an answer or a level is computed with.
_NUMBERS: Final = frozenset((20, 21, 23, 700, 701, 1700))
_TEXTS: Final = frozenset((25, 1042, 1043))


@dataclass(frozen=True, slots=True)
class Given:
    """A result, or a refusal with its SQLSTATE and message."""

    columns: tuple[tuple[str, int], ...] = ()  # names and numbers of types
    rows: tuple[Row, ...] = ()
    refusal: str | None = None


def given_by(connection: psycopg.Connection, sql: str) -> Given:
    """What a server gives for a statement."""
    try:
        cursor = connection.execute(sql)
        if cursor.description is None:
            return Given()
        columns = tuple((column.name, column.type_code) for column in cursor.description)
        return Given(columns, tuple(cursor.fetchall()))
    except psycopg.Error as error:
        return Given(refusal=f"{error.sqlstate} {str(error).splitlines()[0]}")


def difference(expected: Given, found: Given, *, ordered: bool) -> str | None:
    """How PostgreSQL's result and Tacit's differ; None where they agree."""
    if expected.refusal and found.refusal:
        return None
    if expected.refusal or found.refusal:
        shown = expected.refusal and f"PostgreSQL refuses: {expected.refusal}; Tacit gives"
        return f"{shown} {found.rows[:3]}" if shown else f"Tacit refuses: {found.refusal}"
    if _columns(expected) != _columns(found):
        return f"columns {expected.columns}, in Tacit {found.columns}"
    if len(expected.rows) != len(found.rows):
        extra = set(map(_key, found.rows)) ^ set(map(_key, expected.rows))
        return f"{len(expected.rows)} rows, in Tacit {len(found.rows)}; {sorted(extra)[:4]}"
    pairs = zip(_sorted(expected.rows, ordered), _sorted(found.rows, ordered), strict=True)
    for one, other in pairs:
        if not all(map(is_near, one, other)):
            return f"a row {one}, in Tacit {other}"
    return None


def _columns(given: Given) -> list[tuple[str, int | None]]:
    return [(name, family(kind)) for name, kind in given.columns]


def family(kind: int | None) -> int | None:
    """The number of a type, one for all numbers and one for all texts."""
    if kind in _NUMBERS:
        return min(_NUMBERS)
    return min(_TEXTS) if kind in _TEXTS else kind


def _sorted(rows: tuple[Row, ...], ordered: bool) -> list[Row]:
    return list(rows) if ordered else sorted(rows, key=_key)


def _key(row: Row) -> tuple[Any, ...]:
    return tuple((value is None, str(value)) for value in row if not _is_number(value))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def is_near(one: Any, other: Any, error: float = RELATIVE) -> bool:
    """Whether two values are equal; numbers up to a relative error, below 1 an absolute one."""
    if not (_is_number(one) and _is_number(other)):
        return bool(one == other) and (one is None) == (other is None)
    one, other = float(one), float(other)
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return bool(abs(one - other) <= error * max(1.0, abs(one)))
