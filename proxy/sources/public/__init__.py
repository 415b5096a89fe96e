"""Public tables: small tables that anybody may see, as values, and read from their files."""

from proxy.sources.public.file import PublicSettings, load_public_tables, read_texts
from proxy.sources.public.table import (
    N_BYTES_MAX,
    N_ROWS_MAX,
    RESERVED_NAMES,
    Key,
    PublicTable,
    is_public_name,
    sql_type_of,
)

__all__ = [
    "N_BYTES_MAX",
    "N_ROWS_MAX",
    "RESERVED_NAMES",
    "Key",
    "PublicSettings",
    "PublicTable",
    "is_public_name",
    "load_public_tables",
    "read_texts",
    "sql_type_of",
]
