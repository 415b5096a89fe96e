"""Holds an answer: its rows, intervals, sources and cost; shows it as text, HTML or a plot.

Rows go to Arrow, pandas or polars as they are; intervals stand in a table beside them, and in
columns behind each answer on request.

In text for terminals and HTML for notebooks, numbers are shown with the digits that their intervals
make meaningful; `Result.to_arrow` has all. Names and values are somebody's data: in HTML they are
escaped, in text they have no control characters.

matplotlib draws an answer with its intervals: bars for categories, lines along an order. What has
no interval is drawn without one. Rows whose value is NULL are left out; a key that is NULL is a
category of its own, and has no place on a line.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from importlib import import_module
from math import isnan
from typing import Any, Final

import pyarrow as pa

from tacit_client.address import refused
from tacit_client.cursor import Row, rows_of
from tacit_client.errors import missing_library
from tacit_client.receipts import ColumnReceipt, Receipt, receipt_of, receipts_by_place

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


KINDS: Final = ("bar", "line")
GROUP_WIDTH: Final = 0.8  # of the bars that belong to one key
N_LEVEL_LABELS_MAX: Final = 8  # more names than these are written at a slant
NAN: Final = float("nan")


@dataclass(frozen=True, slots=True)
class Series:
    """One column of numbers, with how far its intervals reach down and up.

    Parameters
    ----------
    name : str
    values, down, up : list of float
        NaN where there is nothing.
    """

    name: str
    values: list[float]
    down: list[float]
    up: list[float]


def plot(  # noqa: PLR0913 - what a drawing is made of, by name
    data: pa.Table,
    receipt: Receipt | None,
    *,
    x: str | None = None,
    y: str | Sequence[str] | None = None,
    kind: str | None = None,
    ax: Any = None,
) -> Any:
    """Draw an answer; returns matplotlib's axes.

    Parameters
    ----------
    data : pyarrow.Table
    receipt : Receipt, optional
    x : str, optional
        The key; if left out, what stands before the first answer.
    y : str or sequence of str, optional
        The numbers; if left out, the answers.
    kind : str, optional
        ``bar`` or ``line``; if left out, a line for a key of numbers or dates.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure if left out.
    """
    if kind is not None and kind not in KINDS:
        raise refused(f"kind={kind!r} is not a kind of plot. Use one of {', '.join(KINDS)}.")
    numbers = _numbers(data, receipt, y)
    keys = _keys(data, min(numbers, default=0), x)
    answers = receipts_by_place(data, receipt)
    series = [_series(data, place, answers.get(place)) for place in numbers]
    is_line = _is_ordered(data, keys) if kind is None else kind == "line"
    axes = _new_axes() if ax is None else ax
    if is_line and len(keys) == 1:
        _draw_lines(axes, data.column(keys[0]).to_pylist(), series)
    else:
        _draw_bars(axes, _labels(data, keys), series)
    axes.set_xlabel(", ".join(data.column_names[place] for place in keys))
    axes.set_ylabel(series[0].name if len(series) == 1 else "")
    if len(series) > 1:
        axes.legend()
    return axes


def _numbers(data: pa.Table, receipt: Receipt | None, y: str | Sequence[str] | None) -> list[int]:
    """The places of the columns to draw."""
    if y is not None:
        return [_place(data, name) for name in ([y] if isinstance(y, str) else y)]
    answers = receipts_by_place(data, receipt)
    # If nothing private was asked, every number but the first column.
    found = [place for place in (answers or range(1, data.num_columns)) if _is_number(data, place)]
    if not found:
        raise refused("The result has no numeric column to plot. Name a column as y=.")
    return found


def _keys(data: pa.Table, end: int, x: str | None) -> list[int]:
    return list(range(end)) if x is None else [_place(data, x)]


def _place(data: pa.Table, name: str) -> int:
    if name not in data.column_names:
        raise refused(
            f"There is no column {name!r}. The columns are {', '.join(data.column_names)}."
        )
    return int(data.column_names.index(name))


def _series(data: pa.Table, place: int, receipt: ColumnReceipt | None) -> Series:
    raw = data.column(place).to_pylist()
    numbers = map(number_of, raw)
    values = [NAN if number is None else number for number in numbers]
    ends = [None if receipt is None else receipt.interval(row) for row in range(len(values))]
    return Series(
        name=data.column_names[place],
        values=values,
        down=[NAN if e is None else max(0.0, v - e[0]) for v, e in zip(values, ends, strict=True)],
        up=[NAN if e is None else max(0.0, e[1] - v) for v, e in zip(values, ends, strict=True)],
    )


def _is_number(data: pa.Table, place: int) -> bool:
    kind = data.schema.field(place).type
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _is_ordered(data: pa.Table, keys: list[int]) -> bool:
    return len(keys) == 1 and (
        _is_number(data, keys[0]) or bool(pa.types.is_temporal(data.schema.field(keys[0]).type))
    )


def _labels(data: pa.Table, keys: list[int]) -> list[str]:
    if not keys:
        return [""] * data.num_rows
    columns = [map(general, data.column(place).to_pylist()) for place in keys]
    return [", ".join(row) for row in zip(*columns, strict=True)]


def _draw_lines(axes: Any, keys: list[Any], series: list[Series]) -> None:
    order = sorted((row for row, key in enumerate(keys) if key is not None), key=keys.__getitem__)
    for one in series:
        rows = [row for row in order if not isnan(one.values[row])]
        reach = [[one.down[row] for row in rows], [one.up[row] for row in rows]]
        axes.errorbar(
            [keys[row] for row in rows],
            [one.values[row] for row in rows],
            yerr=reach,
            marker="o",
            capsize=3,
            label=one.name,
        )


def _draw_bars(axes: Any, labels: list[str], series: list[Series]) -> None:
    width = GROUP_WIDTH / len(series)
    for number, one in enumerate(series):
        shift = (number - (len(series) - 1) / 2) * width
        places = [row + shift for row in range(len(labels))]
        reach = [one.down, one.up]
        axes.bar(places, one.values, width=width, yerr=reach, capsize=3, label=one.name)
    slanted = {"rotation": 45, "ha": "right"} if len(labels) > N_LEVEL_LABELS_MAX else {}
    axes.set_xticks(range(len(labels)), labels, **slanted)


def _new_axes() -> Any:
    try:
        from matplotlib import pyplot as plt  # noqa: PLC0415 - optional, and slow to load
    except ImportError as missing:
        raise missing_library("plot()", "matplotlib") from missing
    return plt.subplots(layout="constrained")[1]


INTERVALS: Final = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("column", pa.string(), nullable=False),
        pa.field("value", pa.float64()),
        pa.field("low", pa.float64()),
        pa.field("high", pa.float64()),
        pa.field("confidence", pa.float64(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
    ]
)


class Result:
    """The answer of one statement.

    Parameters
    ----------
    data : pyarrow.Table
        Its rows, with the receipt in the schema's metadata.
    """

    def __init__(self, data: pa.Table) -> None:
        self._data = data
        self.receipt: Receipt | None = receipt_of(data)

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return list(self._data.column_names)

    @property
    def answers(self) -> dict[int, ColumnReceipt]:
        """The receipts of the columns that are answers, by their places; keys have none."""
        return receipts_by_place(self._data, self.receipt)

    @property
    def intervals(self) -> pa.Table:
        """A row for each number: row, column, value, low, high, confidence, source.

        Where there is no interval, low and high are NULL.
        """
        found = [
            self._interval_row(place, row, one)
            for place, one in self.answers.items()
            for row in range(self._data.num_rows)
        ]
        return pa.Table.from_pylist(found, schema=INTERVALS)

    @property
    def source(self) -> str | None:
        """What the answer rests on: ``history``, ``measured``, ``mixed``, ``public`` or ``model``.

        None if nothing private was asked; ``mixed`` also if its columns differ.
        """
        sources = {one.source for one in self.answers.values()}
        if not sources:
            return None
        return sources.pop() if len(sources) == 1 else "mixed"

    @property
    def epsilon_spent(self) -> float:
        """What it added to the private table's cost."""
        return 0.0 if self.receipt is None else self.receipt.epsilon_spent

    @property
    def epsilon_left(self) -> float | None:
        """What the private table's budget had left afterwards."""
        return None if self.receipt is None else self.receipt.epsilon_left

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know beside numbers."""
        return () if self.receipt is None else self.receipt.notes

    def to_arrow(self, *, intervals: bool = False) -> pa.Table:
        """The rows as an Arrow table.

        With `intervals`, behind each answer ``n`` stand the columns ``n_low`` and ``n_high``.
        """
        if not intervals:
            return self._data
        arrays: list[pa.Array] = []
        names: list[str] = []
        for place, name in enumerate(self._data.column_names):
            arrays.append(self._data.column(place))
            names.append(name)
            if (one := self.answers.get(place)) is not None:
                for end, values in (("low", one.low), ("high", one.high)):
                    padding = [None] * (self._data.num_rows - len(values))
                    arrays.append(pa.array([*values, *padding], pa.float64()))
                    names.append(f"{name}_{end}")
        found = pa.Table.from_arrays(arrays, names=names)
        return found.replace_schema_metadata(self._data.schema.metadata)

    def to_pandas(self, *, intervals: bool = False) -> Any:
        """The rows as a pandas DataFrame; `intervals` as for `to_arrow`."""
        try:
            import_module("pandas")
        except ImportError as missing:
            raise missing_library("to_pandas()", "pandas") from missing
        return self.to_arrow(intervals=intervals).to_pandas()

    def to_polars(self, *, intervals: bool = False) -> Any:
        """The rows as a polars DataFrame; `intervals` as for `to_arrow`."""
        try:
            polars = import_module("polars")
        except ImportError as missing:
            raise missing_library("to_polars()", "polars") from missing
        return polars.from_arrow(self.to_arrow(intervals=intervals))

    def fetchall(self) -> list[Row]:
        """The rows as tuples of Python values."""
        return rows_of(self._data)

    def plot(self, **options: Any) -> Any:
        """Draw it with its intervals; options are those of `tacit_client.result.plot`."""
        return plot(self._data, self.receipt, **options)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.fetchall())

    def __len__(self) -> int:
        return int(self._data.num_rows)

    def __repr__(self) -> str:
        return as_text(self._data, self.receipt)

    def _repr_html_(self) -> str:
        return as_html(self._data, self.receipt)

    def _interval_row(self, place: int, row: int, one: ColumnReceipt) -> dict[str, Any]:
        low, high = one.interval(row) or (None, None)
        return {
            "row": row,
            "column": one.name,
            "value": number_of(self._data.column(place)[row].as_py()),
            "low": low,
            "high": high,
            "confidence": one.confidence,
            "source": one.source,
        }
