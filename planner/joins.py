"""Private rows joined with a public table: each of its columns becomes a function of the key.

The join is resolved on the public domain: a record's public columns are looked up by the level that
its own column has. Nothing but a key-to-key equality is a join that does so.
"""

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from cube.axis import MeasureAxis, NumericAxis
from cube.refusals import TooLarge, UnknownName, UnsupportedSql
from planner.nodes import IS_PUBLIC
from planner.outer import outer_sql
from planner.parts import World
from planner.public import Columns, PublicRelation
from planner.rows import Rows, lookups
from planner.summands import conjuncts
from planner.wording import listed, position, shown, unsupported

N_VALUES_MAX = 10_000  # of a subquery in IN: it becomes a list of values
_ONE_EQUALITY = "Join it by one equality: ON private_column = public_key."


def lookup_join(
    rows: Rows, join: exp.Join | None, entry: exp.Expr, world: World, select: exp.Select
) -> Rows:
    """The rows with a public table's columns beside.

    Parameters
    ----------
    rows : Rows
    join : Join, optional
        None if the public table comes first in FROM.
    entry : Expr
        A public table, or a subquery over public tables, as FROM has it.
    world : World
    select : Select
        Its WHERE may hold the equality of a join that was written with a comma.

    Raises
    ------
    UnsupportedSql
        If it is no equality of an axis with a key.
    """
    table = _public_table(entry, world)
    side = "" if join is None else (join.side or join.kind or "").upper()
    if side not in ("", "INNER", "LEFT", "CROSS"):
        raise unsupported(entry, f"is joined by {side} JOIN", "Use JOIN or LEFT JOIN.")
    own, column = _joined_columns(rows, join, entry, table, select)
    table = _keyed(table, column, entry)
    key = rows.meaning(own)
    if not isinstance(key, exp.Column):
        raise unsupported(entry, "is joined by an expression", _ONE_EQUALITY)
    if isinstance(rows.schema.by_name[key.name], MeasureAxis | NumericAxis):
        raise unsupported(
            entry, f"is joined by {key.name}, whose single values are not public", _ONE_EQUALITY
        )
    source = lookups(entry.alias_or_name, world.scratchpad.lookups(table), key)
    if side == "LEFT":
        return rows.joined(source, None)
    found = source.columns[str(table.key)].copy()
    matches = exp.Not(this=exp.Is(this=found, expression=exp.null()))
    return rows.joined(source, matches)


def values_of(query: exp.Query, world: World, node: exp.Expr) -> list[exp.Expr]:
    """The values that a subquery over public tables gives, as a list for IN."""
    columns = _shown(query, world, node)
    if len(columns) != 1:
        raise unsupported(node, "compares with more than one column", "Select one column.")
    ((_, values),) = columns.values()
    if len(values) > N_VALUES_MAX:
        raise TooLarge(
            f"{shown(node)} gives {len(values)} values; {N_VALUES_MAX} are allowed in IN.",
            hint="Join the public table by its key.",
            position=position(node),
        )
    listed_values = [exp.convert(value) for value in dict.fromkeys(values)]
    for value in listed_values:
        value.meta[IS_PUBLIC] = True
    return listed_values


def _public_table(entry: exp.Expr, world: World) -> PublicRelation:
    # A public table's reference was replaced by its relation's name when FROM was read.
    if isinstance(entry, exp.Table) and entry.meta.get(IS_PUBLIC) and entry.name in world.public:
        return world.public[entry.name]
    if not isinstance(entry, exp.Subquery):
        raise _not_public(entry)
    columns = _shown(entry.this, world, entry)
    text = entry.this.sql(dialect="duckdb")
    return PublicRelation(text, tuple(columns), None, columns)


def _shown(query: exp.Query, world: World, node: exp.Expr) -> Columns:
    """The columns of a query that reads public tables and nothing else."""
    tables = list(query.find_all(exp.Table))
    names = list(dict.fromkeys(table.name for table in tables))
    # A name of WITH may be that of a public table, and mean noisy answers.
    is_public = all(table.meta.get(IS_PUBLIC) and table.name in world.public for table in tables)
    if not names or not is_public:
        raise _not_public(node)
    return world.public_rows(outer_sql(query), names)


def _not_public(node: exp.Expr) -> UnsupportedSql:
    return unsupported(
        node,
        "is needed for each private row, and is no public table, nor made of some",
        "Aggregate the private rows first, in a subquery, and join its answers.",
    )


def _keyed(table: PublicRelation, column: str, entry: exp.Expr) -> PublicRelation:
    """The table with the joined column as its key."""
    if table.key == column:
        return table
    if table.key is not None:
        raise unsupported(
            entry, f"is joined by {column}, and not by its key, {table.key}", _ONE_EQUALITY
        )
    if not table.values:
        raise unsupported(
            entry,
            "has no declared key",
            "The owner can declare its key column, which then has each value once.",
        )
    _, values = table.values[column]
    if len(set(values)) < len(values) or None in values:
        raise unsupported(
            entry,
            f"has a value of {column} more than once, or NULL, so that it is no key",
            "Group it first, so that each value is there once.",
        )
    return replace(table, name=f"{table.name} by {column}", key=column)


def _joined_columns(
    rows: Rows,
    join: exp.Join | None,
    entry: exp.Expr,
    table: PublicRelation,
    select: exp.Select,
) -> tuple[exp.Column, str]:
    """The private column, and the public one that it equals."""
    name = entry.alias_or_name
    using = [] if join is None else join.args.get("using") or []
    if using:
        column = _column_of(table, using[0].name)
        if len(using) != 1 or column is None:
            raise unsupported(entry, "is joined by more than a key", _ONE_EQUALITY)
        return exp.column(using[0].copy()), column
    condition = None if join is None else join.args.get("on")
    if condition is not None:
        found = _equated(condition, rows, name, table)
        if found is None:
            raise unsupported(condition, "is not one equality with a public key", _ONE_EQUALITY)
        return found
    where = select.args.get("where")
    for conjunct in [] if where is None else conjuncts(where.this):
        found = _equated(conjunct, rows, name, table)
        if found is not None:
            conjunct.replace(exp.true())
            return found
    raise unsupported(entry, "is joined without a condition", _ONE_EQUALITY)


def _equated(
    condition: exp.Expr, rows: Rows, name: str, table: PublicRelation
) -> tuple[exp.Column, str] | None:
    condition = condition.unnest()
    if not isinstance(condition, exp.EQ):
        return None
    for own, key in _both_ways(condition):
        is_named = key.table.casefold() == name.casefold()
        column = _column_of(table, key.name)
        if is_named and column is None:
            raise UnknownName(
                f"{name} has no column {shown(key)}.",
                hint=f"It has {listed(table.columns)}.",
                position=position(key),
            )
        is_public = column is not None and (is_named or (not key.table and not rows.has(key)))
        if is_public and column is not None and rows.has(own):
            return own, column
    return None


def _column_of(table: PublicRelation, name: str) -> str | None:
    by_folded = {column.casefold(): column for column in table.columns}
    return by_folded.get(name.casefold())


def _both_ways(equality: exp.EQ) -> Iterator[tuple[exp.Column, exp.Column]]:
    one, other = equality.this.unnest(), equality.expression.unnest()
    if isinstance(one, exp.Column) and isinstance(other, exp.Column):
        yield one, other
        yield other, one
