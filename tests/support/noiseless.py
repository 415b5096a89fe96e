"""Workloads answered exactly on records in plain sight: what a planner's test compares with SQL.

Every coefficient is looked up record by record and added as a fraction; nothing is shared with the
way that sources or estimators evaluate queries.
"""

import bisect
from collections.abc import Mapping, Sequence
from fractions import Fraction

from cube.axis import Axis, LevelValue, NumericAxis
from cube.block import QueryBlock
from cube.schema import Schema
from planner.workload import ColumnKind, Workload

Record = Mapping[str, LevelValue]


def position(axis: Axis, value: LevelValue) -> int | None:
    """The level that a value of a record belongs to; None if it has none."""
    if value is None:
        return axis.null_position if axis.null else axis.other_position
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
) -> list[tuple[LevelValue | Fraction, ...]]:
    """The result table without noise: keys and answers, in the order of the SELECT list."""
    placed = positions(schema, records)
    answers = [block_answers(aggregate.block, placed) for aggregate in workload.aggregates]
    shown: list[Sequence[LevelValue | Fraction]] = []
    for column in workload.columns:
        if column.kind is ColumnKind.KEY:
            shown.append(workload.keys[column.index].values)
        elif column.kind is ColumnKind.ANSWER:
            shown.append(answers[column.index])
    return [tuple(column[row] for column in shown) for row in range(workload.n_rows)]
