"""Reads the receipt of an answer from its schema's metadata: intervals, sources and cost."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

RECEIPT_KEY: Final = b"tacit.receipt"


@dataclass(frozen=True, slots=True)
class ColumnReceipt:
    """One column of an answer.

    Parameters
    ----------
    name : str
    confidence : float
        The probability that an interval contains the true value.
    epsilon_spent : float
    source : str
        ``history``, ``measured``, ``mixed``, ``public`` or ``model``.
    low, high : tuple of float
        The interval of each row; None where there is none. Of a long result, its first rows.
    """

    name: str
    confidence: float
    epsilon_spent: float
    source: str
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]

    def interval(self, row: int) -> tuple[float, float] | None:
        """The interval of a row, if it has one."""
        if row >= len(self.low):
            return None
        low, high = self.low[row], self.high[row]
        return None if low is None or high is None else (low, high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """A budget that renews: it limits each window, and the guarantee is the sum of all windows.

    Parameters
    ----------
    window : str
        ``day``, ``week``, ``month``, ``quarter`` or ``year``.
    renews_on : str
        The day on which it renews next, at midnight UTC.
    epsilon_limit : float
        What may be spent in a window.
    epsilon_spent_in_year, epsilon_spent_in_all : float, optional
        In the last twelve months, and in all; None where the history is private.
    """

    window: str
    renews_on: str
    epsilon_limit: float
    epsilon_spent_in_year: float | None = None
    epsilon_spent_in_all: float | None = None

    def __str__(self) -> str:
        year, all_of_it = self.epsilon_spent_in_year, self.epsilon_spent_in_all
        when = f"renews on {self.renews_on}"
        if year is None or all_of_it is None:
            return when
        return f"{when}; {year:.6g} spent in the last 12 months, {all_of_it:.6g} in all"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an answer rests on, and what it cost.

    Parameters
    ----------
    table : str
        The private table, or one that answers by itself.
    epsilon_spent : float
    epsilon_left : float, optional
        None for a table without a budget, which answers by itself.
    renewal : Renewal, optional
        Of a budget that renews; `epsilon_left` is then what is left in the present window.
    columns : tuple of ColumnReceipt
        The columns that are answers; keys of groups have none.
    notes : tuple of str
    """

    table: str
    epsilon_spent: float
    epsilon_left: float | None
    columns: tuple[ColumnReceipt, ...] = ()
    notes: tuple[str, ...] = ()
    renewal: Renewal | None = None


def receipt_of(data: pa.Table) -> Receipt | None:
    """The receipt of a result; None if nothing private was asked."""
    packed = (data.schema.metadata or {}).get(RECEIPT_KEY)
    return None if packed is None else _receipt(json.loads(packed))


def receipts_by_place(data: pa.Table, receipt: Receipt | None) -> dict[int, ColumnReceipt]:
    """The receipt of each column that is an answer. Names may repeat; both keep their order."""
    waiting = [] if receipt is None else list(receipt.columns)
    found: dict[int, ColumnReceipt] = {}
    for place, name in enumerate(data.schema.names):
        match = next((one for one in waiting if one.name == name), None)
        if match is not None:
            waiting.remove(match)
            found[place] = match
    return found


def _receipt(values: Mapping[str, Any]) -> Receipt:
    return Receipt(
        table=values.get("table", ""),
        epsilon_spent=values.get("epsilon_spent", 0.0),
        epsilon_left=values.get("epsilon_left"),
        columns=tuple(
            ColumnReceipt(
                name=one["name"],
                confidence=one["confidence"],
                epsilon_spent=one["epsilon_spent"],
                source=one["source"],
                low=tuple(one["low"]),
                high=tuple(one["high"]),
            )
            for one in values.get("columns", ())
        ),
        notes=tuple(values.get("notes", ())),
        renewal=Renewal(**values["renewal"]) if "renewal" in values else None,
    )
