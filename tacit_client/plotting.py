"""An answer drawn with its intervals, by matplotlib: bars for categories, lines along an order.

What has no interval is drawn without one. Rows whose value is NULL are left out; a key that is NULL
is a category of its own, and has no place on a line.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Final

import pyarrow as pa

from tacit_client.connecting import refused
from tacit_client.errors import missing_library
from tacit_client.receipts import ColumnReceipt, Receipt, receipts_by_place
from tacit_client.showing import general, number_of

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
        raise refused(f"kind={kind!r} is no kind of plot. It is one of {', '.join(KINDS)}.")
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
        raise refused("There is no column of numbers to draw. Name one as y=.")
    return found


def _keys(data: pa.Table, end: int, x: str | None) -> list[int]:
    return list(range(end)) if x is None else [_place(data, x)]


def _place(data: pa.Table, name: str) -> int:
    if name not in data.column_names:
        raise refused(f"There is no column {name!r}. There are {', '.join(data.column_names)}.")
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
