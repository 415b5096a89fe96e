"""The method of `tacit.v1` by which users of streams are noted. What that does is the service's."""

# ruff: noqa: N802 - the protocol fixes the names of its methods

from collections.abc import Iterator
from typing import Final

import grpc
import numpy as np

from cube.pace import checkpoint
from proxy.api.requests import Caller
from proxy.identity.call_context import caller_of
from proxy.protocol import tacit_pb2, tacit_pb2_grpc
from proxy.scheduling.slow_clients import CallSlots
from proxy.streams.service import Stream, StreamService
from proxy.wire.errors import leave_no_trace
from streams.arrivals import Arrivals

# A collector may send as slowly as people come, and holds a thread meanwhile; others need some too.
N_CALLS_OF_ONE_MAX: Final = 4
N_CALLS_MAX: Final = 16
EVERYBODY: Final = ""


class StreamMethods(tacit_pb2_grpc.TacitServicer):
    """The methods of `tacit.v1` for streams.

    Parameters
    ----------
    streams : StreamService
    """

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
