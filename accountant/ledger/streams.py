"""Streams, as a ledger knows them: opened, their epochs paid for and released once, dropped.

    stream_opened   how a stream counts, and what an epoch of it loses: public numbers, all whole
    epoch_begun     an epoch was paid for: noted before there is a state of it
    epoch_released  the noisy numbers of ones of an epoch; once, and then never others
    visits_released the noisy numbers of counters of visits: within an epoch at the end of each of
                    its parts, if the stream declares several releases, and once at its end
    stream_dropped  nothing of it is observed or released any more; what was lost stays lost

Here are these entries, their JSON, and which streams there are by them. The name of the stream
stands where other entries have their table. An entry checks itself, the epsilon against the two
laws as well; the auditor computes the epsilon on its own.

An epoch is paid for once and released once, and only after it was begun; its name is derived
from its time, so no day can be paid for twice or in advance. Values only.
Proof: streams/proofs/pan_privacy.md, "What a ledger notes".
"""

import dataclasses
import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Final, TypeAlias

from accountant.ledger.limits import Window, check_name
from accountant.ledger.values import Fields, typed
from cube.exponential import epsilon_units_of

GRID: Final = 2**64  # probabilities of streams are whole numbers of this many parts
N_PLACES_MAX: Final = 2**32
N_PREDICATES_MAX: Final = 16
LEVELS_MAX: Final = 100
N_RELEASES_MAX: Final = 24
RATIO_MAX: Final = 2**256  # e**177: nothing is protected long before
LAST: Final = 0  # the part of a release at the end of an epoch
ONLY_EPOCH: Final = "all"  # of a stream whose epochs do not end by the clock
_KEY: Final = re.compile("([0-9a-f]{2}){16,64}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOpened:
    """A stream is observed from now on.

    Parameters
    ----------
    column : str
        The name of the users' column in SQL.
    universe : int
        The largest possible number of users; 0 if it is unknown, and users fall into buckets.
    n_places : int
        The bits of a state: of everybody, of a sample, or of buckets.
    p1, alpha : int
        In units of ``2**-64``: the probability of a 1 for a user who is present, and the ratio of
        the probabilities of two neighbouring values of a release's noise.
    epsilon_units : int
        The loss of an epoch, its state and its release together, over all of its estimators.
    epochs : Window
        When an epoch ends; if never, with its release.
    has_departures : bool
        Whether users may leave again.
    key : str
        In hexadecimal: who is in the sample or in which bucket. Public; empty if everybody has a
        bit.
    budget_units : int, optional
        The most that all epochs may lose together.
    by : str
    predicates : tuple of str
        Predicates whose users are counted too, each by an estimator of its own.
    levels : int
        Up to which number the visits of a user are counted, 2 to 100; 0 if only users are.
    n_releases : int
        How many releases an epoch has, for counters of visits: at the ends of equal parts of it.
    """

    column: str
    universe: int
    n_places: int
    p1: int
    alpha: int
    epsilon_units: int
    epochs: Window
    has_departures: bool
    key: str
    budget_units: int | None
    by: str
    predicates: tuple[str, ...] = ()
    levels: int = 0
    n_releases: int = 1

    def __post_init__(self) -> None:
        self._check_columns()
        self._check_places()
        self._check_counters()
        if not GRID // 2 < self.p1 < GRID or not 0 < self.alpha < GRID:
            raise ValueError("the parameters of the stream's bits or noise are out of range")
        if not self.lost_units <= self.epsilon_units:
            raise ValueError("the epochs of the stream lose more than the recorded epsilon")
        if self.budget_units is not None and self.budget_units < self.epsilon_units:
            raise ValueError("the budget of the stream does not cover its first epoch")

    def _check_columns(self) -> None:
        names = self.column, *self.predicates
        for name in names:
            check_name(name)
        if len({name.casefold() for name in names}) < len(names):
            raise ValueError(
                "two predicates share a name, or one has the name of the users' column"
            )
        if len(self.predicates) > N_PREDICATES_MAX:
            raise ValueError(f"the stream has more than {N_PREDICATES_MAX} predicates")

    def _check_places(self) -> None:
        if not 0 <= self.universe <= N_PLACES_MAX or self.n_places < 1:
            raise ValueError("the stream has too many users, or no place")
        if self.n_places * self.n_estimators > N_PLACES_MAX:
            raise ValueError("the stream has too many places")
        if self.universe and self.n_places > self.universe:
            raise ValueError("the stream has more places than users")
        if (self.universe == self.n_places) != (not self.key):
            raise ValueError(
                "a stream needs a key exactly if some users have no place of their own"
            )
        if self.key and not _KEY.fullmatch(self.key):
            raise ValueError("the key must be 16 to 64 bytes in hexadecimal")
        if self.has_departures and not self.universe:
            raise ValueError("users of a stream who share buckets cannot depart")

    def _check_counters(self) -> None:
        if self.levels and not 2 <= self.levels <= LEVELS_MAX:  # noqa: PLR2004 - one is a bit
            raise ValueError(f"visits are counted up to a number from 2 to {LEVELS_MAX}")
        if not 1 <= self.n_releases <= N_RELEASES_MAX:
            raise ValueError(f"an epoch has 1 to {N_RELEASES_MAX} releases")
        if self.n_releases > 1 and (not self.levels or self.epochs is Window.NEVER):
            raise ValueError("several releases need counters of visits, and epochs by the clock")
        if self.levels and (not self.universe or self.has_departures):
            raise ValueError("visits are counted for a known universe, without departures")

    @property
    def n_estimators(self) -> int:
        """One for everybody, and one for each predicate."""
        return 1 + len(self.predicates)

    @property
    def n_numbers(self) -> int:
        """How many numbers a release has."""
        return self.n_estimators * max(1, self.levels)

    def first_numbers(self, noisy: tuple[int, ...]) -> tuple[int, ...]:
        """Of each estimator's numbers of a release, the first one."""
        return noisy[:: max(1, self.levels)]

    @property
    def lost_units(self) -> int:
        """The loss of the two laws together, once for each estimator.

        Proof: streams/proofs/pan_privacy.md.
        """
        p1, p0, alpha = self.p1, GRID - self.p1, self.alpha
        if self.levels:
            ratio = Fraction(p1, p0) / Fraction(alpha, GRID) ** (2 * self.n_releases)
            if ratio > RATIO_MAX:
                raise ValueError("the epochs of the stream lose more than any epsilon")
            return self.n_estimators * epsilon_units_of(ratio)
        ratio = Fraction(p1, p0) * (Fraction(p0, GRID) + Fraction(p1, alpha))
        return self.n_estimators * epsilon_units_of(ratio)

    def epoch_at(self, at: str) -> str:
        """The name of the epoch that a moment is in: the first day of its window."""
        return self.epochs.start(at)[:10] or ONLY_EPOCH

    def parts_over(self, at: str) -> int:
        """How many parts of the epoch that a moment is in are over; each ends with a release."""
        if self.n_releases == 1:
            return 0
        start, now, end = map(
            dt.datetime.fromisoformat, (self.epochs.start(at), at, self.epochs.end(at))
        )
        return self.n_releases * (now - start) // (end - start)


@dataclass(frozen=True, slots=True)
class EpochBegun:
    """An epoch is paid for; then there may be a state of it.

    Parameters
    ----------
    epoch : str
    units_before, units_after : int
        The loss of all epochs of the stream together, before and after this one.
    """

    epoch: str
    units_before: int
    units_after: int


@dataclass(frozen=True, slots=True)
class EpochReleased:
    """The numbers released for an epoch.

    Parameters
    ----------
    epoch : str
    noisy_ones : tuple of int
        Each a number of ones with noise, which may be below 0: of everybody, then of each
        predicate.
    """

    epoch: str
    noisy_ones: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.noisy_ones:
            raise ValueError("the release has no numbers")


@dataclass(frozen=True, slots=True)
class VisitsReleased:
    """The numbers released for a part of an epoch, from its beginning, or for all of it.

    Parameters
    ----------
    epoch : str
    noisy : tuple of int
        For each level a number with noise: of everybody, then of each predicate.
    part : int
        How many parts of the epoch were over; 0 at its end.
    """

    epoch: str
    noisy: tuple[int, ...]
    part: int = LAST

    def __post_init__(self) -> None:
        if not self.noisy:
            raise ValueError("the release has no numbers")
        if not 0 <= self.part < N_RELEASES_MAX:
            raise ValueError("the release is for no part of an epoch")


@dataclass(frozen=True, slots=True)
class StreamDropped:
    """The stream is over; its name is not used again."""

    by: str


StreamBody: TypeAlias = StreamOpened | EpochBegun | EpochReleased | VisitsReleased | StreamDropped
STREAM_BODIES: Final = (StreamOpened, EpochBegun, EpochReleased, VisitsReleased, StreamDropped)


_NUMBERS: Final = ("universe", "n_places", "p1", "alpha", "epsilon_units")


def write_stream(body: StreamOpened) -> Fields:
    """The fields of a stream that was opened; without a budget, say, there is no field of it."""
    fields = dataclasses.asdict(body) | {"epochs": body.epochs.value}
    if body.budget_units is None:
        del fields["budget_units"]
    del fields["predicates"]
    if not body.levels:
        del fields["levels"]  # as entries were before visits were counted
    if body.n_releases == 1:
        del fields["n_releases"]
    return fields | ({"predicates": list(body.predicates)} if body.predicates else {})


def read_stream(fields: Fields) -> StreamOpened:
    """The stream that `write_stream` wrote."""
    return StreamOpened(
        column=typed(fields["column"], str),
        **{name: typed(fields[name], int) for name in _NUMBERS},
        epochs=Window(typed(fields["epochs"], str)),
        has_departures=typed(fields["has_departures"], bool),
        key=typed(fields["key"], str),
        budget_units=typed(fields["budget_units"], int) if "budget_units" in fields else None,
        by=typed(fields["by"], str),
        predicates=tuple(typed(name, str) for name in typed(fields.get("predicates", []), list)),
        levels=typed(fields.get("levels", 0), int),
        n_releases=typed(fields.get("n_releases", 1), int),
    )


def read_epoch(fields: Fields) -> EpochBegun:
    """An epoch that was begun."""
    return EpochBegun(
        typed(fields["epoch"], str),
        typed(fields["units_before"], int),
        typed(fields["units_after"], int),
    )


def write_release(body: EpochReleased) -> Fields:
    """The fields of a release; without predicates, there is no field of theirs."""
    of_all, *of_predicates = body.noisy_ones
    fields: Fields = {"epoch": body.epoch, "noisy_ones": of_all}
    return fields | ({"where": of_predicates} if of_predicates else {})


def read_release(fields: Fields) -> EpochReleased:
    """Read the body that `write_release` wrote."""
    of_predicates = [typed(ones, int) for ones in typed(fields.get("where", []), list)]
    return EpochReleased(
        typed(fields["epoch"], str), (typed(fields["noisy_ones"], int), *of_predicates)
    )


def write_visits(body: VisitsReleased) -> Fields:
    """The fields of a release of counters; at the end of an epoch, there is no part."""
    fields: Fields = {"epoch": body.epoch, "noisy": list(body.noisy)}
    return fields | ({"part": body.part} if body.part else {})


def read_visits(fields: Fields) -> VisitsReleased:
    """Read the body that `write_visits` wrote."""
    noisy = tuple(typed(one, int) for one in typed(fields["noisy"], list))
    part = typed(fields.get("part", LAST), int)
    return VisitsReleased(typed(fields["epoch"], str), noisy, part)


def read_drop(fields: Fields) -> StreamDropped:
    """A stream that is over."""
    return StreamDropped(typed(fields["by"], str))


@dataclass(frozen=True, slots=True)
class StreamHistory:
    """One stream.

    Parameters
    ----------
    opened : StreamOpened
    released : mapping of str to tuple of int
        Each epoch that was begun, in order, and its noisy numbers; none before its last release.
    partial : mapping of (str, int) to tuple of int
        The noisy numbers released within an epoch, by the epoch and the parts that were over.
    units_spent : int
        The loss of all epochs together.
    is_dropped : bool
    """

    opened: StreamOpened
    released: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: MappingProxyType({}))
    units_spent: int = 0
    is_dropped: bool = False
    partial: Mapping[tuple[str, int], tuple[int, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )

    def after(
        self, at: str, body: EpochBegun | EpochReleased | VisitsReleased | StreamDropped
    ) -> "StreamHistory":
        """The history with one more entry; ValueError if it cannot follow."""
        if self.is_dropped:
            raise ValueError("the stream was dropped before")
        match body:
            case EpochBegun():
                return self._begun(at, body)
            case EpochReleased():
                if self.opened.levels:
                    raise ValueError("a stream that counts visits releases numbers of visits")
                return self._with_release(at, body.epoch, body.noisy_ones)
            case VisitsReleased():
                if not self.opened.levels:
                    raise ValueError("the stream does not count visits")
                if body.part:
                    return self._with_part(at, body)
                return self._with_release(at, body.epoch, body.noisy)
            case StreamDropped():
                return replace(self, is_dropped=True)

    @property
    def can_begin(self) -> bool:
        """Whether the budget covers another epoch."""
        budget = self.opened.budget_units
        return budget is None or self.units_spent + self.opened.epsilon_units <= budget

    def _begun(self, at: str, body: EpochBegun) -> "StreamHistory":
        if body.epoch != self.opened.epoch_at(at):
            raise ValueError("the epoch was begun outside its time")
        if body.epoch in self.released:
            raise ValueError("the epoch was begun twice")
        charged = body.units_after - body.units_before
        if body.units_before != self.units_spent or charged != self.opened.epsilon_units:
            raise ValueError(
                "the recorded loss of the epoch is not the loss of one epoch of its stream"
            )
        if not self.can_begin:
            raise ValueError("the epoch exceeds the budget of its stream")
        released = MappingProxyType({**self.released, body.epoch: ()})
        return replace(self, released=released, units_spent=body.units_after)

    def _with_release(self, at: str, epoch: str, noisy: tuple[int, ...]) -> "StreamHistory":
        self._check_release(epoch, noisy)
        is_by_clock = bool(self.opened.epochs.start(at))
        if is_by_clock and epoch == self.opened.epoch_at(at):
            raise ValueError("the epoch was released before its end")
        return replace(self, released=MappingProxyType({**self.released, epoch: noisy}))

    def _with_part(self, at: str, body: VisitsReleased) -> "StreamHistory":
        self._check_release(body.epoch, body.noisy)
        if body.epoch != self.opened.epoch_at(at) or body.part > self.opened.parts_over(at):
            raise ValueError("a part of the epoch was released outside its time")
        if any(epoch == body.epoch and part >= body.part for epoch, part in self.partial):
            raise ValueError("the part of the epoch was released twice, or after a later one")
        partial = MappingProxyType({**self.partial, (body.epoch, body.part): body.noisy})
        return replace(self, partial=partial)

    def _check_release(self, epoch: str, noisy: tuple[int, ...]) -> None:
        if epoch not in self.released:
            raise ValueError("the released epoch was never begun")
        if self.released[epoch]:
            raise ValueError("the epoch was released twice")
        if len(noisy) != self.opened.n_numbers:
            raise ValueError(
                "a release must have one number for all users and one for each predicate, and of "
                "visits one for each level"
            )


@dataclass(frozen=True, slots=True)
class StreamBook:
    """All streams of a ledger, by their names; those that were dropped are among them."""

    streams: Mapping[str, StreamHistory] = field(default_factory=lambda: MappingProxyType({}))

    def after(self, name: str, at: str, body: StreamBody) -> "StreamBook":
        """The book with one more entry about the stream `name`; ValueError if it cannot follow."""
        known = self.streams.get(name)
        if isinstance(body, StreamOpened):
            if known is not None:
                raise ValueError("the stream was opened twice")
            history = StreamHistory(body)
        elif known is None:
            raise ValueError("the stream was not opened before this entry")
        else:
            history = known.after(at, body)
        return StreamBook(MappingProxyType({**self.streams, name: history}))
