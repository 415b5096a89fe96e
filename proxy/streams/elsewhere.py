"""A stream whose states this process does not hold: whoever does is asked for what needs one.

Of several workers the first holds all states, since a state is one file of one process. What
follows from the ledger is answered here; arrivals and releases go to that one, which says nothing
but that it is done, or why not: what was released is read from the ledger. Where nobody holds
states, all of that is refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from accountant.ledger.ledger import Ledger
from cube.refusals import StoreUnavailable
from proxy.streams.noted_stream import NotedStream
from proxy.streams.served_stream import ServedStream
from streams.arrivals import Arrivals
from streams.epoch import Epoch


class What(StrEnum):
    """What needs a state."""

    BEGIN = "begin"
    OBSERVE = "observe"
    SYNC = "sync"
    RELEASE = "release"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the holder of a stream's states is asked for.

    Parameters
    ----------
    stream : str
    what : What
    of : str
        The epoch to release, or who drops the stream.
    arrivals : Arrivals, optional
        Who arrived, or left.
    """

    stream: str
    what: What
    of: str = ""
    arrivals: Arrivals | None = None

    def done_by(self, stream: ServedStream) -> None:
        """Have it done by the stream itself.

        Raises
        ------
        Refused
        """
        match self.what:
            case What.BEGIN:
                stream.begin()
            case What.OBSERVE if self.arrivals is not None:
                stream.observe(self.arrivals)
            case What.SYNC:
                stream.sync()
            case What.RELEASE:
                stream.release(self.of)
            case What.DROP:
                stream.drop(self.of)


class StreamElsewhere(NotedStream):
    """Such a stream. Thread-safe.

    Parameters
    ----------
    ledger : Ledger
        Which has it opened.
    name : str
    folder : Path, optional
        Where the holder keeps states; None if nobody does.
    ask : callable
        Has something done by the holder, after which the ledger here has what follows from it;
        raises its refusals.
    """

    def __init__(
        self, ledger: Ledger, name: str, folder: Path | None, ask: Callable[[Asked], None]
    ) -> None:
        super().__init__(ledger, name, folder)
        self._ask = ask

    def observe(self, arrivals: Arrivals) -> None:
        """Note users who arrived, or who left; see `ServedStream.observe`."""
        self._ask(Asked(self.name, What.OBSERVE, arrivals=arrivals))

    def sync(self) -> None:
        """Wait until the disk has what arrived so far."""
        self._ask(Asked(self.name, What.SYNC))

    def begin(self) -> str:
        """Begin the present epoch unless it was begun; its name."""
        try:
            self._ask(Asked(self.name, What.BEGIN))
        except StoreUnavailable:
            if self._present_epoch() not in self.history.released:  # or only the answer got lost
                raise
        return tuple(self.history.released)[-1]

    def release(self, name: str) -> Epoch:
        """An epoch that is over with its release; once released, the same for ever."""
        if self._epoch(name).is_open:
            self._ask(Asked(self.name, What.RELEASE, name))
        epoch = self._epoch(name)
        if epoch.is_open:
            raise StoreUnavailable(
                f"The release of the epoch {name} of the stream {self.name} is not known yet.",
                hint="Ask again in a moment: it is the same for ever.",
            )
        return epoch

    def drop(self, who: str) -> None:
        """End the stream, and have its states erased."""
        try:
            self._ask(Asked(self.name, What.DROP, who))
        except StoreUnavailable:
            if not self.history.is_dropped:  # it is, if only the answer did not come
                raise

    def close(self) -> None:
        """Nothing is held here."""

    def _read_again(self) -> None:
        self._ledger.refresh()
