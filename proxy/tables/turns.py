"""Turns at planning a purchase, which end when a plan takes long.

Plans that are made one after the other each take the one before into account. So a request plans in
its turn, and others queue; but a turn lasts for a moment only. A request that plans for longer goes
on planning out of its turn, and has to check what was bought meanwhile before it buys.

Nothing here knows what a purchase is.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cube.pace import checkpoint, waiting

TURN_SECONDS: Final = 0.25  # nearly every plan is made in a tenth of that


class Turn:
    """One turn, while it lasts."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds


class Turns:
    """Turns at one table. Thread-safe.

    Parameters
    ----------
    seconds : float
        After which somebody else may take the turn.
    """

    def __init__(self, seconds: float = TURN_SECONDS) -> None:
        self._seconds = seconds
        self._changed = threading.Condition()
        self._current: Turn | None = None

    @contextmanager
    def taken(self) -> Iterator[Turn]:
        """A turn, once no other lasts."""
        with (
            waiting(is_first=True),
            self._changed,
        ):  # or the turn would pass while a place is sought
            while self._current is not None:
                left = self._current.end - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
                checkpoint()
            turn = self._current = Turn(self._seconds)
        try:
            yield turn
        finally:
            with self._changed:
                if self._current is turn:
                    self._current = None
                    self._changed.notify()

    @contextmanager
    def kept(self, turn: Turn) -> Iterator[bool]:
        """Whether a turn still lasts; nobody else takes one inside the block: keep it short."""
        with self._changed:
            yield self._current is turn
