"""Resolves names on private rows, and refuses statements that would show such rows.

Private rows as one SELECT sees them: the meaning of every name on the public levels.

A name stands for an axis, for an expression of axes (behind a subquery that only filters and
computes), or for a column of a public table that is looked up by its key. Nothing is evaluated
here.

The refusals of statements that would show private rows, or sample or turn them, and what works.

Here are the words. Where private rows would be shown is found in `split.py`.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from cube.refusals import PrivateRows, UnknownName
from cube.schema import Schema
from planner.domain import Allowance
from planner.sql import (
    PublicLookup,
    column_name,
    copy_of,
    is_output,
    listed,
    origin,
    position,
    shortened,
    shown,
    suggestion,
    unsupported,
)


@dataclass(frozen=True, slots=True)
class FromEntry:
    """One entry of FROM, with the meanings of its columns, in order.

    Parameters
    ----------
    name : str
        The qualifier of its columns.
    columns : mapping
        Expressions over axes by output name.
    merged : tuple of str
        Columns that USING merged with another entry's: only a qualified name refers to these.
    """

    name: str
    columns: Mapping[str, exp.Expr]
    merged: tuple[str, ...] = ()

    def unqualified(self) -> Iterator[tuple[str, exp.Expr]]:
        """The meanings of names without a qualifier."""
        return ((name, it) for name, it in self.columns.items() if name not in self.merged)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one private table, filtered and computed with.

    Parameters
    ----------
    table : str
    schema : Schema
    sources : tuple of FromEntry
        The entries that names may refer to.
    conditions : tuple of Expr
        Conditions over axes that hold for every row.
    allowance : Allowance
        The allowance of the statement that reads them.
    """

    table: str
    schema: Schema
    sources: tuple[FromEntry, ...]
    conditions: tuple[exp.Expr, ...] = ()
    allowance: Allowance = field(default_factory=Allowance, compare=False)

    @classmethod
    def of(cls, schema: Schema) -> "Rows":
        """All rows of a table, under its name."""
        columns: dict[str, exp.Expr] = {
            axis.name: exp.Column(this=exp.to_identifier(axis.name)) for axis in schema.axes
        }
        return cls(schema.table, schema, (FromEntry(schema.table, columns),))

    def renamed(self, name: str, columns: list[str] | None = None) -> "Rows":
        """The same as one entry of FROM, under a name and perhaps with new column names."""
        every = dict(self.every_column())
        if columns:
            names = [*columns, *list(every)[len(columns) :]]
            every = dict(zip(names, every.values(), strict=True))
        return replace(self, sources=(FromEntry(name, every),))

    def showing(self, columns: Mapping[str, exp.Expr], conditions: tuple[exp.Expr, ...]) -> "Rows":
        """Some of the rows, with other columns."""
        source = FromEntry(self.sources[0].name, columns)
        return replace(self, sources=(source,), conditions=conditions)

    def joined(self, source: FromEntry, condition: exp.Expr | None) -> "Rows":
        """The rows, extended by the columns of a public table."""
        conditions = self.conditions if condition is None else (*self.conditions, condition)
        return replace(self, sources=(*self.sources, source), conditions=conditions)

    def where(self, conditions: tuple[exp.Expr, ...]) -> "Rows":
        """Those rows for which all of some more conditions hold."""
        return replace(self, conditions=(*self.conditions, *conditions))

    def column_name(self, column: exp.Column) -> str | None:
        """The declared spelling of a column; None if there is no such column."""
        if not isinstance(column.this, exp.Identifier):
            return None
        qualifier = column.args.get("table")
        for source in self.sources:
            if qualifier is not None and not _same(qualifier, source.name):
                continue
            for name in source.columns:
                if name == column.name or (
                    not column.this.quoted and name.casefold() == column.name.casefold()
                ):
                    return name
        return None

    def every_column(self, qualifier: str | None = None) -> Iterator[tuple[str, exp.Expr]]:
        """Names and meanings, in the order of FROM; of one entry, if it is named."""
        for source in self.sources:
            if not qualifier:
                yield from source.unqualified()
            elif source.name.casefold() == qualifier.casefold():
                yield from source.columns.items()

    def is_unit(self, column: exp.Expr) -> bool:
        """Whether a column is the key of the privacy unit."""
        unit = self.schema.unit
        return (
            isinstance(column, exp.Column)
            and unit is not None
            and column.name.casefold() == unit.casefold()
            and not any(True for _ in self._meanings(column))
        )

    def has(self, column: exp.Column) -> bool:
        """Whether a name has a meaning here."""
        return any(True for _ in self._meanings(column))

    def meaning(self, column: exp.Column) -> exp.Expr:
        """The meaning of a column; letter case counts only between double quotes.

        Raises
        ------
        UnknownName
            If there is no such column here, or the name is ambiguous.
        """
        if not isinstance(column.this, exp.Identifier):
            raise unsupported(column, "is a whole row, and a value is needed", "Name one column.")
        found = list(self._meanings(column))
        if len(found) > 1:
            raise UnknownName(
                f"Several tables may have a column {shown(column)}.",
                hint="Put the table's name before it.",
                position=position(column),
            )
        if not found:
            raise self._unknown(column)
        return self.written_out(found[0], column)

    def written_out(self, meaning: exp.Expr, node: exp.Expr) -> exp.Expr:
        """A copy of the meaning of `node`, to replace it; a bare column is not counted.

        Raises
        ------
        TooLarge
            If the statement's names stand for too many nodes.
        """
        if not isinstance(meaning, exp.Column):
            self.allowance.put_in(meaning, node)
        return copy_of(meaning)

    def resolved(self, expression: exp.Expr) -> exp.Expr:
        """An expression with every column replaced by its meaning."""
        return mapped(expression, self.resolved_node)

    def resolved_node(self, node: exp.Expr) -> exp.Expr:
        """The meaning of a node, if it is a column; otherwise the node itself."""
        if not isinstance(node, exp.Column) or is_output(node):
            return node
        meaning = self.meaning(node)
        shown_as = meaning if isinstance(meaning, exp.Column) else exp.paren(meaning, copy=False)
        shown_as.meta.update(origin(node))
        return shown_as

    def _meanings(self, column: exp.Column) -> Iterator[exp.Expr]:
        qualifier = column.args.get("table")
        for source in self.sources:
            if qualifier is not None and not _same(qualifier, source.name):
                continue
            merged = source.merged if qualifier is None else ()
            if column.name in source.columns and column.name not in merged:
                yield source.columns[column.name]
            elif not column.this.quoted:
                folded = column.name.casefold()
                for name, meaning in source.columns.items():
                    if name.casefold() == folded and name not in merged:
                        yield meaning

    def _unknown(self, column: exp.Column) -> UnknownName:
        names = [name for name, _ in self.every_column()]
        qualifier = column.args.get("table")
        sources = [source.name for source in self.sources]
        if qualifier is not None and not any(_same(qualifier, name) for name in sources):
            return UnknownName(
                f"{shown(column)} is not a column of {listed(sources)}.",
                hint=f"The tables here are {listed(sources)}.",
                position=position(column),
            )
        unit = self.schema.unit
        if unit is not None and column.name.casefold() == unit.casefold():
            return UnknownName(
                f"{shown(column)} identifies persons and cannot be used here.",
                hint=f"To count persons, use COUNT(DISTINCT {unit}).",
                position=position(column),
            )
        known = suggestion(column.name, names) or f"The columns are {listed(names)}."
        hint = f"{known} Put text values in single quotes." if column.this.quoted else known
        return UnknownName(
            f"{sources[0]} has no column {shown(column)}.", hint=hint, position=position(column)
        )


def lookups(
    name: str, columns: Mapping[str, str], key: Sequence[exp.Expr], merged: tuple[str, ...] = ()
) -> FromEntry:
    """A public table as an entry of FROM: each column is looked up by `key`.

    Parameters
    ----------
    name : str
    columns : mapping
        The scratchpad's function for each column.
    key : sequence of Column or PublicLookup
        For each column of its key, an axis or a column of another public table.
    merged : tuple of str
        See `FromEntry`.
    """
    found: dict[str, exp.Expr] = {}
    for column, function in columns.items():
        found[column] = PublicLookup(this=function, expressions=[copy_of(one) for one in key])
        found[column].meta["text"] = f"{name}.{column}"
    return FromEntry(name, found, merged)


def mapped(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A tree with `change` applied to every node from the root down, but not to its results."""
    new = change(node)
    if new is not node:
        return new
    for name, value in list(node.args.items()):
        if isinstance(value, exp.Expr):
            changed = mapped(value, change)
            if changed is not value:
                node.set(name, changed)
        elif isinstance(value, list) and value:
            every = [mapped(one, change) if isinstance(one, exp.Expr) else one for one in value]
            if any(map(operator.is_not, every, value)):
                node.set(name, every)
    return node


def _same(identifier: exp.Identifier, name: str) -> bool:
    if identifier.quoted:
        return identifier.name == name
    return identifier.name.casefold() == name.casefold()


def rows_shown(statement: exp.Query, rows: Rows) -> PrivateRows:
    """The refusal of a statement whose result would be private rows."""
    columns = listed(axis.name for axis in rows.schema.axes)
    return PrivateRows(
        "This would show private rows.",
        hint=f"Use COUNT(*) or SUM, grouped by some of {columns}. {_synthetic_rows(rows)}",
        position=position(statement),
        table=rows.table,
    )


def clause_of_rows(clause: str, select: exp.Select, rows: Rows) -> PrivateRows:
    """The refusal of LIMIT and the like on private rows."""
    named = [item.unalias() for item in select.expressions]
    columns = [column_name(one) for one in named if isinstance(one, exp.Column)]
    if all(isinstance(one.unnest(), exp.Literal | exp.Boolean) for one in named):
        instead = (
            "To learn whether there are any rows, count them: SELECT COUNT(*) with the same "
            "FROM and WHERE. In Django, use count() instead of exists()."
        )
    elif len(columns) < len(named) or "*" in columns:
        instead = "Aggregate the rows. HAVING, ORDER BY and LIMIT then apply to the answers."
    else:
        keys = shortened(", ".join(columns))
        instead = f"Count the groups: SELECT {keys}, COUNT(*) .. GROUP BY {keys}."
    return PrivateRows(
        f"{clause.upper()} of private rows is not supported, since the result would be private "
        "rows.",
        hint=f"{instead} {_synthetic_rows(rows)}",
        position=position(select),
        table=rows.table,
    )


def check_plain(table: exp.Table) -> None:
    """Raise UnsupportedSql if a table in FROM has a clause of its own, such as TABLESAMPLE."""
    for part, value in table.args.items():
        if not value or part in ("this", "db", "alias"):
            continue
        if part == "version" and value.args["kind"] == "AS OF":
            continue
        if part == "sample":
            raise unsupported(
                table,
                "has TABLESAMPLE, which is not supported",
                "Leave out TABLESAMPLE: an answer from all records costs the same.",
            )
        if part == "pivots":
            raise unsupported(
                table,
                "has PIVOT, which is not supported",
                "Use SELECT a, COUNT(*) FILTER (WHERE b = 'x') AS x FROM t GROUP BY a.",
            )
        raise unsupported(table, f"has {part.upper()}, which is not supported", "Leave it out.")


def _synthetic_rows(rows: Rows) -> str:
    return f"To look at rows, make a synthetic table: CREATE SYNTHETIC TABLE s FROM {rows.table}."
