"""Joins public tables with private rows, also in subqueries of conditions and values.

Private rows joined with a public table: each public column becomes a function of the key.

The join is resolved on the public domain: a record's public columns are looked up by the level of
its own column, or by a column of another public table that was looked up already, as a country is
by the region of a city. A key of several columns is looked up by a combination of these. Only
equalities with the whole public key are such a join.

Subqueries over public tables in a condition or value of private rows: EXISTS, IN, one value.

    EXISTS (SELECT 1 FROM cities AS x WHERE x.city = c.city AND x.population > 1000000)
    COALESCE(c.city IN (SELECT x.city FROM cities AS x WHERE x.population > 1000000), FALSE)

Each becomes a list of values or a value, for each private row the same; what is tied to the row by
several columns becomes a look-up of their combination. Not here: subqueries that read private
tables.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final

from sqlglot import exp

from cube.axis import LevelValue, MeasureAxis, NumericAxis
from cube.refusals import TooLarge, UnknownName, UnsupportedSql
from planner.domain import Columns, PublicRelation
from planner.lowering.outer import outer_sql, public_types
from planner.lowering.parts import PlanningContext
from planner.lowering.rows import Rows, lookups
from planner.lowering.summands import conjuncts
from planner.sql import (
    IS_PUBLIC,
    Held,
    PublicLookup,
    copy_of,
    listed,
    nodes_of,
    position,
    shown,
    unsupported,
)

Entry = tuple[exp.Join | None, exp.Expr]

UNUSED: Final = "unused"  # in the place of a function for a column that no name refers to
N_VALUES_MAX = 10_000  # of a subquery in IN: it becomes a list of values
_ONE_EQUALITY = "Join it by one equality: ON private_column = public_key."
_OTHER_CONDITIONS = (
    "Join it by its key alone, and filter its rows in a subquery: LEFT JOIN (SELECT * FROM "
    "public_table WHERE ..) AS p ON private_column = p.public_key."
)


def joined_rows(
    rows: Rows, place: int, entries: Sequence[Entry], world: PlanningContext, select: exp.Select
) -> Rows:
    """Private rows, extended by the columns of every public table in FROM.

    Parameters
    ----------
    rows : Rows
        The private rows: the entry of FROM at `place`.
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
            own,
            "is joined so that public rows without a private row are kept",
            "Write it first in FROM.",
        )
    # Conditions of inner joins apply together, wherever they are written.
    conditions = [
        condition
        for join, entry in entries
        if join is not None and _kind(join, entry) == "INNER" and join.args.get("on") is not None
        for condition in conjuncts(join.args["on"])
    ]
    shared = [] if own_join is None else [one.name for one in own_join.args.get("using") or []]
    by = _Join(conditions, select, world)
    n_before = len(rows.sources)
    tables: dict[int, PublicRelation] = {}
    order: list[int] = []  # in which they are joined
    waiting: dict[int, UnsupportedSql] = {}
    pending = [number for number in range(len(entries)) if number != place]
    while pending:
        number = pending.pop(0)
        join, entry = entries[number]
        if number not in tables:
            tables[number] = _public_table(entry, world)
        by.shared = shared if number < place else []
        try:
            rows = _with_lookups(rows, join, entry, tables[number], by)
        except UnsupportedSql as refusal:
            # After a comma, a table may be joined by a column of one that stands behind it.
            if join is not None and (join.args.get("on") or join.args.get("using")):
                raise
            waiting[number] = refusal
        else:
            order.append(number)
            pending = [*waiting, *pending]
            waiting = {}
    if waiting:
        raise waiting[min(waiting)]
    sources = rows.sources
    joined = sorted(zip(order, sources[n_before:], strict=True), key=itemgetter(0))
    rows = replace(rows, sources=(*sources[:n_before], *(source for _, source in joined)))
    rest = tuple(rows.resolved(condition) for condition in conditions)
    return rows.where(rest)


@dataclass(slots=True)
class _Join:
    """The conditions that a public table may be joined by; each is removed when it is used."""

    conditions: list[exp.Expr]
    select: exp.Select
    world: PlanningContext
    shared: Sequence[str] = ()  # the columns of a USING behind the table

    def used(self, conditions: Sequence[exp.Expr | None]) -> None:
        """Remove conditions, of the joins or of WHERE, that a table is joined by."""
        ids = {id(one) for one in conditions if one is not None}
        for one in conditions:
            if one is not None and not any(one is other for other in self.conditions):
                one.replace(exp.true())
        self.conditions[:] = [one for one in self.conditions if id(one) not in ids]


@dataclass(frozen=True, slots=True)
class _Equality:
    """A private column that equals a public one, and the condition that says so, but for USING."""

    own: exp.Column
    condition: exp.Expr | None = None


def _with_lookups(
    rows: Rows,
    join: exp.Join | None,
    entry: exp.Expr,
    table: PublicRelation,
    by: _Join,
) -> Rows:
    """The rows, extended by one public table's columns."""
    is_left = join is not None and _kind(join, entry) == "LEFT"
    found = _equalities(rows, join, entry, table, by)
    merged = tuple(name for name, one in found.items() if one.condition is None)
    table = _keyed(table, list(found), len(found) if is_left else max(1, len(merged)), entry)
    own: list[exp.Expr] = []
    for column in table.key:
        key = rows.meaning(found[column].own)
        if not isinstance(key, exp.Column | PublicLookup):
            raise unsupported(
                entry,
                "is joined by an expression instead of a column",
                _way(table, entry.alias_or_name),
            )
        axis = rows.schema.by_name[key.name] if isinstance(key, exp.Column) else None
        if isinstance(axis, MeasureAxis | NumericAxis):
            raise unsupported(
                entry,
                f"is joined by {key.name}, but single values of this column are not public",
                _way(table, entry.alias_or_name),
            )
        own.append(key)
    if not set(merged) <= set(table.key):
        way = _way(table, entry.alias_or_name)
        raise unsupported(entry, "is joined by columns that are not in its key", way)
    if is_left and len(found) > len(table.key):
        raise unsupported(entry, "is joined by other conditions besides its key", _OTHER_CONDITIONS)
    by.used([found[column].condition for column in table.key])
    functions = by.world.scratchpad.lookups(_of_used_columns(table, by.select))
    unused = dict.fromkeys(table.columns, UNUSED)
    source = lookups(entry.alias_or_name, {**unused, **functions}, own, merged)
    if is_left:
        return rows.joined(source, None)
    first = source.columns[table.key[0]].copy()
    matches = exp.Not(this=exp.Is(this=first, expression=exp.null()))
    return rows.joined(source, matches)


def _of_used_columns(table: PublicRelation, select: exp.Select) -> PublicRelation:
    """The table with its key and the columns that the statement may name anywhere.

    So what counts of a wide table is what is used of it.
    """
    tree = select.root()
    shows_all = any(
        isinstance(star.parent, exp.Select | exp.Column) for star in nodes_of(tree, exp.Star)
    )
    if shows_all or tree.find(Held) is not None:  # a subquery may name any column, out of sight
        return table
    named = {one.name.casefold() for one in nodes_of(tree, exp.Identifier)}
    used = {
        name: values
        for name, values in table.values.items()
        if name in table.key or name.casefold() in named
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
        raise unsupported(
            entry, f"is joined by {words} JOIN, which is not supported", "Use JOIN or LEFT JOIN."
        )
    return "INNER"


def values_of(query: exp.Query, world: PlanningContext, node: exp.Expr) -> list[exp.Expr]:
    """The values that a subquery over public tables gives, as a list for IN."""
    columns = public_columns(query, world, node)
    if len(columns) != 1:
        raise unsupported(
            node,
            "compares with more than one column",
            "Select one column, or compare several with EXISTS (SELECT 1 FROM t WHERE t.a = x).",
        )
    ((_, values),) = columns.values()
    if len(values) > N_VALUES_MAX:
        raise TooLarge(
            f"{shown(node)} gives {len(values)} values; IN may have {N_VALUES_MAX}.",
            hint="Join the public table by its key instead.",
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
        query: exp.Query = exp.Select(expressions=[exp.Star()]).from_(copy_of(entry))
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
    return PublicRelation(text, tuple(columns), (), columns)


def public_columns(query: exp.Query, world: PlanningContext, node: exp.Expr) -> Columns:
    """The columns of a query that reads only public tables, or none at all."""
    tables = nodes_of(query, exp.Table)
    # A name of WITH may be that of a public table, and mean noisy answers: it has no such mark.
    names = list(dict.fromkeys(str(table.meta.get(IS_PUBLIC, "")) for table in tables))
    if "" in names:
        raise _not_public(node)
    return world.public_rows(outer_sql(query, public_types(world.public))[0], names)


def _not_public(node: exp.Expr) -> UnsupportedSql:
    what = "a subquery of answers" if isinstance(node, exp.Subquery) else shown(node)
    return UnsupportedSql(
        f"Each private row needs {what}, which is not made from public tables only.",
        hint="Answers can choose groups: GROUP BY the column that is compared. Or aggregate the "
        "private rows in a subquery first, and join its answers.",
        position=position(node),
    )


def _keyed(
    table: PublicRelation, joined: Sequence[str], n_needed: int, entry: exp.Expr
) -> PublicRelation:
    """The table with columns that it is joined by as its key.

    Parameters
    ----------
    table : PublicRelation
    joined : sequence of str
        Its columns that equal private ones, in the order of the conditions.
    n_needed : int
        So many of them are in the key of a subquery, if not more have to be.
    entry : Expr
    """
    if table.key:
        if set(table.key) <= set(joined):
            return table
        way = _way(table, entry.alias_or_name, joined)
        raise unsupported(entry, _is_joined_by(table, joined), way)
    if not table.values:
        raise unsupported(
            entry,
            "has no declared key",
            "The owner can declare the key: one column, or several whose combinations occur "
            "only once.",
        )
    for n_columns in range(n_needed, len(joined) + 1):
        key = tuple(joined[:n_columns])
        values = [table.values[column][1] for column in key]
        rows = values[0] if n_columns == 1 else list(zip(*values, strict=True))
        if len(set(rows)) == len(rows) and not any(None in column for column in values):
            return replace(table, name=f"{table.name} by {', '.join(key)}", key=key)
    what = joined[0] if len(joined) == 1 else f"({', '.join(joined)})"
    raise unsupported(
        entry,
        f"cannot have {what} as its key, since a value occurs more than once or is NULL",
        "Group it first, so that each value occurs once.",
    )


def _is_joined_by(table: PublicRelation, joined: Sequence[str]) -> str:
    """What is said about a join that does not name the whole key."""
    key = ", ".join(table.key)
    if len(table.key) == 1:
        return f"is joined by {joined[0]} instead of its key, {key}"
    parts = [column for column in table.key if column in joined]
    what = f"{', '.join(parts)} alone" if parts else joined[0]
    return f"is joined by {what} instead of its whole key, ({key})"


def _way(table: PublicRelation, name: str, joined: Sequence[str] = ()) -> str:
    """How a public table can be joined that is called `name` in FROM."""
    if len(table.key) <= 1:
        return _ONE_EQUALITY
    each = " AND ".join(
        f"private_column = {_quoted(name)}.{_quoted(column)}" for column in table.key
    )
    way = f"Join it by an equality for each column of its key: ON {each}"
    parts = ", ".join(_quoted(column) for column in table.key if column in joined)
    if not parts:
        return f"{way}."
    one_row = f"SELECT {parts}, COUNT(*) AS n FROM {_quoted(table.name)} GROUP BY {parts}"  # noqa: S608 - advice
    return f"{way}; or join a subquery that has one row for each {parts}: ({one_row})."


def _quoted(name: str) -> str:
    return exp.to_identifier(name).sql(dialect="postgres")


def _equalities(
    rows: Rows, join: exp.Join | None, entry: exp.Expr, table: PublicRelation, by: _Join
) -> dict[str, _Equality]:
    """The public columns that equal private ones, each with the first such equality."""
    name = entry.alias_or_name
    found: dict[str, _Equality] = {}
    own_using = [] if join is None else [one.name for one in join.args.get("using") or []]
    for own in own_using or by.shared:
        column = _column_of(table, own)
        if column is not None:
            found[column] = _Equality(exp.column(exp.to_identifier(own)))
        elif own_using:
            raise unsupported(
                entry, "is joined by columns that are not in its key", _way(table, name)
            )
    if join is not None and _kind(join, entry) == "LEFT":
        on = join.args.get("on")
        conditions = [] if on is None else list(conjuncts(on))
        each = [_equated(condition, rows, name, table) for condition in conditions]
        columns = [column for _, column in filter(None, each)]
        if None in each or len(set(columns)) < len(columns) or not (columns or found):
            what = "equalities" if len(table.key) > 1 else "one equality"
            raise unsupported(
                entry,
                f"is not joined by {what} with its key",
                _way(table, name) if not columns else _OTHER_CONDITIONS,
            )
    else:
        where = by.select.args.get("where")
        conditions = [*by.conditions, *([] if where is None else conjuncts(where.this))]
        each = [_equated(condition, rows, name, table) for condition in conditions]
    for condition, pair in zip(conditions, each, strict=True):
        if pair is not None:
            found.setdefault(pair[1], _Equality(pair[0], condition))
    if not found:
        raise unsupported(entry, "is joined without an equality on its key", _way(table, name))
    return found


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


_CLAUSES = {"expressions", "from_", "where", "distinct", "order"}


def value_of(query: exp.Query, world: PlanningContext, node: exp.Expr) -> exp.Expr:
    """The value that a subquery over public tables gives, as a literal; NULL if it has no row.

    Raises
    ------
    UnsupportedSql
        If it gives several rows or columns.
    """
    columns = public_columns(query, world, node)
    values = [one for _, values in columns.values() for one in values]
    if len(columns) != 1 or len(values) > 1:
        raise unsupported(
            node,
            f"gives {len(columns)} columns of {len(values) // max(len(columns), 1)} rows where "
            "one value is needed",
            "Aggregate it, as in SELECT MAX(x), or join the public table by its key.",
        )
    return public_literal(values[0] if values else None)


def exists_among(query: exp.Query, world: PlanningContext, node: exp.Expr) -> exp.Expr:
    """EXISTS of a subquery over public tables, as a condition of a private row.

    Raises
    ------
    UnsupportedSql
        If it is tied to the row otherwise than by equalities of columns.
    """
    own: list[exp.Expr] = []
    if isinstance(query, exp.Select):
        own = _correlation(query, _relations(query, world), node)
    if len(own) > 1:
        return _is_among(own, query, world, node)
    if not own:
        found = public_columns(query, world, node)
        n_rows = max((len(values) for _, values in found.values()), default=0)
        return exp.true() if n_rows else exp.false()
    values = values_of(query, world, node)
    if not values:
        return exp.false()
    # EXISTS is false, and not NULL, for a row without the value.
    return exp.Coalesce(this=exp.In(this=own[0], expressions=values), expressions=[exp.false()])


def _is_among(
    own: Sequence[exp.Expr], query: exp.Query, world: PlanningContext, node: exp.Expr
) -> exp.Expr:
    """Whether a query over public tables has the combination of some private columns."""
    columns = public_columns(query, world, node)
    if not all(values for _, values in columns.values()):
        return exp.false()
    key = tuple(columns)
    relation = PublicRelation(query.sql(dialect="duckdb"), key, key, columns)
    found = lookups(shown(node), world.scratchpad.lookups(relation), own)
    return exp.Not(this=exp.Is(this=found.columns[key[0]], expression=exp.null()))


def _relations(select: exp.Select, world: PlanningContext) -> dict[str, PublicRelation]:
    """The public tables in FROM by the names that the SELECT has for them."""
    return {
        table.alias_or_name.casefold(): world.public[str(table.meta[IS_PUBLIC])]
        for table in select.find_all(exp.Table)
        if table.meta.get(IS_PUBLIC) in world.public
    }


def _correlation(
    select: exp.Select, inside: dict[str, PublicRelation], node: exp.Expr
) -> list[exp.Expr]:
    """The private columns that the subquery compares with; it then selects what these must equal.

    None of them if it mentions no private column.
    """
    where = select.args.get("where")
    tied: list[exp.Expr] = []
    rest: list[exp.Expr] = []
    for condition in [] if where is None else conjuncts(where.this):
        (tied if _is_private(condition, inside) else rest).append(condition)
    if not tied:
        return []
    clauses = {clause for clause, value in select.args.items() if value}
    pairs = [_tied_columns(one, inside) for one in tied] if clauses <= _CLAUSES else [None]
    private = [pair[0] for pair in pairs if pair is not None]
    if len(private) < len(pairs):
        raise unsupported(
            node,
            "depends on the private row by other conditions than equalities of columns",
            "Join the public table by its key instead.",
        )
    public = [pair[1] for pair in pairs if pair is not None]
    known = [exp.Not(this=exp.Is(this=one.copy(), expression=exp.null())) for one in public]
    named = [exp.alias_(one.copy(), f"c{place}") for place, one in enumerate(public)]
    select.set("expressions", named)
    select.set("distinct", exp.Distinct() if len(public) > 1 else None)
    select.set("order", None)
    select.set("where", exp.Where(this=exp.and_(*rest, *known)))
    return private


def _tied_columns(
    tied: exp.Expr, inside: dict[str, PublicRelation]
) -> tuple[exp.Expr, exp.Expr] | None:
    """The private and the public column of an equality."""
    if not isinstance(tied, exp.EQ):
        return None
    one, other = tied.this.unnest(), tied.expression.unnest()
    if not (isinstance(one, exp.Column) and isinstance(other, exp.Column)):
        return None
    is_private = [_is_private(side, inside) for side in (one, other)]
    if is_private == [True, True]:
        return None
    return (one, other) if is_private[0] else (other, one)


def _is_private(node: exp.Expr, inside: dict[str, PublicRelation]) -> bool:
    """Whether it mentions a column that is none of the public tables in FROM."""
    return any(not _is_inside(column, inside) for column in node.find_all(exp.Column))


def _is_inside(column: exp.Column, inside: dict[str, PublicRelation]) -> bool:
    tables = [inside.get(column.table.casefold())] if column.table else list(inside.values())
    folded = column.name.casefold()
    return any(
        table is not None and folded in {name.casefold() for name in table.columns}
        for table in tables
    )
