"""A DuckDB that holds nothing and reaches nothing: no file, network, extension or setting.

A query sees the relations that it is given, and ends as one of a few kinds if it gives no result.
"""

import datetime as dt
from collections.abc import Mapping
from functools import cached_property
from threading import Lock
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

N_BYTES_RESULT: Final = 128 * 2**20
N_ROWS_MAX: Final = 1_000_000  # of a result

# What ended a statement.
TOO_MUCH: Final = "too much"  # time, or memory
TOO_LARGE: Final = "too large"  # a result
BINDING: Final = "binding"
OTHER: Final = "other"

_EPOCH: Final = dt.date(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = (dt.date.min - _EPOCH).days, (dt.date.max - _EPOCH).days
_N_MICROS_A_DAY: Final = 86_400 * 10**6
_HOURS_MAX = 2**63 // (3600 * 10**9) - 1  # of an interval in Arrow's nanoseconds
_FIRST_MICRO, _LAST_MICRO = _FIRST_DAY * _N_MICROS_A_DAY, (_LAST_DAY + 1) * _N_MICROS_A_DAY - 1

_SETTINGS: Final = (
    "SET GLOBAL temp_directory = ''",
    "SET GLOBAL enable_external_access = false",
    "SET GLOBAL autoinstall_known_extensions = false",
    "SET GLOBAL autoload_known_extensions = false",
    "SET GLOBAL allow_community_extensions = false",
    "SET GLOBAL python_enable_replacements = false",
    "SET GLOBAL threads = 1",
    "SET GLOBAL memory_limit = '256MB'",
    "SET GLOBAL TimeZone = 'UTC'",
    "SET GLOBAL integer_division = true",  # as in PostgreSQL
    # A noisy count may be zero: then a ratio is NULL, and the other rows are kept.
    "SET GLOBAL ieee_floating_point_ops = false",
    "SET GLOBAL error_on_division_by_zero = false",
    "SET GLOBAL lock_configuration = true",
)


class SqlEnded(Exception):
    """A statement that gave no result.

    Parameters
    ----------
    kind : str
        `TOO_MUCH`, `TOO_LARGE`, `BINDING` or `OTHER`.
    text : str
        DuckDB's message; empty if there is none.
    """

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(kind, text)
        self.kind, self.text = kind, text


class ClosedDatabase:
    """Runs queries, each on the relations that it is given alone. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()

    @cached_property
    def _opened(self) -> duckdb.DuckDBPyConnection:
        """The empty database; opened when it is first needed, with the lock held."""
        database = duckdb.connect(":memory:")
        for setting in _SETTINGS:
            database.execute(setting)
        return database

    def run(self, sql: str, relations: Mapping[str, pa.Table]) -> pa.Table:
        """The result of a query over `relations`, by their names.

        Raises
        ------
        SqlEnded
            If it gives none.
        """
        with self._lock:
            cursor = self._opened.cursor()
        try:
            for name, table in relations.items():
                cursor.register(name, table)
            relation = _of_intervals_told_in_full(cursor.sql(sql).limit(N_ROWS_MAX + 1))
            result: pa.Table = relation.to_arrow_table()
        except (duckdb.OutOfMemoryException, MemoryError):
            raise SqlEnded(TOO_MUCH) from None
        except duckdb.BinderException as error:
            raise SqlEnded(BINDING, str(error)) from None
        except duckdb.Error as error:
            raise SqlEnded(OTHER, str(error)) from None
        finally:
            cursor.close()
        if result.num_rows > N_ROWS_MAX or result.nbytes > N_BYTES_RESULT:
            raise SqlEnded(TOO_LARGE)
        if not all(map(_has_usual_years, result.columns)):
            raise SqlEnded(OTHER, "Conversion Error: it has days outside the years 1 to 9999")
        return result


def _of_intervals_told_in_full(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """The same rows; an error if one has an interval that Arrow's nanoseconds do not hold."""
    for place, kind in enumerate(map(str, relation.types), 1):
        if kind.startswith("INTERVAL"):
            hours = f"list_transform([#{place}], LAMBDA x: date_part('hour', x))"
            if kind != "INTERVAL":
                hours = f"list_transform(#{place}, LAMBDA x: date_part('hour', x))"
            widest = f"greatest(list_max({hours}), -list_min({hours}))"
            told = "'Conversion Error: it has an interval of more hours than 292 years have'"
            relation = relation.filter(
                f"CASE WHEN {widest} > {_HOURS_MAX} THEN error({told}) ELSE TRUE END"
            )
    return relation


def _has_usual_years(column: pa.ChunkedArray) -> bool:
    """Whether the days and moments of a column, if it has some, are such as clients can read."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        column, first, last = (
            column.cast(pa.timestamp("us", tz=kind.tz), safe=False),
            _FIRST_MICRO,
            _LAST_MICRO,
        )
    elif pa.types.is_date32(kind):
        first, last = _FIRST_DAY, _LAST_DAY
    else:
        return True
    numbers = column.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    ends = pc.min_max(numbers).as_py()
    return ends["min"] is None or bool(first <= ends["min"] and ends["max"] <= last)
