"""Defines Tacit's dialect of SQL: PostgreSQL's, two additions, functions of days, and the clock.

    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 50, confidence => 0.95) ..
    EXPLAIN PRIVACY SELECT ..

The options are half_width, confidence, epsilon (a cap on the cost), simultaneous (how many answers
the confidence is to hold for at once), relative (the half-width as a fraction of the answer) and
at_least (what the answer is taken to be at least, with `relative`). Any SELECT may have them, and
the SELECTs inside it inherit them. What else OPTIONS may name is in `options`. Here are the words
and the grammar alone: `words` cuts texts, `statements` tells statements apart, and `query_tree`
parses queries.

Functions of days and moments are brought to one form each: PostgreSQL's own, and the names of them
that other dialects have. DATE_PART, DATEPART and YEAR(x) are EXTRACT; DATEADD, DATE_ADD and
DATE_SUB add an interval; DATEDIFF and DATE_DIFF, whose arguments stand in four orders, are one
node. TO_DATE('2025-01-31', 'YYYY-MM-DD') of two literals is a constant, read while the statement is
parsed; of anything else it is refused later. STRFTIME(moment, '%Y-%m') is TO_CHAR with the pattern
that says the same. What the nodes mean to DuckDB is said in `planner.meaning.moments`.

The clock is read once for a statement: CURRENT_DATE and NOW() are constants of that moment. It is
in UTC, and as fine as the statement needs: a day for CURRENT_DATE and AGE(x), a second for NOW(),
CURRENT_TIMESTAMP and LOCALTIMESTAMP. Equal texts at equal moments are one plan, and the receipt
names the moment, so that an answer can be asked for again.
"""

import datetime as dt
import re
from collections.abc import Callable
from typing import ClassVar, Final, TypeAlias

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.generators.postgres import PostgresGenerator
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.time import format_time
from sqlglot.tokenizer_core import TokenType

from planner.sql.messages import origin
from planner.sql.names import BestColumn, Claim, CompanionColumn, column_name
from planner.sql.nodes import AS_WRITTEN, WRITTEN_FOR, Held, PublicLookup, Written, is_put_in_zone
from planner.sql.options import Option

PLACES = "places"  # in the meta data of an interval: the digits that its seconds are rounded to
IS_DOUBLE = "is_double"  # in the meta data of an EXTRACT that was DATE_PART
N_UNIT_FIRST = 3  # arguments of DATEDIFF, including the unit


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
    """DATEADD(unit, n, moment) with a literal n, or DATE_ADD(moment, interval)."""
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


Clock: TypeAlias = Callable[[], dt.datetime]

IS_MOMENT = "is_moment"  # in the meta data of a constant that was read from the clock

_SECOND = re.compile(r"\b(now\s*\(|current_timestamp\b|localtimestamp\b)", re.IGNORECASE)
_DAY = re.compile(r"\b(current_date\b|age\s*\()", re.IGNORECASE)
_MOMENTS = (exp.CurrentTimestamp, exp.Localtimestamp)


def utc_now() -> dt.datetime:
    """The system's clock."""
    return dt.datetime.now(dt.UTC)


def moment_for(sql: str, clock: Clock) -> dt.datetime | None:
    """What the clock says, as fine as a text may need it; None if it surely does not.

    >>> noon = dt.datetime(2026, 11, 22, 12, 30, 59, 7, tzinfo=dt.UTC)
    >>> moment_for("SELECT NOW()", lambda: noon).isoformat()
    '2026-11-22T12:30:59+00:00'
    >>> moment_for("SELECT CURRENT_DATE", lambda: noon).isoformat()
    '2026-11-22T00:00:00+00:00'
    """
    if _SECOND.search(sql):
        return clock().replace(microsecond=0)
    if _DAY.search(sql):
        return clock().replace(hour=0, minute=0, second=0, microsecond=0)
    return None


def told_moment(moment: dt.datetime) -> str:
    """The sentence of the receipt that says which moment was read.

    >>> told_moment(dt.datetime(2026, 11, 22, 12, 30, 59, tzinfo=dt.UTC))
    'CURRENT_DATE and NOW() were evaluated as 2026-11-22 12:30:59 UTC.'
    """
    return f"CURRENT_DATE and NOW() were evaluated as {moment:%Y-%m-%d %H:%M:%S} UTC."


def read_at(tree: exp.Expr, moment: dt.datetime) -> bool:
    """Put a moment in the place of every reading of the clock; whether there was any."""
    found = False
    for node in list(tree.find_all(exp.CurrentDate, Age, *_MOMENTS)):
        if isinstance(node, Age):
            if node.expression:
                continue
            node.set("expression", node.this)
            node.set("this", _constant(node, moment, exp.DType.DATE))
        else:
            _replace(node, _constant(node, moment, _kind_of(node)))
        found = True
    return found


def _kind_of(node: exp.Expr) -> exp.DType:
    """The type of a clock's value; NOW() is an instant where it is put on the clock of a zone."""
    if isinstance(node, exp.CurrentDate):
        return exp.DType.DATE
    is_instant = isinstance(node, exp.CurrentTimestamp) and is_put_in_zone(node)
    return exp.DType.TIMESTAMPTZ if is_instant else exp.DType.TIMESTAMP


def _replace(node: exp.Expr, constant: exp.Expr) -> None:
    is_item = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
    node.replace(exp.alias_(constant, column_name(node), copy=False) if is_item else constant)


def _constant(node: exp.Expr, moment: dt.datetime, kind: exp.DType) -> exp.Cast:
    text = f"{moment:%Y-%m-%d}" if kind == exp.DType.DATE else f"{moment:%Y-%m-%d %H:%M:%S}"
    text += "+00" if kind == exp.DType.TIMESTAMPTZ else ""
    constant = exp.cast(exp.Literal.string(text), kind, copy=False)
    constant.meta.update({**origin(node), IS_MOMENT: True})
    return constant


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


DATE_TEXTS: Final[dict[str, Callable[[list[exp.Expr]], exp.Expr]]] = {
    "FORMAT_DATE": _written("FORMAT_DATE"),
    "STRFTIME": _written("STRFTIME"),
    "TO_DATE": _read_as("TO_DATE", exp.DType.DATE),
    "TO_TIMESTAMP": _read_as("TO_TIMESTAMP", exp.DType.TIMESTAMP),
}


_FIELDS: Final = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")


class PrivacyClause(exp.Expression):
    """``WITH DIFFERENTIAL_PRIVACY OPTIONS(..)``: the options as they were written."""

    arg_types: ClassVar[dict[str, bool]] = {"options": False}


class TacitParser(PostgresParser):
    """PostgreSQL's grammar, with the privacy clause where other dialects put a hint."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        **PostgresParser.FUNCTIONS,
        **DATE_FUNCTIONS,
        **DATE_TEXTS,
        "LISTAGG": exp.GroupConcat.from_arg_list,
    }

    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr | None]]] = {
        **PostgresParser.FUNCTION_PARSERS,
        "DATE_PART": lambda self: self._parse_date_part(),
    }

    # Overridden by its name: "AS OF" and a moment, which other dialects write with FOR SYSTEM_TIME.
    def _parse_version(self) -> exp.Version | None:
        moments = {TokenType.STRING, TokenType.NUMBER, TokenType.DATE, TokenType.TIMESTAMP}
        after = self._tokens[self._index + 2 : self._index + 3]
        if after and after[0].token_type in moments and self._match_text_seq("AS", "OF"):
            return self.expression(
                exp.Version(this="TIMESTAMP", expression=self._parse_bitwise(), kind="AS OF")
            )
        return super()._parse_version()

    # Overridden by its name: the base grammar takes a text apart, and loses signs and clocks.
    def _parse_date_part(self) -> exp.Expr:
        """DATE_PART, a double where EXTRACT is a NUMERIC."""
        found = super()._parse_date_part()
        found.meta[IS_DOUBLE] = True
        return found

    def _parse_interval(
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Add | exp.Interval | None:
        index = self._index
        if self._match(TokenType.INTERVAL):
            places = self._parse_places()
            if self._match(TokenType.STRING):
                text = exp.Literal.string(self._prev.text).update_positions(self._prev)
                unit, in_unit = self._parse_fields()
                interval = exp.Interval(this=text, unit=unit)
                interval.meta[PLACES] = places if in_unit is None else in_unit
                return interval
            self._retreat(index)
        return super()._parse_interval(require_interval, parse_function_unit)

    def _parse_places(self) -> int | None:
        """``(3)``, behind INTERVAL or SECOND."""
        words = [word.token_type for word in self._tokens[self._index : self._index + 3]]
        if words != [TokenType.L_PAREN, TokenType.NUMBER, TokenType.R_PAREN]:
            return None
        places = int(self._tokens[self._index + 1].text)
        self._advance(3)
        return places

    def _parse_fields(self) -> tuple[exp.Expr | None, int | None]:
        """``MONTH``, ``YEAR TO MONTH`` or ``SECOND(3)``, behind an interval's text."""
        found: list[exp.Expr] = []
        places = None
        while self._curr and self._curr.text.upper() in _FIELDS and len(found) < 2:  # noqa: PLR2004
            found.append(exp.var(self._curr.text.upper()))
            self._advance()
            places = self._parse_places()
            if not self._match_text_seq("TO"):
                break
        if len(found) < 2:  # noqa: PLR2004 - the first, and perhaps the last
            return (found[0] if found else None), places
        return exp.IntervalSpan(this=found[0], expression=found[1]), places

    # Overridden by its name: right after SELECT is where the base grammar looks for optional hints.
    def _parse_hint(self) -> exp.Hint | None:
        if not self._match_text_seq("WITH", "DIFFERENTIAL_PRIVACY"):
            return None
        options: list[Option] = []
        if self._match_text_seq("OPTIONS"):
            self._match_l_paren()
            while not self._match(TokenType.R_PAREN):
                if options and not self._match(TokenType.COMMA):
                    self.raise_error("a comma is missing")
                options.append(self._parse_option())
        clause = PrivacyClause()
        clause.args["options"] = tuple(options)
        return exp.Hint(expressions=[clause])

    def _parse_option(self) -> Option:
        if not self._curr or not self._next:
            self.raise_error("an option is missing")
        name = self._curr.text.lower()
        self._advance()
        if not (self._match(TokenType.FARROW) or self._match(TokenType.EQ)):
            self.raise_error("an option must be name => value")
        sign = "-" if self._match(TokenType.DASH) else ""
        if not self._curr or self._curr.token_type in (TokenType.COMMA, TokenType.R_PAREN):
            self.raise_error("an option's value is missing")
        option = Option(
            name, sign + self._curr.text, is_number=self._curr.token_type == TokenType.NUMBER
        )
        self._advance()
        return option


class Tacit(Postgres):
    """The dialect, known to sqlglot as ``tacit``."""

    # `/` divides exactly whatever its operands are: answers are real numbers, and the scratchpad
    # that evaluates the rest divides the same way.
    TYPED_DIVISION = False

    class Tokenizer(Postgres.Tokenizer):
        """PostgreSQL's words, except that none of them swallows the rest of a statement."""

        COMMANDS: ClassVar[set[TokenType]] = set()

        # "$2,$3" would else be read as the beginning of a text between dollar signs.
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **{w: kind for w, kind in Postgres.Tokenizer.KEYWORDS.items() if w != "EXPLAIN"},
            **{f"${digit}": TokenType.NUMBER for digit in range(10)},
        }

    class Generator(PostgresGenerator):
        """PostgreSQL's text; what planning put into a tree is shown as the analyst wrote it."""

        TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
            **PostgresGenerator.TRANSFORMS,
            exp.CountIf: lambda self, node: self.func("COUNT_IF", node.this),
            exp.Median: lambda self, node: self.func("MEDIAN", node.this),
            exp.StrPosition: lambda self, node: self.func("STRPOS", *node.iter_expressions()),
            Held: lambda _self, _node: "(SELECT ..)",
            CompanionColumn: lambda _self, node: str(node.args["text"]),
            Claim: lambda _self, node: str(node.args["text"]),
            BestColumn: lambda _self, node: str(node.args["text"]),
            Written: lambda self, node: self.sql(node.meta[WRITTEN_FOR]),
            PublicLookup: lambda _self, node: str(node.meta["text"]),
        }

        # Overridden by its name, as a transform could not leave other tables to the grammar.
        def table_sql(self, expression: exp.Table, sep: str = " AS ") -> str:
            """A public table as it was written, whatever planning calls its relation."""
            as_written = expression.meta.get(AS_WRITTEN)
            return super().table_sql(expression, sep) if as_written is None else str(as_written)

    Parser = TacitParser


TACIT: Final = Tacit()  # settings alone: every text gets a tokenizer and a parser of its own
