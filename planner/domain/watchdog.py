"""A watchdog of one database query: it is interrupted once its time is over.

Again and again, until it has ended: DuckDB forgets an interrupt that comes while it still reads the
query's text, and looks for one between two vectors of rows only.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Final

SECONDS_BETWEEN: Final = 0.05  # two interrupts


@contextmanager
def interrupted_after(seconds: float, interrupt: Callable[[], None]) -> Iterator[None]:
    """Interrupt what runs within, if it takes longer."""
    watchdog = _Watchdog(seconds, interrupt)
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()


class _Watchdog(Timer):
    def run(self) -> None:
        """Wait, then interrupt until it is cancelled."""
        seconds = self.interval
        while not self.finished.wait(seconds):
            with suppress(Exception):  # the query's connection was closed in this moment
                self.function()
            seconds = SECONDS_BETWEEN
