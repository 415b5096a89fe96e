"""What the workers of one server ask each other for: a thing that one of them holds in memory.

A client that reconnects may reach another worker than the one that holds its result, its prepared
statement, or the statement that it wants cancelled. Each worker listens on a socket of its own in a
folder that only the server's user can open, and answers questions of the others there. Such a
question is rare; nothing on the way of an ordinary call asks one, and a worker that does not answer
in time counts as one that does not have the thing.

Nothing about budgets passes here. What the workers have to agree on is in the ledger.
"""

import pickle
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

from cube.pace import waiting

ANSWER_SECONDS_MAX: Final = 5.0
BACKLOG: Final = 64

Reply: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Seat:
    """A worker's place in its crew.

    Parameters
    ----------
    place : int
        From 0.
    n_places : int
        1 for a server of one process, which has no others to ask.
    folder : Path, optional
        Where the workers' sockets are; None for a server of one process.
    """

    place: int = 0
    n_places: int = 1
    folder: Path | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.place < self.n_places:
            raise ValueError(f"there is no place {self.place} among {self.n_places}")
        if (self.folder is None) != (self.n_places == 1):
            raise ValueError("workers have a folder for their sockets, and one process has none")

    @property
    def is_alone(self) -> bool:
        """Whether there are no others."""
        return self.n_places == 1

    def socket_of(self, place: int) -> str:
        """Where a worker listens."""
        return str(Path(self.folder or "") / str(place))


class Crew:
    """The workers of one server, as one of them sees it; a context manager. Thread-safe.

    Parameters
    ----------
    seat : Seat
        The worker's own.
    """

    def __init__(self, seat: Seat = Seat()) -> None:
        self.seat = seat
        self._replies: dict[str, Reply] = {}
        self._listener: socket.socket | None = None

    def __enter__(self) -> Self:
        if not self.seat.is_alone:
            path = self.seat.socket_of(self.seat.place)
            Path(path).unlink(missing_ok=True)  # of a worker that died in this place
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._listener.bind(path)
            self._listener.listen(BACKLOG)
            listening = threading.Thread(
                target=self._listen, args=(self._listener,), name="tacit-crew", daemon=True
            )
            listening.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
            self._listener.close()

    def answer(self, topic: str, reply: Reply) -> None:
        """Have the others' questions about a topic answered by a function."""
        self._replies[topic] = reply

    def ask(self, place: int, topic: str, question: object) -> Any:
        """What another worker answers; None if it does not, for whatever reason.

        Parameters
        ----------
        question : object
            Of types that can be pickled.
        """
        if place == self.seat.place or not 0 <= place < self.seat.n_places:
            return None
        try:
            with waiting(), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
                asking.settimeout(ANSWER_SECONDS_MAX)
                asking.connect(self.seat.socket_of(place))
                with asking.makefile("rwb") as stream:
                    pickle.dump((topic, question), stream)
                    stream.flush()
                    return pickle.load(stream)  # noqa: S301 - of a process of this server
        except (OSError, EOFError, pickle.UnpicklingError):
            return None

    def tell_others(self, topic: str) -> None:
        """Ask every other worker about a topic, whatever it answers: that there is news."""
        for place in range(self.seat.n_places):
            self.ask(place, topic, None)

    def _listen(self, listener: socket.socket) -> None:
        while True:
            try:
                asked, _ = listener.accept()
            except OSError:  # closed: this is the end
                return
            with suppress(RuntimeError):  # no thread for it: the asker hears nothing
                threading.Thread(target=self._reply, args=(asked,), daemon=True).start()

    def _reply(self, asked: socket.socket) -> None:
        with suppress(OSError, EOFError, pickle.UnpicklingError), asked:
            asked.settimeout(ANSWER_SECONDS_MAX)
            with asked.makefile("rwb") as stream:
                topic, question = pickle.load(stream)  # noqa: S301 - of a process of this server
                reply = self._replies.get(topic)
                pickle.dump(None if reply is None else reply(question), stream)


ALONE: Final = Crew()
