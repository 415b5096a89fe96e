"""Defines tree nodes that planning adds, and questions about trees that several passes ask."""

from typing import ClassVar, TypeVar

from sqlglot import exp

Node = TypeVar("Node", bound=exp.Expr)

_IS_OUTPUT = "is_output"
_COUNTS_UNITS, ALL, CUT = "counts_units", "all", "cut"
WAS_CUT = "WAS_CUT"  # the condition that rows of a unit were left out
AS_WRITTEN = "as_written"  # in the same: the analyst's text
WRITTEN_FOR = "written_for"  # in the meta data of a node written for DuckDB: the original node
IS_INSTANT = "is_instant"  # in the meta data of a timestamp of UTC that a client sent with a zone
IS_MADE = "is_made"  # in the same: of a series of constants, which planning wrote
IS_PUBLIC = "is_public"  # in the meta data of a public relation, and of a value read from one


class Held(exp.Expression):
    """A subquery inside an expression, out of the way until the expression is rewritten."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class Written(exp.Expression):
    """SQL for DuckDB: a template, and the parts that stand in it."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": False}


class PublicLookup(exp.Anonymous):
    """A column of a public table, looked up by its key: a function that only the planner writes."""


def children(node: exp.Expr) -> list[exp.Expr]:
    """The nodes directly in a node, in their order. Faster than a generator of them."""
    found: list[exp.Expr] = []
    for value in node.args.values():
        if isinstance(value, exp.Expr):
            found.append(value)
        elif value and isinstance(value, list):
            found += [one for one in value if isinstance(one, exp.Expr)]
    return found


def every_node(tree: exp.Expr) -> list[exp.Expr]:
    """All nodes of a tree as it is now, from the root down, level by level.

    The same as `children` of each, written out: a call for each node would double its time.
    """
    found = [tree]
    for node in found:  # which grows
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                found.append(value)
            elif value and isinstance(value, list):
                found += [one for one in value if isinstance(one, exp.Expr)]
    return found


def nodes_of(tree: exp.Expr, *kinds: type[Node]) -> list[Node]:
    """All nodes of some kinds in a tree as it is now, in the order of `every_node`.

    It takes two thirds of the time of `Expr.find_all`, and the tree may be changed meanwhile.
    """
    return [node for node in every_node(tree) if isinstance(node, kinds)]


def has_node(tree: exp.Expr, *kinds: type[exp.Expr]) -> bool:
    """Whether there is a node of some kinds in a tree."""
    return bool(nodes_of(tree, *kinds))


def copy_of(tree: Node) -> Node:
    """A copy of a tree, without a parent; what its meta data name is shared with the original.

    `Expr.copy` goes into the meta data, too, and takes three times as long.
    """
    root = type(tree)()
    left: list[tuple[exp.Expr, exp.Expr]] = [(tree, root)]
    for node, copy in left:  # which grows
        if node.meta:
            copy.meta.update(node.meta)
        if node.comments:
            copy.comments = list(node.comments)
        for name, value in node.args.items():
            if isinstance(value, exp.Expr):
                copy.args[name] = of_one = type(value)()
                of_one.parent, of_one.arg_key = copy, name
                left.append((value, of_one))
            elif isinstance(value, list):
                parts: list[object] = []
                copy.args[name] = parts
                for place, one in enumerate(value):
                    if isinstance(one, exp.Expr):
                        part = type(one)()
                        part.parent, part.arg_key, part.index = copy, name, place
                        left.append((one, part))
                        parts.append(part)
                    else:
                        parts.append(one)
            else:
                copy.args[name] = value
    return root


def outside_queries(tree: exp.Expr) -> list[exp.Expr]:
    """The nodes of a tree, each before what is in it; of the queries in it, their roots alone."""
    found, left = [], [tree]
    while left:
        node = left.pop()
        found.append(node)
        if not isinstance(node, exp.Query | exp.Subquery):
            left += reversed(children(node))
    return found


def is_put_in_zone(node: exp.Expr) -> bool:
    """Whether a node stands inside what AT TIME ZONE puts on a clock, or takes from one."""
    inner = node
    around = inner.parent
    while around is not None and not isinstance(around, exp.Query):
        if isinstance(around, exp.AtTimeZone) and around.this is inner:
            return True
        inner, around = around, around.parent
    return False


def output_reference(name: str) -> exp.Column:
    """A reference to a column of the SELECT list, which no pass resolves or rewrites."""
    column = exp.column(exp.to_identifier(name, quoted=True))
    column.meta[_IS_OUTPUT] = True
    return column


def is_output(node: exp.Expr) -> bool:
    """Whether a node was made by `output_reference`."""
    return bool(node.meta.get(_IS_OUTPUT))


def unit_count(unit: str, node: exp.Expr, *, only_cut: bool = False) -> exp.Count:
    """COUNT(DISTINCT unit) in the place of a node, where a unit may have several rows.

    With `only_cut`, only units count that had some of their rows left out.
    """
    key: exp.Expr = exp.column(exp.to_identifier(unit))
    if only_cut:
        was_cut = exp.Anonymous(this=WAS_CUT, expressions=[key.copy()])
        key = exp.Case(ifs=[exp.If(this=was_cut, true=key)])
    counted = exp.Count(this=exp.Distinct(expressions=[key]), big_int=True)
    counted.meta.update(node.meta)
    counted.meta[_COUNTS_UNITS] = CUT if only_cut else ALL
    return counted


def is_unit_count(node: exp.Expr) -> bool:
    """Whether a node was made by `unit_count`, or is that under a condition."""
    node = node.unnest()
    counted = node.this if isinstance(node, exp.Filter) else node
    return isinstance(counted, exp.Count) and bool(counted.meta.get(_COUNTS_UNITS))


def counts_cut_units(node: exp.Expr) -> bool:
    """Whether a count of units is only of units that had some of their rows left out."""
    node = node.unnest()
    counted = node.this if isinstance(node, exp.Filter) else node
    return bool(counted.meta.get(_COUNTS_UNITS) == CUT)


def aggregates_in(select: exp.Select) -> bool:
    """Whether a SELECT aggregates its rows: not counting subqueries, nor windows' own functions."""
    clauses = ("expressions", "having", "order", "qualify")
    return any(aggregates(node) for clause in clauses for node in _nodes(select.args.get(clause)))


def aggregates(node: exp.Expr) -> bool:
    """Whether there is an aggregate in a node: not counting subqueries, nor windows' functions."""
    if isinstance(node, exp.Query | exp.Subquery | Held):
        return False
    if isinstance(node, exp.Window):
        function = node.this
        inner = [arg for arg in node.args.items() if arg[0] != "this"]
        return any(map(aggregates, children(function))) or any(
            aggregates(n) for _, value in inner for n in _nodes(value)
        )
    if isinstance(node, exp.AggFunc | exp.WithinGroup) or is_quantile(node):
        return True
    return any(map(aggregates, children(node)))


def is_of_window(node: exp.Expr) -> bool:
    """Whether a node is the function of a window, or the filter on it."""
    above = node.parent
    if isinstance(above, exp.Filter) and node.arg_key == "this":
        return is_of_window(above)
    return isinstance(above, exp.Window | exp.IgnoreNulls | exp.RespectNulls) and (
        node.arg_key == "this"
    )


def is_quantile(node: exp.Expr) -> bool:
    """Whether a node is a quantile written as DuckDB does."""
    return isinstance(node, exp.Anonymous) and node.name.upper() in (
        "QUANTILE_CONT",
        "QUANTILE_DISC",
    )


def _nodes(value: object) -> list[exp.Expr]:
    if isinstance(value, exp.Expr):
        return [value]
    return [one for one in value if isinstance(one, exp.Expr)] if isinstance(value, list) else []
