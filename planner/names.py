"""Names: what a SELECT list calls its columns, and which public column an identifier means.

After these passes a `Column` carries the name of an axis of the schema, exactly; a GROUP BY entry
is an expression, never an ordinal or an alias; and a companion of an answer, such as DP_COST(n),
has a bare identifier where a function has columns.
"""

from collections.abc import Callable

from sqlglot import exp

from cube.refusals import UnknownName, UnsupportedSql
from cube.schema import Schema
from planner.wording import listed, shown, suggestion, unsupported
from planner.workload import ColumnKind

COMPANIONS: dict[str, ColumnKind] = {
    "DP_INTERVAL_LOW": ColumnKind.LOW,
    "DP_INTERVAL_HIGH": ColumnKind.HIGH,
    "DP_COST": ColumnKind.COST,
    "DP_SOURCE": ColumnKind.SOURCE,
}


def is_companion(node: exp.Expr) -> bool:
    """Whether a node shows something about an answer of the same SELECT."""
    return isinstance(node, exp.Anonymous) and node.name.upper() in COMPANIONS


def mark_companions(select: exp.Select, schema: Schema) -> exp.Select:  # noqa: ARG001 - a pass
    """Tell apart the columns that accompany an answer: their argument is an alias, not a column."""
    if not any(map(is_companion, select.find_all(exp.Anonymous))):
        return select

    def marked(node: exp.Expr) -> exp.Expr:
        if not is_companion(node) or node.parent is None:
            return node
        place = node.parent.parent if isinstance(node.parent, exp.Alias) else node.parent
        if not isinstance(place, exp.Select):
            raise unsupported(node, "is part of an expression", "Give it a column of its own.")
        arguments = node.expressions
        if len(arguments) != 1 or not isinstance(arguments[0], exp.Column) or arguments[0].table:
            raise unsupported(
                node, "needs the name of one answer", "Name the answer with AS, and put that here."
            )
        return exp.Anonymous(this=node.name.upper(), expressions=[arguments[0].this])

    return _rewritten(select, marked)


def expand_group_keys(select: exp.Select, schema: Schema) -> exp.Select:
    """Replace ordinals and aliases in GROUP BY by the expressions they stand for.

    As in PostgreSQL, a name that is both a column and an alias means the column.
    """
    group = select.args.get("group")
    if group is None:
        return select
    items = select.expressions
    columns = {name.casefold() for name in schema.by_name}
    aliased: dict[str, exp.Expr] = {
        column_name(item): item.this for item in items if isinstance(item, exp.Alias)
    }

    def meant(key: exp.Expr) -> exp.Expr:
        if isinstance(key, exp.Literal) and not key.is_string:
            place = int(key.name) if key.name.isdecimal() and len(key.name) < len("10000") else 0
            if not 1 <= place <= len(items):
                raise unsupported(key, f"is not the place of one of the {len(items)} columns")
            item: exp.Expr = items[place - 1].unalias()
            return item.copy()
        if isinstance(key, exp.Column) and not key.table and key.name.casefold() not in columns:
            named = aliased.get(output_name(key.this))
            return key if named is None else named.copy()
        return key

    keys = [meant(key.unnest()) for key in group.expressions]

    def replaced(node: exp.Expr) -> exp.Expr:
        return exp.Group(expressions=keys) if isinstance(node, exp.Group) else node

    return _rewritten(select, replaced)


def resolve_columns(select: exp.Select, schema: Schema) -> exp.Select:
    """Give every column the name of its axis; letter case counts only between double quotes."""
    table = select.args["from_"].this
    qualifier = table.args["alias"].this if table.args.get("alias") else table.this
    folded = {name.casefold(): name for name in schema.by_name}

    def resolved(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        if not isinstance(node.this, exp.Identifier):
            raise unsupported(node, "is a whole row, and not a value", "Name one column.")
        if node.table and not _same(node.args["table"], qualifier):
            raise UnknownName(
                f"{shown(node)} is not a column of {qualifier.name}.",
                hint=f"The only table here is {qualifier.name}.",
            )
        name = node.name if node.name in schema.by_name else None
        if name is None and not node.this.quoted:
            name = folded.get(node.name.casefold())
        if name is None:
            raise UnknownName(
                f"{schema.table} has no column {shown(node)}.",
                hint=_known_columns(node, schema),
            )
        return exp.column(exp.to_identifier(name))

    return _rewritten(select, resolved)


def _known_columns(node: exp.Column, schema: Schema) -> str:
    known = suggestion(node.name, schema.by_name) or f"It has {listed(schema.by_name)}."
    return f"{known} Text values go between single quotes." if node.this.quoted else known


def _rewritten(select: exp.Select, rewrite: Callable[[exp.Expr], exp.Expr]) -> exp.Select:
    """The tree with `rewrite` applied, in place, to every node below the SELECT itself.

    The tree was parsed for this one request, and copies of it are what planning would spend most
    of its time on.
    """
    tree = select.transform(rewrite, copy=False)
    if not isinstance(tree, exp.Select):
        raise TypeError("a pass may not replace the SELECT itself")
    return tree


def _same(one: exp.Identifier, other: exp.Identifier) -> bool:
    if one.quoted or other.quoted:
        return output_name(one) == output_name(other)
    return one.name.casefold() == other.name.casefold()


def output_name(identifier: exp.Identifier) -> str:
    """An identifier as a result column: folded to lower case, unless quoted."""
    return identifier.name if identifier.quoted else identifier.name.lower()


def column_name(item: exp.Expr) -> str:
    """What PostgreSQL would call a SELECT item.

    >>> from sqlglot import parse_one
    >>> column_name(parse_one("COUNT(*) FILTER (WHERE a)")), column_name(parse_one("1 + 1"))
    ('count', '?column?')
    """
    if isinstance(item, exp.Alias):
        return output_name(item.args["alias"])
    node = item.unnest()
    while isinstance(node, exp.Cast | exp.Filter):
        node = node.this.unnest()
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Case):
        return "case"
    if isinstance(node, exp.Func) and not isinstance(node, exp.Connector | exp.Binary):
        return _function_name(node)
    return "?column?"


def _function_name(node: exp.Func) -> str:
    if isinstance(node, exp.TimestampTrunc):
        return "date_trunc"
    return node.name.lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()


def answer_of(companion: exp.Expr, answers: list[str]) -> int:
    """The place, among the names of answers, of the one that a companion names."""
    wanted = output_name(companion.expressions[0])
    places = [place for place, name in enumerate(answers) if name == wanted]
    if len(places) > 1:
        raise UnsupportedSql(
            f"{shown(companion)}: several answers are called {wanted}.",
            hint="Name each of them with AS.",
        )
    if not places:
        raise UnknownName(
            f"{wanted} is not an answer of this SELECT.",
            hint=suggestion(wanted, answers) or f"Its answers are {listed(answers)}.",
        )
    return places[0]
