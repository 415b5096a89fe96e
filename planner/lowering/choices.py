"""Choices among noisy answers: MAX and MIN, and the first rows in the order of answers.

What is chosen because it is large was made too large by noise more often than too small, and its
interval, which is right for a row that was named beforehand, misses the truth more often.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from sqlglot import exp

from planner.domain.public import OWN_PREFIX
from planner.lowering.parts import PartBuilder
from planner.sql.messages import shortened
from planner.sql.nodes import has_node, nodes_of
from planner.workload import PICKED, ColumnKind, Pick

_NOISY: Final = (ColumnKind.ANSWER, ColumnKind.ESTIMATE)
_BESIDE: Final = ("joins", "where", "group", "having", "distinct", "qualify", "with_")


def chosen_among(tree: exp.Query, pick: Pick | None) -> Iterator[str]:
    """What is said of a statement that shows the largest, or the first, of noisy answers.

    Parameters
    ----------
    tree : Query
        Around the parts.
    pick : Pick, optional
        Of which more is said once the answers are there.
    """
    for item in tree.expressions if isinstance(tree, exp.Select) else ():
        if has_node(item, exp.Max, exp.Min, exp.ArgMax, exp.ArgMin):
            yield (
                f"{shortened(item.alias)} picks among noisy answers: where the intervals of groups "
                "overlap, another group may be first, and the largest of many tends to be too "
                "large, the smallest too small."
            )
    if pick is None and _is_picked(tree):
        yield PICKED


def pick_of(tree: exp.Query, parts: Sequence[PartBuilder]) -> Pick | None:
    """The rows that a statement picks of its only part, by one of its answers.

    None if it picks in another way, which only `chosen_among` tells.
    """
    if not isinstance(tree, exp.Select) or len(parts) != 1 or any(map(tree.args.get, _BESIDE)):
        return None
    origin, limit, offset = (tree.args.get(name) for name in ("from_", "limit", "offset"))
    order = tree.args.get("order")
    if order is None or limit is None or origin is None or origin.this.name != parts[0].name:
        return None
    first = order.expressions[0]
    column = _key(tree, first)
    counts = [one.expression.name for one in (limit, offset) if one is not None]
    if not isinstance(column, exp.Column) or not all(map(str.isdecimal, counts)):
        return None
    if not column.name.startswith(OWN_PREFIX):
        return None
    shown = parts[0].shows(column)
    if shown.kind not in _NOISY:
        return None
    n_rows, n_before = (*map(int, counts), 0)[:2]
    is_descending = bool(first.args.get("desc"))
    nulls = first.args.get("nulls_first")
    is_null_first = is_descending if nulls is None else bool(nulls)
    return Pick(shown, n_rows, n_before, is_descending, is_null_first)


def _is_picked(tree: exp.Query) -> bool:
    """Whether some SELECT shows the first rows alone, in an order of noisy answers."""
    selects = nodes_of(tree, exp.Select)
    items = {item.alias: item.unalias() for one in selects for item in one.expressions}
    return any(
        _is_noisy(_key(one, first), items)
        for one in selects
        if one.args.get("limit") is not None and one.args.get("order") is not None
        for first in one.args["order"].expressions
    )


def _key(select: exp.Select, ordered: exp.Expr) -> exp.Expr:
    """What a SELECT is ordered by, if it is one of its items: by its place or its name."""
    key: exp.Expr = ordered.this.unnest()
    items = select.expressions
    if isinstance(key, exp.Literal) and key.name.isdecimal():
        place = int(key.name) - 1
        key = items[place].unalias() if place < len(items) else key
    elif isinstance(key, exp.Column):
        named = {item.alias: item.unalias() for item in items}
        key = named.get(key.name, key)
    return key


def _is_noisy(key: exp.Expr, items: dict[str, exp.Expr], depth: int = 8) -> bool:
    """Whether a key is computed from answers, perhaps under names of inner SELECTs."""
    for column in nodes_of(key, exp.Column):
        if any(column.name.startswith(f"{OWN_PREFIX}{kind.value}_") for kind in _NOISY):
            return True
        meant = items.get(column.name)
        if depth and meant is not None and meant is not key and _is_noisy(meant, items, depth - 1):
            return True
    return False
