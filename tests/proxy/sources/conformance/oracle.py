"""What a level means, in plain Python: the oracle that every source is held to.

Values are as Python has them: decimals for a decimal column, datetimes with a zone for moments that
know theirs.
"""

import datetime as dt
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

from cube.axis import (
    STEPS,
    Axis,
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    MeasureAxis,
    NumericAxis,
    TimestampAxis,
)


def position(axis: Axis, value: Any) -> int | None:
    """The position of a value's level; None if it has none."""
    if value is None:
        return axis.other_position if axis.null_position is None else axis.null_position
    found = _regular(axis, value)
    return axis.other_position if found is None else found


def cells(
    axes: Sequence[Axis], rows: Iterable[Mapping[str, Any]], scope: Sequence[str]
) -> dict[tuple[int, ...], int]:
    """The occupied cells of a scope with their counts."""
    found: Counter[tuple[int, ...]] = Counter()
    for row in rows:
        places = {axis.name: position(axis, row[axis.name]) for axis in axes}
        if None not in places.values():
            found[tuple(places[name] or 0 for name in scope)] += 1
    return dict(found) if scope else {(): found[()]}


def _regular(axis: Axis, value: Any) -> int | None:  # noqa: PLR0911 - a case for each kind of axis
    match axis:
        case CategoryAxis():
            return axis.values.index(value) if value in axis.values else None
        case BooleanAxis():
            return int(value)
        case IntegerAxis():
            inside = math.isfinite(value) and axis.low <= value <= axis.high
            return int(value) - axis.low if inside else None
        case NumericAxis():
            return _bin(axis, value)
        case MeasureAxis():
            return _nearest(axis, value) if math.isfinite(value) else None
        case DateAxis():
            return (value - axis.low).days if axis.low <= value <= axis.high else None
        case TimestampAxis():
            return _step(axis, value)
    raise TypeError(type(axis).__name__)


def _bin(axis: NumericAxis, value: float | Decimal) -> int | None:
    if not math.isfinite(value):
        return None
    if isinstance(value, Decimal):
        edges: list[Any] = [Decimal(repr(edge)) for edge in axis.edges]
    else:
        edges, value = [float(edge) for edge in axis.edges], float(value)
    return bisect_right(edges[:-1], value) - 1 if edges[0] <= value <= edges[-1] else None


def _nearest(axis: MeasureAxis, value: float | Decimal) -> int:
    if isinstance(value, Decimal):
        low, step = Fraction(axis.low), Fraction(axis.step)
        found = math.floor((Fraction(value) - low) / step + Fraction(1, 2))
        return min(max(found, 0), axis.n_regular - 1)
    # A double is compared with the double nearest to where levels meet.
    return bisect_right(axis.rounding_points, float(value))


def _step(axis: TimestampAxis, value: dt.datetime | dt.date) -> int | None:
    if not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    if value.tzinfo is not None:
        assert axis.time_zone is not None
        value = value.astimezone(ZoneInfo(axis.time_zone)).replace(tzinfo=None)
    found = (value - axis.low) // STEPS[axis.step]
    return found if 0 <= found < axis.n_regular else None
