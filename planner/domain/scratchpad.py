"""Evaluates expressions over public levels in an in-memory DuckDB, the scratchpad.

An allowed expression as DuckDB SQL over level tables.

Columns become the level columns of the scratchpad, by place and never by name. A public table's
column becomes a function of the key. What operators and functions mean is for `planner.meaning`.

A predicate over two columns is evaluated on every combination of their levels; the result is an
array over those combinations. The database holds only levels; it cannot reach a file, a network, an
extension or its own settings. It never contains a private row.
"""

import datetime as dt
import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from itertools import count
from threading import Lock
from typing import Final, TypeAlias

import duckdb
import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cube.axis import STEPS, Axis, DateAxis, MeasureAxis, TimestampAxis
from cube.pace import checkpoint, seconds_left
from cube.query import N_FACTOR_CELLS_MAX, Scope
from cube.refusals import TooLarge
from cube.schema import Schema
from planner.cache import BoundedCache
from planner.domain.allowance import N_STEPS_A_CELL, Allowance, Effort, effort, interrupted_after
from planner.domain.allowed import check_scalar
from planner.domain.evaluated import Evaluated, count_exact, read_values
from planner.domain.exact_levels import (
    Comparable,
    ComparableDoubles,
    comparable,
    plain_comparison,
    stored_type,
)
from planner.domain.relations import PublicRelation
from planner.meaning import (
    QUOTIENT_PLACES,
    Kind,
    SqlType,
    Value,
    duckdb_sql,
    of_duckdb,
    written_expression,
)
from planner.meaning.written import written
from planner.sql import PublicLookup, copy_of, nodes_of, position, shortened, shown, unsupported

TypeOfColumn = Callable[[exp.Expr], SqlType]


def duckdb_text(expression: exp.Expr, relations: Mapping[str, str], type_of: TypeOfColumn) -> str:
    """The expression with each column replaced by ``<its relation>.value``.

    Parameters
    ----------
    expression : Expr
    relations : mapping
        The relation of each column.
    type_of : callable
        What a column, or a looked-up one, holds.

    Raises
    ------
    UnsupportedSql
        If something in it cannot be computed as PostgreSQL does. Nothing that is written is without
        a form in DuckDB: what writers leave as it is are comparisons, choices and constants.
    """

    def resolve(node: exp.Expr) -> Value:
        if isinstance(node, PublicLookup):
            places = ", ".join(f"{{{place}}}" for place in range(len(node.expressions)))
            found = written(node, f"{node.name}({places})", *node.expressions)
        else:
            found = written(node, f"{relations[node.name]}.value")
        return Value(found, type_of(node))

    value = written_expression(expression, resolve)
    text = duckdb_sql(value.node)
    if value.type.kind is Kind.TIMESTAMPTZ:  # instants are shown in UTC
        return f"CAST({text} AS TIMESTAMP)"
    return f"CAST({text} AS DOUBLE)" if _is_quotient(expression, value.type) else text


def _is_quotient(expression: exp.Expr, found: SqlType) -> bool:
    """Whether the value is a quotient, which is used as a double where nothing rounds it."""
    is_decimal = found.kind is Kind.NUMERIC and found.scale is not None
    return is_decimal and (
        found.scale == QUOTIENT_PLACES or isinstance(expression.unnest(), exp.Div)
    )


SECONDS_MAX = 5.0  # an expression that takes longer over public levels is a mistake or an attack
# Steps, by a bound for all allowed expressions (allowance.py): ten milliseconds, so short that no
# interrupt is needed.
N_UNWATCHED = 10**7
N_LOOKUPS_MAX = (
    64  # public tables and subqueries over them, with their rows; made again when needed
)
N_LOOKUP_VALUES_MAX = 2**20  # of one of them: rows times columns
N_ENTRIES_MAX = 4096
N_BYTES_DEFAULT = 128 * 2**20  # of kept results
N_VECTOR: Final = 2048  # combinations that DuckDB processes at once
N_CHARACTERS_MAX = 2**26  # of texts in process, and of results: at most a quarter of a GB

# GLOBAL, because every evaluation has its own cursor, and session settings end with it.
SETTINGS = (
    "SET GLOBAL enable_external_access = false",
    "SET GLOBAL autoinstall_known_extensions = false",
    "SET GLOBAL autoload_known_extensions = false",
    "SET GLOBAL allow_community_extensions = false",
    "SET GLOBAL threads = 1",
    "SET GLOBAL memory_limit = '512MB'",
    "SET GLOBAL TimeZone = 'UTC'",
    "SET GLOBAL integer_division = true",  # as in PostgreSQL: 7 / 2 = 3, 7 / 2.0 = 3.5
    # PostgreSQL stops at x / 0 and ln(0); infinity would pass silently through a comparison.
    "SET GLOBAL ieee_floating_point_ops = false",
    "SET GLOBAL error_on_division_by_zero = true",
    "SET GLOBAL lock_configuration = true",
)

Probes: TypeAlias = Mapping[str, tuple[float | None, ...]]


class Scratchpad:
    """Evaluates allowed expressions over the levels of a few public schemas. Thread-safe."""

    def __init__(self, schemas: Mapping[str, Schema], n_bytes_max: int = N_BYTES_DEFAULT) -> None:
        self._schemas = schemas
        self._relations: dict[tuple[str, str], str] = {}
        self._lookups: OrderedDict[str, tuple[int, dict[str, str]]] = OrderedDict()
        self._numbers = count()
        self._comparable: dict[tuple[str, str], Comparable | None] = {}
        self._looked_up: dict[str, SqlType] = {}
        self._longest: dict[tuple[str, str], int] = {}
        self._lock = Lock()
        self._cache: BoundedCache[object, Evaluated] = BoundedCache(
            n_entries_max=N_ENTRIES_MAX, n_bytes_max=n_bytes_max
        )

    @cached_property
    def _database(self) -> duckdb.DuckDBPyConnection:
        """The database; opened when it is first needed, with the lock held.

        Plain comparisons never need it, and opening one takes longer than most statements.
        """
        database = duckdb.connect(":memory:")
        for setting in SETTINGS:
            database.execute(setting)
        return database

    def evaluate(
        self,
        expression: exp.Expr,
        *,
        table: str,
        probes: Probes | None = None,
        allowance: Allowance | None = None,
        only: NDArray[np.bool_] | None = None,
    ) -> Evaluated:
        """The value of `expression` on the levels of the columns it mentions.

        Parameters
        ----------
        expression : Expr
            Its columns carry the names of axes of `table`.
        probes : mapping, optional
            Columns that are evaluated on these values instead of their levels.
        allowance : Allowance, optional
            The statement's allowance; by default the expression has one of its own.
        only : (n_levels of the first column, ...) ndarray of bool, optional
            Where it is evaluated; elsewhere its value is NULL.

        Raises
        ------
        UnsupportedSql
            If the expression is not allowed, or fails on some level.
        TooLarge
            If there are too many combinations, or evaluating them is too much work.
        """
        probes = {} if probes is None else probes
        allowance = Allowance() if allowance is None else allowance
        plain = self._compared(expression, table, probes)
        if plain is not None:
            return plain if only is None else replace(plain, null=plain.null | ~only)
        check_scalar(expression)  # a plain comparison consists of allowed nodes
        axes = columns_of(expression)
        by_name = self._schemas[table].by_name
        shape = tuple(len(probes.get(name, ())) or by_name[name].size for name in axes)
        n_cells = math.prod(shape)
        if n_cells > N_FACTOR_CELLS_MAX:
            raise TooLarge(
                f"{shown(expression)} combines {', '.join(axes)}: they have {n_cells} "
                f"combinations of levels; {N_FACTOR_CELLS_MAX} are allowed.",
                hint=_untied(axes, by_name),
                position=position(expression),
            )
        work = effort(expression, lambda node: self._length_of(table, node))
        n_steps = n_cells * (N_STEPS_A_CELL + work.n_steps)
        allowance.steps(n_steps, work.n_nodes, expression)
        n_characters = _check_characters(work, n_cells, expression)
        places = {name: f"c{place}" for place, name in enumerate(axes)}
        text = duckdb_text(
            expression,
            places,
            lambda node: self._type_of(by_name, node, is_probed=node.name in probes),
        )
        chosen = None if only is None else np.packbits(only).tobytes()
        key = (table, text, axes, tuple(sorted(probes.items())), chosen)
        known = self._cache.get(key)
        if known is not None:
            count_exact(known.sql_type, known.null.size, expression, allowance)
            return known
        sources = [
            self._probed(place, probes[name])
            if name in probes
            else f"{self._relation(table, name)} AS {place}"
            for name, place in places.items()
        ]
        with self._lock:
            cursor = self._database.cursor()
        watched: AbstractContextManager[None] = nullcontext()
        if n_steps > N_UNWATCHED:
            watched = interrupted_after(seconds_left(SECONDS_MAX), cursor.interrupt)
        try:
            with watched:
                if only is None:
                    cursor.execute(_select(text, sources, shape))
                else:
                    bits = "".join(map(str, only.reshape(-1).astype(np.int8).tolist()))
                    cursor.execute(_select(text, sources, shape, is_chosen=True), [bits])
                result = read_values(cursor, expression, axes, shape, allowance)
        except (duckdb.InterruptException, duckdb.OutOfMemoryException):
            checkpoint()  # the statement's deadline may have passed
            raise _too_long(expression) from None
        except duckdb.Error as error:
            raise unsupported(
                expression,
                f"cannot be evaluated on every level: {_reason(error)}",
                "Exclude such levels in WHERE, or handle them with CASE or NULLIF.",
            ) from None
        finally:
            cursor.close()
        n_bytes = n_cells * (64 if result.values.dtype == object else 9) + n_characters + len(text)
        n_bytes += 0 if chosen is None else len(chosen)
        self._cache.put(key, result, n_bytes=n_bytes)
        return result

    def local_time(self, instant: dt.datetime, zone: str) -> dt.datetime:
        """What the clock of a declared zone shows at an instant, by the same rules as for rows."""
        with self._lock:
            cursor = self._database.cursor()
        try:
            shown = "SELECT timezone(?, CAST(? AS TIMESTAMPTZ))"
            found = cursor.execute(shown, [zone, instant.isoformat()]).fetchall()
        finally:
            cursor.close()
        local: dt.datetime = found[0][0]
        return local

    def _length_of(self, table: str, node: exp.Expr) -> int:
        """The most characters of a column's level, or of a value that is looked up by it."""
        if isinstance(node, PublicLookup):
            return self._longest["", node.name]
        known = self._longest.get((table, node.name))
        if known is None:
            axis = self._schemas[table].by_name[node.name]
            known = _longest(axis.levels) if axis.sql_type == "VARCHAR" else 0
            self._longest[table, node.name] = known
        return known

    def _type_of(self, by_name: Mapping[str, Axis], node: exp.Expr, *, is_probed: bool) -> SqlType:
        """The type of a column, or of a value that is looked up by it."""
        if isinstance(node, PublicLookup):
            return self._looked_up[node.name]
        return of_duckdb("DOUBLE" if is_probed else stored_type(by_name[node.name]))

    def _compared(self, expression: exp.Expr, table: str, probes: Probes) -> Evaluated | None:
        """The value of a plain comparison, without the database; None if it is not one."""
        comparison = plain_comparison(expression)
        if comparison is None:
            return None
        name = comparison.column
        if name in probes:
            values: Comparable | None = ComparableDoubles(probes[name])
        else:
            if (table, name) not in self._comparable:
                self._comparable[table, name] = comparable(self._schemas[table].by_name[name])
            values = self._comparable[table, name]
        found = None if values is None else values.holds(comparison)
        if values is None or found is None:
            return None
        return Evaluated((name,), "BOOLEAN", found, values.null)

    def lookups(self, table: PublicRelation) -> dict[str, str]:
        """The functions that look up a public table's columns by its key, one for each column."""
        with self._lock:
            known = self._lookups.pop(table.name, None)
            known = self._made_lookups(table) if known is None else known
            self._lookups[table.name] = known
            while len(self._lookups) > N_LOOKUPS_MAX:
                _, (place, functions) = self._lookups.popitem(last=False)
                for function in functions.values():
                    self._database.execute(f"DROP MACRO {function}")
                    del self._longest["", function], self._looked_up[function]
                self._database.execute(f"DROP TABLE public_{place}")
            return known[1]

    def _made_lookups(self, table: PublicRelation) -> tuple[int, dict[str, str]]:
        n_values = sum(len(column) for _, column in table.values.values())
        if n_values > N_LOOKUP_VALUES_MAX:
            raise TooLarge(
                f"A public table of {n_values} values is joined with private rows; "
                f"{N_LOOKUP_VALUES_MAX} values are allowed.",
                hint="Join a subquery that selects only the rows and columns you need.",
            )
        place = next(self._numbers)
        columns = ", ".join(
            f"unnest(?::{sql_type}[]) AS c{number}"
            for number, (sql_type, _) in enumerate(table.values.values())
        )
        values = [list(column) for _, column in table.values.values()]
        self._database.execute(f"CREATE TABLE public_{place} AS SELECT {columns}", values)
        keys = [list(table.values).index(column) for column in table.key]
        arguments = ", ".join(f"x{number}" for number in range(len(keys)))
        holds = " AND ".join(f"c{key} = x{number}" for number, key in enumerate(keys))
        functions = {}
        for number, column in enumerate(table.values):
            functions[column] = f"public_{place}_{number}"
            self._looked_up[functions[column]] = of_duckdb(table.values[column][0])
            self._longest["", functions[column]] = _longest(values[number])
            found = f"SELECT c{number} FROM public_{place} WHERE {holds}"  # noqa: S608 - own names
            self._database.execute(f"CREATE MACRO {functions[column]}({arguments}) AS ({found})")
        return place, functions

    def _relation(self, table: str, name: str) -> str:
        """The table that holds an axis's levels, created when it is first needed."""
        with self._lock:
            relation = self._relations.get((table, name))
            if relation is None:
                axis = self._schemas[table].by_name[name]
                relation = f"levels_{len(self._relations)}"
                if isinstance(axis, MeasureAxis):
                    self._make_measure(relation, axis)
                elif isinstance(axis, TimestampAxis):
                    self._make_moments(relation, axis)
                else:
                    self._database.execute(
                        f"CREATE TABLE {relation} AS SELECT unnest(range({axis.size})) "
                        f"AS position, unnest(?::{axis.sql_type}[])::{stored_type(axis)} AS value",
                        [list(axis.levels)],
                    )
                self._relations[(table, name)] = relation
            return relation

    def _make_measure(self, relation: str, axis: MeasureAxis) -> None:
        """The levels of a measure, by arithmetic: there may be a million of them."""
        multiples, divisor = axis.multiples, 1 / axis.unit
        value = f"({multiples.start} + position * {multiples.step})"
        if divisor != 1:
            value = f"{value}::DOUBLE / {int(divisor)}"
        self._database.execute(
            f"CREATE TABLE {relation} AS SELECT position, CASE WHEN position < {axis.n_regular} "  # noqa: S608 - public numbers
            f"THEN {value} END::{axis.sql_type}::{stored_type(axis)} AS value "
            f"FROM (SELECT unnest(range({axis.size})) AS position)"
        )

    def _make_moments(self, relation: str, axis: TimestampAxis) -> None:
        """The levels of a timestamp column, likewise; OTHER is its only level out of step."""
        other = "NULL" if axis.other is None else f"TIMESTAMP '{axis.other}'"
        n_microseconds = STEPS[axis.step] // dt.timedelta(microseconds=1)
        self._database.execute(
            f"CREATE TABLE {relation} AS SELECT position, CASE WHEN position < {axis.n_regular} "  # noqa: S608 - public moments
            f"THEN TIMESTAMP '{axis.low}' + to_microseconds(position * {n_microseconds}) "
            f"WHEN position = {axis.n_regular} THEN {other} END AS value "
            f"FROM (SELECT unnest(range({axis.size})) AS position)"
        )

    @staticmethod
    def _probed(place: str, values: tuple[float | None, ...]) -> str:
        """Probes as a relation; ``repr`` of a double reads back as the same double."""
        listed = ", ".join("NULL" if value is None else f"'{value!r}'" for value in values)
        return (
            f"(SELECT unnest(range({len(values)})) AS position, "
            f"unnest([{listed}]::DOUBLE[]) AS value) AS {place}"
        )


def columns_of(expression: exp.Expr) -> Scope:
    """The names of the columns an expression mentions, sorted."""
    return tuple(sorted({column.name for column in nodes_of(expression, exp.Column)}))


def _select(
    text: str, sources: list[str], shape: tuple[int, ...], *, is_chosen: bool = False
) -> str:
    """A query for (cell, value); the cell is the row-major position, as rows come in any order.

    Of some cells alone, if a text with a 1 for each of these is its parameter.
    """
    strides = [math.prod(shape[place + 1 :]) for place in range(len(shape))]
    cell = " + ".join(f"c{place}.position * {stride}" for place, stride in enumerate(strides))
    origin = f" FROM {', '.join(sources)}" if sources else ""
    where = f" WHERE get_bit(?::BIT, ({cell or '0'})::INTEGER) = 1" if is_chosen else ""
    return f"SELECT {cell or '0'} AS cell, ({text}) AS value{origin}{where}"


def _untied(axes: Scope, by_name: Mapping[str, Axis]) -> str:
    """What to ask instead of an expression that ties too many levels together."""
    if sum(isinstance(by_name[name], DateAxis | TimestampAxis) for name in axes) > 1:
        return (
            "Compare each with a constant date. The owner can also declare the time between "
            "them as a column of a private view."
        )
    return "Use separate conditions on the columns, joined by AND."


def _check_characters(work: Effort, n_cells: int, expression: exp.Expr) -> int:
    """The most characters of the result; intermediate texts exist for one vector at a time."""
    n_back = work.n_characters * n_cells
    n_characters = n_back + work.n_characters_made * min(n_cells, N_VECTOR)
    if n_characters > N_CHARACTERS_MAX:
        raise TooLarge(
            f"{shown(expression)} makes texts of up to {n_characters} characters in total; "
            f"{N_CHARACTERS_MAX} are allowed.",
            hint="Use fewer columns and shorter texts in it.",
            position=position(expression),
        )
    return n_back


def _too_long(expression: exp.Expr) -> TooLarge:
    return TooLarge(
        f"{shown(expression)} takes too much time or memory on the public levels.",
        hint="Simplify the expression or use fewer columns in it.",
        position=position(expression),
    )


def _longest(values: Sequence[object]) -> int:
    return max((len(value) for value in values if isinstance(value, str)), default=0)


def _reason(error: duckdb.Error) -> str:
    """The first line of DuckDB's message, without the error class and advice on settings."""
    line = str(error).split("\n", 1)[0].split(". ", 1)[0]
    return shortened(line.split(": ", 1)[-1].rstrip("."))


def left_to_right(expression: exp.Expr, allowance: Allowance) -> exp.Expr:
    """The same expression, in which what AND and OR have decided is not evaluated any further.

    DuckDB evaluates all of an AND on all levels, and stops where one part fails. PostgreSQL would
    have stopped at the part that is false, or at the one of an OR that is true.
    """

    def ordered(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.And | exp.Or):
            return node
        allowance.put_in(node, node)  # its parts stand there twice
        parts = [part.transform(ordered) for part in node.flatten()]
        decided: exp.Expr = exp.false() if isinstance(node, exp.And) else exp.true()
        ends = [
            exp.If(
                this=exp.Is(this=exp.paren(part), expression=copy_of(decided)),
                true=copy_of(decided),
            )
            for part in parts[:-1]
        ]
        join = exp.and_ if isinstance(node, exp.And) else exp.or_
        return exp.Case(ifs=ends, default=join(*parts))

    return expression.transform(ordered)
