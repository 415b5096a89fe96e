"""PostgreSQL's types: which one a column of a result has, and which one a parameter.

The object numbers are those of PostgreSQL's own catalog, which drivers know by heart.
"""

from dataclasses import dataclass
from typing import Final

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class PgType:
    """A type: number, name, size in bytes (-1 if that varies), and the item type of a list."""

    oid: int
    name: str
    size: int
    element: "PgType | None" = None


BOOL: Final = PgType(16, "bool", 1)
BYTEA: Final = PgType(17, "bytea", -1)
INT8: Final = PgType(20, "int8", 8)
INT2: Final = PgType(21, "int2", 2)
INT4: Final = PgType(23, "int4", 4)
TEXT: Final = PgType(25, "text", -1)
OID: Final = PgType(26, "oid", 4)
FLOAT4: Final = PgType(700, "float4", 4)
FLOAT8: Final = PgType(701, "float8", 8)
BPCHAR: Final = PgType(1042, "bpchar", -1)
VARCHAR: Final = PgType(1043, "varchar", -1)
DATE: Final = PgType(1082, "date", 4)
TIME: Final = PgType(1083, "time", 8)
TIMESTAMP: Final = PgType(1114, "timestamp", 8)
TIMESTAMPTZ: Final = PgType(1184, "timestamptz", 8)
INTERVAL: Final = PgType(1186, "interval", 16)
NUMERIC: Final = PgType(1700, "numeric", -1)
UNKNOWN: Final = PgType(705, "unknown", -2)
NAME: Final = PgType(19, "name", 64)
CHAR: Final = PgType(18, "char", 1)

_LISTS: Final = {
    element: PgType(oid, f"_{element.name}", -1, element)
    for element, oid in (
        (BOOL, 1000),
        (INT2, 1005),
        (INT4, 1007),
        (TEXT, 1009),
        (VARCHAR, 1015),
        (INT8, 1016),
        (FLOAT4, 1021),
        (FLOAT8, 1022),
        (OID, 1028),
        (TIMESTAMP, 1115),
        (DATE, 1182),
        (TIME, 1183),
        (TIMESTAMPTZ, 1185),
        (INTERVAL, 1187),
        (NUMERIC, 1231),
        (NAME, 1003),
        (BYTEA, 1001),
        (BPCHAR, 1014),
    )
}
_SCALARS: Final = (*_LISTS, UNKNOWN, CHAR)
BY_OID: Final = {one.oid: one for one in (*_SCALARS, *_LISTS.values())}

_ARROW: Final = {
    pa.bool_(): BOOL,
    pa.int8(): INT2,
    pa.uint8(): INT2,
    pa.int16(): INT2,
    pa.uint16(): INT4,
    pa.int32(): INT4,
    pa.uint32(): OID,  # as the catalog has them; as good as any other whole number
    pa.int64(): INT8,
    pa.uint64(): NUMERIC,
    pa.float32(): FLOAT4,
    pa.float64(): FLOAT8,
    pa.date32(): DATE,
    pa.date64(): DATE,
    pa.null(): TEXT,
    pa.string(): TEXT,
    pa.large_string(): TEXT,
    pa.binary(): BYTEA,
    pa.large_binary(): BYTEA,
    pa.month_day_nano_interval(): INTERVAL,
}
# The types of parameters by their SQL names, as the planner says them.
_SQL: Final = {
    "BOOLEAN": BOOL,
    "TINYINT": INT2,
    "SMALLINT": INT2,
    "INTEGER": INT4,
    "INT": INT4,
    "BIGINT": INT8,
    "DOUBLE": FLOAT8,
    "DOUBLE PRECISION": FLOAT8,
    "FLOAT": FLOAT4,
    "DECIMAL": NUMERIC,
    "NUMERIC": NUMERIC,
    "DATE": DATE,
    "TIME": TIME,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": TIMESTAMPTZ,
    "INTERVAL": INTERVAL,
    "VARCHAR": TEXT,
}


def type_of_arrow(arrow: pa.DataType) -> PgType:  # noqa: PLR0911 - one for each family
    """The type of a result's column."""
    found = _ARROW.get(arrow)
    if found is not None:
        return found
    if pa.types.is_dictionary(arrow):
        return type_of_arrow(arrow.value_type)
    if pa.types.is_decimal(arrow):
        return NUMERIC
    if pa.types.is_timestamp(arrow):
        return TIMESTAMP if arrow.tz is None else TIMESTAMPTZ
    if pa.types.is_time(arrow):
        return TIME
    if pa.types.is_duration(arrow):
        return INTERVAL
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return _LISTS[type_of_arrow(arrow.value_type)]
    raise ValueError(f"no PostgreSQL type for {arrow}")


def type_of_sql(name: str) -> PgType:
    """The type of a parameter, by its SQL name; ``[]`` behind it makes a list."""
    found = _SQL.get(name.removesuffix("[]").partition("(")[0], TEXT)
    return _LISTS[found] if name.endswith("[]") else found
