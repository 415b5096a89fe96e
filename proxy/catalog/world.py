"""What one caller's catalog is made of: PostgreSQL 15's relations and types, and their tables.

What PostgreSQL 15's own catalog looks like: its relations, and its types with their numbers.

Both are read from the text files beside this module, which a test compares with a real server.

The tables and views that a caller may know of, as the catalog lists them.

Everything is public: declarations, types, and short texts that say which values columns may hold.

What one caller's catalog is made of: their tables, and facts of the server and their session.
"""

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from cube.axis import Axis
from planner.catalog_sql import CATALOG, INFORMATION, CatalogFacts
from planner.domain import PRIVACY_SCHEMA, TableNames, placed
from proxy.api import CATALOG as DATABASE
from proxy.api import DB_SCHEMA, PRIVATE, TableInfo, about_rows, axis_kind, describe_levels
from proxy.sources.public import PublicTable
from proxy.synthetic_tables import SyntheticRecord

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


N_OWN: Final = 16384  # where PostgreSQL's numbers of users' objects begin
_N_NUMBERS: Final = 2**31 - N_OWN
# PostgreSQL's types for ours.
_TYPES: Final = {
    "BOOLEAN": "bool",
    "TINYINT": "int2",
    "SMALLINT": "int2",
    "UTINYINT": "int2",
    "INTEGER": "int4",
    "USMALLINT": "int4",
    "BIGINT": "int8",
    "UINTEGER": "int8",
    "UBIGINT": "numeric",
    "HUGEINT": "numeric",
    "FLOAT": "float4",
    "DOUBLE": "float8",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "INTERVAL": "interval",
    "BLOB": "bytea",
}
_ARROW_TYPES: Final = {
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
    pa.timestamp("ms", tz="UTC"): "TIMESTAMP WITH TIME ZONE",
}


@dataclass(frozen=True, slots=True)
class ListedColumn:
    """A column: its name, its SQL type, whether it may be NULL, and what it holds."""

    name: str
    sql_type: str
    may_be_null: bool = True
    comment: str | None = None

    @property
    def type(self) -> CatalogType:
        """PostgreSQL's type for it."""
        name = self.sql_type.partition("(")[0]
        known = "numeric" if name == "DECIMAL" else _TYPES.get(name, "text")
        return types_by_name()[known]

    @property
    def digits(self) -> tuple[int, int] | None:
        """The digits of a DECIMAL in all, and behind its point."""
        name, _, digits = self.sql_type.rstrip(")").partition("(")
        if name != "DECIMAL" or not digits:
            return None
        precision, _, scale = digits.partition(",")
        return int(precision), int(scale or 0)


@dataclass(frozen=True, slots=True)
class ListedTable:
    """One table or view that a caller may know of.

    Parameters
    ----------
    number : int
        Its object number, which stays the same as long as its name does.
    key : tuple of str
        The columns of its primary key, in order; empty without one.
    """

    schema: str
    name: str
    number: int
    is_view: bool
    columns: tuple[ListedColumn, ...]
    comment: str | None = None
    key: tuple[str, ...] = ()


def listed_tables(
    asked: Sequence[TableInfo],
    public: Sequence[PublicTable],
    synthetic: Sequence[SyntheticRecord],
    views: Sequence[tuple[str, pa.Schema]],
) -> tuple[ListedTable, ...]:
    """Tables that are asked, public and synthetic tables, and the views of `data_privacy`."""
    taken: set[int] = set()
    found = [_asked(info, taken) for info in asked]
    found += [_public(table, taken) for table in public]
    declared = (info.schema.table for info in asked), (table.name for table in public)
    names = TableNames(tuple(chain(*declared)), tuple(record.full_name for record in synthetic))
    found += [_synthetic(record, names, taken) for record in synthetic]
    return (*found, *(_view(name, schema, taken) for name, schema in views))


def _asked(info: TableInfo, taken: set[int]) -> ListedTable:
    db_schema, name = placed(info.schema.table, DB_SCHEMA)
    return ListedTable(
        db_schema,
        name,
        _number(db_schema, name, taken),
        is_view=False,
        columns=tuple(_axis(axis) for axis in info.schema.axes),
        comment=_about_private(info) if info.kind == PRIVATE else info.comment,
    )


def _about_private(info: TableInfo) -> str:
    default = info.default
    return (
        f"Private. {about_rows(info.schema)} Counts are within "
        f"{default.half_width:g} of the truth with probability {default.confidence:g} unless a "
        "statement asks for another accuracy."
    )


def _axis(axis: Axis) -> ListedColumn:
    text = f"{axis_kind(axis)}: {describe_levels(axis)}"
    return ListedColumn(axis.name, axis.sql_type, axis.null, text)


def _public(table: PublicTable, taken: set[int]) -> ListedTable:
    return ListedTable(
        DB_SCHEMA,
        table.name,
        _number(DB_SCHEMA, table.name, taken),
        is_view=False,
        columns=tuple(
            ListedColumn(name, kind, name not in table.key_columns)
            for name, kind in table.sql_types.items()
        ),
        comment="Public: read as it is, free.",
        key=table.key_columns,
    )


def _synthetic(record: SyntheticRecord, names: TableNames, taken: set[int]) -> ListedTable:
    is_brief = names.brief(record.full_name) == record.name
    schema = DB_SCHEMA if is_brief else record.table
    return ListedTable(
        schema,
        record.name,
        _number(schema, record.name, taken),
        is_view=False,
        columns=tuple(ListedColumn(name, sql_type) for name, sql_type in record.columns),
        comment=f"Synthetic rows, made from measurements of {record.table}: no row is anybody's.",
    )


def _view(name: str, schema: pa.Schema, taken: set[int]) -> ListedTable:
    return ListedTable(
        PRIVACY_SCHEMA,
        name,
        _number(PRIVACY_SCHEMA, name, taken),
        is_view=True,
        columns=tuple(
            ListedColumn(one.name, _ARROW_TYPES.get(one.type, "VARCHAR"), one.nullable)
            for one in schema
        ),
    )


def schema_number(name: str, taken: Collection[int] = ()) -> int:
    """The object number of a schema."""
    return _own_number(f"schema {name}", taken)


def _number(schema: str, name: str, taken: set[int]) -> int:
    number = _own_number(f"{schema}.{name}", taken)
    taken.add(number)
    return number


def _own_number(text: str, taken: Collection[int]) -> int:
    """A number that a name has in every process, unless two names would have the same."""
    number = N_OWN + zlib.crc32(text.encode()) % _N_NUMBERS
    while number in taken:
        number += 1
    return number


DATABASE_NUMBER: Final = 5  # as PostgreSQL numbers the database `postgres`
OWNER: Final = "tacit"  # whose everything is
OWNER_NUMBER: Final = 10
# Numbers that drivers know by heart.
_SCHEMA_NUMBERS: Final = {CATALOG: 11, DB_SCHEMA: 2200}
_RELATION_NUMBERS: Final = {
    "pg_type": 1247,
    "pg_attribute": 1249,
    "pg_proc": 1255,
    "pg_class": 1259,
    "pg_authid": 1260,
    "pg_database": 1262,
    "pg_am": 2601,
    "pg_attrdef": 2604,
    "pg_constraint": 2606,
    "pg_description": 2609,
    "pg_index": 2610,
    "pg_namespace": 2615,
    "pg_rewrite": 2618,
    "pg_trigger": 2620,
    "pg_tablespace": 1213,
    "pg_extension": 3079,
    "pg_enum": 3501,
}
_FIRST_FREE: Final = 11_000  # system relations are numbered from here, below users' objects


@dataclass(frozen=True)
class World:
    """What a caller's catalog shows.

    Parameters
    ----------
    settings : mapping
        Every setting and its value, by names in lower case.
    """

    tables: tuple[ListedTable, ...]
    user: str
    version: str
    settings: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def schemas(self) -> Mapping[str, int]:
        """The number of every schema."""
        own = (DB_SCHEMA, PRIVACY_SCHEMA, *(table.schema for table in self.tables))
        names = dict.fromkeys((CATALOG, INFORMATION, *own))
        return {name: _SCHEMA_NUMBERS.get(name) or schema_number(name) for name in names}

    @property
    def facts(self) -> CatalogFacts:
        """What functions tell."""
        numbers = dict(system_numbers())
        numbers |= {(table.schema, table.name): table.number for table in self.tables}
        numbers |= {("pg_namespace", name): number for name, number in self.schemas.items()}
        numbers |= {("pg_type", one.name): one.oid for one in types()}
        numbers |= {("pg_type", one.spoken): one.oid for one in types()}
        numbers |= {("pg_roles", OWNER): OWNER_NUMBER, ("pg_roles", self.user): self.user_number}
        return CatalogFacts(
            self.user, DATABASE, DB_SCHEMA, self.version, self.settings, MappingProxyType(numbers)
        )

    @property
    def user_number(self) -> int:
        """The number of the caller's role."""
        return schema_number(f"role {self.user}")


def system_numbers() -> dict[tuple[str, str], int]:
    """The numbers of the catalog's own relations, by schema and name."""
    return {
        (schema, name): _RELATION_NUMBERS.get(name, _FIRST_FREE + place)
        for place, (schema, name) in enumerate(relations())
    }
