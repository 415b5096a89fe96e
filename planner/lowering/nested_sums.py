"""Lowers sums over the answers of a subquery to linear queries of private rows.

One private row adds a share to a linear answer: ``1`` to COUNT(*), ``x`` to SUM(x).

The sum of these shares over all rows is the answer. They are used where a SELECT of groups becomes
one of rows. An answer that is not a sum of shares, such as ``COUNT(*) + 1``, has none.

A sum of linear answers over groups is linear.

    SELECT plan, SUM(n) FROM (SELECT plan, city, COUNT(*) AS n FROM customers GROUP BY plan, city)
    SELECT plan, COUNT(n) FROM (SELECT plan, city, 1 AS n FROM customers)

The inner SELECT shows rows instead of groups, each with its share of the answer; so the sum is one
linear query, with a target and an interval of its own. This changes the tree alone. What is no such
sum (``MIN(n)``, ``COUNT(*)`` of groups, ``WHERE n > 9``) stays as it is: it is computed from the
answers, without an interval.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from cube.schema import Schema
from planner.sql import (
    COMPANIONS,
    MANNER,
    REQUESTED,
    aggregates_in,
    column_name,
    constant_value,
    copy_of,
    is_of_window,
    output_name,
)

_REAL_TYPES = frozenset({exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.DECIMAL})


@dataclass(frozen=True, slots=True)
class RowShare:
    """What one row adds to an answer, and whether the answer counts the rows that have it."""

    value: exp.Expr
    is_count: bool


def row_share(node: exp.Expr, schema: Schema) -> RowShare | None:
    """What one row adds to a linear answer; None if it is no such answer."""
    node = node.unnest()
    condition = None
    if isinstance(node, exp.Filter):
        node, condition = node.this, node.expression.this
    share = _counted(node, schema)
    if share is None and condition is None:
        value = _combined(node, schema)
        return None if value is None else RowShare(value, is_count=False)
    if share is None or condition is None:
        return share
    own = exp.Case(ifs=[exp.If(this=copy_of(condition), true=share.value)])
    return RowShare(own, share.is_count)


def _counted(node: exp.Expr, schema: Schema) -> RowShare | None:
    """What one row adds to a COUNT or a SUM."""
    inner = node.this
    if isinstance(node, exp.Count) and isinstance(inner, exp.Distinct) and not node.expressions:
        inner = inner.expressions[0] if len(inner.expressions) == 1 else None
        is_row = _is_unit(inner, schema) and schema.rows_per_unit_max == 1
        return RowShare(exp.Literal.number(1), is_count=True) if is_row else None
    if not isinstance(inner, exp.Expr) or node.expressions or inner.find(exp.AggFunc):
        return None
    if isinstance(node, exp.CountIf):
        return RowShare(_one_if(copy_of(inner)), is_count=True)
    if isinstance(node, exp.Count):
        is_every_row = isinstance(inner, exp.Star | exp.Literal) or _is_unit(inner, schema)
        value = exp.Literal.number(1) if is_every_row else _one_if(_is_known(inner))
        return RowShare(value, is_count=True)
    if isinstance(node, exp.Sum) and not isinstance(inner, exp.Star):
        return RowShare(copy_of(inner), is_count=False)
    return None


def _one_if(condition: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition, true=exp.Literal.number(1))])


def _is_known(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=exp.paren(value), expression=exp.null()))


def _is_unit(node: exp.Expr | None, schema: Schema) -> bool:
    return (
        isinstance(node, exp.Column)
        and schema.unit is not None
        and node.name.casefold() == schema.unit.casefold()
    )


def _combined(node: exp.Expr, schema: Schema) -> exp.Expr | None:
    """What one row adds to a difference, a sum or a multiple of counts and sums."""
    if isinstance(node, exp.Mul):
        sides = (node.this, node.expression)
        constants = [constant_value(side) is not None for side in sides]
        shares = [
            copy_of(side) if is_constant else _added(side, schema)
            for side, is_constant in zip(sides, constants, strict=True)
        ]
        return _binary(node, shares) if sum(constants) == 1 else None
    if isinstance(node, exp.Add | exp.Sub):
        return _binary(node, [_added(side, schema) for side in (node.this, node.expression)])
    if isinstance(node, exp.Neg):
        value = _added(node.this, schema)
        return None if value is None else exp.Neg(this=value)
    return _added(node.this, schema) if _is_padded(node) else None


def _binary(node: exp.Expr, sides: list[exp.Expr | None]) -> exp.Expr | None:
    left, right = sides
    return None if left is None or right is None else type(node)(this=left, expression=right)


def _is_padded(node: exp.Expr) -> bool:
    """Whether it is a cast that changes no answer, or COALESCE with constants."""
    if isinstance(node, exp.Cast):
        return node.to.this in _REAL_TYPES and not node.to.expressions
    return isinstance(node, exp.Coalesce) and all(
        constant_value(padding) is not None for padding in node.expressions
    )


def _added(node: exp.Expr, schema: Schema) -> exp.Expr | None:
    """What one row adds to an answer, 0 where it adds nothing."""
    share = row_share(node, schema)
    if share is None:
        return None
    if isinstance(share.value, exp.Literal):
        return share.value
    return exp.Coalesce(this=share.value, expressions=[exp.Literal.number(0)])


# Of the inner SELECT; the order of groups that are added up changes nothing.
_INNER_CLAUSES = {"expressions", "from_", "joins", "where", "group", "order"}
_OUTER_CLAUSES = {"expressions", "from_", "where", "group", "having", "order", "limit", "offset"}

# The public schema of the private rows that a SELECT reads; None if it reads none.
SchemaOf = Callable[[exp.Select], Schema | None]


def inline_names(query: exp.Select) -> None:
    """Put a name of WITH that is read once, alone in FROM, there as the subquery it stands for."""
    clause = query.args.get("with_")
    if clause is None or clause.args.get("recursive"):
        return
    entries = {cte.alias.casefold(): cte for cte in clause.expressions}
    reader: exp.Expr = query
    while isinstance(reader, exp.Select) and not reader.args.get("joins") and _sums_in(reader):
        origin = reader.args.get("from_")
        table = None if origin is None else origin.this
        if not isinstance(table, exp.Table) or table.db:
            break
        cte = entries.get(table.name.casefold())
        if cte is None or not _is_inlined(cte, clause, query):
            break
        alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name))
        reader, inner = cte.this, exp.Subquery(this=cte.this.pop(), alias=alias)
        table.replace(inner)
        cte.pop()
    if not clause.expressions:
        query.set("with_", None)


def _is_inlined(cte: exp.CTE, clause: exp.With, query: exp.Select) -> bool:
    """Whether a name of WITH stands for groups, is read once, and means the same in its place."""
    names = [one.alias.casefold() for one in clause.expressions]
    later = set(names[names.index(cte.alias.casefold()) :])
    inside = {table.name.casefold() for table in cte.this.find_all(exp.Table)}
    readers = [
        table
        for table in query.find_all(exp.Table)
        if table.name.casefold() == cte.alias.casefold() and not table.db
    ]
    return (
        isinstance(cte.this, exp.Select)
        and not cte.args["alias"].args.get("columns")
        and len(readers) == 1
        and not readers[0].args.get("sample")
        and not readers[0].alias_column_names
        and names.count(cte.alias.casefold()) == 1
        and later.isdisjoint(inside)
    )


def merge_sums(select: exp.Select, schema_of: SchemaOf) -> None:
    """Let the grouped SELECT in FROM show rows, if only sums of its answers are asked for."""
    inner = _inner(select)
    if inner is None:
        return
    merge_sums(inner, schema_of)
    schema = schema_of(inner)
    columns = None if schema is None else _columns(inner, schema)
    if columns is None or not _asks_only_sums(select, columns):
        return
    _name_columns(select)
    for total in _sums_in(select):
        _count_instead(total, columns)
    for item in inner.expressions:
        share = columns[_name(item)]
        if share is not None:
            item.replace(exp.alias_(share.value, column_name(item), quoted=True, copy=False))
    for clause in ("group", "order"):
        inner.set(clause, None)


def _inner(select: exp.Select) -> exp.Select | None:
    """The only entry of FROM, if it is a SELECT without names for its columns."""
    origin = select.args.get("from_")
    if origin is None or select.args.get("joins"):
        return None
    entry = origin.this
    while isinstance(entry, exp.Subquery):
        alias = entry.args.get("alias")
        if entry.args.get("with_") or (alias is not None and alias.args.get("columns")):
            return None
        entry = entry.this
    has_names = entry.args.get("with_")  # its own, which are not known here
    return entry if isinstance(entry, exp.Select) and not has_names else None


def _columns(inner: exp.Select, schema: Schema) -> Mapping[str, RowShare | None] | None:
    """The columns of a grouped SELECT by name, None for a key; None if it is not so plain."""
    clauses = {clause for clause, value in inner.args.items() if value}
    has_options = REQUESTED in inner.meta or MANNER in inner.meta
    if not clauses <= _INNER_CLAUSES or has_options or not aggregates_in(inner):
        return None
    keys = _keys(inner)
    columns: dict[str, RowShare | None] = {}
    for place, item in enumerate(inner.expressions, start=1):
        name, node = _name(item), item.unalias().unnest()
        is_key = str(place) in keys or name in keys or node in keys
        share = None if is_key else row_share(node, schema)
        if name in columns or (share is None and not is_key):
            return None
        columns[name] = share
    return columns


def _keys(inner: exp.Select) -> set[str | exp.Expr]:
    """The entries of GROUP BY: expressions, names of columns, and places."""
    group = inner.args.get("group")
    keys: set[str | exp.Expr] = set()
    for entry in [] if group is None else group.expressions:
        key = entry.unnest()
        keys.add(key)
        if isinstance(key, exp.Column) and not key.table:
            keys.add(key.name.casefold())
        if isinstance(key, exp.Literal) and not key.is_string:
            keys.add(key.name)
    return keys


def _name(item: exp.Expr) -> str:
    return column_name(item).casefold()


def _asks_only_sums(select: exp.Select, columns: Mapping[str, RowShare | None]) -> bool:
    """Whether a SELECT uses the answers of the one in FROM in sums over them, and only there."""
    clauses = {clause for clause, value in select.args.items() if value}
    if not clauses <= _OUTER_CLAUSES:
        return False
    own = [select.args[clause] for clause in clauses - {"from_"}]
    nodes = [node for one in own for node in (one if isinstance(one, list) else [one])]
    if any(node.find(exp.Query, exp.Star) for node in nodes):
        return False
    sums = _sums_in(select)
    outputs = {_name(item) for item in select.expressions}
    return (
        bool(sums)
        and all(_is_weighted(total.this, columns) for total in sums)
        and all(_is_harmless(node, columns, outputs) for node in nodes)
    )


def _sums_in(select: exp.Select) -> list[exp.Sum]:
    """The sums over the rows in FROM, which windows may sum again."""
    values = [select.args.get(clause) for clause in ("expressions", "having", "order")]
    nodes = [node for value in values for node in (value if isinstance(value, list) else [value])]
    return [
        total
        for node in nodes
        if node is not None
        for total in node.find_all(exp.Sum)
        if not is_of_window(total)
    ]


def _is_harmless(node: exp.Expr, columns: Mapping[str, RowShare | None], outputs: set[str]) -> bool:
    """Whether a clause means the same over rows, its sums aside."""
    if isinstance(node, exp.Sum) and not is_of_window(node):
        return True
    if isinstance(node, exp.AggFunc) and not is_of_window(node):
        return False
    if isinstance(node, exp.Column):
        is_output = isinstance(node.parent, exp.Ordered) and not node.table
        return columns.get(node.name.casefold()) is None or (
            is_output and output_name(node.this).casefold() in outputs
        )
    if isinstance(node, exp.Anonymous) and node.name.upper() in COMPANIONS:
        named = node.expressions[0] if node.expressions else None
        return isinstance(named, exp.Column) and named.name.casefold() in outputs
    return all(_is_harmless(child, columns, outputs) for child in node.iter_expressions())


def _is_weighted(node: exp.Expr, columns: Mapping[str, RowShare | None]) -> bool:
    """Whether a summand is a multiple of one row's answers, by what is public of the row."""
    node = node.unnest()
    match node:
        case exp.Column():
            return columns.get(node.name.casefold()) is not None
        case exp.Neg():
            found = _is_weighted(node.this, columns)
        case exp.Coalesce():
            padding = [constant_value(one) for one in node.expressions]
            found = padding == [0] and _is_weighted(node.this, columns)
        case exp.Mul():
            sides = (node.this, node.expression)
            kinds = {(_is_weighted(one, columns), _is_public(one, columns)) for one in sides}
            found = kinds == {(True, False), (False, True)}
        case exp.Add() | exp.Sub():
            found = all(_is_weighted(one, columns) for one in (node.this, node.expression))
        case exp.Case():
            found = _is_weighted_case(node, columns)
        case _:
            found = False
    return found


def _is_weighted_case(case: exp.Case, columns: Mapping[str, RowShare | None]) -> bool:
    otherwise = case.args.get("default")
    values = [branch.args["true"] for branch in case.args["ifs"]]
    values += [] if otherwise is None else [otherwise]
    conditions = [branch.this for branch in case.args["ifs"]]
    return (
        case.this is None
        and all(_is_public(condition, columns) for condition in conditions)
        and all(_is_nothing(value) or _is_weighted(value, columns) for value in values)
        and not all(_is_nothing(value) for value in values)
    )


def _is_nothing(value: exp.Expr) -> bool:
    return isinstance(value.unnest(), exp.Null) or constant_value(value) == 0


def _is_public(node: exp.Expr, columns: Mapping[str, RowShare | None]) -> bool:
    """Whether a value of a row in FROM depends on no answer."""
    named = [columns.get(one.name.casefold()) for one in node.find_all(exp.Column)]
    return all(one is None for one in named) and node.find(exp.AggFunc) is None


def _name_columns(select: exp.Select) -> None:
    """Name what has no name after what is written, before the words change."""
    for item in list(select.expressions):
        if not isinstance(item, exp.Alias | exp.Column):
            item.replace(exp.alias_(item.copy(), column_name(item), quoted=True))


def _count_instead(total: exp.Sum, columns: Mapping[str, RowShare | None]) -> None:
    """Let a sum of counts count the rows that they count."""
    column = total.this.unnest()
    share = columns[column.name.casefold()] if isinstance(column, exp.Column) else None
    if share is not None and share.is_count:
        total.replace(exp.Count(this=column.copy(), big_int=True))
