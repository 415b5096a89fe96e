"""Reads SQL text, and tells every kind of statement apart.

OPTIONS in a comment, for tools that let a user add text to a statement, but no syntax.

    /*+ tacit(half_width=50, confidence=0.9) */ SELECT ..
    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 50, confidence => 0.9) ..

Comments that do not begin so are comments. One that does, and cannot be read, is refused: it may
have been a cap.

SHOW TABLES and DESCRIBE: short for a SELECT from `information_schema`.

    SHOW TABLES          SHOW COLUMNS FROM t         { DESCRIBE | DESC } [TABLE] t

Whether there is such a table is for the SELECT to find out: of an unknown one nothing is listed.

What stands between EXPLAIN and the statement: PRIVACY, or the options of PostgreSQL.

    EXPLAIN [PRIVACY] SELECT ..                         our table: a row for each candidate
    EXPLAIN ANALYZE VERBOSE SELECT ..                   PostgreSQL's text, a column "QUERY PLAN"
    EXPLAIN (ANALYZE, COSTS off, FORMAT json) SELECT .. the same as one text of JSON

No form runs the statement. What the explanation says is not known here.

Statements that clients send around others: BEGIN, COMMIT, ROLLBACK, DISCARD ALL and UNLISTEN.

    BEGIN | START TRANSACTION [mode, ..]    COMMIT | END [AND [NO] CHAIN]
    ROLLBACK | ABORT [AND [NO] CHAIN]       DISCARD ALL | PLANS | SEQUENCES | TEMP
    UNLISTEN * | name
    SAVEPOINT name    RELEASE [SAVEPOINT] name    ROLLBACK TO [SAVEPOINT] name

There are no transactions here: what was charged stays charged, and what was measured stays known.
The words are read so that a client that sends them of its own accord is understood.

    Query                                          SELECT .., WITH .., (SELECT ..); SHOW TABLES
    Explain                                        EXPLAIN in its forms, of a query or of the next
    CreateSynthetic, DropSynthetic                 CREATE and DROP SYNTHETIC TABLE
    CreateStream, DropStream                       CREATE and DROP STREAM
    SetSetting, ResetSetting, ResetAll             SET, RESET and SHOW of our own settings
    ShowSetting
    ClientSetting, ShowClientSetting                    the same for settings that clients send
    TransactionWord, Savepoint, DiscardAll         BEGIN, COMMIT, ROLLBACK; SAVEPOINT; DISCARD ALL
    Unlisten                                       UNLISTEN *
    CursorStatement, PreparedStatement             DECLARE, FETCH, CLOSE; PREPARE, EXECUTE ..
    CopyOut                                        COPY (SELECT ..) TO STDOUT

The server matches on these. The set is closed: any other text is refused. A query is
told by its first words alone: `query_tree` parses it. Nothing here knows a table or a session.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, NamedTuple, TypeAlias

from sqlglot.tokenizer_core import Token, TokenType

from cube.refusals import InvalidSql, ReadOnly, Refused, UnsupportedSql
from planner.cache import BoundedCache
from planner.sql.cursors import (
    CURSOR_WORDS,
    CopyOut,
    CursorStatement,
    PreparedStatement,
    read_copy,
    read_cursor,
)
from planner.sql.messages import position_at, shortened
from planner.sql.options import Option
from planner.sql.settings import SettingStatement, read_setting
from planner.sql.stream_statements import CreateStream, StreamStatement, read_stream
from planner.sql.synthetic_statements import CreateSynthetic, SyntheticStatement, read_synthetic
from planner.sql.words import (
    FILE,
    ONE_STATEMENT,
    TextLimits,
    WordedStatement,
    WordReader,
    check_length,
    is_name,
    is_quoted,
    keyword,
    worded_statements,
)

_BEGINNING: Final = re.compile(r"\+\s*tacit\b", re.IGNORECASE)


def commented_options(words: Iterable[Token]) -> tuple[Option, ...]:
    """The options in the comments between some words, in order.

    >>> (one,) = worded_statements("SELECT /*+ tacit(half_width=50) */ 1 -- why not")
    >>> commented_options(one.words)
    (Option(name='half_width', value='50', is_number=True),)

    Raises
    ------
    InvalidSql
        If a comment for us is malformed.
    """
    found: list[Option] = []
    for word in words:
        for comment in word.comments:
            beginning = _BEGINNING.match(comment)
            if beginning is None:
                continue
            options = _options(comment[beginning.end() :])
            if options is None:
                raise InvalidSql(
                    f"The comment /*{shortened(comment)}*/ has a syntax error.",
                    hint="Write /*+ tacit(half_width=50, confidence=0.9) */.",
                )
            found += options
    return tuple(found)


def _options(text: str) -> list[Option] | None:
    """The options between parentheses; None if that is not what a text is."""
    with suppress(Refused):
        inside = worded_statements(text)
        if len(inside) == 1:
            return _listed_options(WordReader(inside[0].words))
    return None


def _listed_options(reader: WordReader) -> list[Option] | None:
    found: list[Option] = []
    is_open = reader.passed("(")
    while is_open and not reader.passed(")"):
        is_next = not found or reader.passed(",")
        option = _option(reader) if is_next else None
        if option is None:
            return None
        found.append(option)
    return found if is_open and not reader.rest else None


def _option(reader: WordReader) -> Option | None:
    name = reader.next_word()
    if name is None or is_quoted(name) or not (reader.passed("=") or reader.passed("=>")):
        return None
    sign = "-" if reader.passed("-") else ""
    sign += "." if reader.passed(".") else ""
    value = reader.next_word()
    if value is None or value.text in ("(", ")", ","):
        return None
    return Option(name.text.lower(), sign + value.text, value.token_type == TokenType.NUMBER)


_TABLES: Final = (
    "SELECT table_schema, table_name, table_type FROM information_schema.tables "
    "ORDER BY table_schema, table_name"
)
_COLUMNS: Final = (
    "SELECT column_name, data_type, is_nullable FROM information_schema.columns "
    "WHERE LOWER(table_name) = '{}' {} ORDER BY ordinal_position"
)
_OF_LISTINGS: Final = (("SHOW", "COLUMNS", "FROM"), ("DESCRIBE", "TABLE"), ("DESCRIBE",), ("DESC",))


def read_listing(words: Sequence[Token]) -> str | None:
    """The SELECT that a listing is short for; None if the words are no listing."""
    if [keyword(word) for word in words] == ["SHOW", "TABLES"]:
        return _TABLES
    for beginning in _OF_LISTINGS:
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


_SWITCHES: Final = frozenset(
    {
        *("ANALYZE", "ANALYSE", "VERBOSE", "COSTS", "SETTINGS", "GENERIC_PLAN", "BUFFERS", "WAL"),
        *("TIMING", "SUMMARY", "MEMORY", "SERIALIZE"),
    }
)
_OFF: Final = ("OFF", "FALSE", "0", "NONE")
_ON: Final = ("ON", "TRUE", "1", "TEXT", "BINARY")
_QUERY: Final = ("SELECT", "WITH", "(", "VALUES")


class PlanFormat(StrEnum):
    """How an explanation is shown."""

    TABLE = "table"
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class ExplainForm:
    """How a statement is to be explained; `is_analyzed` if it was to be run for that."""

    shown_as: PlanFormat = PlanFormat.TABLE
    is_analyzed: bool = False


OUR_TABLE: Final = ExplainForm()


def read_form(words: Sequence[Token]) -> tuple[ExplainForm, Sequence[Token]]:
    """The form, and the words of the statement; `words` begins with EXPLAIN.

    Raises
    ------
    InvalidSql, UnsupportedSql
        If an option is unknown or malformed; if a format is none that there is.
    """
    reader = WordReader(words[1:])
    if reader.passed("PRIVACY"):
        return OUR_TABLE, reader.rest
    following = [keyword(word) for word in reader.rest[:2]]
    if following[:1] == ["("] and following[1:] and following[1] not in _QUERY:
        return _listed_forms(reader), reader.rest
    is_analyzed = reader.passed("ANALYZE") or reader.passed("ANALYSE")
    is_verbose = reader.passed("VERBOSE")
    if not (is_analyzed or is_verbose):
        return OUR_TABLE, reader.rest
    return ExplainForm(PlanFormat.TEXT, is_analyzed), reader.rest


def _listed_forms(reader: WordReader) -> ExplainForm:
    """The options between parentheses."""
    shown_as, is_analyzed = PlanFormat.TEXT, False
    reader.passed("(")
    while True:
        word = reader.next_word()
        name = "" if word is None else keyword(word)
        value = None
        if reader.ahead is not None and keyword(reader.ahead) not in (",", ")"):
            given = reader.next_word()
            value = "" if given is None else given.text.upper()
        if name == "FORMAT":
            shown_as = _format(value)
        elif name in _SWITCHES and value in (None, *_ON, *_OFF):
            is_analyzed |= name.startswith("ANALY") and value not in _OFF
        else:
            raise InvalidSql(
                f"EXPLAIN has no option {shortened(f'{name} {value or str()}'.strip() or '(')}.",
                hint="Write EXPLAIN SELECT .., or EXPLAIN (FORMAT JSON) SELECT ...",
            )
        if not reader.passed(","):
            break
    if not reader.passed(")"):
        raise InvalidSql(
            "The options of EXPLAIN do not end with a parenthesis.",
            hint="Add the closing parenthesis.",
        )
    return ExplainForm(shown_as, is_analyzed)


def _format(value: str | None) -> PlanFormat:
    if value not in ("TEXT", "JSON"):
        raise UnsupportedSql(
            f"EXPLAIN has no format {shortened(value or 'nothing')}.",
            hint="Use FORMAT TEXT or JSON.",
        )
    return PlanFormat(value.lower())


class TransactionWord(StrEnum):
    """The transaction statements."""

    BEGIN = "BEGIN"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"

    @property
    def verb(self) -> str:
        """How such a statement begins."""
        return self.value


@dataclass(frozen=True, slots=True)
class DiscardAll:
    """Put the session back to how it began; less than everything, if only that is discarded."""

    is_everything: bool = True
    verb: ClassVar[str] = "DISCARD"


@dataclass(frozen=True, slots=True)
class Unlisten:
    """Stop listening to channels: pools send this for every connection, and it changes nothing."""

    verb: ClassVar[str] = "UNLISTEN"


class SavepointWord(StrEnum):
    """The savepoint statements."""

    SET = "SAVEPOINT"
    RELEASE = "RELEASE"
    ROLLBACK_TO = "ROLLBACK TO"


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A savepoint set, released or returned to."""

    word: SavepointWord
    name: str

    @property
    def verb(self) -> str:
        """How such a statement begins."""
        return self.word.value


SessionWord: TypeAlias = TransactionWord | DiscardAll | Savepoint | Unlisten

_BEGINNINGS: Final = {
    ("START", "TRANSACTION"): TransactionWord.BEGIN,
    ("BEGIN",): TransactionWord.BEGIN,
    ("COMMIT",): TransactionWord.COMMIT,
    ("END",): TransactionWord.COMMIT,
    ("ROLLBACK",): TransactionWord.ROLLBACK,
    ("ABORT",): TransactionWord.ROLLBACK,
}
_SAVEPOINTS: Final = {
    ("SAVEPOINT",): SavepointWord.SET,
    ("RELEASE", "SAVEPOINT"): SavepointWord.RELEASE,
    ("RELEASE",): SavepointWord.RELEASE,
    **{
        ("ROLLBACK", *filler, "TO", *tail): SavepointWord.ROLLBACK_TO
        for filler in (("WORK",), ("TRANSACTION",), ())
        for tail in (("SAVEPOINT",), ())
    },
}
_DISCARDED: Final = ("PLANS", "SEQUENCES", "TEMP", "TEMPORARY")
_MODES: Final = (
    ("ISOLATION", "LEVEL", "SERIALIZABLE"),
    ("ISOLATION", "LEVEL", "REPEATABLE", "READ"),
    ("ISOLATION", "LEVEL", "READ", "COMMITTED"),
    ("ISOLATION", "LEVEL", "READ", "UNCOMMITTED"),
    ("READ", "WRITE"),
    ("READ", "ONLY"),
    ("NOT", "DEFERRABLE"),
    ("DEFERRABLE",),
)
_CHAINS: Final = (("AND", "CHAIN"), ("AND", "NO", "CHAIN"))


_SESSION_WORDS: Final = {
    "DISCARD",
    "UNLISTEN",
    *(first for first, *_ in (*_SAVEPOINTS, *_BEGINNINGS)),
}


def read_session_word(words: Sequence[Token]) -> SessionWord | None:
    """The statement about a transaction or a session; None if the words begin otherwise.

    Raises
    ------
    InvalidSql
        If they go on as no such statement does.
    """
    reader = WordReader(words)
    if reader.passed("DISCARD"):
        return _discard(reader)
    if reader.passed("UNLISTEN"):
        return _unlisten(reader)
    for opening, savepoint in _SAVEPOINTS.items():
        if reader.passed(*opening):
            return _savepoint(savepoint, reader)
    for beginning, word in _BEGINNINGS.items():
        if not reader.passed(*beginning):
            continue
        if len(beginning) == 1 and not reader.passed("TRANSACTION"):
            reader.passed("WORK")
        if word == TransactionWord.BEGIN:
            _pass_modes(reader)
        else:
            any(reader.passed(*chain) for chain in _CHAINS)
        if reader.ahead is not None:
            raise _malformed(
                reader,
                "Write BEGIN, COMMIT or ROLLBACK without further clauses: a transaction cannot "
                "undo a charge.",
            )
        return word
    return None


def _discard(reader: WordReader) -> DiscardAll:
    is_everything = reader.passed("ALL")
    passed = is_everything or any(reader.passed(what) for what in _DISCARDED)
    if not passed or reader.ahead is not None:
        raise _malformed(reader, "Write DISCARD ALL.")
    return DiscardAll(is_everything)


def _unlisten(reader: WordReader) -> Unlisten:
    channel = reader.next_word()
    if channel is None or not (channel.text == "*" or is_name(channel)) or reader.ahead:
        raise _malformed(reader, "Write UNLISTEN *.")
    return Unlisten()


def _pass_modes(reader: WordReader) -> None:
    while any(reader.passed(*mode) for mode in _MODES):
        reader.passed(",")


def _savepoint(word: SavepointWord, reader: WordReader) -> Savepoint:
    name = reader.next_word()
    if name is None or not is_name(name) or reader.ahead is not None:
        raise _malformed(reader, "Write SAVEPOINT name, RELEASE name, or ROLLBACK TO name.")
    return Savepoint(word, name.text if is_quoted(name) else name.text.lower())


def _malformed(reader: WordReader, hint: str) -> InvalidSql:
    word = reader.latest if reader.ahead is None else reader.ahead
    return InvalidSql(
        f"The statement has a syntax error near {shortened(word.text)}.",
        hint=hint,
        position=position_at(word.line, word.col),
    )


N_READ_MAX: Final = 4096  # texts, remembered since a dashboard sends the same again and again
N_READ_BYTES_MAX: Final = 16 * 2**20
N_UNPARSED_MAX: Final = 256  # queries whose words are kept from reading them to parsing them
N_UNPARSED_BYTES_MAX: Final = 16 * 2**20
WORD_BYTES: Final = 400  # the memory that one word takes, roughly

_INSTEAD: Final = {
    "LISTEN": "Tacit has no channels, so no notification would ever arrive. UNLISTEN is accepted.",
    "PIVOT": (
        "Use SELECT a, COUNT(*) FILTER (WHERE b = 'x') AS x FROM t GROUP BY a, with a "
        "column for each value."
    ),
}
_WRITES: Final = frozenset(
    {
        *("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "CREATE", "ALTER", "DROP", "GRANT"),
        *("REVOKE", "COMMENT", "VACUUM", "ANALYZE", "REINDEX", "CLUSTER", "REFRESH", "LOCK"),
    }
)
_SELECTING = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN)


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT.

    Parameters
    ----------
    text : str
        As it was written, in which lines and columns count; or what SHOW TABLES is short for.
    start : int
        Where in it the SELECT begins: behind EXPLAIN PRIVACY, if there is that.
    """

    text: str
    start: int = 0
    verb: ClassVar[str] = "SELECT"


@dataclass(frozen=True, slots=True)
class Explain:
    """A request for the cost of a statement, without its answer."""

    of: Query | CreateSynthetic
    form: ExplainForm = OUR_TABLE
    verb: ClassVar[str] = "EXPLAIN"


SessionStatement: TypeAlias = SettingStatement | SessionWord
Statement: TypeAlias = (
    Query
    | Explain
    | SyntheticStatement
    | StreamStatement
    | SessionStatement
    | CursorStatement
    | PreparedStatement
    | CopyOut
)


class StatementAt(NamedTuple):
    """A statement, and the place in its text where it begins."""

    start: int
    statement: Statement


_READ: BoundedCache[tuple[str, TextLimits], tuple[StatementAt, ...]] = BoundedCache(
    n_entries_max=N_READ_MAX, n_bytes_max=N_READ_BYTES_MAX
)

_UNPARSED: BoundedCache[str, Sequence[Token]] = BoundedCache(
    n_entries_max=N_UNPARSED_MAX, n_bytes_max=N_UNPARSED_BYTES_MAX
)


def read_text(sql: str, limits: TextLimits = ONE_STATEMENT) -> tuple[StatementAt, ...]:
    """Every statement of a text, in order; none of an empty one.

    >>> [found.statement.verb for found in read_text("BEGIN; SET tacit.epsilon = 1; SELECT 1")]
    ['BEGIN', 'SET', 'SELECT']

    Raises
    ------
    Refused
        If the text is too long, cannot be read as words, or has a statement that is not in the set
        or is malformed. A query is not looked into.
    """
    check_length(sql, limits)
    found = _READ.get((sql, limits))
    if found is None:
        worded = worded_statements(sql, limits)
        found = tuple(StatementAt(one.start, _statement(one)) for one in worded)
        _READ.put((sql, limits), found, n_bytes=2 * len(sql))
        _keep_unparsed(worded, found)
    return found


def read_statement(sql: str) -> Statement:
    """The one statement that a text is.

    >>> read_statement("DROP SYNTHETIC TABLE IF EXISTS s")
    DropSynthetic(name='s', if_exists=True, source=None)

    Raises
    ------
    Refused
        As `read_text`, and if it is several statements, or none.
    """
    found = read_text(sql)
    if not found:
        raise InvalidSql("There is no SQL statement in the text.", hint="Send a SELECT.")
    check_alone(found)
    return found[0].statement


def read_query(sql: str) -> Query:
    """The query that a text is, or asks to explain.

    Raises
    ------
    Refused
        As `read_statement`, and if it is another statement.
    """
    match read_statement(sql):
        case Query() as query:
            return query
        case Explain(of=Query() as query):
            return query
        case Explain(of=other) | other:
            raise not_answered(other.verb)


def words_to_parse(query: Query) -> list[Token]:
    """The words of a query; those before its `start` are EXPLAIN and the like.

    A text of 60 kB takes a tenth of a second to be cut into words, in which other analysts wait: so
    the words that `read_text` cut are used, once, since what is parsed may keep parts of them.
    """
    words = _UNPARSED.take(query.text)
    if words is None:
        (worded,) = worded_statements(query.text)
        words = worded.words
    return list(words)


def read_file(sql: str) -> tuple[Statement, ...]:
    """The statements of a file, at least one.

    Raises
    ------
    Refused
        As `read_text`, with the limits of a file, and if there is none.
    """
    found = read_text(sql, FILE)
    if not found:
        raise InvalidSql(
            "There is no SQL statement in the file.", hint="Write at least one SELECT into it."
        )
    return tuple(one.statement for one in found)


def check_alone(found: Sequence[StatementAt]) -> None:
    """Raise UnsupportedSql if there are several statements where one is answered."""
    if len(found) > 1:
        raise UnsupportedSql(
            "Only one statement may be sent at a time.", hint="Send the statements one by one."
        )


def not_answered(verb: str) -> UnsupportedSql:
    """The refusal of a statement that is no query, by the word that it begins with."""
    refusal = ReadOnly if verb in _WRITES else UnsupportedSql
    return refusal(
        f"Only SELECT is supported, not {shortened(verb)}.",
        hint=_INSTEAD.get(
            verb, "Begin with SELECT or WITH. Change tables where their data are kept."
        ),
    )


def _statement(worded: WordedStatement) -> Statement:
    """The statement that some words are: its first word decides who reads it."""
    read = _READERS.get(keyword(worded.words[0]))
    found = None if read is None else read(worded)
    return found or _query(worded.text, worded.words)


def _shown(worded: WordedStatement) -> Query | SettingStatement | None:
    """SHOW TABLES and SHOW COLUMNS, which are short for a SELECT; SHOW of a setting."""
    listing = read_listing(worded.words)
    return read_setting(worded.words) if listing is None else Query(listing)


def _listed(worded: WordedStatement) -> Query | None:
    listing = read_listing(worded.words)
    return None if listing is None else Query(listing)


def _made(worded: WordedStatement) -> SyntheticStatement | StreamStatement | None:
    """CREATE and DROP of synthetic tables and streams."""
    found = read_synthetic(worded.words) or read_stream(worded.words)
    if isinstance(found, CreateSynthetic | CreateStream) and commented_options(worded.words):
        raise InvalidSql(
            "Options in a comment work only for SELECT.",
            hint="Use the options of CREATE: WITH (epsilon => 1).",
        )
    return found


def _keep_unparsed(worded: Sequence[WordedStatement], found: Sequence[StatementAt]) -> None:
    """Keep the words of a text that is one query, for `words_to_parse`."""
    match found:
        case [StatementAt(statement=Query() | Explain(of=Query()))]:
            (one,) = worded
            _UNPARSED.put(one.text, one.words, n_bytes=WORD_BYTES * len(one.words))
        case _:
            pass


def _explained(worded: WordedStatement) -> Explain:
    """EXPLAIN in one of its forms; a synthetic table has our own alone."""
    form, words = read_form(worded.words)
    if not words:
        raise InvalidSql("EXPLAIN PRIVACY needs a statement.", hint="Write a SELECT after it.")
    if keyword(words[0]) == "CREATE" and form.shown_as is PlanFormat.TABLE:
        synthetic = read_synthetic(words)
        if isinstance(synthetic, CreateSynthetic):
            return Explain(synthetic)
    return Explain(_query(worded.text, words), form)


def _query(text: str, words: Sequence[Token]) -> Query:
    """A query that begins with the first of these words."""
    first = words[0]
    if first.token_type not in _SELECTING:
        raise not_answered(first.text.upper())
    return Query(text, first.start)


# Who reads a statement, by its first word. What is in no row is a query, and so is what its reader
# does not know, if it begins as one.
_READERS: Final[Mapping[str, Callable[[WordedStatement], Statement | None]]] = {
    "EXPLAIN": _explained,
    "SHOW": _shown,
    **dict.fromkeys(("DESCRIBE", "DESC"), _listed),
    **dict.fromkeys(("SET", "RESET"), lambda worded: read_setting(worded.words)),
    **dict.fromkeys(_SESSION_WORDS, lambda worded: read_session_word(worded.words)),
    **dict.fromkeys(("CREATE", "DROP"), _made),
    **dict.fromkeys(CURSOR_WORDS, lambda worded: read_cursor(worded.text, worded.words)),
    "COPY": lambda worded: read_copy(worded.text, worded.words),
}
