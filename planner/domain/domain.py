"""Evaluates predicates, summands and group keys as exact arrays over public levels.

Everything here is a function of the schema and the SQL text. A predicate is 1 where it is true and
0 where it is false or NULL, as in WHERE; a summand is 0 where it is NULL, as in SUM.

Of a value in a bin ``[low, high)`` only the bin is public. An expression means something on bins if
it has the same value everywhere in each: at the ends of the bin, at each constant in it, and at the
doubles next to that. Beside a column with a `time_zone` an instant is what the zone's clock shows.
"""

import datetime as dt
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cube.axis import DateAxis, LevelValue, NumericAxis, TimestampAxis
from cube.query import COEFFICIENT_MAX, N_FACTOR_CELLS_MAX, Scope
from cube.refusals import TextPosition, UnsupportedSql
from cube.schema import Schema
from planner.cache import BoundedCache
from planner.domain.allowance import Allowance
from planner.domain.allowed import check_scalar
from planner.domain.evaluated import Evaluated, different, plain_values, whole_multiples
from planner.domain.exact_levels import (
    Comparison,
    foreign_literals,
    foreign_notes,
    on_levels,
    plain_comparison,
    polynomial_of,
    stored_type,
)
from planner.domain.scratchpad import Scratchpad, columns_of, left_to_right
from planner.meaning import decimal_digits, thresholds
from planner.sql import (
    IS_INSTANT,
    IS_MOMENT,
    IS_PUBLIC,
    DateBin,
    TimeBucket,
    constant_value,
    copy_of,
    is_put_in_zone,
    nodes_of,
    origin,
    position,
    shown,
    unsupported,
)
from planner.workload import ChangedValues

N_NEIGHBOURS = 2  # a decimal constant may become either neighbouring double; one more to pass it

_COMPARISONS = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Is, exp.In, exp.Between),
)

# Evaluates a constant expression as a double; None for NULL.
ConstantDouble = Callable[[exp.Expr], float | None]


@dataclass(frozen=True, slots=True)
class Probed:
    """Values at which an expression of one binned column is evaluated.

    Parameters
    ----------
    axis : NumericAxis
        The column whose bins are probed.
    values : tuple of float or None
        The probes, level by level.
    level : tuple of int
        The level of each probe, non-decreasing.
    position : TextPosition, optional
        Where in the analyst's text the column stands.
    """

    axis: NumericAxis
    values: tuple[float | None, ...]
    level: tuple[int, ...]
    position: TextPosition | None = None


def probes_for(
    expression: exp.Expr, schema: Schema, constant_double: ConstantDouble
) -> dict[str, Probed]:
    """Probes for every binned column of `expression`.

    Raises
    ------
    UnsupportedSql
        If a binned column is used in any other way than compared with constants.
    """
    constants: dict[str, set[float]] = {}
    positions: dict[str, TextPosition | None] = {}
    for column in nodes_of(expression, exp.Column):
        axis = schema.by_name[column.name]
        if not isinstance(axis, NumericAxis):
            continue
        found = constants.setdefault(axis.name, set())
        positions.setdefault(axis.name, position(column))
        for constant in _compared_constants(column):
            value = _as_double(constant, constant_double)
            if value is not None and math.isfinite(value):
                found.update(_neighbourhood(value))
    probed = {}
    for name, values in constants.items():
        axis = schema.by_name[name]
        if isinstance(axis, NumericAxis):
            probed[name] = _probed(axis, sorted(values), positions[name])
    return probed


def collapsed(
    values: NDArray[np.int64], axes: tuple[str, ...], probed: Mapping[str, Probed]
) -> NDArray[np.int64]:
    """Values on probes as values on levels.

    Raises
    ------
    UnsupportedSql
        If the probes of one bin disagree; the message names the bin.
    """
    for dimension, name in enumerate(axes):
        if name not in probed:
            continue
        level = np.array(probed[name].level, dtype=np.int64)
        first = np.flatnonzero(np.diff(level, prepend=-1))
        on_levels = np.take(values, first, axis=dimension)
        differs = np.take(on_levels, level, axis=dimension) != values
        if differs.any():
            others = tuple(place for place in range(values.ndim) if place != dimension)
            cut = int(level[np.flatnonzero(differs.any(axis=others))[0]])
            raise _cuts(probed[name], cut)
        values = on_levels
    return values


def _compared_constants(column: exp.Column) -> list[exp.Expr]:
    """The constants that a column is compared with in the comparison it stands in."""
    operand: exp.Expr = column
    while isinstance(operand.parent, exp.Paren):
        operand = operand.parent
    comparison = operand.parent
    if isinstance(comparison, exp.WidthBucket) and comparison.this is operand:
        return thresholds(comparison)
    if not isinstance(comparison, _COMPARISONS):
        raise _misused(column)
    others = [child for child in comparison.iter_expressions() if child is not operand]
    ordered = not isinstance(comparison, exp.In | exp.Between) or comparison.this is operand
    if not ordered or any(columns_of(other) for other in others):
        raise _misused(column)
    return [other for other in others if not isinstance(other, exp.Null)]


def _as_double(constant: exp.Expr, constant_double: ConstantDouble) -> float | None:
    exact: Fraction | None = constant_value(constant)
    return constant_double(constant) if exact is None else float(exact)


def _neighbourhood(value: float) -> list[float]:
    """The value and the doubles next to it."""
    below = above = value
    near = [value]
    for _ in range(N_NEIGHBOURS):
        below, above = math.nextafter(below, -math.inf), math.nextafter(above, math.inf)
        near += [below, above]
    return near


def _probed(axis: NumericAxis, constants: list[float], where: TextPosition | None) -> Probed:
    values: list[float | None] = []
    level: list[int] = []
    last = len(axis.edges) - 2
    cuts = np.array(constants, dtype=np.float64)
    for place, (low, high) in enumerate(zip(axis.edges, axis.edges[1:], strict=False)):
        # Bins are closed on the left only, except that the last one holds its upper edge too.
        end = float(high) if place == last else math.nextafter(high, -math.inf)
        inside = cuts[np.searchsorted(cuts, low) : np.searchsorted(cuts, end, side="right")]
        here = sorted({float(low), end, *inside.tolist()})
        values += here
        level += [place] * len(here)
    if isinstance(axis.other, int | float):
        values.append(float(axis.other))
        level.append(level[-1] + 1)
    if axis.null:
        values.append(None)
        level.append(level[-1] + 1)
    return Probed(axis, tuple(values), tuple(level), where)


def _misused(column: exp.Column) -> UnsupportedSql:
    comparison = shown(column.parent) if column.parent is not None else shown(column)
    return UnsupportedSql(
        f"{comparison} needs single values of {column.name}, but only its bins are public.",
        hint=f"Compare {column.name} with a constant at the edge of a bin, or group by it.",
        position=position(column),
    )


def _cuts(probed: Probed, bin_number: int) -> UnsupportedSql:
    axis = probed.axis
    if bin_number >= len(axis.edges) - 1:
        raise ValueError("a level with a single value cannot be cut")
    low, high = axis.edges[bin_number], axis.edges[bin_number + 1]
    is_last = bin_number == len(axis.edges) - 2  # it holds its upper edge too
    closing, below = ("]", "<=") if is_last else (")", "<")
    return UnsupportedSql(
        f"A comparison with {axis.name} splits its bin [{low}, {high}{closing}.",
        hint=f"Compare with one of the nearest edges: {axis.name} >= {low} or {axis.name} "
        f"{below} {high}.",
        position=probed.position,
    )


_ON_THE_CLOCK = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)
_WITH_OFFSET = re.compile(r"[ T][0-9]{2}:[0-9:.]*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$")

LocalTime = Callable[[dt.datetime, str], dt.datetime]
"""What the clock of a zone shows at an instant."""


def on_clocks(expression: exp.Expr, schema: Schema, local_time: LocalTime) -> exp.Expr:
    """The expression with every instant as a time; itself if it has none.

    Parameters
    ----------
    expression : Expr
        Its columns carry the names of axes.
    schema : Schema
    local_time : callable
    """
    if not any(True for _ in _instants(expression, schema)):
        return expression
    around = exp.Paren(this=copy_of(expression))
    for node, instant in list(_instants(around, schema)):
        zone = _zone_beside(node, schema)
        if zone is None and node.is_type(exp.DType.TIMESTAMPTZ):
            continue  # compared and written as instants are
        shown = instant if zone is None else local_time(instant, zone)
        constant = exp.cast(
            exp.Literal.string(str(shown.replace(tzinfo=None))), exp.DType.TIMESTAMP
        )
        constant.meta.update({**origin(node), IS_MOMENT: node.meta.get(IS_MOMENT, False)})
        node.replace(constant)
    found: exp.Expr = around.this
    return found


def _instants(expression: exp.Expr, schema: Schema) -> Iterator[tuple[exp.Expr, dt.datetime]]:
    """The constants that are instants, in UTC."""
    for node in nodes_of(expression, exp.Cast, exp.Literal):
        literal = node.this if isinstance(node, exp.Cast) else node
        if not (isinstance(literal, exp.Literal) and literal.is_string):
            continue
        is_instant = _is_instant(node) if isinstance(node, exp.Cast) else _is_compared(node, schema)
        if is_put_in_zone(node):
            continue  # AT TIME ZONE puts an instant on a clock by itself
        instant = _read(literal.name) if is_instant else None
        if instant is not None:
            yield node, instant


def _is_instant(constant: exp.Cast) -> bool:
    is_utc = bool(constant.meta.get(IS_MOMENT) or constant.meta.get(IS_INSTANT))
    is_timestamp = constant.is_type(exp.DType.TIMESTAMP)
    return constant.is_type(exp.DType.TIMESTAMPTZ) or (is_utc and is_timestamp)


def _is_compared(text: exp.Expr, schema: Schema) -> bool:
    """Whether a text with an offset is compared with a column that has a zone."""
    if not (isinstance(text.parent, _ON_THE_CLOCK) and _WITH_OFFSET.search(text.name)):
        return False
    return any(_zone_of(one.unnest(), schema) for one in text.parent.iter_expressions())


def _zone_of(node: exp.Expr, schema: Schema) -> str | None:
    axis = schema.by_name[node.name] if isinstance(node, exp.Column) else None
    return axis.time_zone if isinstance(axis, TimestampAxis) else None


def _read(text: str) -> dt.datetime | None:
    """A text as an instant, in UTC if it has no offset; None if it is none."""
    try:
        moment = dt.datetime.fromisoformat(text)
        return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return None


def _zone_beside(constant: exp.Expr, schema: Schema) -> str | None:
    """The zone of the nearest column around a constant that has one."""
    around = constant.parent
    while around is not None:
        for column in nodes_of(around, exp.Column):
            zone = _zone_of(column, schema)
            if zone is not None:
                return zone
        around = around.parent
    return None


CAP_IT = "Limit the values, as in SUM(LEAST(x, 1000000))."
N_CONSTANT_BYTES = 64  # that a remembered comparison keeps for each constant, roughly
N_GUARDED_CELLS_MAX: Final = 2**20  # up to here, what guards allow together is looked at


@dataclass(frozen=True, eq=False)
class LevelArray:
    """Whole numbers over the levels of a few axes (no axes for a constant).

    Parameters
    ----------
    axes : tuple of str
        The columns' names, sorted.
    values : (n_levels of axes[0], ...) ndarray of int64
    """

    axes: Scope
    values: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class KeyArray:
    """A group key on levels: which of its values each combination has.

    Parameters
    ----------
    axes : tuple of str
        The columns' names, sorted; at least one.
    codes : (n_levels of axes[0], ...) ndarray of int64
        Positions in `values`.
    values : tuple
        The distinct values, in no particular order; None for NULL.
    sql_type : str
        BIGINT, DOUBLE, BOOLEAN, VARCHAR, DATE or TIMESTAMP.
    digits : int, optional
        Of doubles that are decimals in SQL: the digits behind the point.
    """

    axes: Scope
    codes: NDArray[np.int64]
    values: tuple[LevelValue, ...]
    sql_type: str
    digits: int | None = None


# By table and comparison: what it is on the levels, how many cells it was evaluated on, and whether
# it compares with what is no level.
KnownConditions: TypeAlias = BoundedCache[tuple[str, Comparison], tuple[LevelArray, int, bool]]


class PublicDomain:
    """Evaluates the expressions of one SELECT over one table on its public levels.

    Parameters
    ----------
    table : str
    schema : Schema
    scratchpad : Scratchpad
    conditions : KnownConditions
    allowance : Allowance

    Attributes
    ----------
    notes : dict
        What is to be said about the expressions, as keys.
    warnings : dict
        Those of them on values that are no levels.
    caveats : dict
        The values that count as others than they are, by what is said about them.
    refuses_unknown_values : bool
        Whether an equality with a value that is no level is refused, and not only noted.
    """

    def __init__(
        self,
        table: str,
        schema: Schema,
        scratchpad: Scratchpad,
        conditions: KnownConditions,
        allowance: Allowance,
    ) -> None:
        self.notes: dict[str, None] = {}
        self.warnings: dict[str, None] = {}
        self.caveats: dict[str, ChangedValues] = {}
        self.refuses_unknown_values = False
        self._table = table
        self.schema = schema
        self.allowance = allowance
        self._scratchpad = scratchpad
        # By identity, with the node kept alive: WHERE is asked for once for every answer column.
        self._known: dict[int, tuple[exp.Expr, LevelArray]] = {}
        self._conditions = conditions
        self._levels: dict[str, frozenset[LevelValue]] = {}

    def truth(self, condition: exp.Expr) -> LevelArray:
        """1 where `condition` is true, 0 elsewhere."""
        if id(condition) not in self._known:
            self._known[id(condition)] = (condition, self._remembered_truth(condition))
        return self._known[id(condition)][1]

    def truths(self, conditions: Sequence[exp.Expr]) -> list[LevelArray]:
        """Where each of some conditions that hold together is true, as they guard one another.

        One that cannot be evaluated on some level is evaluated where no other is false: so
        ``age > 0`` guards ``10 / age > 2``, in whatever order they stand.

        Raises
        ------
        UnsupportedSql
            If one cannot be evaluated on a level where all others may hold.
        """
        found: dict[int, LevelArray] = {}
        failed: dict[int, UnsupportedSql] = {}
        for place, condition in enumerate(conditions):
            try:
                found[place] = self.truth(condition)
            except UnsupportedSql as refusal:
                failed[place] = refusal
        while failed:
            guards = list(found.values())
            for place in list(failed):
                with suppress(UnsupportedSql):
                    found[place] = self._guarded_truth(conditions[place], guards)
                    del failed[place]
            if len(found) == len(guards):
                raise failed[min(failed)]
        return [found[place] for place in range(len(conditions))]

    def _guarded_truth(self, condition: exp.Expr, guards: Sequence[LevelArray]) -> LevelArray:
        """Where a condition is true, of the levels that guards allow and from left to right."""
        ordered = left_to_right(condition, self.allowance)
        return self._counted_truth(ordered, self._allowed(condition, guards))[0]

    def _allowed(
        self, expression: exp.Expr, guards: Sequence[LevelArray]
    ) -> NDArray[np.bool_] | None:
        """The levels of an expression's columns for which guards may hold; None if all."""
        own = columns_of(expression)
        about = [guard for guard in guards if not guard.values.all()]
        groups = [about] if self._is_narrow(own, about) else [[guard] for guard in about]
        allowed = np.ones(self.schema.sizes(own), dtype=np.bool_)
        for together in groups:
            axes = tuple(sorted({*own, *(name for guard in together for name in guard.axes)}))
            if self.schema.n_cells(axes) > N_FACTOR_CELLS_MAX:
                continue  # it guards less than it could
            self.allowance.cells(self.schema.n_cells(axes), expression)
            holds = np.ones(self.schema.sizes(axes), dtype=np.bool_)
            for guard in together:
                holds &= spread(guard.values, guard.axes, axes).astype(np.bool_)
            others = tuple(place for place, name in enumerate(axes) if name not in own)
            allowed &= holds.any(axis=others)
        return None if allowed.all() else allowed

    def _is_narrow(self, own: Scope, guards: Sequence[LevelArray]) -> bool:
        """Whether guards can be looked at together."""
        axes = {*own, *(name for guard in guards for name in guard.axes)}
        return self.schema.n_cells(tuple(sorted(axes))) <= N_GUARDED_CELLS_MAX

    def _remembered_truth(self, condition: exp.Expr) -> LevelArray:
        """Looked up, if it is a plain comparison that some statement has had before.

        It counts against the statement's limit as if it were evaluated: whether a statement is
        planned must not depend on others.
        """
        comparison = None if _lists_public_values(condition) else plain_comparison(condition)
        if comparison is None:
            return self._truth(condition)
        known = self._conditions.get((self._table, comparison))
        if known is None:
            is_foreign = self._look_at_literals(condition)
            array, n_cells = self._counted_truth(condition)
            array.values.flags.writeable = False
            known = array, n_cells, is_foreign
            n_bytes = array.values.nbytes + N_CONSTANT_BYTES * len(comparison.constants)
            self._conditions.put((self._table, comparison), known, n_bytes=n_bytes)
        else:
            self.allowance.cells(known[1], condition)
            if known[2]:
                self._look_at_literals(condition)
        return known[0]

    def _look_at_literals(self, expression: exp.Expr) -> bool:
        """Note values that are no levels of the columns they are compared with, if there are any.

        Raises
        ------
        OutsideDomain
            If the statement refuses them, or rows with the value may count as OTHER.
        """
        found = foreign_literals(expression, self.schema, self._levels)
        for one in found:
            if self.refuses_unknown_values or one.is_hidden:
                raise one.refusal
        told = dict.fromkeys(foreign_notes(found))
        self.notes.update(told)
        self.warnings.update(told)
        return bool(found)

    def caution(self, changed: Iterable[ChangedValues]) -> None:
        """Note that values count as others than they are."""
        self.caveats.update((one.said, one) for one in changed)

    def _truth(self, condition: exp.Expr) -> LevelArray:
        return self._counted_truth(condition)[0]

    def _counted_truth(
        self, condition: exp.Expr, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[LevelArray, int]:
        """Where a condition is true, and how many cells it was evaluated on."""
        evaluated, probed = self._evaluate(condition, allowed)
        if evaluated.sql_type not in ("BOOLEAN", "NULL"):
            raise unsupported(
                condition,
                f"is a {evaluated.sql_type}, and a condition is needed",
                "Compare it with a value.",
            )
        is_true = np.zeros(evaluated.null.shape, dtype=np.int64)
        if evaluated.sql_type == "BOOLEAN":
            is_true = (evaluated.values.astype(np.bool_) & ~evaluated.null).astype(np.int64)
        array = LevelArray(evaluated.axes, collapsed(is_true, evaluated.axes, probed))
        return array, evaluated.null.size

    def numbers(
        self, summand: exp.Expr, guards: Sequence[LevelArray] = ()
    ) -> tuple[LevelArray, Fraction]:
        """Whole numbers and a unit; their product is the summand, and 0 where that is NULL.

        A polynomial of one column is exact, as are integers and decimals; `whole_multiples` says
        what becomes of doubles. What fails on some level is 0 where one of `guards` is 0.
        """
        try:
            return self._numbers(summand, None)
        except UnsupportedSql as refusal:
            ordered, allowed = self._guarded(summand, guards)
            try:
                return self._numbers(ordered, allowed)
            except UnsupportedSql:
                raise refusal from None

    def _guarded(
        self, expression: exp.Expr, guards: Sequence[LevelArray]
    ) -> tuple[exp.Expr, NDArray[np.bool_] | None]:
        """An expression that failed, as it is tried again, and the levels that are left."""
        return left_to_right(expression, self.allowance), self._allowed(expression, guards)

    def _numbers(
        self, summand: exp.Expr, allowed: NDArray[np.bool_] | None
    ) -> tuple[LevelArray, Fraction]:
        found = self._polynomial(summand)
        if found is None:
            evaluated, probed = self._evaluate(summand, allowed)
            whole, unit = whole_multiples(evaluated, summand)
            found = LevelArray(evaluated.axes, collapsed(whole, evaluated.axes, probed)), unit
        elif allowed is not None:
            found = LevelArray(found[0].axes, np.where(allowed, found[0].values, 0)), found[1]
        values = found[0].values
        if max(int(values.max()), -int(values.min())) > COEFFICIENT_MAX:
            raise unsupported(
                summand, "has values beyond 2**40, which cannot be summed exactly", CAP_IT
            )
        return found

    def _polynomial(self, summand: exp.Expr) -> tuple[LevelArray, Fraction] | None:
        """The numbers of a polynomial of one column, without the scratchpad; None of all others."""
        names = columns_of(summand)
        axis = self.schema.by_name[names[0]] if len(names) == 1 else None
        polynomial = None if axis is None else polynomial_of(summand, axis)
        values = None if axis is None or polynomial is None else on_levels(polynomial, axis)
        if values is None:
            return None
        self.allowance.cells(values[0].size, summand)
        return LevelArray(names, values[0]), values[1]

    def key(self, expression: exp.Expr, guards: Sequence[LevelArray] = ()) -> KeyArray:
        """The values of a GROUP BY expression; a binned column's are the lower edges.

        What fails on some level is NULL where one of `guards` is 0.
        """
        if isinstance(expression, exp.Column):
            axis = self.schema.by_name[expression.name]
            codes = np.arange(axis.size, dtype=np.int64)
            digits = decimal_digits(stored_type(axis))
            return KeyArray((axis.name,), codes, axis.levels, axis.sql_type, digits)
        try:
            return self._key(expression, None)
        except UnsupportedSql as refusal:
            ordered, allowed = self._guarded(expression, guards)
            try:
                return self._key(ordered, allowed)
            except UnsupportedSql:
                raise refusal from None

    def _key(self, expression: exp.Expr, allowed: NDArray[np.bool_] | None) -> KeyArray:
        evaluated, probed = self._evaluate(expression, allowed)
        if not evaluated.axes:
            return self._constant_key(expression, evaluated)
        once, place = different(evaluated)
        sql_type, plain = plain_values(
            once, expression, is_of_days=self._is_cut_to_days(expression)
        )
        places: dict[LevelValue, int] = {}
        codes = np.array([places.setdefault(v, len(places)) for v in plain], dtype=np.int64)[place]
        on_levels = collapsed(codes.reshape(evaluated.null.shape), evaluated.axes, probed)
        digits = decimal_digits(evaluated.sql_type)
        return KeyArray(evaluated.axes, on_levels, tuple(places), sql_type, digits)

    def _is_cut_to_days(self, expression: exp.Expr) -> bool:
        """Whether it is DATE_TRUNC or the like of a column of days, whose values are days."""
        node = expression.unnest()
        if not isinstance(node, exp.TimestampTrunc | TimeBucket | DateBin):
            return False
        column = (node.this if isinstance(node, exp.TimestampTrunc) else node.expression).unnest()
        return isinstance(column, exp.Column) and isinstance(
            self.schema.by_name.get(column.name), DateAxis
        )

    def _constant_key(self, expression: exp.Expr, evaluated: Evaluated) -> KeyArray:
        """A key that is the same for all: one value, on every level of some axis."""
        once, _ = different(evaluated)
        sql_type, plain = plain_values(once, expression, is_of_days=False)
        axis = min(self.schema.axes, key=lambda one: (one.size, one.name))
        codes = np.zeros(axis.size, dtype=np.int64)
        digits = decimal_digits(evaluated.sql_type)
        return KeyArray((axis.name,), codes, tuple(plain), sql_type, digits)

    def _evaluate(
        self, expression: exp.Expr, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[Evaluated, dict[str, Probed]]:
        expression = on_clocks(expression, self.schema, self._scratchpad.local_time)
        check_scalar(expression)  # before anything else looks at it; the scratchpad checks again
        self._look_at_literals(expression)
        probed = probes_for(expression, self.schema, self._constant_double)
        if allowed is not None:
            for place, name in enumerate(columns_of(expression)):
                if name in probed:  # each value of a bin that is left out is left out
                    allowed = np.take(allowed, np.array(probed[name].level), axis=place)
        evaluated = self._scratchpad.evaluate(
            expression,
            table=self._table,
            probes={name: probes.values for name, probes in probed.items()},
            allowance=self.allowance,
            only=allowed,
        )
        self.allowance.cells(evaluated.null.size, expression)
        return evaluated, probed

    def _constant_double(self, constant: exp.Expr) -> float | None:
        as_double = exp.cast(copy_of(constant), exp.DType.DOUBLE)
        evaluated = self._scratchpad.evaluate(
            as_double, table=self._table, allowance=self.allowance
        )
        return None if evaluated.null.item() else float(evaluated.values.item())

    def is_binned(self, expression: exp.Expr) -> bool:
        """Whether an expression is a bare column whose bins alone are public."""
        return isinstance(expression, exp.Column) and isinstance(
            self.schema.by_name[expression.name], NumericAxis
        )


def spread(values: NDArray[np.int64], axes: Scope, onto: Scope) -> NDArray[np.int64]:
    """An array over `axes`, with a dimension of length 1 for every other axis of `onto`."""
    shape = [1] * len(onto)
    for name, size in zip(axes, values.shape, strict=True):
        shape[onto.index(name)] = size
    return values.reshape(shape)


def _lists_public_values(condition: exp.Expr) -> bool:
    """Whether it is an IN of a public table's values, which may be none of the column's levels."""
    return isinstance(condition, exp.In) and any(
        value.meta.get(IS_PUBLIC) for value in condition.expressions
    )
