"""A watchdog that interrupts one database query after its time limit.

It repeats the interrupt until the query has ended: DuckDB loses an interrupt that arrives while it
parses the query, and checks for one only between two vectors of rows.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Final

SECONDS_BETWEEN: Final = 0.05  # between two interrupts


@contextmanager
def interrupted_after(seconds: float, interrupt: Callable[[], None]) -> Iterator[None]:
    """Interrupt the query inside, if it takes longer."""
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
            with suppress(Exception):  # the query's connection was just closed
                self.function()
            seconds = SECONDS_BETWEEN
