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
from proxy.sources.searching import Search
from proxy.sources.source_column import DECIMAL_DIGITS_MAX, SourceColumn

DECIMAL_DIGITS: Final = DECIMAL_DIGITS_MAX
SHORT_DIGITS: Final = 18  # of a DECIMAL that is a machine word: twenty times as fast
EXACT: Final = Context(prec=DECIMAL_DIGITS)
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
        return f"CASE WHEN {column.sql} <= {last} THEN {search.found(place)} END", search
    if isinstance(axis, NumericAxis):
        search, last = _among(value, axis.regular), _double(axis.edges[-1])
        return f"CASE WHEN value_{place} <= {last} THEN {search.found(place)} END", search
    exact = _decimal_level(axis, column)
    if exact is not None:
        return exact, None
    if axis.rounding is not None:
        return _rounded(value, axis.n_regular, axis.rounding), None
    # The lowest level has no lower edge: values clamped to it are below every edge.
    search = _among(value, (-math.inf, *axis.rounding_points))
    return search.found(place), search


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
    # A bin that begins beyond every decimal is found by none: its edge is NULL.
    decimals = [Decimal(edge).scaleb(-places, EXACT) if edge <= end else None for edge in first]
    last = Decimal(max(end, -DECIMAL_MAX)).scaleb(-places, EXACT)
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
    the whole part of ``x * unit``, less `first`, by `step`; between the least decimal that is above
    the lowest level, and the least of the highest.
    """
    places, rounding, last = column.decimal_places, axis.rounding, axis.n_regular - 1
    if places is None or rounding is None:
        return None
    ends = [_least_decimal(rounding, level, places) for level in (min(1, last), last)]
    digits = max(len(str(abs(end))) for end in ends)
    if max(digits, places) + len(str(rounding.unit)) > DECIMAL_DIGITS:
        return None
    is_short = max(digits, column.decimal_digits) <= SHORT_DIGITS
    kind = f"DECIMAL({SHORT_DIGITS if is_short else DECIMAL_DIGITS}, {places})"
    above, highest = (f"CAST('{Decimal(end).scaleb(-places, EXACT):f}' AS {kind})" for end in ends)
    within = f"CAST({column.sql} AS DECIMAL({max(digits, places)}, {places}))"
    times = "" if rounding.unit == 1 else f" * {rounding.unit}"
    level = f"(CAST(floor({within}{times}) AS BIGINT) - ({rounding.first})) // {rounding.step}"
    raw = column.sql
    return (
        f"CASE WHEN {raw} >= {highest} THEN {last} WHEN {raw} < {above} THEN 0 "
        f"WHEN {raw} IS NOT NULL THEN {level} END"
    )


def _least_decimal(rounding: Rounding, level: int, places: int) -> int:
    """The least decimal of a level, in units of its last digit."""
    scale: int = 10**places
    return -(-(rounding.first + level * rounding.step) * scale // rounding.unit)


def _double(value: float) -> str:
    return f"CAST('{value!r}' AS DOUBLE)"
