"""Lowers numbers that are read off noisy counts of levels: quantiles, modes, extremes.

What a quantile is of: a column with an order, perhaps scaled, and its levels as numbers.

A quantile of ``a * x + b`` with a above 0 is that of x, scaled; so are casts to types that hold
every value. Days and moments are numbered from the column's first, and become days and moments
again in the SQL around the answer.

MEDIAN and other quantiles of an ordered column, computed from noisy counts of its levels.

Counts of levels are measured, group by group; so everything that is known about the column from
other queries is used, and the measurements are useful for other queries.

COUNT(DISTINCT x), MODE, MIN and MAX as numbers that are read off noisy counts of x's levels.

    SELECT plan, COUNT(DISTINCT city) FROM customers GROUP BY plan

Counted are the levels of the expression in each group, as by GROUP BY plan, city: that costs what
these counts cost, and both share a history. What is read off them, and when a level is taken to
occur, is in `planner/level_summary.py`.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cube.axis import Axis, DateAxis, IntegerAxis, MeasureAxis, NumericAxis, TimestampAxis
from cube.classes import Tiles, tiled
from cube.pieces import runs_of
from cube.query import N_GROUPS_MAX, N_NARROW_LEVELS_MAX, Partition, QueryBlock
from cube.refusals import TooLarge, UnsupportedSql
from cube.schema import Schema
from planner.domain import KeyArray, Polynomial, columns_of, polynomial_of, spread
from planner.level_summary import BOUNDED, LevelStatistic, LevelSummary
from planner.lowering.linear import Grouping, changed_in_key, grouping, has_aggregate, linear_query
from planner.lowering.parts import PartBuilder
from planner.lowering.summands import check_size, conjuncts
from planner.sql import (
    AS_WRITTEN,
    constant_value,
    copy_of,
    is_quantile,
    shown,
    text_of,
    unsupported,
)
from planner.workload import Answer, ColumnKind, QuantileFormula

_IDENTITY = (Fraction(0), Fraction(1))
_AFFINE = 2  # coefficients

Calendar: TypeAlias = DateAxis | TimestampAxis


@dataclass(frozen=True, slots=True)
class OrderedColumn:
    """A column, and the numbers that its regular levels stand for.

    Parameters
    ----------
    column : Column
    axis : Axis
    levels : tuple of float
        In increasing order.
    upper : tuple of float
        The upper ends of levels that are bins.
    """

    column: exp.Column
    axis: Axis
    levels: tuple[float, ...]
    upper: tuple[float, ...]


def ordered_column(value: exp.Expr, call: exp.Expr, schema: Schema) -> OrderedColumn:
    """The column that the expression `value` of a quantile `call` orders by.

    Raises
    ------
    UnsupportedSql
        If it is not an increasing linear function of one ordered column.
    """
    names = columns_of(value)
    axis = schema.by_name[names[0]] if len(names) == 1 else None
    if isinstance(axis, DateAxis | TimestampAxis) and isinstance(value.unnest(), exp.Column):
        numbers = tuple(map(float, range(axis.n_regular)))
        return OrderedColumn(_column(value), axis, numbers, ())
    if not isinstance(axis, IntegerAxis | NumericAxis | MeasureAxis):
        raise _no_column(call)
    polynomial = polynomial_of(value, axis)
    if polynomial is None or len(polynomial.coefficients) > _AFFINE:
        raise _no_column(call)
    levels = _scaled(axis.regular, polynomial)
    if levels is None:
        raise _no_column(call)
    upper = axis.edges[1:] if isinstance(axis, NumericAxis) else ()
    return OrderedColumn(_column(value), axis, levels, _scaled(upper, polynomial) or ())


def calendar_of(value: exp.Expr, schema: Schema) -> Calendar | None:
    """The column whose levels a quantile's numbers are; None if they are no days or moments."""
    column = value.unnest()
    axis = schema.by_name[column.name] if isinstance(column, exp.Column) else None
    return axis if isinstance(axis, DateAxis | TimestampAxis) else None


def as_level(number: exp.Expr, calendar: Calendar) -> exp.Expr:
    """The day or moment with a number, counted from the column's first."""
    kind = exp.DType[calendar.sql_type]
    origin = exp.cast(exp.Literal.string(str(calendar.low)), kind, copy=False)
    after: exp.Expr = exp.cast(number, exp.DType.INT, copy=False)
    if isinstance(calendar, TimestampAxis):
        step = exp.Interval(this=exp.Literal.string("1"), unit=exp.var(calendar.step.upper()))
        after = exp.Mul(this=after, expression=step)
    return exp.paren(exp.Add(this=origin, expression=after), copy=False)


def _column(value: exp.Expr) -> exp.Column:
    return next(value.find_all(exp.Column))


def _scaled(levels: tuple[float, ...], polynomial: Polynomial) -> tuple[float, ...] | None:
    """Increasing numbers for increasing levels; None if they do not increase."""
    if polynomial.coefficients == _IDENTITY:
        return tuple(map(float, levels))
    if len(polynomial.coefficients) < _AFFINE or polynomial.coefficients[1] <= 0:
        return None
    shift, scale = map(float, polynomial.coefficients)
    return tuple(shift + scale * level for level in levels)


def _no_column(call: exp.Expr) -> UnsupportedSql:
    return unsupported(
        call,
        "is not a quantile of a numeric column (which may be scaled), a date or a timestamp",
        f"Use a column, as in {shown(exp.Median(this=exp.column('x')))}, and apply functions to "
        "the answer.",
    )


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
            raise unsupported(
                node,
                "is not supported",
                "WITHIN GROUP works with PERCENTILE_CONT and PERCENTILE_DISC.",
            )
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
                node, "needs a column and a fraction", "The median is QUANTILE_CONT(column, 0.5)."
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
            node,
            f"has {len(fractions)} fractions",
            f"Ask for 1 to {N_FRACTIONS_MAX} fractions at once.",
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
        partition, found = _in_bins(section, axis, bins, part)
        partitions.append(partition)
        cells += [n_before * bins.n_bins + cell for cell in found]
        n_before += 1 if section.partition is None else section.partition.n_groups
    return tuple(partitions), tuple(cells)


def _in_bins(
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
            f"The statement asks for a quantile of {axis.name} in groups of {axis.name}, which "
            f"has {bins.n_levels} levels.",
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
    of_bin = np.where(every < 0, bins.n_bins, every)  # one more class, for values without a number
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
            f"would interpolate between two {what}s",
            f"Use PERCENTILE_DISC({call.fraction:g}) WITHIN GROUP (ORDER BY {axis.name}), which "
            f"gives a {what}.",
        )
    if axis.other is not None:
        raise unsupported(
            call.node,
            "is a quantile of a column whose OTHER level has no place in the order",
            f"Use COUNT(*), grouped by {axis.name}.",
        )


def _fraction(node: exp.Expr, call: exp.Expr) -> float:
    value = constant_value(node)
    if value is None or not 0 <= value <= 1:
        raise unsupported(call, "needs a number between 0 and 1", "0.5 is the median.")
    return float(value)


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
            call.node,
            "takes one column, not several",
            "Name one column. COUNT(DISTINCT (a, b)) takes several.",
        )
    is_extreme = call.statistic in _EXTREMES
    if call.statistic is LevelStatistic.SUM and key.sql_type not in _NUMERIC:
        raise unsupported(call.node, f"sums levels of type {key.sql_type}", "Use a numeric column.")
    if not is_extreme:
        return
    if not part.noisy_extremes and not set(key.values) - {None} <= _INDICATOR:
        raise unsupported(
            call.node,
            "depends on single records",
            "Use OPTIONS(extremes => 'noisy') for the outermost level whose noisy count stands "
            "out from the noise, or PERCENTILE_DISC(0.01) or (0.99).",
        )
    axis = part.domain.schema.by_name.get(call.value.name)
    if isinstance(call.value, exp.Column) and axis is not None and axis.other is not None:
        raise unsupported(
            call.node,
            "is of a column whose OTHER level has no place in the order",
            f"Use COUNT(*), grouped by {axis.name}.",
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
    missed = "an estimate without an interval. Levels with few records are missed."
    if call.statistic in BOUNDED:
        missed = (
            "levels with few records are missed. Its interval goes up to the number of all "
            "possible levels; it is NULL if that is more than twice as much."
        )
    return (
        f"{_written(call)} {what} whose noisy count is above what noise alone can reach: {missed}"
    )


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
            f"The groups have {cells.size} levels to count; {N_GROUPS_MAX} are allowed.",
            hint="Round the values, as in FLOOR(x / 100), or group by fewer columns.",
        )
    return (Partition(axes, labels) if cells.size else None), cells.tolist()
