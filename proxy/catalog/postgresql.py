"""What PostgreSQL 15's own catalog looks like: its relations, and its types with their numbers.

Both are read from the text files beside this module, which a test compares with a real server.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pyarrow as pa

_FOLDER: Final = Path(__file__).parent
_ARROW: Final = {
    "bool": pa.bool_(),
    "bytea": pa.binary(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "oid": pa.uint32(),
    "regtype": pa.uint32(),
    "numeric": pa.decimal128(38, 0),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "xid": pa.int64(),
}
_VECTORS: Final = {"int2vector": pa.list_(pa.int16()), "oidvector": pa.list_(pa.uint32())}
# The names that SQL has for types, where they differ from those of the catalog.
_SPOKEN: Final = {
    "bool": "boolean",
    "bpchar": "character",
    "char": '"char"',
    "float4": "real",
    "float8": "double precision",
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "time": "time without time zone",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
    "timetz": "time with time zone",
    "varbit": "bit varying",
    "varchar": "character varying",
}


@dataclass(frozen=True, slots=True)
class CatalogType:
    """A type as `pg_type` lists it."""

    oid: int
    name: str
    size: int
    is_by_value: bool
    kind: str
    category: str
    is_preferred: bool
    element: int
    list_type: int
    reader: str

    @property
    def spoken(self) -> str:
        """Its name in SQL."""
        if self.category == "A" and self.name.startswith("_"):
            return f"{_SPOKEN.get(self.name[1:], self.name[1:])}[]"
        return _SPOKEN.get(self.name, self.name)


@cache
def relations() -> Mapping[tuple[str, str], pa.Schema]:
    """The columns of every relation, by schema and name."""
    found: dict[tuple[str, str], pa.Schema] = {}
    for line in _lines("relations.txt"):
        name, _, columns = line.partition(": ")
        schema, _, relation = name.partition(".")
        pairs = [column.rpartition(" ") for column in columns.split(", ")]
        found[schema, relation] = pa.schema([(word, _arrow(kind)) for word, _, kind in pairs])
    return MappingProxyType(found)


@cache
def vectors() -> frozenset[str]:
    """The columns that are vectors, which PostgreSQL writes with spaces between their numbers."""
    columns = [
        column.split(" ")
        for line in _lines("relations.txt")
        for column in line.partition(": ")[2].split(", ")
    ]
    return frozenset(name for name, *_, kind in columns if kind in _VECTORS)


@cache
def types() -> tuple[CatalogType, ...]:
    """Every type, in the order of their numbers."""
    return tuple(_type(line.split()) for line in _lines("types.txt"))


@cache
def types_by_name() -> Mapping[str, CatalogType]:
    """Every type, by the catalog's name for it."""
    return MappingProxyType({one.name: one for one in types()})


def _lines(name: str) -> list[str]:
    lines = (_FOLDER / name).read_text(encoding="ascii").splitlines()
    return [line for line in lines if not line.startswith("#")]


def _arrow(kind: str) -> pa.DataType:
    if kind in _VECTORS:
        return _VECTORS[kind]
    if kind.endswith("[]"):
        return pa.list_(_arrow(kind.removesuffix("[]")))
    return _ARROW.get(kind, pa.string())


def _type(words: list[str]) -> CatalogType:
    oid, name, size, by_value, kind, category, preferred, element, list_type, reader = words
    return CatalogType(
        int(oid),
        name,
        int(size),
        by_value == "t",
        kind,
        category,
        preferred == "t",
        int(element),
        int(list_type),
        reader,
    )
