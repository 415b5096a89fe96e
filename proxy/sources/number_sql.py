"""SQL for the bin of a number, and for the nearest level of a measure.

Numbers are doubles, compared with the doubles nearest to what the owner wrote. Those of a DECIMAL
column are compared exactly, as decimals, whatever the number of their digits; unless a measure's
steps and its column's digits together are more than a DECIMAL holds.
"""

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

import pyarrow as pa

from cube.axis import MeasureAxis, NumericAxis, Rounding
from proxy.sources.source_column import SourceColumn

DECIMAL_DIGITS: Final = 38  # the most that a DECIMAL has
DECIMAL_MAX: Final = 10**DECIMAL_DIGITS - 1  # in units of its last digit


def number_sql(
    axis: NumericAxis | MeasureAxis, value: str, place: int, column: SourceColumn
) -> tuple[str, str, str, pa.Table | None]:
    """SQL for a position, the join and the setup it needs, and the table the setup refers to.

    Parameters
    ----------
    axis : NumericAxis or MeasureAxis
    value : str
        SQL for the number as a double, NULL if it is not finite.
    place : int
        The axis's place in the schema.
    column : SourceColumn

    Notes
    -----
    The position is NULL where a number has none.
    """
    setup, join = f"CREATE TABLE levels_{place} AS FROM listed", _search(value, place)
    level = f"levels_{place}.position"
    if isinstance(axis, NumericAxis) and column.decimal_places is not None:
        listed, last = _decimal_edges(axis, column.decimal_places)
        found = f"CASE WHEN {column.sql} <= {last} THEN {level} END"
        return found, _search(column.sql, place), setup, listed
    if isinstance(axis, NumericAxis):
        last = _double(axis.edges[-1])
        return f"CASE WHEN {value} <= {last} THEN {level} END", join, setup, _edges(axis.regular)
    exact = _decimal_level(axis, column)
    if exact is not None:
        return exact, "", "", None
    if axis.rounding is not None:
        return _rounded(value, axis.n_regular, axis.rounding), "", "", None
    # The lowest level has no lower edge: values clamped to it are below every edge.
    return level, join, setup, _edges((-math.inf, *axis.rounding_points))


def _edges(edges: Sequence[float]) -> pa.Table:
    """The lower edge of every level, and its position."""
    begins = pa.array(edges, pa.float64())
    return pa.table({"edge": begins, "position": pa.array(range(len(begins)), pa.int32())})


def _decimal_edges(axis: NumericAxis, places: int) -> tuple[pa.Table, str]:
    """The least decimal of every bin and the bin's position, and SQL for the largest of the last.

    Edges are the decimals that the owner wrote, compared exactly. Bins that no decimal of so few
    places lies in are left out.
    """
    written = [Fraction(repr(edge)) * 10**places for edge in axis.edges]
    end = min(math.floor(written[-1]), DECIMAL_MAX)
    first = {max(math.ceil(edge), -DECIMAL_MAX): place for place, edge in enumerate(written[:-1])}
    kept = {edge: place for edge, place in first.items() if edge <= end}
    exact = Context(prec=DECIMAL_DIGITS)
    decimals = [Decimal(edge).scaleb(-places, exact) for edge in kept]
    begins = pa.array(decimals, pa.decimal128(DECIMAL_DIGITS, places))
    last = Decimal(end).scaleb(-places, exact)
    listed = pa.table({"edge": begins, "position": pa.array(kept.values(), pa.int32())})
    return listed, f"CAST('{last:f}' AS {_decimal(places)})"


def _decimal(places: int) -> str:
    return f"DECIMAL({DECIMAL_DIGITS}, {places})"


def _search(value: str, place: int) -> str:
    """SQL to join the level with the greatest edge that is at most `value`."""
    return f"ASOF LEFT JOIN levels_{place} ON {value} >= levels_{place}.edge"


def _rounded(value: str, n_levels: int, rounding: Rounding) -> str:
    """SQL for the level of a measure, by arithmetic: half a million edges are slow to search.

    The quotient is less than a level from the right one; comparing with the two rounding points
    beside it finds that one exactly.
    """
    first, step, unit = rounding.first, rounding.step, rounding.unit

    def point(level: str) -> str:
        return f"CAST({first} + ({level}) * {step} AS DOUBLE) / {_double(float(unit))}"

    within = f"greatest({point('0')}, least({point(str(n_levels))}, {value}))"
    quotient = f"floor(({within} * {unit} - ({first})) / {step})"
    near = f"CAST(greatest(0, least({n_levels - 1}, {quotient})) AS BIGINT)"
    return (
        # Of NULL, `greatest` would make the lowest level.
        f"CASE WHEN {value} IS NOT NULL THEN greatest(0, least({n_levels - 1}, {near} "
        f"+ CAST({value} >= {point(near + ' + 1')} AS INTEGER) "
        f"- CAST({value} < {point(near)} AS INTEGER))) END"
    )


def _decimal_level(axis: MeasureAxis, column: SourceColumn) -> str | None:
    """SQL for the level of a measure of decimals, exactly; None if that takes too many digits.

    It is the whole part of ``(x * unit - first) / step``, with whole numbers but for x, and so of
    the whole part of ``x * unit``, less `first`, by `step`.
    """
    places, rounding = column.decimal_places, axis.rounding
    if places is None or rounding is None:
        return None
    low, high = math.floor(axis.low) - 1, math.ceil(axis.high) + 1
    digits = len(str(max(abs(low), abs(high)))) + places
    if digits + len(str(rounding.unit)) > DECIMAL_DIGITS:
        return None
    raw = column.sql
    within = (
        f"least(CAST({high} AS {_decimal(places)}), "
        f"greatest(CAST({low} AS {_decimal(places)}), {raw}))"
    )
    units = (
        f"CAST(floor(CAST({within} AS DECIMAL({digits}, {places})) * {rounding.unit}) AS BIGINT)"
    )
    level = f"({units} - ({rounding.first})) // {rounding.step}"
    return f"greatest(0, least({axis.n_regular - 1}, {level}))"


def _double(value: float) -> str:
    return f"CAST('{value!r}' AS DOUBLE)"
