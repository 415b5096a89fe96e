"""MEDIAN and other quantiles of an ordered column, computed from noisy counts of its levels.

Counts of levels are measured, group by group; so everything that is known about the column from
other queries is used, and the measurements are useful for other queries.
"""

from dataclasses import dataclass

import numpy as np
from sqlglot import exp

from cube.axis import Axis, DateAxis
from cube.block import N_GROUPS_MAX, Partition, QueryBlock
from cube.refusals import TooLarge
from planner.lowering.grouping import Grouping
from planner.lowering.linear import linear_query
from planner.lowering.parts import PartBuilder
from planner.lowering.products import check_size, spread
from planner.lowering.quantile_columns import ordered_column
from planner.lowering.summands import conjuncts
from planner.sql.exact_number import constant_value
from planner.sql.messages import unsupported
from planner.sql.nodes import is_quantile
from planner.workload import Answer, QuantileFormula


@dataclass(frozen=True, slots=True)
class QuantileCall:
    """A quantile as written: its expression, its fraction between 0 and 1, and its records."""

    node: exp.Expr
    value: exp.Expr
    fraction: float
    is_interpolated: bool
    condition: exp.Expr | None


def quantile_of(node: exp.Expr) -> QuantileCall | None:
    """The quantile that a node asks for; None if it is something else."""
    condition = None
    inner = node.unnest()
    if isinstance(inner, exp.Filter):
        inner, condition = inner.this, inner.expression.this
    if isinstance(inner, exp.Median):
        return QuantileCall(node, inner.this, 0.5, True, condition)
    if isinstance(inner, exp.WithinGroup):
        function = inner.this
        if not isinstance(function, exp.PercentileCont | exp.PercentileDisc):
            raise unsupported(node, "is not answered", "PERCENTILE_CONT and PERCENTILE_DISC are.")
        ordered = inner.expression.expressions
        if len(ordered) != 1:
            raise unsupported(
                node, "orders by more than one expression", "Order by one numeric column."
            )
        fraction = _fraction(function.this, node)
        if ordered[0].args.get("desc"):
            fraction = 1 - fraction
        is_interpolated = isinstance(function, exp.PercentileCont)
        return QuantileCall(node, ordered[0].this, fraction, is_interpolated, condition)
    if isinstance(inner, exp.Quantile):
        return QuantileCall(
            node,
            inner.this,
            _fraction(inner.args["quantile"], node),
            False,
            condition,
        )
    if is_quantile(inner):
        arguments = inner.expressions
        if len(arguments) != 2:  # noqa: PLR2004 - a column and a fraction
            raise unsupported(
                node, "takes a column and a fraction", "The median is QUANTILE_CONT(column, 0.5)."
            )
        is_interpolated = inner.name.upper() == "QUANTILE_CONT"
        return QuantileCall(
            node, arguments[0], _fraction(arguments[1], node), is_interpolated, condition
        )
    return None


def quantile_answer(call: QuantileCall, part: PartBuilder, name: str, text: str) -> Answer:
    """The answer, with the counts that it is computed from added to the part."""
    ordered = ordered_column(call.value, call.node, part.domain.schema)
    axis, levels, upper = ordered.axis, ordered.levels, ordered.upper
    _check_axis(call, axis)
    counted = exp.Count(this=ordered.column.copy(), big_int=True)
    conditions = part.conditions
    if call.condition is not None:
        conditions = (*conditions, *conjuncts(call.condition))
    query = linear_query(counted, conditions, part.domain)
    if (
        axis.name not in part.levelled
    ):  # shared by all quantiles of the column, since they are large
        part.levelled[axis.name] = _levelled(axis, len(levels), part)
    partitions, cells = part.levelled[axis.name]
    blocks = tuple(QueryBlock(query, partition) for partition in partitions)
    key = (f"levels of {ordered.column.sql()}", conditions, False)
    place = part.add(key, f"counts of {axis.name}", blocks, part.default.half_width)
    formula = QuantileFormula(call.fraction, levels, cells, call.is_interpolated, upper)
    return Answer(
        name, text, (place,), formula, low=levels[0], high=upper[-1] if upper else levels[-1]
    )


def _levelled(
    axis: Axis, n_levels: int, part: PartBuilder
) -> tuple[tuple[Partition, ...], tuple[int, ...]]:
    """Every section's groups split by the levels of an axis, and the level of each row."""
    partitions: list[Partition] = []
    cells: list[int] = []
    n_before = 0
    for section in part.sections:
        if section.keys and section.partition is None:
            continue  # no group is possible
        partition, found = _by_level(section, axis, n_levels, part)
        partitions.append(partition)
        cells += [n_before * n_levels + cell for cell in found]
        n_before += 1 if section.partition is None else section.partition.n_groups
    return tuple(partitions), tuple(cells)


def _by_level(
    section: Grouping, axis: Axis, n_levels: int, part: PartBuilder
) -> tuple[Partition, tuple[int, ...]]:
    """A section's groups split by the levels of an axis.

    The second value has, for each row of the partition, ``group * n_levels + level``.
    """
    levels = np.where(np.arange(axis.size) < n_levels, np.arange(axis.size), -1)
    if section.partition is None:
        return Partition((axis.name,), levels), tuple(range(n_levels))
    axes = tuple(sorted({*section.partition.axes, axis.name}))
    check_size(axes, part.domain.schema)
    part.domain.allowance.cells(part.domain.schema.n_cells(axes))
    sizes = part.domain.schema.sizes(axes)
    group = np.broadcast_to(spread(section.partition.labels, section.partition.axes, axes), sizes)
    level = np.broadcast_to(spread(levels, (axis.name,), axes), sizes)
    joint = np.where((group < 0) | (level < 0), -1, group * n_levels + level)
    cells, labels = np.unique(joint, return_inverse=True)
    labels = labels.reshape(sizes)
    if cells[0] < 0:
        cells, labels = cells[1:], labels - 1
    if cells.size > N_GROUPS_MAX:
        raise TooLarge(
            f"The quantile needs counts of {cells.size} levels; {N_GROUPS_MAX} are allowed.",
            hint="Group by fewer columns.",
        )
    return Partition(axes, labels), tuple(int(cell) for cell in cells)


def _check_axis(call: QuantileCall, axis: Axis) -> None:
    if isinstance(axis, DateAxis) and call.is_interpolated:
        raise unsupported(
            call.node,
            "is between two days",
            f"PERCENTILE_DISC({call.fraction:g}) WITHIN GROUP (ORDER BY {axis.name}) is a day.",
        )
    if len(axis.regular) > N_GROUPS_MAX:
        raise TooLarge(
            f"{axis.name} has {len(axis.regular)} levels; quantiles are read off {N_GROUPS_MAX}.",
            hint="The owner can declare the column with a larger step.",
        )
    if axis.other is not None:
        raise unsupported(
            call.node,
            "is a quantile of a column with an OTHER level, which has no place in it",
            f"Ask COUNT(*), grouped by {axis.name}.",
        )


def _fraction(node: exp.Expr, call: exp.Expr) -> float:
    value = constant_value(node)
    if value is None or not 0 <= value <= 1:
        raise unsupported(call, "needs a number between 0 and 1", "0.5 is the median.")
    return float(value)
