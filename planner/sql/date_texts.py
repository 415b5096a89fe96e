"""Days and moments read from literal texts, and written with the codes of strftime.

TO_DATE('2025-01-31', 'YYYY-MM-DD') of two literals is a constant, read while the statement is
parsed; of anything else it is refused later. STRFTIME(moment, '%Y-%m') is TO_CHAR with the pattern
that says the same.
"""

import datetime as dt
import re
from collections.abc import Callable
from typing import Final

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.time import format_time

from planner.sql.date_functions import ToChar

# By code of strftime, the pattern of TO_CHAR.
_PATTERNS: Final = {
    "Y": "YYYY",
    "m": "MM",
    "d": "DD",
    "H": "HH24",
    "M": "MI",
    "S": "SS",
    "y": "YY",
    "j": "DDD",
    "b": "Mon",
    "B": "FMMonth",
    "a": "Dy",
    "A": "FMDay",
    "u": "ID",
    "V": "IW",
    "G": "IYYY",
    "I": "HH12",
    "p": "AM",
    "%": "%",
    "F": "YYYY-MM-DD",
    "T": "HH24:MI:SS",
    "-m": "FMMM",
    "-d": "FMDD",
    "-H": "FMHH24",
}
_PIECE = re.compile(r'%(?P<code>-?[A-Za-z%])|(?P<letters>[A-Za-z]+)|(?P<other>[^A-Za-z"%]+)')


def _read_as(name: str, kind: exp.DType) -> Callable[[list[exp.Expr]], exp.Expr]:
    """A function of a text and a pattern, which is a constant where both are literals."""

    def read(arguments: list[exp.Expr]) -> exp.Expr:
        moment = _moment(arguments)
        if moment is None:
            return exp.Anonymous(this=name, expressions=arguments)
        text = f"{moment:%Y-%m-%d}" if kind == exp.DType.DATE else f"{moment:%Y-%m-%d %H:%M:%S}"
        constant = exp.Literal.string(text)
        constant.meta.update(arguments[0].meta)
        return exp.cast(constant, kind, copy=False)

    return read


def _moment(arguments: list[exp.Expr]) -> dt.datetime | None:
    """The moment that a text names by a pattern; None if it names none."""
    if len(arguments) != 2 or not all(map(_is_text, arguments)):  # noqa: PLR2004 - text and pattern
        return None
    text, pattern = (one.name for one in arguments)
    codes = format_time(pattern, Postgres.TIME_MAPPING, Postgres.TIME_TRIE)
    try:
        return dt.datetime.strptime(text, codes or "").replace(tzinfo=dt.UTC)
    except ValueError:
        return None


def _written(name: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    """TO_CHAR from a moment and a format of strftime, which stand in either order."""

    def written(arguments: list[exp.Expr]) -> exp.Expr:
        formats = [one for one in arguments if _is_text(one)]
        if len(arguments) != 2 or len(formats) != 1:  # noqa: PLR2004 - a moment and a format
            return exp.Anonymous(this=name, expressions=arguments)
        pattern = _pattern(formats[0].name)
        if pattern is None:
            return exp.Anonymous(this=name, expressions=arguments)
        (moment,) = (one for one in arguments if one is not formats[0])
        literal = exp.Literal.string(pattern)
        literal.meta.update(formats[0].meta)
        return ToChar(this=moment, expression=literal)

    return written


def _pattern(codes: str) -> str | None:
    """The pattern of TO_CHAR that writes what the codes of strftime write; None if none does.

    >>> _pattern("%Y-%m"), _pattern("week %V"), _pattern("%c")
    ('YYYY-MM', '"week" IW', None)
    """
    pieces, place = [], 0
    while (match := _PIECE.match(codes, place)) is not None:
        place = match.end()
        if match["code"] is None:
            pieces.append(match["other"] or f'"{match["letters"]}"')
        elif match["code"] in _PATTERNS:
            pieces.append(_PATTERNS[match["code"]])
        else:
            return None
    return "".join(pieces) if place == len(codes) else None


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


DATE_TEXTS: Final[dict[str, Callable[[list[exp.Expr]], exp.Expr]]] = {
    "FORMAT_DATE": _written("FORMAT_DATE"),
    "STRFTIME": _written("STRFTIME"),
    "TO_DATE": _read_as("TO_DATE", exp.DType.DATE),
    "TO_TIMESTAMP": _read_as("TO_TIMESTAMP", exp.DType.TIMESTAMP),
}
