"""Workloads answered exactly on records in plain sight: what a planner's test compares with SQL.

Every coefficient is looked up record by record and added as a fraction, and quantiles are read off
the sorted records; nothing is shared with the way that sources or estimators evaluate queries. What
follows the answers is run as in production, because it is the same SQL with and without noise.
"""

import bisect
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import pyarrow as pa

from cube.axis import Axis, LevelValue, MeasureAxis, NumericAxis
from cube.query import QueryBlock
from cube.schema import Schema
from planner.level_summary import LevelStatistic, LevelSummary
from planner.workload import (
    Answer,
    ColumnKind,
    OutputColumn,
    Part,
    QuantileFormula,
    SqlFormula,
    Workload,
)
from proxy.api.columns import arrow_type
from proxy.outer_sql.postprocessing import OuterSql

Record = Mapping[str, LevelValue]
Shown: TypeAlias = LevelValue | Fraction
OUTER = OuterSql()


def position(axis: Axis, value: LevelValue) -> int | None:
    """The level that a value of a record belongs to; None if it has none."""
    if value is None:
        return axis.null_position if axis.null else axis.other_position
    if isinstance(axis, MeasureAxis) and isinstance(value, int | float):
        low, high, step = Fraction(axis.low), Fraction(axis.high), Fraction(axis.step)
        clamped = min(max(Fraction(value), low), high)
        return math.floor((clamped - low) / step + Fraction(1, 2))
    if isinstance(axis, NumericAxis) and isinstance(value, int | float):
        if axis.edges[0] <= value <= axis.edges[-1]:
            return min(bisect.bisect_right(axis.edges, value), len(axis.edges) - 1) - 1
        return axis.other_position
    return axis.levels.index(value) if value in axis.levels else axis.other_position


def positions(schema: Schema, records: Sequence[Record]) -> list[dict[str, int]]:
    """The records as levels; a record with a value that has no level is left out."""
    placed = [
        {axis.name: position(axis, record[axis.name]) for axis in schema.axes} for record in records
    ]
    return [
        {name: place for name, place in row.items() if place is not None}
        for row in placed
        if None not in row.values()
    ]


def block_answers(block: QueryBlock, placed: Sequence[Mapping[str, int]]) -> list[Fraction]:
    """The exact answer of every row of a block."""
    answers = [block.query.constant] * block.n_rows
    for record in placed:
        group = 0
        if block.partition is not None:
            group = int(block.partition.labels[tuple(record[n] for n in block.partition.axes)])
        if group < 0:
            continue
        for term in block.query.terms:
            weight = term.scale
            for factor in term.factors:
                weight *= int(factor.values[tuple(record[name] for name in factor.axes)])
            answers[group] += weight
    return answers


def result_rows(
    workload: Workload, schema: Schema, records: Sequence[Record]
) -> list[tuple[Shown, ...]]:
    """The result table without noise, in the order of the SELECT list.

    Answers that are linear are exact; what is computed from them is a double. The rows of a
    workload without outer SQL are those of its part.
    """
    placed = positions(schema, records)
    if workload.outer is None:
        (part,) = workload.parts
        columns = _shown(part, placed)
        return [tuple(column[row] for column in columns) for row in range(part.n_rows)]
    assert not workload.outer.public
    relations = {part.name: _relation(part, placed) for part in workload.parts}
    data = OUTER.run(workload.outer.sql, relations)
    n_columns = data.num_columns - 2 * len(workload.outer.intervals)
    shown = [data.column(place).to_pylist() for place in range(n_columns)]
    return list(zip(*shown, strict=True))


def _shown(part: Part, placed: Sequence[Mapping[str, int]]) -> list[Sequence[Shown]]:
    """Each column of a part's relation."""
    aggregates: list[list[Fraction]] = []
    for aggregate in part.aggregates:
        rows = [answer for block in aggregate.blocks for answer in block_answers(block, placed)]
        aggregates.append(rows * part.n_rows if aggregate.is_total else rows)
    answers = [_answer(answer, aggregates, part) for answer in part.answers]
    return [_column(column, part, aggregates, answers) for column in part.columns]


def _column(  # noqa: PLR0911 - one for each kind
    column: OutputColumn,
    part: Part,
    aggregates: Sequence[Sequence[Shown]],
    answers: Sequence[Sequence[Shown]],
) -> Sequence[Shown]:
    match column.kind:
        case ColumnKind.KEY:
            return part.keys[column.index].values
        case ColumnKind.GROUPING:
            return [int(is_left_out) for is_left_out in part.keys[column.index].is_summed_over]
        case ColumnKind.ESTIMATE:
            return aggregates[column.index]
        case ColumnKind.ANSWER | ColumnKind.LOW | ColumnKind.HIGH:
            return answers[column.index]
        case ColumnKind.STDERR | ColumnKind.COST | ColumnKind.SOURCE:
            return ["plain sight" if column.kind is ColumnKind.SOURCE else 0.0] * part.n_rows
        case ColumnKind.PROBABILITY:
            return [_is_within(one, column.span) for one in answers[column.index]]
        case ColumnKind.REPORT:  # of what is known exactly, the truth is the best report
            return answers[column.index]
        case ColumnKind.SUMMARY:
            return _summary(part.summaries[column.index], aggregates, part.n_rows)


def _is_within(value: Shown, span: tuple[float, float] | None) -> Shown:
    """The probability without noise: 1 or 0."""
    if isinstance(value, int | float | Fraction) and span is not None:
        return float(span[0] < value <= span[1])
    return None


def _summary(
    summary: LevelSummary, aggregates: Sequence[Sequence[Shown]], n_rows: int
) -> Sequence[Shown]:
    """What SQL says of the levels that records have, group by group."""
    found: list[dict[LevelValue, Shown]] = [{} for _ in range(n_rows)]
    for cell, count in zip(summary.cells, aggregates[summary.aggregate], strict=True):
        group, level = divmod(cell, len(summary.values))
        if count:
            found[group][summary.values[level]] = count
    return [_statistic(summary.statistic, levels) for levels in found]


def _statistic(statistic: LevelStatistic, levels: Mapping[LevelValue, Any]) -> Shown:
    known: list[Any] = list(levels)
    match statistic:
        case LevelStatistic.COUNT:
            return len(known)
        case LevelStatistic.SUM:
            return float(sum(known))
        case LevelStatistic.LEAST:
            return min(known, default=None)
        case LevelStatistic.LARGEST:
            return max(known, default=None)
        case LevelStatistic.MODE:
            return max(known, key=levels.__getitem__, default=None)


def _answer(answer: Answer, aggregates: Sequence[list[Fraction]], part: Part) -> Sequence[Shown]:
    used = [aggregates[place] for place in answer.uses]
    match answer.formula:
        case None:
            return used[0]
        case SqlFormula(sql):
            columns = {
                f"a{place}": pa.array(map(float, rows), pa.float64())
                for place, rows in enumerate(used)
            }
            computed = f"SELECT CAST(({sql}) AS DOUBLE) AS x FROM answers"  # noqa: S608 - the planner's
            data = OUTER.run(computed, {"answers": pa.table(columns)})
            found: list[Shown] = data.column("x").to_pylist()
            return found
        case QuantileFormula():
            return _quantiles(answer.formula, used[0], part.n_rows)
        case LevelSummary():
            return _summary(answer.formula, aggregates, part.n_rows)


def _quantiles(formula: QuantileFormula, counts: list[Fraction], n_rows: int) -> list[Shown]:
    """As SQL defines them, from the records of each group in order."""
    assert not formula.upper, "records lie somewhere inside their bins"
    groups: list[list[float]] = [[] for _ in range(n_rows)]
    for cell, count in sorted(zip(formula.cells, counts, strict=True)):
        group, level = divmod(cell, len(formula.levels))
        groups[group] += [formula.levels[level]] * int(count)
    return [_quantile(formula, values) if values else None for values in groups]


def _quantile(formula: QuantileFormula, values: list[float]) -> float:
    if not formula.is_interpolated:
        return values[max(math.ceil(formula.fraction * len(values)) - 1, 0)]
    rank = formula.fraction * (len(values) - 1)
    below, above = values[math.floor(rank)], values[math.ceil(rank)]
    return below + (rank - math.floor(rank)) * (above - below)


def _relation(part: Part, placed: Sequence[Mapping[str, int]]) -> pa.Table:
    """A part's relation as the outer SQL reads it."""
    names = [column.name for column in part.columns]
    arrays = [
        pa.array(
            [float(value) if isinstance(value, Fraction) else value for value in values],
            _type_of(column, part),
        )
        for column, values in zip(part.columns, _shown(part, placed), strict=True)
    ]
    return pa.Table.from_arrays(arrays, names=names)


def _type_of(column: OutputColumn, part: Part) -> pa.DataType:
    if column.kind is ColumnKind.KEY:
        return arrow_type(part.keys[column.index].sql_type)
    if column.kind is ColumnKind.SUMMARY:
        return arrow_type(part.summaries[column.index].sql_type)
    return {ColumnKind.GROUPING: pa.int32(), ColumnKind.SOURCE: pa.string()}.get(
        column.kind, pa.float64()
    )
