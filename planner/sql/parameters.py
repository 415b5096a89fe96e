"""Binds the parameters of a query to values, and finds their types.

A value is put into the tree as a literal, never into the text: it cannot be read as SQL. Values are
kept as what they are written as, so that 1, 1.0 and true stay three different values.

The SQL types of a statement's parameters, told from what stands beside each of them.

``age > $1`` wants what `age` holds, ``$1::date`` a date, and ``LIMIT $1`` a whole number. With each
type goes a stand-in: a value of that type with which the statement can be planned before a client
binds any, such as a level of the column that the parameter is compared with. What a column holds is
for the caller to say.
"""

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Final, TypeAlias

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from cube.refusals import InvalidSql, TooLarge
from planner.sql.dialect import DateBin, TimeBucket
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
        The values of a list; empty for a single value.
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
                f"A parameter of type {type(value).__name__} has a value that is not supported.",
                hint="Send a finite number, a text, a boolean, a date, a time, a timestamp, an "
                "interval or NULL.",
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
            f"The statement has more than {N_PARAMETERS_MAX} parameters, or numbers them higher.",
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
            f"The statement has more than {N_PARAMETERS_MAX} parameter values, or their texts "
            f"have more than {N_TEXT_MAX} characters.",
            hint="Replace long lists of values by ranges or expressions.",
        )
    wanted = parameters_in(tree)
    if len(wanted) != len(parameters):
        raise InvalidSql(
            f"The statement has {len(wanted)} parameters, but {len(parameters)} values were sent.",
            hint="Send one value for each ?, in order. $1 may be used several times.",
        )
    values = {str(place): one for place, one in enumerate(parameters, start=1)}
    # ADBC names values from "0", so a name that is a number is none.
    values |= {one.name: one for one in parameters if not one.name.isdecimal()}
    for mark, name in list(marks(tree)):
        if name not in values:
            raise InvalidSql(
                f"No value was sent for the parameter {shortened(name)}.",
                hint="Send a value with this name.",
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


LIST: Final = "[]"  # behind the type of its values, as PostgreSQL writes it

_STAND_INS: Final[dict[str, object]] = {
    "BIGINT": 1,
    "DOUBLE": 1.0,
    "DECIMAL": Decimal(1),
    "VARCHAR": "a",
    "DATE": dt.date(2000, 1, 1),
    "TIMESTAMP": dt.datetime(2000, 1, 1),  # noqa: DTZ001 - no zone is what the type means
    "TIMESTAMP WITH TIME ZONE": dt.datetime(2000, 1, 1, tzinfo=dt.UTC),
    "TIME": dt.time(12),
    "INTERVAL": dt.timedelta(days=1),
    "BOOLEAN": True,
}
_NUMBERS: Final = ("BIGINT", "DOUBLE", "DECIMAL")
_MOMENTS: Final = ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "INTERVAL")

_CAST_TYPES: Final[dict[exp.DType, str]] = {
    **dict.fromkeys(exp.DataType.INTEGER_TYPES, "BIGINT"),
    **dict.fromkeys(exp.DataType.FLOAT_TYPES, "DOUBLE"),
    exp.DType.DECIMAL: "DECIMAL",
    exp.DType.DATE: "DATE",
    exp.DType.TIME: "TIME",
    exp.DType.TIMESTAMP: "TIMESTAMP",
    exp.DType.TIMESTAMPTZ: "TIMESTAMP WITH TIME ZONE",
    exp.DType.INTERVAL: "INTERVAL",
    exp.DType.BOOLEAN: "BOOLEAN",
}

_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)
_ALIKE: Final = (  # whose parts are of one type
    *_COMPARISONS,
    *(exp.NullSafeEQ, exp.NullSafeNEQ, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least),
)
_OF_TEXT: Final = (
    *(exp.Like, exp.ILike, exp.SimilarTo, exp.RegexpLike, exp.RegexpILike),
    *(exp.DPipe, exp.Concat, exp.Lower, exp.Upper, exp.Trim, exp.Length),
)
_TEXTS: Final = (
    exp.DPipe,
    exp.Concat,
    exp.Lower,
    exp.Upper,
    exp.Trim,
    exp.Substring,
    exp.TimeToStr,
)
_OF_TRUTH: Final = (exp.And, exp.Or, exp.Not, exp.Where, exp.Having)
_ARITHMETIC: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_WHOLE: Final = {  # arguments that are whole numbers
    *((exp.Limit, "expression"), (exp.Offset, "expression"), (exp.Fetch, "count")),
    *((exp.Substring, "start"), (exp.Substring, "length"), (exp.Round, "decimals")),
    *((exp.Left, "expression"), (exp.Right, "expression")),
}


@dataclass(frozen=True, slots=True)
class ValueType:
    """An SQL type, and perhaps one value of it that is known to fit."""

    sql_type: str
    example: object = None


ColumnTypes: TypeAlias = Callable[[exp.Column], ValueType | None]
"""What a column holds; None if it is no column of a table."""


@dataclass(frozen=True, slots=True)
class ParameterType:
    """What a parameter is.

    Parameters
    ----------
    name : str
        A number from 1, or a word.
    sql_type : str
        The type that a client should bind, such as ``BIGINT`` or ``VARCHAR[]``.
    stand_in : Parameter
        A value of this type to plan the statement with.
    """

    name: str
    sql_type: str
    stand_in: Parameter


def parameter_types(tree: exp.Expr, columns: ColumnTypes) -> tuple[ParameterType, ...]:
    """Every parameter of a query, in the order of `parameters_in`; text where nothing is known.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("SELECT $1 FROM t WHERE a = ANY($2) LIMIT $3", read="postgres")
    >>> [one.sql_type for one in parameter_types(tree, lambda _: ValueType("BIGINT"))]
    ['VARCHAR', 'BIGINT[]', 'BIGINT']

    A value that a CASE compares has the type of the value it is compared with. A result of a CASE
    has the type of its other results.

    >>> tree = parse_one("SELECT CASE a WHEN $1 THEN $2 WHEN 2 THEN 'x' ELSE $3 END, "
    ...                  "CASE $4 WHEN 2 THEN 'x' END, CASE WHEN $5 THEN 1 END", read="postgres")
    >>> [one.sql_type for one in parameter_types(tree, lambda _: ValueType("BIGINT"))]
    ['BIGINT', 'VARCHAR', 'VARCHAR', 'BIGINT', 'BOOLEAN']
    """
    found: dict[str, ValueType] = {}
    for mark, name in marks(tree):
        known = None if name in found else _of_place(mark, columns)
        if known is not None:
            found[name] = known
    unknown = ValueType("VARCHAR")
    return tuple(_described(name, found.get(name, unknown)) for name in parameters_in(tree))


def plain_type(sql_type: str) -> str:
    """The type as which a client binds values of a DuckDB type.

    >>> plain_type("UTINYINT"), plain_type("DECIMAL(9,2)"), plain_type("FLOAT")
    ('BIGINT', 'DECIMAL', 'DOUBLE')
    """
    if sql_type in _STAND_INS:
        return sql_type
    if sql_type == "HUGEINT" or sql_type.startswith("DECIMAL"):
        return "DECIMAL"
    if sql_type.endswith("INT") or sql_type == "INTEGER":
        return "BIGINT"
    return "DOUBLE" if sql_type == "FLOAT" else "VARCHAR"


def _described(name: str, known: ValueType) -> ParameterType:
    plain = known.sql_type.removesuffix(LIST)
    value = _STAND_INS[plain] if known.example is None else known.example
    if known.sql_type.endswith(LIST):
        return ParameterType(name, known.sql_type, list_of([value], name))
    return ParameterType(name, known.sql_type, parameter_of(value, name))


def _of_place(node: exp.Expr, columns: ColumnTypes) -> ValueType | None:  # noqa: C901, PLR0911, PLR0912 - one for each place
    """What the place of a node wants; None if it does not say."""
    above, place = node.parent, node.arg_key
    match above:
        case exp.Paren() | exp.Neg():
            return _of_place(above, columns)
        case exp.Cast():
            return _cast(above, _of_place(above, columns))
        case exp.Any() | exp.Anonymous() if _takes_a_list(above):
            items = _of_place(above, columns)
            return None if items is None else replace(items, sql_type=items.sql_type + LIST)
        case exp.Array():
            every = _of_place(above, columns)
            return every and replace(every, sql_type=every.sql_type.removesuffix(LIST))
        case exp.TimestampTrunc() | exp.DateTrunc() if place == "unit":
            return ValueType("VARCHAR", "month")
        case exp.If() if place == "this":
            case = above.parent
            if isinstance(case, exp.Case) and case.this is not None:
                return _compared(case, node, columns)
            return ValueType("BOOLEAN")
        case exp.If():
            return _of_branch(above, node, columns)
        case exp.Case() if place == "this":
            return _compared(above, node, columns)
        case exp.Case():
            return next(_known(_branches(above, node), columns), None)
        case _ if isinstance(above, _ALIKE):
            return _beside(above, node, columns)
        case _ if isinstance(above, _ARITHMETIC):
            return _operand(above, node, columns)
        case _ if (type(above), place) in _WHOLE:
            return ValueType("BIGINT")
        case _ if isinstance(above, _OF_TEXT):
            return ValueType("VARCHAR")
        case _ if isinstance(above, _OF_TRUTH):
            return ValueType("BOOLEAN")
        case _:
            return None


def _beside(above: exp.Expr, node: exp.Expr, columns: ColumnTypes) -> ValueType | None:
    """The first known type among the neighbours of a node in its expression."""
    others = (one for one in above.iter_expressions() if one is not node)
    return next(_known(others, columns), None)


def _takes_a_list(node: exp.Expr) -> bool:
    """Whether it is ANY, or what the parser takes for functions of that kind."""
    return isinstance(node, exp.Any) or node.name.upper() in ("ALL", "SOME")


def _of_branch(above: exp.If, node: exp.Expr, columns: ColumnTypes) -> ValueType | None:
    """Of what IF or CASE gives, by what the other branches give."""
    if isinstance(above.parent, exp.Case):
        return next(_known(_branches(above.parent, above), columns), None)
    others = (above.args.get(name) for name in ("true", "false"))
    return next(_known((one for one in others if one and one is not node), columns), None)


def _compared(case: exp.Expr, node: exp.Expr, columns: ColumnTypes) -> ValueType | None:
    """Of a part of ``CASE x WHEN y THEN ..`` that is compared: x, or one of all y."""
    parts = (case.this, *(branch.this for branch in case.args["ifs"]))
    return next(_known((one for one in parts if one is not node), columns), None)


def _branches(case: exp.Expr, node: exp.Expr | None = None) -> Iterator[exp.Expr]:
    """What a CASE may give, without one of its branches."""
    default = case.args.get("default")
    branches = (*case.args["ifs"], *(() if default is None else (default,)))
    return (one for one in branches if one is not node)


def _operand(above: exp.Expr, node: exp.Expr, columns: ColumnTypes) -> ValueType | None:
    """Of arithmetic: a number, as many days as are added to a date, an interval beside a moment."""
    other = _beside(above, node, columns)
    if other is None or other.sql_type in _NUMBERS:
        return ValueType("DOUBLE")
    if other.sql_type == "DATE":
        return ValueType("BIGINT")
    return ValueType("INTERVAL") if other.sql_type in _MOMENTS else None


def _known(nodes: Iterable[exp.Expr], columns: ColumnTypes) -> Iterator[ValueType]:
    for node in nodes:
        known = value_type(node, columns)
        if known is not None:
            yield known


def value_type(node: exp.Expr, columns: ColumnTypes) -> ValueType | None:  # noqa: C901, PLR0911, PLR0912 - one for each kind
    """The type of a value; None if it is a parameter, or not known."""
    match node:
        case exp.Column():
            return columns(node)
        case exp.Paren() | exp.Neg() | exp.Alias() | exp.Min() | exp.Max() | exp.If() | exp.Any():
            inner = node.args.get("true") if isinstance(node, exp.If) else node.this
            return None if inner is None else value_type(inner, columns)
        case exp.Literal():
            return ValueType("VARCHAR" if node.is_string else _number_type(node.name))
        case exp.Cast():
            return _cast(node, None)
        case exp.CurrentDate():
            return ValueType("DATE")
        case exp.TimestampTrunc() | exp.DateTrunc() | TimeBucket() | DateBin():
            return ValueType("TIMESTAMP")
        case exp.CurrentTimestamp():
            return ValueType("TIMESTAMP")
        case exp.Case():
            return next(_known(_branches(node), columns), None)
        case exp.Add() | exp.Sub() | exp.Coalesce() | exp.Nullif():
            found = next(_known(node.iter_expressions(), columns), None)
            return found and _unless_date(node, found)
        case _ if isinstance(node, _TEXTS):
            return ValueType("VARCHAR")
        case exp.Predicate() | exp.Connector() | exp.Not() | exp.Boolean():
            return ValueType("BOOLEAN")
        case exp.Extract() | exp.AggFunc() | exp.Mul() | exp.Div() | exp.Mod():
            return ValueType("DOUBLE")
        case _:
            return None


def _unless_date(node: exp.Expr, found: ValueType) -> ValueType:
    """Sums of numbers are numbers of any kind; what is added to a date gives one."""
    is_sum = isinstance(node, exp.Add | exp.Sub) and found.sql_type in _NUMBERS
    return ValueType("DOUBLE") if is_sum else found


def _cast(cast: exp.Cast, wanted: ValueType | None) -> ValueType:
    """A cast's type, with what its own place would like to see if that is of the same type."""
    to = cast.to
    if to.this == exp.DType.ARRAY and to.expressions:
        return ValueType(_CAST_TYPES.get(to.expressions[0].this, "VARCHAR") + LIST)
    sql_type = _CAST_TYPES.get(to.this, "VARCHAR")
    return wanted if wanted is not None and wanted.sql_type == sql_type else ValueType(sql_type)


def _number_type(text: str) -> str:
    return "BIGINT" if text.isdecimal() else "DOUBLE"
