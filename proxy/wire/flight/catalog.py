"""The catalog that Flight SQL clients browse: one catalog, all tables, the views of data_privacy.

Private, public and synthetic tables are listed alike, except that a synthetic table whose name is
not unique is in a schema named after its source, as in SQL. Each metadata command is a schema and a
function from the list of tables to rows. Everything here is public; nothing here can charge or read
data.

The server's description of itself is here too: SqlInfo and the SQL types. The numbers are those
that Flight SQL publishes for its `SqlInfo` and ODBC for its type codes. Only known facts are
listed; a request for another number gets no row.

In the search patterns of requests ``%`` is any text, ``_`` one character, and a backslash escapes.
They are no regular expressions, because one made from a hostile pattern can take forever: a pattern
here takes at most ``len(pattern) * len(name)`` steps.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Final, TypeAlias

import pyarrow as pa
from google.protobuf.message import Message

from planner.domain import PRIVACY_SCHEMA, TableNames, placed
from proxy.api import CATALOG, DB_SCHEMA, PRIVATE, TableInfo, about_rows, describe_levels
from proxy.protocol import flight_sql_pb2 as sql
from proxy.sources.public import PublicTable
from proxy.synthetic_tables import SyntheticRecord
from proxy.wire.arrow_ipc import schema_bytes

ESCAPE: Final = "\\"

_ANY_TEXT: Final = ("any text", "")
_ANY_CHARACTER: Final = ("any character", "")
_WILDCARDS: Final = {"%": _ANY_TEXT, "_": _ANY_CHARACTER}


def matches(pattern: str, name: str) -> bool:
    r"""Whether a whole name matches a pattern.

    Walks both once; a mismatch goes back only to the last ``%`` and lets it take one more
    character. That is enough, since an earlier ``%`` could not do better.

    >>> matches("ad%t", "adult"), matches("a_ult", "adult"), matches(r"a\_b", "axb")
    (True, True, False)
    """
    items = _items(pattern)
    item_at = name_at = 0
    percent_at, percent_taken_to = -1, 0
    while name_at < len(name):
        item = items[item_at] if item_at < len(items) else None
        if item == _ANY_TEXT:
            percent_at, percent_taken_to = item_at, name_at
            item_at += 1
        elif item in (_ANY_CHARACTER, ("literal", name[name_at])):
            item_at, name_at = item_at + 1, name_at + 1
        elif percent_at >= 0:
            percent_taken_to += 1
            item_at, name_at = percent_at + 1, percent_taken_to
        else:
            return False
    return all(item == _ANY_TEXT for item in items[item_at:])


def _items(pattern: str) -> list[tuple[str, str]]:
    items: list[tuple[str, str]] = []
    characters = iter(pattern)
    for character in characters:
        if character == ESCAPE:
            items.append(("literal", next(characters, ESCAPE)))
        else:
            items.append(_WILDCARDS.get(character, ("literal", character)))
    return items


InfoValue: TypeAlias = str | bool | int

_CASE_INSENSITIVE = 1
_NO_TRANSACTIONS = 0

SQL_INFO: Final[dict[int, InfoValue]] = {
    0: "Tacit",  # server name
    1: version("tacit-dp"),  # server version
    2: pa.__version__,  # Arrow version
    3: True,  # read-only
    4: True,  # supports SQL
    5: False,  # supports Substrait plans
    8: _NO_TRANSACTIONS,
    9: False,  # can cancel a query
    10: True,  # takes uploads: of a stream's users
    11: False,  # in transactions
    500: False,  # creates catalogs
    501: False,  # creates schemas
    502: False,  # creates tables
    503: _CASE_INSENSITIVE,  # identifiers
    504: '"',  # quotes an identifier
    506: True,  # every listed table can be queried
    513: ESCAPE,  # in search patterns
    529: "schema",
    531: "catalog",
}

_UNION_MEMBERS: Final = (
    pa.field("string_value", pa.string()),
    pa.field("bool_value", pa.bool_()),
    pa.field("bigint_value", pa.int64()),
    pa.field("int32_bitmask", pa.int32()),
    pa.field("string_list", pa.list_(pa.string())),
    pa.field("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
)
_MEMBER_OF: Final[dict[type, int]] = {str: 0, bool: 1, int: 3}

SQL_INFO_SCHEMA: Final = pa.schema(
    [
        pa.field("info_name", pa.uint32(), nullable=False),
        pa.field("value", pa.dense_union(list(_UNION_MEMBERS)), nullable=False),
    ]
)


def sql_info_table(numbers: list[int]) -> pa.Table:
    """The facts with these numbers, or all of them if none is named."""
    chosen = [number for number in SQL_INFO if not numbers or number in numbers]
    held: list[list[InfoValue]] = [[] for _ in _UNION_MEMBERS]
    members, offsets = [], []
    for number in chosen:
        member = _MEMBER_OF[type(SQL_INFO[number])]
        members.append(member)
        offsets.append(len(held[member]))
        held[member].append(SQL_INFO[number])
    union = pa.UnionArray.from_dense(
        pa.array(members, pa.int8()),
        pa.array(offsets, pa.int32()),
        [pa.array(values, field.type) for values, field in zip(held, _UNION_MEMBERS, strict=True)],
        [field.name for field in _UNION_MEMBERS],
    )
    return pa.Table.from_arrays([pa.array(chosen, pa.uint32()), union], schema=SQL_INFO_SCHEMA)


TABLE_TYPE: Final = "TABLE"
VIEW_TYPE: Final = "VIEW"
TYPE_NAME_KEY: Final = "ARROW:FLIGHT:SQL:TYPE_NAME"  # otherwise clients show every type as unknown
REMARKS_KEY: Final = "ARROW:FLIGHT:SQL:REMARKS"
KEY_KEY: Final = "tacit.primary_key"  # ADBC does not pass GetPrimaryKeys on

Row: TypeAlias = dict[str, object]


@dataclass(frozen=True, slots=True)
class Catalog:
    """What to list: private tables by their public schemas, public and synthetic tables, views."""

    private: tuple[TableInfo, ...]
    public: tuple[PublicTable, ...] = ()
    synthetic: tuple[SyntheticRecord, ...] = ()
    views: Mapping[str, pa.Schema] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SqlType:
    """A column type: its Arrow type, its ODBC code, its size and how its literals are quoted."""

    arrow: pa.DataType
    odbc_code: int
    column_size: int | None
    quote: str | None
    radix: int | None = None


SQL_TYPES: Final[dict[str, SqlType]] = {
    "BIGINT": SqlType(pa.int64(), -5, 19, None, 10),
    "BOOLEAN": SqlType(pa.bool_(), -7, 1, None),
    "DATE": SqlType(pa.date32(), 91, 10, "'"),
    "DOUBLE": SqlType(pa.float64(), 8, 53, None, 2),
    "TIMESTAMP": SqlType(pa.timestamp("us"), 93, 26, "'"),
    "VARCHAR": SqlType(pa.string(), 12, None, "'"),
}


def _columns(declaration: str) -> pa.Schema:
    """A schema from ``name type, ...``; an exclamation mark after the type means NOT NULL."""
    types = {
        "utf8": pa.string(),
        "bool": pa.bool_(),
        "int32": pa.int32(),
        "uint8": pa.uint8(),
        "list": pa.list_(pa.field("item", pa.string(), nullable=False)),
    }
    pairs = (column.split() for column in declaration.split(","))
    return pa.schema(
        pa.field(name, types[kind.rstrip("!")], nullable=not kind.endswith("!"))
        for name, kind in pairs
    )


_CATALOGS = _columns("catalog_name utf8!")
_DB_SCHEMAS = _columns("catalog_name utf8, db_schema_name utf8!")
_TABLES = _columns("catalog_name utf8, db_schema_name utf8, table_name utf8!, table_type utf8!")
_TABLES_WITH_SCHEMA = _TABLES.append(pa.field("table_schema", pa.binary(), nullable=False))
_TABLE_TYPES = _columns("table_type utf8!")
_PRIMARY_KEYS = _columns(
    "catalog_name utf8, db_schema_name utf8, table_name utf8!, column_name utf8!, key_name utf8,"
    "key_sequence int32!"
)
_FOREIGN_KEYS = _columns(
    "pk_catalog_name utf8, pk_db_schema_name utf8, pk_table_name utf8!, pk_column_name utf8!,"
    "fk_catalog_name utf8, fk_db_schema_name utf8, fk_table_name utf8!, fk_column_name utf8!,"
    "key_sequence int32!, fk_key_name utf8, pk_key_name utf8, update_rule uint8!,"
    "delete_rule uint8!"
)
_XDBC_TYPES = _columns(
    "type_name utf8!, data_type int32!, column_size int32, literal_prefix utf8,"
    "literal_suffix utf8, create_params list, nullable int32!, case_sensitive bool!,"
    "searchable int32!, unsigned_attribute bool, fixed_prec_scale bool!, auto_increment bool,"
    "local_type_name utf8, minimum_scale int32, maximum_scale int32, sql_data_type int32!,"
    "datetime_subcode int32, num_prec_radix int32, interval_precision int32"
)


def table_schema(info: TableInfo) -> pa.Schema:
    """A private table's public columns, with the SQL type names that clients reflect.

    Beside them stands what is to be known of its rows.
    """
    about = about_rows(info.schema) if info.kind == PRIVATE else info.comment
    return pa.schema(
        (
            pa.field(
                axis.name,
                SQL_TYPES[axis.sql_type].arrow,
                nullable=axis.null,
                metadata={TYPE_NAME_KEY: axis.sql_type, REMARKS_KEY: describe_levels(axis)},
            )
            for axis in info.schema.axes
        ),
        metadata={REMARKS_KEY: about},
    )


def public_schema(table: PublicTable) -> pa.Schema:
    """A public table's columns, described in the same way."""
    names = table.sql_types
    return pa.schema(
        field.with_nullable(field.name not in table.key_columns).with_metadata(
            {
                TYPE_NAME_KEY: names[field.name],
                **_place_in_key(field.name, table),
            }
        )
        for field in table.data.schema
    )


def _place_in_key(column: str, table: PublicTable) -> dict[str, str]:
    """The meta data that says which column of a key of several it is; "true" of the only one."""
    key = table.key_columns
    if column not in key:
        return {}
    return {KEY_KEY: "true" if len(key) == 1 else str(key.index(column) + 1)}


def synthetic_schema(record: SyntheticRecord) -> pa.Schema:
    """A synthetic table's columns, described in the same way."""
    types = dict(record.columns)
    return pa.schema(
        field.with_metadata({TYPE_NAME_KEY: types[field.name]}) for field in record.schema
    )


def _passes(command: sql.CommandGetDbSchemas | sql.CommandGetTables, db_schema: str) -> bool:
    """Whether the one catalog and a schema pass the command's filters; absent filters pass all."""
    catalog = command.catalog if command.HasField("catalog") else CATALOG
    has_pattern = command.HasField("db_schema_filter_pattern")
    pattern = command.db_schema_filter_pattern if has_pattern else "%"
    return catalog == CATALOG and matches(pattern, db_schema)


def _described(served: Catalog) -> list[tuple[str, str, pa.Schema]]:
    """The schema, the name and the columns of every table, in order."""
    private = {info.schema.table: table_schema(info) for info in served.private}
    public = {table.name: public_schema(table) for table in served.public}
    names = TableNames((*private, *public), tuple(record.full_name for record in served.synthetic))
    found = [(*placed(name, DB_SCHEMA), schema) for name, schema in private.items()]
    found += [(DB_SCHEMA, name, schema) for name, schema in public.items()]
    found += [(PRIVACY_SCHEMA, name, schema) for name, schema in served.views.items()]
    for record in served.synthetic:
        is_plain = names.brief(record.full_name) == record.name
        db_schema = DB_SCHEMA if is_plain else record.table
        found.append((db_schema, record.name, synthetic_schema(record)))
    return sorted(found, key=lambda one: one[:2])


def _type_of(db_schema: str) -> str:
    """Whether what a schema holds are tables or views."""
    return VIEW_TYPE if db_schema == PRIVACY_SCHEMA else TABLE_TYPE


def _db_schema_rows(command: sql.CommandGetDbSchemas, served: Catalog) -> list[Row]:
    db_schemas = sorted({DB_SCHEMA, *(db_schema for db_schema, _, _ in _described(served))})
    return [
        {"catalog_name": CATALOG, "db_schema_name": db_schema}
        for db_schema in db_schemas
        if _passes(command, db_schema)
    ]


def _table_rows(command: sql.CommandGetTables, served: Catalog) -> list[Row]:
    has_pattern = command.HasField("table_name_filter_pattern")
    pattern = command.table_name_filter_pattern if has_pattern else "%"
    return [
        {
            "catalog_name": CATALOG,
            "db_schema_name": db_schema,
            "table_name": name,
            "table_type": _type_of(db_schema),
            "table_schema": schema_bytes(schema),
        }
        for db_schema, name, schema in _described(served)
        if not command.table_types or _type_of(db_schema) in command.table_types
        if _passes(command, db_schema) and matches(pattern, name)
    ]


def _xdbc_type_rows(command: sql.CommandGetXdbcTypeInfo, _served: Catalog) -> list[Row]:
    nullable, searchable_by_anything = 1, 3
    rows: list[Row] = [
        {
            "type_name": name,
            "data_type": sql_type.odbc_code,
            "column_size": sql_type.column_size,
            "literal_prefix": sql_type.quote,
            "literal_suffix": sql_type.quote,
            "nullable": nullable,
            "case_sensitive": name == "VARCHAR",
            "searchable": searchable_by_anything,
            "unsigned_attribute": None if sql_type.radix is None else False,
            "fixed_prec_scale": False,
            "sql_data_type": sql_type.odbc_code,
            "num_prec_radix": sql_type.radix,
        }
        for name, sql_type in sorted(SQL_TYPES.items(), key=lambda item: item[1].odbc_code)
    ]
    if command.HasField("data_type"):
        return [row for row in rows if row["data_type"] == command.data_type]
    return rows


def _primary_key_rows(command: sql.CommandGetPrimaryKeys, served: Catalog) -> list[Row]:
    """The keys of public tables; private tables have none, as a key would identify a person."""
    return [
        {
            "catalog_name": CATALOG,
            "db_schema_name": DB_SCHEMA,
            "table_name": table.name,
            "column_name": column,
            "key_sequence": place,
        }
        for table in served.public
        for place, column in enumerate(table.key_columns, start=1)
        if table.name == command.table
        and command.catalog in ("", CATALOG)
        and command.db_schema in ("", DB_SCHEMA)
    ]


def _no_rows(_command: Message, _served: Catalog) -> list[Row]:
    """No rows: no column of any table refers to another table."""
    return []


@dataclass(frozen=True, slots=True)
class MetadataCommand:
    """The answer to one metadata command: its schema, and its rows."""

    schema: pa.Schema
    # Any: each function takes the message type that is its key.
    rows: Callable[[Any, Catalog], list[Row]]


_COMMANDS: Final[dict[type[Message], MetadataCommand]] = {
    sql.CommandGetCatalogs: MetadataCommand(_CATALOGS, lambda *_: [{"catalog_name": CATALOG}]),
    sql.CommandGetDbSchemas: MetadataCommand(_DB_SCHEMAS, _db_schema_rows),
    sql.CommandGetTables: MetadataCommand(_TABLES, _table_rows),
    sql.CommandGetTableTypes: MetadataCommand(
        _TABLE_TYPES, lambda *_: [{"table_type": TABLE_TYPE}, {"table_type": VIEW_TYPE}]
    ),
    sql.CommandGetXdbcTypeInfo: MetadataCommand(_XDBC_TYPES, _xdbc_type_rows),
    sql.CommandGetPrimaryKeys: MetadataCommand(_PRIMARY_KEYS, _primary_key_rows),
    sql.CommandGetExportedKeys: MetadataCommand(_FOREIGN_KEYS, _no_rows),
    sql.CommandGetImportedKeys: MetadataCommand(_FOREIGN_KEYS, _no_rows),
    sql.CommandGetCrossReference: MetadataCommand(_FOREIGN_KEYS, _no_rows),
}
METADATA_COMMANDS: Final = (*_COMMANDS, sql.CommandGetSqlInfo)


def metadata_schema(command: Message) -> pa.Schema:
    """The schema of the answer to a metadata command."""
    if isinstance(command, sql.CommandGetSqlInfo):
        return SQL_INFO_SCHEMA
    if isinstance(command, sql.CommandGetTables) and command.include_schema:
        return _TABLES_WITH_SCHEMA
    return _COMMANDS[type(command)].schema


def metadata_table(command: Message, served: Catalog) -> pa.Table:
    """The answer to a metadata command."""
    if isinstance(command, sql.CommandGetSqlInfo):
        return sql_info_table(list(command.info))
    rows = _COMMANDS[type(command)].rows(command, served)
    return pa.Table.from_pylist(rows, schema=metadata_schema(command))
