"""Parses a value written as text into a level of a column.

Reads only the text and the public declaration of the column.
"""

import datetime as dt
import math
from bisect import bisect_right
from typing import Final

from cube.axis import (
    Axis,
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    LevelValue,
    NumericAxis,
    TimestampAxis,
)
from cube.refusals import InvalidRequest
from planner.sql.messages import shortened, suggestion
from proxy.api.axis_text import describe_levels

NULL_TEXT: Final = "NULL"
_TRUTHS: Final = {"true": True, "false": False}


def level_place(axis: Axis, text: str) -> int:
    """The position of the level that a text stands for; for a number, its bin's position.

    >>> level_place(NumericAxis(name="hours", edges=(0.0, 20.0, 40.0), other=-1.0), "25.5")
    1
    >>> level_place(BooleanAxis(name="member", null=True), "null")
    2

    Raises
    ------
    InvalidRequest
        If there is no such level.
    """
    place = _place(axis, text)
    if place is None and axis.null_position is not None and text.upper() == NULL_TEXT:
        place = axis.null_position
    if place is None:
        texts = [level for level in axis.levels if isinstance(level, str)]
        raise InvalidRequest(
            f"{axis.name} has no level {shortened(text)!a}.",
            hint=suggestion(text, texts) or f"Its levels: {describe_levels(axis)}.",
        )
    return place


def _place(axis: Axis, text: str) -> int | None:
    """The same for a text other than NULL; None if there is no such level."""
    value = _value(axis, text)
    if isinstance(axis, NumericAxis) and isinstance(value, float) and value != axis.other:
        return _bin(axis, value)
    levels = axis.levels if axis.null_position is None else axis.levels[:-1]
    return next((place for place, level in enumerate(levels) if level == value), None)


def _value(axis: Axis, text: str) -> LevelValue:
    """The text as a value of the column's type; None if it is not one."""
    try:
        match axis:
            case CategoryAxis():
                return text
            case BooleanAxis():
                return _TRUTHS.get(text.lower())
            case DateAxis():
                return dt.date.fromisoformat(text)
            case TimestampAxis():
                return dt.datetime.fromisoformat(text)
            case _:
                return float(text)
    except ValueError:
        return None


def _bin(axis: NumericAxis, value: float) -> int | None:
    """The bin that contains a number; the last bin includes its upper edge."""
    if math.isnan(value) or not axis.edges[0] <= value <= axis.edges[-1]:
        return None
    return min(bisect_right(axis.edges, value), len(axis.edges) - 1) - 1
