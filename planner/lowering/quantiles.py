"""MEDIAN and other quantiles of an ordered column, computed from noisy counts of its levels.

Counts of levels are measured, group by group; so everything that is known about the column from
other queries is used, and the measurements are useful for other queries.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cube.axis import Axis, DateAxis, NumericAxis, TimestampAxis
from cube.classes import Tiles, tiled
from cube.pieces import runs_of
from cube.query import N_GROUPS_MAX, N_NARROW_LEVELS_MAX, Partition, QueryBlock
from cube.refusals import TooLarge
from planner.domain.domain import spread
from planner.lowering.grouping import Grouping
from planner.lowering.linear import linear_query
from planner.lowering.parts import PartBuilder
from planner.lowering.products import check_size
from planner.lowering.quantile_columns import OrderedColumn, ordered_column
from planner.lowering.summands import conjuncts
from planner.sql.exact_number import constant_value
from planner.sql.messages import unsupported
from planner.sql.nodes import copy_of, is_quantile
from planner.workload import Answer, QuantileFormula

N_FRACTIONS_MAX = 100  # of several quantiles at once
N_BINS_MAX = 256  # in which a column of many levels is counted; the noise of more outweighs them


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


def quantiles_of(node: exp.Expr) -> list[exp.Expr] | None:
    """Several quantiles at once, as one of each fraction; None if it is something else.

    ``PERCENTILE_CONT(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY x)``, ``QUANTILE_CONT(x, [..])``
    """
    inner = node.unnest()
    call = inner.this if isinstance(inner, exp.Filter) else inner
    if isinstance(call, exp.WithinGroup) and call.this.this is not None:  # as MODE() has none
        written = call.this.this
    elif is_quantile(call) and len(call.expressions) == 2:  # noqa: PLR2004 - a column and a list
        written = call.expressions[1]
    else:
        return None
    fractions = None if written is None else _listed(written)  # MODE() names none
    if fractions is None:
        return None
    if not 0 < len(fractions) <= N_FRACTIONS_MAX:
        raise unsupported(
            node, f"is of {len(fractions)} fractions", f"Ask for 1 to {N_FRACTIONS_MAX} at once."
        )
    found = []
    for fraction in fractions:
        one = copy_of(inner)
        own = one.this if isinstance(one, exp.Filter) else one
        if isinstance(own, exp.WithinGroup):
            own.this.set("this", copy_of(fraction))
        else:
            own.set("expressions", [own.expressions[0], copy_of(fraction)])
        found.append(one)
    return found


def _listed(node: exp.Expr) -> list[exp.Expr] | None:
    """The values of a list, which may be written as a text in braces; None if it is none."""
    node = node.unnest()
    if isinstance(node, exp.Cast) and node.to.this == exp.DType.ARRAY:
        node = node.this.unnest()
    if isinstance(node, exp.Literal) and node.is_string and node.name.startswith("{"):
        words = [word.strip() for word in node.name.strip("{}").split(",")]
        return [exp.Literal.number(word) for word in words if word]
    return list(node.expressions) if isinstance(node, exp.Array) else None


def quantile_answer(call: QuantileCall, part: PartBuilder, name: str, text: str) -> Answer:
    """The answer, with the counts that it is computed from added to the part."""
    ordered = ordered_column(call.value, call.node, part.domain.schema)
    axis, bins = ordered.axis, _Bins.of(ordered.axis)
    _check_axis(call, axis)
    counted = exp.Count(this=copy_of(ordered.column), big_int=True)
    conditions = part.conditions
    if call.condition is not None:
        conditions = (*conditions, *conjuncts(call.condition))
    query = linear_query(counted, conditions, part.domain)
    if (
        axis.name not in part.levelled
    ):  # shared by all quantiles of the column, since they are large
        part.levelled[axis.name] = _levelled(axis, bins, part)
    partitions, cells = part.levelled[axis.name]
    blocks = tuple(QueryBlock(query, partition) for partition in partitions)
    key = (f"levels of {ordered.column.sql()}", conditions, False)
    place = part.add(key, f"counts of {axis.name}", blocks, part.default.half_width)
    levels, upper = bins.ends_of(ordered)
    formula = QuantileFormula(
        call.fraction, levels, cells, call.is_interpolated, upper, is_bracketed=bins.width > 1
    )
    return Answer(
        name, text, (place,), formula, low=levels[0], high=upper[-1] if upper else levels[-1]
    )


@dataclass(frozen=True, slots=True)
class _Bins:
    """The levels of a column that are counted together: `width` of them, fewer in the last bin.

    Each of half a million levels by itself would be told from nothing; so a column with more levels
    than `N_NARROW_LEVELS_MAX` is counted in bins, and the interval says what a bin leaves open.
    """

    n_levels: int
    width: int

    @classmethod
    def of(cls, axis: Axis) -> "_Bins":
        is_wide = axis.n_regular > N_NARROW_LEVELS_MAX and not isinstance(axis, NumericAxis)
        return cls(axis.n_regular, -(-axis.n_regular // N_BINS_MAX) if is_wide else 1)

    @property
    def n_bins(self) -> int:
        return -(-self.n_levels // self.width)

    def ends_of(self, ordered: OrderedColumn) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The lowest and the highest number in each bin; no highest where bins are levels."""
        if self.width == 1:
            return ordered.levels, ordered.upper
        lowest = ordered.levels[:: self.width]
        highest = ordered.levels[self.width - 1 :: self.width]
        return lowest, (*highest, *ordered.levels[-1:])[: self.n_bins]

    def of_level(self, size: int) -> NDArray[np.int64]:
        """The bin of each level of an axis; -1 for levels that are no numbers."""
        every = np.arange(size, dtype=np.int64)
        return np.where(every < self.n_levels, every // self.width, -1)


def _levelled(
    axis: Axis, bins: _Bins, part: PartBuilder
) -> tuple[tuple[Partition, ...], tuple[int, ...]]:
    """Every section's groups split by the levels of an axis, and the level of each row."""
    partitions: list[Partition] = []
    cells: list[int] = []
    n_before = 0
    for section in part.sections:
        if section.keys and section.partition is None:
            continue  # no group is possible
        partition, found = _by_level(section, axis, bins, part)
        partitions.append(partition)
        cells += [n_before * bins.n_bins + cell for cell in found]
        n_before += 1 if section.partition is None else section.partition.n_groups
    return tuple(partitions), tuple(cells)


def _by_level(
    section: Grouping, axis: Axis, bins: _Bins, part: PartBuilder
) -> tuple[Partition, tuple[int, ...]]:
    """A section's groups split by the levels of an axis.

    The second value has, for each row of the partition, ``group * n_bins + bin``.
    """
    n_levels, levels = bins.n_bins, bins.of_level(axis.size)
    if section.partition is None:
        return Partition((axis.name,), levels), tuple(range(n_levels))
    if bins.width > 1:
        return _by_bin(section.partition, axis, bins, part)
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
    _check_counted(cells.size)
    return Partition(axes, labels), tuple(int(cell) for cell in cells)


def _by_bin(
    partition: Partition, axis: Axis, bins: _Bins, part: PartBuilder
) -> tuple[Partition, tuple[int, ...]]:
    """Groups split by the bins of a column with many levels."""
    if axis.name in partition.axes:
        raise TooLarge(
            f"A quantile of {axis.name} is asked for in groups of {axis.name}, which has "
            f"{bins.n_levels} levels.",
            hint="Group by other columns.",
        )
    n_cells = partition.n_groups * bins.n_bins
    _check_counted(n_cells)
    part.domain.allowance.cells(partition.n_stored * bins.n_bins)
    axes = tuple(sorted((*partition.axes, axis.name)))
    groups = partition.groups
    labels = partition.labels if not isinstance(groups, Tiles) else groups.values
    along = [runs_of(np.arange(size, dtype=np.int64)) for size in labels.shape]
    if isinstance(groups, Tiles):
        along = list(groups.along)
    place = axes.index(axis.name)
    every = bins.of_level(axis.size)
    of_bin = np.where(every < 0, bins.n_bins, every)  # one more class, of what is no number
    along.insert(place, runs_of(of_bin))
    numbers = np.arange(bins.n_bins, dtype=np.int64)
    if int(of_bin[-1]) == bins.n_bins:
        numbers = np.append(numbers, -1)
    shape = [-1 if n == place else 1 for n in range(len(axes))]
    group, bin_of = np.expand_dims(labels, place), numbers.reshape(shape)
    joint = np.where((group < 0) | (bin_of < 0), -1, group * bins.n_bins + bin_of)
    return Partition(axes, tiled(tuple(along), joint)), tuple(range(n_cells))


def _check_counted(n_cells: int) -> None:
    """Raise TooLarge if a quantile needs more counts than one block has."""
    if n_cells > N_GROUPS_MAX:
        raise TooLarge(
            f"The quantile needs counts of {n_cells} levels; {N_GROUPS_MAX} are allowed.",
            hint="Group by fewer columns.",
        )


def _check_axis(call: QuantileCall, axis: Axis) -> None:
    if isinstance(axis, DateAxis | TimestampAxis) and call.is_interpolated:
        what = "day" if isinstance(axis, DateAxis) else "moment"
        raise unsupported(
            call.node,
            f"is between two {what}s",
            f"PERCENTILE_DISC({call.fraction:g}) WITHIN GROUP (ORDER BY {axis.name}) is a {what}.",
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
