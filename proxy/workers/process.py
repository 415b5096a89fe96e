"""One worker's process, as the process that started it sees it.

It is started afresh, not forked: threads, database handles and gRPC's state do not survive a fork.
"""

import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Final, TypeAlias

from proxy.workers.messages import End, Ended, Message, Orders

KILLED: Final = -signal.SIGKILL

Work: TypeAlias = Callable[[Orders, Connection], None]
Hear: TypeAlias = Callable[["WorkerProcess", Message], None]


class WorkerProcess:
    """A process that does a worker's work, from its start.

    Parameters
    ----------
    work : callable
        A function of a module, for it is named to the new process. It is given the orders and the
        pipe: it sends `Message` there, and ends when it hears `End`, or when the pipe is closed.
    orders : Orders
    hear : callable
        Is given every message of the worker, the last of which is `Ended`, in a thread of this
        process.
    """

    def __init__(self, work: Work, orders: Orders, hear: Hear) -> None:
        context = get_context("spawn")
        self.place = orders.seat.place
        self._hear = hear
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(orders, theirs), name="tacit-worker")
        self._process.start()
        theirs.close()  # only the worker holds it now, so that its end is the pipe's
        threading.Thread(target=self._listen, name="tacit-worker", daemon=True).start()

    def end(self) -> None:
        """Tell the worker to end; it may be gone already."""
        with suppress(OSError):
            self._pipe.send(End())

    def kill(self) -> None:
        """End the worker without its help. What it was charged for waits in the ledger."""
        self._process.kill()

    def _listen(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                self._hear(self, self._pipe.recv())
        self._process.join()
        code = self._process.exitcode
        self._hear(self, Ended(KILLED if code is None else code))
