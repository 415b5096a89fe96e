"""Lists every function, operator and cast that means the same everywhere, with its writer.

Each has a writer, which knows the types of its parts, and perhaps a bound for the length of its
result, of those of its parts; without one no result is longer than the longest part. `FUNCTIONS`
has those that are called by a name. A new one needs a line to docs/sql.md, and an
expression to the test that asks PostgreSQL.

The parts of comparisons, of CASE and of other choices among values have one type. A
text between quotes is read as the type that it is compared with, and refused if it is none. A text
is never compared with a number, nor a truth with one: PostgreSQL has no such operator.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from sqlglot import exp

from planner.meaning import casts, moments, numbers, texts
from planner.meaning.casts import finer
from planner.meaning.types import (
    BOOLEAN,
    FLOAT,
    LITERAL,
    TEXT,
    WHOLE,
    Kind,
    SqlType,
    common_type,
    of_cast,
)
from planner.meaning.written import Call, Value, Writer, read_as
from planner.sql import Age, DateBin, DateDifference, TimeBucket, ToChar, unsupported


def agreed(call: Call, values: Sequence[Value]) -> tuple[list[Value], SqlType]:
    """Values of one type, and that type.

    Raises
    ------
    UnsupportedSql
        If there is no type of all of them.
    """
    wanted = common_type(value.type for value in values)
    if wanted is None:
        names = list(
            dict.fromkeys(one.type.name for one in values if one.type.kind is not Kind.LITERAL)
        )
        raise call.refused(f"mixes {' and '.join(names)}", "Cast one of them, as in x::text.")
    return [_as_fine(call, read_as(value, wanted), wanted) for value in values], wanted


def _as_fine(call: Call, value: Value, wanted: SqlType) -> Value:
    """A decimal with as many places as the finest one beside it."""
    is_plain = isinstance(value.node.unnest(), exp.Literal | exp.Column | exp.Neg)
    template = None if is_plain else finer(value.type, wanted)
    if template is None:
        return value
    gives = SqlType(Kind.NUMERIC, wanted.scale, value.type.digits)
    return _wrapped(call, value, template, gives)


def _wrapped(call: Call, value: Value, template: str, gives: SqlType) -> Value:
    """SQL around a copy of a value, which still stands in its place."""
    copied = Value(value.node.copy(), value.type)
    return Call(value.node, call.type_of).sql(template, gives, copied)


def _replaced(old: Value, new: Value) -> None:
    if new.node is not old.node:
        old.node.replace(new.node)


def write_comparison(call: Call) -> Value:
    """``=``, ``<>``, ``<``, .., IS DISTINCT FROM."""
    pair = [call.value("this"), call.value("expression")]
    for old, new in zip(pair, agreed(call, pair)[0], strict=True):
        _replaced(old, new)
    return call.kept(BOOLEAN)


def write_between(call: Call) -> Value:
    """BETWEEN."""
    values = [call.value(name) for name in ("this", "low", "high")]
    for old, new in zip(values, agreed(call, values)[0], strict=True):
        _replaced(old, new)
    return call.kept(BOOLEAN)


def write_in(call: Call) -> Value:
    """IN, of a list of values."""
    values = [call.value(), *call.values()]
    if not call.node.args.get("query") and not call.node.args.get("unnest"):
        for old, new in zip(values, agreed(call, values)[0], strict=True):
            _replaced(old, new)
    return call.kept(BOOLEAN)


def write_truth(call: Call) -> Value:
    """AND, OR and NOT."""
    for name in ("this", "expression"):
        value = call.maybe(name)
        if value is None:
            continue
        if value.type.kind is Kind.LITERAL and value.is_text_constant:
            _replaced(value, read_as(value, BOOLEAN))
        elif value.type.kind not in (Kind.BOOLEAN, Kind.LITERAL, Kind.UNKNOWN):
            raise unsupported(
                value.node,
                f"is a {value.type.name}, and a condition is needed",
                "Compare it with a value.",
            )
    return call.kept(BOOLEAN)


def write_is(call: Call) -> Value:
    """IS NULL and IS TRUE."""
    return call.kept(BOOLEAN)


def write_paren(call: Call) -> Value:
    """Parentheses, CASE's branches and the like: what is inside."""
    return call.kept(call.value().type)


def write_case(call: Call) -> Value:
    """CASE: its branches are of one type, and so are the values that it compares."""
    ifs: list[exp.Expr] = call.node.args["ifs"]
    compared = call.maybe("this")
    if compared is not None:
        conditions = [compared, *(Value(one.this, call.type_of(one.this)) for one in ifs)]
        for old, new in zip(conditions, agreed(call, conditions)[0], strict=True):
            _replaced(old, new)
    branches = [Value(one.args["true"], call.type_of(one.args["true"])) for one in ifs]
    last = call.maybe("default")
    branches += [] if last is None else [last]
    return call.kept(_branches(call, branches))


def write_if(call: Call) -> Value:
    """A branch, which CASE looks at; or IF(condition, a, b) of other dialects."""
    if isinstance(call.node.parent, exp.Case):
        return call.kept(call.value("true").type)
    branches = [call.value("true")]
    last = call.maybe("false")
    return call.kept(_branches(call, branches + ([] if last is None else [last])))


def write_coalesce(call: Call) -> Value:
    """COALESCE, GREATEST and LEAST."""
    gives = _branches(call, call.every())
    if isinstance(call.node, exp.Greatest | exp.Least) and gives.kind is Kind.INTERVAL:
        # DuckDB's compare the months first. Its aggregates compare as `<` does, and keep the last.
        parts = call.every()[::-1]
        name = "list_max" if isinstance(call.node, exp.Greatest) else "list_min"
        listed = ", ".join(f"{{{place}}}" for place in range(len(parts)))
        return call.sql(f"{name}([{listed}])", gives, *parts)
    return call.kept(gives)


def write_nullif(call: Call) -> Value:
    """NULLIF(x, y): of the type in which x is compared with y."""
    pair = [call.value("this"), call.value("expression")]
    values, wanted = agreed(call, pair)
    values[0] = _promoted(call, values[0], values[1].type)
    for old, new in zip(pair, values, strict=True):
        _replaced(old, new)
    return call.kept(wanted if pair[0].type.kind is Kind.LITERAL else values[0].type)


def _promoted(call: Call, value: Value, beside: SqlType) -> Value:
    """A number as what it is compared as: a whole number beside a NUMERIC is one, too."""
    source = value.type
    if not (source.is_number and beside.is_number) or source.is_answer:
        return value
    if beside.kind is Kind.FLOAT and source.kind is not Kind.FLOAT:
        return _wrapped(call, value, "CAST({0} AS DOUBLE)", FLOAT)
    if beside.kind is Kind.NUMERIC and source.is_integer and not beside.is_answer:
        return _wrapped(call, value, "CAST({0} AS DECIMAL(19, 0))", WHOLE)
    return value


def _branches(call: Call, values: Sequence[Value]) -> SqlType:
    found, wanted = agreed(call, values)
    for old, new in zip(values, found, strict=True):
        _replaced(old, new)
    if all(value.type.kind is Kind.LITERAL for value in values):
        is_null = all(isinstance(value.node.unnest(), exp.Null) for value in values)
        return LITERAL if is_null else TEXT
    if wanted.kind is Kind.NUMERIC and wanted.scale is not None:
        # The digits that are shown are those of the branch that is taken.
        shown = {
            0 if one.type.is_integer else one.type.digits for one in found if one.type.is_number
        }
        digits = wanted.digits if len(shown) == 1 else None
        return SqlType(Kind.NUMERIC, wanted.scale, digits)
    return wanted


Length: TypeAlias = Callable[[exp.Expr, Sequence[int]], int]

N_CHARACTERS_OF_A_VALUE: Final = 32  # of a number, day or moment as text
N_LETTERS_A_PATTERN: Final = 3  # letters for each of a pattern: Day is Wednesday
NO_TEXT: Final = 0


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a node means.

    Parameters
    ----------
    write : callable
    name : str
        Of a function; empty for an operator.
    longest : callable, optional
        The most characters of the result, of the node and of the lengths of its parts.
    """

    write: Writer
    name: str = ""
    longest: Length | None = None


def longest_text(node: exp.Expr, inner: Sequence[int]) -> int:
    """The most characters of a node's value, of those of its parts; 0 if it is no text."""
    meaning = MEANINGS.get(type(node))
    if meaning is not None and meaning.longest is not None:
        return meaning.longest(node, inner)
    return max(inner, default=NO_TEXT)


def may_lengthen(kind: type[exp.Expr]) -> bool:
    """Whether a value of a kind of node may be longer than its parts, and than a few of values."""
    meaning = MEANINGS.get(kind)
    return meaning is not None and meaning.longest not in (None, _no_text, _cast)


def _no_text(_node: exp.Expr, _inner: Sequence[int]) -> int:
    return NO_TEXT


def _together(node: exp.Expr, inner: Sequence[int]) -> int:
    """All parts one after the other, each at least as long as a number."""
    every = sum(max(length, N_CHARACTERS_OF_A_VALUE) for length in inner)
    separators = len(inner) * inner[0] if isinstance(node, exp.ConcatWs) and inner else 0
    return every + separators


def _of_pattern(node: exp.Expr, _inner: Sequence[int]) -> int:
    return N_LETTERS_A_PATTERN * len(node.expression.name) + N_LETTERS_A_PATTERN


def _cast(node: exp.Expr, inner: Sequence[int]) -> int:
    if of_cast(node.args["to"]).kind not in (Kind.TEXT, Kind.UNKNOWN, Kind.OTHER):
        return NO_TEXT
    return max(*inner, N_CHARACTERS_OF_A_VALUE, 2 * N_CHARACTERS_OF_A_VALUE) if inner else NO_TEXT


def _filled(node: exp.Expr, _inner: Sequence[int]) -> int:
    return _whole(node.expression)


def _repeated(node: exp.Expr, inner: Sequence[int]) -> int:
    return _whole(node.args["times"]) * max(inner, default=0)


def _whole(node: exp.Expr) -> int:
    return int(node.name) if isinstance(node, exp.Literal) and node.name.isdecimal() else 0


def _put_in(_node: exp.Expr, inner: Sequence[int]) -> int:
    return sum(inner)


def _of_replacement(node: exp.Expr, inner: Sequence[int]) -> int:
    """Each character may give way to the replacement."""
    put = node.args.get("replacement")
    size = len(put.name) if isinstance(put, exp.Literal) else max(inner, default=0)
    return (max(inner, default=0) + 1) * (size + 1)


def _one(_node: exp.Expr, _inner: Sequence[int]) -> int:
    return 1


_MEANINGS: Final[dict[type[exp.Expr], Meaning]] = {
    # Constants and what stands around values.
    exp.Literal: Meaning(numbers.write_literal),
    exp.Boolean: Meaning(lambda call: call.kept(BOOLEAN), longest=_no_text),
    exp.Paren: Meaning(write_paren),
    exp.Interval: Meaning(casts.write_interval, longest=_no_text),
    exp.Cast: Meaning(casts.write_cast, longest=_cast),
    # Truth.
    **dict.fromkeys((exp.And, exp.Or, exp.Not), Meaning(write_truth, longest=_no_text)),
    **dict.fromkeys(
        (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
        Meaning(write_comparison, longest=_no_text),
    ),
    exp.Between: Meaning(write_between, longest=_no_text),
    exp.In: Meaning(write_in, longest=_no_text),
    exp.Is: Meaning(write_is, longest=_no_text),
    exp.Like: Meaning(texts.write_like, longest=_no_text),
    exp.ILike: Meaning(texts.write_like, longest=_no_text),
    exp.Escape: Meaning(texts.write_escape, longest=_no_text),
    exp.SimilarTo: Meaning(texts.write_similar, longest=_no_text),
    exp.RegexpLike: Meaning(texts.write_regular, longest=_no_text),
    exp.RegexpILike: Meaning(texts.write_regular, longest=_no_text),
    # Choices.
    exp.Case: Meaning(write_case),
    exp.If: Meaning(write_if),
    exp.Coalesce: Meaning(write_coalesce, "COALESCE"),
    exp.Greatest: Meaning(write_coalesce, "GREATEST"),
    exp.Least: Meaning(write_coalesce, "LEAST"),
    exp.Nullif: Meaning(write_nullif, "NULLIF"),
    # Numbers.
    exp.Add: Meaning(numbers.write_add, longest=_no_text),
    exp.Sub: Meaning(numbers.write_sub, longest=_no_text),
    exp.Mul: Meaning(numbers.write_mul, longest=_no_text),
    exp.Div: Meaning(numbers.write_div, longest=_no_text),
    exp.IntDiv: Meaning(numbers.write_int_div, "DIV", _no_text),
    exp.Mod: Meaning(numbers.write_mod, "MOD", _no_text),
    exp.Neg: Meaning(numbers.write_neg, longest=_no_text),
    exp.Pow: Meaning(numbers.write_pow, "POWER", _no_text),
    exp.Abs: Meaning(numbers.write_abs, "ABS", _no_text),
    exp.Cbrt: Meaning(
        numbers.double_function("(sign({0}) * pow(abs(CAST({0} AS DOUBLE)), 1.0 / 3))"),
        "CBRT",
        _no_text,
    ),
    exp.Ceil: Meaning(numbers.rounding("ceil"), "CEIL", _no_text),
    exp.Exp: Meaning(numbers.write_exp, "EXP", _no_text),
    exp.Floor: Meaning(numbers.rounding("floor"), "FLOOR", _no_text),
    exp.Ln: Meaning(numbers.real_function("ln({0})"), "LN", _no_text),
    exp.Log: Meaning(numbers.write_log, "LOG", _no_text),
    exp.Round: Meaning(numbers.write_round, "ROUND", _no_text),
    exp.Sign: Meaning(numbers.write_sign, "SIGN", _no_text),
    exp.Sqrt: Meaning(numbers.real_function("sqrt({0})"), "SQRT", _no_text),
    exp.Trunc: Meaning(numbers.write_trunc, "TRUNC", _no_text),
    exp.WidthBucket: Meaning(moments.write_width_bucket, "WIDTH_BUCKET", _no_text),
    **{
        kind: Meaning(numbers.bit_operator(sign), longest=_no_text)
        for kind, sign in numbers.BIT_SIGNS.items()
    },
    exp.BitwiseNot: Meaning(numbers.write_bit_not, longest=_no_text),
    # Texts.
    exp.DPipe: Meaning(texts.write_joined, longest=_together),
    exp.Ascii: Meaning(texts.write_ascii, "ASCII", _no_text),
    exp.Chr: Meaning(texts.write_chr, "CHR", _one),
    exp.Concat: Meaning(texts.write_concat, "CONCAT", _together),
    exp.ConcatWs: Meaning(texts.write_concat_ws, "CONCAT_WS", _together),
    exp.Initcap: Meaning(texts.write_initcap, "INITCAP"),
    exp.Left: Meaning(texts.write_left, "LEFT"),
    exp.Length: Meaning(texts.write_length, "LENGTH", _no_text),
    exp.Lower: Meaning(texts.text_function("lower({0})"), "LOWER"),
    exp.Overlay: Meaning(texts.write_overlay, "OVERLAY", _put_in),
    exp.Pad: Meaning(texts.write_pad, "LPAD", _filled),
    exp.RegexpReplace: Meaning(texts.write_regular_replace, "REGEXP_REPLACE", _of_replacement),
    exp.Repeat: Meaning(texts.write_repeat, "REPEAT", _repeated),
    exp.Replace: Meaning(texts.write_replace, "REPLACE", _of_replacement),
    exp.Reverse: Meaning(texts.text_function(texts.REVERSED), "REVERSE"),
    exp.Right: Meaning(texts.write_right, "RIGHT"),
    exp.SplitPart: Meaning(texts.write_split_part, "SPLIT_PART"),
    exp.StartsWith: Meaning(
        texts.text_function("starts_with({0}, {1})", "expression", gives=BOOLEAN),
        "STARTS_WITH",
        _no_text,
    ),
    exp.StrPosition: Meaning(texts.write_position, "STRPOS", _no_text),
    exp.Substring: Meaning(texts.write_substring, "SUBSTRING"),
    exp.Translate: Meaning(texts.write_translate, "TRANSLATE"),
    exp.Trim: Meaning(texts.write_trim, "TRIM"),
    exp.Upper: Meaning(texts.text_function(texts.UPPER), "UPPER"),
    # Days, moments and intervals.
    Age: Meaning(moments.write_age, "AGE", _no_text),
    DateBin: Meaning(moments.write_bin, "DATE_BIN", _no_text),
    DateDifference: Meaning(moments.write_difference, "DATE_DIFF", _no_text),
    TimeBucket: Meaning(moments.write_bucket, "TIME_BUCKET", _no_text),
    ToChar: Meaning(moments.write_to_char, "TO_CHAR", _of_pattern),
    exp.AtTimeZone: Meaning(moments.write_at_time_zone, longest=_no_text),
    exp.MakeInterval: Meaning(moments.write_make_interval, "MAKE_INTERVAL", _no_text),
    exp.Overlaps: Meaning(moments.write_overlaps, longest=_no_text),
    exp.DateFromParts: Meaning(moments.write_date_from_parts, "MAKE_DATE", _no_text),
    exp.Extract: Meaning(moments.write_extract, "EXTRACT", _no_text),
    exp.JustifyDays: Meaning(
        moments.interval_function(moments.JUSTIFIED_DAYS), "JUSTIFY_DAYS", _no_text
    ),
    exp.JustifyHours: Meaning(
        moments.interval_function(moments.JUSTIFIED_HOURS), "JUSTIFY_HOURS", _no_text
    ),
    exp.LastDay: Meaning(moments.write_last_day, "LAST_DAY", _no_text),
    exp.TimestampTrunc: Meaning(moments.write_date_trunc, "DATE_TRUNC", _no_text),
}
MEANINGS: Final = _MEANINGS
FUNCTIONS: Final = {kind: one.name for kind, one in _MEANINGS.items() if one.name}
OPERATORS: Final = frozenset(kind for kind, one in _MEANINGS.items() if not one.name)
