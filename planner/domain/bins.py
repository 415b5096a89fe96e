"""Binned columns: comparing them with constants, and showing that no comparison cuts a bin.

Of a value in a bin ``[low, high)`` only the bin is public. An expression means something on bins if
it has the same value everywhere in each. A comparison with a constant can change only at that
constant, so it is enough to evaluate at *probes*: the ends of the bin, each constant in it, and the
doubles next to that. If the probes of a bin agree, every value in the bin agrees.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cube.axis import NumericAxis
from cube.refusals import TextPosition, UnsupportedSql
from cube.schema import Schema
from planner.domain.scratchpad import columns_of
from planner.meaning.moments import thresholds
from planner.sql.exact_number import constant_value
from planner.sql.messages import position, shown
from planner.sql.nodes import nodes_of

N_NEIGHBOURS = 2  # a decimal constant may become either neighbouring double; one more to pass it

_COMPARISONS = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Is, exp.In, exp.Between),
)

# Evaluates a constant expression as a double; None for NULL.
ConstantDouble = Callable[[exp.Expr], float | None]


@dataclass(frozen=True, slots=True)
class Probed:
    """Values at which an expression of one binned column is evaluated.

    Parameters
    ----------
    axis : NumericAxis
        The column.
    values : tuple of float or None
        The probes, level by level.
    level : tuple of int
        The level of each probe, non-decreasing.
    position : TextPosition, optional
        Where in the analyst's text the column stands.
    """

    axis: NumericAxis
    values: tuple[float | None, ...]
    level: tuple[int, ...]
    position: TextPosition | None = None


def probes_for(
    expression: exp.Expr, schema: Schema, constant_double: ConstantDouble
) -> dict[str, Probed]:
    """Probes for every binned column of `expression`.

    Raises
    ------
    UnsupportedSql
        If a binned column is used in any other way than compared with constants.
    """
    constants: dict[str, set[float]] = {}
    positions: dict[str, TextPosition | None] = {}
    for column in nodes_of(expression, exp.Column):
        axis = schema.by_name[column.name]
        if not isinstance(axis, NumericAxis):
            continue
        found = constants.setdefault(axis.name, set())
        positions.setdefault(axis.name, position(column))
        for constant in _compared_constants(column):
            value = _as_double(constant, constant_double)
            if value is not None and math.isfinite(value):
                found.update(_neighbourhood(value))
    probed = {}
    for name, values in constants.items():
        axis = schema.by_name[name]
        if isinstance(axis, NumericAxis):
            probed[name] = _probed(axis, sorted(values), positions[name])
    return probed


def collapsed(
    values: NDArray[np.int64], axes: tuple[str, ...], probed: Mapping[str, Probed]
) -> NDArray[np.int64]:
    """Values on probes as values on levels.

    Raises
    ------
    UnsupportedSql
        If the probes of one bin disagree; the message names the bin.
    """
    for dimension, name in enumerate(axes):
        if name not in probed:
            continue
        level = np.array(probed[name].level, dtype=np.int64)
        first = np.flatnonzero(np.diff(level, prepend=-1))
        on_levels = np.take(values, first, axis=dimension)
        differs = np.take(on_levels, level, axis=dimension) != values
        if differs.any():
            others = tuple(place for place in range(values.ndim) if place != dimension)
            cut = int(level[np.flatnonzero(differs.any(axis=others))[0]])
            raise _cuts(probed[name], cut)
        values = on_levels
    return values


def _compared_constants(column: exp.Column) -> list[exp.Expr]:
    """The constants that a column is compared with in the comparison it stands in."""
    operand: exp.Expr = column
    while isinstance(operand.parent, exp.Paren):
        operand = operand.parent
    comparison = operand.parent
    if isinstance(comparison, exp.WidthBucket) and comparison.this is operand:
        return thresholds(comparison)
    if not isinstance(comparison, _COMPARISONS):
        raise _misused(column)
    others = [child for child in comparison.iter_expressions() if child is not operand]
    ordered = not isinstance(comparison, exp.In | exp.Between) or comparison.this is operand
    if not ordered or any(columns_of(other) for other in others):
        raise _misused(column)
    return [other for other in others if not isinstance(other, exp.Null)]


def _as_double(constant: exp.Expr, constant_double: ConstantDouble) -> float | None:
    exact: Fraction | None = constant_value(constant)
    return constant_double(constant) if exact is None else float(exact)


def _neighbourhood(value: float) -> list[float]:
    """The value and the doubles next to it."""
    below = above = value
    near = [value]
    for _ in range(N_NEIGHBOURS):
        below, above = math.nextafter(below, -math.inf), math.nextafter(above, math.inf)
        near += [below, above]
    return near


def _probed(axis: NumericAxis, constants: list[float], where: TextPosition | None) -> Probed:
    values: list[float | None] = []
    level: list[int] = []
    last = len(axis.edges) - 2
    cuts = np.array(constants, dtype=np.float64)
    for place, (low, high) in enumerate(zip(axis.edges, axis.edges[1:], strict=False)):
        # Bins are closed on the left only, except that the last one holds its upper edge too.
        end = float(high) if place == last else math.nextafter(high, -math.inf)
        inside = cuts[np.searchsorted(cuts, low) : np.searchsorted(cuts, end, side="right")]
        here = sorted({float(low), end, *inside.tolist()})
        values += here
        level += [place] * len(here)
    if isinstance(axis.other, int | float):
        values.append(float(axis.other))
        level.append(level[-1] + 1)
    if axis.null:
        values.append(None)
        level.append(level[-1] + 1)
    return Probed(axis, tuple(values), tuple(level), where)


def _misused(column: exp.Column) -> UnsupportedSql:
    comparison = shown(column.parent) if column.parent is not None else shown(column)
    return UnsupportedSql(
        f"{comparison} uses more of {column.name} than its bins: only comparisons with constants "
        "are answered.",
        hint=f"Compare {column.name} with an edge of a bin, or group by it.",
        position=position(column),
    )


def _cuts(probed: Probed, bin_number: int) -> UnsupportedSql:
    axis = probed.axis
    if bin_number >= len(axis.edges) - 1:
        raise ValueError("a level that is one value cannot be cut")
    low, high = axis.edges[bin_number], axis.edges[bin_number + 1]
    is_last = bin_number == len(axis.edges) - 2  # it holds its upper edge too
    closing, below = ("]", "<=") if is_last else (")", "<")
    return UnsupportedSql(
        f"A comparison with {axis.name} cuts its bin [{low}, {high}{closing}.",
        hint=f"Use {axis.name} >= {low} or {axis.name} {below} {high}: the nearest edges.",
        position=probed.position,
    )
