"""Lowers the keys and items of a SELECT to linear queries.

GROUP BY is a partition of public cells, with the key values of each row. An item is a sum of counts
and sums, times constants. Beside them stands what is said about values that count as others than
they are: clamped ones, and OTHER; and how much of each unit counts, if a statement bounds it.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cube.axis import Axis, DateAxis, IntegerAxis, LevelValue, MeasureAxis, TimestampAxis
from cube.classes import Tiles, by_first_appearance, first_places, tiled
from cube.grid import slice_keys
from cube.pieces import Pieces, runs_of
from cube.query import (
    COEFFICIENT_MAX,
    N_FACTOR_CELLS_MAX,
    N_GROUPS_MAX,
    N_NARROW_LEVELS_MAX,
    Factor,
    LinearQuery,
    Partition,
    QueryBlock,
    Scope,
    Term,
    counting,
)
from cube.refusals import InvalidTarget, TooLarge, UnsupportedSql
from cube.schema import Schema
from cube.statistic import BOUNDED_ROWS, Rule
from inference import coefficient_range
from planner.domain import Allowance, KeyArray, LevelArray, PublicDomain, spread
from planner.lowering.summands import (
    N_SHARED_CELLS_MAX,
    Product,
    conjuncts,
    connected,
    counted,
    independent,
    merged_query,
    product_term,
    summed,
)
from planner.sql import constant_value, divided_by_zero, has_node, is_unit_count, shown, unsupported
from planner.workload import Aggregate, ChangedValues, GroupKey, RequestedTarget


def changed_in_sum(
    summand: exp.Expr, conditions: Sequence[LevelArray], schema: Schema
) -> Iterator[ChangedValues]:
    """What is said about the columns whose values are summed.

    Parameters
    ----------
    summand : Expr
        Over axes. A column that is only compared in it is not summed.
    conditions : sequence of LevelArray
        Those under which it is summed.
    schema : Schema
    """
    nodes = summand.walk(prune=lambda node: isinstance(node, exp.Predicate))
    for name in dict.fromkeys(node.name for node in nodes if isinstance(node, exp.Column)):
        axis = schema.by_name[name]
        if isinstance(axis, MeasureAxis):
            low, high = _number(axis.low), _number(axis.high)
            said = f"Values of {name} below {low} count as {low}, those above {high} as {high}."
            beyond = f"have {name} at a bound or beyond it"
            yield ChangedValues(schema.table, said, beyond, _rows_at(axis, 0, axis.n_regular - 1))
        elif _has_other(axis, conditions):
            yield _of_other(axis, schema)


def changed_in_key(
    key: KeyArray, conditions: Sequence[LevelArray], schema: Schema
) -> Iterator[ChangedValues]:
    """What is said about the columns of a group key, in whose groups OTHER may be."""
    for place, name in enumerate(key.axes):
        axis = schema.by_name[name]
        other = axis.other_position
        if other is None or not _has_other(axis, conditions):
            continue
        if (np.take(key.codes, other, axis=place) >= 0).any():
            yield _of_other(axis, schema)


def _has_other(axis: Axis, conditions: Sequence[LevelArray]) -> bool:
    """Whether records may be at a column's OTHER that satisfy the conditions on it alone."""
    place = axis.other_position
    own = [one for one in conditions if one.axes == (axis.name,)]
    return place is not None and all(one.values[place] for one in own)


def _of_other(axis: Axis, schema: Schema) -> ChangedValues:
    other = repr(axis.other) if isinstance(axis.other, str) else str(axis.other)
    and_null = "" if axis.null else ", and NULL,"
    said = f"Values of {axis.name} that are not declared{and_null} count as {other}."
    return ChangedValues(
        schema.table, said, f"have {axis.name} {other}", _rows_at(axis, axis.n_regular)
    )


def _rows_at(axis: Axis, *places: int) -> QueryBlock:
    """The number of rows at some levels."""
    is_there = np.zeros(axis.size, dtype=np.int64)
    is_there[list(places)] = 1
    return QueryBlock(counting([Factor((axis.name,), is_there)]))


def _number(value: Fraction | int) -> str:
    """A public bound, with all of its digits.

    >>> _number(Fraction(1_250_000)), _number(Fraction(1, 4))
    ('1250000', '0.25')
    """
    exact = Fraction(value)
    return str(exact.numerator) if exact.denominator == 1 else repr(float(exact))


N_VALUES_MAX = 2**20  # of all keys of all groups


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups of one SELECT; `partition` is None if no group is possible."""

    partition: Partition | None
    keys: tuple[GroupKey, ...]

    @property
    def n_rows(self) -> int:
        """The number of groups; one of everything without keys."""
        if not self.keys:
            return 1
        return 0 if self.partition is None else self.partition.n_groups


@dataclass(frozen=True, eq=False)
class _Part:
    """Groups over a few columns that are independent of all other columns.

    `labels` is -1 where WHERE holds on no cell; `chosen` holds, for each group, the code of every
    key in `members`, as an array of shape (n_groups, n_members).
    """

    axes: Scope
    labels: NDArray[np.int64]
    members: list[int]
    chosen: NDArray[np.int64]

    @property
    def n_groups(self) -> int:
        return len(self.chosen)


def grouping(
    keys: Sequence[KeyArray],
    where: Sequence[LevelArray],
    schema: Schema,
    allowance: Allowance,
) -> Grouping:
    """The groups of `keys` (at least one) that cells satisfying `where` can fall into.

    Raises
    ------
    TooLarge
        If there are more than `N_GROUPS_MAX`, or too many combinations of levels behind them, or
        too many values of keys in them.
    """
    axes = tuple(sorted({name for key in keys for name in key.axes}))
    factors = independent(where, schema, allowance)
    possible = all(factor.values.any() for factor in factors)
    parts = _parts(keys, [_reach(factor, axes) for factor in factors], schema) if possible else []
    n_groups = math.prod(part.n_groups for part in parts) if possible else 0
    if n_groups > N_GROUPS_MAX:
        raise TooLarge(
            f"GROUP BY makes {n_groups} groups; {N_GROUPS_MAX} are allowed.",
            hint=narrower([schema.by_name[key.axes[0]] for key in keys if len(key.axes) == 1]),
        )
    if n_groups == 0:
        return Grouping(None, tuple(GroupKey(key.sql_type, ()) for key in keys))
    is_tiled = len(axes) > 1 and (
        max(schema.sizes(axes)) > N_NARROW_LEVELS_MAX or schema.n_cells(axes) > N_FACTOR_CELLS_MAX
    )
    if not is_tiled:
        _check_cells(axes, schema)
        allowance.cells(schema.n_cells(axes))
    check_values(n_groups, len(keys))
    rows = _rows(keys, parts)
    order = sorted(range(n_groups), key=lambda row: [_sort_key(value) for value in rows[row]])
    rank = np.empty(n_groups + 1, dtype=np.int64)
    rank[order], rank[n_groups] = np.arange(n_groups), -1  # -1, no group, picks the last entry
    if is_tiled:
        partition = Partition(axes, _tiles(parts, axes, rank, allowance))
    else:
        partition = _shared(axes, rank[_joint_labels(parts, axes, schema.sizes(axes))])
    columns = zip(*(rows[row] for row in order), strict=True)
    return Grouping(
        partition,
        tuple(GroupKey(key.sql_type, values) for key, values in zip(keys, columns, strict=True)),
    )


# Like factors: partitions that many statements share are one object; the key includes the shape.
_PARTITIONS: WeakValueDictionary[tuple[Scope, tuple[int, ...], bytes], Partition]
_PARTITIONS = WeakValueDictionary()


def _shared(axes: Scope, labels: NDArray[np.int64]) -> Partition:
    if labels.size > N_SHARED_CELLS_MAX:
        return Partition(axes, labels)
    key = (axes, labels.shape, labels.tobytes())
    known = _PARTITIONS.get(key)
    if known is None:
        known = _PARTITIONS[key] = Partition(axes, labels)
    return known


def _reach(factor: LevelArray, key_axes: Scope) -> LevelArray:
    """Which levels of the key columns a condition allows for some levels of other columns."""
    others = tuple(d for d, name in enumerate(factor.axes) if name not in key_axes)
    kept = tuple(name for name in factor.axes if name in key_axes)
    return LevelArray(kept, np.asarray(factor.values.any(axis=others), dtype=np.int64))


def _parts(keys: Sequence[KeyArray], reaches: Sequence[LevelArray], schema: Schema) -> list[_Part]:
    """Groups of keys and conditions that share no column with one another."""
    relevant = [reach for reach in reaches if reach.axes]
    scopes = [key.axes for key in keys] + [reach.axes for reach in relevant]
    parts = []
    for group in connected(scopes):
        members = [position for position in group if position < len(keys)]
        axes = tuple(sorted({name for position in group for name in scopes[position]}))
        _check_cells(axes, schema)
        reachable = np.ones(schema.sizes(axes), dtype=np.bool_)
        for position in group[len(members) :]:
            reach = relevant[position - len(keys)]
            reachable &= spread(reach.values, reach.axes, axes).astype(np.bool_)
        parts.append(_part(axes, members, keys, reachable))
    return parts


def _part(
    axes: Scope, members: list[int], keys: Sequence[KeyArray], reachable: NDArray[np.bool_]
) -> _Part:
    cells = np.flatnonzero(reachable)
    joint = np.zeros(cells.size, dtype=np.int64)
    codes = [
        np.broadcast_to(
            spread(keys[member].codes, keys[member].axes, axes), reachable.shape
        ).reshape(-1)[cells]
        for member in members
    ]
    for member, code in zip(members, codes, strict=True):
        # Renumbered after each key, so that the running number stays far below 2**63.
        _, joint = np.unique(joint * len(keys[member].values) + code, return_inverse=True)
    _, first = np.unique(joint, return_index=True)
    labels = np.full(reachable.size, -1, dtype=np.int64)
    labels[cells] = joint
    chosen = np.stack([code[first] for code in codes], axis=1)
    return _Part(axes, labels.reshape(reachable.shape), members, chosen)


def _rows(keys: Sequence[KeyArray], parts: Sequence[_Part]) -> list[tuple[LevelValue, ...]]:
    """The key values of every combination of the parts' groups, the last part running fastest."""
    n_groups = math.prod(part.n_groups for part in parts)
    columns: list[list[LevelValue]] = [[] for _ in keys]
    repeats = n_groups
    for part in parts:
        repeats //= part.n_groups
        place = np.arange(n_groups) // repeats % part.n_groups
        for column, member in enumerate(part.members):
            values = keys[member].values
            columns[member] = [values[code] for code in part.chosen[place, column]]
    return list(zip(*columns, strict=True))


def _tiles(
    parts: Sequence[_Part], axes: Scope, rank: NDArray[np.int64], allowance: Allowance
) -> Tiles:
    """The same as tiles, where a column has many levels: the levels of a part's group are one."""
    along: dict[str, Pieces] = {}
    small = []
    for part in parts:
        labels = part.labels
        for dimension, name in enumerate(part.axes):
            keys = slice_keys(labels, dimension)
            along[name] = classes = runs_of(by_first_appearance(np.asarray(keys)))
            first = first_places(classes.coefficients[:, 0])
            labels = labels.take(classes.starts[first], axis=dimension)
        small.append(replace(part, labels=labels))
    sizes = tuple(along[name].ends[1] + 1 for name in axes)
    if math.prod(sizes) > N_FACTOR_CELLS_MAX:
        raise TooLarge(
            f"GROUP BY uses {math.prod(sizes)} combinations of groups of levels; "
            f"{N_FACTOR_CELLS_MAX} are allowed.",
            hint="Group by fewer columns, or by columns with fewer levels.",
        )
    allowance.cells(math.prod(sizes))
    return tiled(tuple(along[name] for name in axes), rank[_joint_labels(small, axes, sizes)])


def _joint_labels(parts: Sequence[_Part], axes: Scope, sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """The number of each cell's combination in `_rows`; -1 where it is in no group."""
    joint = np.zeros(sizes, dtype=np.int64)
    outside = np.zeros(sizes, dtype=np.bool_)
    for part in parts:
        labels = spread(part.labels, part.axes, axes)
        joint = joint * part.n_groups + labels
        outside |= labels < 0
    joint[outside] = -1
    return joint


def _sort_key(value: LevelValue) -> tuple[bool, LevelValue]:
    return (True, 0) if value is None else (False, value)


def narrower(axes: Sequence[Axis]) -> str:
    """What to group by instead of these columns, when there are too many groups."""
    widest = max(axes, key=lambda axis: axis.size, default=None)
    if isinstance(widest, IntegerAxis | MeasureAxis):
        low, high = (f"{float(end):.15g}" for end in (widest.low, widest.high))
        ranges = f"WIDTH_BUCKET({widest.name}, {low}, {high}, 10)"
    elif isinstance(widest, DateAxis | TimestampAxis):
        ranges = f"DATE_TRUNC('month', {widest.name})"
    else:
        return "Group by fewer columns or by ranges, or narrow the groups in WHERE."
    return f"Group by ranges, as in {ranges}, or by fewer columns; or narrow the groups in WHERE."


def check_values(n_groups: int, n_keys: int) -> None:
    """Raise TooLarge if groups have too many values of keys to be written out."""
    if n_groups * n_keys > N_VALUES_MAX:
        raise TooLarge(
            f"GROUP BY makes {n_groups} groups of {n_keys} keys. These are {n_groups * n_keys} "
            f"values; {N_VALUES_MAX} are allowed.",
            hint=f"Use at most {N_VALUES_MAX // n_groups} keys, or narrow the groups in WHERE.",
        )


def _check_cells(axes: Scope, schema: Schema) -> None:
    n_cells = schema.n_cells(axes)
    if n_cells > N_FACTOR_CELLS_MAX:
        raise TooLarge(
            f"GROUP BY uses {', '.join(axes)}, which have {n_cells} combinations of levels; "
            f"{N_FACTOR_CELLS_MAX} are allowed.",
            hint="Group by fewer columns, or by columns with fewer levels.",
        )


N_ANSWER_BITS_MAX = 900  # an answer must be a finite double, with room for what is computed of it
_LARGEST = 2**N_ANSWER_BITS_MAX
_FINEST = Fraction(1, _LARGEST)

_OF_GROUPS = (
    "Aggregate groups, as in STRING_AGG(c, ',') FROM (SELECT c FROM t GROUP BY c HAVING COUNT(*) > "
    "100) AS g."
)
_HINTS: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.GroupConcat, _OF_GROUPS),
    (exp.ArrayAgg, _OF_GROUPS),
)
_COUNTED = (exp.Count, exp.CountIf, exp.Sum)
_REAL_TYPES = frozenset({exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.DECIMAL})


@dataclass(slots=True)
class _Parts:
    """The terms of a SELECT item, while it is being read."""

    products: list[Product] = field(default_factory=list)
    constant: Fraction = Fraction(0)


def linear_query(item: exp.Expr, where: tuple[exp.Expr, ...], domain: PublicDomain) -> LinearQuery:
    """The linear query of a SELECT item, over records for which all of `where` holds.

    Raises
    ------
    UnsupportedSql
        If the item is not linear in counts and sums.
    """
    parts = _Parts()
    _read(item, Fraction(1), where, domain, parts)
    terms = [_term(product, domain) for product in parts.products]
    query = merged_query(terms, parts.constant, domain.schema)
    row, _ = query.primitive()
    if row.bound > COEFFICIENT_MAX:
        raise unsupported(
            item,
            "needs coefficients of records that differ by more than a factor of 2**40",
            "Ask for its parts as separate columns.",
        )
    n_records = domain.schema.n_records_max
    largest = query.bound * n_records + abs(query.constant)
    finest = min((term.scale for term in query.terms), key=abs, default=Fraction(1))
    if largest > _LARGEST or abs(finest) < _FINEST:
        raise unsupported(
            item,
            "has coefficients or values beyond the range of floating point numbers",
            "Multiply or divide by smaller numbers.",
        )
    return query


def has_aggregate(item: exp.Expr) -> bool:
    """Whether an aggregate occurs anywhere in a SELECT item."""
    return has_node(item, exp.AggFunc)


def aggregated_twice(node: exp.Expr) -> UnsupportedSql:
    """The refusal of an aggregate inside an aggregate."""
    return unsupported(
        node,
        "has an aggregate inside an aggregate",
        "Compute the inner aggregate in a subquery, and aggregate its answers outside.",
    )


def is_linear(item: exp.Expr) -> bool:
    """Whether an item is a linear combination of counts and sums, with at least one.

    A count or sum that is refused later counts as one here.
    """
    item = item.unnest()
    if isinstance(item, exp.Add | exp.Sub | exp.Mul):
        return _is_linear_binary(item)
    if isinstance(item, exp.Div):
        return is_linear(item.this) and constant_value(item.expression) is not None
    if isinstance(item, exp.Neg) or _changes_nothing(item):
        return is_linear(item.this)
    counted_in = item.this if isinstance(item, exp.Filter) else item
    is_distinct = isinstance(counted_in.this, exp.Distinct)
    return (
        isinstance(counted_in, _COUNTED)
        and not is_distinct
        and not any(has_aggregate(inner) for inner in counted_in.iter_expressions())
    )


def _is_linear_binary(item: exp.Binary) -> bool:
    sides = (item.this, item.expression)
    # Each side is visited once: visiting it again at every level would double the work each time.
    linear = [is_linear(side) for side in sides]
    fits = [
        known or constant_value(side) is not None for known, side in zip(linear, sides, strict=True)
    ]
    if isinstance(item, exp.Mul):
        return sum(linear) == 1 and all(fits)
    return any(linear) and all(fits)


def _read(
    node: exp.Expr,
    scale: Fraction,
    where: tuple[exp.Expr, ...],
    domain: PublicDomain,
    parts: _Parts,
) -> None:
    """Add ``scale * node`` to the parts."""
    node = node.unnest()
    constant = constant_value(node)
    if constant is not None:
        parts.constant += scale * constant
    elif isinstance(node, exp.Count | exp.CountIf | exp.Sum):
        parts.products += _aggregate(node, scale, where, domain)
    elif isinstance(node, exp.Filter) and isinstance(node.this, exp.Count | exp.CountIf | exp.Sum):
        conditions = (*where, *conjuncts(node.expression.this))
        parts.products += _aggregate(node.this, scale, conditions, domain)
    elif isinstance(node, exp.Add | exp.Sub):
        sign = 1 if isinstance(node, exp.Add) else -1
        _read(node.this, scale, where, domain, parts)
        _read(node.expression, sign * scale, where, domain, parts)
    elif isinstance(node, exp.Neg):
        _read(node.this, -scale, where, domain, parts)
    elif isinstance(node, exp.Mul | exp.Div):
        inner, by = _times_constant(node)
        _read(inner, scale * by, where, domain, parts)
    elif _changes_nothing(node):
        _read(node.this, scale, where, domain, parts)
    else:
        raise _not_linear(node)


def _aggregate(
    node: exp.Count | exp.CountIf | exp.Sum,
    scale: Fraction,
    conditions: tuple[exp.Expr, ...],
    domain: PublicDomain,
) -> list[Product]:
    expression = exp.Star() if is_unit_count(node) else node.this  # the cells are the same
    if isinstance(expression, exp.Distinct):
        raise unsupported(
            node,
            "counts distinct values, which cannot be part of a sum of records",
            "Use COUNT(DISTINCT x) of one column, or COUNT(DISTINCT (a, b)) of several.",
        )
    if node.expressions or not isinstance(expression, exp.Expr):
        raise unsupported(node, "takes one argument", "Use COUNT(*) to count records.")
    if has_aggregate(expression):
        raise aggregated_twice(node)
    if isinstance(node, exp.CountIf):
        return [Product(scale, (), (*conditions, *conjuncts(expression)))]
    if isinstance(node, exp.Count):
        return [counted(expression, scale, conditions, domain.schema)]
    if isinstance(expression, exp.Star):
        raise unsupported(node, "does not sum a column", "Use COUNT(*) to count records.")
    products = summed(expression, scale, conditions, domain.schema)
    for product in products:
        for summand in product.summands:
            if domain.is_binned(summand):
                raise unsupported(
                    node,
                    f"needs single values of {shown(summand)}, but only its bins are public",
                    "Sum a CASE that gives each bin a value. The owner can also declare the column "
                    "as integer.",
                )
    return products


def _times_constant(node: exp.Mul | exp.Div) -> tuple[exp.Expr, Fraction]:
    """The other operand, and the constant it is multiplied with."""
    by = constant_value(node.expression)
    if isinstance(node, exp.Div):
        if by == 0:
            raise divided_by_zero(node)
        if by is not None:
            return node.this, 1 / by
    elif by is not None:
        return node.this, by
    else:
        by = constant_value(node.this)
        if by is not None:
            return node.expression, by
    raise ValueError("a nonlinear item was read as a linear one")


def _term(product: Product, domain: PublicDomain) -> Term:
    scale = product.scale
    holds = domain.truths(product.conditions)
    arrays = list(holds)
    for summand in product.summands:
        domain.caution(changed_in_sum(summand, holds, domain.schema))
        array, unit = domain.numbers(summand, holds)
        arrays.append(array)
        scale *= unit
    return product_term(scale, arrays, domain.schema, domain.allowance)


def _changes_nothing(node: exp.Expr) -> bool:
    """Whether a node is a cast to a type that holds any answer, or COALESCE of a non-NULL value."""
    if isinstance(node, exp.Cast):
        return node.to.this in _REAL_TYPES and not node.to.expressions and has_aggregate(node)
    if isinstance(node, exp.Coalesce):
        return all(constant_value(padding) is not None for padding in node.expressions)
    return False


def _not_linear(node: exp.Expr) -> UnsupportedSql:
    aggregate = node.this if isinstance(node, exp.Filter) else node
    for kind, hint in _HINTS:
        if isinstance(aggregate, kind):
            return unsupported(node, "is not a weighted sum of records", hint)
    if has_aggregate(node):
        return unsupported(
            node,
            "is not a weighted sum of records",
            "Use COUNT, SUM, +, - and constants, and compute the rest from their answers.",
        )
    return unsupported(
        node,
        "is neither an aggregate nor a group key",
        "Use COUNT or SUM, or put the expression into GROUP BY.",
    )


def summed_columns(query: LinearQuery) -> list[str]:
    """The columns whose values a query sums: those of a factor that weighs records differently.

    Factors are in lowest terms, so that a condition weighs records by 0 and 1.
    """
    names = (
        name
        for term in query.terms
        for factor in term.factors
        if factor.bound > 1
        for name in factor.axes
    )
    return list(dict.fromkeys(names))


def counts_records(query: LinearQuery) -> bool:
    """Whether a query is a count, so that its true values are never below 0."""
    is_sum = bool(summed_columns(query)) or bool(query.constant)
    return not is_sum and coefficient_range(query)[0] >= 0


def bounded(block: QueryBlock, schema: Schema, requested: RequestedTarget) -> Rule | None:
    """What of each unit counts, by the bounds that a statement names; None for all its rows.

    The bound on a sum is for blocks that add up values, not for counts.

    Raises
    ------
    InvalidTarget
        If a sum is bounded where each unit has one row, or twice, or so that no row would count.
    """
    rows_asked, sum_asked = requested.rows_per_unit, requested.unit_sum_max
    if (rows_asked is None and sum_asked is None) or block.query.is_constant:
        return None
    if sum_asked is not None and rows_asked == 0:
        raise InvalidTarget(
            "unit_sum_max and rows_per_unit => 'auto' both bound a sum.", hint="Name one of them."
        )
    if schema.rows_per_unit_max == 1:
        if sum_asked is None:
            return None
        raise InvalidTarget(
            f"{schema.table} has one row for each unit, so unit_sum_max would bound rows.",
            hint="Leave it out. SUM(LEAST(value, bound)) bounds the values of a sum.",
        )
    row, multiplier = block.primitive
    largest, every = int(row.query.bound), schema.rows_per_unit_max
    n_rows = min(rows_asked or every, every)
    sum_max = n_rows * largest
    if sum_asked is not None and largest > 1:
        sum_max = min(sum_max, math.floor(sum_asked / abs(multiplier)))
        if not sum_max:
            raise InvalidTarget(
                f"unit_sum_max is below {float(abs(multiplier)):g}, the least that a row can add.",
                hint="Name the largest sum of one unit that is to count in full.",
            )
    if n_rows == every and sum_max == every * largest:
        return None
    return Rule(BOUNDED_ROWS, n_rows, sum_max)


def refuse_bounds(aggregates: Iterable[Aggregate]) -> None:
    """Refuse bounds where several counts or sums are computed with together.

    Of a unit with more rows, other rows count in each of them.
    """
    if any(map(is_bounded, aggregates)):
        raise UnsupportedSql(
            "rows_per_unit and unit_sum_max cannot be used where several counts or sums make one "
            "answer: averages, shares, tests, counts that are to agree.",
            hint="Ask for each sum and count by itself. Of a unit with more rows, other rows count "
            "in each of them.",
        )


def is_bounded(aggregate: Aggregate) -> bool:
    """Whether only some rows of each unit count, or a bound on them is to be found."""
    return aggregate.fits_units or (aggregate.rule is not None and not aggregate.counts_units)
