"""The clock, read once for a statement: CURRENT_DATE and NOW() are constants of that moment.

A moment is in UTC, and as fine as the statement needs: a day for CURRENT_DATE and AGE(x), a second
for NOW(), CURRENT_TIMESTAMP and LOCALTIMESTAMP. Equal texts at equal moments are one plan, and the
receipt names the moment, so that an answer can be asked for again.
"""

import datetime as dt
import re
from collections.abc import Callable
from typing import TypeAlias

from sqlglot import exp

from planner.sql.date_functions import Age
from planner.sql.messages import origin
from planner.sql.names import column_name
from planner.sql.nodes import is_put_in_zone

Clock: TypeAlias = Callable[[], dt.datetime]

IS_MOMENT = "is_moment"  # in the meta data of a constant that was read from the clock

_SECOND = re.compile(r"\b(now\s*\(|current_timestamp\b|localtimestamp\b)", re.IGNORECASE)
_DAY = re.compile(r"\b(current_date\b|age\s*\()", re.IGNORECASE)
_MOMENTS = (exp.CurrentTimestamp, exp.Localtimestamp)


def utc_now() -> dt.datetime:
    """The system's clock."""
    return dt.datetime.now(dt.UTC)


def moment_for(sql: str, clock: Clock) -> dt.datetime | None:
    """What the clock says, as fine as a text may need it; None if it surely does not.

    >>> noon = dt.datetime(2026, 11, 22, 12, 30, 59, 7, tzinfo=dt.UTC)
    >>> moment_for("SELECT NOW()", lambda: noon).isoformat()
    '2026-11-22T12:30:59+00:00'
    >>> moment_for("SELECT CURRENT_DATE", lambda: noon).isoformat()
    '2026-11-22T00:00:00+00:00'
    """
    if _SECOND.search(sql):
        return clock().replace(microsecond=0)
    if _DAY.search(sql):
        return clock().replace(hour=0, minute=0, second=0, microsecond=0)
    return None


def told_moment(moment: dt.datetime) -> str:
    """The sentence of the receipt that says which moment was read.

    >>> told_moment(dt.datetime(2026, 11, 22, 12, 30, 59, tzinfo=dt.UTC))
    'CURRENT_DATE and NOW() were taken to be 2026-11-22 12:30:59 UTC.'
    """
    return f"CURRENT_DATE and NOW() were taken to be {moment:%Y-%m-%d %H:%M:%S} UTC."


def read_at(tree: exp.Expr, moment: dt.datetime) -> bool:
    """Put a moment in the place of every reading of the clock; whether there was any."""
    found = False
    for node in list(tree.find_all(exp.CurrentDate, Age, *_MOMENTS)):
        if isinstance(node, Age):
            if node.expression:
                continue
            node.set("expression", node.this)
            node.set("this", _constant(node, moment, exp.DType.DATE))
        else:
            _replace(node, _constant(node, moment, _kind_of(node)))
        found = True
    return found


def _kind_of(node: exp.Expr) -> exp.DType:
    """The type of what is read; NOW() is an instant where it is put on the clock of a zone."""
    if isinstance(node, exp.CurrentDate):
        return exp.DType.DATE
    is_instant = isinstance(node, exp.CurrentTimestamp) and is_put_in_zone(node)
    return exp.DType.TIMESTAMPTZ if is_instant else exp.DType.TIMESTAMP


def _replace(node: exp.Expr, constant: exp.Expr) -> None:
    is_item = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
    node.replace(exp.alias_(constant, column_name(node), copy=False) if is_item else constant)


def _constant(node: exp.Expr, moment: dt.datetime, kind: exp.DType) -> exp.Cast:
    text = f"{moment:%Y-%m-%d}" if kind == exp.DType.DATE else f"{moment:%Y-%m-%d %H:%M:%S}"
    text += "+00" if kind == exp.DType.TIMESTAMPTZ else ""
    constant = exp.cast(exp.Literal.string(text), kind, copy=False)
    constant.meta.update({**origin(node), IS_MOMENT: True})
    return constant
