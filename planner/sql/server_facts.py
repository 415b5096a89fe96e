"""What clients ask of a server, not of a table: SELECT version(), current_schema() and the like.

    SELECT [pg_catalog.]version() [[AS] name], current_schema(), current_user ..

A SELECT of nothing else is read as such. What the answers are is for whoever serves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final

from sqlglot.tokenizer_core import Token, TokenType

from planner.sql.words import WordReader, is_name, keyword


class Fact(StrEnum):
    """Something that a server knows of itself or of its caller."""

    VERSION = "version"
    SCHEMA = "current_schema"
    DATABASE = "current_database"
    USER = "current_user"


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Facts, each with the name of its column."""

    columns: tuple[tuple[str, Fact], ...]
    verb: ClassVar[str] = "SELECT"


_CALLED: Final = {
    "VERSION": Fact.VERSION,
    "CURRENT_SCHEMA": Fact.SCHEMA,
    "CURRENT_DATABASE": Fact.DATABASE,
}
_BARE: Final = {
    "CURRENT_SCHEMA": Fact.SCHEMA,
    "CURRENT_CATALOG": Fact.DATABASE,
    "CURRENT_USER": Fact.USER,
    "SESSION_USER": Fact.USER,
    "USER": Fact.USER,
}


def read_server_facts(words: Sequence[Token]) -> ServerFacts | None:
    """The facts that a SELECT asks for; None if it asks for anything else."""
    reader = WordReader(words)
    if not reader.passed("SELECT"):
        return None
    columns: list[tuple[str, Fact]] = []
    while not columns or reader.passed(","):
        column = _column(reader)
        if column is None:
            return None
        columns.append(column)
    return None if reader.ahead is not None else ServerFacts(tuple(columns))


def _column(reader: WordReader) -> tuple[str, Fact] | None:
    reader.passed("PG_CATALOG", ".")
    word = reader.next_word()
    if word is None:
        return None
    called = reader.passed("(", ")")
    fact = (_CALLED if called else _BARE).get(keyword(word))
    if fact is None:
        return None
    if reader.passed("AS"):
        name = reader.next_word()
        return (name.text, fact) if name is not None and is_name(name) else None
    alias = reader.ahead
    if alias is not None and alias.token_type in (TokenType.VAR, TokenType.IDENTIFIER):
        reader.next_word()
        return alias.text, fact
    return word.text.lower(), fact
