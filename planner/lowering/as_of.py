"""``FROM orders AS OF '2026-10-31'``: a growing table as it was when its rows ended there.

That is the table up to a level of the axis along which it grows, and a condition like any other: a
row that was measured then is about these rows, and answers it. Nothing here looks a table up.
"""

import datetime as dt

from sqlglot import exp

from cube.axis import Axis, IntegerAxis, TimestampAxis
from cube.refusals import OutsideDomain
from cube.schema import Schema
from planner.sql.messages import position, shown, unsupported


def as_of(table: exp.Table, schema: Schema, otherwise: str | None = None) -> exp.Expr | None:
    """The condition that a table's AS OF sets, which is taken off it; None if it has none.

    Parameters
    ----------
    table : Table
        In FROM.
    schema : Schema
    otherwise : str, optional
        The moment of a session, for a table that grows and has none of its own.

    Raises
    ------
    UnsupportedSql
        If the table does not grow.
    OutsideDomain
        If its rows do not go as far.
    """
    version = table.args.get("version")
    if version is None and (otherwise is None or schema.grows is None):
        return None
    if schema.grows is None:
        raise unsupported(table, "does not grow", "Leave AS OF out.")
    table.set("version", None)
    axis = schema.by_name[schema.grows]
    moment = _written(otherwise or "", axis) if version is None else version.expression
    _check_reached(moment, axis, schema.table)
    column = exp.column(axis.name, quoted=True)
    if isinstance(axis, IntegerAxis):
        return exp.LTE(this=column, expression=moment.copy())
    if isinstance(axis, TimestampAxis) and not _is_day(moment):
        return exp.LTE(this=column, expression=exp.cast(moment.copy(), exp.DType.TIMESTAMP))
    day = exp.cast(moment.copy(), exp.DType.DATE)
    if isinstance(axis, TimestampAxis):
        return exp.LT(this=column, expression=exp.Add(this=day, expression=exp.Literal.number(1)))
    return exp.LTE(this=column, expression=day)


def _written(moment: str, axis: Axis) -> exp.Expr:
    """A session's moment as SQL for an axis; OutsideDomain if it is of another kind."""
    is_number = moment.lstrip("-").isdigit()
    if is_number != isinstance(axis, IntegerAxis):
        raise OutsideDomain(
            f"tacit.as_of = {moment} is no value of {axis.name}.",
            hint="RESET tacit.as_of, or say AS OF behind the table.",
        )
    return exp.Literal.number(moment) if is_number else exp.Literal.string(moment)


def _is_day(moment: exp.Expr) -> bool:
    """Whether it is a day, of which all moments are meant."""
    text = moment.this if isinstance(moment, exp.Cast) else moment
    if isinstance(moment, exp.Cast) and moment.to.this == exp.DType.DATE:
        return True
    return _day(text) is not None


def _day(text: exp.Expr) -> dt.date | None:
    if not text.is_string:
        return None
    try:
        return dt.date.fromisoformat(text.name)
    except ValueError:
        return None


def _check_reached(moment: exp.Expr, axis: Axis, table: str) -> None:
    """Refuse a written day that is not readable yet: the answer would be as of an earlier one."""
    day = _day(moment.this if isinstance(moment, exp.Cast) else moment)
    last = axis.regular[-1]
    if day is None or not isinstance(last, dt.date):
        return
    if day > (last.date() if isinstance(last, dt.datetime) else last):
        raise OutsideDomain(
            f"{table} has rows through {axis.name} {last}, and not through {shown(moment)}.",
            hint="Leave AS OF out for all rows so far.",
            position=position(moment),
        )
