"""The audit report as values, from which a page, a JSON object or CSV lines are written.

Amounts are exact: whole units of 2**-40 epsilon, or fractions where an owner may give any number.
Frozen; made in one pass by report.py. Nothing here knows how a report looks.

Collections and streams are here as a ledger's entries tell of them: neither spends a table's
budget. Of a collection a ledger knows what respondents are asked, what each of them loses, and how
many answered once it is closed. Of a stream it knows its public numbers, its epochs, and what was
released of them, from which everybody computes the same number of users with the same interval.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final

from accountant.auditor import CollectionVerdict, SignedHead, StreamVerdict, TableVerdict, Verdict
from accountant.auditor.costs import ColumnCost
from accountant.ledger import (
    WIDTH_BINS,
    Body,
    CollectionClosed,
    CollectionOpened,
    Credential,
    Entry,
    EpochBegun,
    EpochReleased,
    Limit,
    Payer,
    StreamDropped,
    StreamOpened,
    Subject,
    VisitsReleased,
    Window,
)
from proxy.reporting.declared import DeclaredTable
from proxy.shared.amounts import of_units
from streams import ReleasedCount, VisitEstimate, epoch_of

CONFIDENCE: Final = 0.95
N_EPOCHS_TOLD: Final = 14  # of one stream, the latest


@dataclass(frozen=True, slots=True)
class CollectionReport:
    """One collection.

    Parameters
    ----------
    closed : CollectionClosed, optional
        How many answered; None while it is open.
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
    begun_by : int
        The number of the entry by which it was paid for.
    spent : Fraction
        What all epochs up to this one lose together.
    noisy_ones : tuple of int
        What was released: of everybody, then of each predicate, and of counters of visits for each
        level; empty if nothing was yet.
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
        first = self.opened.first_numbers(epoch.noisy_ones)
        return tuple(
            _users_of(one, noisy, found.count(one))
            for one, noisy in zip(found.estimators, first, strict=True)
        )


def _users_of(predicate: str | None, noisy: int, count: ReleasedCount | VisitEstimate) -> Users:
    interval = count.interval(CONFIDENCE)
    return Users(predicate, noisy, count.n_users, interval.low, interval.high)


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
                self._streams[entry.table].release(body.epoch, body.noisy_ones)
            case VisitsReleased() if not body.part:
                self._streams[entry.table].release(body.epoch, body.noisy)
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

    def release(self, epoch: str, noisy: tuple[int, ...]) -> None:
        self.epochs[epoch] = replace(self.epochs[epoch], noisy_ones=noisy)

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


@dataclass(frozen=True, slots=True)
class ReportedCharge:
    """One charge: who paid, for how much, and the table's cost before and after.

    For limits it counts at `counted_at`, which is earlier than `at` if a clock was corrected since.
    `first_blocks` are the first of the rows that it bought, as the ledger writes them, and
    `first_counts` are its first counts of units, which are not among the other statistics.
    """

    seq: int
    at: str
    payer: Payer
    n_blocks: int
    n_statistics: int
    units_before: int
    units_after: int
    counted_at: str
    first_blocks: tuple[Mapping[str, Any], ...] = ()
    n_unit_counts: int = 0
    first_counts: tuple[Mapping[str, Any], ...] = ()

    @property
    def units(self) -> int:
        """The units that it added."""
        return self.units_after - self.units_before


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """Answers that were given, and what plain Laplace noise would have cost for the same.

    Parameters
    ----------
    plain_units_free, plain_units_paid : int
        The price of each answer by itself at its requested accuracy, added up, in units of 2**-40
        epsilon.
    widths : tuple of int
        How many answers had which share of the promised width
        (`accountant.ledger.entries.WIDTH_BINS`).
    """

    n_free: int = 0
    n_paid: int = 0
    plain_units_free: int = 0
    plain_units_paid: int = 0
    widths: tuple[int, ...] = (0,) * (len(WIDTH_BINS) + 1)

    def __add__(self, other: "AnswerCounts") -> "AnswerCounts":
        return AnswerCounts(
            self.n_free + other.n_free,
            self.n_paid + other.n_paid,
            self.plain_units_free + other.plain_units_free,
            self.plain_units_paid + other.plain_units_paid,
            tuple(a + b for a, b in zip(self.widths, other.widths, strict=True)),
        )

    @property
    def n(self) -> int:
        """The number of all answers."""
        return self.n_free + self.n_paid

    @property
    def plain_free(self) -> Fraction:
        """What plain Laplace noise would have cost for the free answers, in epsilon."""
        return of_units(self.plain_units_free)

    @property
    def plain_paid(self) -> Fraction:
        """What plain Laplace noise would have cost for the paid answers, in epsilon."""
        return of_units(self.plain_units_paid)

    @property
    def plain(self) -> Fraction:
        """What plain Laplace noise would have cost for all answers, in epsilon."""
        return self.plain_free + self.plain_paid


@dataclass(frozen=True, slots=True)
class Account:
    """The charges and answers of one analyst, one group or one month."""

    name: str
    units: int
    n_charges: int
    answers: AnswerCounts

    @property
    def spent(self) -> Fraction:
        """What its charges added to the table's cost, in epsilon."""
        return of_units(self.units)


@dataclass(frozen=True, slots=True)
class LimitUse:
    """A limit in force at the end, and how much of it each subject has used in its window.

    `used` is empty for a limit whose subject never paid.
    """

    limit: Limit
    used: tuple[tuple[Subject, Fraction], ...]


@dataclass(frozen=True, slots=True)
class RuleChange:
    """One entry that changes rules: what may be spent, who has access."""

    seq: int
    at: str
    table: str
    kind: str
    subject: str
    detail: str
    by: str


@dataclass(frozen=True, slots=True)
class RenewingBudget:
    """A budget that renews, as of the last entry, with what all of its tables have spent.

    Parameters
    ----------
    renews_on : str
        The day on which it renews next.
    spent, spent_in_year, spent_in_all : Fraction
        In the window of the last entry, in the twelve months before it, and in all.
    """

    window: str
    renews_on: str
    spent: Fraction
    spent_in_year: Fraction
    spent_in_all: Fraction


@dataclass(frozen=True, slots=True)
class TableReport:
    """Everything about one table."""

    name: str
    opened_at: str
    schema_digest: str
    data_fingerprint: str
    declared: DeclaredTable | None
    budgets: tuple[tuple[str, Fraction], ...]  # each with the time from which it applied
    purchases: tuple[ReportedCharge, ...]
    n_measurements: int
    n_raised: int
    n_pending: int
    analysts: tuple[Account, ...]
    groups: tuple[Account, ...]
    months: tuple[Account, ...]
    allowances: tuple[LimitUse, ...]
    columns: tuple[ColumnCost, ...]
    found: TableVerdict | None
    shared_budget: str = ""  # the name of the budget, if tables share it
    spent_elsewhere: Fraction = Fraction(0)  # of a shared budget, by the other tables
    renewing: RenewingBudget | None = None  # what counts, if the budget renews
    units_accepted: int = 0  # the table's cost after changes were accepted last
    # When the data was replaced, and what each of the earlier generations had cost.
    generations: tuple[tuple[str, Fraction], ...] = ()

    @property
    def budget(self) -> Fraction:
        """The limit in force at the end."""
        return self.budgets[-1][1]

    @property
    def units_spent(self) -> int:
        """The table's cost as it was charged; it never falls, and accepted changes may raise it."""
        charged = self.purchases[-1].units_after if self.purchases else 0
        return max(charged, self.units_accepted)

    @property
    def spent(self) -> Fraction:
        """The table's cost as it was charged, in epsilon."""
        return of_units(self.units_spent)

    @property
    def left(self) -> Fraction:
        """What can still be spent: nothing if the budget was lowered below what is spent."""
        return max(Fraction(0), self.budget - self.counted)

    @property
    def counted(self) -> Fraction:
        """What counts towards the budget: all that was spent of it, or in the present window."""
        if self.renewing is not None:
            return self.renewing.spent
        return self.spent + self.spent_elsewhere

    @property
    def answers(self) -> AnswerCounts:
        """All answers that were given."""
        return sum((account.answers for account in self.analysts), AnswerCounts())


@dataclass(frozen=True, slots=True)
class LedgerReport:
    """The contents of a ledger, up to the first invalid entry.

    Parameters
    ----------
    as_of : str
        The time of the last valid entry; empty for an empty ledger.
    heads : tuple of SignedHead
        The signed heads that the ledger was compared with; the verdict reports differences.
    credentials : tuple of (Credential, str)
        Each credential that was issued, with its state at that time: in force, expired or revoked.
    """

    verdict: Verdict
    heads: tuple[SignedHead, ...]
    as_of: str
    tables: tuple[TableReport, ...]
    changes: tuple[RuleChange, ...]
    credentials: tuple[tuple[Credential, str], ...]
    collections: tuple[CollectionReport, ...] = ()
    streams: tuple[StreamReport, ...] = ()
