"""The likely types of a query's parameters, read off what stands beside them.

    age > $1                     the column's type
    $1::date, CAST($1 AS date)   what it is cast to
    LIMIT $1, OFFSET $1          a whole number
    $1 + 1, -$1                  a number

Everything else is text. A type is a hint for clients that must know one before they send a value:
it decides nothing. Columns are known by their names alone.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from sqlglot import exp

from planner.sql.parameters import Parameter, ParameterKind, Parameters, parameters_in
from planner.sql.query_tree import parse
from planner.sql.statements import Query

TEXT: Final = "VARCHAR"
WHOLE: Final = "BIGINT"
NUMBER: Final = "DOUBLE"
_WHOLE_TYPES: Final = ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER")
_BESIDE: Final = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.Between,
    exp.In,
    exp.Is,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.Coalesce,
    exp.Any,
)
_ARITHMETIC: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg)
_THROUGH: Final = (exp.Paren, exp.Array, exp.Tuple, *_ARITHMETIC)
_CASTS: Final = {
    **dict.fromkeys(exp.DataType.INTEGER_TYPES, WHOLE),
    **dict.fromkeys(exp.DataType.FLOAT_TYPES, NUMBER),
    exp.DataType.Type.DECIMAL: "DECIMAL",
    exp.DataType.Type.BOOLEAN: "BOOLEAN",
    exp.DataType.Type.DATE: "DATE",
    exp.DataType.Type.TIMESTAMP: "TIMESTAMP",
    exp.DataType.Type.TIMESTAMPTZ: "TIMESTAMP",
}
# A value of each type to learn the columns of an answer with.
_STAND_INS: Final = {
    WHOLE: Parameter(ParameterKind.NUMBER, "1"),
    NUMBER: Parameter(ParameterKind.NUMBER, "1.5"),
    "DECIMAL": Parameter(ParameterKind.NUMBER, "1.5"),
    "BOOLEAN": Parameter(ParameterKind.BOOLEAN, "true"),
    "DATE": Parameter(ParameterKind.DATE, "2020-01-01"),
    "TIMESTAMP": Parameter(ParameterKind.TIMESTAMP, "2020-01-01 00:00:00"),
    TEXT: Parameter(ParameterKind.TEXT, "a"),
}
LIST: Final = "[]"


def parameter_types(query: Query, columns: Mapping[str, str]) -> dict[str, str]:
    """The SQL type of every parameter of a query, by its name; of a list, its items' and ``[]``.

    Parameters
    ----------
    query : Query
    columns : mapping
        SQL types of columns, by their names in lower case.

    Raises
    ------
    Refused
        If the query does not parse.
    """
    tree = parse(query).tree
    found = dict.fromkeys(parameters_in(tree), TEXT)
    for mark in tree.find_all(exp.Parameter, exp.Placeholder):
        if mark.name in found and found[mark.name] == TEXT:
            found[mark.name] = _type_of(mark, columns)
    return found


def stand_ins(types: Mapping[str, str]) -> Parameters:
    """A value for each parameter, to learn the columns of the answer before one has come."""
    found: list[Parameter] = []
    for name, kind in types.items():
        item = _STAND_INS[kind.removesuffix(LIST)]
        one = Parameter(item.kind, item.text, name)
        if kind.endswith(LIST):
            one = Parameter(ParameterKind.LIST, "", name, (item,))
        found.append(one)
    return tuple(found)


def nothings(types: Mapping[str, str]) -> Parameters:
    """NULL for each parameter."""
    return tuple(Parameter(ParameterKind.NULL, name=name) for name in types)


def _type_of(mark: exp.Expr, columns: Mapping[str, str]) -> str:
    """The type of one parameter, by what is around it."""
    is_number, is_list = False, False
    node = mark
    while (around := node.parent) is not None:
        if isinstance(around, exp.Cast):
            return _cast_to(around.to)
        if isinstance(around, exp.Limit | exp.Offset | exp.Fetch):
            return WHOLE
        if isinstance(around, _BESIDE):
            is_list |= isinstance(around, exp.Any)
            kind = next(_beside(around, node, columns), None)
            if kind is not None:
                return kind + LIST if is_list else kind
        is_number |= isinstance(around, _ARITHMETIC)
        if not isinstance(around, (*_BESIDE, *_THROUGH)):
            break
        node = around
    return NUMBER if is_number else TEXT + LIST if is_list else TEXT


def _cast_to(kind: exp.DataType) -> str:
    if kind.this == exp.DataType.Type.ARRAY and kind.expressions:
        return _cast_to(kind.expressions[0]) + LIST
    return _CASTS.get(kind.this, TEXT)


def _beside(around: exp.Expr, node: exp.Expr, columns: Mapping[str, str]) -> Iterator[str]:
    """The types of what stands beside a node."""
    for other in around.iter_expressions():
        if other is node:
            continue
        inner = other.unnest()
        if isinstance(inner, exp.Column) and inner.name.lower() in columns:
            yield _bound_as(columns[inner.name.lower()])
        elif isinstance(inner, exp.Cast):
            yield _cast_to(inner.to)
        elif isinstance(inner, exp.Literal) and not inner.is_string:
            yield WHOLE if inner.is_int else NUMBER
        elif isinstance(inner, exp.Extract | exp.Count | exp.Sum | exp.Avg | exp.Length):
            yield NUMBER


def _bound_as(sql_type: str) -> str:
    """The type that a client binds a value for such a column as."""
    if sql_type in _WHOLE_TYPES:
        return WHOLE
    if sql_type.startswith("DECIMAL"):
        return "DECIMAL"
    return "DOUBLE" if sql_type == "FLOAT" else sql_type if sql_type in _STAND_INS else TEXT
