"""Names the columns of a SELECT list, and reads the companions of an answer."""

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp

from planner.sql.exact_numbers import constant_value
from planner.sql.messages import unsupported
from planner.sql.nodes import nodes_of
from planner.workload import ColumnKind

COMPANIONS: dict[str, ColumnKind] = {
    "DP_INTERVAL_LOW": ColumnKind.LOW,
    "DP_INTERVAL_HIGH": ColumnKind.HIGH,
    "DP_STDERR": ColumnKind.STDERR,
    "DP_COST": ColumnKind.COST,
    "DP_SOURCE": ColumnKind.SOURCE,
}
_OWN_NAMES: dict[type[exp.Expr], str] = {  # of functions that the parser calls otherwise
    exp.TimestampTrunc: "date_trunc",
    exp.GroupConcat: "string_agg",
    exp.ApproxDistinct: "approx_count_distinct",
}
_WITH_CONFIDENCE = ("DP_INTERVAL_LOW", "DP_INTERVAL_HIGH")


class CompanionColumn(exp.Expression):
    """A column that accompanies an answer: DP_COST(n) and the like.

    `this` is the function's name, `answer` the folded name of an answer, `confidence` a number.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "answer": True,
        "confidence": False,
        "text": True,
    }

    @property
    def answer(self) -> str:
        """The output name of the answer."""
        return str(self.args["answer"])

    @property
    def confidence(self) -> float | None:
        """Of the interval; the target's, if it is left open."""
        named = self.args.get("confidence")
        return None if named is None else float(named)


def is_companion(node: exp.Expr) -> bool:
    """Whether a node shows something about an answer of the same SELECT."""
    return isinstance(node, exp.Anonymous) and node.name.upper() in COMPANIONS


def read_companion(node: exp.Expr) -> CompanionColumn:
    """A companion's name and arguments; the first argument is an alias, not a column.

    Raises
    ------
    UnsupportedSql
        If it is part of an expression, or names no answer.
    """
    name, arguments = node.name.upper(), node.expressions
    place = node.parent.parent if isinstance(node.parent, exp.Alias) else node.parent
    if not isinstance(place, exp.Select) or node.find_ancestor(exp.Ordered):
        raise unsupported(node, "is part of an expression", "Select it as a column of its own.")
    n_arguments_max = 1 + (name in _WITH_CONFIDENCE)
    named = arguments[0] if arguments else None
    if (
        not 1 <= len(arguments) <= n_arguments_max
        or not isinstance(named, exp.Column)
        or named.table
    ):
        raise unsupported(
            node,
            "needs the name of one answer",
            "Give the answer a name with AS, and write that name here.",
        )
    confidence = None
    if len(arguments) > 1:
        value = constant_value(arguments[1])
        if value is None or not 0 < value < 1:
            raise unsupported(node, "needs a confidence between 0 and 1", "A usual value is 0.95.")
        confidence = float(value)
    return CompanionColumn(
        this=name, answer=output_name(named.this), confidence=confidence, text=node.sql()
    )


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
    while isinstance(node, exp.Cast | exp.Filter | exp.WithinGroup | exp.Window):
        node = node.this.unnest()
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Case):
        return "case"
    if isinstance(node, exp.Func) and not isinstance(node, exp.Connector | exp.Binary):
        return _function_name(node)
    return "?column?"


def name_inner_columns(tree: exp.Expr, name_of: Callable[[exp.Expr], str] = column_name) -> None:
    """Write out the names that PostgreSQL gives to columns of subqueries in FROM and WITH.

    Only those are written that the tree asks for, since another engine may call them otherwise.

    >>> from sqlglot import parse_one
    >>> tree = parse_one('SELECT "max" FROM (SELECT MAX(a), MIN(a) FROM t) AS x', read="postgres")
    >>> name_inner_columns(tree)
    >>> tree.sql("postgres")
    'SELECT "max" FROM (SELECT MAX(a) AS "max", MIN(a) FROM t) AS x'
    """
    inner_queries = nodes_of(tree, exp.Subquery, exp.CTE)
    asked = {one.name for one in nodes_of(tree, exp.Column)} if inner_queries else set()
    for inner in inner_queries:
        if isinstance(inner, exp.Subquery) and not isinstance(inner.parent, exp.From | exp.Join):
            continue
        select: exp.Expr = inner.this
        while isinstance(select, exp.SetOperation | exp.Subquery):
            select = select.this
        if inner.alias_column_names or not isinstance(select, exp.Select):
            continue
        for item in list(select.expressions):
            if not isinstance(item, exp.Alias | exp.Column | exp.Star) and name_of(item) in asked:
                named = exp.alias_(item.copy(), name_of(item), quoted=True, copy=False)
                item.replace(named)


def _function_name(node: exp.Func) -> str:
    if type(node) in _OWN_NAMES:
        return _OWN_NAMES[type(node)]
    return node.name.lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()
