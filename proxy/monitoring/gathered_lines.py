"""A text stream whose lines are written together, a twentieth of a second after the first of them.

Every call leaves a line in the log. Written one by one, each costs a system call during which the
thread that answers gives the interpreter away; a busy server writes a batch instead. What is
gathered is written when the process ends, too; a process that is killed loses the lines of its last
moments, and nothing else: what was charged and measured is in the ledger.
"""

import atexit
import os
import threading
import time
from contextlib import suppress
from io import TextIOBase
from typing import Final, TextIO

GATHER_SECONDS: Final = 0.05


class GatheredLines(TextIOBase):
    """A stream that gathers what is written to another. Thread-safe.

    A process that was forked writes its own lines, by a thread of its own.

    Parameters
    ----------
    out : TextIO
        Where the lines go.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._begin()
        os.register_at_fork(after_in_child=self._begin)
        atexit.register(self.write_out)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._gathered: list[str] = []
        self._came = threading.Event()
        self._thread: threading.Thread | None = None

    def write(self, text: str) -> int:
        """Take text in; it is written soon."""
        with self._lock:
            self._gathered.append(text)
            is_first = len(self._gathered) == 1
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._write_all, name="tacit-log", daemon=True
                )
                self._thread.start()
        if is_first:
            self._came.set()
        return len(text)

    def flush(self) -> None:
        """Nothing: a line is asked to be flushed when it is gathered."""

    def isatty(self) -> bool:
        """Whether people read along."""
        return self._out.isatty()

    def write_out(self) -> None:
        """Write what was gathered; a stream that cannot be written withholds no answer."""
        with self._lock:
            text, self._gathered = "".join(self._gathered), []
        if text:
            with suppress(Exception):
                self._out.write(text)
                self._out.flush()

    def _write_all(self) -> None:
        while True:
            self._came.wait()
            self._came.clear()
            time.sleep(GATHER_SECONDS)  # lines that come meanwhile are written with the first
            self.write_out()
