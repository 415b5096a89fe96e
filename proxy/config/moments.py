"""Days and moments of a configuration: TOML's own, or the same between quotes.

What is between quotes is read as ISO 8601 writes it, and as nothing else: no local order of day and
month is guessed.
"""

import datetime as dt
from typing import Annotated, Any, Final, TypeAlias

from pydantic import PlainValidator

_DAY_LENGTH: Final = len("2026-10-31")


def _day(value: Any) -> dt.date:
    """A day; ValueError if it is none.

    >>> _day("2026-10-31")
    datetime.date(2026, 10, 31)
    """
    found = _read(value)
    if isinstance(found, dt.datetime) or not isinstance(found, dt.date):
        raise ValueError("should be a day, such as 2026-10-31")  # noqa: TRY004 - so pydantic reads it
    return found


def _moment(value: Any) -> dt.date:
    """A moment or a day; ValueError if it is neither.

    >>> _moment("2026-10-31 07:00")
    datetime.datetime(2026, 10, 31, 7, 0)
    """
    found = _read(value)
    if not isinstance(found, dt.date):
        raise ValueError("should be a day or a moment, such as 2026-10-31T23:00")  # noqa: TRY004 - so pydantic reads it
    return found


def _last_level(value: Any) -> dt.date | int:
    """A day, a moment or a whole number; ValueError if it is none of them."""
    found = _read(value)
    if isinstance(found, bool) or not isinstance(found, dt.date | int):
        raise ValueError("should be a day such as 2026-10-31, a moment or a whole number")  # noqa: TRY004 - so pydantic reads it
    return found


def _read(value: Any) -> Any:
    """What a text says, if it is a day or a moment in full; other values as they are."""
    if not isinstance(value, str) or len(value) < _DAY_LENGTH:
        return value
    try:
        is_day = len(value) == _DAY_LENGTH
        return dt.date.fromisoformat(value) if is_day else dt.datetime.fromisoformat(value)
    except ValueError:
        return value


Day: TypeAlias = Annotated[dt.date, PlainValidator(_day)]
Moment: TypeAlias = Annotated[dt.datetime | dt.date, PlainValidator(_moment)]
LastLevel: TypeAlias = Annotated[dt.datetime | dt.date | int, PlainValidator(_last_level)]
