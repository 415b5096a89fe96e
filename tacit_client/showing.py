"""An answer as text for terminals and as HTML for notebooks: values, intervals, source and cost.

Numbers are shown with the digits that their intervals make meaningful; `Result.to_arrow` has all.
Names and values are somebody's data: in HTML they are escaped, in text they have no control
characters.
"""

import math
from decimal import Decimal
from html import escape
from typing import Any, Final

import pyarrow as pa

from tacit_client.receipts import Receipt, receipts_by_place

N_ROWS_SHOWN_MAX: Final = 60
N_DECIMALS_MAX: Final = 6
NO_INTERVAL: Final = "none"
TABLE_STYLE: Final = "font-variant-numeric: tabular-nums"

Cells = list[list[str]]


def as_text(data: pa.Table, receipt: Receipt | None) -> str:
    """Aligned columns, and the cost below."""
    heads, rows = _cells(data, receipt)
    lines = [heads, *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(heads))]
    is_left = [pa.types.is_string(data.schema.field(0).type)] if heads else []
    is_left += [False] * (len(heads) - 1)
    shown = [
        "  ".join(
            cell.ljust(width) if left else cell.rjust(width)
            for cell, width, left in zip(line, widths, is_left, strict=True)
        ).rstrip()
        for line in lines
    ]
    return "\n".join([*shown, *_below(data, receipt)])


def as_html(data: pa.Table, receipt: Receipt | None) -> str:
    """A table, and the cost below."""
    heads, rows = _cells(data, receipt)
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in line) + "</tr>" for line in rows
    )
    below = "<br>".join(map(escape, _below(data, receipt)))
    return (
        f'<table style="{TABLE_STYLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        f"<p>{below}</p>"
    )


def number_of(value: Any) -> float | None:
    """A value as a number; None if it is NULL, or no number, as the most frequent text is."""
    return float(value) if isinstance(value, int | float | Decimal) else None


def to_width(value: float | None, low: float, high: float) -> str:
    """A number with the digits that are meaningful for an interval of this width.

    >>> to_width(7431.26, 7331.26, 7531.26), to_width(0.51234, 0.5, 0.53), to_width(7.0, 7.0, 7.0)
    ('7431', '0.512', '7')
    """
    if value is None or not math.isfinite(value):
        return general(value)
    half_width = (high - low) / 2
    if not math.isfinite(half_width) or half_width <= 0:
        return f"{value:.10g}"
    n_decimals = min(N_DECIMALS_MAX, max(0, 1 - math.floor(math.log10(half_width))))
    return f"{round(value, n_decimals) + 0.0:.{n_decimals}f}"  # never "-0"


def general(value: Any) -> str:
    r"""Any value as short text on one line.

    >>> general(None), general(True), general(0.1 + 0.2), general("a" + chr(10) + "b")
    ('NULL', 'true', '0.3', 'a\\nb')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _cells(data: pa.Table, receipt: Receipt | None) -> tuple[list[str], Cells]:
    """The head, and the first rows: behind each answer its interval and its source."""
    answers = receipts_by_place(data, receipt)
    shown = data.slice(0, N_ROWS_SHOWN_MAX)
    heads: list[str] = []
    columns: list[list[str]] = []
    for place, name in enumerate(data.column_names):
        values = shown.column(place).to_pylist()
        heads.append(general(name))
        one = answers.get(place)
        if one is None:
            columns.append(list(map(general, values)))
            continue
        ends = [one.interval(row) for row in range(len(values))]
        heads += [f"{one.confidence:.10g} interval", "source"]
        columns.append([_value(value, end) for value, end in zip(values, ends, strict=True)])
        columns.append(list(map(_interval, ends)))
        columns.append([one.source] * len(values))
    return heads, [list(row) for row in zip(*columns, strict=True)]


def _value(value: Any, ends: tuple[float, float] | None) -> str:
    number = number_of(value)
    return general(value) if ends is None or number is None else to_width(number, *ends)


def _interval(ends: tuple[float, float] | None) -> str:
    if ends is None:
        return NO_INTERVAL
    return f"[{to_width(ends[0], *ends)}, {to_width(ends[1], *ends)}]"


def _below(data: pa.Table, receipt: Receipt | None) -> list[str]:
    """How many rows are not shown, notes, and the cost."""
    n_more = data.num_rows - N_ROWS_SHOWN_MAX
    more = [f"and {n_more} more rows"] if n_more > 0 else []
    if receipt is None:
        return more
    left, renewing = receipt.epsilon_left, "" if receipt.renewal is None else f", {receipt.renewal}"
    of_table = "" if left is None else f"; {left:.6g} left for {receipt.table}{renewing}"
    return [
        *more,
        *(general(f"note: {note}") for note in receipt.notes),
        general(f"epsilon spent {receipt.epsilon_spent:.6g}{of_table}"),
    ]
