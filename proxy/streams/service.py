"""The streams of one server, their status, and the clock that ends epochs.

What may be known of a stream: how it counts, and what its epochs lost. No number of users.

All of it is in the ledger, so it can be said about a stream that was dropped, and by a server that
cannot keep states.

Keeps the streams of one server, and decides who may create, observe and drop one.

To a caller, streams that they may not know of do not exist. Streams are in the ledger; their states
are in a folder beside it, which only the server's user may read. Of several workers the first
holds them, and the others ask that one.

Epochs turn by the clock: what is over is released, and what has come is begun, without a call.

If an arrival began an epoch, the ledger would say that somebody came that day. And a state that is
released early is erased early: there is less to look at.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeAlias

from accountant.ledger import Entry, Ledger, Role, StreamBook, StreamHistory, StreamOpened
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import (
    CannotStart,
    InvalidRequest,
    LedgerUnavailable,
    NameTaken,
    NotAllowed,
    StoreUnavailable,
    TacitError,
    TooLarge,
    UnknownName,
)
from planner.sql import CreateStream, listed, shortened, suggestion
from proxy.api import Caller
from proxy.identity import WHO_OBSERVES
from proxy.monitoring import UNEXPECTED, Background, write_log
from proxy.streams.answers import Asked, StreamElsewhere, StreamTable, What
from proxy.streams.served_stream import ServedStream, opened_by
from proxy.workers import ALONE, Crew
from streams import ServerRelease, VisitEpoch, erase_file, release_file


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """A stream, as a caller who may open it sees it.

    Parameters
    ----------
    n_begun, n_released : int
        Its epochs.
    epsilon_spent : Fraction
        What all of them lose together.
    """

    name: str
    opened: StreamOpened
    n_begun: int
    n_released: int
    epsilon_spent: Fraction
    is_dropped: bool

    @classmethod
    def of(cls, name: str, history: StreamHistory) -> "StreamStatus":
        """The status that a history leaves a stream in."""
        return cls(
            name=name,
            opened=history.opened,
            n_begun=len(history.released),
            n_released=sum(map(bool, history.released.values())),
            epsilon_spent=Fraction(history.units_spent, UNITS_PER_EPSILON),
            is_dropped=history.is_dropped,
        )


N_STREAMS_MAX: Final = 100
N_BITS_MAX: Final = 2**30  # of all streams together: 128 MB, and twice that while epochs turn
BITS_OF_COUNTER: Final = 8
HOLDER: Final = 0  # the place of the worker that holds states
STATES: Final = "states of streams"
NEWS: Final = "news of streams"
Stream: TypeAlias = ServedStream | StreamElsewhere
OWNER_ONLY: Final = 0o700
N_EPOCHS_TOLD: Final = 5


_RELEASES: Final = ("epoch_released", "visits_released")


def _is_last_of(entry: Entry, epoch: str) -> bool:
    """Whether an entry has the release of an epoch at its end, and not of a part of it."""
    body = json.loads(entry.body)
    return bool(body["epoch"] == epoch and not body.get("part"))


def agreed(opened: StreamOpened) -> dict[str, Any]:
    """What streams of several servers have to have in common, for their releases to be added."""
    return {
        "universe": opened.universe,
        "n_places": opened.n_places,
        "key": opened.key,
        "p1": opened.p1,
        "alpha": opened.alpha,
        "predicates": opened.predicates,
        "levels": opened.levels,
        "n_releases": opened.n_releases,
        "has_departures": opened.has_departures,
        "epochs": opened.epochs.value,
    }


@dataclass(frozen=True, slots=True)
class Told:
    """What the holder of states says: that it is done, or why not."""

    refused: TacitError | None = None


class StreamService(Mapping[str, StreamTable]):
    """The streams of a server, by name, as tables that answer by themselves. Thread-safe.

    Parameters
    ----------
    folder : Path, optional
        Where states are kept; None where there can be none.
    declared : sequence of str
        The names of private and public tables.
    crew : Crew
        The workers of the server.

    Raises
    ------
    CannotStart
        If one of them is that of a stream in the ledger.
    """

    def __init__(
        self,
        ledger: Ledger | None = None,
        folder: Path | None = None,
        declared: Sequence[str] = (),
        crew: Crew = ALONE,
    ) -> None:
        self._ledger = ledger
        self._folder = folder
        self._crew = crew
        self._holds_states = folder is not None and crew.seat.place == HOLDER
        self._declared = frozenset(name.casefold() for name in declared)
        self._lock = Lock()
        self._served: dict[str, Stream] = {}
        known = () if ledger is None else ledger.streams.streams
        taken = [name for name in known if name.casefold() in self._declared]
        if taken:
            raise CannotStart(
                f"{taken[0]} is the name of a stream in this ledger, now or before.",
                hint=(
                    "Give the table another name: the ledger keeps a stream's loss under its name."
                ),
            )
        if self._holds_states:
            crew.answer(STATES, self._done)
        if not crew.seat.is_alone:
            crew.answer(NEWS, self._read_again)

    def __getitem__(self, name: str) -> StreamTable:
        return StreamTable(self._streams[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._streams)

    def __len__(self) -> int:
        return len(self._streams)

    def create(self, caller: Caller, order: CreateStream) -> Stream:
        """Open a stream, and begin its first epoch.

        Raises
        ------
        Refused
        """
        self._check_may_change(caller, order.name)
        ledger, folder = self._kept_in()
        folder.mkdir(mode=OWNER_ONLY, exist_ok=True)
        opened = opened_by(order, caller.payer.analyst)

        def build(book: StreamBook, _at: str) -> StreamOpened:
            known = {name.casefold() for name in (*book.streams, *ledger.collections.by_name)}
            if order.name.casefold() in known | self._declared:
                raise ValueError("SQL cannot distinguish the name from another")
            _check_room([one.opened for one in book.streams.values() if not one.is_dropped], opened)
            return opened

        try:
            ledger.append_stream(order.name, build)
        except ValueError:
            raise NameTaken(
                f"{order.name} is the name of a table, a collection or a stream, now or before.",
                hint="Take another name: the ledger keeps a stream's loss under its name.",
            ) from None
        stream = self._streams[order.name]
        try:
            stream.begin()
        except (StoreUnavailable, LedgerUnavailable) as refusal:
            raise StoreUnavailable(
                f"{order.name} is created, and its first epoch has no state yet: {refusal.message}",
                hint=(
                    f"{refusal.hint or ''} It gets a state without your help; do not create the "
                    "stream again."
                ).strip(),
            ) from refusal
        finally:
            self._tell_others()
        return stream

    def observed(self, caller: Caller, name: str) -> Stream:
        """A stream that a caller may tell who came.

        Raises
        ------
        UnknownName, NotAllowed
        """
        stream = self.find(caller, name)
        if caller.role not in WHO_OBSERVES:
            raise NotAllowed(
                f"Only collectors and owners may report arrivals to the stream {name}, because "
                "the reports decide what it counts.",
                hint="Call with a collector's credential that opens this stream alone.",
            )
        return stream

    def drop(self, caller: Caller, name: str, *, if_exists: bool) -> bool:
        """End a stream; whether there was one.

        Raises
        ------
        Refused
        """
        if if_exists and (name not in self._streams or not caller.opens(name)):
            return False
        stream = self.find(caller, name)
        self._check_may_change(caller, name)
        stream.drop(caller.payer.analyst)
        self._forget(name)
        self._tell_others()
        return True

    def exported(self, caller: Caller, name: str, epoch: str = "") -> bytes:
        """The release of an epoch that is over, as a file; it is made now if it was not yet.

        A release is in the ledger before it is in a file, and the file follows from the ledger: of
        the same epoch it is always the same, whatever happened meanwhile.

        Parameters
        ----------
        caller : Caller
        name : str
        epoch : str
            The last one that is over, if empty. Of several releases, the one at its end.

        Raises
        ------
        Refused
        """
        stream = self.find(caller, name)
        opened = stream.history.opened
        if not opened.universe:
            raise InvalidRequest(
                f"Releases of {name} cannot be added to those of other servers: its users share "
                "buckets, and how many of several servers would share one is not known.",
                hint="Add up what the servers answer: at a confidence of 1 - a / n for each of n "
                "servers, the sum of their intervals has a confidence of 1 - a.",
            )
        over = stream.answerable()
        if not over or (epoch and epoch not in over):
            known = f"Those that are: {', '.join(over[-N_EPOCHS_TOLD:])}." if over else None
            raise InvalidRequest(
                f"No epoch {shortened(epoch)!a} of the stream {name} is over and has a release."
                if epoch
                else f"No epoch of the stream {name} is over and has a release.",
                hint=known or "An epoch is released once its window of time has ended.",
            )
        chosen = epoch or over[-1]
        released = stream.release(chosen)
        numbers = released.noisy if isinstance(released, VisitEpoch) else released.noisy_ones
        opening, entry = self._entries_of(name, chosen)
        return release_file(
            ServerRelease(
                stream=name,
                epoch=chosen,
                noisy_ones=numbers,
                opened=opening.digest,
                released=entry.digest,
                entry=entry.seq,
                **agreed(opened),
            )
        )

    def _entries_of(self, stream: str, epoch: str) -> tuple[Entry, Entry]:
        """The entries of the ledger that opened a stream, and that have the release of an epoch."""
        found: list[Entry] = []
        for entry in () if self._ledger is None else self._ledger.entries():
            if entry.table == stream and (
                entry.kind == "stream_opened"
                or (entry.kind in _RELEASES and _is_last_of(entry, epoch))
            ):
                found.append(entry)
            if len(found) == 2:  # noqa: PLR2004 - both of them, in this order
                return found[0], found[1]
        raise StoreUnavailable(
            f"The release of the epoch {epoch} of the stream {stream} is not in the ledger yet.",
            hint="Ask again in a moment.",
        )

    def find(self, caller: Caller, name: str) -> Stream:
        """A stream that a caller may know of.

        Raises
        ------
        UnknownName
        """
        known = self._opened_to(caller)
        if name not in known and self._ledger is not None and not self._crew.seat.is_alone:
            self._ledger.refresh()  # another worker may have created it just now
            known = self._opened_to(caller)
        if name not in known:
            there_are = f"Streams are {listed(sorted(known))}." if known else "There is none."
            raise UnknownName(
                f"There is no stream {shortened(name)!a}.",
                hint=suggestion(name, sorted(known)) or there_are,
            )
        return known[name]

    def known(self, caller: Caller) -> tuple[StreamStatus, ...]:
        """Every stream that a caller may know of, those that were dropped among them."""
        book = {} if self._ledger is None else self._ledger.streams.streams
        return tuple(
            StreamStatus.of(name, history) for name, history in book.items() if caller.opens(name)
        )

    @property
    def served(self) -> tuple[ServedStream, ...]:
        """Those whose states this process holds."""
        return tuple(one for one in self._streams.values() if isinstance(one, ServedStream))

    def tidy(self) -> None:
        """Erase states of streams that were dropped, which a crash or a disk may have left.

        Raises
        ------
        OSError
        """
        if self._ledger is None or self._folder is None or not self._holds_states:
            return
        book = self._ledger.streams.streams
        for file in self._folder.glob("*.bits*"):
            history = book.get(file.name.partition(".")[0])
            if history is not None and history.is_dropped:
                erase_file(file)

    def close(self) -> None:
        """Let go of all files."""
        for stream in self._streams.values():
            stream.close()

    @property
    def _streams(self) -> dict[str, Stream]:
        """Those that the ledger has."""
        if self._ledger is None:
            return {}
        with self._lock:
            book = self._ledger.streams.streams  # in here: it is never older than what is served
            for name, history in book.items():
                if not history.is_dropped and name not in self._served:
                    self._served[name] = self._stream(self._ledger, name)
            return {
                name: stream for name, stream in self._served.items() if not book[name].is_dropped
            }

    def _stream(self, ledger: Ledger, name: str) -> Stream:
        if self._folder is not None and self._holds_states:
            return ServedStream(ledger, name, self._folder)
        return StreamElsewhere(ledger, name, self._folder, self._ask)

    def _opened_to(self, caller: Caller) -> dict[str, Stream]:
        return {name: stream for name, stream in self._streams.items() if caller.opens(name)}

    def _ask(self, asked: Asked) -> None:
        """Have something done by the worker that holds the states; its refusals are raised."""
        ledger, _ = self._kept_in()
        told = self._crew.ask(HOLDER, STATES, asked)
        ledger.refresh()
        if not isinstance(told, Told):
            raise StoreUnavailable(
                "The process that holds the states of streams does not answer.",
                hint="Send the call again: a user counts once. Visits may be counted twice.",
            )
        if told.refused is not None:
            raise told.refused

    def _tell_others(self) -> None:
        """Have the other workers read what was written, so that a statement there finds it so."""
        self._crew.tell_others(NEWS)

    def _read_again(self, _nothing: None) -> None:
        if self._ledger is not None:
            with suppress(LedgerUnavailable):  # it is read again by the clock, too
                self._ledger.refresh()

    def _done(self, asked: Asked) -> Told:
        """What another worker asked for, done by the stream itself."""
        try:
            if self._ledger is not None:
                self._ledger.refresh()
            stream = self._streams.get(asked.stream)
            if not isinstance(stream, ServedStream):
                return Told(UnknownName("There is no such stream any more."))
            asked.done_by(stream)
            if asked.what is What.DROP:
                self._forget(asked.stream)
        except TacitError as refused:
            return Told(refused)
        except Exception:  # noqa: BLE001 - its text may quote an id, and is dropped
            write_log(logging.ERROR, "not_held", table=asked.stream, code=UNEXPECTED)
            return Told(StoreUnavailable(f"An operation failed on {asked.stream}."))
        return Told()

    def _forget(self, name: str) -> None:
        with self._lock:
            known = self._served.pop(name, None)
        if known is not None:
            known.close()

    def _kept_in(self) -> tuple[Ledger, Path]:
        if self._ledger is None or self._folder is None:
            raise InvalidRequest(
                "This server has no folder for the states of streams.",
                hint="They are files beside the ledger: streams need a ledger in a file, by path "
                "and not by url, and are asked on the server that has it.",
            )
        return self._ledger, self._folder

    def _check_may_change(self, caller: Caller, name: str) -> None:
        if caller.role is not Role.OWNER or not caller.opens(name):
            raise NotAllowed(
                "Streams are created and dropped by owners, under names that their credential "
                "opens.",
                hint="Ask an owner of the server.",
            )


def _check_room(there_are: Sequence[StreamOpened], another: StreamOpened) -> None:
    """Refuse one stream too many: their states are made one after the other, when a day begins."""
    if len(there_are) >= N_STREAMS_MAX:
        raise TooLarge(f"There are {N_STREAMS_MAX} streams.", hint="Drop one that is over.")
    left = N_BITS_MAX - sum(map(_n_bits, there_are))
    if _n_bits(another) > left:
        raise TooLarge(
            f"The states of all streams may have at most {N_BITS_MAX} bits together; "
            f"{max(0, left)} are left.",
            hint="Observe a sample (bits => 1000000), or drop a stream that is over.",
        )


def _n_bits(stream: StreamOpened) -> int:
    """The bits of a state; a counter of visits has a byte."""
    return stream.n_places * stream.n_estimators * (BITS_OF_COUNTER if stream.levels else 1)


LOOK_SECONDS: Final = 0.5
# After a failure. Arrivals wait for an epoch to be paid for; a disk stays full for a while.
RETRY_SECONDS: Final = {"pay": 1.0, "turn": 60.0, "tidy": 60.0}


class Turning(Background):
    """A thread that turns the epochs of streams; a context manager."""

    def __init__(self, streams: StreamService) -> None:
        super().__init__("turning", LOOK_SECONDS)
        self._streams = streams
        self._waits_until: dict[tuple[str, str], float] = {}

    @property
    def has_work(self) -> bool:
        """Always: a stream may be created at any time."""
        return True

    def look(self) -> None:
        """Turn every stream whose time has come.

        All are paid for before a state is made or released, which takes a while: arrivals wait for
        that entry, and so it says nothing of who came.
        """
        streams = self._streams.served
        for stream in streams:
            self._try("pay", stream.name, partial(_pay, stream))
        for stream in streams:
            self._try("turn", stream.name, stream.turn)
        self._try("tidy", "", self._streams.tidy)

    def _try(self, step: str, stream: str, take: Callable[[], None]) -> None:
        """Take a step, unless it failed a moment ago."""
        if time.monotonic() < self._waits_until.get((step, stream), 0.0):
            return
        try:
            take()
        except Exception as error:  # noqa: BLE001 - or the other streams would wait for it
            code = error.code if isinstance(error, TacitError) else UNEXPECTED
            write_log(logging.ERROR, "not_turned", table=stream, code=code)
            self._waits_until[step, stream] = time.monotonic() + RETRY_SECONDS[step]


def _pay(stream: ServedStream) -> None:
    if stream.is_due:
        stream.pay()
