"""Writes casts and conversions to text for DuckDB, including TO_CHAR of a number.

numeric to integer     half away from zero     2.5::int is 3
double to integer      half to even            2.5::float8::int is 2
text to a number       digits alone            '2.5'::int is an error
double as text         the shortest digits     1, 0.1, 1e+20
numeric as text        all of its digits       2.50

TO_CHAR of numbers: a pattern's digits, signs and separators, place by place.

    9  a digit, or a blank before the first        0  a digit, and zeros before the first
    .  D  the point        ,  G  a comma between digits        FM  no blanks and no zeros at the end
    S  a sign beside the number        MI  a minus or a blank        PR  <1> of negative numbers
    SG a sign in this place        L  nothing, as the locale C has no currency

V, RN, TH and EEEE are refused.
"""

import re
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from planner.meaning.types import (
    BOOLEAN,
    FALSE_TEXTS,
    INTERVAL,
    REAL,
    TEXT,
    TRUE_TEXTS,
    Kind,
    SqlType,
    interval_sql,
    of_cast,
)
from planner.meaning.written import Call, Value, as_it_was, read_as, written
from planner.sql import PLACES, IntervalValue, NoInterval, read_interval, unsupported

DIGITS_MAX: Final = 38  # of a DECIMAL
_DUCKDB: Final = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INT2: "SMALLINT",
    Kind.INT4: "INTEGER",
    Kind.INT8: "BIGINT",
    Kind.FLOAT: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.TIMESTAMPTZ: "TIMESTAMPTZ",
    Kind.TIME: "TIME",
    Kind.INTERVAL: "INTERVAL",
}
_FROM_NUMBERS: Final = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.FLOAT, Kind.TEXT)
_FROM_MOMENTS: Final = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TEXT)
# By the type that is cast, the types that PostgreSQL casts it to.
_POSSIBLE: Final[dict[Kind, tuple[Kind, ...]]] = {
    Kind.BOOLEAN: (Kind.BOOLEAN, Kind.INT4, Kind.TEXT),
    **dict.fromkeys((Kind.INT2, Kind.INT8, Kind.NUMERIC, Kind.FLOAT), _FROM_NUMBERS),
    Kind.INT4: (*_FROM_NUMBERS, Kind.BOOLEAN),
    Kind.DATE: _FROM_MOMENTS,
    Kind.TIMESTAMP: (*_FROM_MOMENTS, Kind.TIME),
    Kind.TIMESTAMPTZ: (*_FROM_MOMENTS, Kind.TIME),
    Kind.TIME: (Kind.TIME, Kind.INTERVAL, Kind.TEXT),
    Kind.INTERVAL: (Kind.INTERVAL, Kind.TIME, Kind.TEXT),
}
_WHOLE_TEXT: Final = r"\s*[+-]?[0-9]+\s*"
_NUMBER_TEXT: Final = r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*"
# Of the texts that PostgreSQL reads as moments, those that DuckDB reads alike.
_DAY_TEXT: Final = r"\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK_TEXT: Final = r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
_MOMENT_TEXTS: Final = {
    Kind.DATE: rf"{_DAY_TEXT}\s*",
    Kind.TIMESTAMP: rf"{_DAY_TEXT}([ T]{_CLOCK_TEXT})?\s*",
    Kind.TIMESTAMPTZ: rf"{_DAY_TEXT}([ T]{_CLOCK_TEXT}(Z|[+-][0-9]{{2}}(:[0-9]{{2}})?)?)?\s*",
    Kind.TIME: rf"\s*{_CLOCK_TEXT}\s*",
    Kind.INTERVAL: rf"\s*([+-]?[0-9]+ (year|mon|month|week|day|hour|minute|second)s?\s*)*"
    rf"([+-]?{_CLOCK_TEXT})?\s*",
}


def write_cast(call: Call) -> Value:
    """CAST(x AS type)."""
    value, to = call.value(), call.node.args["to"]
    wanted = of_cast(to)
    parameters = [int(one.name) for one in to.expressions if one.name.lstrip("-").isdigit()]
    if wanted.kind in (Kind.UNKNOWN, Kind.OTHER):
        return call.kept(wanted)
    if value.type.kind is Kind.LITERAL and value.is_text_constant and not parameters:
        if wanted.kind is Kind.TEXT:
            return Value(value.node, TEXT)
        found = read_as(value, wanted)
        return (
            Value(written(call.node, _bare(found)), found.type)
            if found.node is not value.node
            else found
        )
    return cast_to(call, value, wanted, parameters, is_char=to.this in _CHARS)


_CHARS: Final = (exp.DType.CHAR, exp.DType.BPCHAR)


def _bare(value: Value) -> str:
    return str(value.node.this)


def cast_to(  # noqa: C901, PLR0911 - one for each type
    call: Call, value: Value, wanted: SqlType, parameters: list[int], *, is_char: bool = False
) -> Value:
    """A value as another type.

    Parameters
    ----------
    call : Call
        The cast to write.
    value : Value
    wanted : SqlType
    parameters : list of int
        Of the type, such as the two of NUMERIC(5, 2).
    is_char : bool
        Whether the text is cut and filled to its length.
    """
    kind, source = wanted.kind, value.type
    if source.kind is Kind.LITERAL:
        value = read_as(value, TEXT if kind is Kind.TEXT else wanted)
        source = value.type
    allowed = _POSSIBLE.get(source.kind)
    if allowed is not None and kind not in allowed:
        raise call.refused(
            f"casts a {source.name} to {wanted.name}, which PostgreSQL does not allow",
            "Use a comparison or a function instead of the cast.",
        )
    if kind is Kind.TEXT:
        text = as_text(call, value)
        return _of_length(call, text, parameters, is_char=is_char)
    if kind is Kind.NUMERIC:
        return _to_numeric(call, value, parameters)
    if source.kind in (kind, Kind.UNKNOWN) and kind is not Kind.FLOAT:
        return call.sql(f"CAST({{0}} AS {_DUCKDB[kind]})", wanted, value)
    if source.kind is Kind.TEXT:
        return _from_text(call, value, wanted)
    if wanted.is_integer and source.kind is Kind.NUMERIC:
        return call.sql(f"CAST(round({{0}}) AS {_DUCKDB[kind]})", wanted, value)
    if wanted.is_integer and source.kind is Kind.FLOAT:
        return call.sql(f"CAST(round_even({{0}}, 0) AS {_DUCKDB[kind]})", wanted, value)
    if kind is Kind.TIME and source.kind is Kind.INTERVAL:
        return call.sql("CAST(TIMESTAMP '2000-01-01' + {0} AS TIME)", wanted, value)
    if kind is Kind.INTERVAL and source.kind is Kind.TIME:
        return call.sql("to_microseconds(epoch_us(TIMESTAMP '1970-01-01' + {0}))", wanted, value)
    return call.sql(f"CAST({{0}} AS {_DUCKDB[kind]})", wanted, value)


def finer(source: SqlType, wanted: SqlType) -> str | None:
    """A template for a decimal with the places of another type; None if it has as many.

    Of a wide and a fine DECIMAL, DuckDB makes a wide one, and rounds the other to its places.
    """
    scales = source.scale, wanted.scale
    if source.kind is not Kind.NUMERIC or scales[0] is None or scales[1] is None:
        return None
    return None if scales[0] >= scales[1] else f"CAST({{0}} AS DECIMAL({DIGITS_MAX}, {scales[1]}))"


def _to_numeric(call: Call, value: Value, parameters: list[int]) -> Value:
    source = value.type
    if source.kind is Kind.TEXT:
        value = call.sql(_guarded(_NUMBER_TEXT, "CAST({0} AS DOUBLE)", "numeric"), REAL, value)
        source = REAL
    if not parameters:
        if source.kind is Kind.FLOAT:
            # PostgreSQL takes the 15 digits that every double has.
            return call.sql("CAST(printf('%.15g', {0}) AS DOUBLE)", REAL, value)
        if source.is_integer:
            return call.sql("CAST({0} AS DECIMAL(19, 0))", SqlType(Kind.NUMERIC, 0, 0), value)
        return Value(value.node, source if source.kind is Kind.NUMERIC else REAL)
    width, places = parameters[0], parameters[1] if len(parameters) > 1 else 0
    if not (1 <= width <= DIGITS_MAX and 0 <= places <= width):
        raise call.refused(
            f"needs 1 to {DIGITS_MAX} digits, and at most as many after the point",
            "NUMERIC(18, 2) has 18 digits, two of them after the point.",
        )
    gives = SqlType(Kind.NUMERIC, places, places)
    if source.is_exact:
        return call.sql(f"CAST({{0}} AS DECIMAL({width}, {places}))", gives, value)
    template = f"CAST(round({{0}}, {places}) AS DECIMAL({width}, {places}))"
    if source.is_number and not source.is_answer:  # of a double PostgreSQL takes 15 digits
        template = f"CAST(printf('%.15g', {{0}}) AS DECIMAL({width}, {places}))"
    return call.sql(template, gives, value)


def _from_text(call: Call, value: Value, wanted: SqlType) -> Value:
    kind, name = wanted.kind, wanted.name
    if wanted.is_integer:
        plain = f"CAST(trim({{0}}, E' \\t\\n\\r') AS {_DUCKDB[kind]})"
        return call.sql(_guarded(_WHOLE_TEXT, plain, name), wanted, value)
    if kind is Kind.FLOAT:
        return call.sql(_guarded(_NUMBER_TEXT, "CAST({0} AS DOUBLE)", name), wanted, value)
    if kind is Kind.BOOLEAN:
        true, false = (
            ", ".join(f"'{one}'" for one in texts) for texts in (TRUE_TEXTS, FALSE_TEXTS)
        )
        return call.sql(
            f"CASE WHEN lower(trim({{0}})) IN ({true}) THEN TRUE "
            f"WHEN lower(trim({{0}})) IN ({false}) THEN FALSE "
            f"WHEN {{0}} IS NOT NULL THEN error('a text is no {name}') END",
            BOOLEAN,
            value,
        )
    plain = f"CAST({{0}} AS {_DUCKDB[kind]})"
    return call.sql(_guarded(_MOMENT_TEXTS[kind], plain, name), wanted, value)


def _guarded(pattern: str, cast: str, name: str) -> str:
    """A cast of texts that match, and an error for others."""
    escaped = pattern.replace("{", "{{").replace("}", "}}")
    return (
        f"CASE WHEN regexp_full_match({{0}}, '{escaped}') THEN {cast} "
        f"WHEN {{0}} IS NOT NULL THEN error('a text is no {name}') END"
    )


# A double has up to 17 digits; PostgreSQL writes an exponent from 1e+15, DuckDB from 1e+16.
_DIGITS: Final = "regexp_replace(replace(CAST(abs(x) AS VARCHAR), '.', ''), '0+$', '')"
_DOUBLE: Final = (
    "list_transform([{0}], LAMBDA x: CASE WHEN abs(x) >= 1e15 AND abs(x) < 1e16 THEN "
    f"CASE WHEN x < 0 THEN '-' ELSE '' END || left({_DIGITS}, 1) || "
    f"CASE WHEN length({_DIGITS}) > 1 THEN '.' ELSE '' END || substr({_DIGITS}, 2) || 'e+15' "
    "ELSE regexp_replace(CAST(x AS VARCHAR), '\\.0$', '') END)[1]"
)
# Years, months and days are signed apart, and a plus is written behind something negative.
_BELOW_YEAR: Final = "year(x) < 0"
_BELOW_MONTH: Final = f"(month(x) < 0 OR (month(x) = 0 AND {_BELOW_YEAR}))"
_BELOW_DAY: Final = f"(day(x) < 0 OR (day(x) = 0 AND {_BELOW_MONTH}))"


def _unit_text(part: str, name: str, below: str) -> str:
    return (
        f"CASE WHEN {part} <> 0 THEN CASE WHEN {below} AND {part} > 0 THEN '+' ELSE '' END || "
        f"{part} || CASE WHEN {part} = 1 THEN ' {name}' ELSE ' {name}s' END END"
    )


_HAS_TIME: Final = "(hour(x) <> 0 OR minute(x) <> 0 OR microsecond(x) <> 0)"
_CLOCK: Final = (
    f"CASE WHEN {_HAS_TIME} OR (year(x) = 0 AND month(x) = 0 AND day(x) = 0) THEN "
    "CASE WHEN hour(x) < 0 OR minute(x) < 0 OR microsecond(x) < 0 THEN '-' "
    f"WHEN {_HAS_TIME} AND {_BELOW_DAY} THEN '+' ELSE '' END || "
    "CASE WHEN abs(hour(x)) < 10 THEN '0' ELSE '' END || abs(hour(x)) || ':' || "
    "lpad(CAST(abs(minute(x)) AS VARCHAR), 2, '0') || ':' || "
    "lpad(CAST(abs(microsecond(x)) // 1000000 AS VARCHAR), 2, '0') || "
    "CASE WHEN microsecond(x) % 1000000 = 0 THEN '' ELSE "
    "rtrim('.' || lpad(CAST(abs(microsecond(x)) % 1000000 AS VARCHAR), 6, '0'), '0') END END"
)
_INTERVAL: Final = (
    "list_transform([{0}], LAMBDA x: CASE WHEN x IS NOT NULL THEN concat_ws(' ', "
    f"{_unit_text('year(x)', 'year', 'FALSE')}, {_unit_text('month(x)', 'mon', _BELOW_YEAR)}, "
    f"{_unit_text('day(x)', 'day', _BELOW_MONTH)}, {_CLOCK}) END)[1]"
)


def as_text(call: Call, value: Value) -> Value:
    """A value as PostgreSQL writes it.

    Raises
    ------
    UnsupportedSql
        If it is a number for which PostgreSQL would show digits that are not computed.
    """
    kind = value.type.kind
    if kind in (Kind.TEXT, Kind.LITERAL):
        return Value(value.node, TEXT)
    if kind is Kind.FLOAT:
        return call.sql(_DOUBLE, TEXT, value)
    if kind is Kind.INTERVAL:
        return call.sql(_INTERVAL, TEXT, value)
    if kind is Kind.NUMERIC:
        return _numeric_text(call, value)
    return call.sql("CAST({0} AS VARCHAR)", TEXT, value)


def _numeric_text(call: Call, value: Value) -> Value:
    source = value.type
    if source.is_answer and source.digits is None:
        return call.sql(_DOUBLE, TEXT, value)
    if source.digits is None:
        raise unsupported(
            value.node,
            "cannot be converted to text, since its number of decimal digits is unknown",
            "Round it, as in ROUND(x, 2)::text, or cast it to double precision.",
        )
    if source.scale == source.digits:
        return call.sql("CAST({0} AS VARCHAR)", TEXT, value)
    template = f"CAST(CAST({{0}} AS DECIMAL(38, {source.digits})) AS VARCHAR)"
    return call.sql(template, TEXT, value)


def _of_length(call: Call, text: Value, parameters: list[int], *, is_char: bool) -> Value:
    """A text cut to the length of its type; of CHAR(n), blanks at its end mean nothing."""
    length = parameters[0] if parameters else (1 if is_char else None)
    if length is None:
        return text
    if is_char:  # as a text, blanks at the end of a CHAR are gone
        return call.sql(f"rtrim(left({{0}}, {length}), ' ')", TEXT, text)
    return call.sql(f"left({{0}}, {length})", TEXT, text)


def write_interval(call: Call) -> Value:
    """INTERVAL '1 day', INTERVAL '1' MONTH and INTERVAL '1-2' YEAR TO MONTH."""
    text, unit = call.node.this, call.node.args.get("unit")
    if not isinstance(text, exp.Literal):
        raise call.refused(
            "is not a constant", "Write INTERVAL '1 day', and multiply it by a number."
        )
    try:
        value = _interval_of(text.name, unit, call.node.meta.get(PLACES))
    except NoInterval:
        raise call.refused(
            "is not a valid interval", "An example is INTERVAL '1 day 12:00:00'."
        ) from None
    return call.sql(interval_sql(value), INTERVAL)


def _interval_of(text: str, unit: exp.Expr | None, places: int | None) -> IntervalValue:
    if isinstance(unit, exp.IntervalSpan):
        return read_interval(text, f"{unit.this.name} TO {unit.expression.name}", places)
    name = "" if unit is None else unit.name.lower().removesuffix("s")
    if name == "quarter":  # of other dialects
        return read_interval(f"{text} months", places=places).scaled(3)
    if name in ("", "year", "month", "day", "hour", "minute", "second"):
        return read_interval(text, name, places)
    return read_interval(f"{text} {name}", places=places)


def constant_interval(node: exp.Expr) -> IntervalValue | None:
    """What a constant interval is; None if the node is anything else."""
    original = as_it_was(node)
    try:
        if isinstance(original, exp.Interval) and isinstance(original.this, exp.Literal):
            unit, places = original.args.get("unit"), original.meta.get(PLACES)
            return _interval_of(original.this.name, unit, places)
        if isinstance(original, exp.Cast) and original.is_type(exp.DType.INTERVAL):
            inner = as_it_was(original.this)
            if isinstance(inner, exp.Literal) and inner.is_string:
                return read_interval(inner.name)
    except NoInterval:
        return None
    return None


_PIECE: Final = re.compile(
    r'FM|SG|MI|PR|PL|[90.,DGSLdgsl]|(?<!\\)"(?P<quoted>[^"]*)"|(?P<other>[^A-Za-z90.,"\\])',
    re.IGNORECASE,
)
N_PLACES_MAX: Final = 30
_KNOWN: Final = "The pattern may have 9, 0, the point, commas, D, G, S, MI, PR, SG, L and FM."


class _Pattern:
    """A pattern taken apart."""

    def __init__(self, pattern: str, call: Call) -> None:
        self.pieces: list[str] = []  # 9 0 . , of the digits; other text as it is, behind a mark
        self.fills = True
        self.sign = ""
        self.is_sign_first = True
        place = 0
        while place < len(pattern):
            match = _PIECE.match(pattern, place)
            if match is None:
                raise unsupported(
                    call.node,
                    f"has {pattern[place:]!a} in its pattern, which is not supported",
                    _KNOWN,
                )
            place = match.end()
            self._take(match, call)
        digits = [one for one in self.pieces if one in ("9", "0")]
        if not digits or len(digits) > N_PLACES_MAX or self.pieces.count(".") > 1:
            raise unsupported(
                call.node,
                f"needs a pattern with 1 to {N_PLACES_MAX} digits and at most one point",
                _KNOWN,
            )

    def _take(self, match: re.Match[str], call: Call) -> None:
        piece = match[0].upper()
        if match["quoted"] is not None or match["other"] is not None:
            self.pieces.append("t" + (match["quoted"] or match["other"] or ""))
        elif piece == "FM":
            self.fills = False
        elif piece in ("S", "MI", "PR", "SG", "PL"):
            if self.sign or piece == "PL" or (piece == "PR" and not self.pieces):
                raise unsupported(call.node, "has an unsupported sign in its pattern", _KNOWN)
            self.sign = piece
            self.is_sign_first = not any(one in ("9", "0") for one in self.pieces)
            if piece in ("MI", "SG"):
                self.pieces.append("s" + piece)
        elif piece == "L":
            self.pieces.append("t ")
        else:
            self.pieces.append({"D": ".", "G": ","}.get(piece, piece))


def write_number(call: Call, value: Value, pattern: str) -> Value:
    """TO_CHAR of a number with a pattern.

    Raises
    ------
    UnsupportedSql
        If the pattern has something that is not computed.
    """
    found = _Pattern(pattern, call)
    point = found.pieces.index(".") if "." in found.pieces else len(found.pieces)
    places = sum(one in ("9", "0") for one in found.pieces[point:])
    n_before = sum(one in ("9", "0") for one in found.pieces[:point])
    total = n_before + places
    rounded = f"round({{0}}, {places})"
    if value.type.kind is Kind.FLOAT:
        rounded = f"round(CAST(printf('%.15g', {{0}}) AS DECIMAL(38, 15)), {places})"
    # The digits without the point, filled up with zeros; more than fit are shown as signs.
    template = (
        f"list_transform([CAST({rounded} AS DECIMAL(38, {places}))], LAMBDA x: "
        f"CASE WHEN x IS NULL THEN NULL WHEN abs(x) >= {10**n_before} THEN {{1}} ELSE "
        f"list_transform([lpad(replace(CAST(abs(x) AS VARCHAR), '.', ''), {total}, '0')], "
        "LAMBDA d: "
        "{2})[1] END)[1]"
    )
    shown = _shown(found, n_before, places)
    too_large = _overflow(found)
    text = template.replace("{1}", too_large).replace("{2}", shown)
    return call.sql(text, TEXT, value)


def _first_shown(found: _Pattern, n_before: int) -> int:
    """The place, among those before the point, from which zeros are shown whatever they are."""
    place = 0
    for piece in found.pieces:
        if piece == "0":
            return place
        if piece == ".":
            break
        place += piece == "9"
    return n_before


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the digits of a pattern stand, and which zeros are shown."""

    n_before: int
    n_behind: int
    zeros_from: int
    last_zero: int
    fills: bool

    def digit(self, place: int) -> str:
        """SQL for one digit of d, a blank or nothing, its place counted from 1."""
        digit, behind = f"substr(d, {place}, 1)", place - self.n_before
        if behind > 0:
            if self.fills or behind - 1 <= self.last_zero:
                return digit
            return f"CASE WHEN length(rtrim(d, '0')) >= {place} THEN {digit} ELSE '' END"
        # The last before the point is shown where nothing is behind it.
        if place > self.zeros_from or (not behind and not self.n_behind):
            return digit
        condition = f"{_LEADING} < {place}"
        if not behind and not self.fills:
            condition += " OR ltrim(d, '0') = ''"
        return f"CASE WHEN {condition} THEN {digit} ELSE {_blank(self.fills)} END"

    def comma(self, place: int) -> str:
        """SQL for a comma behind a place."""
        if place > self.zeros_from or place > self.n_before:
            return "','"
        return f"CASE WHEN {_LEADING} < {place} THEN ',' ELSE {_blank(self.fills)} END"


_LEADING: Final = "length(d) - length(ltrim(d, '0'))"  # zeros at the beginning


def _blank(fills: bool) -> str:
    return "' '" if fills else "''"


def _shown(found: _Pattern, n_before: int, n_behind: int) -> str:
    """SQL for the text of a number x that fits, whose digits are d."""
    behind = enumerate(_digits_behind(found))
    last_zero = max((at for at, one in behind if one == "0"), default=-1)
    places = _Places(n_before, n_behind, _first_shown(found, n_before), last_zero, found.fills)
    pieces: list[str] = []
    place = 0
    for piece in found.pieces:
        if piece in ("9", "0"):
            place += 1
            pieces.append(places.digit(place))
        elif piece == ",":
            pieces.append(places.comma(place))
        else:
            pieces.append(_other(found, piece))
    return _signed(found, pieces)


def _other(found: _Pattern, piece: str) -> str:
    """SQL for what is neither a digit nor a comma."""
    if piece == ".":
        return "'.'"
    if piece[0] == "t":
        return _quoted(piece[1:])
    plus = "'+'" if piece == "sSG" else _blank(found.fills)
    return f"CASE WHEN x < 0 THEN '-' ELSE {plus} END"


def _digits_behind(found: _Pattern) -> list[str]:
    if "." not in found.pieces:
        return []
    behind = found.pieces[found.pieces.index(".") + 1 :]
    return [one for one in behind if one in ("9", "0")]


def _signed(found: _Pattern, pieces: list[str]) -> str:
    """The pieces with the sign, which stands before the first digit that is shown."""
    first = next(at for at, one in enumerate(found.pieces) if one in ("9", "0", "."))
    before = "".join(f"{piece} || " for piece in pieces[:first])
    body = " || ".join(pieces[first:])
    if found.sign in ("MI", "SG"):
        return f"({before}{body})"
    if found.sign == "PR":
        if not found.fills:
            return f"({before}CASE WHEN x < 0 THEN '<' || {body} || '>' ELSE {body} END)"
        less = _beside(body, "'<'")
        return f"({before}CASE WHEN x < 0 THEN {less} || '>' ELSE ' ' || {body} || ' ' END)"
    plus = "'+'" if found.sign == "S" else _blank(found.fills)
    sign = f"CASE WHEN x < 0 THEN '-' ELSE {plus} END"
    if found.sign == "S" and not found.is_sign_first:
        return f"({before}{body} || {sign})"
    return f"({before}{_beside(body, sign)})"


def _beside(body: str, sign: str) -> str:
    """A sign between the blanks before the first digit and that digit."""
    blanks = "repeat(' ', length(b) - length(ltrim(b, ' ')))"
    return f"list_transform([{body}], LAMBDA b: {blanks} || {sign} || ltrim(b, ' '))[1]"


def _overflow(found: _Pattern) -> str:
    """Signs in the place of digits, of a number that has more before the point."""
    signs = {"9": "'#'", "0": "'#'", ",": "','"}
    return _signed(found, [signs.get(piece) or _other(found, piece) for piece in found.pieces])


def _quoted(text: str) -> str:
    escaped = text.replace("'", "''").replace("{", "{{").replace("}", "}}")
    return f"'{escaped}'"
