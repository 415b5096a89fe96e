"""The commands of Flight SQL that are known here, and those that are carried out beside statements.

Commands come and go in envelopes. Of those that are no statements, two are carried out here.

*Rows that a client uploads*: users of a stream, and nothing else. `CommandStatementIngest` is what
ADBC sends for ``cursor.adbc_ingest("visits", table, mode="append")``: one column with ids, named as
the stream names its users, one for each predicate that held for some, and for a stream with
departures another one, ``left``. An upload is noted as a whole or not at all, and is on the disk
before the reply.

*Actions on a session*: the same settings as SET, under the same names. ADBC sends them for
``adbc.flight.sql.session.option.tacit.half_width``, and closes its session when a connection is
closed. Their bodies are the messages themselves, not wrapped as those of Flight SQL are. Each
option of a request is set, or refused, by itself; the result lists the names that were refused.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import grpc
import numpy as np
import pyarrow as pa
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message
from numpy.typing import NDArray

from accountant.ledger.streams import StreamOpened
from cube.refusals import InvalidRequest, InvalidTarget, UnknownName
from planner.sql.settings import (
    CLIENT_SETTINGS,
    NAMESPACE,
    SETTING_NAMES,
    ResetSetting,
    SetSetting,
    SettingValue,
    setting_named,
    setting_value,
)
from planner.sql.stream_statements import LEFT
from proxy.api.requests import CATALOG, DB_SCHEMA, Caller
from proxy.protocol import flight_pb2
from proxy.protocol import flight_sql_pb2 as sql
from proxy.streams.service import StreamService
from proxy.wire.arrow_ipc import sent_table
from proxy.wire.errors import NotOffered
from proxy.wire.flight.catalog import METADATA_COMMANDS
from proxy.wire.sessions.sessions import Sessions, setting_text
from streams.arrivals import Arrivals

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


SESSION_ACTIONS: Final[Mapping[str, str]] = {
    "SetSessionOptions": "Set tacit.half_width, tacit.relative, tacit.epsilon and the like. Free.",
    "GetSessionOptions": "The settings of this session.",
    "CloseSession": "Forget the settings of this session.",
}


def session_action(
    action: flight_pb2.Action, sessions: Sessions, context: grpc.ServicerContext
) -> Message:
    """The result of an action that `SESSION_ACTIONS` names.

    Raises
    ------
    InvalidRequest
        If its body is not the expected message.
    """
    try:
        return _ACTIONS[action.type](action.body, sessions, context)
    except DecodeError:
        raise InvalidRequest(f"The action {action.type} came with another message.") from None


def _set(body: bytes, sessions: Sessions, context: grpc.ServicerContext) -> Message:
    result = flight_pb2.SetSessionOptionsResult()
    options = flight_pb2.SetSessionOptionsRequest.FromString(body).session_options
    for name in sorted(options, key=_order):
        try:
            _set_one(name, options[name], sessions, context)
        except UnknownName:
            result.errors[name].value = flight_pb2.SetSessionOptionsResult.INVALID_NAME
        except InvalidTarget:
            result.errors[name].value = flight_pb2.SetSessionOptionsResult.INVALID_VALUE
    return result


def _order(name: str) -> tuple[int, str]:
    """A fraction is set before the size that goes with it, in whatever order they came."""
    setting = name.lower().removeprefix(NAMESPACE)
    place = SETTING_NAMES.index(setting) if setting in SETTING_NAMES else len(SETTING_NAMES)
    return place, name


def _set_one(
    name: str,
    option: flight_pb2.SessionOptionValue,
    sessions: Sessions,
    context: grpc.ServicerContext,
) -> None:
    if name.lower() in CLIENT_SETTINGS:
        return
    setting = setting_named(name.lower())
    value = _value(setting, name, option)
    command = ResetSetting(setting) if value is None else SetSetting(setting, value)
    sessions.change([command], context)


def _value(setting: str, name: str, option: flight_pb2.SessionOptionValue) -> SettingValue | None:
    """The value in an option; None, which removes the setting, if the option is empty."""
    match option.WhichOneof("option_value"):
        case None:
            return None
        case "bool_value":
            return setting_value(setting, name, str(option.bool_value))
        case "string_value":
            return setting_value(setting, name, option.string_value)
        case "int64_value":
            return setting_value(setting, name, str(option.int64_value))
        case "double_value":  # its shortest decimal text is what the client wrote
            return setting_value(setting, name, repr(option.double_value))
        case _:
            raise InvalidTarget(f"{name} must be a number.")


def _get(body: bytes, sessions: Sessions, context: grpc.ServicerContext) -> Message:
    flight_pb2.GetSessionOptionsRequest.FromString(body)
    settings = sessions.settings(context)
    result = flight_pb2.GetSessionOptionsResult()
    for name in SETTING_NAMES:
        text = setting_text(settings, name)
        if text is not None:
            result.session_options[NAMESPACE + name].string_value = text
    return result


def _close(body: bytes, sessions: Sessions, context: grpc.ServicerContext) -> Message:
    flight_pb2.CloseSessionRequest.FromString(body)
    sessions.close(context)
    return flight_pb2.CloseSessionResult(status=flight_pb2.CloseSessionResult.CLOSED)


_ACTIONS: Final[Mapping[str, Callable[[bytes, Sessions, grpc.ServicerContext], Message]]] = {
    "SetSessionOptions": _set,
    "GetSessionOptions": _get,
    "CloseSession": _close,
}


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
