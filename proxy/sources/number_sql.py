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
from proxy.sources.searching import Search, found
from proxy.sources.source_column import SourceColumn

DECIMAL_DIGITS: Final = 38  # the most that a DECIMAL has
DECIMAL_MAX: Final = 10**DECIMAL_DIGITS - 1  # in units of its last digit


def number_sql(
    axis: NumericAxis | MeasureAxis, value: str, place: int, column: SourceColumn
) -> tuple[str, Search | None]:
    """SQL for a position, NULL where a number has none, and the search that it needs.

    Parameters
    ----------
    axis : NumericAxis or MeasureAxis
    value : str
        SQL for the number as a double, NULL if it is not finite.
    place : int
        The axis's place in the schema.
    column : SourceColumn
    """
    if isinstance(axis, NumericAxis) and column.decimal_places is not None:
        search, last = _among_decimals(axis, column.sql, column.decimal_places)
        return f"CASE WHEN {column.sql} <= {last} THEN {found(place)} END", search
    if isinstance(axis, NumericAxis):
        search, last = _among(value, axis.regular), _double(axis.edges[-1])
        return f"CASE WHEN value_{place} <= {last} THEN {found(place)} END", search
    exact = _decimal_level(axis, column)
    if exact is not None:
        return exact, None
    if axis.rounding is not None:
        return _rounded(value, axis.n_regular, axis.rounding), None
    # The lowest level has no lower edge: values clamped to it are below every edge.
    return found(place), _among(value, (-math.inf, *axis.rounding_points))


def _among(value: str, edges: Sequence[float]) -> Search:
    """A search among the lower edges of levels."""
    return Search(value, pa.array(edges, pa.float64()))


def _among_decimals(axis: NumericAxis, value: str, places: int) -> tuple[Search, str]:
    """A search among the least decimals of bins, and SQL for the largest decimal of the last.

    Edges are the decimals that the owner wrote, compared exactly. Of bins that begin at the same
    decimal, as no decimal of so few places lies between them, the last is found.
    """
    written = [Fraction(repr(edge)) * 10**places for edge in axis.edges]
    end = min(math.floor(written[-1]), DECIMAL_MAX)
    first = [max(math.ceil(edge), -DECIMAL_MAX) for edge in written[:-1]]
    exact = Context(prec=DECIMAL_DIGITS)
    # A bin that begins beyond every decimal is found by none: its edge is NULL.
    decimals = [Decimal(edge).scaleb(-places, exact) if edge <= end else None for edge in first]
    last = Decimal(max(end, -DECIMAL_MAX)).scaleb(-places, exact)
    edges = pa.array(decimals, pa.decimal128(DECIMAL_DIGITS, places))
    return Search(value, edges), f"CAST('{last:f}' AS {_decimal(places)})"


def _decimal(places: int) -> str:
    return f"DECIMAL({DECIMAL_DIGITS}, {places})"


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
    # Of NULL, `greatest` would make the lowest level.
    return f"CASE WHEN {raw} IS NOT NULL THEN greatest(0, least({axis.n_regular - 1}, {level})) END"


def _double(value: float) -> str:
    return f"CAST('{value!r}' AS DOUBLE)"
