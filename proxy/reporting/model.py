"""The audit report as values, from which a page, a JSON object or CSV lines are written.

Amounts are exact: whole units of 2**-40 epsilon, or fractions where an owner may give any number.
Frozen; made in one pass by reading.py. Nothing here knows how a report looks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from accountant.auditor.columns import ColumnCost
from accountant.auditor.signed_head import SignedHead
from accountant.auditor.verdict import TableVerdict, Verdict
from accountant.ledger.credentials import Credential
from accountant.ledger.entries import WIDTH_BINS
from accountant.ledger.limits import Limit, Payer, Subject
from proxy.reporting.amounts import of_units
from proxy.reporting.declared import DeclaredTable
from proxy.reporting.own_tables import CollectionReport, StreamReport


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
    n_free, n_paid : int
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
    window : str
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
    collections : tuple of CollectionReport
    streams : tuple of StreamReport
    """

    verdict: Verdict
    heads: tuple[SignedHead, ...]
    as_of: str
    tables: tuple[TableReport, ...]
    changes: tuple[RuleChange, ...]
    credentials: tuple[tuple[Credential, str], ...]
    collections: tuple[CollectionReport, ...] = ()
    streams: tuple[StreamReport, ...] = ()
