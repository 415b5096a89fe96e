"""Commands and handles of Flight SQL: what a client asks for, and comes back with.

What the server keeps between two calls of one client: prepared statements and results.

A key is 128 random bits, and gives an item only to the caller who stored it. Everything kept can be
obtained again without charge (a result from history, a statement by preparing it again), so a full
store may forget its least recently used items. Nothing here is durable.

If a server has several workers, a key begins with the place of the one that holds its item, and the
others ask that one. Whether the caller may have it is decided where it is held.

A prepared statement is kept as its text; what is bound to its parameters holds until something else
is bound. An answer is kept as Flight carries it: messages, columns, and what it cost, made once.

The commands of Flight SQL that are known here, and those that are carried out beside statements.

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

import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, Self, TypeVar

import grpc
import pyarrow as pa
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message

from cube.refusals import InvalidRequest, InvalidTarget, UnknownName, UnknownTicket
from planner.sql import (
    CLIENT_SETTINGS,
    LIST,
    NAMESPACE,
    SETTING_NAMES,
    Parameter,
    Parameters,
    ResetSetting,
    SetSetting,
    SettingValue,
    list_of,
    parameter_of,
    setting_named,
    setting_value,
)
from proxy.api import CATALOG, DB_SCHEMA, Caller, QueryResult, Receipt, arrow_type, left_fields
from proxy.feature import Feature
from proxy.protocol import flight_pb2
from proxy.protocol import flight_sql_pb2 as sql
from proxy.wire.arrow_ipc import flight_messages, schema_bytes, sent_table
from proxy.wire.errors import NotOffered
from proxy.wire.flight.catalog import METADATA_COMMANDS
from proxy.wire.sessions import Sessions, setting_text
from proxy.workers import ALONE, Crew

KEY_BYTES = 16

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class _Held(Generic[Item]):
    """An item, its owner, and its size."""

    item: Item
    owner: Hashable
    n_bytes: int


class HandleStore(Generic[Item]):
    """Items under unguessable keys, bounded in number and in bytes.

    The newest item is always kept, whatever its size: a client that was just charged must be able
    to fetch its result.

    Parameters
    ----------
    item_name : str
        The name of an item in messages, such as "result".
    again : str
        A sentence that says how a client gets a forgotten item again.
    n_items_max, n_bytes_max : int
        Beyond either limit, the least recently used items are forgotten.
    crew : Crew
        The workers that have stores of the same name.
    """

    def __init__(
        self,
        item_name: str,
        *,
        again: str,
        n_items_max: int,
        n_bytes_max: int,
        crew: Crew = ALONE,
    ) -> None:
        self._item_name = item_name
        self._again = again
        self._crew = crew
        self._mark = b"" if crew.seat.is_alone else bytes([crew.seat.place])
        self._n_items_max = n_items_max
        self._n_bytes_max = n_bytes_max
        self._lock = threading.Lock()
        self._held: OrderedDict[bytes, _Held[Item]] = OrderedDict()
        self._n_bytes = 0
        crew.answer(item_name, self._answer)

    def put(self, item: Item, n_bytes: int, owner: Hashable) -> bytes:
        """Keep an item of a stated size for its owner; the key to it."""
        key = self._mark + secrets.token_bytes(KEY_BYTES)
        with self._lock:
            self._held[key] = _Held(item, owner, n_bytes)
            self._n_bytes += n_bytes
            while len(self._held) > 1 and self._is_over_full():
                _, forgotten = self._held.popitem(last=False)
                self._n_bytes -= forgotten.n_bytes
        return key

    def get(self, key: bytes, owner: Hashable) -> Item:
        """The item under a key, which becomes the most recently used.

        Raises
        ------
        UnknownTicket
            If it was forgotten, closed, never here, or belongs to another caller.
        """
        found = self._found(key, owner)
        if found is None:
            found = self._asked("get", key, owner)
        if found is None:
            raise UnknownTicket(
                f"This server no longer holds that {self._item_name}.", hint=self._again
            )
        return found

    def change(self, key: bytes, item: Item, owner: Hashable) -> None:
        """Keep a changed item under the key of the one that it was; nothing if that is gone."""
        with self._lock:
            if self._is_held(key, owner):
                self._held[key] = replace(self._held[key], item=item)
                return
        self._asked("change", key, owner, item)

    def discard(self, key: bytes, owner: Hashable) -> None:
        """Forget an item; no error if it is not here, so that closing twice is harmless."""
        with self._lock:
            if self._is_held(key, owner):
                self._n_bytes -= self._held.pop(key).n_bytes
                return
        self._asked("discard", key, owner)

    def __len__(self) -> int:
        with self._lock:
            return len(self._held)

    def _found(self, key: bytes, owner: Hashable) -> Item | None:
        """The item under a key of this worker, which becomes the most recently used."""
        with self._lock:
            if not self._is_held(key, owner):
                return None
            self._held.move_to_end(key)
            return self._held[key].item

    def _asked(self, what: str, key: bytes, owner: Hashable, item: Item | None = None) -> Any:
        """What the worker that holds a key says; None if this one does, or would."""
        if not self._mark or len(key) != len(self._mark) + KEY_BYTES or key[:1] == self._mark:
            return None
        return self._crew.ask(key[0], self._item_name, (what, key, owner, item))

    def _answer(self, question: tuple[str, bytes, Hashable, Any]) -> Item | None:
        """What another worker is told of an item here."""
        what, key, owner, item = question
        match what:
            case "get":
                return self._found(key, owner)
            case "change" if item is not None:
                self.change(key, item, owner)
            case "discard":
                self.discard(key, owner)
        return None

    def _is_held(self, key: bytes, owner: Hashable) -> bool:
        return key in self._held and self._held[key].owner == owner

    def _is_over_full(self) -> bool:
        return len(self._held) > self._n_items_max or self._n_bytes > self._n_bytes_max


VALUES_BYTES_MAX: Final = 2**20


@dataclass(slots=True)
class PreparedStatement:
    """The text of a statement, and the values that are bound to it.

    Parameters
    ----------
    parameters : mapping
        The SQL types of its parameters by their names: numbers from 1, or words.
    """

    text: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    bound: Parameters = ()

    @property
    def parameter_schema(self) -> pa.Schema:
        """One column for each parameter."""
        return pa.schema(
            [pa.field(name, _bound_as(kind)) for name, kind in self.parameters.items()]
        )

    def bind(self, messages: Iterable[flight_pb2.FlightData]) -> None:
        """Bind the one row of a table that a client sends.

        Raises
        ------
        InvalidRequest
            If it has several rows, or is no table.
        InvalidSql, TooLarge
            If a value is of no type that a parameter can have; if they are too many.
        """
        table = sent_table(
            messages, VALUES_BYTES_MAX, "the values of parameters", "Send one value for each."
        )
        if table.num_rows != 1:
            raise InvalidRequest(
                f"{table.num_rows} rows of parameter values came for one statement.",
                hint="Execute the statement once for each row of values.",
            )
        self.bound = tuple(
            _parameter(column[0].as_py(), name)
            for name, column in zip(table.column_names, table.columns, strict=True)
        )


def _bound_as(sql_type: str) -> pa.DataType:
    """The Arrow type of the values for a parameter; a decimal number of any digits is a double."""
    if sql_type.endswith(LIST):
        return pa.list_(_bound_as(sql_type.removesuffix(LIST)))
    return pa.float64() if sql_type == "DECIMAL" else arrow_type(sql_type)


def _parameter(value: object, name: str) -> Parameter:
    return list_of(value, name) if isinstance(value, list) else parameter_of(value, name)


@dataclass(frozen=True, slots=True)
class PackedResult:
    """An answer in bytes.

    Parameters
    ----------
    messages : tuple of FlightData
        The schema, then every batch.
    n_bytes : int
        The size of these.
    cost : bytes
        What it cost and what is left, as JSON; empty for an answer without a receipt.
    """

    messages: tuple[flight_pb2.FlightData, ...]
    n_bytes: int
    schema: bytes
    cost: bytes

    @classmethod
    def of(cls, result: QueryResult) -> Self:
        """An answer of the engine."""
        messages = flight_messages(result.data)
        n_bytes = sum(message.ByteSize() for message in messages)
        cost = b"" if result.receipt is None else _cost_json(result.receipt)
        return cls(messages, n_bytes, schema_bytes(result.data.schema), cost)


def _cost_json(receipt: Receipt) -> bytes:
    """Epsilon spent and left; doubles hold the exact cost, a whole number of 2**-40."""
    cost = {
        "table": receipt.table,
        "epsilon_spent": float(receipt.epsilon_spent),
        **left_fields(receipt),
    }
    return json.dumps(cost).encode()


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
_PARTS: Final = "Send them in parts: a user counts once, and each row is one visit."
_DEFINED: Final = sql.CommandStatementIngest.TableDefinitionOptions


def ingest(
    command: sql.CommandStatementIngest,
    messages: Iterable[flight_pb2.FlightData],
    features: Iterable[Feature],
    caller: Caller,
) -> int:
    """Note the rows of an upload, durably; how many there were.

    Raises
    ------
    Refused
        Then no row was noted.
    """
    _check(command)

    def sent() -> pa.Table:
        return sent_table(messages, UPLOAD_BYTES_MAX, "the rows of an upload", _PARTS)

    for feature in features:
        n_rows = feature.take_rows(caller, command.table, sent)
        if n_rows is not None:
            return n_rows
    raise NotOffered("This server takes no rows.")


def _check(command: sql.CommandStatementIngest) -> None:
    """Refuse whatever else could be asked of an upload."""
    refuse_transaction(command)
    mode = command.table_definition_options
    if (mode.if_not_exist, mode.if_exists) != (
        _DEFINED.TABLE_NOT_EXIST_OPTION_FAIL,
        _DEFINED.TABLE_EXISTS_OPTION_APPEND,
    ):
        raise NotOffered(
            "An upload cannot create or replace a table.",
            hint='Create the stream by CREATE STREAM, and upload with mode="append".',
        )
    if command.temporary or command.options:
        raise NotOffered("An upload to a stream has no options, and is not temporary.")
    for named, ours in ((command.catalog, CATALOG), (command.schema, DB_SCHEMA)):
        if named not in {"", ours}:
            raise UnknownName(
                f"There are no streams in {quoted(named)}.", hint=("Leave the schema out.")
            )
