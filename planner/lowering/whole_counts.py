"""Which columns of a result are counts of records, as a single aggregate shows them.

Such a column may be shown in whole numbers. It is followed through subqueries, WITH, UNION and `*`
that leave it as it is; whatever is computed from a count is no count.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from sqlglot import exp

from planner.domain.public import PublicRelation
from planner.lowering.answer_targets import counts_records
from planner.lowering.tables import column_names
from planner.sql.names import column_name
from planner.workload import ColumnKind, OutputColumn, Part

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
