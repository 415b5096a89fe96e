"""Carries out statements about streams; each returns a table with a known schema."""

from typing import Final

import pyarrow as pa

from planner.sql.stream_statements import CreateStream, StreamStatement
from proxy.api.requests import Caller, QueryResult
from proxy.streams.opening import epsilon_of
from proxy.streams.service import StreamService


def _columns(**types: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in types.items()])


CREATED_SCHEMA: Final = _columns(
    name=pa.string(), epoch=pa.string(), bits=pa.int64(), epsilon=pa.float64()
)
DROPPED_SCHEMA: Final = _columns(name=pa.string(), dropped=pa.bool_())


def stream_schema(statement: StreamStatement) -> pa.Schema:
    """The columns of a statement's result."""
    return CREATED_SCHEMA if isinstance(statement, CreateStream) else DROPPED_SCHEMA


def run_stream(service: StreamService, statement: StreamStatement, caller: Caller) -> QueryResult:
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
    return QueryResult(pa.Table.from_pylist([row], schema=stream_schema(statement)), None)
