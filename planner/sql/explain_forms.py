"""What stands between EXPLAIN and the statement: PRIVACY, or the options of PostgreSQL.

    EXPLAIN [PRIVACY] SELECT ..                         our table: a row for each candidate
    EXPLAIN ANALYZE VERBOSE SELECT ..                   PostgreSQL's text, a column "QUERY PLAN"
    EXPLAIN (ANALYZE, COSTS off, FORMAT json) SELECT .. the same as one text of JSON

No form runs the statement. What the explanation says is not known here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sqlglot.tokenizer_core import Token

from cube.refusals import InvalidSql, UnsupportedSql
from planner.sql.messages import shortened
from planner.sql.words import WordReader, keyword

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
        return _listed(reader), reader.rest
    is_analyzed = reader.passed("ANALYZE") or reader.passed("ANALYSE")
    is_verbose = reader.passed("VERBOSE")
    if not (is_analyzed or is_verbose):
        return OUR_TABLE, reader.rest
    return ExplainForm(PlanFormat.TEXT, is_analyzed), reader.rest


def _listed(reader: WordReader) -> ExplainForm:
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
            "The options of EXPLAIN have no end.", hint="Close them with a parenthesis."
        )
    return ExplainForm(shown_as, is_analyzed)


def _format(value: str | None) -> PlanFormat:
    if value not in ("TEXT", "JSON"):
        raise UnsupportedSql(
            f"A plan is not shown as {shortened(value or 'nothing')}.",
            hint="FORMAT is TEXT or JSON.",
        )
    return PlanFormat(value.lower())
