"""Writes arithmetic and functions of numbers for DuckDB.

Whole numbers are divided to whole numbers, NUMERIC to 20 places behind the point, doubles as
doubles. ROUND of a NUMERIC goes away from zero at a half, of a double to the even neighbour.
Where the digits of a NUMERIC would not fit a DECIMAL it is a double.
"""

from fractions import Fraction
from typing import Final

from sqlglot import exp

from planner.meaning.casts import constant_interval
from planner.meaning.types import (
    ANSWER,
    DATE,
    FLOAT,
    INT4,
    INTERVAL,
    REAL,
    TIMESTAMP,
    UNKNOWN,
    WHOLE,
    Kind,
    SqlType,
    arithmetic_type,
    interval_sql,
    plain_number,
)
from planner.meaning.written import Call, Value, Writer, as_it_was, read_as
from planner.sql import IntervalValue, NoInterval, constant_value, unsupported

PLACES_MAX: Final = 18  # of a product that stays a DECIMAL
QUOTIENT_PLACES: Final = 20
_INT4_MAX, _INT8_MAX = 2**31 - 1, 2**63 - 1
_DECIMAL_DIGITS: Final = 38
_WIDEST: Final = "DECIMAL(38, 18)"  # for the digits of a decimal that is a double here
_WHOLE_DIGITS: Final = 19  # of a BIGINT
_TIMESTAMPS: Final = (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


def write_literal(call: Call) -> Value:
    """A number, or a text that has no type yet."""
    node = call.node
    if node.is_string:
        return Value(node, SqlType(Kind.LITERAL))
    digits, _, power = node.name.lower().partition("e")
    if not digits.replace(".", "").isdecimal() or (not power.lstrip("+-").isdecimal() and power):
        return call.kept(UNKNOWN)
    if "." not in digits and not power:
        number = int(digits)
        if number <= _INT8_MAX:
            return call.kept(INT4 if number <= _INT4_MAX else SqlType(Kind.INT8, is_asked=True))
    if power and abs(int(power)) > _DECIMAL_DIGITS:
        return call.kept(REAL)
    plain = plain_number(digits, int(power or 0))
    places = len(plain.partition(".")[2])
    if len(plain.replace(".", "")) > _DECIMAL_DIGITS:
        return call.kept(REAL)
    literal = node if plain == node.name else exp.Literal.number(plain)
    literal.meta.update(node.meta)
    return Value(literal, SqlType(Kind.NUMERIC, places, places))


def _operands(call: Call) -> tuple[Value, Value]:
    one, other = call.value("this"), call.value("expression")
    if one.type.is_number:
        other = read_as(other, one.type)
    elif other.type.is_number:
        one = read_as(one, other.type)
    return one, other


def _numbers(call: Call) -> tuple[Value, Value, SqlType]:
    """Two numbers, and the type in which PostgreSQL computes with them."""
    one, other = _operands(call)
    for value in (one, other):
        if not value.type.is_number and value.type.kind not in (Kind.UNKNOWN, Kind.LITERAL):
            raise unsupported(
                value.node,
                f"is a {value.type.name}, and a number is needed",
                "Cast it, as in x::numeric.",
            )
    if Kind.LITERAL in (one.type.kind, other.type.kind):
        return one, other, UNKNOWN
    return one, other, arithmetic_type(one.type, other.type)


def write_add(call: Call) -> Value:
    """``+``, of numbers and of moments."""
    one, other = _operands(call)
    found = _added(call, one, other) or _added(call, other, one)
    if found is not None:
        return found
    return _summed(call, "+")


def _added(call: Call, one: Value, other: Value) -> Value | None:
    """A moment or an interval plus something; None if it is none of those."""
    left, right = one.type.kind, other.type.kind
    if left is Kind.DATE and other.type.is_integer:
        _check_days(other)
        return call.sql("({0} + CAST({1} AS INTEGER))", DATE, one, other)
    if left is Kind.DATE and right is Kind.TIME:
        return call.sql("({0} + {1})", TIMESTAMP, one, other)
    if right is Kind.LITERAL and left in (*_TIMESTAMPS, Kind.TIME, Kind.INTERVAL):
        other = read_as(other, INTERVAL)
        right = other.type.kind
    if right is Kind.INTERVAL and left in (Kind.DATE, *_TIMESTAMPS, Kind.INTERVAL, Kind.TIME):
        return _moved(call, "+", one, other)
    return None


def _moved(call: Call, sign: str, one: Value, interval: Value) -> Value:
    """A moment moved by an interval: first by its months, then by its days and its time."""
    if one.type.kind is Kind.TIMESTAMPTZ:  # DuckDB would subtract the time first
        template = f"timezone('UTC', timezone('UTC', {{0}}) {sign} {{1}})"
        return call.sql(template, one.type, one, interval)
    gives = TIMESTAMP if one.type.kind is Kind.DATE else one.type
    return call.sql(f"({{0}} {sign} {{1}})", gives, one, interval)


def _check_days(days: Value) -> None:
    """Refuse a BIGINT of days that was asked for; a column's may be an INTEGER in PostgreSQL."""
    if days.type.is_asked:
        raise unsupported(
            days.node,
            "is a bigint, and a number of days must be an integer",
            "Cast it, as in x::int.",
        )


def write_sub(call: Call) -> Value:
    """``-``, of numbers and of moments."""
    one, other = _operands(call)
    left, right = one.type.kind, other.type.kind
    if left is Kind.DATE and right is Kind.LITERAL:
        other = read_as(other, DATE)
        right = Kind.DATE
    elif left in (*_TIMESTAMPS, Kind.TIME, Kind.INTERVAL) and right is Kind.LITERAL:
        other = read_as(other, one.type)
        right = other.type.kind
    elif left is Kind.LITERAL and right in (Kind.DATE, *_TIMESTAMPS, Kind.TIME, Kind.INTERVAL):
        one = read_as(one, other.type)
        left = one.type.kind
    if left is Kind.DATE and right is Kind.DATE:
        return call.sql("CAST({0} - {1} AS INTEGER)", INT4, one, other)
    if left is Kind.DATE and other.type.is_integer:
        _check_days(other)
        return call.sql("({0} - CAST({1} AS INTEGER))", DATE, one, other)
    if right is Kind.INTERVAL and left in (Kind.DATE, *_TIMESTAMPS, Kind.INTERVAL, Kind.TIME):
        return _moved(call, "-", one, other)
    if left in (Kind.DATE, *_TIMESTAMPS) and right in (Kind.DATE, *_TIMESTAMPS):
        # Days and a time, as PostgreSQL has it: no months.
        template = "(CAST({0} AS TIMESTAMP) - CAST({1} AS TIMESTAMP))"
        return call.sql(template, INTERVAL, one, other)
    if left is Kind.TIME and right is Kind.TIME:
        template = (
            "to_microseconds(epoch_us(DATE '1970-01-01' + {0}) - epoch_us(DATE '1970-01-01' + {1}))"
        )
        return call.sql(template, INTERVAL, one, other)
    return _summed(call, "-")


def _summed(call: Call, sign: str) -> Value:
    one, other, gives = _numbers(call)
    return call.sql(f"({{0}} {sign} {{1}})", gives, one, other)


def write_mul(call: Call) -> Value:
    """``*``, of numbers, and of an interval with a number."""
    one, other = _operands(call)
    if Kind.INTERVAL in (one.type.kind, other.type.kind):
        if other.type.kind is Kind.INTERVAL:
            one, other = other, one
        return _scaled(call, one, other, is_divided=False)
    one, other, gives = _numbers(call)
    return multiplied(call, one, other, gives)


def multiplied(call: Call, one: Value, other: Value, gives: SqlType) -> Value:
    """A product of numbers."""
    if gives.kind is not Kind.NUMERIC:
        return call.sql("({0} * {1})", gives, one, other)
    places = one.type.places + other.type.places
    is_short = places <= PLACES_MAX or places == max(one.type.places, other.type.places)
    if not (gives.is_exact and is_short):
        real = ANSWER if gives.is_answer else REAL
        return call.sql("(CAST({0} AS DOUBLE) * CAST({1} AS DOUBLE))", real, one, other)
    digits = None
    if gives.digits is not None:
        digits = (one.type.digits or 0) + (other.type.digits or 0)
    exact = SqlType(Kind.NUMERIC, places, digits)
    return call.sql("({0} * {1})", exact, one, other)


def _scaled(call: Call, interval: Value, factor: Value, *, is_divided: bool) -> Value:
    """An interval times a constant, or of whole numbers of units times any whole number."""
    by = constant_value(as_it_was(factor.node)) if factor.type.is_number else None
    constant = constant_interval(interval.node)
    if by is not None and (by or not is_divided):
        factor_value = float(1 / by if is_divided else by)
        if constant is not None:
            return call.sql(interval_sql(_times(call, constant, factor_value)), INTERVAL)
    if not is_divided and factor.type.is_integer:
        return call.sql("({0} * CAST({1} AS BIGINT))", INTERVAL, interval, factor)
    raise call.refused(
        "multiplies an interval by a number that is neither constant nor whole",
        "Multiply a constant interval by whole numbers, as in x * INTERVAL '1 day'.",
    )


def _times(call: Call, interval: IntervalValue, factor: float) -> IntervalValue:
    """An interval times a number, within the range that intervals have."""
    try:
        return interval.scaled(factor)
    except NoInterval:
        raise call.refused(
            "is too long for an interval", "Multiply it by a smaller number."
        ) from None


def write_div(call: Call) -> Value:
    """``/``: whole numbers to whole numbers, NUMERIC to 20 places."""
    one, other = _operands(call)
    if one.type.kind is Kind.INTERVAL:
        return _scaled(call, one, other, is_divided=True)
    one, other, gives = _numbers(call)
    if gives.is_integer or gives.kind is Kind.UNKNOWN:
        return call.sql("({0} / {1})", gives, one, other)
    if not gives.is_exact:
        return call.sql("(CAST({0} AS DOUBLE) / CAST({1} AS DOUBLE))", gives, one, other)
    by = constant_value(as_it_was(other.node))
    factor = None if not by else _reciprocal(by)
    if factor is not None and one.type.places + factor[1] <= PLACES_MAX:
        places = one.type.places + factor[1]
        template = f"({{0}} * {factor[0]})"
        return call.sql(template, SqlType(Kind.NUMERIC, places, None), one)
    return _quotient(call, one, other)


def _reciprocal(by: Fraction) -> tuple[str, int] | None:
    """One divided by a number, as a decimal with its places; None if it is none of few."""
    factor = 1 / by
    for places in range(PLACES_MAX + 1):
        digits = factor * 10**places
        if digits.denominator == 1:
            text = plain_number(str(abs(int(digits))), -places)
            return (f"(-{text})" if digits < 0 else text), places
    return None


def _quotient(call: Call, one: Value, other: Value) -> Value:
    """A quotient of decimals, rounded at 20 places as PostgreSQL rounds, by whole numbers."""
    up = QUOTIENT_PLACES + other.type.places - one.type.places
    if up < 0 or other.type.places > PLACES_MAX:
        return call.sql("(CAST({0} AS DOUBLE) / CAST({1} AS DOUBLE))", REAL, one, other)
    above = f"{_as_whole('{0}', one.type.places)} * CAST({10**up} AS HUGEINT)"
    below = _as_whole("{1}", other.type.places)
    template = (
        f"list_transform([{{{{'a': {above}, 'b': {below}}}}}], LAMBDA q: "
        "CAST(CASE WHEN q.b = 0 THEN error('division by zero') ELSE sign(q.a) * sign(q.b) * "
        "((2 * abs(q.a) + abs(q.b)) // (2 * abs(q.b))) END AS DECIMAL(38, 0)) "
        "* CAST(0.00000000000000000001 AS DECIMAL(20, 20)))[1]"
    )
    return call.sql(template, SqlType(Kind.NUMERIC, QUOTIENT_PLACES, None), one, other)


def _as_whole(part: str, places: int) -> str:
    return f"CAST(CAST({part} AS DECIMAL(38, {places})) * {10**places} AS HUGEINT)"


def write_int_div(call: Call) -> Value:
    """DIV(x, y), cut to a whole number."""
    one, other, gives = _numbers(call)
    if gives.is_integer:
        return call.sql("({0} / {1})", gives, one, other)
    if gives.is_exact and gives.kind is Kind.NUMERIC:
        quotient = write_div(call)
        return call.sql(_narrowed("trunc({0})", quotient.type), WHOLE, quotient)
    return call.sql("trunc(CAST({0} AS DOUBLE) / CAST({1} AS DOUBLE))", gives, one, other)


def write_mod(call: Call) -> Value:
    """``%`` and MOD: the result has the sign of the dividend."""
    one, other, gives = _numbers(call)
    if gives.kind is Kind.FLOAT:
        raise call.refused(
            "is a remainder of doubles, which PostgreSQL does not compute",
            "Cast them, as in x::numeric.",
        )
    known = [0 if value.type.is_integer else value.type.digits for value in (one, other)]
    if gives == REAL and None not in known:  # a decimal that is a double here
        places = max(filter(None, known), default=0)
        return call.sql(_remainder(places), SqlType(Kind.NUMERIC, places, places), one, other)
    if gives.kind is Kind.NUMERIC and gives.is_exact:  # DuckDB's is of doubles, if one is large
        return call.sql(_remainder(gives.places), gives, one, other)
    if gives == REAL:
        exact = f"CAST(printf('%.15g', CAST({{}} AS DOUBLE)) AS {_WIDEST})"
        template = f"CAST({exact.format('{0}')} % {exact.format('{1}')} AS DOUBLE)"
        return call.sql(template, gives, one, other)
    return call.sql("({0} % ({1}))", gives, one, other)


def _remainder(places: int) -> str:
    """A remainder of decimals, which has no more digits before its point than a BIGINT."""
    exact = f"CAST({{}} AS DECIMAL({_DECIMAL_DIGITS}, {places}))"
    width = min(_DECIMAL_DIGITS, _WHOLE_DIGITS + places)
    return f"CAST({exact.format('{0}')} % {exact.format('{1}')} AS DECIMAL({width}, {places}))"


def write_neg(call: Call) -> Value:
    """``-x``. The least integer of a type is of it, though its absolute value is beyond."""
    value, least = call.value(), call.node.this
    if isinstance(least, exp.Literal) and not least.is_string:
        if least.name == str(_INT4_MAX + 1):
            return call.sql("(-({0}))", INT4, value)
        if least.name == str(_INT8_MAX + 1):
            return call.sql("CAST(-({0}) AS BIGINT)", SqlType(Kind.INT8, is_asked=True), value)
    return call.sql("(-({0}))", value.type, value)


def write_pow(call: Call) -> Value:
    """``x ^ y`` and POWER(x, y)."""
    one, other, gives = _numbers(call)
    gives = gives if gives.is_answer else REAL if gives.kind is Kind.NUMERIC else FLOAT
    if gives.is_answer:
        return call.sql("pow({0}, {1})", gives, one, other)
    template = (
        "list_transform([{{'a': CAST({0} AS DOUBLE), 'b': CAST({1} AS DOUBLE)}}], LAMBDA q: "
        "CASE WHEN q.a = 0 AND q.b < 0 THEN error('zero raised to a negative power') "
        "WHEN q.a < 0 AND q.b <> trunc(q.b) THEN error('a negative number raised to a fraction') "
        f"WHEN {_out_of_range(gives)} THEN error('a power is out of range') "
        "ELSE pow(q.a, q.b) END)[1]"
    )
    return call.sql(template, gives, one, other)


def _out_of_range(gives: SqlType) -> str:
    """Whether a power is none that PostgreSQL gives: a NUMERIC may be so small that it is 0."""
    is_small = " OR (pow(q.a, q.b) = 0 AND q.a <> 0 AND NOT isinf(q.b))"
    return "isinf(pow(q.a, q.b))" + (is_small if gives.kind is Kind.FLOAT else "")


def write_exp(call: Call) -> Value:
    """EXP(x)."""
    value = number(call.value())
    gives = real_of(value.type)
    if gives.is_answer:
        return call.sql("exp({0})", gives, value)
    template = (
        "list_transform([CAST({0} AS DOUBLE)], LAMBDA x: CASE WHEN isinf(exp(x)) OR exp(x) = 0 "
        "THEN error('EXP is out of range') ELSE exp(x) END)[1]"
    )
    return call.sql(template, gives, value)


def number(value: Value) -> Value:
    """A part that has to be a number; a text between quotes is read as a double."""
    value = read_as(value, FLOAT)
    if not value.type.is_number and value.type.kind is not Kind.UNKNOWN:
        raise unsupported(
            value.node,
            f"is a {value.type.name}, and a number is needed",
            "Cast it, as in x::numeric.",
        )
    return value


def real_of(source: SqlType) -> SqlType:
    """The type of a root or a logarithm: NUMERIC of a NUMERIC, a double of all else."""
    if source.kind is Kind.NUMERIC:
        return ANSWER if source.is_answer else REAL
    return source if source.kind is Kind.UNKNOWN else FLOAT


def real_function(template: str) -> Writer:
    """A function of one number that is computed as a double."""

    def write(call: Call) -> Value:
        value = number(call.value())
        return call.sql(template, real_of(value.type), value)

    return write


def double_function(template: str) -> Writer:
    """A function of one number that is a double, whatever it is of."""

    def write(call: Call) -> Value:
        return call.sql(template, FLOAT, number(call.value()))

    return write


def write_log(call: Call) -> Value:
    """LOG(x) to base 10, and LOG(base, x)."""
    if call.maybe("expression") is None:
        value = number(call.value())
        return call.sql("log10({0})", real_of(value.type), value)
    base, value = number(call.value()), number(call.value("expression"))
    is_answer = base.type.is_answer or value.type.is_answer
    template = "(ln(CAST({1} AS DOUBLE)) / ln(CAST({0} AS DOUBLE)))"
    return call.sql(template, ANSWER if is_answer else REAL, base, value)


def write_abs(call: Call) -> Value:
    """ABS(x)."""
    value = number(call.value())
    return call.sql("abs({0})", value.type, value)


def write_sign(call: Call) -> Value:
    """SIGN(x)."""
    value = number(call.value())
    if value.type.kind is Kind.NUMERIC and not value.type.is_answer:
        return call.sql("CAST(sign({0}) AS DECIMAL(1, 0))", WHOLE, value)
    return call.sql("CAST(sign({0}) AS DOUBLE)", real_of(value.type), value)


def rounding(name: str) -> Writer:
    """CEIL and FLOOR: doubles of whole numbers and doubles, NUMERIC of NUMERIC."""

    def write(call: Call) -> Value:
        value = number(call.value())
        source = value.type
        if source.is_integer:
            return call.sql("CAST({0} AS DOUBLE)", FLOAT, value)
        if source.is_exact and source.places == 0:
            return call.sql("{0}", source, value)  # DuckDB makes a double of a large one
        gives = WHOLE if source.is_exact else _whole_numeric(source)
        return call.sql(_narrowed(f"{name}({{0}})", source), gives, value)

    return write


def _whole_numeric(source: SqlType) -> SqlType:
    """A rounded number of a type that is a double in DuckDB."""
    if source.kind is not Kind.NUMERIC:
        return source
    return SqlType(Kind.NUMERIC, None, 0, source.is_answer)


def write_round(call: Call) -> Value:
    """ROUND(x) and ROUND(x, digits)."""
    return _rounded(call, "round")


def write_trunc(call: Call) -> Value:
    """TRUNC(x) and TRUNC(x, digits)."""
    return _rounded(call, "trunc")


def _rounded(call: Call, name: str) -> Value:
    value = number(call.value())
    source, digits = value.type, call.maybe("decimals")
    if digits is None:
        if source.is_integer:
            return call.sql("CAST({0} AS DOUBLE)", FLOAT, value)
        if source.kind is Kind.FLOAT and name == "round":
            return call.sql("round_even({0}, 0)", FLOAT, value)
        gives = WHOLE if source.is_exact else _whole_numeric(source)
        return call.sql(_narrowed(f"{name}({{0}})", source), gives, value)
    digits = read_as(digits, INT4)
    if not digits.type.is_integer and digits.type.kind is not Kind.UNKNOWN:
        raise unsupported(
            digits.node,
            "is not a whole number of digits",
            "Write a whole number, as in ROUND(x, 2).",
        )
    places = constant_value(as_it_was(digits.node))
    if places is None or not source.is_exact:
        return _of_a_double(call, name, value, digits, places)
    shown = max(int(places), 0)
    if int(places) >= source.places:
        return Value(value.node, SqlType(Kind.NUMERIC, source.places, shown))
    if source.is_integer:
        value = call.sql("CAST({0} AS DECIMAL(20, 0))", WHOLE, value)
    template = _narrowed(f"{name}({{0}}, {int(places)})", source, shown)
    return call.sql(template, SqlType(Kind.NUMERIC, shown, shown), value)


def _of_a_double(
    call: Call, name: str, value: Value, digits: Value, places: Fraction | None
) -> Value:
    source = value.type
    shown = None if places is None else max(int(places), 0)
    if source.kind is Kind.NUMERIC:
        gives = SqlType(Kind.NUMERIC, None, shown, source.is_answer)
    else:
        gives = source if source.kind in (Kind.UNKNOWN, Kind.FLOAT) else REAL
    if source == REAL and places is not None:
        return call.sql(_of_its_digits(name, int(places)), gives, value)
    template = f"{name}({{0}}, CAST({{1}} AS INTEGER))"
    if source.is_exact:
        template = f"{name}(CAST({{0}} AS DOUBLE), CAST({{1}} AS INTEGER))"
    return call.sql(template, gives, value, digits)


def _of_its_digits(name: str, places: int) -> str:
    """A decimal that is a double here, rounded as the decimal with its 15 digits."""
    digits = f"TRY_CAST(printf('%.15g', x) AS {_WIDEST})"
    return (
        f"list_transform([{{0}}], LAMBDA x: coalesce(CAST({name}({digits}, {places}) AS DOUBLE), "
        f"{name}(x, {places})))[1]"
    )


def _narrowed(template: str, source: SqlType, places: int = 0) -> str:
    """What is rounded, as a DECIMAL of the digits that it may have.

    DuckDB rounds a quotient to one of 38 digits, which takes away the places of decimals beside it.
    """
    if source.scale != QUOTIENT_PLACES:
        return template
    width = _DECIMAL_DIGITS - QUOTIENT_PLACES + 1 + places
    return f"CAST({template} AS DECIMAL({width}, {places}))"


BIT_SIGNS: Final[dict[type[exp.Expr], str]] = {
    exp.BitwiseAnd: "({0} & {1})",
    exp.BitwiseOr: "({0} | {1})",
    exp.BitwiseXor: "xor({0}, {1})",
    exp.BitwiseRightShift: "({0} >> {1})",
}


def bit_operator(template: str) -> Writer:
    """``&``, ``|``, ``#`` and ``>>`` of whole numbers."""

    def write(call: Call) -> Value:
        one, other, gives = _numbers(call)
        if not gives.is_integer and gives.kind is not Kind.UNKNOWN:
            raise call.refused("needs whole numbers", "Cast it, as in x::int.")
        return call.sql(template, gives, one, other)

    return write


def write_bit_not(call: Call) -> Value:
    """``~x`` of a whole number."""
    value = call.value()
    if not value.type.is_integer and value.type.kind is not Kind.UNKNOWN:
        raise call.refused("needs whole numbers", "Cast it, as in x::int.")
    return call.sql("(~({0}))", value.type, value)
