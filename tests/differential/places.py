"""Where a caller's expression is evaluated, in PostgreSQL and in Tacit, many in a statement.

levels    a key of groups of private rows: GROUP BY a, b, (expression)
where     a condition on private rows, of which the groups that it leaves are shown
public    on the rows of a public table
answers   around a SELECT of groups
alone     a SELECT without a table
catalog   a SELECT of pg_catalog
"""

import datetime as dt
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
import psycopg
import pyarrow as pa

from accountant.gate.open_table import open_table
from accountant.ledger.open_ledger import open_ledger
from cube.axis import BooleanAxis, CategoryAxis, DateAxis, IntegerAxis, MeasureAxis
from cube.refusals import Refused
from cube.schema import Schema
from cube.target import AccuracyTarget
from cube.timestamps import TimestampAxis
from proxy.api.requests import LOCAL, QueryRequest
from proxy.engine.engine import Engine
from proxy.sources.public_table import PublicTable
from proxy.synthetic_tables.store import SyntheticStore
from proxy.tables.private_table import ServedTable
from proxy.wire.postgres.pg_types import type_of_arrow
from tests.differential.comparing import family, is_near
from tests.differential.expressions import (
    BOOL,
    DAY,
    DBL,
    INT,
    MOMENT,
    NUM,
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
    n_records_max=10,
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
PUBLIC_ROWS: Final = 12
_INTERVAL: Final = re.compile(r"(-?\d+) (year|mon|day)s?|(-?)(\d+):(\d+):(\d+)(?:\.(\d+))?")
INTERVAL_OID: Final = 1186


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
    for one, other in (("i", "s"), ("n", "b"), ("d", "i"), ("m", "b"), ("s", "n"), ("i", "n")):
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
            (expression, other.refusal, _difference(one, other))
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
        if place.only is not None:
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
    if place.only is not None:
        return expressions[0].sql
    return ", ".join(f"{one.sql} AS e{number}" for number, one in enumerate(expressions))


def _columns(place: Place, kinds: Sequence[int], rows: list[list[Any]]) -> list[Outcome]:
    """One outcome for each expression, with the leading columns beside each value."""
    if place.only is not None:
        shown = ([_plain(value) for value in row] for row in rows)
        return [Outcome(BOOL_OID, tuple(sorted(map(repr, shown))))]
    n = place.n_leading
    rows = sorted(rows, key=lambda row: repr([_plain(value) for value in row[:n]]))
    return [Outcome(kinds[k], tuple(row[k] for row in rows)) for k in range(n, len(kinds))]


BOOL_OID: Final = 16


def _plain(value: Any) -> Any:
    is_number = isinstance(value, Decimal | int) and not isinstance(value, bool)
    return float(value) if is_number else value


def _listed_values(column: pa.ChunkedArray) -> list[Any]:
    values = column.to_pylist()
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


def _difference(one: Outcome, other: Outcome) -> str | None:
    if other.refusal is not None:
        return None
    if one.refusal is not None:
        # What has no value on a row is NULL beside others, and comparisons in a row without
        # parentheses are read from the left.
        has_no_value = one.refusal.startswith("22") and None in other.values
        if has_no_value or one.refusal.startswith("42601"):
            return None
        values = sorted(set(map(repr, other.values)))
        return f"PostgreSQL refuses: {one.refusal}; Tacit gives {values[:3]}"
    if family(one.kind) != family(other.kind) and any(value is not None for value in one.values):
        return f"type {one.kind}, in Tacit {other.kind}"
    if len(one.values) != len(other.values):
        return f"{len(one.values)} rows, in Tacit {len(other.values)}"
    pairs = zip(one.values, other.values, strict=True)
    apart = (
        f"{value!r}, in Tacit {found!r}" for value, found in pairs if not is_near(value, found)
    )
    return next(apart, None)


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
        postgres.execute("SET statement_timeout = '5s'")
        source = KnownTable(SCHEMA, np.zeros((5, len(SCHEMA.axes)), dtype=np.int64))
        gate = open_table(ledger, SCHEMA, Fraction(4000), source, NoNoise())
        table = ServedTable(SCHEMA, AccuracyTarget(half_width=5.0, confidence=0.95), gate)
        types = (
            *(pa.int64(), pa.int32(), pa.decimal128(10, 2), pa.float64(), pa.string()),
            *(pa.date32(), pa.timestamp("us"), pa.bool_()),
        )
        columns = zip(("id", *names), types, zip(*public_rows(), strict=True), strict=True)
        rows = pa.table({name: pa.array(list(values), kind) for name, kind, values in columns})
        store = SyntheticStore(folder / "synthetic")
        yield Evaluators(
            postgres, Engine({"p": table}, (PublicTable("v", None, rows),), store=store)
        )


def run(
    both: Evaluators, seed: int, n_expressions: int, *, batch: int = 25, n_shown: int = 50
) -> Count:
    """Try so many expressions, in every place by turns; differences are made small."""
    draw = random.Random(seed)  # noqa: S311 - statements for tests
    everywhere = places()
    count = Count()
    seen: set[str] = set()
    while count.tried < n_expressions:
        place = everywhere[draw.randrange(len(everywhere))]
        generator = Generator(draw, place.columns)
        expressions = [generator.expression(place.only) for _ in range(batch)]
        count.tried += batch
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
        if len(count.differences) >= n_shown:
            break
    return count
