"""The Arrow types for the SQL types of answers, keys and synthetic columns."""

import re
from typing import Final

import pyarrow as pa

_ARROW_TYPES: Final[dict[str, pa.DataType]] = {
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", tz="UTC"),
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINTEGER": pa.uint32(),
    "UBIGINT": pa.uint64(),
    "HUGEINT": pa.decimal128(38, 0),
}
_DECIMAL: Final = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


def arrow_type(sql_type: str) -> pa.DataType:
    """The Arrow type of a DuckDB type name."""
    if sql_type in _ARROW_TYPES:
        return _ARROW_TYPES[sql_type]
    decimal = _DECIMAL.fullmatch(sql_type)
    if decimal is None:
        raise ValueError(f"no Arrow type for {sql_type}")
    return pa.decimal128(int(decimal[1]), int(decimal[2]))
