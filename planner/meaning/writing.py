"""Finds the type of each expression and writes DuckDB's SQL for it, in one pass over a tree.

`written_expression` is for a scalar expression, whose columns somebody resolves; `written_query`
for a whole query, whose SELECTs are passed through from the inside, with the columns of FROM. For
an unknown column, DuckDB decides what its operators mean.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from planner.meaning.casts import finer
from planner.meaning.made import check_printed
from planner.meaning.table import MEANINGS
from planner.meaning.types import (
    ANSWER,
    INT8,
    LITERAL,
    OTHER,
    REAL,
    TEXT,
    UNKNOWN,
    Kind,
    SqlType,
    common_type,
)
from planner.meaning.written import DUCKDB, Call, Value, written
from planner.sql import PublicLookup, copy_of, outside_queries

ResolveColumn: TypeAlias = Callable[[exp.Expr], Value]
"""What stands for a column, or a looked-up one, and its type."""
RelationTypes: TypeAlias = Callable[[exp.Table], Mapping[str, SqlType]]
"""The types of a relation's columns, by their names in lower case."""

_SAME: Final = (exp.Min, exp.Max, exp.AnyValue, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)
_AROUND: Final = (exp.Filter, exp.Window, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
_COUNTS: Final = (exp.Count, exp.CountIf, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile)
_TEXTS: Final = (exp.GroupConcat,)


def duckdb_sql(tree: exp.Expr) -> str:
    """A written tree in DuckDB's dialect.

    Raises
    ------
    sqlglot.errors.UnsupportedError
    TooLarge
        If the text would be too long: a template may have a part several times.
    """
    check_printed(tree)
    return tree.sql(dialect=DUCKDB, unsupported_level=ErrorLevel.RAISE, comments=False, copy=False)


def written_expression(expression: exp.Expr, resolve: ResolveColumn) -> Value:
    """A copy of an expression as DuckDB has it, and its type.

    Parameters
    ----------
    expression : Expr
        A scalar expression; all of its nodes are allowed.
    resolve : callable

    Raises
    ------
    UnsupportedSql
        If something in it cannot be computed as PostgreSQL does.
    """
    around = exp.Paren(this=copy_of(expression))
    writer = _Writer(resolve)
    writer.write(around.this)
    return Value(around.this, writer.type_of(around.this))


def written_query(query: exp.Query, relations: RelationTypes) -> exp.Query:
    """A copy of a query as DuckDB has it.

    Parameters
    ----------
    query : Query
        A query; all of its nodes are allowed.
    relations : callable

    Raises
    ------
    UnsupportedSql
    """
    copied = copy_of(query)
    _Queries(relations).query(copied, _Scope())
    return copied


class _Writer:
    """Writes scalar expressions in place, inner nodes first."""

    def __init__(self, resolve: ResolveColumn) -> None:
        self._resolve = resolve
        self._types: dict[int, tuple[exp.Expr, SqlType]] = {}

    def type_of(self, node: exp.Expr) -> SqlType:
        """The type of a node that was passed; UNKNOWN of any other."""
        found = self._types.get(id(node))
        return UNKNOWN if found is None else found[1]

    def set_type(self, node: exp.Expr, found: SqlType) -> None:
        """Tell the type of a node that is not passed."""
        self._types[id(node)] = (node, found)

    def write(self, root: exp.Expr) -> None:
        """Write a tree, without the queries inside it."""
        self.write_each(outside_queries(root))

    def write_each(self, nodes: Sequence[exp.Expr]) -> None:
        """Write the nodes of a tree, outer ones first, without the queries among them."""
        for node in reversed(nodes):
            if _is_query(node):
                continue
            value = self._written(node)
            if value is None:
                continue
            self.set_type(value.node, value.type)
            if value.node is not node:
                node.replace(value.node)

    def _written(self, node: exp.Expr) -> Value | None:
        kind = type(node)
        if kind is exp.Identifier:
            return None
        if kind is exp.Column or kind is PublicLookup:
            return self._resolve(node)
        if kind is exp.Null:
            return Value(node, LITERAL)
        meaning = MEANINGS.get(kind)
        if meaning is not None:
            return meaning.write(Call(node, self.type_of))
        found = self._of_others(node)
        return None if found is None else Value(node, found)

    def _of_others(self, node: exp.Expr) -> SqlType | None:
        """The types of aggregates and windows, which are DuckDB's own."""
        if isinstance(node, (*_SAME, *_AROUND)):
            return self.type_of(node.this)
        if isinstance(node, _COUNTS):
            return INT8
        if isinstance(node, exp.Sum):
            inner = self.type_of(node.this)
            return SqlType(Kind.NUMERIC, 0, 0) if inner.is_integer else inner
        if isinstance(node, exp.Avg | exp.Median | exp.PercentRank | exp.CumeDist):
            inner = self.type_of(node.this) if isinstance(node.this, exp.Expr) else REAL
            return ANSWER if inner.is_answer else REAL
        if isinstance(node, _TEXTS):
            return TEXT
        return OTHER if isinstance(node, exp.Array | exp.ArrayAgg) else None


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query | exp.Subquery)


Columns: TypeAlias = list[tuple[str, SqlType]]


@dataclass(frozen=True, slots=True)
class _Scope:
    """The names that a SELECT sees: those of WITH, and the columns of FROM around it."""

    named: Mapping[str, Columns] = field(default_factory=dict)
    sources: tuple[tuple[str, Mapping[str, SqlType]], ...] = ()
    outer: "_Scope | None" = None

    def type_of(self, column: exp.Expr) -> SqlType | None:
        """The type of a column; None if there is none of this name."""
        name, qualifier = column.name.lower(), str(column.text("table")).lower()
        for source, columns in self.sources:
            if not qualifier or qualifier == source:
                if name in columns:
                    return columns[name]
                if not columns:
                    return UNKNOWN  # a relation with unknown columns may have it
        return None if self.outer is None else self.outer.type_of(column)


class _Queries:
    def __init__(self, relations: RelationTypes) -> None:
        self._relations = relations

    def query(self, query: exp.Expr, scope: _Scope) -> Columns:
        """Write a query in place; the names and types of its columns."""
        scope = self._with(query, scope)
        if isinstance(query, exp.Subquery):
            return self.query(query.this, scope)
        if isinstance(query, exp.SetOperation):
            return self._set_operation(query, scope)
        return self._select(query, scope) if isinstance(query, exp.Select) else []

    def _with(self, query: exp.Expr, scope: _Scope) -> _Scope:
        clause = query.args.get("with_")
        if clause is None:
            return scope
        named = dict(scope.named)
        for cte in clause.expressions:
            found = self.query(cte.this, _Scope(named, scope.sources, scope.outer))
            named[cte.alias.lower()] = _renamed(found, cte.args.get("alias"))
        return _Scope(named, scope.sources, scope.outer)

    def _set_operation(self, query: exp.SetOperation, scope: _Scope) -> Columns:
        left, right = self.query(query.left, scope), self.query(query.right, scope)
        columns = [
            (name, common_type((one, other)) or UNKNOWN)
            for (name, one), (_, other) in zip(left, right, strict=False)
        ]
        wanted = [one for _, one in columns]
        for side, found in ((query.left, left), (query.right, right)):
            for place, one in enumerate(found):
                if place < len(wanted):
                    _make_finer(side, place, one[1], wanted[place])
        own = _Scope(scope.named, (("", dict(columns)),), scope.outer)
        for clause in ("order", "limit", "offset"):
            self._clause(query.args.get(clause), own, {})
        return columns

    def _select(self, select: exp.Select, scope: _Scope) -> Columns:
        sources: list[tuple[str, Mapping[str, SqlType]]] = []
        origin = select.args.get("from_")
        joins: list[exp.Join] = select.args.get("joins") or []
        entries = ([] if origin is None else [origin.this]) + [join.this for join in joins]
        sources += [self._source(entry, scope) for entry in entries]
        own = _Scope(scope.named, tuple(sources), scope)
        for join in joins:
            self._clause(join.args.get("on"), own, {})
        shown = self._shown(select, own)
        aliases = dict(reversed([(name, one) for name, one in shown if name]))
        for clause, value in select.args.items():
            if clause not in ("from_", "joins", "with_", "expressions"):
                self._clause(value, own, aliases)
        return shown

    def _source(self, entry: exp.Expr, scope: _Scope) -> tuple[str, Mapping[str, SqlType]]:
        alias = entry.args.get("alias")
        name = entry.alias_or_name.lower()
        if isinstance(entry, exp.Subquery):
            return name, dict(_renamed(self.query(entry, scope), alias))
        if isinstance(entry, exp.Values):
            return name, dict(_renamed(self._values(entry, scope), alias))
        if isinstance(entry, exp.Table):
            known = scope.named.get(entry.name.lower())
            columns = list(self._relations(entry).items()) if known is None else known
            return name, dict(_renamed(columns, alias))
        return name, {}

    def _values(self, values: exp.Values, scope: _Scope) -> Columns:
        rows: list[list[SqlType]] = []
        for row in values.expressions:
            items = row.expressions if isinstance(row, exp.Tuple) else [row]
            rows.append([self._expression(item, scope, {}) for item in items])
        columns = [common_type(types) or UNKNOWN for types in zip(*rows, strict=False)]
        for row, types in zip(values.expressions, rows, strict=True):
            items = row.expressions if isinstance(row, exp.Tuple) else [row]
            for item, one, wanted in zip(items, types, columns, strict=False):
                _with_places(item, one, wanted)
        return [(f"col{place}", one) for place, one in enumerate(columns)]

    def _shown(self, select: exp.Select, own: _Scope) -> Columns:
        columns: Columns = []
        for item in list(select.expressions):
            if isinstance(item, exp.Star) or (
                isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
            ):
                qualifier = str(item.text("table")).lower()
                for source, found in own.sources:
                    columns += found.items() if qualifier in ("", source) else ()
                continue
            name = item.alias_or_name.lower()
            target = item.this if isinstance(item, exp.Alias) else item
            columns.append((name, self._expression(target, own, {})))
        return columns

    def _clause(self, value: object, scope: _Scope, aliases: Mapping[str, SqlType]) -> None:
        for node in _nodes(value):
            self._expression(node, scope, aliases)

    def _expression(self, node: exp.Expr, scope: _Scope, aliases: Mapping[str, SqlType]) -> SqlType:
        """Write an expression with the queries inside it; its type."""

        def resolve(column: exp.Expr) -> Value:
            found = scope.type_of(column)
            if found is None and not column.text("table"):
                found = aliases.get(column.name.lower())
            return Value(column, UNKNOWN if found is None else found)

        writer = _Writer(resolve)
        if _is_query(node):
            columns = self.query(node, scope)
            return columns[0][1] if columns else UNKNOWN
        nodes = outside_queries(node)
        for inner in nodes:
            if _is_query(inner):
                columns = self.query(inner, scope)
                is_value = not isinstance(inner.parent, exp.In | exp.Any | exp.All | exp.Exists)
                writer.set_type(inner, columns[0][1] if columns and is_value else UNKNOWN)
        holder = node.parent
        place = (node.arg_key, node.index)
        writer.write_each(nodes)
        written = node if holder is None else _at(holder, place, node)
        return writer.type_of(written)


def _make_finer(query: exp.Expr, place: int, source: SqlType, wanted: SqlType) -> None:
    """Give a column of a query as many places as the columns have that it is put under or above."""
    inner = query.unnest()
    if isinstance(inner, exp.SetOperation):
        for side in (inner.left, inner.right):
            _make_finer(side, place, source, wanted)
    elif isinstance(inner, exp.Select) and not any(one.is_star for one in inner.expressions):
        item = inner.expressions[place]
        name, shown = item.output_name, item.unalias()
        changed = _with_places(shown, source, wanted)
        if name and changed is not None and not isinstance(item, exp.Alias):
            changed.replace(exp.alias_(changed.copy(), name, quoted=True))


def _with_places(node: exp.Expr, source: SqlType, wanted: SqlType) -> exp.Expr | None:
    template = finer(source, wanted)
    return None if template is None else node.replace(written(node, template, node.copy()))


def _at(holder: exp.Expr, place: tuple[str | None, int | None], node: exp.Expr) -> exp.Expr:
    """What stands in a place now."""
    key, index = place
    value = holder.args.get(key or "")
    found = value[index] if isinstance(value, list) and index is not None else value
    return found if isinstance(found, exp.Expr) else node


def _renamed(columns: Columns, alias: exp.Expr | None) -> Columns:
    names = [one.name.lower() for one in (alias.args.get("columns") or [])] if alias else []
    named = [(name, one) for name, (_, one) in zip(names, columns, strict=False)]
    return [*named, *columns[len(named) :]]


def _nodes(value: object) -> Iterator[exp.Expr]:
    if isinstance(value, exp.Expr):
        yield value
    elif isinstance(value, list):
        yield from (one for one in value if isinstance(one, exp.Expr))
