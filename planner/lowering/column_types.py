"""The types of a statement's columns before it is planned: enough to describe its parameters.

Names are looked for in every table that the statement mentions, wherever it stands, and through the
names that its SELECTs give. That is not how names are resolved when a statement is planned: it may
find a type for a name that means nothing there, and then planning refuses.
"""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Final

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
from cube.refusals import UnknownName
from cube.schema import Schema
from planner.domain.public import PublicRelation, public_table, synthetic_table
from planner.domain.table_names import WrittenName
from planner.lowering.parts import PlanningContext
from planner.sql.parameter_types import ColumnTypes, ValueType, plain_type, value_type

N_RENAMINGS_MAX: Final = 8  # names that stand for names, before a column's type is given up


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
        for _ in range(N_RENAMINGS_MAX):
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
