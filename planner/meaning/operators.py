"""Comparisons, CASE and what else gives one of several values: their parts are of one type.

A text between quotes is read as the type that it is compared with, and refused if it is none. A
text is never compared with a number, nor a truth with one: PostgreSQL has no such operator.
"""

from collections.abc import Sequence

from sqlglot import exp

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
)
from planner.meaning.written import Call, Value, read_as
from planner.sql.messages import unsupported


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
        raise call.refused(
            f"puts {' and '.join(names)} beside each other", "Cast one of them, as in x::text."
        )
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
                value.node, f"is no condition but a {value.type.name}", "Compare it to something."
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
