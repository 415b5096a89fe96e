"""An answer as Flight carries it: messages, columns, and what it cost, made once."""

import json
from dataclasses import dataclass
from typing import Self

from proxy.api.receipts import left_fields
from proxy.api.requests import QueryResult, Receipt
from proxy.protocol import flight_pb2
from proxy.wire.arrow_ipc import flight_messages, schema_bytes


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
