"""Bind parameters of a query: ``?``, ``$1``, ``:name``, and the values that clients send for them.

A value is put into the tree as a literal, never into the text: it cannot be read as SQL. Values are
kept as what they are written as, so that 1, 1.0 and true stay three different values.
"""

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final, TypeAlias

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from cube.refusals import InvalidSql, TooLarge
from planner.sql.messages import origin, shortened
from planner.sql.nodes import IS_INSTANT

N_PARAMETERS_MAX: Final = 999
N_TEXT_MAX: Final = 64 * 1024  # characters of all values: as long as a statement may be

_MARK: Final = "?"
_MARK_AND_CAST: Final = "?::"  # which the dialect reads as one sign


class ParameterKind(StrEnum):
    """What a value is."""

    NULL = "null"
    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIME = "time"
    INTERVAL = "interval"
    INSTANT = "instant"  # a timestamp of UTC, which was sent with a zone
    LIST = "list"


_CASTS: Final = {
    ParameterKind.DATE: exp.DataType.Type.DATE,
    ParameterKind.TIMESTAMP: exp.DataType.Type.TIMESTAMP,
    ParameterKind.TIME: exp.DataType.Type.TIME,
    ParameterKind.INTERVAL: exp.DataType.Type.INTERVAL,
    ParameterKind.INSTANT: exp.DataType.Type.TIMESTAMP,
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value for a parameter.

    Parameters
    ----------
    kind : ParameterKind
    text : str
        As SQL writes it, without quotes.
    name : str
        What the client calls it; only ``:name`` looks at it.
    items : tuple of Parameter
        Of a list.
    """

    kind: ParameterKind
    text: str = ""
    name: str = ""
    items: "tuple[Parameter, ...]" = ()

    @property
    def literal(self) -> exp.Expr:
        """The value as a node."""
        if self.kind is ParameterKind.NUMBER:
            number = exp.Literal.number(self.text.removeprefix("-"))
            is_negative = self.text.startswith("-")
            return exp.paren(exp.Neg(this=number), copy=False) if is_negative else number
        if self.kind is ParameterKind.LIST:
            return exp.Array(expressions=[item.literal for item in self.items])
        text = exp.Literal.string(self.text)
        cast_to = _CASTS.get(self.kind)
        if cast_to is not None:
            constant = exp.cast(text, cast_to)
            constant.meta[IS_INSTANT] = self.kind is ParameterKind.INSTANT
            return constant
        if self.kind is ParameterKind.BOOLEAN:
            return exp.Boolean(this=self.text == "true")
        return exp.null() if self.kind is ParameterKind.NULL else text

    @property
    def n_values(self) -> int:
        """How many values it is: one, or those of its list."""
        return len(self.items) if self.kind is ParameterKind.LIST else 1

    @property
    def n_characters(self) -> int:
        """How long what it writes is."""
        return len(self.text) + sum(item.n_characters for item in self.items)


Parameters: TypeAlias = tuple[Parameter, ...]


def parameter_of(value: object, name: str = "") -> Parameter:
    """A client's value as a parameter.

    >>> parameter_of(0.1).text, parameter_of(True).text, str(parameter_of("1").kind)
    ('0.1', 'true', 'text')

    Raises
    ------
    InvalidSql
        If it is of no type that a literal can have, or no finite number.
    """
    kind, text = _written(value)
    return Parameter(kind, text, name)


def list_of(values: Sequence[object], name: str = "") -> Parameter:
    """A client's list as a parameter, for ``= ANY($1)``; each value as `parameter_of` takes it."""
    items = (one if isinstance(one, Parameter) else parameter_of(one) for one in values)
    return Parameter(ParameterKind.LIST, "", name, tuple(items))


def _written(value: object) -> tuple[ParameterKind, str]:  # noqa: C901, PLR0911 - one for each
    match value:
        case None:
            return ParameterKind.NULL, ""
        case bool():
            return ParameterKind.BOOLEAN, "true" if value else "false"
        case int():
            return ParameterKind.NUMBER, str(value)
        case float() if math.isfinite(value):
            return ParameterKind.NUMBER, repr(value)
        case Decimal() if value.is_finite():
            return ParameterKind.NUMBER, f"{value:f}"
        case str():
            return ParameterKind.TEXT, value
        case dt.datetime():
            if value.tzinfo is None:
                return ParameterKind.TIMESTAMP, value.isoformat(sep=" ")
            utc = value.astimezone(dt.UTC).replace(tzinfo=None)
            return ParameterKind.INSTANT, utc.isoformat(sep=" ")
        case dt.date():
            return ParameterKind.DATE, value.isoformat()
        case dt.time() if value.tzinfo is None:
            return ParameterKind.TIME, value.isoformat()
        case dt.timedelta():
            seconds, micros = divmod(value - dt.timedelta(days=value.days), dt.timedelta(seconds=1))
            clock = f"{seconds}.{micros // dt.timedelta(microseconds=1):06} seconds"
            return ParameterKind.INTERVAL, f"{value.days} days {clock}"
        case _:
            raise InvalidSql(
                f"A parameter is a {type(value).__name__}, or no finite number.",
                hint="Send numbers, texts, booleans, dates, times, timestamps, intervals and NULL.",
            )


def numbered(words: Sequence[Token]) -> list[Token]:
    """The words with ``$1``, ``$2``, .. for each ``?``, in the order in which they stand."""
    found: list[Token] = []
    n_marks = 0
    for word in words:
        if word.text not in (_MARK, _MARK_AND_CAST) or word.token_type == TokenType.STRING:
            found.append(word)
            continue
        n_marks += 1
        found += (_at(word, TokenType.PARAMETER, "$"), _at(word, TokenType.NUMBER, str(n_marks)))
        if word.text == _MARK_AND_CAST:
            found.append(_at(word, TokenType.DCOLON, "::"))
    return found


def parameters_in(tree: exp.Expr) -> tuple[str, ...]:
    """The names of a query's parameters, each once: numbers from 1, or words.

    Raises
    ------
    TooLarge
        If there are too many, or one has a number beyond those.
    """
    names = dict.fromkeys(name for _, name in marks(tree))
    longest = max((len(name) for name in names if name.isdecimal()), default=0)
    if len(names) > N_PARAMETERS_MAX or longest > len(str(N_PARAMETERS_MAX)):
        raise TooLarge(
            f"The statement has parameters beyond number {N_PARAMETERS_MAX}.",
            hint="Number them from $1.",
        )
    numbers = [int(name) for name in names if name.isdecimal()]
    words = [name for name in names if not name.isdecimal()]
    return (*(str(number) for number in range(1, max(numbers, default=0) + 1)), *words)


def bind(tree: exp.Expr, parameters: Parameters) -> None:
    """Put the values of its parameters into a tree.

    Raises
    ------
    InvalidSql
        If a parameter has no value, or a value no parameter.
    TooLarge
        If the values are too many, or too long.
    """
    n_values = sum(one.n_values for one in parameters)
    n_characters = sum(one.n_characters for one in parameters)
    if n_values > N_PARAMETERS_MAX or n_characters > N_TEXT_MAX:
        raise TooLarge(
            f"The values of parameters are more than {N_PARAMETERS_MAX}, or have more than "
            f"{N_TEXT_MAX} characters.",
            hint="Replace long lists of values by ranges or expressions.",
        )
    wanted = parameters_in(tree)
    if len(wanted) != len(parameters):
        raise InvalidSql(
            f"The statement has {len(wanted)} parameters, and {len(parameters)} values came.",
            hint="Send one value for each ?, in their order; $1 may stand in several places.",
        )
    values = {str(place): one for place, one in enumerate(parameters, start=1)}
    # ADBC names values from "0", so a name that is a number is none.
    values |= {one.name: one for one in parameters if not one.name.isdecimal()}
    for mark, name in list(marks(tree)):
        if name not in values:
            raise InvalidSql(
                f"No value came for the parameter {shortened(name)}.",
                hint="Send it under this name.",
            )
        literal = values[name].literal
        literal.meta.update(origin(mark))
        mark.replace(literal)


def marks(tree: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    """Every parameter, with its number or its name."""
    for mark in tree.find_all(exp.Parameter, exp.Placeholder):
        if mark.name:
            yield mark, mark.name


def _at(word: Token, kind: TokenType, text: str) -> Token:
    """A word in the place of another."""
    return Token(kind, text, word.line, word.col, word.start, word.end, [])
