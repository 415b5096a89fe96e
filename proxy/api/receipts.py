"""Receipts in an Arrow schema and as lines, and the rows of a table that count.

A result's receipt, in the metadata of its Arrow schema.

The sources, intervals and cost of an answer travel with it, as JSON under ``tacit.receipt``,
whether or not the SELECT asks for them as columns.

A receipt in a few lines, for clients that show notices: cost, what is left, intervals, notes.

Nothing here is more than the receipt says, in fewer digits.

Which rows of a private table count, in words: at most so many of each unit, and no others.
"""

import json
import math
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa

from cube.schema import Schema
from planner.domain import owner_of
from proxy.api.requests import BudgetStatus, ColumnReceipt, Receipt

RECEIPT_KEY: Final = b"tacit.receipt"
N_INTERVALS_MAX: Final = 2000  # listed in a receipt's JSON; columns of the result have them all


def with_receipt(table: pa.Table, receipt: Receipt) -> pa.Table:
    """The result with its receipt in the schema's metadata."""
    return table.replace_schema_metadata({RECEIPT_KEY: _receipt_json(receipt)})


def _receipt_json(receipt: Receipt) -> bytes:
    return json.dumps(
        {
            "table": receipt.table,
            "epsilon_spent": float(receipt.epsilon_spent),
            **left_fields(receipt),
            "columns": [
                {
                    "name": column.name,
                    "confidence": column.confidence,
                    "epsilon_spent": float(column.epsilon_spent),
                    "source": column.source,
                    "low": [_finite(value) for value in column.low[:N_INTERVALS_MAX]],
                    "high": [_finite(value) for value in column.high[:N_INTERVALS_MAX]],
                }
                for column in receipt.columns
            ],
            "notes": list(receipt.notes),
        }
    ).encode()


def left_fields(receipt: Receipt) -> dict[str, Any]:
    """What a program is told of the budget; nothing where a table has none."""
    budget = receipt.budget
    if budget is None:
        return {}
    return {"epsilon_left": float(budget.left), **_renewal_fields(budget)}


def _renewal_fields(budget: BudgetStatus) -> dict[str, Any]:
    """What a program is told of a budget that renews; nothing of one that does not."""
    renewal = budget.renewal
    if renewal is None:
        return {}
    in_year, in_all = renewal.spent_in_year, renewal.spent_in_all
    told = {
        "window": renewal.window.value,
        "renews_on": renewal.next_day,
        "epsilon_limit": float(budget.limit),
        "epsilon_spent_in_year": None if in_year is None else float(in_year),
        "epsilon_spent_in_all": None if in_all is None else float(in_all),
    }
    return {"renewal": told}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


_UPWARDS: Final = Context(prec=3, rounding=ROUND_CEILING)  # an interval is no narrower than told


def notice_lines(receipt: Receipt) -> tuple[str, ...]:
    """The lines of a receipt; each may be sent as a notice of its own."""
    return (*_cost_lines(receipt), *map(_column_line, receipt.columns), *receipt.notes)


def _cost_lines(receipt: Receipt) -> tuple[str, ...]:
    budget = receipt.budget
    if budget is None:
        return (f"{receipt.table}: free.",)
    limits = [one.left for one in budget.limits if one.left is not None]
    left, spent = min((budget.left, *limits)), _epsilon(receipt.epsilon_spent)
    renewing = () if budget.renewal is None else (f"Budget: {budget.left_text}.",)
    return (f"{receipt.table}: epsilon {spent} spent, {_epsilon(left)} left.", *renewing)


def _column_line(column: ColumnReceipt) -> str:
    """How wide the intervals of one column are.

    >>> _column_line(ColumnReceipt("n", 0.95, Fraction(0), "history", (10.0, 0.0), (20.0, 40.0)))
    'n: half-width 5 to 20 at confidence 0.95, from history.'
    """
    pairs = zip(column.low, column.high, strict=True)
    widths = [(high - low) / 2 for low, high in pairs if math.isfinite(high - low)]
    if not widths:
        return f"{column.name}: no interval, from {column.source}."
    least, most = _upwards(min(widths)), _upwards(max(widths))
    width = least if least == most else f"{least} to {most}"
    return (
        f"{column.name}: half-width {width} at confidence {column.confidence:g}, "
        f"from {column.source}."
    )


def _epsilon(value: Fraction) -> str:
    return f"{float(value):.6g}"


def _upwards(width: float) -> str:
    return f"{float(_UPWARDS.create_decimal_from_float(width)):g}"


LEFT_OUT: Final = (
    "All other rows are left out of every value, and intervals do not account for them."
)


def rows_kept(schema: Schema) -> str | None:
    """How many rows of a unit count; None where no unit has rows that are left out.

    A table whose units have one row each leaves none of them out: it is refused if somebody has
    two.

    >>> from cube.axis import CategoryAxis
    >>> axes = (CategoryAxis(name="shop", values=("a", "b")),)
    >>> orders = {"table": "orders", "axes": axes, "n_records_max": 9, "unit": "customer"}
    >>> rows_kept(Schema(**orders, rows_per_unit_max=5))
    'at most 5 rows of each customer count'
    >>> rows_kept(Schema(**orders))
    """
    if schema.rows_per_unit_max == 1:
        return None
    by = schema.rows_per_unit_max_by
    of_each = "" if by is None else f", of them at most {by.rows} for each {by.axis}"
    return f"at most {schema.rows_per_unit_max} rows of each {schema.unit} count{of_each}"


def about_rows(schema: Schema) -> str:
    """Whom the rows of a private table are about, and which are left out."""
    owner = owner_of(schema.table)
    if owner is not None:
        who = f"One record for each unit of {owner}: {schema.unit}."
    elif schema.unit is None:
        who = "Each record is a unit of privacy."
    else:
        who = f"Unit: {schema.unit}."
    kept = rows_kept(schema)
    if kept is not None:
        who += f" {kept[0].upper()}{kept[1:]}. {LEFT_OUT}"
    return who
