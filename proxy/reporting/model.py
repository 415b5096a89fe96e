"""The audit report as values: everything a page, a JSON object or a line of CSV is written from.

Amounts are exact: whole units of 2**-40 epsilon, or fractions where an owner may name any. Frozen;
made in one pass by reading.py. Nothing here knows how a report looks.
"""

from dataclasses import dataclass
from fractions import Fraction

from accountant.auditor.columns import ColumnCost
from accountant.auditor.signed_head import SignedHead
from accountant.auditor.verdict import TableVerdict, Verdict
from accountant.ledger.credentials import Credential
from accountant.ledger.entries import WIDTH_BINS
from accountant.ledger.limits import Limit, Payer, Subject
from proxy.reporting.amounts import of_units
from proxy.reporting.declared import DeclaredTable


@dataclass(frozen=True, slots=True)
class ReportedCharge:
    """One charge: who paid, for how much, and the table's cost before and after.

    It counts as of `counted_at`, which is earlier than `at` if a clock was corrected since.
    """

    seq: int
    at: str
    payer: Payer
    n_blocks: int
    n_statistics: int
    units_before: int
    units_after: int
    counted_at: str

    @property
    def units(self) -> int:
        """What it added."""
        return self.units_after - self.units_before


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """Answers that were given, and what plain Laplace would have cost for the same.

    Parameters
    ----------
    n_free, n_paid : int
    plain_units_free, plain_units_paid : int
        One by one, each at the accuracy that was asked for, in units of 2**-40 epsilon.
    widths : tuple of int
        How many got which share of the width that was promised
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
        """All of them."""
        return self.n_free + self.n_paid

    @property
    def plain_free(self) -> Fraction:
        """What plain Laplace would have cost for the free ones, in epsilon."""
        return of_units(self.plain_units_free)

    @property
    def plain_paid(self) -> Fraction:
        """What plain Laplace would have cost for the others, in epsilon."""
        return of_units(self.plain_units_paid)

    @property
    def plain(self) -> Fraction:
        """What plain Laplace would have cost for all of them, in epsilon."""
        return self.plain_free + self.plain_paid


@dataclass(frozen=True, slots=True)
class Account:
    """What one analyst, one group or one month stands for."""

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
    """A limit in force at the end, and who has used how much of it in the window then open.

    `used` is empty for a limit on somebody who never paid.
    """

    limit: Limit
    used: tuple[tuple[Subject, Fraction], ...]


@dataclass(frozen=True, slots=True)
class RuleChange:
    """One entry that is about rules: what may be spent, who may come in."""

    seq: int
    at: str
    table: str
    kind: str
    subject: str
    detail: str
    by: str


@dataclass(frozen=True, slots=True)
class TableReport:
    """Everything about one table."""

    name: str
    opened_at: str
    schema_digest: str
    data_fingerprint: str
    declared: DeclaredTable | None
    budgets: tuple[tuple[str, Fraction], ...]  # each, and since when
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

    @property
    def budget(self) -> Fraction:
        """The limit in force at the end."""
        return self.budgets[-1][1]

    @property
    def units_spent(self) -> int:
        """The table's cost as it was charged."""
        return self.purchases[-1].units_after if self.purchases else 0

    @property
    def spent(self) -> Fraction:
        """The table's cost as it was charged, in epsilon."""
        return of_units(self.units_spent)

    @property
    def left(self) -> Fraction:
        """What may still be spent: nothing, where the budget was lowered below what is spent."""
        return max(Fraction(0), self.budget - self.spent)

    @property
    def answers(self) -> AnswerCounts:
        """All that were given."""
        return sum((account.answers for account in self.analysts), AnswerCounts())


@dataclass(frozen=True, slots=True)
class LedgerReport:
    """Everything a ledger says, up to the first entry that is wrong.

    Parameters
    ----------
    as_of : str
        The time of the last good entry; empty for an empty ledger.
    heads : tuple of SignedHead
        What the ledger was compared with; where it differs, the verdict says so.
    credentials : tuple of (Credential, str)
        Each that was issued, with its state as of then: in force, expired or revoked.
    """

    verdict: Verdict
    heads: tuple[SignedHead, ...]
    as_of: str
    tables: tuple[TableReport, ...]
    changes: tuple[RuleChange, ...]
    credentials: tuple[tuple[Credential, str], ...]
