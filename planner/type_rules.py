"""Finds the types of a statement's columns, and refuses what PostgreSQL refuses for its types.

The types of a statement's columns before it is planned: enough to describe its parameters.

Names are looked for in every table that the statement mentions, wherever it stands, and through the
names that its SELECTs give. That is not how names are resolved when a statement is planned: it may
find a type for a name that means nothing there, and then planning refuses.

What PostgreSQL refuses because of types and places, where engines behind would find a meaning.

    age = '7.0'                          a text that is no integer, beside one
    b = 1, city = 1, d > 20240101        types that are not compared
    SELECT city .. UNION SELECT 1        types that no column has together
    ORDER BY 2, where there is 1 column; IN (); WHERE 1

Types are families: a number is compared with any number, a day with a moment. Where a type is not
surely known, nothing is refused here. A literal between quotes has the type of its neighbour.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import Final, TypeAlias

from sqlglot import exp

from cube.axis import (
    Axis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    MeasureAxis,
    NumericAxis,
    TimestampAxis,
)
from cube.refusals import InvalidSql, UnknownName
from cube.schema import Schema
from planner.domain import PublicRelation, WrittenName, public_table, synthetic_table
from planner.lowering import PlanningContext
from planner.sql import ColumnTypes, ValueType, every_node, plain_type, position, shown, value_type

_N_RENAMINGS_MAX: Final = 8  # names that stand for names, before a column's type is given up


def column_types(tree: exp.Expr, world: PlanningContext) -> ColumnTypes:
    """What the columns of a statement hold."""
    tables = [(it.alias_or_name.casefold(), _columns(it, world)) for it in tree.find_all(exp.Table)]
    named = {it.alias.casefold(): it.unalias() for it in tree.find_all(exp.Alias)}

    def held(column: exp.Column) -> ValueType | None:
        name, qualifier = column.name.casefold(), column.table.casefold()
        own = [columns for table, columns in tables if table == qualifier]
        every = own or [columns for _, columns in tables]
        return next((columns[name] for columns in every if name in columns), None)

    def found(column: exp.Column) -> ValueType | None:
        known, behind = held(column), named.get(column.name.casefold())
        for _ in range(_N_RENAMINGS_MAX):
            if known is not None or not isinstance(behind, exp.Column):
                break
            known, behind = held(behind), named.get(behind.name.casefold())
        return known if known is not None or behind is None else value_type(behind, held)

    return found


def every_type(
    nodes: Iterable[exp.Expr], world: PlanningContext
) -> Callable[[exp.Column], set[str]]:
    """The types of all columns of tables in a statement that a name may mean; none if no table.

    Parameters
    ----------
    nodes : iterable of Expr
        All nodes of the statement.
    world : PlanningContext
    """
    tables = []
    own = set()
    for node in nodes:
        if isinstance(node, exp.Table):
            tables.append((node.alias_or_name.casefold(), _meant(node, world)))
        elif isinstance(node, exp.CTE):
            own.add(node.alias.casefold())

    def found(column: exp.Column) -> set[str]:
        name, qualifier = column.name.casefold(), column.table.casefold()
        named = [meant for table, meant in tables if table == qualifier and table not in own]
        every = named or [meant for _, meant in tables]
        return {plain_type(one) for meant in every for one in _types(meant, name)}

    return found


def _types(table: Schema | PublicRelation | None, folded: str) -> list[str]:
    """The SQL types of the columns of a table that have a name but for letter case."""
    if isinstance(table, Schema):
        return [axis.sql_type for axis in table.axes if axis.name.casefold() == folded]
    types = {} if table is None else table.types
    return [sql_type for name, sql_type in types.items() if name.casefold() == folded]


def _columns(table: exp.Table, world: PlanningContext) -> Mapping[str, ValueType]:
    """The columns of a table that the statement names, by their folded names."""
    found = _meant(table, world)
    if isinstance(found, Schema):
        return {axis.name.casefold(): _held(axis) for axis in found.axes}
    return {} if found is None else _public_columns(found)


def _meant(table: exp.Table, world: PlanningContext) -> Schema | PublicRelation | None:
    """The table that the statement names; None if there is none."""
    if not isinstance(table.this, exp.Identifier):
        return None
    try:
        qualifier = _word(table.args["db"]) if table.db else None
        meant = world.names.meaning(_word(table.this), qualifier)
    except UnknownName:
        return None
    if meant is None:
        return None
    if isinstance(meant, str) and meant in world.schemas:
        return world.schemas[meant]
    return world.public[public_table(meant) if isinstance(meant, str) else synthetic_table(meant)]


def _word(identifier: exp.Expr) -> WrittenName:
    return WrittenName(identifier.name, bool(identifier.args.get("quoted")))


def _held(axis: Axis) -> ValueType:
    """The type of a column of private rows, and one of its levels."""
    example: object = True
    match axis:
        case CategoryAxis(values=values):
            example = next(iter(values), axis.other)
        case IntegerAxis(low=low) | DateAxis(low=low) | TimestampAxis(low=low):
            example = low
        case NumericAxis(edges=edges):
            example = edges[0]
        case MeasureAxis(low=low):
            example = int(low) if Fraction(low).denominator == 1 else float(low)
        case _:
            pass
    return ValueType(plain_type(axis.sql_type), example)


def _public_columns(relation: PublicRelation) -> Mapping[str, ValueType]:
    return {
        name.casefold(): ValueType(
            plain_type(sql_type), next(iter(relation.values.get(name, ("", ()))[1]), None)
        )
        for name, sql_type in relation.types.items()
    }


class Family(StrEnum):
    """The types that may stand for each other in a comparison."""

    INTEGER = "whole number"
    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    INTERVAL = "interval"
    QUOTED = "quoted literal"


_NUMBERS: Final = (Family.INTEGER, Family.NUMBER)
_CASTS: Final[dict[exp.DType, Family]] = {
    **dict.fromkeys(exp.DataType.INTEGER_TYPES, Family.INTEGER),
    **dict.fromkeys(exp.DataType.FLOAT_TYPES, Family.NUMBER),
    **dict.fromkeys((exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR), Family.TEXT),
    **dict.fromkeys((exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ), Family.DATE),
    exp.DType.DECIMAL: Family.NUMBER,
    exp.DType.BOOLEAN: Family.BOOLEAN,
    exp.DType.INTERVAL: Family.INTERVAL,
}
_OF_COLUMNS: Final = {
    "BIGINT": Family.INTEGER,
    "DOUBLE": Family.NUMBER,
    "DECIMAL": Family.NUMBER,
    "VARCHAR": Family.TEXT,
    "BOOLEAN": Family.BOOLEAN,
    "DATE": Family.DATE,
    "TIMESTAMP": Family.DATE,
    "TIMESTAMP WITH TIME ZONE": Family.DATE,
}
_COMPARISONS: Final = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ),
)
_TRUTHS: Final = (
    *(*_COMPARISONS, exp.And, exp.Or, exp.Not, exp.In, exp.Between, exp.Like, exp.ILike, exp.Is),
    *(exp.Exists, exp.StartsWith, exp.RegexpLike, exp.Boolean),
)
_TEXTS: Final = (
    *(exp.Lower, exp.Upper, exp.Trim, exp.Substring, exp.Left, exp.Right, exp.Replace, exp.Concat),
    *(exp.ConcatWs, exp.Initcap, exp.Reverse, exp.GroupConcat, exp.ToChar, exp.TimeToStr),
)
_WHOLE: Final = (exp.Length, exp.StrPosition, exp.Count, exp.CountIf, exp.RowNumber, exp.Rank)
_FRACTIONS: Final = (
    *(exp.Avg, exp.Sqrt, exp.Ln, exp.Exp, exp.Extract, exp.Stddev, exp.Variance, exp.Median),
    *(exp.Round, exp.Ceil, exp.Floor, exp.Trunc, exp.Pow),
)
_LIKE_THEIR_PARTS: Final = (exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least)
_AS_IT_IS: Final = (exp.Paren, exp.Alias, exp.Min, exp.Max, exp.Abs, exp.Neg, exp.Distinct)
_ARITHMETIC: Final = (exp.Add, exp.Sub, exp.Mul, exp.Mod)

_CHECKED: Final = (
    *(*_COMPARISONS, *_LIKE_THEIR_PARTS, exp.Where, exp.Having, exp.And, exp.Or, exp.Not, exp.If),
    *(exp.Join, exp.In, exp.Between, exp.Case, exp.Cast, exp.Query),
)

_INTEGER: Final = re.compile(r"\s*[+-]?\d+\s*")
_NUMBER: Final = re.compile(
    r"\s*(?:[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|[+-]?inf(?:inity)?)\s*", re.IGNORECASE
)

Known: TypeAlias = Callable[[exp.Expr], Family | None]


def check_types(tree: exp.Query, world: PlanningContext) -> None:
    """Refuse what PostgreSQL refuses because of a type, or of a place in the SELECT list.

    Raises
    ------
    InvalidSql
        With the node, both types, and the cast that would make it valid.
    """
    nodes = every_node(tree)
    known = _families(nodes, world)
    for node in nodes:
        if not _is_checked(type(node)):
            continue
        for condition in _conditions(node):
            _check_condition(condition, known)
        for parts in _alike(node):
            _check_alike(node, parts, known)
        if isinstance(node, exp.Cast):
            _check_cast(node)
        elif isinstance(node, exp.In):
            _check_list(node)
        elif isinstance(node, exp.SetOperation):
            _check_columns(node, known)
        if isinstance(node, exp.Query):
            _check_order(node)


def _families(nodes: Sequence[exp.Expr], world: PlanningContext) -> Known:  # noqa: C901 - one for each kind
    """The family of any of all nodes of a statement; None if it is not surely known."""
    types = every_type(nodes, world)
    named: dict[str, list[exp.Expr]] = {}
    renamed: set[str] = set()
    for one in nodes:
        if isinstance(one, exp.Alias):
            named.setdefault(one.alias.casefold(), []).append(one.this)
        elif isinstance(one, exp.TableAlias):
            renamed.update(column.name.casefold() for column in one.args.get("columns") or ())

    known: dict[tuple[str, str], Family | None] = {}  # or names that stand for names multiply

    def of_column(node: exp.Column, depth: int) -> Family | None:
        name = node.name.casefold()
        if name in renamed:
            return None
        place = name, node.table.casefold()
        if place not in known:
            known[place] = None  # of a name that stands for itself
            found = {_OF_COLUMNS.get(one) for one in types(node)}
            if depth < _N_RENAMINGS_MAX:
                found |= {family(one, depth + 1) for one in named.get(name, ()) if one != node}
            known[place] = found.pop() if len(found) == 1 else None
        return known[place]

    def family(node: exp.Expr, depth: int = 0) -> Family | None:  # noqa: C901, PLR0911, PLR0912 - one for each kind
        match node:
            case exp.Column():
                return of_column(node, depth)
            case exp.Literal():
                if node.is_string:
                    return Family.QUOTED
                return Family.INTEGER if node.name.isdigit() else Family.NUMBER
            case exp.Cast():
                return _CASTS.get(node.to.this)
            case exp.Interval():
                return Family.INTERVAL
            case exp.Sum():
                return Family.NUMBER
            case exp.Case():
                branches = [one.args["true"] for one in node.args["ifs"]]
                return _first([*branches, node.args.get("default")], depth)
            case exp.DPipe():
                sides = (family(node.this, depth), family(node.expression, depth))
                return Family.TEXT if Family.TEXT in sides or Family.QUOTED in sides else None
            case exp.Div():
                sides = (family(node.this, depth), family(node.expression, depth))
                return Family.NUMBER if all(one in _NUMBERS for one in sides) else None
        way = _way(type(node))
        if isinstance(way, Family) or way is None:
            return way
        if way is _LIKE_THEIR_PARTS:
            return _first([node.this, node.args.get("expression"), *node.expressions], depth)
        if way is _AS_IT_IS:
            return family(node.this, depth) if isinstance(node.this, exp.Expr) else None
        sides = (family(node.this, depth), family(node.expression, depth))
        if sides == (Family.INTEGER, Family.INTEGER):
            return Family.INTEGER
        return Family.NUMBER if all(one in _NUMBERS for one in sides) else None

    def _first(nodes: Sequence[exp.Expr | None], depth: int) -> Family | None:
        found = [None if node is None else family(node, depth) for node in nodes]
        sure = [one for one in found if one not in (None, Family.QUOTED)]
        if sure:
            return sure[0]
        return Family.TEXT if Family.QUOTED in found and None not in found else None

    return family


_Kinds: TypeAlias = tuple[type[exp.Expr], ...]
_BY_KIND: Final[tuple[tuple[_Kinds, Family], ...]] = (
    (_TRUTHS, Family.BOOLEAN),
    (_TEXTS, Family.TEXT),
    (_WHOLE, Family.INTEGER),
    (_FRACTIONS, Family.NUMBER),
)


_WAYS: Final[dict[type[exp.Expr], Family | _Kinds | None]] = {}  # of the kinds seen so far
_IS_CHECKED: Final[dict[type[exp.Expr], bool]] = {}


def _way(kind: type[exp.Expr]) -> Family | _Kinds | None:
    """The family of a kind of node; or the kinds that it is one of, whose parts decide."""
    if kind not in _WAYS:
        by_parts = (_LIKE_THEIR_PARTS, _AS_IT_IS, _ARITHMETIC)
        ways = (*((kinds, kinds) for kinds in by_parts), *_BY_KIND)
        _WAYS[kind] = next((way for kinds, way in ways if issubclass(kind, kinds)), None)
    return _WAYS[kind]


def _is_checked(kind: type[exp.Expr]) -> bool:
    if kind not in _IS_CHECKED:
        _IS_CHECKED[kind] = issubclass(kind, _CHECKED)
    return _IS_CHECKED[kind]


def _conditions(node: exp.Expr) -> Iterator[exp.Expr]:
    """What must be true or false in a node."""
    match node:
        case exp.Where() | exp.Having() | exp.Not():
            yield node.this
        case exp.And() | exp.Or():
            yield from (node.this, node.expression)
        case exp.If() if isinstance(node.parent, exp.Case) and node.parent.this is None:
            yield node.this
        case exp.Join() if node.args.get("on") is not None:
            yield node.args["on"]


def _alike(node: exp.Expr) -> Iterator[Sequence[exp.Expr]]:
    """Parts of a node that have one type."""
    match node:
        case exp.In() if node.expressions:
            yield (node.this, *node.expressions)
        case exp.Between():
            yield (node.this, node.args["low"], node.args["high"])
        case exp.Case():
            branches = [one.args["true"] for one in node.args["ifs"]]
            default = node.args.get("default")
            yield (*branches, *([] if default is None else [default]))
            if node.this is not None:
                yield (node.this, *(one.this for one in node.args["ifs"]))
        case _ if isinstance(node, (*_COMPARISONS, exp.Nullif)):
            yield (node.this, node.expression)
        case _ if isinstance(node, _LIKE_THEIR_PARTS):
            yield (node.this, *node.expressions)


def _check_condition(node: exp.Expr, known: Known) -> None:
    found = known(node)
    if found not in (None, Family.BOOLEAN, Family.QUOTED):
        raise InvalidSql(
            f"{shown(node)} is a {found}, and a condition is needed.",
            hint="Compare it, as in x <> 0 or x IS NOT NULL.",
            position=position(node),
        )


def _check_alike(node: exp.Expr, parts: Iterable[exp.Expr], known: Known) -> None:
    families = [(part, known(part)) for part in parts]
    sure = [(part, it) for part, it in families if it is not None and it is not Family.QUOTED]
    for part, found in sure[1:]:
        first, other = sure[0]
        if found is not other and not {found, other} <= set(_NUMBERS):
            raise InvalidSql(
                f"{shown(node)} mixes {shown(first)}, a {other}, and {shown(part)}, a {found}.",
                hint="PostgreSQL does not mix these types: cast one of them.",
                position=position(node),
            )
    wanted = _widest(it for _, it in sure)
    for part, it in families:
        if it is Family.QUOTED and wanted is not None and len(sure) < len(families):
            _check_quoted(part, wanted)


def _widest(families: Iterable[Family]) -> Family | None:
    found = set(families)
    if found == {Family.INTEGER}:
        return Family.INTEGER
    return Family.NUMBER if found and found <= set(_NUMBERS) else None


def _check_quoted(node: exp.Expr, wanted: Family) -> None:
    """A literal between quotes must be a number where it is taken for one."""
    text = node.unnest()
    pattern = {Family.INTEGER: _INTEGER, Family.NUMBER: _NUMBER}[wanted]
    if isinstance(text, exp.Literal) and pattern.fullmatch(text.name) is None:
        raise InvalidSql(
            f"{shown(node)} is not a valid {wanted}, which is needed here.",
            hint="Write the number without quotes.",
            position=position(node),
        )


def _check_cast(node: exp.Cast) -> None:
    text, wanted = node.this.unnest(), _CASTS.get(node.to.this)
    if isinstance(text, exp.Literal) and text.is_string and wanted in _NUMBERS:
        _check_quoted(node.this, wanted)


def _check_list(node: exp.In) -> None:
    if not (node.expressions or node.args.get("query") or node.args.get("unnest")):
        raise InvalidSql(
            f"{shown(node.this)} IN () has no values between its parentheses.",
            hint="Write at least one value. IN (NULL) is never true.",
            position=position(node),
        )


def _check_columns(node: exp.SetOperation, known: Known) -> None:
    """The columns of both sides of a UNION have one type; a quoted literal takes the other's."""
    left, right = (_items(side) for side in (node.left, node.right))
    if left is None or right is None or len(left) != len(right):
        return
    for one, other in zip(left, right, strict=True):
        _check_alike(node, (one.unalias(), other.unalias()), known)
        for quoted, beside in ((one, other), (other, one)):
            literal = quoted.unalias().unnest()
            if known(literal) is not Family.QUOTED:
                continue
            if known(beside) in _NUMBERS:
                literal.replace(exp.Literal.number(literal.name.strip()))
            cast = beside.unalias()
            if isinstance(cast, exp.Cast) and known(cast) is Family.DATE:
                literal.replace(exp.cast(literal.copy(), cast.to))


def _items(query: exp.Expr) -> list[exp.Expr] | None:
    """The columns of a query; None if a star says no number of them."""
    select = query.unnest()
    while isinstance(select, exp.SetOperation):
        select = select.left.unnest()
    if not isinstance(select, exp.Select):
        return None
    return None if any(one.is_star for one in select.expressions) else select.expressions


def _check_order(query: exp.Query) -> None:
    """Refuse an ORDER BY of missing columns; the ORDER BY of a UNION may name only columns."""
    order, items = query.args.get("order"), _items(query)
    if order is None or items is None:
        return
    names = [item.output_name.casefold() for item in items]
    distinct = query.args.get("distinct") if isinstance(query, exp.Select) else None
    keys = [ordered.this.unnest() for ordered in order.expressions]
    for key in keys:
        is_place = isinstance(key, exp.Literal) and not key.is_string and key.name.isdigit()
        if is_place and not 1 <= int(key.name) <= len(items):
            raise InvalidSql(
                f"ORDER BY {shown(key)} is not the position of one of the {len(items)} columns.",
                hint="Write a column's name, or its position in the SELECT list.",
                position=position(key),
            )
        is_name = isinstance(key, exp.Column) and not key.table and key.name.casefold() in names
        is_shown = is_place or is_name or any(_is_same(key, item.unalias()) for item in items)
        if isinstance(query, exp.SetOperation) and not (is_place or is_name):
            raise InvalidSql(
                f"A {type(query).__name__.upper()} cannot be ordered by {shown(key)}.",
                hint="Order by a column of the first SELECT, or by its position.",
                position=position(key),
            )
        if distinct is not None and distinct.args.get("on") is None and not is_shown:
            raise InvalidSql(
                f"SELECT DISTINCT cannot be ordered by {shown(key)}, which is not in its SELECT "
                "list.",
                hint="Add it to the SELECT list, or use GROUP BY instead of DISTINCT.",
                position=position(key),
            )
        if is_name and _is_ambiguous(key.name.casefold(), items):
            raise InvalidSql(
                f"ORDER BY {shown(key)} is ambiguous: several columns of the SELECT list have "
                "this name.",
                hint="Give them different names, or write the position of one.",
                position=position(key),
            )
    if distinct is not None and distinct.args.get("on") is not None:
        _check_distinct_on(distinct.args["on"], keys, items)


def _is_ambiguous(name: str, items: Sequence[exp.Expr]) -> bool:
    """Whether several columns of different meaning have a name."""
    meant = [item.unalias() for item in items if item.output_name.casefold() == name]
    return any(not _is_same(meant[0], other) for other in meant[1:])


def _is_same(one: exp.Expr, other: exp.Expr) -> bool:
    """Whether two expressions are one, or one column with and without its table."""
    one, other = one.unnest(), other.unnest()
    if isinstance(one, exp.Column) and isinstance(other, exp.Column):
        is_named = one.name.casefold() == other.name.casefold()
        return is_named and (one.table == other.table or not (one.table and other.table))
    return bool(one == other)


def _check_distinct_on(on: exp.Expr, keys: Sequence[exp.Expr], items: Sequence[exp.Expr]) -> None:
    """The first keys of ORDER BY are those of DISTINCT ON."""

    def meant(key: exp.Expr) -> exp.Expr:
        key = key.unnest()
        if isinstance(key, exp.Literal) and key.name.isdigit() and int(key.name) <= len(items):
            return items[int(key.name) - 1].unalias()
        named = [item.unalias() for item in items if item.output_name == key.name]
        return named[0] if isinstance(key, exp.Column) and not key.table and named else key

    listed = [meant(one) for one in (on.expressions or [on.unnest()])]
    for key in map(meant, keys[: len(listed)]):
        if not any(_is_same(key, one) for one in listed):
            raise InvalidSql(
                f"DISTINCT ON is ordered by {shown(key)} first, which is not one of its keys.",
                hint="Begin ORDER BY with the keys of DISTINCT ON.",
                position=position(key),
            )
