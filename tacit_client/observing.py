"""Telling a stream who came: one call of `tacit.v1`, over a gRPC channel of its own."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from tacit_client import protobuf
from tacit_client.calling import channel_to, credentials_of
from tacit_client.connecting import Address, refused
from tacit_client.errors import missing_library, refusal_of_call

METHOD: Final = "/tacit.v1.Tacit/Observe"
N_IDS_IN_MESSAGE: Final = 2**16


def observe_users(
    address: Address, stream: str, ids: Iterable[int], where: Sequence[str], *, left: bool
) -> None:
    """Note users; see `Connection.observe`."""
    try:
        import grpc  # noqa: PLC0415 - nothing else here needs it
    except ImportError as missing:
        raise missing_library("observe()", "grpcio") from missing
    # All of them before the call: whatever is wrong with ids is told first.
    messages = list(_messages(stream, ids, where, left=left))
    with channel_to(grpc, address) as channel:
        try:
            channel.stream_unary(METHOD)(iter(messages), metadata=credentials_of(address))
        except grpc.RpcError as error:
            raise refusal_of_call(error) from None


def _messages(
    stream: str, ids: Iterable[int], where: Sequence[str], *, left: bool
) -> Iterator[bytes]:
    held = [(4, predicate) for predicate in where]
    every = iter(ids)
    while some := tuple(islice(every, N_IDS_IN_MESSAGE)):
        try:
            packed = struct.pack(f"<{len(some)}q", *some)
        except (struct.error, TypeError):
            raise refused("An id is no whole number of 64 bits.") from None
        yield protobuf.written([(1, stream), (2, packed), (3, int(left)), *held])
