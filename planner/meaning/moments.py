"""Writes functions of days, moments and intervals for DuckDB, and WIDTH_BUCKET.

    TO_CHAR(x, 'YYYY-MM')            the year in four digits || '-' || the month in two
    WIDTH_BUCKET(x, 0, 10, 2)        CASE WHEN x < 0 THEN 0 WHEN x < 5 THEN 1 WHEN x < 10 THEN 2 ..
    DATE_BIN('7 days', x, y)         time_bucket('7 days', x as a timestamp, y as a timestamp)
    EXTRACT(SECOND FROM x)           its microseconds, times 0.000001

Patterns and numbers of buckets are literals, so that the length of the written SQL is known.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Final

from sqlglot import exp

from planner.meaning.casts import write_number
from planner.meaning.numbers import number
from planner.meaning.texts import whole
from planner.meaning.types import (
    BOOLEAN,
    DATE,
    FLOAT,
    INT4,
    INT8,
    INTERVAL,
    MOMENTS,
    REAL,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    WHOLE,
    Kind,
    SqlType,
)
from planner.meaning.written import Call, Value, Writer, read_as
from planner.sql import IS_DOUBLE, DateBin, ToChar, constant_value, copy_of, unsupported

N_BUCKETS_MAX: Final = 1000
N_THRESHOLD_PLACES: Final = 18  # of a threshold that is no decimal: finer than any column's

Part = Callable[[exp.Expr], exp.Expr]

_NAME_WIDTH: Final = 9  # of a month's or a day's name, filled up with blanks without FM


def _extract(unit: str) -> Part:
    return lambda moment: exp.Extract(this=exp.var(unit), expression=moment)


def _plus(part: Part, number: int) -> Part:
    return lambda moment: exp.paren(
        exp.Add(this=part(moment), expression=exp.Literal.number(number)), copy=False
    )


def _week_of(unit: str) -> Part:
    """Weeks that begin with the first day of the year or the month."""

    def week(moment: exp.Expr) -> exp.Expr:
        days = exp.Cast(this=_plus(_extract(unit), 6)(moment), to=exp.DType.BIGINT.into_expr())
        return exp.IntDiv(this=days, expression=exp.Literal.number(7))

    return week


def _modulo(part: Part, divisor: int) -> Part:
    return lambda moment: exp.paren(
        exp.Mod(this=part(moment), expression=exp.Literal.number(divisor)), copy=False
    )


def _half_day(moment: exp.Expr) -> exp.Expr:
    """The hour on a clock of twelve: 12, 1, .., 11."""
    return _plus(_modulo(_plus(_extract("HOUR"), 11), 12), 1)(moment)


# By pattern, the number and its digits.
_NUMBERS: dict[str, tuple[Part, int]] = {
    "YYYY": (_extract("YEAR"), 4),
    "IYYY": (_extract("ISOYEAR"), 4),
    "YY": (_modulo(_extract("YEAR"), 100), 2),
    "MM": (_extract("MONTH"), 2),
    "DDD": (_extract("DOY"), 3),
    "DD": (_extract("DAY"), 2),
    "D": (_plus(_extract("DOW"), 1), 1),
    "ID": (_extract("ISODOW"), 1),
    "IW": (_extract("WEEK"), 2),
    "WW": (_week_of("DOY"), 2),
    "W": (_week_of("DAY"), 1),
    "Q": (_extract("QUARTER"), 1),
    "HH24": (_extract("HOUR"), 2),
    "HH12": (_half_day, 2),
    "HH": (_half_day, 2),
    "MI": (_extract("MINUTE"), 2),
    "SS": (_extract("SECOND"), 2),
}
# By pattern in lower case, DuckDB's for the name.
_NAMES = {"month": "%B", "mon": "%b", "day": "%A", "dy": "%a", "am": "%p", "pm": "%p"}
_CASES = [word for name in _NAMES for word in (name, name.upper(), name.capitalize())]
_MONTHS = re.compile(r"mon|quarter|year|decade|centur|millenn", re.IGNORECASE)
_WORDS = "|".join(sorted([*_NUMBERS, *_CASES], key=len, reverse=True))
_PIECE = re.compile(rf'"(?P<quoted>[^"]*)"|(?P<fill>FM)?(?P<word>{_WORDS})|(?P<other>[^A-Za-z"])')


def check_written(node: exp.Expr) -> None:
    """Raise UnsupportedSql if the buckets of a function cannot be written out."""
    if isinstance(node, exp.WidthBucket):
        thresholds(node)
    if isinstance(node, DateBin) and _MONTHS.search(node.this.sql()):
        raise unsupported(
            node,
            "has months in its interval",
            "Use TIME_BUCKET(INTERVAL '2 months', x) for buckets of months.",
        )


def _check_pattern(node: ToChar) -> None:
    pattern = node.expression
    read = "".join(match[0] for match in _pieces(node))
    if read != pattern.name:
        raise unsupported(
            node,
            f"has {pattern.name[len(read) :]!a} in its pattern, which is not supported",
            "The pattern may have YYYY, MM, DD, Month, Mon, Day, Dy, Q, IW, IYYY, HH24, MI and "
            'SS. Put other text between double quotes, as in YYYY"Q"Q.',
        )


def n_pieces(node: ToChar) -> int:
    """How many pieces the pattern of TO_CHAR has, at most."""
    return len(node.expression.name)


def _pieces(node: ToChar) -> list[re.Match[str]]:
    """The pieces of a pattern, up to what cannot be read."""
    pieces, pattern, place = [], node.expression.name, 0
    while (match := _PIECE.match(pattern, place)) is not None:
        pieces.append(match)
        place = match.end()
    return pieces


def thresholds(node: exp.Expr) -> list[exp.Expr]:
    """The numbers at which the buckets of WIDTH_BUCKET begin, and the last one ends."""
    given = node.args.get("threshold")
    if given is not None:
        values = [constant_value(one) for one in given.expressions]
        numbers = [value for value in values if value is not None]
        is_known = len(numbers) == len(values) and numbers
    else:
        numbers = _equal_buckets(node)
        is_known = numbers
    if not is_known or any(one >= other for one, other in pairwise(numbers)):
        raise unsupported(
            node,
            "needs at least one bucket, and limits that are numbers in increasing order",
            f"WIDTH_BUCKET(x, 0, 100, 10) makes 10 equal buckets; {N_BUCKETS_MAX} are allowed.",
        )
    return [_number(one) for one in numbers]


def _equal_buckets(node: exp.Expr) -> list[Fraction]:
    """The thresholds of ``WIDTH_BUCKET(x, low, high, n)``; none if they are no such numbers."""
    low, high, count = (
        constant_value(node.args[name]) for name in ("min_value", "max_value", "num_buckets")
    )
    if low is None or high is None or count is None or count.denominator != 1:
        return []
    if not 1 <= count <= N_BUCKETS_MAX:
        return []
    return [low + (high - low) * place / count for place in range(int(count) + 1)]


def _number(value: Fraction) -> exp.Expr:
    """A decimal literal; of a number that is no decimal, the next one above with enough places.

    No level of a column lies between: so less than the one is less than the other.
    """
    scaled = value * 10**N_THRESHOLD_PLACES
    whole = -(-scaled.numerator // scaled.denominator)
    digits = f"{abs(whole):0{N_THRESHOLD_PLACES + 1}d}"
    point = len(digits) - N_THRESHOLD_PLACES
    text = f"{digits[:point]}.{digits[point:]}".rstrip("0").removesuffix(".")
    literal = exp.Literal.number(text)
    return exp.Neg(this=literal) if whole < 0 else literal


def write_width_bucket(call: Call) -> Value:
    """WIDTH_BUCKET, as the comparisons that it stands for."""
    return Value(_as_case(call.node), INT4)


def _as_case(node: exp.Expr) -> exp.Expr:
    limits = thresholds(node)
    case = exp.Case()
    for place, limit in enumerate(limits):
        below = exp.LT(this=exp.paren(node.this), expression=limit)
        case.append("ifs", exp.If(this=below, true=exp.Literal.number(place)))
    last = exp.GTE(this=exp.paren(node.this), expression=copy_of(limits[-1]))  # and not where NULL
    case.append("ifs", exp.If(this=last, true=exp.Literal.number(len(limits))))
    return case


def _as_text(node: ToChar) -> exp.Expr:
    """Texts one after the other, with an empty one first: NULL if any piece is."""
    whole: exp.Expr = exp.Literal.string("")
    for match in _pieces(node):
        whole = exp.DPipe(this=whole, expression=_piece(match, node.this))
    return exp.paren(whole, copy=False)


def _piece(match: re.Match[str], moment: exp.Expr) -> exp.Expr:
    word = match["word"]
    if word is None:
        return exp.Literal.string(match["other"] or match["quoted"] or "")
    is_filled = match["fill"] is None
    if word in _NUMBERS:
        part, width = _NUMBERS[word]
        text = exp.cast(part(copy_of(moment)), exp.DType.VARCHAR, copy=False)
        arguments = [text, exp.Literal.number(width), exp.Literal.string("0")]
        return exp.Anonymous(this="lpad", expressions=arguments) if is_filled else text
    as_moment = exp.cast(copy_of(moment), exp.DType.TIMESTAMP, copy=False)
    code = exp.Literal.string(_NAMES[word.lower()])
    name: exp.Expr = exp.Anonymous(this="strftime", expressions=[as_moment, code])
    if word.isupper() or word.islower():
        name = exp.Upper(this=name) if word.isupper() else exp.Lower(this=name)
    if is_filled and word.lower() in ("month", "day"):
        blank = exp.Literal.string(" ")
        name = exp.Anonymous(
            this="rpad", expressions=[name, exp.Literal.number(_NAME_WIDTH), blank]
        )
    return name


def write_to_char(call: Call) -> Value:
    """TO_CHAR of a moment or a number, with a literal pattern."""
    value, pattern = call.value(), call.value("expression")
    call.constant(pattern)
    if value.type.is_number:
        return write_number(call, value, pattern.node.name)
    if value.type.kind is Kind.INTERVAL:
        raise call.refused(
            "formats an interval, which is not supported", "Take parts of it with EXTRACT."
        )
    if value.type.kind not in (*MOMENTS, Kind.UNKNOWN):
        raise call.refused("needs a date, a timestamp or a number", "Cast it to DATE or NUMERIC.")
    node = call.node
    if isinstance(node, ToChar):
        _check_pattern(node)
        return Value(_as_text(node), TEXT)
    return call.kept(TEXT)


def moment(value: Value) -> Value:
    """A part that has to be a day or a moment; a text between quotes is read as one."""
    value = read_as(value, TIMESTAMP)
    if value.type.kind not in (*MOMENTS, Kind.UNKNOWN, Kind.LITERAL):
        raise unsupported(
            value.node,
            f"is a {value.type.name}, and a date or timestamp is needed",
            "Cast it, as in x::date.",
        )
    return value


def write_age(call: Call) -> Value:
    """AGE(later, earlier)."""
    parts = [moment(call.value()), moment(call.value("expression"))]
    return call.sql("age(CAST({0} AS TIMESTAMP), CAST({1} AS TIMESTAMP))", INTERVAL, *parts)


def write_difference(call: Call) -> Value:
    """DATE_DIFF(unit, start, end)."""
    unit = call.node.args["unit"].name.lower()
    parts = [moment(call.value()), moment(call.value("expression"))]
    return call.sql(f"date_diff('{unit}', {{0}}, {{1}})", INT8, *parts)


def write_bucket(call: Call) -> Value:
    """TIME_BUCKET(width, moment, origin), as DuckDB has it."""
    found = [call.value(), moment(call.value("expression"))]
    origin = call.maybe("origin")
    if origin is not None:
        found.append(origin)
        return call.sql("time_bucket({0}, {1}, {2})", found[1].type, *found)
    return call.sql("time_bucket({0}, {1})", found[1].type, *found)


def write_bin(call: Call) -> Value:
    """DATE_BIN(stride, moment, origin)."""
    parts = [call.value(), moment(call.value("expression")), moment(call.value("origin"))]
    template = "time_bucket({0}, CAST({1} AS TIMESTAMP), CAST({2} AS TIMESTAMP))"
    return call.sql(template, TIMESTAMP, *parts)


_YEARS_OF: dict[str, int] = {"CENTURY": 100, "MILLENNIUM": 1000}


def write_date_trunc(call: Call) -> Value:
    """DATE_TRUNC(unit, moment): centuries begin with a year 1."""
    if isinstance(call.node.args.get("zone"), exp.Expr):
        raise call.refused(
            "has a time zone as its third argument, which is not supported",
            "Use DATE_TRUNC('day', x AT TIME ZONE 'UTC').",
        )
    value = read_as(call.value(), TIMESTAMP)
    unit = call.node.args["unit"].name.upper().removesuffix("S")
    kind = value.type.kind
    gives = value.type if kind in (Kind.INTERVAL, Kind.TIMESTAMPTZ, Kind.UNKNOWN) else TIMESTAMP
    if unit in _YEARS_OF and kind in (Kind.DATE, Kind.TIMESTAMP):
        n_years = _YEARS_OF[unit]
        template = (
            f"CAST(make_date((year({{0}}) - 1) // {n_years} * {n_years} + 1, 1, 1) AS TIMESTAMP)"
        )
        return call.sql(template, gives, value)
    if kind is Kind.DATE:
        return call.sql(f"date_trunc('{unit.lower()}', CAST({{0}} AS TIMESTAMP))", gives, value)
    return call.sql(f"date_trunc('{unit.lower()}', {{0}})", gives, value)


# By field, DuckDB's whole number and the places that are behind the point of it.
_FRACTIONS: dict[str, tuple[str, int]] = {
    "SECOND": ("microsecond({0})", 6),
    "MILLISECOND": ("microsecond({0})", 3),
    "MICROSECOND": ("microsecond({0})", 0),
}
_EPOCH_OF_INTERVAL = (
    "list_transform([{0}], LAMBDA x: CAST((CAST(year(x) AS HUGEINT) * 31557600 + "
    "CAST(month(x) AS HUGEINT) * 2592000 + CAST(day(x) AS HUGEINT) * 86400 + "
    "CAST(hour(x) AS HUGEINT) * 3600 + minute(x) * 60) * 1000000 + microsecond(x) "
    "AS DECIMAL(24, 0)) * 0.000001)[1]"
)


def write_extract(call: Call) -> Value:
    """EXTRACT(field FROM x), a NUMERIC; and DATE_PART(field, x), a double."""
    value = _extracted(call)
    return Value(value.node, FLOAT) if call.node.meta.get(IS_DOUBLE) else value


def _extracted(call: Call) -> Value:  # noqa: PLR0911 - one for each kind of field
    """A field, as a NUMERIC: most are whole."""
    field = call.node.this.name.upper()
    field = field if field in ("CENTURIES", "MILLENNIA") else field.removesuffix("S")
    value = read_as(call.value("expression"), TIMESTAMP)
    kind = value.type.kind
    if field in _FRACTIONS and kind is not Kind.UNKNOWN:
        number, places = _FRACTIONS[field]
        source = number if kind is not Kind.DATE else "microsecond(CAST({0} AS TIMESTAMP))"
        if not places:
            return call.sql(source, WHOLE, value)
        unit = "0." + "1".rjust(places, "0")
        gives = SqlType(Kind.NUMERIC, places, 6 if field == "SECOND" else 3)
        return call.sql(f"(CAST({source} AS DECIMAL(9, 0)) * {unit})", gives, value)
    if field == "EPOCH" and kind is Kind.INTERVAL:
        return call.sql(_EPOCH_OF_INTERVAL, SqlType(Kind.NUMERIC, 6, 6), value)
    if field == "EPOCH" and kind is Kind.DATE:
        return call.sql("CAST(epoch({0}) AS BIGINT)", WHOLE, value)
    if field == "EPOCH" and kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIME):
        template = "(CAST(epoch_us({0}) AS DECIMAL(19, 0)) * 0.000001)"
        return call.sql(template, SqlType(Kind.NUMERIC, 6, 6), value)
    if field == "JULIAN":
        if kind is Kind.DATE:
            return call.sql("CAST(julian({0}) AS BIGINT)", WHOLE, value)
        return call.sql("julian({0})", REAL, value)
    return call.sql(f"extract({field.lower()} FROM {{0}})", WHOLE, value)


def write_date_from_parts(call: Call) -> Value:
    """MAKE_DATE(year, month, day)."""
    parts = [whole(call.value(name)) for name in ("year", "month", "day")]
    return call.sql("make_date({0}, {1}, {2})", DATE, *parts)


def write_last_day(call: Call) -> Value:
    """LAST_DAY(x), as other dialects have it."""
    return call.sql("last_day({0})", DATE, moment(call.value()))


def write_at_time_zone(call: Call) -> Value:
    """``x AT TIME ZONE 'Europe/Oslo'``: an instant of a moment, and a moment of an instant."""
    value, zone = moment(call.value()), call.constant(call.value("zone"))
    if not _ZONE.fullmatch(zone):
        raise call.refused(
            "needs a time zone that is named by its region", "Write a region, as in 'Europe/Oslo'."
        )
    kind = value.type.kind
    quoted = f"'{zone}'"
    if kind is Kind.TIMESTAMPTZ:
        return call.sql(f"timezone({quoted}, {{0}})", TIMESTAMP, value)
    if kind is Kind.DATE:
        return call.sql(f"timezone({quoted}, CAST({{0}} AS TIMESTAMPTZ))", TIMESTAMP, value)
    return call.sql(f"timezone({quoted}, CAST({{0}} AS TIMESTAMP))", TIMESTAMPTZ, value)


_ZONE = re.compile(r"UTC|GMT|[A-Z][A-Za-z_]*(/[A-Za-z_+-]+)+")


def _carried(low: str, high: str, size: int) -> str:
    """SQL for a list of two numbers with equal signs; the lower one is carried into the higher."""
    return (
        f"list_transform([[{high} + {low} // {size}, {low} % {size}]], LAMBDA p: "
        f"CASE WHEN p[1] > 0 AND p[2] < 0 THEN [p[1] - 1, p[2] + {size}] "
        f"WHEN p[1] < 0 AND p[2] > 0 THEN [p[1] + 1, p[2] - {size}] ELSE p END)[1]"
    )


_MONTHS_OF = "(CAST(year(x) AS BIGINT) * 12 + month(x))"
_DAYS_OF = "CAST(day(x) AS BIGINT)"
_MICROS_OF = "(CAST(hour(x) AS BIGINT) * 3600000000 + minute(x) * 60000000 + microsecond(x))"
_MADE = "to_months(CAST({} AS INTEGER)) + to_days(CAST({} AS INTEGER)) + to_microseconds({})"
JUSTIFIED_DAYS = (
    f"list_transform([{{0}}], LAMBDA x: list_transform([{_carried(_DAYS_OF, _MONTHS_OF, 30)}], "
    f"LAMBDA q: {_MADE.format('q[1]', 'q[2]', _MICROS_OF)})[1])[1]"
)
JUSTIFIED_HOURS = (
    "list_transform([{0}], LAMBDA x: "
    f"list_transform([{_carried(_MICROS_OF, _DAYS_OF, 86400 * 10**6)}], "
    f"LAMBDA q: {_MADE.format(_MONTHS_OF, 'q[1]', 'q[2]')})[1])[1]"
)


def interval_function(template: str) -> Writer:
    """A function of one interval."""

    def write(call: Call) -> Value:
        value = read_as(call.value(), INTERVAL)
        if value.type.kind not in (Kind.INTERVAL, Kind.UNKNOWN):
            raise call.refused("needs an interval", "Cast it, as in x::interval.")
        return call.sql(template, INTERVAL, value)

    return write


_MADE_OF = {
    "year": "to_months(CAST({} AS INTEGER) * 12)",
    "month": "to_months(CAST({} AS INTEGER))",
    "week": "to_days(CAST({} AS INTEGER) * 7)",
    "day": "to_days(CAST({} AS INTEGER))",
    "hour": "to_microseconds(CAST({} AS BIGINT) * 3600000000)",
    "minute": "to_microseconds(CAST({} AS BIGINT) * 60000000)",
    "second": "to_microseconds(CAST(round({} * 1000000) AS BIGINT))",
}


def write_make_interval(call: Call) -> Value:
    """MAKE_INTERVAL(years => 1, ..)."""
    parts: list[Value] = []
    pieces: list[str] = []
    for name, made in _MADE_OF.items():
        given = call.maybe(name)
        if given is not None:
            inner = given.node.expression if isinstance(given.node, exp.Kwarg) else given.node
            part = Value(inner, call.type_of(inner))
            pieces.append(made.format(f"{{{len(parts)}}}"))
            parts.append(number(part) if name == "second" else whole(part))
    if not pieces:
        raise call.refused("has no arguments", "An example is MAKE_INTERVAL(days => 3).")
    return call.sql(f"({' + '.join(pieces)})", INTERVAL, *parts)


def write_overlaps(call: Call) -> Value:
    """``(a, b) OVERLAPS (c, d)``: two stretches of time, whose ends may be intervals behind."""
    ends: list[Value] = []
    for name in ("this", "expression"):
        pair = call.node.args[name]
        if not isinstance(pair, exp.Tuple) or len(pair.expressions) != 2:  # noqa: PLR2004 - ends
            raise call.refused("needs two pairs of ends", "Write (a, b) OVERLAPS (c, d).")
        first, last = (Value(one, call.type_of(one)) for one in pair.expressions)
        ends += [moment(first), last if last.type.kind is Kind.INTERVAL else moment(last)]
    template = _OVERLAPS
    for place in (1, 3):
        if ends[place].type.kind is Kind.INTERVAL:
            template = template.replace(f"{{{place}}}", f"({{{place - 1}}} + {{{place}}})")
    return call.sql(template, BOOLEAN, *ends)


# A stretch has its beginning, and not its end; one of no length has its only moment.
_OVERLAPS = (
    "list_transform([{{'a': CAST(least({0}, {1}) AS TIMESTAMP), "
    "'b': CAST(greatest({0}, {1}) AS TIMESTAMP), 'c': CAST(least({2}, {3}) AS TIMESTAMP), "
    "'d': CAST(greatest({2}, {3}) AS TIMESTAMP)}}], LAMBDA q: "
    "CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL OR {3} IS NULL THEN NULL "
    "WHEN q.a = q.c THEN TRUE WHEN q.a < q.c THEN q.c < q.b ELSE q.a < q.d END)[1]"
)
