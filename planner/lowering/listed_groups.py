"""Lowers SELECTs that list groups, and conditions by which an answer chooses groups.

Such a SELECT lists groups without asking for their records; another may count the listed groups.

    SELECT DISTINCT city FROM customers
    SELECT COUNT(*) FROM (SELECT DISTINCT city, plan FROM customers) AS x

The list is of the groups that the public levels allow: it is free, and says nothing of the rows. A
count of it would pass for a number of values that occur. So such a count is read off the rows
instead, as COUNT(DISTINCT (city, plan)) is (`level_summaries.py`): what is counted are rows that
differ, NULL among them. What reads a list in another way has a note (`split.py`).

Private rows restricted to groups that another answer chose: the five largest cities, say.

    SELECT year, city, COUNT(*) FROM customers
    JOIN (SELECT city AS c, COUNT(*) AS n FROM customers GROUP BY city ORDER BY n DESC LIMIT 5) AS s
    ON city = c GROUP BY year, city

    SELECT year, city, COUNT(*) FROM customers GROUP BY year, city
    HAVING city IN (SELECT c FROM (SELECT city AS c, ..) AS s)

The condition is on a group key, so it removes whole groups, and both answers are measured together:
counting every group costs what counting some of them does, since no record is in two. This changes
the tree alone. A condition on what is no group key would choose records by noisy answers; it is
refused later.

ROLLUP, CUBE and GROUPING SETS expanded into the sets of keys that rows are grouped by.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from sqlglot import exp

from cube.refusals import TooLarge
from planner.lowering.rows import Rows
from planner.lowering.summands import conjuncts
from planner.sql import (
    AS_WRITTEN,
    Held,
    aggregates_in,
    column_name,
    constant_value,
    copy_of,
    is_of_window,
    origin,
    shown,
    unsupported,
)

N_SETS_MAX = 64  # grouping sets: as many as CUBE of six columns makes
_KEY = "tacit_listed_{}"  # a key of the list that it does not show
_PASSED_ON = {"expressions", "from_", "where", "order"}  # clauses that leave a list a list
_SAME_OVER_ROWS = (exp.Min, exp.Max, exp.ApproxDistinct, exp.Mode)


@dataclass(frozen=True, slots=True)
class ListedGroups:
    """The rows whose distinct values a SELECT lists.

    Parameters
    ----------
    rows : Rows
        Its columns are those of the list, and keys that the list does not show.
    keys : tuple of str
        The columns that tell the groups apart.
    """

    rows: Rows
    keys: tuple[str, ...]


def listed_groups(
    select: exp.Select,
    rows: Rows,
    names: Sequence[str],
    keys: Sequence[exp.Expr],
    n_groups: int,
) -> ListedGroups | None:
    """What a SELECT with resolved names and keys lists; None if it does more than that.

    Parameters
    ----------
    select : Select
    rows : Rows
        The rows that it groups, with all of its conditions.
    names : sequence of str
        The names of its columns.
    keys : sequence of Expr
        What tells its rows apart: its group keys, or its columns if it is a SELECT DISTINCT.
    n_groups : int
        The number of groups that the public levels allow.
    """
    group = select.args.get("group")
    is_plain = group is None or {name for name, one in group.args.items() if one} == {"expressions"}
    others = [select.args.get(clause) for clause in ("having", "qualify", "offset", "windows")]
    if (
        aggregates_in(select)
        or not is_plain
        or any(others)
        or not _is_whole(select.args.get("limit"), n_groups)
        or len(set(names)) < len(names)
    ):
        return None
    columns = {name: item.unalias() for item, name in zip(select.expressions, names, strict=True)}
    if any(one.find(exp.Query, exp.Window, exp.Star, Held) for one in columns.values()):
        return None
    chosen: list[str] = []
    for place, key in enumerate(keys):
        if key.find(exp.Column) is None:
            continue  # the same for all
        shown_as = next((name for name, one in columns.items() if one.unnest() == key.unnest()), "")
        name = shown_as or _KEY.format(place)
        columns[name] = key
        chosen.append(name)
    copied = {name: copy_of(one) for name, one in columns.items()}
    return ListedGroups(rows.showing(copied, rows.conditions), tuple(chosen)) if chosen else None


def passed_on(select: exp.Select, listed: ListedGroups) -> ListedGroups | None:
    """What a SELECT around a list lists, if it only filters it, and shows the columns by name."""
    clauses = {clause for clause, value in select.args.items() if value}
    rows = listed.rows
    where = select.args.get("where")
    inside = [*select.expressions, *([] if where is None else [where])]
    if not clauses <= _PASSED_ON or any(one.find(exp.Query, exp.Window) for one in inside):
        return None
    meanings = dict(rows.every_column())
    columns: dict[str, exp.Expr] = {}
    for item in select.expressions:
        if item.is_star and isinstance(item, exp.Star | exp.Column):
            columns |= meanings
        elif isinstance(item.unalias(), exp.Column) and rows.has(item.unalias()):
            columns[column_name(item)] = rows.meaning(item.unalias())
        else:
            return None
    hidden = {key: meanings[key] for key in listed.keys}
    keys = []
    for key, meaning in hidden.items():
        name = next((name for name, one in columns.items() if one == meaning), None)
        if name is None:
            name = key if key.startswith(_KEY.format("")) else _KEY.format(key)
            columns[name] = meaning
        keys.append(name)
    conditions = rows.conditions
    if where is not None:
        conditions = (*conditions, *conjuncts(rows.resolved(copy_of(where.this))))
    return ListedGroups(rows.showing(columns, conditions), tuple(keys))


def count_of_list(select: exp.Select, listed: ListedGroups) -> bool:
    """Let the counts of a SELECT over a list be of the rows that differ; False if it has none.

    Raises
    ------
    UnsupportedSql
        If it has counts beside an aggregate that is only over the listed groups.
    """
    every = list(_aggregates(select))
    counts = [one for one in every if isinstance(one, exp.Count | exp.CountIf | exp.ApproxDistinct)]
    sums = [one for one in every if isinstance(one, exp.Sum) and _is_of_key(one, listed)]
    if not (counts or sums) or any(node.find(exp.Window) for node in _clauses(select)):
        return False
    keys = _counted_keys(select, listed)
    for one in every:
        if isinstance(one, exp.Count):
            _count(one, keys)
        elif isinstance(one, exp.CountIf):
            _filtered(one, _all_of(keys), one.this)
        elif one in sums:
            if not isinstance(one.this, exp.Distinct):
                one.set("this", exp.Distinct(expressions=[one.this]))
        elif not isinstance(one, _SAME_OVER_ROWS):
            raise unsupported(
                one,
                "aggregates all groups that the public levels allow, next to a count of groups "
                "that have records",
                "Use COUNT(DISTINCT x) and SUM(DISTINCT x) over the table itself, or ask for "
                "this alone.",
            )
    return True


def _is_whole(limit: exp.Expr | None, n_groups: int) -> bool:
    """Whether a LIMIT leaves nothing out."""
    if limit is None:
        return True
    number = constant_value(limit.expression) if isinstance(limit, exp.Limit) else None
    return number is not None and number >= n_groups


def _aggregates(select: exp.Select) -> Iterator[exp.Expr]:
    for node in _clauses(select):
        for one in list(node.find_all(exp.AggFunc)):
            inside = one.find_ancestor(exp.Query)
            if inside is select and not is_of_window(one):
                yield one


def _clauses(select: exp.Select) -> Iterator[exp.Expr]:
    for clause in ("expressions", "having", "order", "qualify"):
        value = select.args.get(clause)
        yield from value if isinstance(value, list) else [] if value is None else [value]


def _counted_keys(select: exp.Select, listed: ListedGroups) -> list[str]:
    """The keys that may differ inside a group of the SELECT; all of them, if none does."""
    group = select.args.get("group")
    fixed = {
        listed.rows.column_name(key)
        for key in ([] if group is None else group.expressions)
        if isinstance(key, exp.Column)
    }
    sets = group is not None and any(
        value for name, value in group.args.items() if name != "expressions"
    )
    return [key for key in listed.keys if sets or key not in fixed] or list(listed.keys)


def _is_of_key(total: exp.Sum, listed: ListedGroups) -> bool:
    """Whether a sum is of distinct values, or of the only key."""
    value = total.this.unnest()
    if isinstance(value, exp.Distinct):
        return True
    is_column = isinstance(value, exp.Column)
    return is_column and [listed.rows.column_name(value)] == list(listed.keys)


def _all_of(keys: Sequence[str]) -> exp.Count:
    columns = [exp.column(exp.to_identifier(key, quoted=True)) for key in keys]
    rows = exp.Tuple(expressions=columns)
    return exp.Count(this=exp.Distinct(expressions=[rows]), big_int=True)


def _count(count: exp.Count, keys: Sequence[str]) -> None:
    value = count.this
    if isinstance(value, exp.Distinct):
        return
    if isinstance(value, exp.Star) or constant_value(value) is not None:
        _filtered(count, _all_of(keys), None)
    else:
        known = exp.Not(this=exp.Is(this=exp.paren(copy_of(value)), expression=exp.null()))
        _filtered(count, _all_of(keys), known)


def _filtered(node: exp.Expr, count: exp.Count, condition: exp.Expr | None) -> None:
    """Put a count in the place of a node, under a condition."""
    count.meta.update({AS_WRITTEN: shown(node), **origin(node)})
    above = node.parent
    if condition is None:
        node.replace(count)
    elif isinstance(above, exp.Filter):
        own = above.expression
        own.set("this", exp.and_(own.this, condition))
        node.replace(count)
    else:
        where = exp.Where(this=copy_of(condition))
        node.replace(exp.Filter(this=count, expression=where))


def renamed(listed: ListedGroups, alias: str, columns: Sequence[str]) -> ListedGroups:
    """A list under a name in FROM, which may name its columns."""
    rows = listed.rows.renamed(alias, list(columns))
    names = dict(
        zip((n for n, _ in listed.rows.every_column()), rows.sources[0].columns, strict=True)
    )
    return replace(listed, rows=rows, keys=tuple(names[key] for key in listed.keys))


IsPublic = Callable[[exp.Query], bool]  # whether a query reads public tables alone


def filter_groups(select: exp.Select, is_public: IsPublic) -> list[str]:
    """Turn joins and IN with answered groups into conditions on groups; what these are on.

    Parameters
    ----------
    select : Select
        A SELECT that aggregates private rows.
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


def grouping_sets(group: exp.Group) -> list[list[exp.Expr]]:
    """The keys of each grouping set; plain entries are in every one.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("SELECT 1 FROM t GROUP BY a, ROLLUP(b, c)", dialect="postgres")
    >>> [[key.name for key in keys] for keys in grouping_sets(tree.args["group"])]
    [['a', 'b', 'c'], ['a', 'b'], ['a']]

    Raises
    ------
    TooLarge
        If there are more than `N_SETS_MAX`.
    """
    entries = list(group.expressions)
    for clause, value in group.args.items():
        if clause == "expressions" or value is None or value == []:
            continue
        if clause not in ("rollup", "cube", "grouping_sets"):
            raise unsupported(
                group, "has an unsupported clause", "Group by one list of expressions."
            )
        entries += value
    choices = [_sets(entry) for entry in entries]
    n_sets = 1
    for choice in choices:
        n_sets *= len(choice)
        if n_sets > N_SETS_MAX:
            raise TooLarge(
                f"GROUP BY makes more than {N_SETS_MAX} grouping sets.",
                hint="Ask for some of the grouping sets at a time.",
            )
    return [[key for chosen in one for key in chosen] for one in product(*choices)]


def _sets(entry: exp.Expr) -> list[list[exp.Expr]]:
    entry = entry.unnest()
    if isinstance(entry, exp.Rollup | exp.Cube) and not entry.expressions:
        raise unsupported(
            entry,
            "comes after the list, which is the syntax of another dialect",
            "Use GROUP BY ROLLUP(a, b).",
        )
    if isinstance(entry, exp.Rollup):
        members = [_members(member) for member in entry.expressions]
        return [
            [key for member in members[:length] for key in member]
            for length in range(len(members), -1, -1)
        ]
    if isinstance(entry, exp.Cube):
        members = [_members(member) for member in entry.expressions]
        if 2 ** len(members) > N_SETS_MAX:
            raise TooLarge(
                f"CUBE of {len(members)} columns makes more than {N_SETS_MAX} grouping sets.",
                hint="Write the sets you need in GROUPING SETS.",
            )
        return [
            [key for member in chosen for key in member]
            for length in range(len(members), -1, -1)
            for chosen in combinations(members, length)
        ]
    if isinstance(entry, exp.GroupingSets):
        return [
            chosen
            for member in entry.expressions
            for chosen in (
                _sets(member)
                if isinstance(member, exp.Rollup | exp.Cube | exp.GroupingSets)
                else [_members(member)]
            )
        ]
    return [_members(entry)]


def _members(entry: exp.Expr) -> list[exp.Expr]:
    """The keys of one entry: several in parentheses count as one."""
    entry = entry.unnest()
    if isinstance(entry, exp.Tuple):
        return [key.unnest() for key in entry.expressions]
    return [entry]
