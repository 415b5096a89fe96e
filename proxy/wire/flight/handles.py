"""What the server keeps between two calls of one client: prepared statements and results.

A key is 128 random bits, and gives an item only to the caller who stored it. Everything kept can be
obtained again without charge (a result from history, a statement by preparing it again), so a full
store may forget its least recently used items. Nothing here is durable.

If a server has several workers, a key begins with the place of the one that holds its item, and the
others ask that one. Whether the caller may have it is decided where it is held.

A prepared statement is kept as its text; what is bound to its parameters holds until something else
is bound. An answer is kept as Flight carries it: messages, columns, and what it cost, made once.
"""

import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, Self, TypeVar

import pyarrow as pa

from cube.refusals import InvalidRequest, UnknownTicket
from planner.sql.parameters import LIST, Parameter, Parameters, list_of, parameter_of
from proxy.api.columns import arrow_type
from proxy.api.receipts import left_fields
from proxy.api.requests import QueryResult, Receipt
from proxy.protocol import flight_pb2
from proxy.wire.arrow_ipc import flight_messages, schema_bytes, sent_table
from proxy.workers.crew import ALONE, Crew

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
    text : str
    parameters : mapping
        The SQL types of its parameters by their names: numbers from 1, or words.
    bound : tuple of Parameter
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
                f"{table.num_rows} rows of values came for the parameters of one statement.",
                hint="Execute it once for each row of values.",
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
    schema : bytes
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
