"""A result's receipt, in the metadata of its Arrow schema.

The sources, intervals and cost of an answer travel with it, as JSON under ``tacit.receipt``,
whether or not the SELECT asks for them as columns.
"""

import json
import math
from typing import Any, Final

import pyarrow as pa

from proxy.api.requests import BudgetStatus, Receipt

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
