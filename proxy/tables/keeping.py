"""Keeping the state of a long ledger for the next start, while a server runs.

The file is beside the ledger's key (`accountant/ledger/checkpoint.py`). Nothing depends on it but
how long a start takes: what fails is logged, once. Nothing here sees rows.
"""

import logging
from typing import Final

from accountant.ledger.checkpoint import NotAState
from accountant.ledger.ledger import Ledger
from cube.refusals import TacitError
from proxy.monitoring.background import Background
from proxy.monitoring.logs import write_log

LOOK_SECONDS: Final = 30.0
N_ENTRIES_MORE: Final = 2_000  # since it was last written: half a second of a start
SHARE_MORE: Final = 8  # of a longer ledger, one part in so many: writing takes as long as it is


class Keeping(Background):
    """A thread that writes the checkpoint of a ledger; a context manager.

    Parameters
    ----------
    ledger : Ledger
    """

    def __init__(self, ledger: Ledger) -> None:
        super().__init__("keeping", LOOK_SECONDS)
        self._ledger = ledger
        self._has_failed = False

    @property
    def has_work(self) -> bool:
        """Every ledger may become long."""
        return True

    def look(self) -> None:
        """Write the checkpoint, if the ledger has become longer by much."""
        try:
            n_entries, _ = self._ledger.position
            self._ledger.keep_state(max(N_ENTRIES_MORE, n_entries // SHARE_MORE))
        except (OSError, TacitError, NotAState) as error:
            if not self._has_failed:
                write_log(logging.WARNING, "checkpoint_not_written", error=type(error).__name__)
            self._has_failed = True
