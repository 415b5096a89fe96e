"""Private rows restricted to groups that another answer chose: the five largest cities, say.

    SELECT year, city, COUNT(*) FROM customers
    JOIN (SELECT city AS c, COUNT(*) AS n FROM customers GROUP BY city ORDER BY n DESC LIMIT 5) AS s
    ON city = c GROUP BY year, city

    SELECT year, city, COUNT(*) FROM customers GROUP BY year, city
    HAVING city IN (SELECT c FROM (SELECT city AS c, ..) AS s)

The condition is on a group key, so it removes whole groups, and both answers are measured together:
counting every group costs what counting some of them does, since no record is in two. This changes
the tree alone. A condition on what is no group key would choose records by noisy answers; it is
refused later.
"""

from collections.abc import Callable, Sequence

from sqlglot import exp

from planner.lowering.summands import conjuncts
from planner.sql.messages import shown
from planner.sql.names import column_name
from planner.sql.nodes import aggregates_in

IsPublic = Callable[[exp.Query], bool]  # whether a query reads public tables alone


def filter_groups(select: exp.Select, is_public: IsPublic) -> list[str]:
    """Turn joins and IN with answered groups into conditions on groups; what these are on.

    Parameters
    ----------
    select : Select
        Aggregates private rows.
    is_public : callable
    """
    keys = [_plain(key) for key in _keys(select)]
    conditions = [*_joined(select, keys, is_public), *_listed(select, keys, is_public)]
    if not conditions:
        return []
    chosen = [shown((one.this if isinstance(one, exp.Not) else one).this) for one in conditions]
    having = select.args.get("having")
    own = [] if having is None else [exp.paren(having.this)]
    select.set("having", exp.Having(this=exp.and_(*own, *conditions)))
    return chosen


def _joined(select: exp.Select, keys: Sequence[str], is_public: IsPublic) -> list[exp.Expr]:
    """The conditions of joins with answered groups, which are taken out of FROM."""
    conditions = []
    for join in list(select.args.get("joins") or []):
        pairs = _pairs(join, is_public)
        if not pairs or not all(_plain(own) in keys for own, _ in pairs) or _is_read(select, join):
            continue
        chosen = exp.select(*(exp.column(name, quoted=True) for _, name in pairs)).from_(join.this)
        conditions.append(_is_among([own for own, _ in pairs], exp.Subquery(this=chosen)))
        join.pop()
    return conditions


def _listed(select: exp.Select, keys: Sequence[str], is_public: IsPublic) -> list[exp.Expr]:
    """The conditions of WHERE that a group key is among answered groups, taken out of it."""
    where = select.args.get("where")
    conditions = []
    for condition in [] if where is None else list(conjuncts(where.this)):
        listing = condition.this.unnest() if isinstance(condition, exp.Not) else condition
        query = listing.args.get("query") if isinstance(listing, exp.In) else None
        if query is None or _plain(listing.this) not in keys or is_public(query.unnest()):
            continue
        conditions.append(condition.copy())
        condition.replace(exp.true())
    return conditions


def _pairs(join: exp.Join, is_public: IsPublic) -> list[tuple[exp.Expr, str]]:
    """What each key of a join with answered groups must equal; none if it is no such join."""
    entry = join.this
    inner = entry.unnest()
    is_inner = not join.side and join.kind.upper() in ("", "INNER")
    if not (is_inner and isinstance(entry, exp.Subquery) and isinstance(inner, exp.Select)):
        return []
    names = {column_name(item).casefold(): item.unalias() for item in inner.expressions}
    group = [_plain(key) for key in _keys(inner)]
    if not aggregates_in(inner) or not group or is_public(inner):
        return []
    found = _equalities(join, entry.alias, names)
    equated = {_plain(names[name.casefold()]) for _, name in found}
    return found if equated == set(group) else []


def _equalities(
    join: exp.Join, alias: str, names: dict[str, exp.Expr]
) -> list[tuple[exp.Expr, str]]:
    """The expressions that columns of the entry are equal to; none if ON says anything else."""
    using = [exp.column(one.copy()) for one in join.args.get("using") or []]
    if using:
        return [(one, one.name) for one in using] if {u.name for u in using} <= set(names) else []
    on = join.args.get("on")
    found = []
    for condition in [] if on is None else conjuncts(on):
        sides = [condition.this, condition.expression] if isinstance(condition, exp.EQ) else []
        theirs = [_is_of(side, alias, names) for side in sides]
        if sum(theirs) != 1:
            return []
        key, own = sides if theirs[0] else reversed(sides)
        found.append((own.unnest(), key.unnest().name))
    return found


def _is_of(side: exp.Expr, alias: str, names: dict[str, exp.Expr]) -> bool:
    """Whether one side of an equality is a column of the joined entry."""
    column = side.unnest()
    if not isinstance(column, exp.Column) or column.name.casefold() not in names:
        return False
    return not column.table or column.table.casefold() == alias.casefold()


def _is_read(select: exp.Select, join: exp.Join) -> bool:
    """Whether anything but the join's own condition reads its columns."""
    theirs = {column_name(item) for item in join.this.unnest().expressions}
    keys = {_plain(one) for one in _keys(select)}
    values = [value for clause, value in select.args.items() if clause != "from_"]
    nodes = [node for value in values for node in (value if isinstance(value, list) else [value])]
    return any(
        column.table.casefold() == join.this.alias.casefold()
        or (not column.table and column.name in theirs and _plain(column) not in keys)
        for node in nodes
        if isinstance(node, exp.Expr) and node is not join
        for column in node.find_all(exp.Column)
    )


def _keys(select: exp.Select) -> list[exp.Expr]:
    """The entries of a plain GROUP BY, written out; none where it is not plain."""
    group = select.args.get("group")
    if group is None or {name for name, value in group.args.items() if value} != {"expressions"}:
        return []
    named = {column_name(item): item.unalias() for item in select.expressions}
    keys = []
    for entry in group.expressions:
        key = entry.unnest()
        if isinstance(key, exp.Literal) and key.name.isdecimal():
            place = int(key.name) - 1
            key = select.expressions[place].unalias() if place < len(select.expressions) else key
        elif isinstance(key, exp.Column) and not key.table:
            key = named.get(key.name, key)
        keys.append(key.unnest())
    return keys


def _plain(node: exp.Expr) -> str:
    """An expression as text, whatever table its columns are qualified with, and their case."""

    def named(one: exp.Expr) -> exp.Expr:
        if not isinstance(one, exp.Column) or not isinstance(one.this, exp.Identifier):
            return one
        return exp.column(one.name if one.this.quoted else one.name.lower(), quoted=True)

    return node.unnest().transform(named).sql()


def _is_among(own: Sequence[exp.Expr], query: exp.Subquery) -> exp.Expr:
    value = own[0] if len(own) == 1 else exp.Tuple(expressions=list(own))
    return exp.In(this=value, query=query)
