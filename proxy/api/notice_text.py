"""A receipt in a few lines, for clients that show notices: cost, what is left, intervals, notes.

Nothing here is more than the receipt says, in fewer digits.
"""

import math
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Final

from proxy.api.requests import ColumnReceipt, Receipt

_UPWARDS: Final = Context(prec=3, rounding=ROUND_CEILING)  # an interval is no narrower than told


def notice_lines(receipt: Receipt) -> tuple[str, ...]:
    """The lines of a receipt, each of which may be sent as a notice of its own."""
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
