"""A stream as far as the ledger and the folder of states tell: its epochs, and which can be asked.

Here is nothing that needs a state: `served_stream.py` holds these, `elsewhere.py` asks who does.
"""

from pathlib import Path

from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Window
from accountant.ledger.streams import StreamHistory
from streams.declared import epoch_of
from streams.epoch import Epoch


class NotedStream:
    """A stream. Thread-safe.

    Parameters
    ----------
    ledger : Ledger
        Which has it opened.
    name : str
    folder : Path, optional
        Of the files of states; None where there are none.
    """

    def __init__(self, ledger: Ledger, name: str, folder: Path | None) -> None:
        self.name = name
        self._ledger = ledger
        self._folder = folder

    @property
    def history(self) -> StreamHistory:
        """What the ledger has of it."""
        return self._ledger.streams.streams[self.name]

    @property
    def is_due(self) -> bool:
        """Whether the present epoch has come, can be paid for, and was not."""
        return self._present_epoch() not in self.history.released and self.history.can_begin

    @property
    def is_by_clock(self) -> bool:
        """Whether its epochs end by the clock, and not when they are asked for."""
        return self.history.opened.epochs is not Window.NEVER

    def ended(self) -> tuple[str, ...]:
        """The epochs that are over, or end when they are asked for, in order."""
        if self.is_due:
            self._read_again()  # whoever begins epochs may have done it
        begun = self.history.released
        now = self._present_epoch()  # after that: none of those begun is later
        return tuple(one for one in begun if one != now or not self.is_by_clock)

    def answerable(self) -> tuple[str, ...]:
        """Those of them that were released, or have a state from which they can be."""
        names = self.ended()
        if not all(self._is_answerable(one) for one in names):
            # A release is in the ledger before the state is erased: it may have come just now.
            self._read_again()
        return tuple(one for one in names if self._is_answerable(one))

    def _is_answerable(self, name: str) -> bool:
        return bool(self.history.released[name]) or self._has_state(name)

    def _present_epoch(self) -> str:
        """The name of the epoch of this moment, begun or not."""
        return self.history.opened.epoch_at(self._ledger.now())

    def _read_again(self) -> None:
        """See what others have written; nothing to do for whoever writes all releases."""

    def _epoch(self, name: str) -> Epoch:
        history = self.history
        return epoch_of(self.name, history.opened, name, history.released[name])

    def _has_state(self, name: str) -> bool:
        """Whether there is a state of an epoch; without a folder, that is for others to say."""
        return self._folder is None or (self._folder / self._file_name(name)).exists()

    def _file_name(self, name: str) -> str:
        return f"{self.name}.{name}.bits"
