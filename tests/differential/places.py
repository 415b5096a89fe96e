"""Where a caller's expression is evaluated, in PostgreSQL and in Tacit, many in a statement.

levels    a key of groups of private rows: GROUP BY a, b, (expression)
where     a condition on private rows, of which the groups that it leaves are shown
public    on the rows of a public table
answers   around a SELECT of groups
having    a condition on the keys and the count of a group
keys      two keys of groups at once, beside the count of each
sums      what is added up, averaged and counted over private rows, whose noise is 0
alone     a SELECT without a table
catalog   a SELECT of pg_catalog
"""

import datetime as dt
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
import psycopg
import pyarrow as pa
from numpy.typing import NDArray
from psycopg.types.string import TextLoader

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from cube.axis import BooleanAxis, CategoryAxis, DateAxis, IntegerAxis, MeasureAxis, TimestampAxis
from cube.refusals import Refused
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, QueryRequest
from proxy.engine.engine import Engine
from proxy.sources.public.table import PublicTable
from proxy.synthetic_tables.store import SyntheticStore
from proxy.tables.private_table import ServedTable
from proxy.wire.postgres.pg_types import type_of_arrow
from tests.differential.comparing import RELATIVE as EXACT
from tests.differential.comparing import family, is_near
from tests.differential.expressions import (
    BOOL,
    COUNTED,
    DAY,
    DBL,
    INT,
    MOMENT,
    NUM,
    PAIR,
    SUMMED,
    TXT,
    Expression,
    Generator,
)
from tests.differential.given import is_known
from tests.support.fakes import KnownTable, NoNoise
from tests.support.postgres import PostgresServer

TEXTS: Final = ("", "Oslo", "a", "a_b", "10%", "straße", "ÅÉ", "e\u0301a", "😀x", " b ", "12")
SCHEMA: Final = Schema(
    table="p",
    axes=(
        IntegerAxis(name="i", low=-3, high=5, null=True),
        MeasureAxis(
            name="n", low=Fraction(-5, 2), high=Fraction(5, 2), step=Fraction(1, 2), null=True
        ),
        CategoryAxis(name="s", values=TEXTS, null=True),
        DateAxis(name="d", low=dt.date(2024, 2, 27), high=dt.date(2024, 3, 2)),
        TimestampAxis(
            name="m",
            low=dt.datetime(2024, 3, 30, 22),  # noqa: DTZ001 - of no zone
            high=dt.datetime(2024, 3, 31, 3),  # noqa: DTZ001 - the same
            step="hour",
        ),
        BooleanAxis(name="b", null=True),
    ),
    n_records_max=60,
    unit="id",
)
KINDS: Final = {"i": INT, "n": NUM, "s": TXT, "d": DAY, "m": MOMENT, "b": BOOL}
PG_TYPES: Final = {
    "i": "int",
    "n": "numeric",
    "x": "double precision",
    "s": "text",
    "d": "date",
    "m": "timestamp",
    "b": "boolean",
}
PAIRS: Final = (("i", "s"), ("n", "b"), ("d", "i"), ("m", "b"), ("s", "n"), ("i", "n"))
N_PRIVATE: Final = 60
NARROW: Final = 0.5  # of a half-width of the counts that are bought before all else
# Wide enough that nothing is bought for a statement: all that it asks for is history already.
WIDE: Final = AccuracyTarget(half_width=10**12, confidence=0.95)
PUBLIC_ROWS: Final = 12
_INTERVAL: Final = re.compile(r"(-?\d+) (year|mon|day)s?|(-?)(\d+):(\d+):(\d+)(?:\.(\d+))?")
INTERVAL_OID: Final = 1186
TIMESTAMP_OID, INSTANT_OID = 1114, 1184
BEYOND: Final = "a year that is none from 1 to 9999"
OF_CLIENT: Final = "None"  # the state of what the client of PostgreSQL cannot read
RELATIVE: Final = 1e-6  # of sums, which are estimated


@dataclass(frozen=True, slots=True)
class Outcome:
    """A column of values and its type, or a refusal."""

    kind: int | None = None
    values: tuple[Any, ...] = ()
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A kind of place: how statements around expressions are written, and its columns."""

    name: str
    columns: Mapping[str, str]
    postgres: str
    tacit: str
    n_leading: int  # columns before the expressions
    only: str | None = None  # the type that an expression must have

    @property
    def is_one(self) -> bool:
        """Whether a statement has one expression, and its rows as a whole are compared."""
        return self.only in (BOOL, PAIR)


@dataclass(slots=True)
class Count:
    """What came of the expressions that were tried."""

    tried: int = 0
    refused: int = 0
    both_refused: int = 0
    differences: list[str] = field(default_factory=list)


def public_rows() -> list[tuple[Any, ...]]:
    """The rows of the public table; the same in every run."""
    draw = random.Random(11)  # noqa: S311 - data for tests
    return [
        (
            number,
            draw.choice([None, -7, -1, 0, 1, 2, 3, 10]),
            draw.choice([None, *map(Decimal, ("-2.50", "-0.05", "0.00", "0.50", "1.50", "2.25"))]),
            draw.choice([None, -1.5, -0.5, 0.0, 0.5, 2.5, 1e10, 0.1]),
            draw.choice([None, *TEXTS]),
            draw.choice([None, dt.date(2024, 2, 29), dt.date(2023, 1, 1), dt.date(1999, 12, 31)]),
            draw.choice([None, dt.datetime(2024, 3, 31, 2, 30), dt.datetime(2000, 1, 1)]),  # noqa: DTZ001
            draw.choice([None, True, False]),
        )
        for number in range(PUBLIC_ROWS)
    ]


def private_rows() -> NDArray[np.int64]:
    """The levels of each private row by place, (n, k); the same in every run."""
    draw = random.Random(12)  # noqa: S311 - data for tests
    rows = [[draw.randrange(axis.size) for axis in SCHEMA.axes] for _ in range(N_PRIVATE)]
    return np.array(rows, dtype=np.int64)


def places() -> list[Place]:
    """Every place, one for each pair of columns of the private table."""
    found = [
        Place(
            "public",
            KINDS | {"x": DBL},
            "SELECT id, {} FROM v ORDER BY id",
            "SELECT id, {} FROM v ORDER BY id",
            1,
        ),
        Place("alone", {}, "SELECT {}", "SELECT {}", 0),
        Place(
            "catalog",
            {"relname": TXT, "relkind": TXT},
            "SELECT {} FROM (SELECT 'p'::text AS relname, 'r'::text AS relkind) AS c",
            "SELECT {} FROM pg_catalog.pg_class WHERE relname = 'p'",
            0,
        ),
    ]
    for one, other in PAIRS:
        columns = {name: KINDS[name] for name in (one, other)}
        both = f"{one}, {other}"
        rows = f"(SELECT * FROM l_{one} CROSS JOIN l_{other}) AS p"  # noqa: S608 - own names
        found += [
            Place(
                "levels",
                columns,
                f"SELECT {both}, {{}} FROM {rows}",  # noqa: S608 - own names
                f"SELECT {both}, {{}} FROM p GROUP BY ALL",  # noqa: S608 - own names
                2,
            ),
            Place(
                "where",
                columns,
                f"SELECT {both} FROM {rows} WHERE {{}}",  # noqa: S608 - own names
                f"SELECT {both} FROM p WHERE {{}} GROUP BY {both}",  # noqa: S608 - own names
                0,
                BOOL,
            ),
            Place(
                "answers",
                columns,
                f"SELECT {both}, {{}} FROM {rows}",  # noqa: S608 - own names
                f"SELECT {both}, {{}} FROM (SELECT {both} FROM p GROUP BY {both}) AS p",  # noqa: S608 - own names
                2,
            ),
            Place(
                "having",
                columns | {"(c + 0.125)": COUNTED},
                f"SELECT {both}, c FROM c_{one}_{other} WHERE {{}}",  # noqa: S608 - own names
                f"SELECT {both}, COUNT(*) AS c FROM p GROUP BY {both} HAVING {{}}",  # noqa: S608 - own names
                0,
                BOOL,
            ),
            Place(
                "keys",
                columns,
                f"SELECT {{}}, SUM(c) AS c FROM c_{one}_{other} GROUP BY 1, 2",  # noqa: S608 - own names
                "SELECT {}, COUNT(*) AS c FROM p GROUP BY 1, 2",
                0,
                PAIR,
            ),
            Place("sums", columns, "SELECT {} FROM p", "SELECT {} FROM p", 0, SUMMED),
        ]
    return found


class Evaluators:
    """Both servers' values of expressions."""

    def __init__(self, postgres: psycopg.Connection, engine: Engine) -> None:
        self._postgres = postgres
        self._engine = engine

    def compare(
        self, place: Place, expressions: Sequence[Expression]
    ) -> list[tuple[Expression, str | None, str | None]]:
        """Each expression with Tacit's refusal and the difference, if there are any."""
        expected = self._outcomes(place, expressions, self._in_postgres)
        found = self._outcomes(place, expressions, self._in_tacit)
        return [
            (expression, other.refusal, _difference(place, one, other))
            for expression, one, other in zip(expressions, expected, found, strict=True)
        ]

    def smallest(self, place: Place, expression: Expression) -> tuple[Expression, str]:
        """The smallest expression inside a different one that differs, and how."""
        (_, _, difference) = self.compare(place, [expression])[0]
        while True:
            for one in expression.smaller():
                if place.only not in (None, one.kind):
                    continue
                (_, _, shorter) = self.compare(place, [one])[0]
                if shorter is not None:
                    expression, difference = one, shorter
                    break
            else:
                return expression, str(difference)

    def _outcomes(self, place: Place, expressions: Sequence[Expression], ask: Any) -> list[Outcome]:
        """Outcomes of all, in halves where some are refused."""
        if place.is_one:
            return [ask(place, [one])[0] for one in expressions]
        try:
            return list(ask(place, expressions))
        except _RefusedTogether:
            middle = len(expressions) // 2
            halves = (expressions[:middle], expressions[middle:])
            return [one for half in halves for one in self._outcomes(place, half, ask)]

    def _in_postgres(self, place: Place, expressions: Sequence[Expression]) -> list[Outcome]:
        sql = place.postgres.format(_listed(place, expressions))
        try:
            cursor = self._postgres.execute(sql)
            assert cursor.description is not None
            kinds = [column.type_code for column in cursor.description]
            rows = _with_spans(cursor, kinds)
        except psycopg.Error as error:
            if len(expressions) > 1:
                raise _RefusedTogether from None
            return [Outcome(refusal=f"{error.sqlstate} {str(error).splitlines()[0]}")]
        return _columns(place, kinds, rows)

    def _in_tacit(self, place: Place, expressions: Sequence[Expression]) -> list[Outcome]:
        sql = place.tacit.format(_listed(place, expressions))
        try:
            data = self._engine.answer(QueryRequest(sql=sql, caller=LOCAL)).data
        except Refused as refused:
            if len(expressions) > 1:
                raise _RefusedTogether from None
            return [Outcome(refusal=f"{refused.code} {refused}")]
        kinds = [type_of_arrow(kind).oid for kind in data.schema.types]
        columns = [_listed_values(column) for column in data.columns]
        return _columns(place, kinds, [list(row) for row in zip(*columns, strict=True)])


class _RefusedTogether(Exception):
    pass


def _listed(place: Place, expressions: Sequence[Expression]) -> str:
    if place.is_one:
        return expressions[0].sql
    return ", ".join(f"{one.sql} AS e{number}" for number, one in enumerate(expressions))


def _columns(place: Place, kinds: Sequence[int], rows: list[list[Any]]) -> list[Outcome]:
    """One outcome for each expression, with the leading columns beside each value."""
    if place.is_one:
        shown = ([_plain(value) for value in row] for row in rows)
        return [Outcome(BOOL_OID, tuple(sorted(map(repr, shown))))]
    n = place.n_leading
    kinds = [TIMESTAMP_OID if kind == INSTANT_OID else kind for kind in kinds]
    rows = [[_as_shown(value) for value in row] for row in rows]
    rows = sorted(rows, key=lambda row: repr([_plain(value) for value in row[:n]]))
    return [Outcome(kinds[k], tuple(row[k] for row in rows)) for k in range(n, len(kinds))]


BOOL_OID: Final = 16


def _plain(value: Any) -> Any:
    """A value in the form in which both servers have it; numbers to seven digits."""
    is_number = isinstance(value, Decimal | int | float) and not isinstance(value, bool)
    return round(float(f"{float(value):.7g}"), 7) + 0.0 if is_number else value


def _as_shown(value: Any) -> Any:
    """An instant as the time of UTC, which Tacit shows."""
    is_instant = isinstance(value, dt.datetime) and value.tzinfo is not None
    return value.astimezone(dt.UTC).replace(tzinfo=None) if is_instant else value


def _listed_values(column: pa.ChunkedArray) -> list[Any]:
    try:
        values = column.to_pylist()
    except (OverflowError, ValueError):  # a day that Python has not
        return [BEYOND] * len(column)
    if pa.types.is_interval(column.type):
        return [None if v is None else (v.months, v.days, v.nanoseconds // 1000) for v in values]
    return list(values)


def _with_spans(cursor: psycopg.Cursor, kinds: Sequence[int]) -> list[list[Any]]:
    """The rows of a result, with intervals as months, days and microseconds."""
    rows = [list(row) for row in cursor.fetchall()]
    texts = cursor.pgresult
    assert texts is not None
    for place in (place for place, kind in enumerate(kinds) if kind == INTERVAL_OID):
        for number, row in enumerate(rows):
            row[place] = _span(texts.get_value(number, place))
    return rows


def _span(raw: bytes | None) -> tuple[int, int, int] | None:
    """An interval as months, days and microseconds, from PostgreSQL's text."""
    if raw is None:
        return None
    months = days = micros = 0
    for n, unit, sign, hours, minutes, seconds, fraction in _INTERVAL.findall(raw.decode()):
        if unit:
            months += {"year": 12, "mon": 1}.get(unit, 0) * int(n)
            days += int(n) if unit == "day" else 0
        else:
            part = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
            part = part * 10**6 + int((fraction or "0").ljust(6, "0"))
            micros += -part if sign else part
    return months, days, micros


def _difference(place: Place, one: Outcome, other: Outcome) -> str | None:
    if other.refusal is not None:
        return None
    if one.refusal is not None:
        values = sorted(set(map(repr, other.values)))
        told = f"PostgreSQL refuses: {one.refusal}; Tacit gives {values[:3]}"
        return None if _is_left_out(one.refusal, other) else told
    if place.only == SUMMED and one.values == (None,) and other.values == (0,):
        return None  # a sum of no values
    if family(one.kind) != family(other.kind) and any(value is not None for value in one.values):
        return f"type {one.kind}, in Tacit {other.kind}"
    if len(one.values) != len(other.values):
        return f"{len(one.values)} rows, in Tacit {len(other.values)}"
    error = RELATIVE if place.only == SUMMED else EXACT
    pairs = zip(one.values, other.values, strict=True)
    apart = (
        f"{value!r}, in Tacit {found!r}"
        for value, found in pairs
        if not is_near(value, found, error)
    )
    return next(apart, None)


def _is_left_out(refusal: str, other: Outcome) -> bool:
    """Whether a refusal of PostgreSQL alone is no difference.

    What has no value on a row is NULL beside others, comparisons in a row without parentheses are
    read from the left, and the client of PostgreSQL reads only the years that Python has.
    """
    has_no_value = refusal.startswith("22") and None in other.values
    is_beyond = refusal.startswith(OF_CLIENT) and BEYOND in other.values
    return has_no_value or is_beyond or refusal.startswith("42601")


@contextmanager
def evaluators(folder: Path, server: PostgresServer) -> Iterator[Evaluators]:
    """Both servers with the tables, within a `with` block."""
    with server.connect() as first:
        first.execute("DROP DATABASE IF EXISTS expressions")
        first.execute("CREATE DATABASE expressions TEMPLATE template0 LC_CTYPE 'C.UTF-8'")
    with server.connect("expressions") as postgres, open_ledger(folder / "p.ledger") as ledger:
        names = ("i", "n", "x", "s", "d", "m", "b")
        listed = ", ".join(f"{name} {PG_TYPES[name]}" for name in names)
        postgres.execute(f"CREATE TABLE v (id bigint, {listed})")
        with postgres.cursor().copy("COPY v FROM STDIN") as copy:
            for row in public_rows():
                copy.write_row(row)
        for axis in SCHEMA.axes:
            name = axis.name
            postgres.execute(f"CREATE TABLE l_{name} ({name} {PG_TYPES[name]})")
            with postgres.cursor().copy(f"COPY l_{name} FROM STDIN") as copy:
                for level in axis.levels:
                    copy.write_row((level,))
        private = private_rows()
        listed = ", ".join(f"{axis.name} {PG_TYPES[axis.name]}" for axis in SCHEMA.axes)
        postgres.execute(f"CREATE TABLE p ({listed})")
        with postgres.cursor().copy("COPY p FROM STDIN") as copy:
            for levels in private:
                copy.write_row(
                    [axis.levels[k] for axis, k in zip(SCHEMA.axes, levels, strict=True)]
                )
        for a, b in PAIRS:
            is_of_group = f"(p.{a}, p.{b}) IS NOT DISTINCT FROM (l_{a}.{a}, l_{b}.{b})"
            n_rows = f"(SELECT count(*) FROM p WHERE {is_of_group})"  # noqa: S608 - own names
            postgres.execute(
                f"CREATE TABLE c_{a}_{b} AS SELECT {a}, {b}, {n_rows} AS c "  # noqa: S608 - own names
                f"FROM l_{a} CROSS JOIN l_{b}"
            )
        postgres.execute("SET statement_timeout = '5s'")
        postgres.adapters.register_loader("interval", TextLoader)  # some are beyond Python's
        postgres.execute("SET TIME ZONE 'UTC'")
        source = KnownTable(SCHEMA, private)
        gate = open_table(ledger, SCHEMA, Fraction(4000), source, NoNoise())
        table = ServedTable(SCHEMA, WIDE, gate)
        types = (
            *(pa.int64(), pa.int32(), pa.decimal128(10, 2), pa.float64(), pa.string()),
            *(pa.date32(), pa.timestamp("us"), pa.bool_()),
        )
        columns = zip(("id", *names), types, zip(*public_rows(), strict=True), strict=True)
        rows = pa.table({name: pa.array(list(values), kind) for name, kind, values in columns})
        store = SyntheticStore(folder / "synthetic")
        engine = Engine({"p": table}, (PublicTable("v", None, rows),), store=store)
        close = RequestedTarget(half_width=NARROW)
        for a, b in PAIRS:
            sql = f"SELECT {a}, {b}, COUNT(*) FROM p GROUP BY {a}, {b}"  # noqa: S608 - own names
            engine.answer(QueryRequest(sql=sql, caller=LOCAL, target=close))
        yield Evaluators(postgres, engine)


def run(  # noqa: PLR0913 - what is tried, and how it is told
    both: Evaluators,
    seed: int,
    n_expressions: int,
    *,
    batch: int = 25,
    n_shown: int = 50,
    tell: Callable[[str], None] = lambda _told: None,
) -> Count:
    """Try so many expressions, in every place by turns; differences are made small, and told."""
    draw = random.Random(seed)  # noqa: S311 - statements for tests
    everywhere = places()
    count = Count()
    seen: set[str] = set()
    while count.tried < n_expressions:
        place = everywhere[draw.randrange(len(everywhere))]
        generator = Generator(draw, place.columns)
        n_asked = batch // 5 if place.is_one else batch  # a statement for each of them
        expressions = [generator.expression(place.only) for _ in range(n_asked)]
        count.tried += n_asked
        for expression, refusal, difference in both.compare(place, expressions):
            count.refused += refusal is not None
            if difference is not None:
                small, how = both.smallest(place, expression)
                known = f"{small.template} {re.sub(r'[0-9]+', '', how)[:30]}"
                if known not in seen:
                    seen.add(known)
                    told = f"[{place.name}] {small.sql}: {how}"
                    if not is_known(told):  # which differs on purpose
                        count.differences.append(told)
                        tell(f"{count.tried} {told}")
        if len(count.differences) >= n_shown:
            break
    return count
