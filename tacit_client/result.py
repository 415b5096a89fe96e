"""An answer: its rows, its intervals, what it rests on and what it cost.

Rows go to Arrow, pandas or polars as they are; intervals stand in a table beside them, and in
columns behind each answer on request.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

import pyarrow as pa

from tacit_client.cursor import Row, rows_of
from tacit_client.errors import missing_library
from tacit_client.plotting import plot
from tacit_client.receipts import ColumnReceipt, Receipt, receipt_of, receipts_by_place
from tacit_client.showing import as_html, as_text, number_of

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
        """Draw it with its intervals; options are those of `tacit_client.plotting.plot`."""
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
