"""Derives from a statement alone what its result needs: probes, counts of records, notes.

Statements by which clients only learn the columns of a result: results without rows.

``LIMIT 0`` and ``WHERE 1 = 0`` around private rows have a typed, empty answer, which is public.

Which columns of a result are counts of records, as a single aggregate shows them.

Such a column may be shown in whole numbers. It is followed through subqueries, WITH, UNION and `*`
that leave it as it is; whatever is computed from a count is no count.

Choices among noisy answers: MAX and MIN, and the first rows in the order of answers.

What is chosen because it is large was made too large by noise more often than too small, and its
interval, which is right for a row that was named beforehand, misses the truth more often.

Claims about answers of several SELECTs, which become relations of one row.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final, TypeAlias

from sqlglot import exp

from cube.refusals import UnsupportedSql
from planner.decision import SubqueryClaim
from planner.domain import OWN_PREFIX, PublicRelation
from planner.lowering.linear import counts_records
from planner.lowering.outer import outer_sql
from planner.lowering.parts import PartBuilder
from planner.lowering.rows import Rows
from planner.lowering.summands import conjuncts
from planner.lowering.tables import column_names
from planner.meaning import ANSWER
from planner.sql import (
    aggregates_in,
    claimed_condition,
    column_name,
    constant_value,
    has_node,
    is_probability,
    nodes_of,
    position,
    shortened,
)
from planner.workload import PICKED, ColumnKind, OutputColumn, Part, Pick

_COMPARISONS: dict[type[exp.Expr], Callable[[Fraction, Fraction], bool]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.GT: operator.gt,
}


def is_probe(select: exp.Query) -> bool:
    """Whether a SELECT has no rows, by its own text: LIMIT 0, or a WHERE that is plainly false."""
    if has_limit_zero(select):
        return True
    where = select.args.get("where")
    return where is not None and any(map(_is_false, conjuncts(where.this)))


def gives_no_rows(query: exp.Query) -> bool:
    """Whether a statement's result has no rows, by its own text."""
    if has_limit_zero(query):
        return True
    if not (isinstance(query, exp.Select) and is_probe(query)):
        return False
    return not (query.args.get("group") or query.args.get("having") or aggregates_in(query))


def has_limit_zero(query: exp.Query) -> bool:
    """Whether a query has LIMIT 0."""
    limit = query.args.get("limit")
    if not isinstance(limit, exp.Limit) or limit.expression is None:
        return False
    return constant_value(limit.expression) == 0


def shown_columns(item: exp.Expr, rows: Rows) -> Iterator[tuple[str, exp.Expr]]:
    """Names and meanings of the columns of private rows that an item of a SELECT list shows."""
    if isinstance(item, exp.Star):
        yield from rows.every_column()
    elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        yield from rows.every_column(item.table)
    else:
        yield column_name(item), rows.resolved(item.unalias())


def empty_rows(select: exp.Select, rows: Rows) -> exp.Select:
    """A SELECT of no rows with the columns that `select` has."""
    columns = []
    for item in select.expressions:
        for name, meaning in shown_columns(item, rows):
            kind = exp.DType.DOUBLE
            if isinstance(meaning.unnest(), exp.Column):
                sql_type = rows.schema.by_name[meaning.unnest().name].sql_type
                kind = exp.DType[sql_type]
            columns.append(exp.alias_(exp.cast(exp.null(), kind), name, quoted=True))
    return exp.select(*columns).where(exp.false())


def _is_false(condition: exp.Expr) -> bool:
    condition = condition.unnest()
    if isinstance(condition, exp.Boolean):
        return not condition.this
    compare = _COMPARISONS.get(type(condition))
    if compare is None:
        return False
    one, other = constant_value(condition.this), constant_value(condition.expression)
    return one is not None and other is not None and not compare(one, other)


Columns: TypeAlias = Sequence[tuple[str, bool]]  # names, and whether they are counts

# Parts of a star that show something else than every column.
_OF_A_STAR = ("except_", "replace", "rename", "ilike")


class CountColumns:
    """Follows the counts of one statement, which `Splitter` has cut at its aggregates.

    Parameters
    ----------
    parts : sequence of Part
    public : mapping
        Public and synthetic tables by their names in the outer SQL.
    """

    def __init__(self, parts: Sequence[Part], public: Mapping[str, PublicRelation]) -> None:
        self._of_parts = {
            column.name: is_count(part, column) for part in parts for column in part.columns
        }
        self._public = public

    def places(self, tree: exp.Query) -> tuple[int, ...]:
        """The positions of counts in the result; none if a `*` shows what is not known here."""
        shown = self._shown(tree, {}) or ()
        return tuple(place for place, (_, is_count) in enumerate(shown) if is_count)

    def _shown(self, query: exp.Expr, names: Mapping[str, Columns | None]) -> Columns | None:
        """The columns of a query; None if they are not known."""
        query = query.unnest()
        clause = query.args.get("with_")
        for cte in [] if clause is None else clause.expressions:
            inner = self._shown(cte.this, names)
            names = {**names, cte.alias.casefold(): _renamed(inner, cte.args.get("alias"))}
        if isinstance(query, exp.SetOperation):
            left, right = (self._shown(side, names) for side in (query.left, query.right))
            if left is None or right is None or len(left) != len(right):
                return None
            pairs = zip(left, right, strict=True)
            return [(name, is_count and also) for (name, is_count), (_, also) in pairs]
        if not isinstance(query, exp.Select):
            return None
        return self._items(query, names)

    def _items(self, select: exp.Select, names: Mapping[str, Columns | None]) -> Columns | None:
        entries = list(self._entries(select, names))
        shown: list[tuple[str, bool]] = []
        for item in select.expressions:
            column = item.unalias()
            qualifier = column.table.casefold() if isinstance(column, exp.Column) else ""
            seen = [columns for name, columns in entries if qualifier in ("", name)]
            if column.is_star:  # COUNT(*) has a star in it, and is none
                star = column.this if isinstance(column, exp.Column) else column
                is_whole = not any(star.args.get(part) for part in _OF_A_STAR)
                if None in seen or len(entries) != 1 or not is_whole:
                    return None
                shown += [one for columns in seen for one in columns or ()]
            else:
                shown.append((column_name(item), self._is_count(column, seen)))
        return shown

    def _is_count(self, column: exp.Expr, seen: Sequence[Columns | None]) -> bool:
        if not isinstance(column, exp.Column):
            return False
        known = self._of_parts.get(column.name)
        if known is not None:
            return known
        wanted = column.name.casefold()
        found = [
            is_count for one in seen for name, is_count in one or () if name.casefold() == wanted
        ]
        return found == [True]

    def _entries(
        self, select: exp.Select, names: Mapping[str, Columns | None]
    ) -> Iterator[tuple[str, Columns | None]]:
        """What FROM shows: the name and the columns of each entry."""
        origin, joins = select.args.get("from_"), select.args.get("joins") or []
        for entry in [] if origin is None else [origin.this, *(join.this for join in joins)]:
            columns: Columns | None = None
            if isinstance(entry, exp.Subquery):
                columns = self._shown(entry.this, names)
            elif isinstance(entry, exp.Table) and entry.name in self._public:
                columns = [(name, False) for name in self._public[entry.name].columns]
            elif isinstance(entry, exp.Table):
                columns = names.get(entry.name.casefold())
            yield entry.alias_or_name.casefold(), _renamed(columns, entry.args.get("alias"))


def is_count(part: Part, column: OutputColumn) -> bool:
    """Whether a column of a part's relation shows a whole number of records."""
    if column.kind is ColumnKind.ESTIMATE:
        place = column.index
    elif column.kind is ColumnKind.ANSWER and part.answers[column.index].formula is None:
        (place,) = part.answers[column.index].uses
    else:
        return False
    queries = [block.query for block in part.aggregates[place].blocks]
    are_whole = all(term.scale.denominator == 1 for query in queries for term in query.terms)
    return are_whole and all(map(counts_records, queries))


def with_rounded_counts(part: Part) -> Part:
    """The part with its counts marked, whose intervals are to contain the whole numbers shown."""
    counts = {
        column.index
        for column in part.columns
        if column.kind is ColumnKind.ANSWER and is_count(part, column)
    }
    answers = (replace(one, is_rounded=place in counts) for place, one in enumerate(part.answers))
    return replace(part, answers=tuple(answers))


def _renamed(columns: Columns | None, alias: exp.Expr | None) -> Columns | None:
    """The columns under the names that an alias such as t(a, b) gives the first of them."""
    if columns is None:
        return None
    given = column_names(alias)
    return [
        (given[place] if place < len(given) else name, is_count)
        for place, (name, is_count) in enumerate(columns)
    ]


_NOISY: Final = (ColumnKind.ANSWER, ColumnKind.ESTIMATE)
_BESIDE: Final = ("joins", "where", "group", "having", "distinct", "qualify", "with_")


def chosen_among(tree: exp.Query, pick: Pick | None) -> Iterator[str]:
    """What is said about a statement that shows the largest, or the first, of noisy answers.

    Parameters
    ----------
    tree : Query
        The query around the parts.
    pick : Pick, optional
        Of which more is said once the answers are there.
    """
    for item in tree.expressions if isinstance(tree, exp.Select) else ():
        if has_node(item, exp.Max, exp.Min, exp.ArgMax, exp.ArgMin):
            yield (
                f"{shortened(item.alias)} picks among noisy answers. Where the intervals of "
                "groups overlap, the true order may differ. The largest of many noisy answers "
                "tends to be too large, and the smallest too small."
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
    shows_certainty = bool(parts[0].requested.certainty)
    return Pick(shown, n_rows, n_before, is_descending, is_null_first, shows_certainty)


CLAIM_TYPES: Final = {"p": ANSWER}


def claims_of_subqueries(
    select: exp.Select, parts: Sequence[PartBuilder], n_before: int
) -> list[SubqueryClaim]:
    """The claims of a SELECT about answers of its subqueries, which are read off relations then.

    Parameters
    ----------
    n_before : int
        How many claims of the statement came before.

    Raises
    ------
    UnsupportedSql
        If a subquery is not one answer in one row. If several read one table and one of them is a
        formula: formulas have a joint law only within a SELECT.
    """
    found: list[SubqueryClaim] = []
    by_name = {part.name: part for part in parts}
    for call in nodes_of(select, exp.Anonymous):
        if not is_probability(call) or not nodes_of(call, exp.Subquery):
            continue
        answers: list[tuple[str, int]] = []
        condition = claimed_condition(call)
        for place, subquery in enumerate(nodes_of(condition, exp.Subquery)):
            answers.append(_answer_of(call, subquery, by_name))
            subquery.replace(exp.column(f"d{place}"))
        _check_joint(call, answers, by_name)
        name = f"{OWN_PREFIX}claim_{n_before + len(found)}"
        one, none = exp.Literal.number("1.0"), exp.Literal.number("0.0")
        holds = exp.Case(ifs=[exp.If(this=condition, true=one)], default=none)
        share = exp.select(exp.alias_(exp.Avg(this=holds), "p")).from_("draws")
        types = {f"d{place}": ANSWER for place in range(len(answers))}
        sql, _ = outer_sql(share, lambda _, types=types: types)  # type: ignore[misc]  # bound
        found.append(SubqueryClaim(name, tuple(answers), sql))
        read = exp.select("p").from_(exp.to_identifier(name, quoted=True))
        call.replace(exp.Subquery(this=read))
    return found


def _answer_of(
    call: exp.Expr, subquery: exp.Subquery, parts: Mapping[str, PartBuilder]
) -> tuple[str, int]:
    """The part and the place of the only answer of a subquery."""
    inner = subquery.this
    clauses = {clause for clause, value in inner.args.items() if value}
    if isinstance(inner, exp.Select) and clauses <= {"expressions", "from_"}:
        (item, *others), origin = inner.expressions, inner.args.get("from_")
        part = None if origin is None else parts.get(origin.this.name)
        column = item.unalias()
        if part is not None and part.n_rows == 1 and not (others or part.keys):
            shown = part.shows(column) if isinstance(column, exp.Column) else None
            if shown is not None and shown.kind is ColumnKind.ANSWER:
                return part.name, shown.index
    raise UnsupportedSql(
        "DP_PROBABILITY compares a subquery that is not one answer in one row.",
        hint="Compare subqueries such as (SELECT COUNT(*) FROM t WHERE ..).",
        position=position(call),
    )


def _check_joint(
    call: exp.Expr, answers: Sequence[tuple[str, int]], parts: Mapping[str, PartBuilder]
) -> None:
    tables = [parts[name].rows.table for name, _ in answers]
    for table, (name, place) in zip(tables, answers, strict=True):
        if tables.count(table) > 1 and parts[name].is_formula(place):
            raise UnsupportedSql(
                f"DP_PROBABILITY compares subqueries of {table}, and one of them is a formula.",
                hint="Ask in one SELECT, as in DP_PROBABILITY(AVG(a) FILTER (WHERE b) > AVG(a)).",
                position=position(call),
            )


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
