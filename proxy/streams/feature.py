"""Streams as a feature: tables, `data_privacy.streams`, CREATE and DROP, collectors, the turning.

The calls of `tacit.v1`, and uploads: who came or left, by messages or by a table. They are put into
what the service of streams takes; nothing is decided here, and neither is counted or logged.
"""

# ruff: noqa: N802 - the protocol fixes the names of its methods

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Final

import grpc
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from accountant.ledger import StreamOpened
from cube.measurement import UNITS_PER_EPSILON
from cube.pace import checkpoint
from cube.refusals import InvalidRequest, UnknownName
from planner.sql import LEFT, CreateStream, DropStream, StreamStatement
from proxy.api import Caller, QueryResult
from proxy.feature import Call, Feature, View, calls_of
from proxy.identity import caller_of
from proxy.monitoring import leave_no_trace
from proxy.protocol import tacit_pb2
from proxy.scheduling import CallSlots
from proxy.streams.served_stream import epsilon_of
from proxy.streams.service import Stream, StreamService, StreamStatus, Turning, agreed
from streams import Arrivals, agreement

# A collector may send as slowly as people come, and holds a thread meanwhile; others need some too.
N_CALLS_OF_ONE_MAX: Final = 4
N_CALLS_MAX: Final = 16
EVERYBODY: Final = ""


class StreamCalls:
    """The methods of `tacit.v1` for streams."""

    def __init__(self, streams: StreamService) -> None:
        self._streams = streams
        self._of_one = CallSlots(N_CALLS_OF_ONE_MAX)
        self._of_all = CallSlots(N_CALLS_MAX)

    def Observe(
        self, request_iterator: Iterator[tacit_pb2.ObserveRequest], context: grpc.ServicerContext
    ) -> tacit_pb2.ObserveReply:
        """Note users, message by message; the reply says that the disk has all of them."""
        leave_no_trace(context)
        caller = caller_of(context)
        with self._of_one.taken_by(caller.payer.analyst), self._of_all.taken_by(EVERYBODY):
            self._observe(request_iterator, caller)
        return tacit_pb2.ObserveReply()

    def ExportStream(
        self, request: tacit_pb2.ExportStreamRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.ExportStreamReply:
        """The release of an epoch, to be added to those of other servers."""
        found = self._streams.exported(caller_of(context), request.stream, request.epoch)
        return tacit_pb2.ExportStreamReply(content=found)

    def _observe(self, requests: Iterator[tacit_pb2.ObserveRequest], caller: Caller) -> None:
        touched: dict[str, Stream] = {}
        for request in requests:
            checkpoint()
            ids = np.fromiter(request.ids, dtype=np.int64, count=len(request.ids))
            where = dict.fromkeys(request.where, True)
            stream = self._streams.observed(caller, request.stream)
            stream.observe(Arrivals(ids, not request.left, where))
            touched[request.stream] = stream
        for stream in touched.values():
            stream.sync()


def arrivals(sent: pa.Table, opened: StreamOpened) -> Arrivals:
    """The users of an upload; which values are wrong is not said, as they may be ids."""
    column = opened.column
    truths = [*opened.predicates, *([LEFT] if opened.has_departures else [])]
    named = sent.column_names
    if column not in named or len(set(named)) < len(named) or set(named) - {column, *truths}:
        also = f" and may have {', '.join(truths)}" if truths else ""
        raise InvalidRequest(
            f"An upload to this stream must have the column {column}{also}, and no other.",
            hint=(
                "Remove or rename the others; the least is a table with the single column "
                f"{column}."
            ),
        )
    ids = _whole(sent.column(column), column)
    where = {name: _truth(sent.column(name), name) for name in truths if name in named}
    left = where.pop(LEFT, None)
    return Arrivals(ids, True if left is None else ~left, where)


def _whole(ids: pa.ChunkedArray, name: str) -> NDArray[np.int64]:
    if not pa.types.is_integer(ids.type):
        raise InvalidRequest(
            f"Users are whole numbers, and the column {name} is of {ids.type}.",
            hint="Give each user a number, the same at every visit.",
        )
    _check_given(ids)
    try:
        found: NDArray[np.int64] = ids.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        raise InvalidRequest("An id is not a signed whole number of 64 bits.") from None
    return found


def _truth(values: pa.ChunkedArray, name: str) -> NDArray[np.bool_]:
    if not pa.types.is_boolean(values.type):
        what = "Whether users left" if name == LEFT else f"The predicate {name}"
        raise InvalidRequest(f"{what} must be true or false, not {values.type}.")
    _check_given(values)
    found: NDArray[np.bool_] = values.to_numpy()
    return found


def _check_given(values: pa.ChunkedArray) -> None:
    if values.null_count:
        raise InvalidRequest("A value is NULL, so no user of the upload was counted.")


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
        pa.field("visits", pa.int64()),
        pa.field("releases", pa.int64(), nullable=False),
        pa.field("agreement", pa.string()),
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
    """The streams of a server."""

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
        """The columns of the statement's result."""
        return _columns_of(statement)

    def new_table(self, statement: StreamStatement) -> str | None:
        """The name of the stream, if the statement creates it."""
        return statement.name if isinstance(statement, CreateStream) else None

    def calls(self) -> dict[str, Call]:
        """What collectors call."""
        return calls_of(StreamCalls(self.service))

    def take_rows(self, caller: Caller, table: str, sent: Callable[[], pa.Table]) -> int:
        """Note the users of an upload to a stream."""
        try:
            stream = self.service.observed(caller, table)
        except UnknownName as unknown:
            said = f"{unknown.message} Only streams accept uploads."
            raise UnknownName(said, hint=unknown.hint) from None
        opened, rows = stream.history.opened, sent()
        stream.observe(arrivals(rows, opened))
        stream.sync()
        return int(rows.num_rows)

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
        "visits": opened.levels or None,
        "releases": opened.n_releases,
        "agreement": agreement(agreed(opened)) if opened.universe else None,
        "opened_by": opened.by,
    }
