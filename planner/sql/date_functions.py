"""Functions of days and moments as they are written, brought to one form each.

PostgreSQL's own, and the names of them that other dialects have: DATE_PART, DATEPART and YEAR(x)
are EXTRACT; DATEADD, DATE_ADD and DATE_SUB add an interval; DATEDIFF and DATE_DIFF, whose arguments
stand in four orders, are one node. What is read from a text is in `date_texts`. The grammar asks
here (`dialect`); what the nodes mean to DuckDB is said in `planner.meaning.moments`.
"""

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp

PLACES = "places"  # in the meta data of an interval: the digits that its seconds are rounded to
IS_DOUBLE = "is_double"  # in the meta data of an EXTRACT that was DATE_PART
N_UNIT_FIRST = 3  # arguments of DATEDIFF, one of which is the unit


class Age(exp.Expression, exp.Func):
    """AGE(later, earlier): the years, months and days between; AGE(x) is up to today."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": False}
    _sql_names: ClassVar[list[str]] = ["AGE"]


class ToChar(exp.Expression, exp.Func):
    """TO_CHAR(moment, pattern), the pattern as PostgreSQL has it."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}
    _sql_names: ClassVar[list[str]] = ["TO_CHAR"]


class DateDifference(exp.Expression, exp.Func):
    """DATE_DIFF(unit, start, end): how many times the unit begins after `start`, up to `end`."""

    arg_types: ClassVar[dict[str, bool]] = {"unit": True, "this": True, "expression": True}
    _sql_names: ClassVar[list[str]] = ["DATE_DIFF"]


class TimeBucket(exp.Expression, exp.Func):
    """TIME_BUCKET(width, moment, origin or offset): the beginning of its bucket, as DuckDB's."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True, "origin": False}
    _sql_names: ClassVar[list[str]] = ["TIME_BUCKET"]


class DateBin(exp.Expression, exp.Func):
    """DATE_BIN(stride, moment, origin): the same as PostgreSQL has it, a timestamp."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True, "origin": True}
    _sql_names: ClassVar[list[str]] = ["DATE_BIN"]


def _difference(arguments: list[exp.Expr]) -> exp.Expr:
    """Unit first as in DuckDB and SQL Server, last as in BigQuery, or without as in MySQL."""
    if len(arguments) == N_UNIT_FIRST:
        unit = _unit(arguments[0])
        if unit is not None:
            return DateDifference(unit=unit, this=arguments[1], expression=arguments[2])
        unit = _unit(arguments[2])
        if unit is not None:
            return DateDifference(unit=unit, this=arguments[1], expression=arguments[0])
    elif len(arguments) == 2:  # noqa: PLR2004 - end and start, in days
        end, start = arguments
        return DateDifference(unit=exp.var("DAY"), this=start, expression=end)
    return exp.Anonymous(this="DATE_DIFF", expressions=arguments)


def _shifted(arguments: list[exp.Expr]) -> exp.Expr:
    """DATEADD(unit, n, moment), of which n is a literal; or DATE_ADD(moment, interval)."""
    if len(arguments) == 2:  # noqa: PLR2004 - a moment and an interval
        return exp.paren(exp.Add(this=arguments[0], expression=arguments[1]), copy=False)
    unit = _unit(arguments[0]) if len(arguments) == N_UNIT_FIRST else None
    count = arguments[1] if unit is not None else None
    negative = isinstance(count, exp.Neg)
    number = count.this if isinstance(count, exp.Neg) else count
    if unit is None or not isinstance(number, exp.Literal):
        return exp.Anonymous(this="DATEADD", expressions=arguments)
    interval = exp.Interval(this=exp.Literal.string(number.name), unit=unit)
    kind = exp.Sub if negative else exp.Add
    return exp.paren(kind(this=arguments[2], expression=interval), copy=False)


def _shifted_back(arguments: list[exp.Expr]) -> exp.Expr:
    if len(arguments) != 2:  # noqa: PLR2004 - a moment and an interval
        return exp.Anonymous(this="DATE_SUB", expressions=arguments)
    return exp.paren(exp.Sub(this=arguments[0], expression=arguments[1]), copy=False)


def _unit(node: exp.Expr) -> exp.Var | None:
    """A unit of time, written as a name or a text; None if it is anything else."""
    is_text = isinstance(node, exp.Literal) and node.is_string
    is_name = isinstance(node, exp.Column) and not node.table
    name = node.name.upper().removesuffix("S")
    return exp.var(name) if (is_text or is_name) and name in _UNITS else None


def _part(name: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    """A function of one moment that is a part of it."""

    def extracted(arguments: list[exp.Expr]) -> exp.Expr:
        if len(arguments) != 1:
            return exp.Anonymous(this=name, expressions=arguments)
        return exp.Extract(this=exp.var(name), expression=arguments[0])

    return extracted


def _named_part(arguments: list[exp.Expr]) -> exp.Expr:
    """DATE_PART('year', moment), and DATEPART(year, moment)."""
    unit = arguments[0] if len(arguments) == 2 else None  # noqa: PLR2004 - the part and the moment
    is_text = isinstance(unit, exp.Literal) and unit.is_string
    if unit is None or not (is_text or isinstance(unit, exp.Column)):
        return exp.Anonymous(this="DATE_PART", expressions=arguments)
    found = exp.Extract(this=exp.var(unit.name.upper()), expression=arguments[1])
    found.meta[IS_DOUBLE] = True
    return found


def _as_text(pattern: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    def written(arguments: list[exp.Expr]) -> exp.Expr:
        if len(arguments) != 1:
            return exp.Anonymous(this="TO_CHAR", expressions=arguments)
        return ToChar(this=arguments[0], expression=exp.Literal.string(pattern))

    return written


def _to_char(arguments: list[exp.Expr]) -> exp.Expr:
    if len(arguments) != 2:  # noqa: PLR2004 - a moment and a pattern
        return exp.Anonymous(this="TO_CHAR", expressions=arguments)
    return ToChar(this=arguments[0], expression=arguments[1])


def _age(arguments: list[exp.Expr]) -> exp.Expr:
    if not 1 <= len(arguments) <= 2:  # noqa: PLR2004 - from one moment, or from today
        return exp.Anonymous(this="AGE", expressions=arguments)
    return Age(**dict(zip(("this", "expression"), arguments, strict=False)))


def _day(arguments: list[exp.Expr]) -> exp.Expr:
    if len(arguments) != 1:
        return exp.Anonymous(this="DATE", expressions=arguments)
    return exp.cast(arguments[0], exp.DType.DATE, copy=False)


def _made(arguments: list[exp.Expr]) -> exp.Expr:
    parts = ("year", "month", "day")
    if len(arguments) != len(parts):
        return exp.Anonymous(this="MAKE_DATE", expressions=arguments)
    return exp.DateFromParts(**dict(zip(parts, arguments, strict=True)))


def _bucket(arguments: list[exp.Expr]) -> exp.Expr:
    if not 2 <= len(arguments) <= 3:  # noqa: PLR2004 - with and without an origin
        return exp.Anonymous(this="TIME_BUCKET", expressions=arguments)
    origin = _origin(arguments[2]) if len(arguments) > 2 else None  # noqa: PLR2004 - the third
    return TimeBucket(this=_width(arguments[0]), expression=arguments[1], origin=origin)


def _bin(arguments: list[exp.Expr]) -> exp.Expr:
    if len(arguments) != 3:  # noqa: PLR2004 - PostgreSQL's has no default origin
        return exp.Anonymous(this="DATE_BIN", expressions=arguments)
    stride, moment, origin = arguments
    return DateBin(this=_width(stride), expression=moment, origin=_origin(origin))


def _width(node: exp.Expr) -> exp.Expr:
    """An interval, of a text too."""
    return exp.cast(node, exp.DType.INTERVAL, copy=False) if _is_text(node) else node


def _origin(node: exp.Expr) -> exp.Expr:
    """A moment, of a text too; or an interval, which is an offset."""
    return exp.cast(node, exp.DType.TIMESTAMP, copy=False) if _is_text(node) else node


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


_UNITS = frozenset({"SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"})

DATE_FUNCTIONS: dict[str, Callable[[list[exp.Expr]], exp.Expr]] = {
    "AGE": _age,
    "DATE": _day,
    "DATEADD": _shifted,
    "DATEDIFF": _difference,
    "DATEPART": _named_part,
    "DATE_ADD": _shifted,
    "DATE_BIN": _bin,
    "DATE_DIFF": _difference,
    "DATE_PART": _named_part,
    "DATE_SUB": _shifted_back,
    "DAY": _part("DAY"),
    "DAYNAME": _as_text("FMDay"),
    "DAYOFYEAR": _part("DOY"),
    "HOUR": _part("HOUR"),
    "MAKE_DATE": _made,
    "MINUTE": _part("MINUTE"),
    "MONTH": _part("MONTH"),
    "MONTHNAME": _as_text("FMMonth"),
    "QUARTER": _part("QUARTER"),
    "TIME_BUCKET": _bucket,
    "TO_CHAR": _to_char,
    "WEEK": _part("WEEK"),
    "YEAR": _part("YEAR"),
}
