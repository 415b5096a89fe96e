"""Bind parameters of a query: ``?``, ``$1`` and ``:name``, and the values that clients send for them.

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

N_PARAMETERS_MAX: Final = 1000
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
    """

    kind: ParameterKind
    text: str = ""
    name: str = ""

    @property
    def literal(self) -> exp.Expr:
        """The value as a node."""
        match self.kind:
            case ParameterKind.NULL:
                return exp.null()
            case ParameterKind.BOOLEAN:
                return exp.true() if self.text == "true" else exp.false()
            case ParameterKind.TEXT:
                return exp.Literal.string(self.text)
            case ParameterKind.DATE:
                return exp.cast(exp.Literal.string(self.text), exp.DataType.Type.DATE)
            case ParameterKind.TIMESTAMP:
                return exp.cast(exp.Literal.string(self.text), exp.DataType.Type.TIMESTAMP)
            case ParameterKind.NUMBER if self.text.startswith("-"):
                number = exp.Literal.number(self.text.removeprefix("-"))
                return exp.paren(exp.Neg(this=number), copy=False)
            case ParameterKind.NUMBER:
                return exp.Literal.number(self.text)


Parameters: TypeAlias = tuple[Parameter, ...]


def parameter_of(value: object, name: str = "") -> Parameter:
    """A client's value as a parameter.

    >>> parameter_of(0.1), parameter_of(True).text
    (Parameter(kind=<ParameterKind.NUMBER: 'number'>, text='0.1', name=''), 'true')

    Raises
    ------
    InvalidSql
        If it is of no type that a literal can have, or no finite number.
    """
    match value:
        case None:
            return Parameter(ParameterKind.NULL, name=name)
        case bool():
            return Parameter(ParameterKind.BOOLEAN, "true" if value else "false", name)
        case int():
            return Parameter(ParameterKind.NUMBER, str(value), name)
        case float() if math.isfinite(value):
            return Parameter(ParameterKind.NUMBER, repr(value), name)
        case Decimal() if value.is_finite():
            return Parameter(ParameterKind.NUMBER, f"{value:f}", name)
        case str():
            return Parameter(ParameterKind.TEXT, value, name)
        case dt.datetime():
            if value.tzinfo is not None:
                value = value.astimezone(dt.UTC).replace(tzinfo=None)
            return Parameter(ParameterKind.TIMESTAMP, value.isoformat(sep=" "), name)
        case dt.date():
            return Parameter(ParameterKind.DATE, value.isoformat(), name)
        case _:
            raise InvalidSql(
                f"A parameter is a {type(value).__name__}, or no finite number.",
                hint="Send numbers, texts, booleans, dates, timestamps without a zone, and NULL.",
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
    """The names of a query's parameters, each once: numbers from 1, or words."""
    names = dict.fromkeys(name for _, name in _marks(tree))
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
    n_characters = sum(len(one.text) for one in parameters)
    if len(parameters) > N_PARAMETERS_MAX or n_characters > N_TEXT_MAX:
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
    values |= {one.name: one for one in parameters if one.name}
    for mark, name in list(_marks(tree)):
        if name not in values:
            raise InvalidSql(
                f"No value came for the parameter {shortened(name)}.",
                hint="Send it under this name.",
            )
        literal = values[name].literal
        literal.meta.update(origin(mark))
        mark.replace(literal)


def _marks(tree: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    """Every parameter, with its number or its name."""
    for mark in tree.find_all(exp.Parameter, exp.Placeholder):
        if mark.name:
            yield mark, mark.name


def _at(word: Token, kind: TokenType, text: str) -> Token:
    """A word in the place of another."""
    return Token(kind, text, word.line, word.col, word.start, word.end, [])
