"""Handles AS OF: a growing table at an earlier horizon, or an earlier generation of a table's data.

``FROM orders AS OF '2026-10-31'``: a growing table as it was when its rows ended there.

That is the table up to a level of the axis along which it grows, and a condition like any other: a
row that was measured then is about these rows, and answers it. Nothing here looks a table up.

``FROM customers AS OF '2026-09-30'``: the generation of a table that there was on a day.

The data of a table that does not grow may be replaced as a whole. Each of its generations is
planned on as a table of its own, which the moment chooses. Nothing here looks a table up.
"""

import datetime as dt
from dataclasses import dataclass

from sqlglot import exp

from cube.axis import Axis, IntegerAxis, TimestampAxis
from cube.refusals import OutsideDomain
from cube.schema import Schema
from planner.sql import Clock, position, shown, unsupported, utc_now


def as_of(table: exp.Table, schema: Schema, otherwise: str | None = None) -> exp.Expr | None:
    """The condition that a table's AS OF sets, which is taken off it; None if it has none.

    Parameters
    ----------
    table : Table
        The table as it is written in FROM.
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
        raise unsupported(
            table,
            "is a table that does not grow, so it cannot be read as of an earlier time",
            "Leave out AS OF.",
        )
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
            f"tacit.as_of = {moment} is not a value of {axis.name}.",
            hint="Use RESET tacit.as_of, or write AS OF after the table.",
        )
    return exp.Literal.number(moment) if is_number else exp.Literal.string(moment)


def _is_day(moment: exp.Expr) -> bool:
    """Whether it is a day; a day stands for all of its moments."""
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
            hint="Leave out AS OF to read all rows so far.",
            position=position(moment),
        )


@dataclass(frozen=True, slots=True)
class TableGenerations:
    """The generations of one table, in order.

    Parameters
    ----------
    names : tuple of str
        The tables that are planned on; the last is the table itself.
    begun_at : tuple of datetime
        When each began.
    clock : callable
        The moment, in UTC.
    """

    names: tuple[str, ...]
    begun_at: tuple[dt.datetime, ...]
    clock: Clock = utc_now

    def __post_init__(self) -> None:
        if not self.names or len(self.names) != len(self.begun_at):
            raise ValueError("every generation needs a moment at which it begins")

    def at(self, moment: dt.datetime) -> str | None:
        """The last that had begun at a moment; None if there was none yet."""
        begun = [name for name, at in zip(self.names, self.begun_at, strict=True) if at <= moment]
        return begun[-1] if begun else None


def generation_as_of(table: exp.Table, known: TableGenerations, otherwise: str | None) -> str:
    """The name of the generation that a table's AS OF chooses, which is taken off it.

    Parameters
    ----------
    table : Table
        The table as it is written in FROM.
    known : TableGenerations
    otherwise : str, optional
        The moment of a session, for a table that has none of its own.

    Raises
    ------
    UnsupportedSql
        If the moment is not written out as a day or a time.
    OutsideDomain
        If there was no such table then, or it is still to come.
    """
    version = table.args.get("version")
    if version is None and otherwise is None:
        return known.names[-1]
    moment = _end(otherwise) if version is None else _written_moment(version.expression)
    said = repr(otherwise) if version is None else shown(version.expression)
    if moment is None:
        if version is None:
            raise OutsideDomain(
                f"tacit.as_of = {otherwise} is not a date.",
                hint="Use RESET tacit.as_of, or write AS OF after the table.",
            )
        raise unsupported(version.expression, "is not a date", "Write AS OF '2026-09-30'.")
    place = None if version is None else position(version.expression)
    table.set("version", None)
    now = known.clock()
    if moment > dt.datetime.combine(now.date(), dt.time.max, dt.UTC):
        raise OutsideDomain(
            f"{said} is in the future.",
            hint="Leave out AS OF to read the table as it is now.",
            position=place,
        )
    found = known.at(moment)
    if found is None:
        first = known.begun_at[0]
        has_its_day = all(one.date() != first.date() for one in known.begun_at[1:])
        then = first.date().isoformat() if has_its_day else first.isoformat()
        raise OutsideDomain(
            f"{known.names[-1]} has been served since {first.date()}, so it has no data as of "
            f"{said}.",
            hint=f"Use AS OF {then!r} or later.",
            position=place,
        )
    return found


def _written_moment(moment: exp.Expr) -> dt.datetime | None:
    """The end of a moment that is written out; None for anything else."""
    text = moment.this if isinstance(moment, exp.Cast) else moment
    return _end(text.name) if text.is_string else None


def _end(text: str | None) -> dt.datetime | None:
    """The last moment of a day, or a moment of it, in UTC; None if it is neither."""
    try:
        if len(text or "") == len("2026-09-30"):
            return dt.datetime.combine(dt.date.fromisoformat(text or ""), dt.time.max, dt.UTC)
        found = dt.datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found.replace(tzinfo=dt.UTC) if found.tzinfo is None else found
