"""Streams as a feature: as tables, in `data_privacy.streams`, CREATE and DROP, and the turning."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

import pyarrow as pa

from cube.measurement import UNITS_PER_EPSILON
from planner.sql import CreateStream, DropStream, StreamStatement
from proxy.api import Caller, QueryResult
from proxy.feature import Feature, View
from proxy.streams.served_stream import epsilon_of
from proxy.streams.service import StreamService, StreamStatus, Turning

VIEW: Final = "streams"
VIEW_SCHEMA: Final = pa.schema(
    [
        pa.field("table_name", pa.string(), nullable=False),
        pa.field("column_name", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("epochs", pa.string(), nullable=False),
        pa.field("epsilon", pa.float64(), nullable=False),
        pa.field("epsilon_spent", pa.float64(), nullable=False),
        pa.field("budget", pa.float64()),
        pa.field("n_begun", pa.int64(), nullable=False),
        pa.field("n_released", pa.int64(), nullable=False),
        pa.field("universe", pa.int64()),
        pa.field("bits", pa.int64(), nullable=False),
        pa.field("has_departures", pa.bool_(), nullable=False),
        pa.field("predicates", pa.string(), nullable=False),
        pa.field("opened_by", pa.string(), nullable=False),
    ]
)


def _columns(**types: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in types.items()])


CREATED_SCHEMA: Final = _columns(
    name=pa.string(), epoch=pa.string(), bits=pa.int64(), epsilon=pa.float64()
)
DROPPED_SCHEMA: Final = _columns(name=pa.string(), dropped=pa.bool_())


def _columns_of(statement: StreamStatement) -> pa.Schema:
    """The columns of a statement's result."""
    return CREATED_SCHEMA if isinstance(statement, CreateStream) else DROPPED_SCHEMA


def _carried_out(service: StreamService, statement: StreamStatement, caller: Caller) -> QueryResult:
    """Execute a statement; its result.

    Raises
    ------
    Refused
    """
    if isinstance(statement, CreateStream):
        stream = service.create(caller, statement)
        opened = stream.history.opened
        row: dict[str, object] = {
            "name": stream.name,
            "epoch": tuple(stream.history.released)[-1],
            "bits": opened.n_places,
            "epsilon": float(epsilon_of(opened)),
        }
    else:
        dropped = service.drop(caller, statement.name, if_exists=statement.if_exists)
        row = {"name": statement.name, "dropped": dropped}
    return QueryResult(pa.Table.from_pylist([row], schema=_columns_of(statement)), None)


class Streams(Feature):
    """The streams of a server.

    Parameters
    ----------
    service : StreamService
    """

    statements = (CreateStream, DropStream)

    def __init__(self, service: StreamService) -> None:
        def rows(caller: Caller) -> Iterator[dict[str, object]]:
            return map(_row, service.known(caller))

        super().__init__(service, {VIEW: View(VIEW_SCHEMA, rows)}, [Turning(service)])
        self.service = service

    def carry_out(self, statement: StreamStatement, caller: Caller) -> QueryResult:
        """Create a stream, or drop one."""
        return _carried_out(self.service, statement, caller)

    def columns_of(self, statement: StreamStatement) -> pa.Schema:
        """The columns of what is said of the stream."""
        return _columns_of(statement)

    def new_table(self, statement: StreamStatement) -> str | None:
        """The name of the stream, if the statement creates it."""
        return statement.name if isinstance(statement, CreateStream) else None

    def close(self) -> None:
        """Close the files of states."""
        self.service.close()


def _row(status: StreamStatus) -> dict[str, object]:
    opened = status.opened
    budget = opened.budget_units
    return {
        "table_name": status.name,
        "column_name": opened.column,
        "state": "dropped" if status.is_dropped else "open",
        "epochs": opened.epochs.value,
        "epsilon": float(epsilon_of(opened)),
        "epsilon_spent": float(status.epsilon_spent),
        "budget": None if budget is None else float(Fraction(budget, UNITS_PER_EPSILON)),
        "n_begun": status.n_begun,
        "n_released": status.n_released,
        "universe": opened.universe or None,
        "bits": opened.n_places,
        "has_departures": opened.has_departures,
        "predicates": ", ".join(opened.predicates),
        "opened_by": opened.by,
    }
