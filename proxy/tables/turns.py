"""Turns at planning a purchase, which end when a plan takes long.

Plans that are made one after the other each know of the one before. So whoever plans has a turn,
and others queue; but a turn is lent for a moment only. Who plans for longer goes on planning, no
longer in his turn, and has to see what was bought meanwhile before he buys.

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
        """One's turn, once nobody has one that is not over."""
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
        """Whether a turn is still one's own; nobody takes it within, so let it be short."""
        with self._changed:
            yield self._current is turn
