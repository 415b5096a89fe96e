"""COUNT(DISTINCT x), MODE, MIN and MAX as numbers that are read off noisy counts of x's levels.

    SELECT plan, COUNT(DISTINCT city) FROM customers GROUP BY plan

Counted are the levels of the expression in each group, as by GROUP BY plan, city: that costs what
these counts cost, and both share a history. What is read off them, and when a level is taken to
occur, is in `planner/level_summary.py`.
"""

from dataclasses import dataclass

import numpy as np
from sqlglot import exp

from cube.query import N_GROUPS_MAX, Partition, QueryBlock
from cube.refusals import TooLarge
from planner.domain.domain import KeyArray, spread
from planner.level_summary import BOUNDED, LevelStatistic, LevelSummary
from planner.lowering.changed_values import changed_in_key
from planner.lowering.grouping import Grouping, grouping
from planner.lowering.linear import has_aggregate, linear_query
from planner.lowering.parts import PartBuilder
from planner.lowering.products import check_size
from planner.lowering.summands import conjuncts
from planner.sql.messages import shown, text_of, unsupported
from planner.sql.nodes import AS_WRITTEN
from planner.workload import Answer, ColumnKind

_EXTREMES = (LevelStatistic.LEAST, LevelStatistic.LARGEST)
_INDICATOR = {0, 1}
_NUMERIC = ("BIGINT", "DOUBLE")


@dataclass(frozen=True, slots=True)
class SummaryCall:
    """A number of levels as written: the expression whose levels they are, and its records."""

    node: exp.Expr
    value: exp.Expr
    statistic: LevelStatistic
    condition: exp.Expr | None


def summary_of(node: exp.Expr) -> SummaryCall | None:
    """The number of levels that a node asks for; None if it is something else."""
    inner, condition = node.unnest(), None
    if isinstance(inner, exp.Filter):
        inner, condition = inner.this, inner.expression.this
    found = _statistic(inner)
    if found is None:
        return None
    statistic, value = found
    if has_aggregate(value):
        return None
    return SummaryCall(node, value.unnest(), statistic, condition)


def _statistic(node: exp.Expr) -> tuple[LevelStatistic, exp.Expr] | None:
    value = node.this
    match node:
        case exp.ApproxDistinct():
            return LevelStatistic.COUNT, value
        case exp.Count() | exp.Sum() if isinstance(value, exp.Distinct):
            is_count = isinstance(node, exp.Count)
            kind = LevelStatistic.COUNT if is_count else LevelStatistic.SUM
            return (kind, value.expressions[0]) if len(value.expressions) == 1 else None
        case exp.Min() | exp.Max() if not node.expressions:
            is_least = isinstance(node, exp.Min)
            return LevelStatistic.LEAST if is_least else LevelStatistic.LARGEST, value
        case exp.Mode() if value is not None:
            return LevelStatistic.MODE, value
        case exp.WithinGroup(this=exp.Mode()) if len(node.expression.expressions) == 1:
            return LevelStatistic.MODE, node.expression.expressions[0].this
        case _:
            return None


def summary_answer(call: SummaryCall, part: PartBuilder, name: str) -> Answer | None:
    """The number as an answer with an interval; None if it can have none.

    A count or a sum of levels is between that of those found and that of those possible. Raises as
    `summary_column`.
    """
    if call.statistic not in BOUNDED:
        return None
    column = part.shows(summary_column(call, part))
    summary = part.summaries[column.index]
    return Answer(name, summary.sql, (summary.aggregate,), summary)


def summary_column(call: SummaryCall, part: PartBuilder) -> exp.Column:
    """The number as a column of the part's relation.

    Raises
    ------
    UnsupportedSql
        If it is an extreme that the statement does not allow to be noisy.
    TooLarge
        If there are too many levels.
    """
    conditions = part.conditions
    if call.condition is not None:
        conditions = (*conditions, *conjuncts(call.condition))
    key = _key(call.value, conditions, part)
    where = part.domain.truths(conditions)
    part.domain.caution(changed_in_key(key, where, part.domain.schema))
    order = [place for place, value in enumerate(key.values) if value is not None]
    order.sort(key=lambda place: key.values[place])  # type: ignore[arg-type, return-value]  # of one type, none of them NULL
    values = tuple(key.values[place] for place in order)
    _check(call, key, part)
    partitions, cells = _split(part, key, order)
    query = linear_query(_EVERY, conditions, part.domain)
    text = f"counts of {text_of(call.value)}"
    aggregate = part.add(
        (text, conditions, False),
        text,
        tuple(QueryBlock(query, partition) for partition in partitions),
        part.targets.count_width,
    )
    sql_type = {LevelStatistic.COUNT: "BIGINT", LevelStatistic.SUM: "DOUBLE"}
    summary = LevelSummary(
        aggregate,
        call.statistic,
        cells,
        values,
        sql_type.get(call.statistic, key.sql_type),
        _written(call),
    )
    if summary not in part.summaries:
        part.summaries.append(summary)
    part.notes[_note(call)] = None
    return part.column(ColumnKind.SUMMARY, part.summaries.index(summary))


def _written(call: SummaryCall) -> str:
    """The number as the analyst wrote it."""
    inner = call.node.unnest()
    counted = inner.this if isinstance(inner, exp.Filter) else inner
    return str(counted.meta.get(AS_WRITTEN) or shown(call.node))


def _key(value: exp.Expr, conditions: tuple[exp.Expr, ...], part: PartBuilder) -> KeyArray:
    """The levels of an expression; of several in parentheses, their combinations, NULL or not."""
    where = part.domain.truths(conditions)
    if not isinstance(value, exp.Tuple):
        return part.domain.key(value, where)
    keys = [part.domain.key(one.unnest(), where) for one in value.expressions]
    groups = grouping(keys, where, part.domain.schema, part.domain.allowance)
    if groups.partition is None:
        return KeyArray(keys[0].axes, np.full(keys[0].codes.shape, -1), (), "BIGINT")
    numbers = tuple(range(groups.n_rows))
    return KeyArray(groups.partition.axes, groups.partition.labels, numbers, "BIGINT")


_EVERY = exp.Count(this=exp.Star(), big_int=True)


def _check(call: SummaryCall, key: KeyArray, part: PartBuilder) -> None:
    if isinstance(call.value, exp.Tuple) and call.statistic is not LevelStatistic.COUNT:
        raise unsupported(
            call.node, "is of several columns", "Name one; COUNT(DISTINCT (a, b)) takes several."
        )
    is_extreme = call.statistic in _EXTREMES
    if call.statistic is LevelStatistic.SUM and key.sql_type not in _NUMERIC:
        raise unsupported(call.node, f"sums levels of type {key.sql_type}", "Name a number.")
    if not is_extreme:
        return
    if not part.noisy_extremes and not set(key.values) - {None} <= _INDICATOR:
        raise unsupported(
            call.node,
            "depends on single records",
            "Say OPTIONS(extremes => 'noisy') for the outermost level with a noisy count above its "
            "noise, or ask PERCENTILE_DISC(0.01) or (0.99).",
        )
    axis = part.domain.schema.by_name.get(call.value.name)
    if isinstance(call.value, exp.Column) and axis is not None and axis.other is not None:
        raise unsupported(
            call.node,
            "is of a column with an OTHER level, which has no place in it",
            f"Ask COUNT(*), grouped by {axis.name}.",
        )


def _note(call: SummaryCall) -> str:
    levels = "combinations of levels" if isinstance(call.value, exp.Tuple) else "levels"
    what = {
        LevelStatistic.COUNT: f"counts the {levels}",
        LevelStatistic.SUM: "sums the levels",
        LevelStatistic.LEAST: "is the smallest of the levels",
        LevelStatistic.LARGEST: "is the largest of the levels",
        LevelStatistic.MODE: "is the most frequent of the levels",
    }[call.statistic]
    missed = "an estimate without an interval. Levels with fewer records are missed."
    if call.statistic in BOUNDED:
        missed = (
            "levels with fewer records are missed. Its interval ends at all that may occur; where "
            "these are more than twice as many, it is NULL."
        )
    return f"{_written(call)} {what} whose noisy count is above what noise alone reaches: {missed}"


def _split(
    part: PartBuilder, key: KeyArray, order: list[int]
) -> tuple[list[Partition], tuple[int, ...]]:
    """Every section's groups split by the levels, and the cell of each row of these partitions."""
    rank = np.full(len(key.values) + 1, -1, dtype=np.int64)  # the last is for -1, no level
    rank[order] = np.arange(len(order))
    level = rank[key.codes]
    partitions: list[Partition] = []
    cells: list[int] = []
    n_before = 0
    for section in part.sections:
        if section.keys and section.partition is None:
            continue  # no group is possible
        n_groups = 1 if section.partition is None else section.partition.n_groups
        partition, found = _by_level(section, key, level, part)
        if partition is not None:
            partitions.append(partition)
            cells += [n_before * len(order) + cell for cell in found]
        n_before += n_groups
    return partitions, tuple(cells)


def _by_level(
    section: Grouping, key: KeyArray, level: np.ndarray, part: PartBuilder
) -> tuple[Partition | None, list[int]]:
    """A section's groups split by levels; of each row of the partition, its group and level."""
    own = () if section.partition is None else section.partition.axes
    axes = tuple(sorted({*own, *key.axes}))
    check_size(axes, part.domain.schema)
    part.domain.allowance.cells(part.domain.schema.n_cells(axes))
    sizes = part.domain.schema.sizes(axes)
    joint = np.broadcast_to(spread(level, key.axes, axes), sizes)
    if section.partition is not None:
        group = np.broadcast_to(spread(section.partition.labels, own, axes), sizes)
        n_levels = int(level.max()) + 1
        joint = np.where((group < 0) | (joint < 0), -1, group * n_levels + joint)
    cells, labels = np.unique(joint, return_inverse=True)
    labels = labels.reshape(sizes)
    if cells[0] < 0:
        cells, labels = cells[1:], labels - 1
    if cells.size > N_GROUPS_MAX:
        raise TooLarge(
            f"There are {cells.size} levels in groups to be counted; {N_GROUPS_MAX} are allowed.",
            hint="Round the values, as in FLOOR(x / 100), or group by fewer columns.",
        )
    return (Partition(axes, labels) if cells.size else None), cells.tolist()
