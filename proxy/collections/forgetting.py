"""What a closing left behind is cleared away: the order in which answers came, after a crash.

A closing does it itself (`traces`). Where the process ends before, or the disk is full, or the file
is a backup from before the closing, it is found here, and nobody has to close anything again.
"""

import logging
import time
from typing import Final

from cube.refusals import TacitError
from proxy.collections.service import CollectionService
from proxy.monitoring.background import UNEXPECTED, Background
from proxy.monitoring.logs import write_log

LOOK_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 600.0  # after a failure: each try lays out the whole file


class Forgetting(Background):
    """A thread that forgets the order of answers to closed collections; a context manager.

    Of several processes with one file, one does it.

    Parameters
    ----------
    collections : CollectionService, optional
        None where there are none.
    """

    def __init__(self, collections: CollectionService | None) -> None:
        super().__init__("forgetting", LOOK_SECONDS)
        self._collections = collections
        self._seen: frozenset[int] = frozenset()
        self._waits_until = 0.0

    @property
    def has_work(self) -> bool:
        """A collection may be closed at any time."""
        return self._collections is not None

    def look(self) -> None:
        """Forget what was left at the last look already: a closing just now is at it itself."""
        if self._collections is None or time.monotonic() < self._waits_until:
            return
        try:
            left = self._collections.left_to_forget
            is_done = not (left & self._seen) or self._collections.forget_order()
            self._seen = left
        except Exception as error:  # noqa: BLE001 - it has a line of its own, and waits long
            code = error.code if isinstance(error, TacitError) else UNEXPECTED
            write_log(logging.WARNING, "order_not_forgotten", code=code)
            is_done = False
        if not is_done:
            self._waits_until = time.monotonic() + RETRY_SECONDS
