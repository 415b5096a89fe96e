"""What a server does by itself, over and over, beside answering: a thread that looks for it."""

import logging
import threading
from typing import Final, Self

from proxy.monitoring.logs import write_log

PAUSE_SECONDS: Final = 5.0  # after a failure, so that a log is not filled
UNEXPECTED: Final = "internal_error"  # the log's code: a text may quote a row, and is dropped


class Background:
    """A thread that calls `look` every so many seconds while there is work; a context manager.

    Parameters
    ----------
    name : str
        The thread's name.
    seconds : float
        The time between two looks.
    """

    def __init__(self, name: str, seconds: float) -> None:
        self._seconds = seconds
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def has_work(self) -> bool:
        """Whether there is anything to look for."""
        raise NotImplementedError

    def look(self) -> None:
        """Do what is due. What it raises is logged, and it is called again in a while."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        if self.has_work:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(self._seconds):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 - or all that it does would end with it
                name, kind = self._thread.name, type(error).__name__
                write_log(logging.ERROR, "background_failed", stage=name, error=kind)
                self._is_over.wait(PAUSE_SECONDS)
