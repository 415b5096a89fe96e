"""One large statement of an analyst at a time.

A statement with many groups takes hundreds of megabytes while it is priced and estimated, and keeps
them while it waits. A few of them at once would exhaust the memory of the process.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from cube.pace import checkpoint, seconds_left, waiting
from planner.workload import Part

N_ROWS_LARGE: Final = 5_000  # summed over all linear queries of a statement on one table
GLANCE_SECONDS: Final = 1.0


class LargeStatements:
    """The large statements under way on one table. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._at_work: set[str] = set()

    @contextmanager
    def turn(self, analyst: str, parts: Sequence[Part]) -> Iterator[None]:
        """Hold an analyst's turn to have parts answered; waits for it if the parts are large.

        Raises
        ------
        TooSlow
            If the statement's deadline passes first.
        """
        if _n_rows(parts) <= N_ROWS_LARGE:
            yield
            return
        with waiting():
            self._begin(analyst)
        try:
            yield
        finally:
            with self._changed:
                self._at_work.remove(analyst)
                self._changed.notify_all()

    def _begin(self, analyst: str) -> None:
        with self._changed:
            while analyst in self._at_work:
                self._changed.wait(seconds_left(GLANCE_SECONDS))
                checkpoint()
            self._at_work.add(analyst)


def _n_rows(parts: Sequence[Part]) -> int:
    return sum(block.n_rows for part in parts for one in part.aggregates for block in one.blocks)
