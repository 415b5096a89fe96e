"""``FROM customers AS OF '2026-09-30'``: the generation of a table that there was on a day.

The data of a table that does not grow may be replaced as a whole. Each of its generations is
planned on as a table of its own, which the moment chooses. Nothing here looks a table up.
"""

import datetime as dt
from dataclasses import dataclass

from sqlglot import exp

from cube.refusals import OutsideDomain
from planner.sql.clock import Clock, utc_now
from planner.sql.messages import position, shown, unsupported


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
            raise ValueError("generations without a moment each")

    def at(self, moment: dt.datetime) -> str | None:
        """The last that had begun at a moment; None if there was none yet."""
        begun = [name for name, at in zip(self.names, self.begun_at, strict=True) if at <= moment]
        return begun[-1] if begun else None


def generation_as_of(table: exp.Table, known: TableGenerations, otherwise: str | None) -> str:
    """The name of the generation that a table's AS OF chooses, which is taken off it.

    Parameters
    ----------
    table : Table
        In FROM.
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
    moment = _end(otherwise) if version is None else _written(version.expression)
    said = repr(otherwise) if version is None else shown(version.expression)
    if moment is None:
        if version is None:
            raise OutsideDomain(
                f"tacit.as_of = {otherwise} is no day.",
                hint="RESET tacit.as_of, or say AS OF behind the table.",
            )
        raise unsupported(version.expression, "is not a day", "As in AS OF '2026-09-30'.")
    place = None if version is None else position(version.expression)
    table.set("version", None)
    now = known.clock()
    if moment > dt.datetime.combine(now.date(), dt.time.max, dt.UTC):
        raise OutsideDomain(
            f"{said} is still to come.",
            hint="Leave AS OF out for the table as it is.",
            position=place,
        )
    found = known.at(moment)
    if found is None:
        first = known.begun_at[0]
        has_its_day = all(one.date() != first.date() for one in known.begun_at[1:])
        then = first.date().isoformat() if has_its_day else first.isoformat()
        raise OutsideDomain(
            f"{known.names[-1]} is served from {first.date()} on, and was not there as of {said}.",
            hint=f"Ask AS OF {then!r} or later.",
            position=place,
        )
    return found


def _written(moment: exp.Expr) -> dt.datetime | None:
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
