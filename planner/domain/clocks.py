"""Moments that are the same everywhere, put on the clock of the column that they stand beside.

What NOW() gives, a client's value with a zone, and ``TIMESTAMPTZ '2024-06-01 12:00+02'`` are
instants; the levels of a timestamp column with a `time_zone` are times on that zone's clock. Beside
such a column an instant is the time that its clock shows then; beside any other it is that of UTC.
"""

import datetime as dt
from collections.abc import Callable, Iterator

from sqlglot import exp

from cube.schema import Schema
from cube.timestamps import TimestampAxis
from planner.sql.clock import IS_MOMENT
from planner.sql.messages import origin
from planner.sql.nodes import IS_INSTANT

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
    if not any(True for _ in _instants(expression)):
        return expression
    around = exp.Paren(this=expression.copy())
    for node, instant in list(_instants(around)):
        zone = _zone_beside(node, schema)
        shown = instant if zone is None else local_time(instant, zone)
        constant = exp.cast(
            exp.Literal.string(str(shown.replace(tzinfo=None))), exp.DType.TIMESTAMP
        )
        constant.meta.update({**origin(node), IS_MOMENT: node.meta.get(IS_MOMENT, False)})
        node.replace(constant)
    found: exp.Expr = around.this
    return found


def _instants(expression: exp.Expr) -> Iterator[tuple[exp.Cast, dt.datetime]]:
    """The constants that are instants, in UTC."""
    for node in expression.find_all(exp.Cast):
        literal = node.this
        is_utc = bool(node.meta.get(IS_MOMENT) or node.meta.get(IS_INSTANT))
        is_instant = node.is_type(exp.DType.TIMESTAMPTZ) or (
            is_utc and node.is_type(exp.DType.TIMESTAMP)
        )
        if is_instant and isinstance(literal, exp.Literal) and literal.is_string:
            instant = _read(literal.name)
            if instant is not None:
                yield node, instant


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
        for column in around.find_all(exp.Column):
            axis = schema.by_name[column.name]
            if isinstance(axis, TimestampAxis) and axis.time_zone is not None:
                return axis.time_zone
        around = around.parent
    return None
