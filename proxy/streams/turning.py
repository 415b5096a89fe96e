"""Epochs turn by the clock: what is over is released, and what has come is begun, without a call.

If an arrival began an epoch, the ledger would say that somebody came that day. And a state that is
released early is erased early: there is less to look at.
"""

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from cube.refusals import TacitError
from proxy.monitoring.background import UNEXPECTED, Background
from proxy.monitoring.logs import write_log
from proxy.streams.served_stream import ServedStream
from proxy.streams.service import StreamService

LOOK_SECONDS: Final = 0.5
# After a failure. Arrivals wait for an epoch to be paid for; a disk stays full for a while.
RETRY_SECONDS: Final = {"pay": 1.0, "turn": 60.0, "tidy": 60.0}


class Turning(Background):
    """A thread that turns the epochs of streams; a context manager.

    Parameters
    ----------
    streams : StreamService
    """

    def __init__(self, streams: StreamService) -> None:
        super().__init__("turning", LOOK_SECONDS)
        self._streams = streams
        self._waits_until: dict[tuple[str, str], float] = {}

    @property
    def has_work(self) -> bool:
        """Always: a stream may be created at any time."""
        return True

    def look(self) -> None:
        """Turn every stream whose time has come.

        All are paid for before a state is made or released, which takes a while: arrivals wait for
        that entry, and so it says nothing of who came.
        """
        streams = self._streams.served
        for stream in streams:
            self._try("pay", stream.name, partial(_pay, stream))
        for stream in streams:
            self._try("turn", stream.name, stream.turn)
        self._try("tidy", "", self._streams.tidy)

    def _try(self, step: str, stream: str, take: Callable[[], None]) -> None:
        """Take a step, unless it failed a moment ago."""
        if time.monotonic() < self._waits_until.get((step, stream), 0.0):
            return
        try:
            take()
        except Exception as error:  # noqa: BLE001 - or the other streams would wait for it
            code = error.code if isinstance(error, TacitError) else UNEXPECTED
            write_log(logging.ERROR, "not_turned", table=stream, code=code)
            self._waits_until[step, stream] = time.monotonic() + RETRY_SECONDS[step]


def _pay(stream: ServedStream) -> None:
    if stream.is_due:
        stream.pay()
