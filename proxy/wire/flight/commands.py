"""The commands of Flight SQL that are known here, in and out of their envelopes.

Nothing here carries one out.
"""

from collections.abc import Mapping
from typing import Final

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message

from cube.refusals import InvalidRequest
from proxy.protocol import flight_pb2
from proxy.protocol import flight_sql_pb2 as sql
from proxy.wire.errors import NotOffered
from proxy.wire.flight.catalog import METADATA_COMMANDS

READ_ONLY: Final = "This server only answers SELECT, and makes synthetic tables; it does not offer"
UPDATES: Final = (sql.CommandStatementUpdate, sql.CommandPreparedStatementUpdate)
_READ: Final[tuple[type[Message], ...]] = (
    *METADATA_COMMANDS,
    sql.CommandStatementQuery,
    sql.CommandPreparedStatementQuery,
    sql.TicketStatementQuery,
    sql.ActionCreatePreparedStatementRequest,
    sql.ActionClosePreparedStatementRequest,
)
_READ_BY_NAME: Final = {message.DESCRIPTOR.full_name: message for message in _READ}
PUT_BY_NAME: Final[Mapping[str, type[Message]]] = _READ_BY_NAME | {
    each.DESCRIPTOR.full_name: each for each in (*UPDATES, sql.CommandStatementIngest)
}


def unwrapped(envelope: bytes, known: Mapping[str, type[Message]] = _READ_BY_NAME) -> Message:
    """The known Flight SQL message in a serialised ``google.protobuf.Any``.

    Raises
    ------
    InvalidRequest
        If there is none, or another one.
    """
    try:
        opened = AnyMessage.FromString(envelope)
        name = opened.type_url.rpartition("/")[2]
        if name in known:
            return known[name].FromString(opened.value)
    except DecodeError:
        raise InvalidRequest("This is not a Flight SQL command.") from None
    if not name:
        raise InvalidRequest("This is not a Flight SQL command.")
    raise NotOffered(f"{READ_ONLY} {quoted(name.rpartition('.')[2])}.")


def wrapped(message: Message) -> bytes:
    """A message in an envelope, serialised."""
    envelope = AnyMessage()
    envelope.Pack(message)
    return envelope.SerializeToString()


def quoted(name: str) -> str:
    """A name that the client chose, escaped for one line of a message."""
    return ascii(name[:60])


def refuse_transaction(
    request: sql.CommandStatementQuery
    | sql.CommandStatementUpdate
    | sql.CommandStatementIngest
    | sql.ActionCreatePreparedStatementRequest,
) -> None:
    """Refuse what is to be done within a transaction."""
    if request.transaction_id:
        raise NotOffered(f"{READ_ONLY} transactions.")


def updated(n_rows: int) -> flight_pb2.PutResult:
    """The reply to an update: how many rows it made or took."""
    result = sql.DoPutUpdateResult(record_count=n_rows)
    return flight_pb2.PutResult(app_metadata=result.SerializeToString())
