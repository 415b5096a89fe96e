"""The public declaration of a table as JSON text, so that a ledger can be read without its server.

For readers only: nothing depends on it, and this package never reads it back.
"""

from fractions import Fraction
from typing import Any, Final

from cube.axis import (
    Axis,
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    MeasureAxis,
    NumericAxis,
)
from cube.encoding import canonical_json
from cube.schema import Schema
from cube.timestamps import TimestampAxis

AXIS_KINDS: Final[dict[type[Axis], str]] = {
    CategoryAxis: "category",
    IntegerAxis: "integer",
    NumericAxis: "numeric",
    BooleanAxis: "boolean",
    DateAxis: "date",
    MeasureAxis: "measure",
    TimestampAxis: "timestamp",
}


def declare(schema: Schema, *, version: str, separate_budget: str = "") -> str:
    """The declaration of a schema, made by a version of Tacit.

    `separate_budget` is why a table has a budget of its own beside others about the same units.

    The positions of a column's levels are those of its regular levels in order, then OTHER, then
    NULL.
    """
    return canonical_json(
        {
            "table": schema.table,
            "neighbours": schema.neighbours.value,
            "n_records_max": schema.n_records_max,
            "unit": schema.unit,
            "version": version,
            "columns": [_column(axis) for axis in schema.axes],
            **_bounds(schema),
            **({"separate_budget": separate_budget} if separate_budget else {}),
        }
    )


def _bounds(schema: Schema) -> dict[str, Any]:
    """The bounds on the rows of a unit, and on its groups, where a unit may have several."""
    n_rows, by = schema.rows_per_unit_max, schema.rows_per_unit_max_by
    n_groups = schema.groups_per_unit_max
    return {
        **({} if n_rows == 1 else {"rows_per_unit_max": n_rows}),
        **({} if by is None else {"rows_per_unit_max_by": by.declaration}),
        **({} if n_groups is None else {"groups_per_unit_max": n_groups}),
    }


def _column(axis: Axis) -> dict[str, Any]:
    return {
        "name": axis.name,
        "kind": AXIS_KINDS[type(axis)],
        "sql_type": axis.sql_type,
        "size": axis.size,
        "null": axis.null,
        "other": None if axis.other is None else str(axis.other),
        **_regular(axis),
    }


def _regular(axis: Axis) -> dict[str, Any]:
    match axis:
        case CategoryAxis():
            return {"levels": list(axis.values)}
        case BooleanAxis():
            return {"levels": ["false", "true"]}
        case NumericAxis():
            return {"edges": [repr(edge) for edge in axis.edges]}
        case IntegerAxis() | DateAxis():
            return {"low": str(axis.low), "high": str(axis.high)}
        case MeasureAxis():
            ends = {"low": axis.low, "high": axis.high, "step": axis.step}
            return {name: str(Fraction(value)) for name, value in ends.items()}
        case TimestampAxis():
            zone = {} if axis.time_zone is None else {"time_zone": axis.time_zone}
            return {"low": str(axis.low), "high": str(axis.high), "step": axis.step, **zone}
        case _:
            raise TypeError(f"a column of unknown kind {type(axis).__name__}")
