"""SHOW TABLES and DESCRIBE: short for a SELECT of what `information_schema` lists.

    SHOW TABLES          SHOW COLUMNS FROM t         { DESCRIBE | DESC } [TABLE] t

Whether there is such a table is for the SELECT to find out: of an unknown one nothing is listed.
"""

from collections.abc import Sequence
from typing import Final

from sqlglot.tokenizer_core import Token

from planner.sql.words import WordReader, is_name, keyword

_TABLES: Final = (
    "SELECT table_schema, table_name, table_type FROM information_schema.tables "
    "ORDER BY table_schema, table_name"
)
_COLUMNS: Final = (
    "SELECT column_name, data_type, is_nullable FROM information_schema.columns "
    "WHERE LOWER(table_name) = '{}' {} ORDER BY ordinal_position"
)
_BEGINNINGS: Final = (("SHOW", "COLUMNS", "FROM"), ("DESCRIBE", "TABLE"), ("DESCRIBE",), ("DESC",))


def read_listing(words: Sequence[Token]) -> str | None:
    """The SELECT that a listing is short for; None if the words are no listing."""
    if [keyword(word) for word in words] == ["SHOW", "TABLES"]:
        return _TABLES
    for beginning in _BEGINNINGS:
        reader = WordReader(words)
        if reader.passed(*beginning) and (name := _name(reader)) is not None:
            schema, table = name
            of_schema = "" if schema is None else f"AND table_schema = '{_escaped(schema)}'"
            return _COLUMNS.format(_escaped(table), of_schema)
    return None


def _name(reader: WordReader) -> tuple[str | None, str] | None:
    """The schema, if it is named, and the table, in lower case; None if the rest is no name."""
    parts: list[str] = []
    while (word := reader.next_word()) is not None and is_name(word):
        parts.append(word.text.lower())
        if not reader.passed("."):
            break
    if not 1 <= len(parts) <= 2 or reader.ahead is not None:  # noqa: PLR2004 - schema and table
        return None
    return (None if len(parts) == 1 else parts[0]), parts[-1]


def _escaped(name: str) -> str:
    return name.replace("'", "''")
