"""Handles relations of constants in a statement: VALUES, generate_series and unnest.

    SELECT d::date, n FROM generate_series('2024-01-01'::date, '2024-12-31', '1 month') AS d
    LEFT JOIN (SELECT DATE_TRUNC('month', ts) AS m, COUNT(*) AS n FROM t GROUP BY 1) AS x ON m = d

They are public, and read by the SQL on answers, or joined with private rows by their key, as public
tables are. Here they get the form that the rest of planning reads: a series is a SELECT that the
database makes, an array is VALUES. Their rows are counted before any is made. Series between values
of a row, or of another answer, are no constants, and are refused.
"""

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from cube.refusals import TooLarge, UnsupportedSql
from planner.domain import Columns
from planner.sql import IS_MADE, QueryTree, every_node, origin, position, shown, unsupported

N_MADE_MAX = 2**20  # rows, if all that a statement makes were joined without a condition
N_MADE_EACH_MAX = 100_000
N_WRITTEN_OUT_MAX = 20_000  # nodes of names of WITH

_OF_A_MONTH = Fraction(115, 100)  # the first may be longer than others by a tenth
_COLUMN = "column"  # and a number, as PostgreSQL calls the columns of VALUES
_DAY_HOURS = {exp.DType.DATE, exp.DType.TIMESTAMP}

Evaluate = Callable[[exp.Select], Columns]
"""Runs a SELECT of constants."""


@dataclass(slots=True)
class _Made:
    """How many rows a statement makes so far, if all are joined with each other."""

    evaluate: Evaluate
    n_rows: int = 1

    def count(self, n_rows: int, node: exp.Expr) -> None:
        self.n_rows *= max(n_rows, 1)
        if n_rows > N_MADE_EACH_MAX or self.n_rows > N_MADE_MAX:
            raise TooLarge(
                f"{shown(node)} makes {n_rows} rows, and the statement {self.n_rows} in total; "
                f"{N_MADE_EACH_MAX} are allowed for each list, and {N_MADE_MAX} in total.",
                hint="Use a larger step or a shorter range.",
                position=position(node),
            )


def write_made(query: QueryTree, evaluate: Evaluate) -> int:
    """Write what a statement makes in the form that is read; how many rows it is at most.

    Raises
    ------
    UnsupportedSql
        If a series needs constants for its ends, or its step is zero.
    TooLarge
        If it would make too many rows.
    """
    if not any(issubclass(kind, _KINDS) for kind in query.kinds):
        return 1
    tree, made = query.tree, _Made(evaluate)
    _write_out_names(tree, every_node(tree))
    for node in every_node(tree):
        if isinstance(node, exp.In):
            _list_values(node)
        elif isinstance(node, exp.Select):
            _from_its_list(node)
    for node in every_node(tree):
        if isinstance(node, exp.Table | exp.Lateral) and isinstance(node.this, _SERIES):
            _replace(node, _series(node.this, made), node.this)
        elif isinstance(node, exp.Unnest) and isinstance(node.parent, exp.From | exp.Join):
            _replace(node, _rows(node), node)
        elif isinstance(node, exp.Values):
            _name_columns(node)
            made.count(len(node.expressions), node)
    return made.n_rows


_SERIES = (exp.ExplodingGenerateSeries, exp.GenerateSeries)
_KINDS = (*_SERIES, exp.Unnest, exp.Explode, exp.Values)


def _write_out_names(tree: exp.Query, nodes: Sequence[exp.Expr]) -> None:
    """Put a name of WITH that reads no table where it is read, so that rows can be joined with it.

    Only names of one meaning, and while what is written out is not long.
    """
    ctes = [node for node in nodes if isinstance(node, exp.CTE)]
    names = [cte.alias.casefold() for cte in ctes]
    left = N_WRITTEN_OUT_MAX
    for cte, name in zip(ctes, names, strict=True):
        read = cte.this.find_all(exp.Table)
        if names.count(name) > 1 or not all(isinstance(one.this, _SERIES) for one in read):
            continue
        readers = [one for one in tree.find_all(exp.Table) if one.name.casefold() == name]
        left -= len(readers) * sum(1 for _ in cte.this.walk())
        if left < 0:
            return
        for reader in readers:
            columns = reader.alias_column_names or cte.alias_column_names
            alias = exp.TableAlias(
                this=exp.to_identifier(reader.alias_or_name),
                columns=[exp.to_identifier(one) for one in columns],
            )
            if not reader.db:
                reader.replace(exp.Subquery(this=cte.this.copy(), alias=alias))


def _list_values(listing: exp.In) -> None:
    """``x IN (VALUES (1), (2))`` is ``x IN (1, 2)``."""
    values = listing.expressions
    if len(values) != 1 or not isinstance(values[0], exp.Values):
        return
    rows = [
        row.expressions if isinstance(row, exp.Tuple) else [row] for row in values[0].expressions
    ]
    if all(len(row) == 1 for row in rows):
        listing.set("expressions", [row[0] for row in rows])


def _from_its_list(select: exp.Select) -> None:
    """A series in the list of a SELECT without FROM is read from there."""
    if select.args.get("from_") is not None:
        return
    found = [
        node
        for item in select.expressions
        for node in item.find_all(*_SERIES, exp.Explode)
        if node.parent_select is select
    ]
    if len(found) != 1:
        return
    (node,) = found
    is_array = isinstance(node, exp.Explode)
    name = "unnest" if is_array else "generate_series"
    if node.parent is select:
        node.replace(exp.alias_(exp.column(name), name, copy=False))
    else:
        node.replace(exp.column(name))
    alias = exp.TableAlias(this=exp.to_identifier(name))
    entry = (
        exp.Unnest(expressions=[node.this], alias=alias)
        if is_array
        else exp.Table(this=node, alias=alias)
    )
    select.set("from_", exp.From(this=entry))


def _replace(entry: exp.Expr, query: exp.Expr, written: exp.Expr) -> None:
    """Put a relation in the place of an entry of FROM, under its names."""
    query.meta.update(origin(written))
    entry.replace(query)


def _series(series: exp.Expr, made: _Made) -> exp.Subquery:
    """A series as a SELECT of it, under the names that the entry of FROM has."""
    entry = series.parent
    alias = None if entry is None else entry.args.get("alias")
    name = alias.name if alias is not None and alias.name else "generate_series"
    columns = [] if alias is None else alias.args.get("columns") or []
    if len(columns) > 1 or (entry is not None and entry.args.get("ordinality")):
        raise unsupported(
            series, "makes only one column", "To number its rows, use ROW_NUMBER() OVER ()."
        )
    start, end, step = series.args["start"], series.args["end"], series.args.get("step")
    ends = _ends(series, start, end, step)
    n_rows, is_of_decimals = _n_rows(series, ends, made.evaluate)
    made.count(n_rows, series)
    if is_of_decimals:
        made_of = _every(exp.Literal.number(1), exp.Literal.number(n_rows))
        before = exp.paren(exp.Sub(this=made_of, expression=exp.Literal.number(1)), copy=False)
        steps = exp.Mul(
            this=before, expression=exp.paren(ends[2] if step else exp.Literal.number(1))
        )
        unnested: exp.Expr = exp.Add(this=exp.paren(ends[0]), expression=steps)
    else:
        unnested = _every(*(end.copy() for end in ends))
    column = columns[0].copy() if columns else exp.to_identifier(name)
    select = exp.Select(expressions=[exp.alias_(unnested, column, copy=False)])
    return exp.Subquery(this=select, alias=exp.TableAlias(this=exp.to_identifier(name)))


def _every(*ends: exp.Expr) -> exp.Expr:
    """A series in the list of a SELECT."""
    values = exp.Anonymous(this="GENERATE_SERIES", expressions=list(ends))
    unnested = exp.Anonymous(this="UNNEST", expressions=[values])
    values.meta[IS_MADE] = unnested.meta[IS_MADE] = True
    return unnested


def _ends(
    series: exp.Expr, start: exp.Expr, end: exp.Expr, step: exp.Expr | None
) -> list[exp.Expr]:
    """The arguments of a series; days and moments are moments, as in PostgreSQL."""
    for one in (start, end, step):
        if one is not None and one.find(exp.Column, exp.Query, exp.AggFunc) is not None:
            raise unsupported(
                series,
                "needs constant ends and a constant step",
                "Write the first value, the last value and the step as constants.",
            )
    is_of_time = isinstance(step, exp.Interval) or any(
        isinstance(node, exp.Cast | exp.Interval)
        for one in (start, end)
        for node in one.walk()
        if not isinstance(node, exp.Cast) or node.to.this in _DAY_HOURS
    )
    if not is_of_time:
        ends = [start, end] if step is None else [start, end, step]
        if any(one.is_string for end in ends for one in end.find_all(exp.Literal)):
            raise _of_nothing(series)
        return ends
    if step is None:
        raise unsupported(
            series, "has dates but no step", "Use GENERATE_SERIES(first, last, INTERVAL '1 day')."
        )
    moments = [exp.cast(one.copy(), exp.DType.TIMESTAMP) for one in (start, end)]
    by = step if isinstance(step, exp.Interval) else exp.cast(step.copy(), exp.DType.INTERVAL)
    return [*moments, by]


def _n_rows(series: exp.Expr, ends: Sequence[exp.Expr], evaluate: Evaluate) -> tuple[int, bool]:
    """How many rows a series has at most, and whether it is of decimals."""
    start, end, *steps = (exp.paren(one.copy()) for one in ends)
    step = steps[0] if steps else exp.Literal.number(1)
    after = exp.Add(this=start.copy(), expression=step.copy())
    ((_, (low,)), (_, (high,)), (_, (next_one,))) = evaluate(
        exp.Select(
            expressions=[
                exp.alias_(one, f"c{place}", copy=False)
                for place, one in enumerate((start, end, after))
            ]
        )
    ).values()
    if low is None or high is None or next_one is None:
        return 0, False
    between, by = _difference(high, low), _difference(next_one, low)
    if between is None or by is None:
        raise _of_nothing(series)
    if by == 0:
        raise unsupported(series, "has a step of zero", "Use a step above or below zero.")
    slack = _OF_A_MONTH if isinstance(low, dt.datetime) else 1
    every: tuple[object, ...] = (low, high, next_one)
    is_of_decimals = any(isinstance(one, Decimal) for one in every)
    return max(0, math.floor(between / by * slack) + 1), is_of_decimals


def _of_nothing(series: exp.Expr) -> UnsupportedSql:
    return unsupported(
        series, "needs exact numbers, dates or timestamps", "An example is GENERATE_SERIES(1, 10)."
    )


def _difference(one: object, other: object) -> Fraction | None:
    if isinstance(one, dt.datetime) and isinstance(other, dt.datetime):
        return Fraction((one - other) // dt.timedelta(microseconds=1))
    if isinstance(one, int | Decimal) and isinstance(other, int | Decimal):
        return Fraction(one) - Fraction(other)
    return None


def _rows(unnest: exp.Unnest) -> exp.Values:
    """Arrays of constants as the rows of VALUES."""
    arrays = [_items(one, unnest) for one in unnest.expressions]
    n_rows = max(map(len, arrays), default=0)
    offset = unnest.args.get("offset")
    rows = [
        exp.Tuple(
            expressions=[
                *(items[k].copy() if k < len(items) else exp.null() for items in arrays),
                *([exp.Literal.number(k + 1)] if offset else []),
            ]
        )
        for k in range(n_rows)
    ]
    if not rows:
        raise unsupported(unnest, "has no rows", "Write at least one value.")
    alias = unnest.args.get("alias") or exp.TableAlias(this=exp.to_identifier("unnest"))
    names = [one.copy() for one in alias.args.get("columns") or []]
    if not names and len(arrays) == 1:
        names = [exp.to_identifier(alias.name)]
    names += [exp.to_identifier("unnest") for _ in range(len(arrays) - len(names))]
    if offset:
        names.append(
            offset if isinstance(offset, exp.Identifier) else exp.to_identifier("ordinality")
        )
    return exp.Values(expressions=rows, alias=exp.TableAlias(this=alias.this.copy(), columns=names))


def _items(array: exp.Expr, unnest: exp.Unnest) -> list[exp.Expr]:
    """The values of an array, each with the type that it is cast to."""
    node = array.unnest()
    kind = None
    if isinstance(node, exp.Cast) and node.to.this == exp.DType.ARRAY and node.to.expressions:
        node, kind = node.this.unnest(), node.to.expressions[0]
    if not isinstance(node, exp.Array) or node.find(exp.Column, exp.Query) is not None:
        raise unsupported(
            unnest, "needs a list of constants", "An example is UNNEST(ARRAY['a', 'b'])."
        )
    if kind is None:
        return list(node.expressions)
    return [exp.cast(one, kind.copy()) for one in node.expressions]


def _name_columns(values: exp.Values) -> None:
    """Name the columns of VALUES as PostgreSQL does."""
    alias = values.args.get("alias")
    if alias is None or not values.expressions:
        return
    row = values.expressions[0]
    names: list[exp.Expr] = alias.args.get("columns") or []
    n_columns = len(row.expressions) if isinstance(row, exp.Tuple) else 1
    more = [exp.to_identifier(f"{_COLUMN}{k + 1}") for k in range(len(names), n_columns)]
    alias.set("columns", [*names, *more])
