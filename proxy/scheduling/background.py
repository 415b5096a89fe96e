"""What a server does by itself, over and over, beside answering: a thread that looks for it."""

import threading
from typing import Self


class Background:
    """A thread that calls `look` every so many seconds while there is work; a context manager.

    Parameters
    ----------
    name : str
        Of the thread.
    seconds : float
        Between two looks.
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
        """Do what is due; whatever fails must not end the thread."""
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
            self.look()
