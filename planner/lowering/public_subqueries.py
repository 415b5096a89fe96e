"""Subqueries over public tables in a condition or value of private rows: EXISTS, IN, one value.

    EXISTS (SELECT 1 FROM cities AS x WHERE x.city = c.city AND x.population > 1000000)
    COALESCE(c.city IN (SELECT x.city FROM cities AS x WHERE x.population > 1000000), FALSE)

Each becomes a list of values or a value, for each private row the same; what is tied to the row by
several columns becomes a look-up of their combination. Not here: subqueries that read private
tables.
"""

from collections.abc import Sequence

from sqlglot import exp

from planner.domain.public import PublicRelation
from planner.lowering.joins import public_columns, public_literal, values_of
from planner.lowering.parts import PlanningContext
from planner.lowering.rows import lookups
from planner.lowering.summands import conjuncts
from planner.sql.messages import shown, unsupported
from planner.sql.nodes import IS_PUBLIC

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
            f"gives {len(columns)} columns of {len(values) // max(len(columns), 1)} rows where one "
            "value is needed",
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
    pairs = [_equated(one, inside) for one in tied] if clauses <= _CLAUSES else [None]
    private = [pair[0] for pair in pairs if pair is not None]
    if len(private) < len(pairs):
        raise unsupported(
            node,
            "is tied to the private row by more than equalities of columns",
            "Join the public table by its key.",
        )
    public = [pair[1] for pair in pairs if pair is not None]
    known = [exp.Not(this=exp.Is(this=one.copy(), expression=exp.null())) for one in public]
    named = [exp.alias_(one.copy(), f"c{place}") for place, one in enumerate(public)]
    select.set("expressions", named)
    select.set("distinct", exp.Distinct() if len(public) > 1 else None)
    select.set("order", None)
    select.set("where", exp.Where(this=exp.and_(*rest, *known)))
    return private


def _equated(tied: exp.Expr, inside: dict[str, PublicRelation]) -> tuple[exp.Expr, exp.Expr] | None:
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
