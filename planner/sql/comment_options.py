"""OPTIONS in a comment, for tools that let a user add text to a statement, but no syntax.

    /*+ tacit(half_width=50, confidence=0.9) */ SELECT ..
    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 50, confidence => 0.9) ..

Comments that do not begin so are comments. One that does, and cannot be read, is refused: it may
have been a cap.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
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
            if beginning is None:
                continue
            options = _options(comment[beginning.end() :])
            if options is None:
                raise InvalidSql(
                    f"The comment /*{shortened(comment)}*/ does not parse.",
                    hint="Write /*+ tacit(half_width=50, confidence=0.9) */.",
                )
            found += options
    return tuple(found)


def _options(text: str) -> list[Option] | None:
    """The options between parentheses; None if that is not what a text is."""
    with suppress(Refused):
        inside = worded_statements(text)
        if len(inside) == 1:
            return _listed(WordReader(inside[0].words))
    return None


def _listed(reader: WordReader) -> list[Option] | None:
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
