"""OPTIONS in a comment, for tools that let a user add text to a statement, but no syntax.

    /*+ tacit(half_width=50, confidence=0.9) */ SELECT ..
    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 50, confidence => 0.9) ..

Comments that do not begin so are comments. One that does, and cannot be read, is refused: it may
have been a cap.
"""

import re
from collections.abc import Iterable
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from cube.refusals import InvalidSql, Refused
from planner.sql.messages import shortened
from planner.sql.options import Option
from planner.sql.words import WordReader, is_quoted, worded_statements

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
            if beginning is not None:
                found += _options(comment[beginning.end() :])
    return tuple(found)


def _options(text: str) -> list[Option]:
    """The options between parentheses."""
    try:
        (inside,) = worded_statements(text)
    except (Refused, ValueError):
        raise _malformed(text) from None
    reader = WordReader(inside.words)
    found: list[Option] = []
    if not reader.passed("("):
        raise _malformed(text)
    while not reader.passed(")"):
        if found and not reader.passed(","):
            raise _malformed(text)
        found.append(_option(reader, text))
    if reader.rest:
        raise _malformed(text)
    return found


def _option(reader: WordReader, text: str) -> Option:
    name = reader.next_word()
    if name is None or is_quoted(name) or not (reader.passed("=") or reader.passed("=>")):
        raise _malformed(text)
    sign = "-" if reader.passed("-") else ""
    sign += "." if reader.passed(".") else ""
    value = reader.next_word()
    if value is None or value.text in ("(", ")", ","):
        raise _malformed(text)
    is_number = value.token_type == TokenType.NUMBER
    return Option(name.text.lower(), sign + value.text, is_number)


def _malformed(text: str) -> InvalidSql:
    return InvalidSql(
        f"The comment /*+ tacit{shortened(text)} */ does not parse.",
        hint="Write /*+ tacit(half_width=50, confidence=0.9) */.",
    )
