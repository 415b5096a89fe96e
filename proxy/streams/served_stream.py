"""One stream that is served: what the ledger notes of it, its epochs begun, observed and released.

A stream as far as the ledger and the folder of states tell: its epochs, and which can be asked.

From a statement to what the ledger notes of a stream. Values only.

All of a stream is in its entry, so a restart needs nothing else but the files of its states.

    the ledger notes the epoch  ->  its state gets a file  ->  arrivals draw bits anew
    the epoch is over  ->  a number is drawn  ->  the ledger has it  ->  the state is erased

One lock is held over each of these, so no arrival is observed while an epoch is released. Epochs
begin and end by the clock (`Turning`), never with an arrival, which waits for that instead: or the
ledger would tell that somebody came. A file that is gone is never made again: that would be a
second state of an epoch, and a second look (streams/proofs/pan_privacy.md). Nor is one made of an
epoch that is over: it would say that no user came.
"""

import hashlib
import secrets
import threading
import time
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Final

from accountant.ledger import (
    EpochBegun,
    EpochReleased,
    Ledger,
    StreamBook,
    StreamDropped,
    StreamHistory,
    StreamOpened,
    VisitsReleased,
    Window,
)
from cube.exponential import EPSILON_MAX
from cube.measurement import UNITS_PER_EPSILON
from cube.pace import waiting
from cube.refusals import DataChanged, InvalidRequest, InvalidTarget, StoreUnavailable, TacitError
from planner.sql import CreateStream
from streams import (
    EPSILON_MIN,
    RATE_MIN,
    AnyEpoch,
    Arrivals,
    StateFile,
    VisitEpoch,
    best_counter_mechanism,
    best_mechanism,
    epoch_of,
    erase_file,
)


class NotedStream:
    """A stream. Thread-safe.

    Parameters
    ----------
    ledger : Ledger
        The ledger, with the stream's opening entry.
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
            self._read_again()  # another process may have begun one
        begun = self.history.released
        now = self._present_epoch()  # after that: none of those begun is later
        return tuple(one for one in begun if one != now or not self.is_by_clock)

    def answerable(self) -> tuple[str, ...]:
        """Those of them that were released, or have a state from which they can be."""
        names = self.ended()
        # Each is looked for once: another server may release one, and erase its state, meanwhile.
        without = {one for one in names if not self._has_state(one)}
        if not all(self.history.released[one] for one in without):
            # A release is in the ledger before the state is erased: it may have come just now.
            self._read_again()
        released = self.history.released
        return tuple(one for one in names if one not in without or released[one])

    def _present_epoch(self) -> str:
        """The name of the epoch of this moment, begun or not."""
        return self.history.opened.epoch_at(self._ledger.now())

    def _read_again(self) -> None:
        """Read what other processes have written; nothing to do if this one writes all releases."""

    def _epoch(self, name: str) -> AnyEpoch:
        history = self.history
        return epoch_of(self.name, history.opened, name, history.released[name])

    def _has_state(self, name: str) -> bool:
        """Whether there is a state of an epoch; without a folder, that is for others to say."""
        return self._folder is None or (self._folder / self._file_name(name)).exists()

    def _file_name(self, name: str) -> str:
        return f"{self.name}.{name}.bits"


KEY_BYTES: Final = 16


def opened_by(order: CreateStream, who: str) -> StreamOpened:
    """What the ledger notes of a stream that is asked for.

    Raises
    ------
    InvalidTarget
        If its epsilon is out of range.
    """
    n_estimators = 1 + len(order.predicates)
    # In whole units, so that the parts are not more than all of it.
    each = Fraction(int(order.epsilon * UNITS_PER_EPSILON) // n_estimators, UNITS_PER_EPSILON)
    if order.epsilon > EPSILON_MAX or each < EPSILON_MIN:
        least = n_estimators * EPSILON_MIN
        of_each = f", in equal parts for {n_estimators} counts" if order.predicates else ""
        raise InvalidTarget(
            f"The epsilon of a stream is from {least} to {EPSILON_MAX}{of_each}.",
            hint="As in epsilon => 1, which is what an epoch loses in all.",
        )
    law, noise, units = _laws(each, order)
    everybody = order.universe == order.n_bits
    budget = order.budget
    return StreamOpened(
        column=order.column,
        universe=order.universe or 0,
        n_places=order.n_bits,
        p1=law,
        alpha=noise,
        epsilon_units=n_estimators * units,
        epochs=Window(order.epochs),
        has_departures=order.has_departures,
        key="" if everybody else _key(order.sample).hex(),
        budget_units=None if budget is None else int(budget * UNITS_PER_EPSILON),
        by=who,
        predicates=order.predicates,
        levels=order.visits,
        n_releases=order.n_releases,
    )


def _key(sample: str | None) -> bytes:
    """Who is in the sample, or in which bucket: drawn, or the same for the same text everywhere.

    Nothing private rests on it (streams/proofs/pan_privacy.md, "Samples"): it is in the ledger.
    """
    if sample is None:
        return secrets.token_bytes(KEY_BYTES)
    return hashlib.sha256(b"sample of users\0" + sample.encode()).digest()[:KEY_BYTES]


def _laws(epsilon: Fraction, order: CreateStream) -> tuple[int, int, int]:
    """The thresholds of bits and of noise, and what an estimator loses in units of epsilon."""
    if order.visits:
        counters = best_counter_mechanism(epsilon, order.n_bits, order.visits, order.n_releases)
        if counters.output.rate < RATE_MIN:
            raise InvalidTarget(
                "The epsilon of a stream that counts visits is too small for its releases.",
                hint="Raise epsilon, or declare fewer releases or predicates.",
            )
        return counters.state.threshold, counters.output.threshold, counters.epsilon_units
    mechanism = best_mechanism(epsilon, order.n_bits)
    return mechanism.state.threshold, mechanism.output.threshold, mechanism.epsilon_units


def epsilon_of(opened: StreamOpened) -> Fraction:
    """What an epoch loses."""
    return Fraction(opened.epsilon_units, UNITS_PER_EPSILON)


AWAITED_SECONDS: Final = 2.0  # an epoch that has come begins within half of one
LOOK_SECONDS: Final = 0.02


class ServedStream(NotedStream):
    """A stream. Thread-safe.

    Parameters
    ----------
    ledger : Ledger
        The ledger, with the stream's opening entry.
    folder : Path
        Of the files of states; there by now.
    """

    def __init__(self, ledger: Ledger, name: str, folder: Path) -> None:
        super().__init__(ledger, name, folder)
        self._states_in = folder
        self._lock = threading.RLock()
        self._states: dict[str, StateFile] = {}
        self._unmade: set[str] = set()  # begun here, and the disk did not take their states

    def observe(self, arrivals: Arrivals) -> None:
        """Note users who arrived, or who left, in the present epoch. `sync` makes it durable.

        Raises
        ------
        Refused
            Then no user was counted.
        """
        self._await_epoch()
        with self._lock:
            self._check_kept()
            name = self._present_epoch()
            if name not in self.history.released:
                raise _ends_now(self.name)
            epoch = self._epoch(name)
            if not epoch.is_open:
                raise InvalidRequest(
                    f"The epoch of the stream {self.name} is over: it was released.",
                    hint="Its users were counted once; create another stream to go on.",
                )
            self._make_missing(name)
            epoch.observe(self._state(name), arrivals)

    def sync(self) -> None:
        """Wait until the disk has what arrived so far.

        Raises
        ------
        StoreUnavailable
        """
        with self._lock:
            self._open_present()  # a process before this one may have written to it
            for state in self._states.values():
                try:
                    state.sync()
                except OSError as error:
                    raise _not_kept(self.name) from error

    def begin(self) -> str:
        """Begin the present epoch unless it was begun; its name.

        Raises
        ------
        Refused
        """
        with self._lock:
            name = self.pay()
            self._make_missing(name)
            return name

    def pay(self) -> str:
        """Pay for the present epoch unless that was done; its name. Its state is made later.

        Raises
        ------
        Refused
        """
        with self._lock:
            self._check_kept()
            name = self._present_epoch()
            if name not in self.history.released:
                self._charge()
            if name not in self.history.released:  # its time came while this one was written
                raise _ends_now(self.name)
            return name

    def release(self, name: str) -> AnyEpoch:
        """An epoch that is over with its release; once released, the same for ever.

        Raises
        ------
        Refused
        """
        with self._lock:
            epoch = self._epoch(name)
            if epoch.is_open:
                self._check_kept()
                if name not in self.ended():
                    raise _ends_now(self.name)
                self._note(epoch.released(self._state(name)))
                epoch = self._epoch(name)
                self._erase(name)
            return epoch

    def turn(self) -> None:
        """Do what is due by the clock: release what is over, begin what has come.

        Raises
        ------
        Refused
            Of the first epoch with which something is wrong; the rest is done.
        """
        refusals: list[TacitError] = []
        if self.history.is_dropped:
            return
        for name in self.ended():
            is_released = bool(self.history.released[name])
            try:
                if is_released and self._file(name).exists():
                    self._erase(name)
                elif not is_released and self.is_by_clock and self._file(name).exists():
                    self.release(name)
            except (StoreUnavailable, InvalidRequest) as refusal:
                refusals.append(refusal)
                if isinstance(refusal.__cause__, DataChanged):
                    self._erase(name)  # nothing can be released from it, and it would be asked for
        if self.is_due or self._present_epoch() in self._unmade:
            self.begin()
        with self._lock:
            self._release_part()
        if refusals:
            raise refusals[0]

    def drop(self, who: str) -> None:
        """End the stream: nothing is observed or released any more, and its states are erased.

        Raises
        ------
        LedgerUnavailable
        """
        with self._lock:
            self._ledger.append_stream(self.name, lambda book, _at: self._end(book, who))
            for name in self.history.released:
                self._erase(name)

    def _end(self, book: StreamBook, who: str) -> StreamDropped | None:
        """What ends the stream, unless somebody else did at the same moment."""
        return None if book.streams[self.name].is_dropped else StreamDropped(who)

    def close(self) -> None:
        """Let go of the files, which stay as they are."""
        with self._lock:
            while self._states:
                self._states.popitem()[1].close()

    def _charge(self) -> None:
        """Pay for the epoch of this moment; one before it that had no state gets none any more."""

        def build(book: StreamBook, at: str) -> EpochBegun | None:
            history = book.streams[self.name]
            name = history.opened.epoch_at(at)
            if name in history.released:
                return None
            if not history.can_begin:
                raise _budget_spent(self.name)
            spent = history.units_spent
            self._unmade = {name}  # before it is known whether the entry became durable: it may
            return EpochBegun(name, spent, spent + history.opened.epsilon_units)

        self._ledger.append_stream(self.name, build)

    def _await_epoch(self) -> None:
        """Wait until the present epoch has begun; it is not begun here."""
        until = time.monotonic() + AWAITED_SECONDS
        while self._present_epoch() not in self.history.released:
            self._check_kept()
            if not self.history.can_begin:
                raise _budget_spent(self.name)
            if time.monotonic() > until:
                raise _ends_now(self.name) if self._ledger.is_writable else _not_begun(self.name)
            with waiting():
                time.sleep(LOOK_SECONDS)

    def _check_kept(self) -> None:
        if self.history.is_dropped:
            raise InvalidRequest(f"The stream {self.name} was dropped.")

    def _make_missing(self, name: str) -> None:
        """Make the state of the present epoch, if it was paid for here and has had none."""
        if name not in self._unmade:
            return
        try:
            state = self._epoch(name).created(self._file(name))
        except FileExistsError as error:
            self._unmade.discard(name)
            raise self._lost(name) from error
        except OSError as error:
            raise _not_kept(self.name) from error
        self._states[name] = state
        self._unmade.discard(name)

    def _note(self, released: AnyEpoch) -> None:
        """Make a release durable, unless the ledger has one of that epoch."""

        def build(book: StreamBook, _at: str) -> EpochReleased | VisitsReleased | None:
            if book.streams[self.name].released[released.name]:
                return None
            if isinstance(released, VisitEpoch):
                return VisitsReleased(released.name, released.noisy)
            return EpochReleased(released.name, released.noisy_ones)

        self._ledger.append_stream(self.name, build)

    def _release_part(self) -> None:
        """Release the present epoch as far as its parts are over, unless that was done.

        A part that ended while the server was away has no release of its own: a later one has its
        visits, too.
        """
        history, now = self.history, self._ledger.now()
        name, part = history.opened.epoch_at(now), history.opened.parts_over(now)
        if not part or not self._is_unreleased(history, name, part):
            return
        if not self._file(name).exists():
            return
        epoch = self._epoch(name)
        if not isinstance(epoch, VisitEpoch):
            return
        noisy = epoch.noisy_numbers(self._state(name))

        def build(book: StreamBook, at: str) -> VisitsReleased | None:
            known = book.streams[self.name]
            is_now = known.opened.epoch_at(at) == name
            if not is_now or not self._is_unreleased(known, name, part):
                return None
            return VisitsReleased(name, noisy, part)

        self._ledger.append_stream(self.name, build)

    @staticmethod
    def _is_unreleased(history: StreamHistory, name: str, part: int) -> bool:
        """Whether an epoch is open, and has no release of this part or a later one."""
        later = [one for epoch, one in history.partial if epoch == name and one >= part]
        return name in history.released and not history.released[name] and not later

    def _state(self, name: str) -> StateFile:
        """The state of an epoch, to go on with."""
        if name not in self._states:
            try:
                found: StateFile = self._epoch(name).opened(self._file(name))
            except DataChanged as changed:
                raise self._lost(name) from changed
            except OSError as error:
                raise _not_kept(self.name) from error
            self._states[name] = found
        return self._states[name]

    def _open_present(self) -> None:
        """Open the state of the present epoch, if there is one."""
        name = self._present_epoch()
        is_open = name in self.history.released and not self.history.released[name]
        if is_open and self._file(name).exists():
            self._state(name)

    def _lost(self, name: str) -> StoreUnavailable:
        another = "the next epoch has its own"
        if not self.is_by_clock:
            another = "drop the stream, and create another one"
        return StoreUnavailable(
            f"The state of the epoch {name} of the stream {self.name} is missing, or is not the "
            "one written for it.",
            hint=(
                "It cannot be made again, because a second state would be a second look at the "
                f"users; {another}."
            ),
        )

    def _erase(self, name: str) -> None:
        """Erase the state of an epoch, if there is one; what fails is tried again by `turn`."""
        with suppress(OSError):
            if name in self._states:
                self._states[name].erase()
                del self._states[name]
            erase_file(self._file(name))
        self._unmade.discard(name)

    def _file(self, name: str) -> Path:
        return self._states_in / self._file_name(name)


def _budget_spent(stream: str) -> InvalidRequest:
    return InvalidRequest(
        f"The budget of the stream {stream} does not pay for another epoch.",
        hint="What was released is still answered; an owner may create another stream.",
    )


def _ends_now(stream: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"An epoch of the stream {stream} ends at this moment.",
        hint="Send the call again: nothing of this message was noted.",
    )


def _not_begun(stream: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"An epoch of the stream {stream} is due, but the ledger cannot be written.",
        hint="Send the call again once it can: no user is counted before an epoch is paid for.",
    )


def _not_kept(stream: str) -> StoreUnavailable:
    """The refusal when the disk took no write; the server's log says no more."""
    return StoreUnavailable(
        f"The state of the stream {stream} cannot be kept: the disk is full, or refuses to write.",
        hint="Only this call's users are lost; send it again once there is space.",
    )
