"""Collections and streams, as a ledger's entries tell of them: neither spends a table's budget.

Of a collection a ledger knows what respondents are asked, what each of them loses, and how many
answered once it is closed. Of a stream it knows its public numbers, its epochs, and what was
released of them, from which everybody computes the same number of users with the same interval.
"""

import json
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final

from accountant.auditor.verdict import CollectionVerdict, StreamVerdict, Verdict
from accountant.ledger.collections import CollectionClosed, CollectionOpened
from accountant.ledger.entries import Body, Entry
from accountant.ledger.limits import Window
from accountant.ledger.stream_entries import (
    EpochBegun,
    EpochReleased,
    StreamDropped,
    StreamOpened,
)
from proxy.reporting.amounts import of_units
from streams.declared import epoch_of

CONFIDENCE: Final = 0.95
N_EPOCHS_TOLD: Final = 14  # of one stream, the latest


@dataclass(frozen=True, slots=True)
class CollectionReport:
    """One collection.

    Parameters
    ----------
    opened : CollectionOpened
    opened_at : str
    closed : CollectionClosed, optional
        How many answered; None while it is open.
    closed_at : str
    found : CollectionVerdict, optional
        What the auditor computed; None if it did not come to it.
    """

    opened: CollectionOpened
    opened_at: str
    closed: CollectionClosed | None = None
    closed_at: str = ""
    found: CollectionVerdict | None = None

    @property
    def epsilon(self) -> Fraction:
        """What each respondent loses at most, as declared."""
        return of_units(self._campaign["epsilon"])

    @property
    def n_attributes(self) -> int:
        """How many things are asked."""
        return len(self._campaign["attributes"])

    @property
    def n_combinations(self) -> int:
        """How many combinations of them there are to answer."""
        return len(self._campaign["combinations"])

    @property
    def n_answered(self) -> int:
        """How many of these each respondent answers."""
        return int(self._campaign["answers"])

    @property
    def _campaign(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.opened.campaign)
        return found


@dataclass(frozen=True, slots=True)
class ReportedEpoch:
    """One epoch of a stream.

    Parameters
    ----------
    name : str
    begun_by : int
        The number of the entry by which it was paid for.
    begun_at : str
    spent : Fraction
        What all epochs up to this one lose together.
    noisy_ones : tuple of int
        What was released: of everybody, then of each predicate; empty if nothing was yet.
    """

    name: str
    begun_by: int
    begun_at: str
    spent: Fraction
    noisy_ones: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Users:
    """A number of distinct users that a release speaks of, and an interval.

    Parameters
    ----------
    predicate : str, optional
        That held when they came; None of everybody.
    noisy_ones : int
    estimate, low, high : float
    """

    predicate: str | None
    noisy_ones: int
    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class StreamReport:
    """One stream.

    Parameters
    ----------
    name : str
    opened : StreamOpened
    opened_at : str
    epochs : tuple of ReportedEpoch
    is_dropped : bool
    found : StreamVerdict, optional
        What the auditor computed; None if it did not come to it.
    """

    name: str
    opened: StreamOpened
    opened_at: str
    epochs: tuple[ReportedEpoch, ...]
    is_dropped: bool
    found: StreamVerdict | None

    @property
    def epsilon(self) -> Fraction:
        """What an epoch loses, its state and its release together."""
        return of_units(self.opened.epsilon_units)

    @property
    def spent(self) -> Fraction:
        """What all epochs lose together, of a user who may be in each."""
        return len(self.epochs) * self.epsilon

    @property
    def budget(self) -> Fraction | None:
        """The most that they may."""
        units = self.opened.budget_units
        return None if units is None else of_units(units)

    @property
    def each(self) -> str:
        """When an epoch ends: ``day``, say; empty if with its release."""
        return "" if self.opened.epochs is Window.NEVER else self.opened.epochs.value

    @property
    def n_released(self) -> int:
        """How many epochs were released."""
        return sum(bool(one.noisy_ones) for one in self.epochs)

    @property
    def latest(self) -> tuple[tuple[ReportedEpoch, tuple[Users, ...]], ...]:
        """The latest epochs, the last one first, with what was released: nothing, or all of it."""
        return tuple((one, self._users(one)) for one in self.epochs[: -N_EPOCHS_TOLD - 1 : -1])

    def _users(self, epoch: ReportedEpoch) -> tuple[Users, ...]:
        if not epoch.noisy_ones:
            return ()
        found = epoch_of(self.name, self.opened, epoch.name, epoch.noisy_ones)
        counts = [(one, found.count(one)) for one in found.estimators]
        intervals = [count.interval(CONFIDENCE) for _, count in counts]
        return tuple(
            Users(predicate, count.noisy_ones, count.n_users, interval.low, interval.high)
            for (predicate, count), interval in zip(counts, intervals, strict=True)
        )


@dataclass(slots=True)
class OwnTablesReader:
    """The collections and streams after the entries read so far."""

    _collections: dict[str, CollectionReport] = field(default_factory=dict)
    _streams: dict[str, "_StreamReader"] = field(default_factory=dict)

    def take(self, entry: Entry, body: Body) -> None:
        """Read one more entry, if it is about one of them."""
        match body:
            case CollectionOpened():
                self._collections[body.name] = CollectionReport(body, entry.at)
            case CollectionClosed():
                known = self._collections[body.name]
                self._collections[body.name] = replace(known, closed=body, closed_at=entry.at)
            case StreamOpened():
                self._streams[entry.table] = _StreamReader(body, entry.at)
            case EpochBegun():
                begun = ReportedEpoch(body.epoch, entry.seq, entry.at, of_units(body.units_after))
                self._streams[entry.table].epochs[body.epoch] = begun
            case EpochReleased():
                self._streams[entry.table].release(body)
            case StreamDropped():
                self._streams[entry.table].is_dropped = True
            case _:
                return

    def collections(self, verdict: Verdict) -> tuple[CollectionReport, ...]:
        """Each collection, with what the auditor found, by name."""
        found = {one.name: one for one in verdict.collections}
        return tuple(
            replace(one, found=found.get(name)) for name, one in sorted(self._collections.items())
        )

    def streams(self, verdict: Verdict) -> tuple[StreamReport, ...]:
        """Each stream, with what the auditor found, by name.

        Raises
        ------
        RuntimeError
            If the sums differ from the auditor's.
        """
        found = {one.stream: one for one in verdict.streams}
        made = tuple(
            one.finished(name, found.get(name)) for name, one in sorted(self._streams.items())
        )
        for one in made:
            _check_agreement(one)
        return made


@dataclass(slots=True)
class _StreamReader:
    """One stream after the entries read so far."""

    opened: StreamOpened
    opened_at: str
    epochs: dict[str, ReportedEpoch] = field(default_factory=dict)
    is_dropped: bool = False

    def release(self, body: EpochReleased) -> None:
        begun = self.epochs[body.epoch]
        self.epochs[body.epoch] = replace(begun, noisy_ones=body.noisy_ones)

    def finished(self, name: str, found: StreamVerdict | None) -> StreamReport:
        epochs = tuple(self.epochs.values())
        return StreamReport(name, self.opened, self.opened_at, epochs, self.is_dropped, found)


def _check_agreement(stream: StreamReport) -> None:
    found = stream.found
    if found is None:
        return
    ours = (stream.epsilon, stream.spent, len(stream.epochs), stream.n_released)
    if ours != (found.epsilon, found.spent, found.n_epochs, found.n_released):
        raise RuntimeError(f"the report's sums for {stream.name} differ from the auditor's")
