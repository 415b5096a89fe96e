"""Lowers nonlinear items to formulas of linear ones: AVG, VARIANCE, CORR, ratios, quantiles.

A formula's interval is simulated later from the joint law of its parts. Summands are taken less the
middle of their public range, ``AVG(x) = c + SUM(x - c) / COUNT(x)``, so that one record moves a sum
by half the range at most; squares are centred once more, in their own range. With u = x - c and
v = y - d, CORR, COVAR and linear regression are formulas of COUNT, SUM(u), SUM(v), SUM(u * v),
SUM(u * u) and SUM(v * v) over the records that have both. A product of two columns is one term with
a factor for each, however many levels they have together.

A formula's answer and its interval are cut to its public range, by interval arithmetic from what
the declaration says: an average lies among the values averaged, the share of a part in a whole
between 0 and 1. What has no range here is not cut; sums and counts never are.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

from sqlglot import exp

from cube.encoding import fingerprint
from cube.query import LinearQuery, QueryBlock, Scope
from cube.refusals import Refused
from cube.schema import Schema
from inference import coefficient_range
from planner.lowering.level_summaries import (
    Calendar,
    QuantileCall,
    as_level,
    calendar_of,
    quantile_answer,
    quantile_of,
    summary_answer,
    summary_column,
    summary_of,
)
from planner.lowering.linear import aggregated_twice, is_linear, linear_query
from planner.lowering.outer import check_run
from planner.lowering.parts import PartBuilder
from planner.lowering.summands import addends_apart, known_where
from planner.sql import (
    DIALECT,
    CompanionColumn,
    Held,
    constant_value,
    copy_of,
    every_node,
    has_node,
    is_quantile,
    is_unit_count,
    nodes_of,
    shown,
    text_of,
    unsupported,
)
from planner.workload import Answer, ColumnKind, SqlFormula


@dataclass(frozen=True, slots=True)
class Span:
    """The public range of a summand, and the whole or binary number in its middle."""

    low: float
    high: float
    middle: exp.Expr | None  # None for 0

    @property
    def radius(self) -> float:
        """Half the width of the range."""
        return (self.high - self.low) / 2


def span_of(value: exp.Expr, part: PartBuilder) -> Span:
    """The public range of a summand where it is not NULL, under the conditions of its SELECT.

    Addends over different columns are evaluated each by itself: their ranges add up.
    """
    low = high = Fraction(0)
    units: list[Fraction] = []
    holds = part.domain.truths(part.conditions)
    for addend in addends_apart(value, part.domain.schema):
        array, unit = part.domain.numbers(addend.value, holds)
        values = array.values[_not_null(addend.value, array.axes, part.domain.schema)]
        unit *= addend.scale
        ends = (int(values.min()) * unit, int(values.max()) * unit)
        low, high = low + min(ends), high + max(ends)
        units.append(abs(unit))
    return Span(float(low), float(high), _middle(low, high, min(units)))


def _not_null(value: exp.Expr, axes: Scope, schema: Schema) -> tuple[slice, ...]:
    """The levels without the NULL, which is the last, of each column that the value needs."""
    known = {one.this.this.unnest() for one in known_where(value, schema)}
    names = {one.name for one in known if isinstance(one, exp.Column)}
    return tuple(
        slice(-1 if name in names and schema.by_name[name].null else None) for name in axes
    )


def _middle(low: Fraction, high: Fraction, unit: Fraction) -> exp.Expr | None:
    """A number in the middle of a range, or near it, that SQL writes exactly; None for 0.

    Of a range in units that no decimal writes, it is a whole number of units.
    """
    middle = (low + high) / 2
    if low.denominator == high.denominator == 1:
        return whole(math.floor(middle))
    text = repr(float(middle))
    if middle == Fraction(text):
        return exp.cast(exp.Literal.string(text), exp.DType.DOUBLE)
    near = unit * math.floor(middle / unit)
    quotient = exp.Div(
        this=exp.Literal.number(f"{abs(near.numerator)}.0"),
        expression=exp.Literal.number(near.denominator),
    )
    return exp.paren(quotient if near >= 0 else exp.Neg(this=exp.paren(quotient)), copy=False)


def centred_square(off: exp.Expr, span: Span) -> tuple[int, exp.Expr]:
    """The middle of the range of a centred value's square, and the square less that."""
    middle = math.floor(span.radius**2 / 2)
    return middle, less(exp.Mul(this=copy_of(off), expression=copy_of(off)), whole(middle))


def less(value: exp.Expr, constant: exp.Expr | None) -> exp.Expr:
    """A value less a constant; None stands for 0."""
    value = copy_of(value)
    if constant is None:
        return value
    return exp.Sub(this=exp.paren(value, copy=False), expression=copy_of(constant))


def whole(number: int) -> exp.Expr | None:
    """A whole number as SQL; None for 0."""
    if number == 0:
        return None
    literal = exp.Literal.number(abs(number))
    return literal if number > 0 else exp.paren(exp.Neg(this=literal), copy=False)


Range: TypeAlias = tuple[float, float]
UNBOUNDED: Range = (-math.inf, math.inf)

_COUNT_ALL = exp.Count(this=exp.Star(), big_int=True)
_SAME_VALUE = (exp.Paren, exp.Nullif, exp.Cast)  # NULL, or the value of their first argument


def public_range(node: exp.Expr, known: Callable[[exp.Expr], Range | None]) -> Range:
    """The public range of an expression; `known` says what it knows of parts of it."""
    constant = constant_value(node)
    if constant is not None:
        return float(constant), float(constant)
    found = known(node)
    if found is not None:
        return found
    if _is_same_number(node):
        return public_range(node.this, known)
    arguments = [one for one in (node.this, *node.expressions) if isinstance(one, exp.Expr)]
    arithmetic = _ARITHMETIC.get(type(node))
    if arithmetic is None:
        return UNBOUNDED
    if isinstance(node, exp.Binary):
        arguments.append(node.expression)
    return arithmetic(node, [public_range(one, known) for one in arguments])


def _is_same_number(node: exp.Expr) -> bool:
    is_widened = isinstance(node, exp.Cast) and node.to.this in (exp.DType.DOUBLE, exp.DType.FLOAT)
    return is_widened or isinstance(node, exp.Paren | exp.Nullif)


def share_range(node: exp.Div, part: PartBuilder) -> Range | None:
    """The range of a linear answer divided by a whole that it is of; None if it is no such share.

    The whole counts all records of the SELECT, or is what the part sums, over more records. Of all
    groups, it counts records that are not in the item's group and add nothing to the item.
    """
    whole, item = node.expression, node.this.unnest()
    while isinstance(whole, _SAME_VALUE):
        whole = whole.this
    is_of_all_groups = isinstance(whole, exp.Window) and isinstance(whole.this, exp.Sum)
    if is_of_all_groups:
        whole = whole.this.this.unnest()
    if not (is_linear(item) and is_linear(whole)):
        return None
    of_item, of_whole = _query(item, part), _query(whole, part)
    if of_item.constant or of_whole.constant or coefficient_range(of_whole)[0] < 0:
        return None
    same = _ratio(_query(_without_filters(item), part), of_whole)
    if same is not None and item.find(exp.Add, exp.Sub) is None:
        return min(same, 0.0), max(same, 0.0)
    of_all = _ratio(of_whole, _query(_COUNT_ALL, part))
    if of_all is None:
        return None
    low, high = coefficient_range(of_item)
    if is_of_all_groups:
        low, high = min(low, Fraction(0)), max(high, Fraction(0))
    return float(low) / of_all, float(high) / of_all


def divisors(formula: exp.Expr, uses: Sequence[int]) -> tuple[int, ...]:
    """Those aggregates of a formula by which it divides."""
    found: list[int] = []
    for division in nodes_of(formula, exp.Div):
        divisor = division.expression
        while isinstance(divisor, _SAME_VALUE):
            divisor = divisor.this
        if isinstance(divisor, exp.Column):
            found.append(uses[int(divisor.name.removeprefix("a"))])
    return tuple(dict.fromkeys(found))


def _query(item: exp.Expr, part: PartBuilder) -> LinearQuery:
    return linear_query(item, part.conditions, part.domain)


def _without_filters(item: exp.Expr) -> exp.Expr:
    """The item over all records of the SELECT."""
    changed: exp.Expr = item.transform(lambda one: one.this if isinstance(one, exp.Filter) else one)
    return changed


def _ratio(item: LinearQuery, whole: LinearQuery) -> float | None:
    """The number that one query is of the other; None if it is no multiple of it."""
    if item.is_constant or whole.is_constant:
        return None
    row, times = QueryBlock(item).primitive
    other, by = QueryBlock(whole).primitive
    return float(times / by) if fingerprint(row) == fingerprint(other) else None


def _negated(_: exp.Expr, ranges: Sequence[Range]) -> Range:
    ((low, high),) = ranges
    return -high, -low


def _either(_: exp.Expr, ranges: Sequence[Range]) -> Range:
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _combined(node: exp.Expr, ranges: Sequence[Range]) -> Range:
    """The range of a sum, difference, product or quotient of two ranges."""
    (low, high), (other_low, other_high) = ranges
    if not all(map(math.isfinite, (low, high, other_low, other_high))):
        return UNBOUNDED
    ends = [(one, other) for one in (low, high) for other in (other_low, other_high)]
    match node:
        case exp.Add():
            results = [one + other for one, other in ends]
        case exp.Sub():
            results = [one - other for one, other in ends]
        case exp.Mul():
            results = [one * other for one, other in ends]
        case _ if other_low <= 0 <= other_high:
            return UNBOUNDED
        case _:
            results = [one / other for one, other in ends]
    return min(results), max(results)


def _rounded(node: exp.Expr, ranges: Sequence[Range]) -> Range:
    """The range of a rounded value: whole units of its last digit, rounded outwards."""
    digits = node.args.get("decimals")
    places = constant_value(digits) if digits is not None else 0
    ((low, high),) = ranges
    if places is None or not (math.isfinite(low) and math.isfinite(high)):
        return UNBOUNDED
    unit = 10.0 ** int(places)
    return math.floor(low * unit) / unit, math.ceil(high * unit) / unit


_ARITHMETIC: Final[Mapping[type[exp.Expr], Callable[[exp.Expr, Sequence[Range]], Range]]] = {
    exp.Neg: _negated,
    exp.Coalesce: _either,
    exp.Round: _rounded,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div), _combined),
}


COVARIANCES = (exp.CovarPop, exp.CovarSamp)
COMOMENTS = (*COVARIANCES, exp.Corr, exp.RegrSlope, exp.RegrIntercept, exp.RegrR2)
_OF_ONE_COLUMN = (exp.RegrCount, exp.RegrAvgx, exp.RegrAvgy)


@dataclass(frozen=True, slots=True)
class Sums:
    """The parts of a formula, as SQL: linear answers, and the constants they are centred at.

    Parameters
    ----------
    count : str
        Of the records that have both columns.
    x, y, products : str
        The sums of u, of v, and of their products.
    x_squares, y_squares : str
        The sums of u² - m and of v² - m, with m the middle of each range.
    x_middle, y_middle, x_middle_square, y_middle_square : str
        The constants c and d, and each m.
    """

    count: str
    x: str
    y: str
    products: str
    x_squares: str = "0"
    y_squares: str = "0"
    x_middle: str = "0"
    y_middle: str = "0"
    x_middle_square: str = "0"
    y_middle_square: str = "0"


def needs_squares(node: exp.Expr) -> tuple[bool, bool]:
    """Whether a formula needs the squares of x, and those of y."""
    needs_both = isinstance(node, exp.Corr | exp.RegrR2)
    return not isinstance(node, COVARIANCES), needs_both


def comoment(node: exp.Expr, sums: Sums) -> exp.Expr:
    """The formula of a function of two columns."""
    count = f"NULLIF({sums.count}, 0)"
    x, y = f"({sums.x} / {count})", f"({sums.y} / {count})"
    covariance = f"({sums.products} / {count} - {x} * {y})"
    x_spread = _spread(sums.x_middle_square, sums.x_squares, x, count)
    slope = f"({covariance} / {x_spread})"
    match node:
        case exp.CovarPop():
            text = covariance
        case exp.CovarSamp():
            text = f"({covariance} * {count} / NULLIF({sums.count} - 1, 0))"
        case exp.RegrSlope():
            text = slope
        case exp.RegrIntercept():
            text = f"({sums.y_middle} + {y} - {slope} * ({sums.x_middle} + {x}))"
        case _:
            y_spread = _spread(sums.y_middle_square, sums.y_squares, y, count)
            ratio = f"({covariance} / SQRT({x_spread}) / SQRT({y_spread}))"
            text = f"GREATEST(LEAST({ratio}, 1.0), -1.0)"
            if isinstance(node, exp.RegrR2):
                text = f"({text} * {text})"
    formula: exp.Expr = exp.maybe_parse(text, dialect=DIALECT)
    return formula


def as_plain_aggregates(select: exp.Select) -> None:
    """Write REGR_COUNT, REGR_AVGX and REGR_AVGY of a SELECT as COUNT and AVG."""
    for node in nodes_of(select, *_OF_ONE_COLUMN):
        y, x = node.this, node.expression
        other, value = (x, y) if isinstance(node, exp.RegrAvgy) else (y, x)
        is_known = exp.Not(this=exp.Is(this=exp.paren(other), expression=exp.null()))
        known = exp.Case(ifs=[exp.If(this=is_known, true=copy_of(value))])
        is_count = isinstance(node, exp.RegrCount)
        new = exp.Count(this=known, big_int=True) if is_count else exp.Avg(this=known)
        new.meta.update(node.meta)
        node.replace(new)


def _spread(middle: str, squares: str, mean: str, count: str) -> str:
    """A variance to divide by: NULL where it is not above 0."""
    return f"NULLIF(GREATEST({middle} + {squares} / {count} - {mean} * {mean}, 0.0), 0)"


Total = tuple[exp.Expr, tuple[exp.Expr, ...]]
Leaf = Callable[[int], exp.Expr]

_SAMPLE = (exp.Variance, exp.Stddev, exp.StddevSamp)
_ROOTS = (exp.Stddev, exp.StddevSamp, exp.StddevPop)
_MOMENTS = (exp.Variance, exp.VariancePop, *_ROOTS)
# Numeric functions that a formula may apply to its answers. Functions that fold the line, like ABS
# and even powers, are excluded: if the true value is at the fold, no draw lies beyond it, and no
# interval covers it.
_NUMERIC = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren, exp.Sqrt, exp.Exp, exp.Ln),
    *(exp.Round, exp.Ceil, exp.Floor, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least),
)
_NUMBER_TYPES = frozenset({exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.DECIMAL})


class FormulaReader:
    """Reads items of one SELECT.

    Parameters
    ----------
    part : PartBuilder
        Collects the linear queries that items consist of.
    total_of : callable
        Returns, for a subquery that is one linear answer of the same table, its item and
        conditions.
    every_group : bool
        Whether windows see every group, which they do not if HAVING removes some.
    """

    def __init__(
        self,
        part: PartBuilder,
        total_of: Callable[[Held], Total | None],
        *,
        every_group: bool,
    ) -> None:
        self._part = part
        self._total_of = total_of
        self._every_group = every_group

    def answer(self, node: exp.Expr, name: str) -> Answer | None:
        """An item of the SELECT list as an answer with an interval; None if it can have none."""
        if is_linear(node) or is_unit_count(node):
            place = self._part.aggregate(node)
            return Answer(name, self._part.text_of(place), (place,))
        summary = summary_of(node)
        if summary is not None:
            return summary_answer(summary, self._part, name)
        # A square has no interval: no draw of it is below its lower end.
        if has_node(node, exp.RegrR2):
            return None
        text = text_of(node)
        quantile = quantile_of(node)
        if quantile is not None:
            return quantile_answer(quantile, self._part, name, text)
        uses: list[int] = []

        def leaf(place: int) -> exp.Expr:
            if place not in uses:
                uses.append(place)
            return exp.column(f"a{uses.index(place)}")

        low, high = public_range(node, self._known_range)
        formula = self._expanded(node, leaf)
        if formula is None or not uses:
            return None
        check_run(every_node(formula))
        sql = copy_of(formula).sql(dialect="duckdb", copy=False)
        return Answer(
            name,
            text,
            tuple(uses),
            SqlFormula(sql),
            low=low,
            high=high,
            divisors=divisors(formula, uses),
        )

    def calendar(self, node: exp.Expr) -> Calendar | None:
        """The column whose levels an answer numbers, if it is a quantile of days or moments."""
        quantile = quantile_of(node)
        return None if quantile is None else calendar_of(quantile.value, self._part.domain.schema)

    def inline(self, node: exp.Expr) -> exp.Expr | None:
        """An aggregate, or a formula without SQL around it, over the relation; None if neither."""
        part = self._part
        if is_linear(node) or is_unit_count(node):
            shown = part.shown(node)
            place = self._unshown(node) if shown is None else shown
            return part.column(ColumnKind.ESTIMATE, place)
        summary = summary_of(node)
        if summary is not None:
            return summary_column(summary, part)
        quantile = quantile_of(node)
        if quantile is not None:
            return self._inline_quantile(quantile)
        inner = node.this if isinstance(node, exp.Filter) else node
        if isinstance(inner, (exp.Window, Held, exp.RegrR2)):
            return self._expanded(node, lambda place: part.column(ColumnKind.ESTIMATE, place))
        if isinstance(inner, (exp.Avg, *_MOMENTS, *COMOMENTS)):
            text = text_of(node)
            found = self.answer(node, text)
            return None if found is None else part.column(ColumnKind.ANSWER, part.inner(found))
        return None

    def _inline_quantile(self, quantile: QuantileCall) -> exp.Expr:
        part, text = self._part, text_of(quantile.node)
        answer = part.answer(quantile_answer(quantile, part, text, text))
        calendar = calendar_of(quantile.value, part.domain.schema)
        column = part.column(ColumnKind.ANSWER, answer)
        return column if calendar is None else as_level(column, calendar)

    def refusal(self, node: exp.Expr) -> Refused:
        """The reason why an aggregate is not answered."""
        try:
            linear_query(node, self._part.conditions, self._part.domain)
        except Refused as refusal:
            return refusal
        raise ValueError("a linear item must be lowered, not refused")

    def _expanded(self, node: exp.Expr, leaf: Leaf) -> exp.Expr | None:
        """The item with its linear parts replaced by `leaf`; None if it is not such a formula."""
        if constant_value(node) is not None:
            return copy_of(node)
        if is_linear(node) or is_unit_count(node):
            return leaf(self._part.aggregate(node, self._base_half_width(node)))
        if isinstance(node, exp.Window | Held):
            total = (
                self._window_total(node) if isinstance(node, exp.Window) else self._total_of(node)
            )
            return None if total is None else leaf(self._total(*total))
        if isinstance(node, _NUMERIC) or _is_number_cast(node):
            return self._applied(node, leaf)
        return self._moment(node, leaf)

    def _moment(self, node: exp.Expr, leaf: Leaf) -> exp.Expr | None:
        """AVG, VARIANCE and similar aggregates."""
        inner, condition = node, None
        if isinstance(node, exp.Filter):
            inner, condition = node.this, node.expression.this
        if isinstance(inner, exp.Avg):
            return self._average(inner, condition, leaf)
        if isinstance(inner, COMOMENTS):
            return self._comoment(inner, condition, leaf)
        return self._variance(inner, condition, leaf) if isinstance(inner, _MOMENTS) else None

    def _comoment(self, node: exp.Expr, condition: exp.Expr | None, leaf: Leaf) -> exp.Expr:
        """A function of two columns, over the records that have both."""
        if isinstance(node, exp.RegrR2):
            note = f"{shown(node)} is computed from noisy answers, and has no interval."
            self._part.notes[note] = None
        values = {"x": _checked(node, node.expression), "y": _argument(node)}
        spans = {name: span_of(value, self._part) for name, value in values.items()}
        off = {name: exp.paren(less(values[name], spans[name].middle)) for name in spans}
        known = [
            exp.Not(this=exp.Is(this=exp.paren(x), expression=exp.null())) for x in off.values()
        ]
        both = exp.and_(*known, *([] if condition is None else [condition]))
        records = self._part.default.half_width
        product = exp.Mul(this=copy_of(off["x"]), expression=copy_of(off["y"]))
        largest = math.prod(span.radius for span in spans.values())
        found = {
            "count": self._count(exp.Star(), both, leaf, records),
            "products": self._sum(product, both, leaf, records * largest),
        }
        for (name, span), is_squared in zip(spans.items(), needs_squares(node), strict=True):
            found[name] = self._sum(off[name], both, leaf, records * span.radius)
            if span.middle is not None:
                found[f"{name}_middle"] = span.middle
            if is_squared:
                middle, square = centred_square(off[name], span)
                largest = max(span.radius**2 / 2, 1.0)
                found[f"{name}_squares"] = self._sum(square, both, leaf, records * largest)
                found[f"{name}_middle_square"] = exp.Literal.number(middle)
        return comoment(node, Sums(**{name: text_of(one) for name, one in found.items()}))

    def _applied(self, node: exp.Expr, leaf: Leaf) -> exp.Expr | None:
        """A numeric function of formulas."""
        changed = type(node)()
        for name, value in node.args.items():
            if isinstance(value, exp.DataType) or not isinstance(value, exp.Expr | list):
                changed.args[name] = value
                continue
            values = value if isinstance(value, list) else [value]
            expanded = [self._expanded(one, leaf) for one in values]
            kept = [one for one in expanded if one is not None]
            if len(kept) < len(values):
                return None
            changed.set(name, kept if isinstance(value, list) else kept[0])
        return changed

    def _average(self, node: exp.Avg, condition: exp.Expr | None, leaf: Leaf) -> exp.Expr:
        value = _argument(node)
        span = span_of(value, self._part)
        total = self._sum(
            less(value, span.middle), condition, leaf, self._part.default.half_width * span.radius
        )
        count = self._count(value, condition, leaf, self._part.default.half_width)
        mean = exp.Div(this=total, expression=_or_null(count))
        if span.middle is None:
            return exp.paren(mean, copy=False)
        return exp.paren(exp.Add(this=copy_of(span.middle), expression=mean), copy=False)

    def _variance(self, node: exp.Expr, condition: exp.Expr | None, leaf: Leaf) -> exp.Expr:
        """From the sums of ``x - c`` and of its square, which is centred in its own range."""
        value = _argument(node)
        span = span_of(value, self._part)
        off = exp.paren(less(value, span.middle), copy=False)
        middle, square = centred_square(off, span)
        largest = max(span.radius**2 / 2, 1.0)
        squares = self._sum(square, condition, leaf, self._part.default.half_width * largest)
        first = self._sum(
            less(value, span.middle), condition, leaf, self._part.default.half_width * span.radius
        )
        count = _or_null(self._count(value, condition, leaf, self._part.default.half_width))
        mean = exp.Div(this=first, expression=count)
        variance: exp.Expr = exp.Sub(
            this=exp.Add(
                this=whole(middle) or exp.Literal.number(0),
                expression=exp.Div(this=squares, expression=copy_of(count)),
            ),
            expression=exp.Pow(this=exp.paren(mean, copy=False), expression=exp.Literal.number(2)),
        )
        variance = exp.Greatest(
            this=exp.paren(variance, copy=False),
            expressions=[exp.Literal.number("0.0")],
            ignore_nulls=False,
        )
        if isinstance(node, _SAMPLE):
            degrees = exp.Nullif(
                this=exp.paren(exp.Sub(this=copy_of(count.this), expression=exp.Literal.number(1))),
                expression=exp.Literal.number(0),
            )
            ratio = exp.Div(this=copy_of(count), expression=degrees)
            variance = exp.Mul(this=variance, expression=exp.paren(ratio, copy=False))
        variance = exp.paren(variance, copy=False)
        return exp.Sqrt(this=variance) if isinstance(node, _ROOTS) else variance

    def _sum(
        self, value: exp.Expr, condition: exp.Expr | None, leaf: Leaf, half_width: float
    ) -> exp.Expr:
        node = _filtered(exp.Sum(this=copy_of(value)), condition)
        return leaf(self._part.aggregate(node, max(half_width, 1e-300)))

    def _count(
        self, value: exp.Expr, condition: exp.Expr | None, leaf: Leaf, half_width: float
    ) -> exp.Expr:
        node = _filtered(exp.Count(this=copy_of(value), big_int=True), condition)
        return leaf(self._part.aggregate(node, half_width))

    def _window_total(self, node: exp.Window) -> Total | None:
        """``SUM(<linear>) OVER ()``: the answer for all groups together."""
        is_total = (
            self._every_group
            and isinstance(node.this, exp.Sum)
            and not any(node.args.get(part) for part in ("partition_by", "order", "spec", "alias"))
        )
        if not is_total or self._part.n_sections > 1 or not is_linear(node.this.this):
            return None
        item, conditions = node.this.this, self._part.conditions
        if linear_query(item, conditions, self._part.domain).constant:
            return None  # a constant would be added once for every group
        return item, conditions

    def _total(self, node: exp.Expr, conditions: tuple[exp.Expr, ...]) -> int:
        return self._part.aggregate_of(node, conditions, self._base_half_width(node), is_total=True)

    def _unshown(self, node: exp.Expr) -> int:
        """The position of a linear item that is used only in HAVING, ORDER BY or other SQL."""
        part = self._part
        width = None if part.targets.names_width else self._base_half_width(node)
        return part.aggregate(node, width)

    def _base_half_width(self, node: exp.Expr) -> float:
        """The target of a part of a formula: as many records, times its largest value."""
        part = self._part
        query = linear_query(node, part.conditions, part.domain)
        return part.default.half_width * max(float(query.bound), 1.0)

    def _known_range(self, node: exp.Expr) -> Range | None:
        """The public range of an aggregate or a share; None if it is neither."""
        inner = node.this if isinstance(node, exp.Filter) else node
        if isinstance(node, exp.Div):
            return share_range(node, self._part)
        if isinstance(inner, exp.Avg):
            span = span_of(_argument(inner), self._part)
            return span.low, span.high
        if isinstance(inner, exp.Corr):
            return -1.0, 1.0
        if isinstance(inner, COVARIANCES):
            most = (
                span_of(_argument(inner), self._part).radius
                * span_of(inner.expression, self._part).radius
            )
            most *= 2 if isinstance(inner, exp.CovarSamp) else 1  # of a sample of two
            return -most, most
        if isinstance(inner, _MOMENTS):
            most = 2 * span_of(_argument(inner), self._part).radius ** 2  # of a sample of two
            return 0.0, math.sqrt(most) if isinstance(inner, _ROOTS) else most
        return UNBOUNDED if is_linear(node) or is_unit_count(node) else None


def _argument(node: exp.Expr) -> exp.Expr:
    return _checked(node, node.this)


def _checked(node: exp.Expr, value: exp.Expr | None) -> exp.Expr:
    """An argument of an aggregate, which is a value of each record."""
    if isinstance(value, exp.Distinct) or not isinstance(value, exp.Expr) or node.expressions:
        raise unsupported(
            node, "aggregates distinct values, which is not supported", "Leave out DISTINCT."
        )
    if has_node(value, exp.AggFunc):
        raise aggregated_twice(node)
    if value.find(Held, CompanionColumn) is not None or is_quantile(value):
        raise unsupported(node, "needs a value of each record", "Run the inner query first.")
    return value


def _filtered(node: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    if condition is None:
        return node
    return exp.Filter(this=node, expression=exp.Where(this=copy_of(condition)))


def _or_null(count: exp.Expr) -> exp.Nullif:
    """A count to divide by."""
    return exp.Nullif(this=count, expression=exp.Literal.number(0))


def _is_number_cast(node: exp.Expr) -> bool:
    return isinstance(node, exp.Cast) and node.to.this in _NUMBER_TYPES
