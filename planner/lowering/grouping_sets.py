"""ROLLUP, CUBE and GROUPING SETS expanded into the sets of keys that rows are grouped by."""

from itertools import combinations, product

from sqlglot import exp

from cube.refusals import TooLarge
from planner.sql.messages import unsupported
from planner.sql.names import is_companion
from planner.sql.nodes import aggregates

N_SETS_MAX = 64  # as many as CUBE of six columns makes


def name_every_key(select: exp.Select) -> None:
    """Replace GROUP BY ALL by what it stands for: the columns without an aggregate in them."""
    group = select.args.get("group")
    if group is None or not group.args.get("all"):
        return
    keys = [
        item.unalias().copy()
        for item in select.expressions
        if not aggregates(item) and item.find(exp.Column) and not is_companion(item.unalias())
    ]
    select.set("group", exp.Group(expressions=keys) if keys else None)


def order_by_every_item(select: exp.Select) -> None:
    """Replace ORDER BY ALL by what it stands for: the items of the list, from the left."""
    order = select.args.get("order")
    if order is None or len(order.expressions) != 1 or select.is_star:
        return
    (entry,) = order.expressions
    if not _is_word_all(entry.this):
        return
    ordered = []
    for place in range(1, len(select.expressions) + 1):
        one = entry.copy()
        one.set("this", exp.Literal.number(place))
        ordered.append(one)
    order.set("expressions", ordered)


def _is_word_all(node: exp.Expr) -> bool:
    """Whether it is the word ALL, which is no name of a column unless it is quoted."""
    if not isinstance(node, exp.Column) or node.table:
        return False
    return node.name.upper() == "ALL" and not node.this.quoted


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
            raise unsupported(group, "is more than a list", "Group by one list of expressions.")
        entries += value
    choices = [_sets(entry) for entry in entries]
    n_sets = 1
    for choice in choices:
        n_sets *= len(choice)
        if n_sets > N_SETS_MAX:
            raise TooLarge(
                f"GROUP BY makes more than {N_SETS_MAX} grouping sets.",
                hint="Ask for some of them at a time.",
            )
    return [[key for chosen in one for key in chosen] for one in product(*choices)]


def _sets(entry: exp.Expr) -> list[list[exp.Expr]]:
    entry = entry.unnest()
    if isinstance(entry, exp.Rollup | exp.Cube) and not entry.expressions:
        raise unsupported(
            entry, "follows the list, as in other dialects", "Say GROUP BY ROLLUP(a, b)."
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
                f"CUBE of {len(members)} makes more than {N_SETS_MAX} grouping sets.",
                hint="Name the sets you need in GROUPING SETS.",
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
