"""COPY (query) TO STDOUT: a query whose answer is wanted as one stream, not as rows.

    COPY (SELECT ..) TO STDOUT [[WITH] (FORMAT {text | csv | binary} [, HEADER [true | false]])]
    COPY (SELECT ..) TO STDOUT [WITH] {BINARY | CSV [HEADER]}

It reads, and costs what its query costs. Any other COPY is refused. Nothing here writes a stream.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from sqlglot.tokenizer_core import Token, TokenType

from cube.refusals import InvalidSql, ReadOnly
from planner.sql.cursors import behind
from planner.sql.messages import position_at, shortened
from planner.sql.words import WordReader, keyword

_HINT = "Write COPY (SELECT ..) TO STDOUT (FORMAT csv)."


class CopyFormat(StrEnum):
    """How the stream is written."""

    TEXT = "text"
    CSV = "csv"
    BINARY = "binary"


@dataclass(frozen=True, slots=True)
class CopyOut:
    """Send the answer of a query as a stream; `sql` as of `DeclareCursor`."""

    sql: str
    format: CopyFormat = CopyFormat.TEXT
    has_header: bool = False
    verb: ClassVar[str] = "COPY"


def read_copy(text: str, words: Sequence[Token]) -> CopyOut | None:
    """The statement that begins with COPY; None if the words begin otherwise.

    Raises
    ------
    ReadOnly, InvalidSql
        If it is another COPY; if it is malformed.
    """
    if keyword(words[0]) != "COPY":
        return None
    end = _end_of_query(words)
    if end is None:
        raise ReadOnly("Only the answer of a query is copied, and to STDOUT.", hint=_HINT)
    reader = WordReader(words[end + 1 :])
    if not reader.passed("TO", "STDOUT"):
        raise ReadOnly("Answers are copied to STDOUT alone.", hint=_HINT)
    reader.passed("WITH")
    form, has_header = _options(reader)
    sql = behind(text[: words[end].start], words[2].start)
    return CopyOut(sql, form, has_header)


def _end_of_query(words: Sequence[Token]) -> int | None:
    """Where the parenthesis around the query closes."""
    depth = 0
    for place, word in enumerate(words[1:], start=1):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(word.token_type, 0)
        if depth == 0:
            return place if place > 2 else None  # noqa: PLR2004 - a word between parentheses
    return None


def _options(reader: WordReader) -> tuple[CopyFormat, bool]:
    """The format, and whether the names of the columns come first."""
    if reader.ahead is None:
        return CopyFormat.TEXT, False
    if not reader.passed("("):
        form = CopyFormat.BINARY if reader.passed("BINARY") else None
        if form is None and not reader.passed("CSV"):
            raise _malformed(reader)
        has_header = form is None and reader.passed("HEADER")
        _check_end(reader)
        return form or CopyFormat.CSV, has_header
    form, has_header = CopyFormat.TEXT, False
    while True:
        if reader.passed("FORMAT"):
            form = _format(reader)
        elif reader.passed("HEADER"):
            has_header = not (reader.passed("FALSE") or reader.passed("OFF"))
            _ = reader.passed("TRUE") or reader.passed("ON")
        else:
            raise _malformed(reader)
        if not reader.passed(","):
            break
    if not reader.passed(")"):
        raise _malformed(reader)
    _check_end(reader)
    return form, has_header


def _format(reader: WordReader) -> CopyFormat:
    word = reader.next_word()
    named = "" if word is None else word.text.lower()
    if named not in set(CopyFormat):
        raise _malformed(reader)
    return CopyFormat(named)


def _check_end(reader: WordReader) -> None:
    if reader.ahead is not None:
        raise _malformed(reader)


def _malformed(reader: WordReader) -> InvalidSql:
    word = reader.latest if reader.ahead is None else reader.ahead
    return InvalidSql(
        f"COPY does not parse near {shortened(word.text)}.",
        hint=_HINT,
        position=position_at(word.line, word.col),
    )
