"""The dialect ``tacit://`` of SQLAlchemy 1.4, 2.0 and 2.1, over Flight SQL. It only reads.

    tacit://[USER:TOKEN@]HOST:PORT/?half_width=50&confidence=0.95&epsilon=0.1&tls=true

Statements are compiled as for PostgreSQL, which is the SQL that Tacit reads. A parameter of the URL
is one of `tacit_client.connect`'s.
"""

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

from sqlalchemy import exc, types
from sqlalchemy.dialects.postgresql import DOUBLE_PRECISION
from sqlalchemy.dialects.postgresql.base import PGCompiler, PGIdentifierPreparer, PGTypeCompiler
from sqlalchemy.engine import default
from sqlalchemy.engine.url import URL

import tacit_client
from tacit_client import catalog

TYPES: Final[Mapping[str, type[types.TypeEngine[Any]]]] = {
    "BIGINT": types.BIGINT,
    "BOOLEAN": types.BOOLEAN,
    "DATE": types.DATE,
    "DECIMAL": types.DECIMAL,
    "DOUBLE": DOUBLE_PRECISION,
    "FLOAT": types.REAL,
    "INTEGER": types.INTEGER,
    "SMALLINT": types.SMALLINT,
    "TIMESTAMP": types.TIMESTAMP,
    "TINYINT": types.SMALLINT,
    "UBIGINT": types.NUMERIC,
    "UINTEGER": types.BIGINT,
    "USMALLINT": types.INTEGER,
    "UTINYINT": types.SMALLINT,
    "VARCHAR": types.VARCHAR,
}
DEFAULT_PORT: Final = 31337
NUMBERS: Final = ("half_width", "relative", "at_least", "confidence")
TEXTS: Final = ("epsilon", "fallback", "tls_root_certs", "tls_cert", "tls_key")
TABLE_COMMENT: Final = """
    SELECT pg_catalog.obj_description(c.oid, 'pg_class')
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = ? AND c.relname = ?
"""
TRUE: Final = frozenset({"true", "1", "yes", "on"})
FALSE: Final = frozenset({"false", "0", "no", "off"})


class TacitDialect(default.DefaultDialect):
    """Reads tables of a Tacit server; writing is refused by the server."""

    name = "tacit"
    driver = "flightsql"
    default_paramstyle = "qmark"
    statement_compiler = PGCompiler
    type_compiler = PGTypeCompiler
    preparer = PGIdentifierPreparer
    _backslash_escapes = False  # PGCompiler asks for it
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_sane_rowcount = False
    supports_comments = True
    max_identifier_length = 63

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """The DBAPI: this package."""
        return tacit_client

    @classmethod
    def dbapi(cls) -> ModuleType:  # type: ignore[override] # SQLAlchemy 1.4 asks for it by this name
        """The DBAPI: this package."""
        return tacit_client

    def create_connect_args(self, url: URL) -> Any:
        """What `tacit_client.connect` is called with."""
        options: dict[str, Any] = dict(url.query)
        for name in NUMBERS:
            if name in options:
                options[name] = _number(name, options[name])
        if "tls" in options:
            options["tls"] = _truth("tls", options["tls"])
        unknown = options.keys() - {"tls", *NUMBERS, *TEXTS}
        if unknown:
            known = ", ".join(sorted({"tls", *NUMBERS, *TEXTS}))
            raise exc.ArgumentError(
                f"tacit:// has no option {min(unknown)!r}. Its options are {known}."
            )
        host = f"[{url.host}]" if url.host and ":" in url.host else url.host
        server = None if host is None else f"{host}:{url.port or DEFAULT_PORT}"
        user = url.username or None  # of ``tacit://:TOKEN@host``, it is empty
        return [], {"server": server, "user": user, "token": url.password, **options}

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Ask for something free."""
        dbapi_connection.catalog.schema_names()
        return True

    def _get_server_version_info(self, connection: Any) -> None:
        return None

    def _get_default_schema_name(self, connection: Any) -> str:
        return catalog.DEFAULT_SCHEMA

    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:
        """The schemas that tables are in."""
        return _catalog(connection).schema_names()

    def get_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        """The tables of a schema."""
        return _catalog(connection).table_names(_schema(schema))

    def get_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        """The views of a schema."""
        return _catalog(connection).table_names(_schema(schema), views=True)

    def has_table(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        """Whether there is such a table or view."""
        return bool(_catalog(connection).columns(_schema(schema), table_name))

    def get_columns(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """The columns of a table, with their levels as comments."""
        return [
            {
                "name": column.name,
                "type": TYPES.get(column.sql_type.partition("(")[0], types.NullType)(),
                "nullable": column.nullable,
                "default": None,
                "autoincrement": False,
                "comment": column.comment,
            }
            for column in _columns(connection, schema, table_name)
        ]

    def get_pk_constraint(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """The key of a public table; a private table has none, as a key would identify a person."""
        columns = _columns(connection, schema, table_name)
        keys = sorted(
            (column for column in columns if column.is_primary_key), key=lambda one: one.key_place
        )
        return {"constrained_columns": [column.name for column in keys], "name": None}

    def get_foreign_keys(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """None: no column refers to another table."""
        return []

    get_indexes = get_unique_constraints = get_check_constraints = get_foreign_keys

    def get_table_comment(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """What each record is, and how accurate answers are if nothing is asked for."""
        found = connection.exec_driver_sql(TABLE_COMMENT, (_schema(schema), table_name)).fetchall()
        if not found:
            raise exc.NoSuchTableError(table_name)
        return {"text": found[0][0]}


def _catalog(connection: Any) -> catalog.Catalog:
    raw: tacit_client.Connection = connection.connection.dbapi_connection
    return raw.catalog


def _columns(connection: Any, schema: str | None, table: str) -> tuple[catalog.Column, ...]:
    found = _catalog(connection).columns(_schema(schema), table)
    if not found:
        raise exc.NoSuchTableError(table)
    return found


def _schema(schema: str | None) -> str:
    return schema or catalog.DEFAULT_SCHEMA


def _number(name: str, text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        raise exc.ArgumentError(f"{name}={text!r} is not a number.") from None


def _truth(name: str, text: Any) -> bool:
    if text in TRUE | FALSE:
        return text in TRUE
    raise exc.ArgumentError(f"{name}={text!r} is not a boolean. Write true or false.")
