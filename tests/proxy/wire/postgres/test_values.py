"""Values as bytes: read back by psycopg, and written as a real PostgreSQL writes them."""

import datetime as dt
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.adapt import Transformer
from psycopg.pq import Format

from planner.sql.parameters import Parameter, ParameterKind, list_of, parameter_of
from proxy.wire.postgres.backend import Column
from proxy.wire.postgres.bound_values import bound
from proxy.wire.postgres.pg_types import (
    BY_OID,
    DATE,
    FLOAT8,
    INT4,
    INT8,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    PgType,
    type_of_arrow,
)
from proxy.wire.postgres.portals import columns_of
from proxy.wire.postgres.sqlstates import StateError
from proxy.wire.postgres.values import rows_of
from tests.support.postgres import PostgresServer

FORMATS = (0, 1)
MOMENT = dt.datetime(2024, 2, 29, 23, 59, 59, 120_000)  # noqa: DTZ001 - of no zone
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, False]),
    "int2": (pa.int16(), [-(2**15), 0, 2**15 - 1]),
    "int4": (pa.int32(), [-(2**31), 0, 2**31 - 1]),
    "int8": (pa.int64(), [-(2**63), 0, 2**63 - 1]),
    "oid": (pa.uint32(), [0, 2**32 - 1]),
    "float4": (pa.float32(), [0.0, -1.5, 0.1, 1e20, 3.4028234663852886e38, float("inf")]),
    "float8": (pa.float64(), [0.0, -1.5, 0.1, 1e-7, 1e20, 1234567.0, 123456789012345680.0]),
    "numeric": (
        pa.decimal128(20, 4),
        [
            Decimal(text)
            for text in ("0", "0.0001", "-1", "10000", "-12345.6789", "9999999999999999")
        ],
    ),
    "whole": (pa.decimal128(38, 0), [Decimal(0), Decimal(10**20), Decimal(-1)]),
    "text": (pa.string(), ["", "a", "Zürich ☃", "a\tb\\c"]),
    "bytea": (pa.binary(), [b"", b"\x00\xff"]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(2000, 1, 1), dt.date(9999, 12, 31)]),
    "time": (pa.time64("us"), [dt.time(0), dt.time(23, 59, 59, 123_456)]),
    "timestamp": (pa.timestamp("us"), [dt.datetime(1970, 1, 1), MOMENT]),  # noqa: DTZ001
    "timestamptz": (pa.timestamp("ns", tz="UTC"), [MOMENT.replace(tzinfo=dt.UTC)]),
    "texts": (pa.list_(pa.string()), [[], ["a", "", "NULL", 'b"\\,{}', None]]),
    "numbers": (pa.list_(pa.int64()), [[], [1, None, -3]]),
    "interval": (
        pa.duration("us"),
        [dt.timedelta(0), dt.timedelta(days=3, hours=-1, microseconds=5), dt.timedelta(seconds=-1)],
    ),
}


def written(kind: pa.DataType, values: Sequence[Any], form: int) -> list[bytes | None]:
    table = pa.table({"a": pa.array(values, kind)})
    return [row[0] for row in rows_of(table, columns_of(table.schema, (form,)))]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", VALUES)
def test_a_client_reads_what_was_written(name: str, form: int) -> None:
    kind, values = VALUES[name]
    load = Transformer().get_loader(type_of_arrow(kind).oid, Format(form)).load
    found = [load(value) for value in written(kind, [*values, None], form) if value is not None]
    if kind == pa.float32():
        found, values = [pa.array(each, kind).to_pylist() for each in (found, values)]
    assert found == values


def test_null_has_no_bytes() -> None:
    for kind, _ in VALUES.values():
        assert written(kind, [None], 0) == written(kind, [None], 1) == [None]


SPOKEN = {"whole": "numeric", "texts": "text[]", "numbers": "int8[]"}


@pytest.mark.parametrize("name", [name for name in VALUES if name not in {"timestamptz", "bytea"}])
def test_texts_are_those_of_postgresql(postgres_server: PostgresServer, name: str) -> None:
    kind, values = VALUES[name]
    with postgres_server.connect() as connection:
        for value, ours in zip(values, written(kind, values, 0), strict=True):
            scale = f"({kind.precision},{kind.scale})" if pa.types.is_decimal(kind) else ""
            sql = f"SELECT (%s::{SPOKEN.get(name, name)}{scale})::text"
            (theirs,) = connection.execute(sql, (value,)).fetchone() or ("",)
            assert ours is not None
            shown = {"t": "true", "f": "false"}.get(ours.decode(), ours.decode())
            assert shown == theirs


def test_intervals_are_written_as_postgresql_does() -> None:
    parts = [(14, -3, 14_706_500_000_000), (0, 0, 0), (-13, 1, -1_000_000_000), (0, 2, 0)]
    array = pa.array(parts, pa.month_day_nano_interval())
    assert written(array.type, array.to_pylist(), 0) == [
        b"1 year 2 mons -3 days +04:05:06.5",
        b"00:00:00",
        b"-1 years -1 mons +1 day -00:00:01",
        b"2 days",
    ]
    assert written(array.type, array.to_pylist()[:1], 1) == [
        struct.pack("!qii", 14_706_500_000, -3, 14)
    ]


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, min_value=-(10**15), max_value=10**15, places=6
    )
)
def test_decimals_keep_every_digit(value: Decimal) -> None:
    kind = pa.decimal128(38, 6)
    for form in FORMATS:
        load = Transformer().get_loader(NUMERIC.oid, Format(form)).load
        (found,) = written(kind, [value], form)
        assert found is not None
        assert load(found) == value


BOUND = [
    (30, INT4, "30"),
    (-(2**62), INT8, str(-(2**62))),
    (0.1, FLOAT8, "0.1"),
    (Decimal("-12345.6789"), NUMERIC, "-12345.6789"),
    ("it's; DROP", TEXT, "it's; DROP"),
    (dt.date(2025, 1, 4), DATE, "2025-01-04"),
    (MOMENT, TIMESTAMP, "2024-02-29 23:59:59.120000"),
]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("value", "kind", "text"), BOUND)
def test_what_a_client_binds_is_read(value: Any, kind: PgType, text: str, form: int) -> None:
    transformer = psycopg.adapt.Transformer()
    dumper = transformer.get_dumper(
        value, psycopg.adapt.PyFormat.BINARY if form else psycopg.adapt.PyFormat.TEXT
    )
    raw = dumper.dump(value)
    kind = BY_OID.get(dumper.oid, kind) if form else kind
    (found,) = bound([bytes(raw or b"")], [form], [kind], ["1"])
    assert found.text == text


def test_lists_are_read_in_both_formats() -> None:
    wanted = list_of(["a", 'b",{}\\', None, "NULL"], "1")
    lists = BY_OID[1009]
    text = b'{a,"b\\",{}\\\\",NULL,"NULL"}'
    assert bound([text], [0], [lists], ["1"]) == (wanted,)
    items = [b"a", b'b",{}\\', None, b"NULL"]
    cells = b"".join(
        b"\xff\xff\xff\xff" if item is None else struct.pack("!i", len(item)) + item
        for item in items
    )
    binary = struct.pack("!iiIii", 1, 1, TEXT.oid, len(items), 1) + cells
    assert bound([binary], [1], [lists], ["1"]) == (wanted,)
    assert bound([b"{}"], [0], [lists], ["1"]) == (list_of([], "1"),)
    assert bound([struct.pack("!iiI", 0, 0, TEXT.oid)], [1], [lists], ["1"]) == (list_of([], "1"),)


@pytest.mark.parametrize(
    ("value", "form", "kind"),
    [
        (b"x", 0, INT4),
        (b"1" * 30, 0, INT8),
        (b"1e999999999", 0, NUMERIC),
        (b"nan", 0, FLOAT8),
        (b"\0", 1, INT4),
        (b"2025-13-01", 0, DATE),
        (struct.pack("!i", 2**31 - 1), 1, DATE),
        (struct.pack("!hhHh", 2000, 0, 0, 0), 1, NUMERIC),
        (struct.pack("!hhHh", 1, 0, 0xC000, 0) + b"\0\0", 1, NUMERIC),
        (b"{a", 0, BY_OID[1009]),
        (b'{"a}', 0, BY_OID[1009]),
        (b"{a,}", 0, BY_OID[1009]),
        (struct.pack("!iiIii", 1, 0, TEXT.oid, 2**31 - 1, 1), 1, BY_OID[1009]),
        (struct.pack("!iiIii", 1, 0, INT4.oid, 0, 1), 1, BY_OID[1009]),
    ],
)
def test_what_is_not_of_its_type_is_refused(value: bytes, form: int, kind: PgType) -> None:
    with pytest.raises(StateError) as caught:
        bound([value], [form], [kind], ["1"])
    assert caught.value.sqlstate in {"22P02", "22P03", "22003", "22007", "22008"}


def test_null_is_bound_whatever_the_type_is() -> None:
    assert bound([None], [], [INT4], ["1"]) == (parameter_of(None, "1"),)
    assert bound([None], [], [INT4], ["1"]) == (Parameter(ParameterKind.NULL, name="1"),)


def test_as_many_values_and_formats_as_parameters() -> None:
    for values, formats in (([], []), ([b"1"] * 2, []), ([b"1"], [0, 1]), ([b"1"], [2])):
        with pytest.raises(StateError):
            bound(values, formats, [INT4], ["1"])


def test_every_type_of_a_column_has_a_way_to_be_written() -> None:
    for kind, _ in VALUES.values():
        column = Column("a", type_of_arrow(kind))
        assert column.type in BY_OID.values()
