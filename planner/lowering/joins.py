"""Private rows joined with a public table: each public column becomes a function of the key.

The join is resolved on the public domain: a record's public columns are looked up by the level of
its own column, or by a column of another public table that was looked up already, as a country is
by the region of a city. Only an equality with the public key is such a join.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from cube.axis import LevelValue, MeasureAxis, NumericAxis
from cube.refusals import TooLarge, UnknownName, UnsupportedSql
from planner.domain.public import Columns, PublicRelation
from planner.lowering.outer import outer_sql, public_types
from planner.lowering.parts import PlanningContext
from planner.lowering.rows import Rows, lookups
from planner.lowering.summands import conjuncts
from planner.sql.messages import listed, position, shown, unsupported
from planner.sql.nodes import IS_PUBLIC, Held, PublicLookup

Entry = tuple[exp.Join | None, exp.Expr]

UNUSED: Final = "unused"  # in the place of a function for a column that no name refers to
N_VALUES_MAX = 10_000  # of a subquery in IN: it becomes a list of values
_ONE_EQUALITY = "Join it by one equality: ON private_column = public_key."


def joined_rows(
    rows: Rows, place: int, entries: Sequence[Entry], world: PlanningContext, select: exp.Select
) -> Rows:
    """Private rows, extended by the columns of every public table in FROM.

    Parameters
    ----------
    rows : Rows
        The entry at `place`.
    place : int
    entries : sequence of (Join or None, Expr)
        The entries of FROM, in order; all except the private one are public tables, or subqueries
        over them.
    world : PlanningContext
    select : Select
        Its WHERE may contain the equality of a join that is written with a comma.

    Raises
    ------
    UnsupportedSql
        If a join is not an equality of an axis, or of a column of a table before it, with a key.
    """
    own_join, own = entries[place]
    if own_join is not None and _kind(own_join, own) == "LEFT":
        raise unsupported(
            own, "is joined to keep public rows that no private row has", "Put it first in FROM."
        )
    # Conditions of inner joins apply together, wherever they are written.
    conditions = [
        condition
        for join, entry in entries
        if join is not None and _kind(join, entry) == "INNER" and join.args.get("on") is not None
        for condition in conjuncts(join.args["on"])
    ]
    shared = [] if own_join is None else [one.name for one in own_join.args.get("using") or []]
    for number, (join, entry) in enumerate(entries):
        if number != place:
            rows = _with_lookups(rows, join, entry, _Join(conditions, shared, select), world)
    rest = tuple(rows.resolved(condition) for condition in conditions)
    return rows.where(rest)


@dataclass(slots=True)
class _Join:
    """The conditions that a public table may be joined by; each is removed when it is used."""

    conditions: list[exp.Expr]
    shared: list[str]
    select: exp.Select


def _with_lookups(
    rows: Rows, join: exp.Join | None, entry: exp.Expr, by: _Join, world: PlanningContext
) -> Rows:
    """The rows, extended by one public table's columns."""
    table = _public_table(entry, world)
    is_left = join is not None and _kind(join, entry) == "LEFT"
    own, column, merged = _joined_columns(rows, join, entry, table, by)
    table = _keyed(table, column, entry)
    key = rows.meaning(own)
    if not isinstance(key, exp.Column | PublicLookup):
        raise unsupported(entry, "is joined by an expression", _ONE_EQUALITY)
    is_axis = isinstance(key, exp.Column)
    if is_axis and isinstance(rows.schema.by_name[key.name], MeasureAxis | NumericAxis):
        raise unsupported(
            entry, f"is joined by {key.name}, whose single values are not public", _ONE_EQUALITY
        )
    functions = world.scratchpad.lookups(_of_used_columns(table, by.select))
    unused = dict.fromkeys(table.columns, UNUSED)
    source = lookups(entry.alias_or_name, {**unused, **functions}, key, merged)
    if is_left:
        return rows.joined(source, None)
    found = source.columns[str(table.key)].copy()
    matches = exp.Not(this=exp.Is(this=found, expression=exp.null()))
    return rows.joined(source, matches)


def _of_used_columns(table: PublicRelation, select: exp.Select) -> PublicRelation:
    """The table with its key and the columns that the statement may name anywhere.

    So what counts of a wide table is what is used of it.
    """
    tree = select.root()
    shows_all = any(
        isinstance(star.parent, exp.Select | exp.Column) for star in tree.find_all(exp.Star)
    )
    if shows_all or tree.find(Held) is not None:  # a subquery may name any column, out of sight
        return table
    named = {one.name.casefold() for one in tree.find_all(exp.Identifier)}
    used = {
        name: values
        for name, values in table.values.items()
        if name == table.key or name.casefold() in named
    }
    if len(used) == len(table.values):
        return table
    return replace(table, name=f"{table.name} of {', '.join(used)}", values=used)


def _kind(join: exp.Join, entry: exp.Expr) -> str:
    """INNER or LEFT; a comma and CROSS JOIN are INNER with the condition elsewhere."""
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    if side == "LEFT" and kind in ("", "OUTER"):
        return "LEFT"
    if side or kind not in ("", "INNER", "CROSS") or join.args.get("method"):
        words = " ".join(word for word in (join.args.get("method"), side, kind) if word)
        raise unsupported(entry, f"is joined by {words} JOIN", "Use JOIN or LEFT JOIN.")
    return "INNER"


def values_of(query: exp.Query, world: PlanningContext, node: exp.Expr) -> list[exp.Expr]:
    """The values that a subquery over public tables gives, as a list for IN."""
    columns = public_columns(query, world, node)
    if len(columns) != 1:
        raise unsupported(node, "compares with more than one column", "Select one column.")
    ((_, values),) = columns.values()
    if len(values) > N_VALUES_MAX:
        raise TooLarge(
            f"{shown(node)} gives {len(values)} values; {N_VALUES_MAX} are allowed in IN.",
            hint="Join the public table by its key.",
            position=position(node),
        )
    return [public_literal(value) for value in dict.fromkeys(values)]


def public_literal(value: LevelValue) -> exp.Expr:
    """A value of a public table as a literal, which need be no level of any column."""
    literal = exp.convert(value)
    if isinstance(value, dt.date):
        kind = exp.DType.TIMESTAMP if isinstance(value, dt.datetime) else exp.DType.DATE
        literal = exp.cast(exp.Literal.string(str(value)), kind)
    literal.meta[IS_PUBLIC] = True
    return literal


def _public_table(entry: exp.Expr, world: PlanningContext) -> PublicRelation:
    # A public table's reference was replaced by its relation's name when FROM was read.
    if isinstance(entry, exp.Table) and entry.meta.get(IS_PUBLIC) in world.public:
        return world.public[entry.meta[IS_PUBLIC]]
    if isinstance(entry, exp.Values):
        query: exp.Query = exp.Select(expressions=[exp.Star()]).from_(entry.copy())
    elif isinstance(entry, exp.Subquery):
        query = entry.this
    else:
        raise _not_public(entry)
    columns = public_columns(query, world, entry)
    text = query.sql(dialect="duckdb")
    named = [] if isinstance(entry, exp.Values) else entry.alias_column_names
    if named:
        names = [*named, *list(columns)[len(named) :]]
        columns = dict(zip(names, columns.values(), strict=False))
        text = f"{text} ({', '.join(names)})"
    return PublicRelation(text, tuple(columns), None, columns)


def public_columns(query: exp.Query, world: PlanningContext, node: exp.Expr) -> Columns:
    """The columns of a query that reads only public tables, or none at all."""
    tables = list(query.find_all(exp.Table))
    # A name of WITH may be that of a public table, and mean noisy answers: it has no such mark.
    names = list(dict.fromkeys(str(table.meta.get(IS_PUBLIC, "")) for table in tables))
    if "" in names:
        raise _not_public(node)
    return world.public_rows(outer_sql(query, public_types(world.public)), names)


def _not_public(node: exp.Expr) -> UnsupportedSql:
    what = "A subquery of answers" if isinstance(node, exp.Subquery) else shown(node)
    return UnsupportedSql(
        f"{what} is needed for each private row, and is no public table, nor made of some.",
        hint="GROUP BY the column that it is compared with, since answers may choose groups; or "
        "aggregate the private rows first, in a subquery, and join its answers.",
        position=position(node),
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
    rows: Rows, join: exp.Join | None, entry: exp.Expr, table: PublicRelation, by: _Join
) -> tuple[exp.Column, str, str | None]:
    """The private column, the equal public column, and the latter again if USING merged it."""
    name = entry.alias_or_name
    own_using = [] if join is None else [one.name for one in join.args.get("using") or []]
    using = own_using or [one for one in by.shared if _column_of(table, one) is not None]
    if using:
        column = _column_of(table, using[0])
        if len(using) != 1 or column is None:
            raise unsupported(entry, "is joined by more than a key", _ONE_EQUALITY)
        return exp.column(exp.to_identifier(using[0])), column, column
    if join is not None and _kind(join, entry) == "LEFT":
        condition = join.args.get("on")
        found = None if condition is None else _equated(condition, rows, name, table)
        if found is None:
            raise unsupported(entry, "is not joined by one equality with its key", _ONE_EQUALITY)
        return (*found, None)
    for place, condition in enumerate(by.conditions):
        found = _equated(condition, rows, name, table)
        if found is not None:
            del by.conditions[place]
            return (*found, None)
    where = by.select.args.get("where")
    for conjunct in [] if where is None else conjuncts(where.this):
        found = _equated(conjunct, rows, name, table)
        if found is not None:
            conjunct.replace(exp.true())
            return (*found, None)
    raise unsupported(entry, "is joined without an equality with its key", _ONE_EQUALITY)


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
