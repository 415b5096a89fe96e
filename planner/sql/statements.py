"""Every statement there is, told apart: the one reader of SQL text.

    Query                                          SELECT .., WITH .., (SELECT ..); SHOW TABLES
    Explain                                        EXPLAIN in its forms, of a query or of the next
    CreateSynthetic, DropSynthetic                 CREATE and DROP SYNTHETIC TABLE
    CreateStream, DropStream                       CREATE and DROP STREAM
    SetSetting, ResetSetting, ResetAll             SET, RESET and SHOW of our own settings
    ShowSetting
    ClientSetting, ShowClientSetting                    the same of what clients set by themselves
    TransactionWord, Savepoint, DiscardAll         BEGIN, COMMIT, ROLLBACK; SAVEPOINT; DISCARD ALL
    Unlisten                                       UNLISTEN *
    CursorStatement, PreparedStatement             DECLARE, FETCH, CLOSE; PREPARE, EXECUTE ..
    CopyOut                                        COPY (SELECT ..) TO STDOUT

Whoever serves statements matches on these. The set is closed: any other text is refused. A query is
told by its first words alone: `query_tree` parses it. Nothing here knows a table or a session.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, TypeAlias

from sqlglot.tokenizer_core import Token, TokenType

from cube.refusals import InvalidSql, ReadOnly, UnsupportedSql
from planner.cache import BoundedCache
from planner.sql.comment_options import commented_options
from planner.sql.copying import CopyOut, read_copy
from planner.sql.cursors import CursorStatement, PreparedStatement, read_cursor
from planner.sql.explain_forms import OUR_TABLE, ExplainForm, PlanFormat, read_form
from planner.sql.listings import read_listing
from planner.sql.messages import shortened
from planner.sql.settings import SettingStatement, read_setting
from planner.sql.stream_statements import CreateStream, StreamStatement, read_stream
from planner.sql.synthetic_statements import CreateSynthetic, SyntheticStatement, read_synthetic
from planner.sql.transactions import SessionWord, read_session_word
from planner.sql.words import (
    FILE,
    ONE_STATEMENT,
    TextLimits,
    WordedStatement,
    check_length,
    keyword,
    worded_statements,
)

N_READ_MAX: Final = 4096  # texts, remembered since a dashboard sends the same again and again
N_READ_BYTES_MAX: Final = 16 * 2**20
N_UNPARSED_MAX: Final = 256  # queries whose words are kept from reading them to parsing them
N_UNPARSED_BYTES_MAX: Final = 16 * 2**20
WORD_BYTES: Final = 400  # the memory that one word takes, roughly

_INSTEAD: Final = {
    "LISTEN": "There are no channels here, so that nothing would ever come; UNLISTEN is taken.",
    "PIVOT": "Say SELECT a, COUNT(*) FILTER (WHERE b = 'x') AS x FROM t GROUP BY a, with a column "
    "for each value.",
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
    """A statement of which only the cost is asked for."""

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
    """The statements of a file, of which there is at least one.

    Raises
    ------
    Refused
        As `read_text`, with the limits of a file, and if there is none.
    """
    found = read_text(sql, FILE)
    if not found:
        raise InvalidSql("There is no SQL statement in the file.", hint="Put a SELECT into it.")
    return tuple(one.statement for one in found)


def check_alone(found: Sequence[StatementAt]) -> None:
    """Raise UnsupportedSql if there are several statements where one is answered."""
    if len(found) > 1:
        raise UnsupportedSql(
            "One statement at a time is answered.", hint="Send the statements one by one."
        )


def not_answered(verb: str) -> UnsupportedSql:
    """The refusal of a statement that is no query, by the word that it begins with."""
    refusal = ReadOnly if verb in _WRITES else UnsupportedSql
    return refusal(
        f"Only SELECT is answered, not {shortened(verb)}.",
        hint=_INSTEAD.get(
            verb, "Begin with SELECT or WITH; tables are changed where the data are kept."
        ),
    )


def _statement(worded: WordedStatement) -> Statement:
    words = worded.words
    if keyword(words[0]) == "EXPLAIN":
        return _explained(worded)
    listing = read_listing(words)
    if listing is not None:
        return Query(listing)
    found: Statement | None = (
        read_setting(words)
        or read_session_word(words)
        or read_synthetic(words)
        or read_stream(words)
    )
    if isinstance(found, CreateSynthetic | CreateStream) and commented_options(words):
        raise InvalidSql(
            "Options in a comment are for SELECT.",
            hint="What is created has its own: WITH (epsilon => 1).",
        )
    found = found or read_cursor(worded.text, words) or read_copy(worded.text, words)
    return found or _query(worded.text, words)


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
        raise InvalidSql("EXPLAIN PRIVACY is followed by nothing.", hint="Put a SELECT after it.")
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
