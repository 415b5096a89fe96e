"""Moments that are the same everywhere, put on the clock of the column that they stand beside.

What NOW() gives, a client's value with a zone, and ``TIMESTAMPTZ '2024-06-01 12:00+02'`` are
instants; the levels of a timestamp column with a `time_zone` are times on that zone's clock. Beside
such a column an instant is the time that its clock shows then; elsewhere it stays an instant.
A text with an offset is an instant where it is compared with such a column, as dashboards do; with
any other it is read as PostgreSQL and DuckDB read it, who drop the offset of a TIMESTAMP.
"""

import datetime as dt
import re
from collections.abc import Callable, Iterator

from sqlglot import exp

from cube.axis import TimestampAxis
from cube.schema import Schema
from planner.sql.clock import IS_MOMENT
from planner.sql.messages import origin
from planner.sql.nodes import IS_INSTANT, copy_of, is_put_in_zone, nodes_of

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)
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
    if not (isinstance(text.parent, _COMPARISONS) and _WITH_OFFSET.search(text.name)):
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
