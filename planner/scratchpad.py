"""The public scratchpad: an in-memory DuckDB that evaluates expressions on declared levels.

A predicate over two columns is evaluated on every combination of their levels, and what comes back
is an array over those combinations. The database holds levels and nothing else; it cannot reach a
file, a network, an extension or its own settings. No private row ever comes near it.
"""

import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from threading import Lock, Timer
from typing import Any, TypeAlias

import duckdb
import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cube.query import N_FACTOR_CELLS_MAX, Scope
from cube.refusals import TooLarge
from cube.schema import Schema
from planner.allowed import check_scalar
from planner.cache import BoundedCache
from planner.comparing import Comparable, is_comparable, plain_comparison
from planner.duckdb_text import duckdb_text
from planner.public import PublicRelation
from planner.wording import position, shortened, shown, unsupported

SECONDS_MAX = 5.0  # an expression that takes longer over public levels is a mistake or an attack
N_UNWATCHED = 10**7  # combinations times characters; what is allowed takes time in proportion
N_LOOKUPS_MAX = 64  # public tables and subqueries over them, with their rows; made again at need
N_ENTRIES_MAX = 4096
N_BYTES_MAX = 256 * 2**20
EXACT_TYPES = ("DECIMAL", "HUGEINT", "UHUGEINT")  # numpy would get these as doubles

# GLOBAL, because every evaluation has its own cursor, and a session's settings end with it.
SETTINGS = (
    "SET GLOBAL enable_external_access = false",
    "SET GLOBAL autoinstall_known_extensions = false",
    "SET GLOBAL autoload_known_extensions = false",
    "SET GLOBAL allow_community_extensions = false",
    "SET GLOBAL threads = 1",
    "SET GLOBAL memory_limit = '1GB'",
    "SET GLOBAL TimeZone = 'UTC'",
    "SET GLOBAL integer_division = true",  # as in PostgreSQL: 7 / 2 = 3, 7 / 2.0 = 3.5
    # PostgreSQL stops at x / 0 and ln(0); infinity would pass silently through a comparison.
    "SET GLOBAL ieee_floating_point_ops = false",
    "SET GLOBAL error_on_division_by_zero = true",
    "SET GLOBAL lock_configuration = true",
)

Probes: TypeAlias = Mapping[str, tuple[float | None, ...]]


@dataclass(frozen=True, eq=False)
class Evaluated:
    """An expression's value on every combination of levels.

    Parameters
    ----------
    axes : tuple of str
        The columns the expression mentions, sorted.
    sql_type : str
        DuckDB's name of the type.
    values : ndarray
        One dimension for each axis; anything where `null` is true.
    null : ndarray of bool
        Where the value is NULL.
    """

    axes: Scope
    sql_type: str
    values: NDArray[Any]
    null: NDArray[np.bool_]


class Scratchpad:
    """Evaluates allowed expressions over the levels of a few public schemas. Thread-safe."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas
        self._database = duckdb.connect(":memory:")
        for setting in SETTINGS:
            self._database.execute(setting)
        self._relations: dict[tuple[str, str], str] = {}
        self._lookups: OrderedDict[str, tuple[int, dict[str, str]]] = OrderedDict()
        self._numbers = count()
        self._comparable: dict[tuple[str, str], Comparable] = {}
        self._lock = Lock()
        self._cache: BoundedCache[object, Evaluated] = BoundedCache(
            n_entries_max=N_ENTRIES_MAX, n_bytes_max=N_BYTES_MAX
        )

    def evaluate(
        self, expression: exp.Expr, *, table: str, probes: Probes | None = None
    ) -> Evaluated:
        """The value of `expression` on the levels of the columns it mentions.

        Parameters
        ----------
        expression : Expr
            Its columns carry the names of axes of `table`.
        probes : mapping, optional
            Columns that are evaluated on these values in place of their levels.

        Raises
        ------
        UnsupportedSql
            If the expression is not on the list of what is allowed, or fails on some level.
        TooLarge
            If the combinations are too many, or evaluating them takes too long.
        """
        probes = {} if probes is None else probes
        plain = self._compared(expression, table, probes)
        if plain is not None:
            return plain
        check_scalar(expression)  # a plain comparison is made of what is on the list
        axes = columns_of(expression)
        places = {name: f"c{place}" for place, name in enumerate(axes)}
        text = duckdb_text(expression, places)
        key = (table, text, axes, tuple(sorted(probes.items())))
        known = self._cache.get(key)
        if known is not None:
            return known
        by_name = self._schemas[table].by_name
        shape = tuple(len(probes.get(name) or by_name[name].levels) for name in axes)
        if math.prod(shape) > N_FACTOR_CELLS_MAX:
            raise TooLarge(
                f"{shown(expression)} ties {', '.join(axes)} together: {math.prod(shape)} "
                f"combinations of levels, {N_FACTOR_CELLS_MAX} are allowed.",
                hint="Conditions on different columns that are joined by AND are not tied.",
                position=position(expression),
            )
        sources = [
            self._probed(place, probes[name])
            if name in probes
            else f"{self._relation(table, name)} AS {place}"
            for name, place in places.items()
        ]
        result = self._run(expression, _select(text, sources, shape), axes, shape)
        n_bytes = result.values.size * (64 if result.values.dtype == object else 8)
        self._cache.put(key, result, n_bytes=n_bytes)
        return result

    def _compared(self, expression: exp.Expr, table: str, probes: Probes) -> Evaluated | None:
        """The value of a plain comparison, without asking the database; None if it is none."""
        comparison = plain_comparison(expression)
        if comparison is None:
            return None
        name = comparison.column
        axis = self._schemas[table].by_name[name]
        if name in probes:
            comparable = Comparable(probes[name], "DOUBLE")
        elif is_comparable(axis):
            known = self._comparable.get((table, name))
            comparable = Comparable(axis.levels, axis.sql_type) if known is None else known
            self._comparable[table, name] = comparable
        else:
            return None
        found = comparable.holds(comparison)
        if found is None:
            return None
        return Evaluated((name,), "BOOLEAN", found, comparable.null)

    def lookups(self, table: PublicRelation) -> dict[str, str]:
        """The functions that look a public table's columns up by its key, by column."""
        with self._lock:
            known = self._lookups.pop(table.name, None)
            known = self._made_lookups(table) if known is None else known
            self._lookups[table.name] = known
            while len(self._lookups) > N_LOOKUPS_MAX:
                _, (place, functions) = self._lookups.popitem(last=False)
                for function in functions.values():
                    self._database.execute(f"DROP MACRO {function}")
                self._database.execute(f"DROP TABLE public_{place}")
            return known[1]

    def _made_lookups(self, table: PublicRelation) -> tuple[int, dict[str, str]]:
        place = next(self._numbers)
        columns = ", ".join(
            f"unnest(?::{sql_type}[]) AS c{number}"
            for number, (sql_type, _) in enumerate(table.values.values())
        )
        values = [list(column) for _, column in table.values.values()]
        self._database.execute(f"CREATE TABLE public_{place} AS SELECT {columns}", values)
        key = f"c{list(table.values).index(str(table.key))}"
        functions = {}
        for number, column in enumerate(table.values):
            functions[column] = f"public_{place}_{number}"
            found = f"SELECT c{number} FROM public_{place} WHERE {key} = x"  # noqa: S608 - own names
            self._database.execute(f"CREATE MACRO {functions[column]}(x) AS ({found})")
        return place, functions

    def _relation(self, table: str, name: str) -> str:
        """The table that holds an axis's levels, made when it is first needed."""
        with self._lock:
            relation = self._relations.get((table, name))
            if relation is None:
                axis = self._schemas[table].by_name[name]
                relation = f"levels_{len(self._relations)}"
                self._database.execute(
                    f"CREATE TABLE {relation} AS SELECT unnest(range({axis.size})) AS position, "
                    f"unnest(?::{axis.sql_type}[]) AS value",
                    [list(axis.levels)],
                )
                self._relations[(table, name)] = relation
            return relation

    @staticmethod
    def _probed(place: str, values: tuple[float | None, ...]) -> str:
        """Probes as a relation; ``repr`` of a double reads back as the same double."""
        listed = ", ".join("NULL" if value is None else f"'{value!r}'" for value in values)
        return (
            f"(SELECT unnest(range({len(values)})) AS position, "
            f"unnest([{listed}]::DOUBLE[]) AS value) AS {place}"
        )

    def _run(
        self, expression: exp.Expr, sql: str, axes: Scope, shape: tuple[int, ...]
    ) -> Evaluated:
        with self._lock:
            cursor = self._database.cursor()
        watchdog = Timer(SECONDS_MAX, cursor.interrupt)
        watchdog.daemon = True
        if math.prod(shape) * len(sql) > N_UNWATCHED:
            watchdog.start()
        try:
            cursor.execute(sql)
            sql_type = str(cursor.description[1][1]).strip('"')
            cells, values, null = _fetched(cursor, sql_type)
        except (duckdb.InterruptException, duckdb.OutOfMemoryException):
            raise TooLarge(
                f"{shown(expression)} takes too long, or too much memory, on the public levels.",
                hint="Simplify the expression or use fewer columns in it.",
                position=position(expression),
            ) from None
        except duckdb.Error as error:
            raise unsupported(
                expression,
                f"cannot be evaluated on every level: {_reason(error)}",
                "Levels outside the WHERE clause count too; guard with CASE, NULLIF or CAST.",
            ) from None
        finally:
            watchdog.cancel()
            cursor.close()
        in_order, is_null = np.empty_like(values), np.empty_like(null)
        in_order[cells], is_null[cells] = values, null
        return Evaluated(axes, sql_type, in_order.reshape(shape), is_null.reshape(shape))


def columns_of(expression: exp.Expr) -> Scope:
    """The names of the columns an expression mentions, sorted."""
    return tuple(sorted({column.name for column in expression.find_all(exp.Column)}))


def _select(text: str, sources: list[str], shape: tuple[int, ...]) -> str:
    """A query for (cell, value); the cell is the row-major position, as rows come in any order."""
    strides = [math.prod(shape[place + 1 :]) for place in range(len(shape))]
    cell = " + ".join(f"c{place}.position * {stride}" for place, stride in enumerate(strides))
    origin = f" FROM {', '.join(sources)}" if sources else ""
    return f"SELECT {cell or '0'} AS cell, ({text}) AS value{origin}"


def _fetched(
    cursor: Any, sql_type: str
) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.bool_]]:
    if sql_type.startswith(EXACT_TYPES):
        rows = cursor.fetchall()
        values = np.array([value for _, value in rows], dtype=object)
        null = np.array([value is None for _, value in rows], dtype=np.bool_)
        return np.array([cell for cell, _ in rows], dtype=np.int64), values, null
    columns = cursor.fetchnumpy()
    masked = np.ma.asarray(columns["value"])
    return np.asarray(columns["cell"], dtype=np.int64), masked.data, np.ma.getmaskarray(masked)


def _reason(error: duckdb.Error) -> str:
    """DuckDB's own first line, without its class of error and without advice on settings."""
    line = str(error).split("\n", 1)[0].split(". ", 1)[0]
    return shortened(line.split(": ", 1)[-1].rstrip("."))
