"""The method of `tacit.v1` by which users of streams are noted. What that does is the service's."""

# ruff: noqa: N802 - the protocol fixes the names of its methods

from collections.abc import Iterator

import grpc
import numpy as np

from proxy.identity.call_context import caller_of
from proxy.protocol import tacit_pb2, tacit_pb2_grpc
from proxy.streams.service import Stream, StreamService
from streams.arrivals import Arrivals


class StreamMethods(tacit_pb2_grpc.TacitServicer):
    """The methods of `tacit.v1` for streams.

    Parameters
    ----------
    streams : StreamService
    """

    def __init__(self, streams: StreamService) -> None:
        self._streams = streams

    def Observe(
        self, request_iterator: Iterator[tacit_pb2.ObserveRequest], context: grpc.ServicerContext
    ) -> tacit_pb2.ObserveReply:
        """Note users, message by message; the reply says that the disk has all of them."""
        caller = caller_of(context)
        touched: dict[str, Stream] = {}
        for request in request_iterator:
            ids = np.fromiter(request.ids, dtype=np.int64, count=len(request.ids))
            where = dict.fromkeys(request.where, True)
            stream = self._streams.observed(caller, request.stream)
            stream.observe(Arrivals(ids, not request.left, where))
            touched[request.stream] = stream
        for stream in touched.values():
            stream.sync()
        return tacit_pb2.ObserveReply()
