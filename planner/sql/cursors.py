"""Reads statements about other statements: cursors, prepared statements, COPY.

Cursors and prepared statements in words, for wires that have them.

    DECLARE name [BINARY] [INSENSITIVE] [[NO] SCROLL] CURSOR [{WITH | WITHOUT} HOLD] FOR query
    FETCH [direction] [FROM | IN] name     MOVE ..     CLOSE name | ALL
    PREPARE name [(type, ..)] AS query     EXECUTE name [(value, ..)]
    DEALLOCATE [PREPARE] name | ALL

A query in them is told by its first words; `query_tree` parses it. Nothing here holds a cursor.

COPY (query) TO STDOUT: a query whose answer is wanted as one stream, not as rows.

    COPY (SELECT ..) TO STDOUT [[WITH] (FORMAT {text | csv | binary} [, HEADER [true | false]])]
    COPY (SELECT ..) TO STDOUT [WITH] {BINARY | CSV [HEADER]}

It reads, and costs what its query costs. Any other COPY is refused. Nothing here writes a stream.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, TypeAlias

from sqlglot.tokenizer_core import Token, TokenType

from cube.refusals import InvalidSql, ReadOnly, UnsupportedSql
from planner.sql.messages import position_at, shortened
from planner.sql.parameters import Parameter, ParameterKind, Parameters
from planner.sql.words import WordReader, is_name, is_quoted, keyword

N_ROWS_ALL: Final = 2**31 - 1
_N_DIGITS_MAX: Final = 18
_HINTS: Final = {
    "DECLARE": "Write DECLARE c CURSOR FOR SELECT ..",
    "FETCH": "Write FETCH 100 FROM c, or FETCH ALL FROM c.",
    "MOVE": "Write MOVE 100 FROM c.",
    "CLOSE": "Write CLOSE c, or CLOSE ALL.",
    "PREPARE": "Write PREPARE s AS SELECT ..",
    "EXECUTE": "Write EXECUTE s (1, 'a').",
    "DEALLOCATE": "Write DEALLOCATE s, or DEALLOCATE ALL.",
}
CURSOR_WORDS: Final = tuple(_HINTS)
_FORWARD: Final = ("NEXT", "FORWARD", "ABSOLUTE", "RELATIVE", "PRIOR", "BACKWARD", "FIRST", "LAST")


@dataclass(frozen=True, slots=True)
class DeclareCursor:
    """Run a query, and keep its rows under a name; with `is_held`, beyond the transaction.

    `sql` is the query's text, behind as many spaces as there were characters before it, so that
    lines and columns count in what the client wrote.
    """

    name: str
    sql: str
    is_held: bool
    verb: ClassVar[str] = "DECLARE"


@dataclass(frozen=True, slots=True)
class FetchRows:
    """The next rows of a cursor; with `is_move`, pass them by."""

    name: str
    n_rows: int
    is_move: bool = False
    verb: ClassVar[str] = "FETCH"


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """Forget a cursor; every one without a name."""

    name: str | None
    verb: ClassVar[str] = "CLOSE"


@dataclass(frozen=True, slots=True)
class PrepareQuery:
    """Keep a query, `sql` as of `DeclareCursor`, under a name."""

    name: str
    types: tuple[str, ...]
    sql: str
    verb: ClassVar[str] = "PREPARE"


@dataclass(frozen=True, slots=True)
class ExecutePrepared:
    """Run a query that is kept under a name."""

    name: str
    values: Parameters
    verb: ClassVar[str] = "EXECUTE"


@dataclass(frozen=True, slots=True)
class Deallocate:
    """Forget a query that is kept; every one without a name."""

    name: str | None
    verb: ClassVar[str] = "DEALLOCATE"


CursorStatement: TypeAlias = DeclareCursor | FetchRows | CloseCursor
PreparedStatement: TypeAlias = PrepareQuery | ExecutePrepared | Deallocate


def read_cursor(text: str, words: Sequence[Token]) -> CursorStatement | PreparedStatement | None:
    """The statement about a cursor or a prepared query; None if the words begin otherwise.

    Raises
    ------
    InvalidSql, UnsupportedSql
        If it is malformed, or moves a cursor back.
    """
    verb = keyword(words[0])
    if verb not in _HINTS:
        return None
    reader = WordReader(words)
    reader.next_word()
    if verb in ("DECLARE", "PREPARE"):
        return _declare(text, reader) if verb == "DECLARE" else _prepare(text, reader)
    if verb in ("FETCH", "MOVE"):
        return _fetch(reader, verb)
    if verb == "EXECUTE":
        return _execute(reader)
    if verb == "CLOSE":
        return CloseCursor(_name_or_all(reader, verb))
    reader.passed("PREPARE")
    return Deallocate(_name_or_all(reader, verb))


def _declare(text: str, reader: WordReader) -> DeclareCursor:
    name = _name(reader, "DECLARE")
    while any(reader.passed(word) for word in ("BINARY", "INSENSITIVE", "ASENSITIVE")):
        pass
    if not reader.passed("NO", "SCROLL"):
        reader.passed("SCROLL")
    if not reader.passed("CURSOR"):
        raise _malformed(reader, "DECLARE")
    is_held = reader.passed("WITH", "HOLD")
    if not is_held:
        reader.passed("WITHOUT", "HOLD")
    if not reader.passed("FOR") or reader.ahead is None:
        raise _malformed(reader, "DECLARE")
    return DeclareCursor(name, behind(text, reader.ahead.start), is_held)


def _fetch(reader: WordReader, verb: str) -> FetchRows:
    n_rows = _n_rows(reader, verb)
    if not reader.passed("FROM"):
        reader.passed("IN")
    name = _name(reader, verb)
    _check_end(reader, verb)
    return FetchRows(name, n_rows, is_move=verb == "MOVE")


def _n_rows(reader: WordReader, verb: str) -> int:
    """How many rows a direction means; cursors go forward only."""
    direction = keyword(reader.ahead) if reader.ahead is not None else ""
    if direction in _FORWARD:
        reader.next_word()
        if direction not in ("NEXT", "FORWARD"):
            raise UnsupportedSql("A cursor can move only forward.", hint=_HINTS[verb])
        if direction == "NEXT":
            return 1
    if reader.passed("ALL"):
        return N_ROWS_ALL
    word = reader.ahead
    if word is not None and word.token_type == TokenType.NUMBER and _is_whole(word.text):
        reader.next_word()
        return min(int(word.text), N_ROWS_ALL)
    if reader.passed("-"):
        raise UnsupportedSql("A cursor can move only forward.", hint=_HINTS[verb])
    return 1


def _prepare(text: str, reader: WordReader) -> PrepareQuery:
    name, types = _name(reader, "PREPARE"), list[str]()
    if reader.passed("("):
        while not reader.passed(")"):
            word = reader.next_word()
            if word is None:
                raise _malformed(reader, "PREPARE")
            types.append(keyword(word))
    if not reader.passed("AS") or reader.ahead is None:
        raise _malformed(reader, "PREPARE")
    named = " ".join(types).split(",")
    kinds = tuple(one.strip() for one in named if one.strip())
    return PrepareQuery(name, kinds, behind(text, reader.ahead.start))


def _execute(reader: WordReader) -> ExecutePrepared:
    name, values = _name(reader, "EXECUTE"), list[Parameter]()
    if reader.passed("("):
        values.append(_value(reader))
        while reader.passed(","):
            values.append(_value(reader))
        if not reader.passed(")"):
            raise _malformed(reader, "EXECUTE")
    _check_end(reader, "EXECUTE")
    return ExecutePrepared(name, tuple(values))


def _value(reader: WordReader) -> Parameter:
    """A literal."""
    sign = "-" if reader.passed("-") else ""
    word = reader.next_word()
    if word is None:
        raise _malformed(reader, "EXECUTE")
    if word.token_type == TokenType.NUMBER:
        return Parameter(ParameterKind.NUMBER, sign + word.text)
    if not sign and word.token_type == TokenType.STRING:
        return Parameter(ParameterKind.TEXT, word.text)
    if not sign and keyword(word) in ("TRUE", "FALSE"):
        return Parameter(ParameterKind.BOOLEAN, word.text.lower())
    if not sign and keyword(word) == "NULL":
        return Parameter(ParameterKind.NULL)
    raise _malformed(reader, "EXECUTE")


def behind(text: str, start: int) -> str:
    """The text from a place on; what is before it is blank, so that lines and columns stay."""
    return "".join("\n" if sign == "\n" else " " for sign in text[:start]) + text[start:]


def _is_whole(text: str) -> bool:
    return text.isdecimal() and len(text) <= _N_DIGITS_MAX


def _name_or_all(reader: WordReader, verb: str) -> str | None:
    name = None if reader.passed("ALL") else _name(reader, verb)
    _check_end(reader, verb)
    return name


def _name(reader: WordReader, verb: str) -> str:
    """A name: as it is between quotes, else in lower case."""
    word = reader.next_word()
    if word is None or not is_name(word):
        raise _malformed(reader, verb)
    return word.text if is_quoted(word) else word.text.lower()


def _check_end(reader: WordReader, verb: str) -> None:
    if reader.ahead is not None:
        raise _malformed(reader, verb)


def _malformed(reader: WordReader, verb: str) -> InvalidSql:
    word = reader.latest if reader.ahead is None else reader.ahead
    return InvalidSql(
        f"{verb} has a syntax error near {shortened(word.text)}.",
        hint=_HINTS[verb],
        position=position_at(word.line, word.col),
    )


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
        raise ReadOnly(
            "COPY is supported only for the answer of a query, and only to STDOUT.", hint=_HINT
        )
    reader = WordReader(words[end + 1 :])
    if not reader.passed("TO", "STDOUT"):
        raise ReadOnly("COPY is supported only to STDOUT.", hint=_HINT)
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
            raise _malformed_copy(reader)
        has_header = form is None and reader.passed("HEADER")
        _check_end_of_copy(reader)
        return form or CopyFormat.CSV, has_header
    form, has_header = CopyFormat.TEXT, False
    while True:
        if reader.passed("FORMAT"):
            form = _format(reader)
        elif reader.passed("HEADER"):
            has_header = not (reader.passed("FALSE") or reader.passed("OFF"))
            _ = reader.passed("TRUE") or reader.passed("ON")
        else:
            raise _malformed_copy(reader)
        if not reader.passed(","):
            break
    if not reader.passed(")"):
        raise _malformed_copy(reader)
    _check_end_of_copy(reader)
    return form, has_header


def _format(reader: WordReader) -> CopyFormat:
    word = reader.next_word()
    named = "" if word is None else word.text.lower()
    if named not in set(CopyFormat):
        raise _malformed_copy(reader)
    return CopyFormat(named)


def _check_end_of_copy(reader: WordReader) -> None:
    if reader.ahead is not None:
        raise _malformed_copy(reader)


def _malformed_copy(reader: WordReader) -> InvalidSql:
    word = reader.latest if reader.ahead is None else reader.ahead
    return InvalidSql(
        f"COPY has a syntax error near {shortened(word.text)}.",
        hint=_HINT,
        position=position_at(word.line, word.col),
    )
