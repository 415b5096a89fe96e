"""Rows that a client uploads: users of a stream, and nothing else.

`CommandStatementIngest` is what ADBC sends for ``cursor.adbc_ingest("visits", table,
mode="append")``: one column with ids, named as the stream names its users, one for each predicate
that held for some, and for a stream with departures another one, ``left``. An upload is noted as a
whole or not at all, and is on the disk before the reply.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from accountant.ledger.stream_entries import StreamOpened
from cube.refusals import InvalidRequest, UnknownName
from planner.sql.stream_statements import LEFT
from proxy.api.requests import CATALOG, DB_SCHEMA, Caller
from proxy.protocol import flight_pb2
from proxy.protocol import flight_sql_pb2 as sql
from proxy.streams.service import StreamService
from proxy.wire.arrow_ipc import sent_table
from proxy.wire.errors import NotOffered
from proxy.wire.flight.commands import quoted, refuse_transaction
from streams.arrivals import Arrivals

UPLOAD_BYTES_MAX: Final = 32 * 2**20  # four million ids
_PARTS: Final = "Send them in parts: a user counts once, however often they are sent."
_DEFINED: Final = sql.CommandStatementIngest.TableDefinitionOptions


def ingest(
    command: sql.CommandStatementIngest,
    messages: Iterable[flight_pb2.FlightData],
    streams: StreamService,
    caller: Caller,
) -> int:
    """Note the users of an upload, durably; how many rows there were.

    Raises
    ------
    Refused
        Then nobody was noted.
    """
    _check(command)
    try:
        stream = streams.observed(caller, command.table)
    except UnknownName as unknown:
        said = f"{unknown.message} Rows are taken for streams alone."
        raise UnknownName(said, hint=unknown.hint) from None
    opened = stream.history.opened
    sent = sent_table(messages, UPLOAD_BYTES_MAX, "the rows of an upload", _PARTS)
    stream.observe(_arrivals(sent, opened))
    stream.sync()
    return int(sent.num_rows)


def _check(command: sql.CommandStatementIngest) -> None:
    """Refuse whatever else could be asked of an upload."""
    refuse_transaction(command)
    mode = command.table_definition_options
    if (mode.if_not_exist, mode.if_exists) != (
        _DEFINED.TABLE_NOT_EXIST_OPTION_FAIL,
        _DEFINED.TABLE_EXISTS_OPTION_APPEND,
    ):
        raise NotOffered(
            "An upload makes no table, and replaces none.",
            hint='Create the stream by CREATE STREAM, and upload with mode="append".',
        )
    if command.temporary or command.options:
        raise NotOffered("An upload to a stream has no options, and is not temporary.")
    for named, ours in ((command.catalog, CATALOG), (command.schema, DB_SCHEMA)):
        if named not in {"", ours}:
            raise UnknownName(f"There are no streams in {quoted(named)}.", hint="Leave that out.")


def _arrivals(sent: pa.Table, opened: StreamOpened) -> Arrivals:
    """The users of an upload; which values are wrong is not said, as they may be ids."""
    column = opened.column
    truths = [*opened.predicates, *([LEFT] if opened.has_departures else [])]
    named = sent.column_names
    if column not in named or len(set(named)) < len(named) or set(named) - {column, *truths}:
        also = f" and may have {', '.join(truths)}" if truths else ""
        raise InvalidRequest(
            f"An upload to this stream has the column {column}{also}, and no other.",
            hint=f"Leave the others out, or rename: a table of the one column {column}.",
        )
    ids = _whole(sent.column(column), column)
    where = {name: _truth(sent.column(name), name) for name in truths if name in named}
    left = where.pop(LEFT, None)
    return Arrivals(ids, True if left is None else ~left, where)


def _whole(ids: pa.ChunkedArray, name: str) -> NDArray[np.int64]:
    if not pa.types.is_integer(ids.type):
        raise InvalidRequest(
            f"Users are whole numbers, and the column {name} is of {ids.type}.",
            hint="Give each of them a number, the same whenever they come.",
        )
    _check_given(ids)
    try:
        found: NDArray[np.int64] = ids.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        raise InvalidRequest("An id is no whole number of 64 bits with a sign.") from None
    return found


def _truth(values: pa.ChunkedArray, name: str) -> NDArray[np.bool_]:
    if not pa.types.is_boolean(values.type):
        what = "Whether users left" if name == LEFT else f"The predicate {name}"
        raise InvalidRequest(f"{what} is true or false, and not of {values.type}.")
    _check_given(values)
    found: NDArray[np.bool_] = values.to_numpy()
    return found


def _check_given(values: pa.ChunkedArray) -> None:
    if values.null_count:
        raise InvalidRequest("A value is NULL: nobody of the upload was noted.")
