"""Items that are not linear, as formulas of linear ones: AVG, VARIANCE, ratios, quantiles.

A formula's interval is simulated later from the joint law of its parts. Averages are taken from the
middle of the expression's public range: ``AVG(x) = c + SUM(x - c) / COUNT(x)``, so that one record
moves the sum by half the range at most.
"""

import math
from collections.abc import Callable

from sqlglot import exp

from cube.refusals import Refused
from planner.lowering.centring import centred_square, less, span_of, whole
from planner.lowering.comoments import (
    COMOMENTS,
    COVARIANCES,
    Sums,
    comoment,
    needs_squares,
)
from planner.lowering.level_summaries import summary_answer, summary_column, summary_of
from planner.lowering.linear import aggregated_twice, is_linear, linear_query
from planner.lowering.outer import check_run
from planner.lowering.parts import PartBuilder
from planner.lowering.quantile_columns import Calendar, as_level, calendar_of
from planner.lowering.quantiles import QuantileCall, quantile_answer, quantile_of
from planner.lowering.ranges import UNBOUNDED, Range, divisors, public_range, share_range
from planner.sql.exact_number import constant_value
from planner.sql.messages import shown, text_of, unsupported
from planner.sql.names import CompanionColumn
from planner.sql.nodes import Held, copy_of, every_node, has_node, is_quantile, is_unit_count
from planner.workload import Answer, ColumnKind, SqlFormula

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
            node, "is of distinct values, which are not counted", "Leave DISTINCT out."
        )
    if has_node(value, exp.AggFunc):
        raise aggregated_twice(node)
    if value.find(Held, CompanionColumn) is not None or is_quantile(value):
        raise unsupported(node, "needs a value of each record", "Ask the inner answer first.")
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
