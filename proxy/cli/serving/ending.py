"""When a process that serves is to end: at once while it begins, and in order once it serves.

A signal is noted by Python only between two steps of its own; a database's statement looks for it
by itself, but the wait for another server does not. So a thread hears of it at once, and ends the
process if it has not ended by itself soon after. Nothing is lost by that: what a beginning writes,
it writes in transactions, or under another name that the next one removes.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

END_SECONDS_MAX: Final = 3.0  # for a beginning to end by itself


class EndedEarly(BaseException):
    """The process is to end before it serves."""


class Ending:
    """Whether the process is to end, as SIGTERM or SIGINT says, or somebody in it.

    Parameters
    ----------
    signals : tuple of signal.Signals
        Those that end it. To be made in the main thread.
    """

    def __init__(
        self, signals: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM)
    ) -> None:
        self._asked = threading.Event()
        self._begins = False
        for number in signals:
            signal.signal(number, self._note)

    @property
    def is_asked(self) -> bool:
        """Whether the process is to end."""
        return self._asked.is_set()

    def ask(self) -> None:
        """Let the process end; for any thread, which a signal to the main one speaks for."""
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the process is to end; False if it is not after some seconds."""
        return self._asked.wait(seconds)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """End at once, with EndedEarly, when the process is to end in this block.

        Whatever else the block raises then comes of its end, and is EndedEarly, too.
        """
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=self._hear, args=(reading,), name="tacit-end", daemon=True).start()
        self._begins = True
        try:
            self._check()
            yield
        except BaseException:
            if self.is_asked:
                raise EndedEarly from None
            raise
        finally:
            self._begins = False
            signal.set_wakeup_fd(before)
            os.close(writing)  # which ends the thread

    def _check(self) -> None:
        if self.is_asked:
            raise EndedEarly

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        is_first = not self.is_asked
        self._asked.set()
        if self._begins and is_first:
            raise EndedEarly

    def _hear(self, reading: int) -> None:
        heard = os.read(reading, 1)
        end = time.monotonic() + END_SECONDS_MAX
        while heard and self._begins and time.monotonic() < end:
            time.sleep(0.05)
        os.close(reading)
        if heard and self._begins:
            sys.stderr.flush()
            os._exit(0)
