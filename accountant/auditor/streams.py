"""Checks streams: the loss of each epoch, from its two laws, and that it is released only once.

A bit is 1 with probability p1 for who is present, p0 = 1 - p1 for who is not, and what is released
has two-sided geometric noise of ratio alpha. One look at the state and the release lose the
logarithm of p1 / p0 * (p0 + p1 / alpha): streams/proofs/pan_privacy.md. It is computed here from
the entry alone, by a series of the logarithm in whole numbers; once for everybody and once for each
predicate, whose bits and noise are drawn independently by the same two laws. With counters of
visits the state and its `n` releases lose the logarithm of p1 / p0 * alpha ** (-2 n).
"""

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, TypeAlias

from accountant.auditor.fields import (
    NUMBER_MAX,
    Fields,
    Json,
    Wrong,
    check_name,
    fields_of,
    list_of,
    one_of,
    text,
    whole,
    window_start,
)
from accountant.auditor.verdict import StreamVerdict
from accountant.ledger.entries import Entry
from cube.measurement import UNITS_PER_EPSILON

GRID: Final = 2**64
N_PLACES_MAX: Final = 2**32
N_PREDICATES_MAX: Final = 16
LEVELS_MAX: Final = 100
N_RELEASES_MAX: Final = 24
EPOCHS: Final = ("day", "week", "month", "quarter", "year", "never")
ONLY_EPOCH: Final = "all"
DIGITS: Final = 256  # bits behind the point in which logarithms are computed
_KEY: Final = re.compile("([0-9a-f]{2}){16,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class StreamOpened:
    """A stream, and what an epoch of it loses."""

    epsilon_units: int
    epochs: str
    budget_units: int | None
    n_predicates: int
    levels: int
    n_releases: int


@dataclass(frozen=True, slots=True)
class EpochBegun:
    """An epoch was paid for."""

    epoch: str
    units_before: int
    units_after: int


@dataclass(frozen=True, slots=True)
class EpochReleased:
    """An epoch's noisy numbers of ones; of them, how many there are can be checked."""

    epoch: str
    n_predicates: int


@dataclass(frozen=True, slots=True)
class VisitsReleased:
    """The noisy numbers of counters, for an epoch or the first parts of it."""

    epoch: str
    n_numbers: int
    part: int


@dataclass(frozen=True, slots=True)
class StreamDropped:
    """The stream is over."""


StreamBody: TypeAlias = StreamOpened | EpochBegun | EpochReleased | VisitsReleased | StreamDropped


def read_stream(value: Json) -> StreamOpened:
    """A stream that was opened; Wrong unless its epsilon is that of its bits and its noise."""
    required = ("column", "universe", "n_places", "p1", "alpha", "epsilon_units", "epochs")
    optional = ("budget_units", "predicates", "levels", "n_releases")
    fields = fields_of(value, (*required, "has_departures", "key", "by"), optional)
    n_predicates = len(_predicates(fields, check_name(text(fields, "column"))))
    text(fields, "by")
    universe, n_places = whole(fields, "universe"), whole(fields, "n_places", 1)
    n_bits = n_places * (1 + n_predicates)
    if max(universe, n_bits) > N_PLACES_MAX or (universe and n_places > universe):
        raise Wrong("the stream has too many users or places")
    key = text(fields, "key")
    if (universe == n_places) != (not key) or (key and not _KEY.fullmatch(key)):
        raise Wrong(
            "a stream needs a key of 16 to 64 bytes in hexadecimal exactly if it samples "
            "users or puts them into buckets"
        )
    departs = fields["has_departures"]
    if type(departs) is not bool or (departs and not universe):
        raise Wrong("departures must be true or false, and false if users share buckets")
    epochs = one_of(fields, "epochs", EPOCHS)
    levels = whole(fields, "levels", 2) if "levels" in fields else 0
    n_releases = whole(fields, "n_releases", 2) if "n_releases" in fields else 1
    if levels > LEVELS_MAX or n_releases > N_RELEASES_MAX:
        raise Wrong("the stream counts visits too far, or releases them too often")
    if (levels and (not universe or departs)) or (n_releases > 1 and epochs == "never"):
        raise Wrong("the stream's visits cannot be counted, or have no schedule")
    if n_releases > 1 and not levels:
        raise Wrong("only counters of visits have several releases")
    units = whole(fields, "epsilon_units", 1)
    laws = whole(fields, "p1"), whole(fields, "alpha")
    each = lost_by_counters(*laws, n_releases) if levels else lost_units(*laws)
    lost = (1 + n_predicates) * each
    if units != lost:
        raise Wrong(
            f"the recorded loss of an epoch is {units} units, but its bits and noise lose {lost}"
        )
    budget = whole(fields, "budget_units", units) if "budget_units" in fields else None
    return StreamOpened(units, epochs, budget, n_predicates, levels, n_releases)


def _predicates(fields: Fields, column: str) -> list[str]:
    """The names of predicates; Wrong if two are alike, or one is the name of the users' column."""
    if "predicates" not in fields:
        return []
    names: list[str] = list_of(fields, "predicates", str)
    for name in names:
        check_name(name)
    if not 1 <= len(names) <= N_PREDICATES_MAX:
        raise Wrong(f"a stream with predicates must have 1 to {N_PREDICATES_MAX}")
    if len({name.casefold() for name in (column, *names)}) <= len(names):
        raise Wrong("two predicates share a name, or one has the name of the users' column")
    return names


def read_epoch(value: Json) -> EpochBegun:
    """An epoch that was paid for."""
    fields = fields_of(value, ("epoch", "units_before", "units_after"))
    before, after = whole(fields, "units_before"), whole(fields, "units_after")
    return EpochBegun(text(fields, "epoch"), before, after)


def read_release(value: Json) -> EpochReleased:
    """A release of an epoch."""
    fields = fields_of(value, ("epoch", "noisy_ones"), ("where",))
    whole(fields, "noisy_ones", -NUMBER_MAX)
    n_predicates = len(list_of(fields, "where", int)) if "where" in fields else 0
    return EpochReleased(text(fields, "epoch"), n_predicates)


def read_visits(value: Json) -> VisitsReleased:
    """A release of counters."""
    fields = fields_of(value, ("epoch", "noisy"), ("part",))
    part = whole(fields, "part", 1) if "part" in fields else 0
    return VisitsReleased(text(fields, "epoch"), len(list_of(fields, "noisy", int)), part)


def read_drop(value: Json) -> StreamDropped:
    """A stream that is over."""
    text(fields_of(value, ("by",)), "by")
    return StreamDropped()


READERS: Final[dict[str, Callable[[Json], StreamBody]]] = {
    "stream_opened": read_stream,
    "epoch_begun": read_epoch,
    "epoch_released": read_release,
    "visits_released": read_visits,
    "stream_dropped": read_drop,
}


def lost_units(p1: int, alpha: int) -> int:
    """The loss of a state and of a release, in units of epsilon, rounded up; both on the grid.

    >>> lost_units(3 * 2**62, 2**63) == units_of_logarithm(Fraction(21, 4))
    True
    """
    _check_laws(p1, alpha)
    p0 = GRID - p1
    return units_of_logarithm(Fraction(p1, p0) * (Fraction(p0, GRID) + Fraction(p1, alpha)))


def lost_by_counters(p1: int, alpha: int, n_releases: int) -> int:
    """The loss of a state of counters and of its releases; all rounded up.

    >>> lost_by_counters(3 * 2**62, 2**63, 2) == units_of_logarithm(Fraction(48))
    True
    """
    _check_laws(p1, alpha)
    return units_of_logarithm(Fraction(p1, GRID - p1) * Fraction(GRID, alpha) ** (2 * n_releases))


def _check_laws(p1: int, alpha: int) -> None:
    if not GRID // 2 < p1 < GRID or not 0 < alpha < GRID:
        raise Wrong("the parameters of the stream's bits or noise are out of range")


def units_of_logarithm(ratio: Fraction) -> int:
    """The natural logarithm of a ratio above 1 in units of epsilon, rounded up.

    Notes
    -----
    ``ratio = 2**k x`` with `x` from 1 to 2, and ``ln x = 2 artanh((x - 1) / (x + 1))``, whose terms
    are at most a ninth of the one before; each is rounded down. So a logarithm is too small by less
    than `n` steps of the last digit, and is rounded up from both ends of that.
    """
    k = max(0, ratio.numerator.bit_length() - ratio.denominator.bit_length())
    k -= ratio < 2**k  # so that 1 <= ratio / 2**k < 2 where ratio is at least 1
    of_two, n_two = _artanh_doubled(Fraction(1, 3))
    part = ratio / 2**k
    of_part, n_part = _artanh_doubled((part - 1) / (part + 1))
    low = k * of_two + of_part
    high = low + k * n_two + n_part
    ends: set[int] = {-(-one * UNITS_PER_EPSILON >> DIGITS) for one in (low, high)}
    if len(ends) > 1:
        raise Wrong("the loss is too near to a whole number of units to round it with certainty")
    return ends.pop()


def _artanh_doubled(y: Fraction) -> tuple[int, int]:
    """``2 artanh(y)`` for `y` up to 1/3 in the last digit, and by how much it may be too small."""
    power = (y.numerator << DIGITS) // y.denominator
    square = power * power >> DIGITS
    total, place = 0, 1
    while power:
        total += 2 * power // place
        power = power * square >> DIGITS
        place += 2
    # Each power lacks less than 2 steps, each quotient 1 more; the terms left out are less than 1.
    return total, 5 * place


@dataclass(slots=True)
class StreamBook:
    """One stream after the entries read so far."""

    opened_by: int
    opened: StreamOpened
    begun: list[tuple[int, str]] = field(default_factory=list)  # each with its entry's number
    released: list[tuple[int, str]] = field(default_factory=list)
    parts: dict[str, int] = field(default_factory=dict)  # the last one released of each epoch
    dropped_by: int | None = None

    def take(self, entry: Entry, body: StreamBody) -> None:
        """Apply an entry about the stream; Wrong if it cannot follow those before it."""
        if self.dropped_by is not None:
            raise Wrong("the stream was dropped before this entry")
        match body:
            case StreamOpened():
                raise Wrong("the stream was opened twice")
            case EpochBegun():
                self._begin(entry, body)
            case EpochReleased():
                self._check_release(body.epoch)
                if self.opened.levels or body.n_predicates != self.opened.n_predicates:
                    raise Wrong(
                        f"the release of {body.epoch!r} must have one number for each predicate"
                    )
                self._release(entry, body.epoch)
            case VisitsReleased():
                self._release_visits(entry, body)
            case StreamDropped():
                self.dropped_by = entry.seq

    def verdict(self, stream: str, n_good: int) -> StreamVerdict:
        """The verdict on the stream after the first entries."""
        n_begun = sum(seq <= n_good for seq, _ in self.begun)
        units, budget = self.opened.epsilon_units, self.opened.budget_units
        return StreamVerdict(
            stream=stream,
            epochs=self.opened.epochs,
            epsilon=Fraction(units, UNITS_PER_EPSILON),
            spent=Fraction(n_begun * units, UNITS_PER_EPSILON),
            budget=None if budget is None else Fraction(budget, UNITS_PER_EPSILON),
            n_epochs=n_begun,
            n_released=sum(seq <= n_good for seq, _ in self.released),
            n_predicates=self.opened.n_predicates,
        )

    def _begin(self, entry: Entry, body: EpochBegun) -> None:
        if body.epoch != self._epoch_at(entry.at):
            raise Wrong(f"the epoch {body.epoch!r} was begun at {entry.at}, outside its time")
        if any(epoch == body.epoch for _, epoch in self.begun):
            raise Wrong(f"the epoch {body.epoch!r} was begun twice")
        spent = len(self.begun) * self.opened.epsilon_units
        after = spent + self.opened.epsilon_units
        if (body.units_before, body.units_after) != (spent, after):
            raise Wrong(
                f"the epoch's recorded loss should be {spent} units before it and {after} after it"
            )
        if self.opened.budget_units is not None and after > self.opened.budget_units:
            raise Wrong(f"{after} units are lost, more than the stream's budget")
        self.begun.append((entry.seq, body.epoch))

    def _release(self, entry: Entry, epoch: str) -> None:
        if self.opened.epochs != "never" and epoch == self._epoch_at(entry.at):
            raise Wrong(f"the epoch {epoch!r} was released before its end")
        self.released.append((entry.seq, epoch))

    def _release_visits(self, entry: Entry, body: VisitsReleased) -> None:
        epoch = body.epoch
        self._check_release(epoch)
        n_numbers = (1 + self.opened.n_predicates) * self.opened.levels
        if not n_numbers or body.n_numbers != n_numbers:
            raise Wrong(f"the release of {epoch!r} must have {n_numbers} numbers of visits")
        if not body.part:
            self._release(entry, epoch)
            return
        if epoch != self._epoch_at(entry.at) or body.part > self._parts_over(entry.at):
            raise Wrong(f"part {body.part} of {epoch!r} was released outside its time")
        if body.part <= self.parts.get(epoch, 0):
            raise Wrong(f"part {body.part} of {epoch!r} was released twice, or after a later one")
        self.parts[epoch] = body.part

    def _check_release(self, epoch: str) -> None:
        if not any(begun == epoch for _, begun in self.begun):
            raise Wrong(f"the epoch {epoch!r} was released but never begun")
        if any(released == epoch for _, released in self.released):
            raise Wrong(f"the epoch {epoch!r} was released twice")

    def _parts_over(self, at: str) -> int:
        """How many parts of the epoch of a moment are over, by days and milliseconds."""
        if self.opened.n_releases == 1:
            return 0
        first = dt.date.fromisoformat(self._epoch_at(at))
        months = {"month": 1, "quarter": 3, "year": 12}.get(self.opened.epochs)
        if months is None:
            n_days = {"day": 1, "week": 7}[self.opened.epochs]
        else:
            years, month = divmod(first.month - 1 + months, 12)
            n_days = (dt.date(first.year + years, month + 1, 1) - first).days
        day, time = dt.date.fromisoformat(at[:10]), dt.time.fromisoformat(at[11:23])
        seconds = (time.hour * 60 + time.minute) * 60 + time.second
        passed = ((day - first).days * 86_400 + seconds) * 1000 + time.microsecond // 1000
        return self.opened.n_releases * passed // (n_days * 86_400_000)

    def _epoch_at(self, at: str) -> str:
        """The first day of the window of a moment, in full."""
        start = window_start(self.opened.epochs, at)
        return start + "2026-01-01"[len(start) :] if start else ONLY_EPOCH
