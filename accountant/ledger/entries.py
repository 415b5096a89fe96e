"""The kinds of entry of a ledger, which are chained by their digests.

    table_opened    the schema and the data of a table, and its budget
    data_pinned     the rows that are read from its data, for a table that was opened before
                    table_opened recorded them
    table_declared  the public declaration of its columns, so that a reader can name the queries
    budget_set      the owner changed the budget
    horizon_advanced  more of a table that grows is readable, and what was read of it
    changes_accepted  closed rows of some periods are others now: what was measured of the earlier
                    ones is no history of these, and what it cost stays spent
    generation_begun  the data of a table that does not grow was replaced as a whole, under the
                    same budget. Nothing is known of the new rows, and the cost of earlier rows
                    still counts: a person may have had other rows in each generation, and has
                    paid for all of them. Here, too, is what a history keeps of those there were
    limit_set       the owner changed what an analyst or a group may spend
    charge          rows were paid for: by whom, which, at which weight, cost before and after;
                    a row that was measured before may be raised, and names that measurement;
                    statistics, which are not rows, are paid for in the same way; what has
                    Gaussian noise is paid for in rho, on terms that are the same for the table
    taken_over      another attempt is made to measure a charge; earlier ones no longer count
    measurement     the noisy values of the rows of one charge, and of its statistics
    served          how many answers were given, free and paid, and how wide they were
    access_granted, access_revoked   a credential was issued, or revoked
    rollback_accepted  about the ledger itself, by its owner: a ledger that lacks entries continues;
                    how many there were, how many are left
    clock_corrected    the same: from here on another time is valid, earlier or much later
    collection_opened, collection_closed   of randomised answers; see collections.py
    stream_opened, epoch_begun, epoch_released, visits_released, stream_dropped
                    about a stream, whose name stands where others have a table's; see streams.py

Those about access, collections and the ledger itself are about no table; their table is the empty
text. A ledger with an entry of any other kind is refused as a whole, not read in part.

Entries contain public things and released values only. Nothing here does input or output or knows
their text (entry_json.py). Whether entries agree with each other is checked in history/, but for
the rules that depend only on the place in the ledger. Proof: proofs/generations.md;
proofs/ledger.md, "What an owner accepts"; proofs/gate.md, "Limits".
"""

import hashlib
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Self, TypeAlias

from accountant.ledger.charged import (
    ChargedBlock,
    ChargedChoice,
    ChargedDistance,
    ChargedGaussian,
    ChargedStatistic,
    ChargedUnitCount,
)
from accountant.ledger.collections import CollectionBody
from accountant.ledger.credentials import Credential
from accountant.ledger.limits import NAME_LENGTH_MAX, Limit, Payer, Window
from accountant.ledger.streams import StreamBody
from cube.axis import N_LEVELS_MAX
from cube.encoding import canonical_json
from cube.measurement import GaussianTerms, PlannedMeasurement, Rho
from cube.query import QueryBlock
from cube.schema import N_ROWS_PER_UNIT_MAX, RowsByLevel


@dataclass(frozen=True, slots=True)
class GenerationBegun:
    """The data of a table is other data from now on; who said so.

    Parameters
    ----------
    data_fingerprint, rows_fingerprint : str
        The identity of the new data, and of the rows that are read from it.
    units_before : int
        What the table has spent until then, in units of 2**-40 epsilon. It stays spent.
    by : str
    """

    data_fingerprint: str
    rows_fingerprint: str
    units_before: int
    by: str

    def __post_init__(self) -> None:
        if not (self.data_fingerprint and self.rows_fingerprint):
            raise ValueError("the generation has no fingerprint of its data")


@dataclass(frozen=True, slots=True)
class Generations:
    """The generations of one table so far, the present one last.

    Parameters
    ----------
    data : tuple of str
        The fingerprint of the data of each generation.
    begun_at : tuple of str
        When each began: the first when the table was opened.
    units : int
        The units charged for rows of all generations but the present one.
    n_payments : int
        How many payments there were before the present one.
    ended_at : str
        For an earlier generation: when the next one began.
    """

    data: tuple[str, ...] = ()
    begun_at: tuple[str, ...] = ()
    units: int = 0
    n_payments: int = 0
    ended_at: str = ""

    @property
    def number(self) -> int:
        """The number of the present generation: 1 for a table that was never renewed."""
        return max(1, len(self.data))

    def corrected(self, at: str) -> Self:
        """With none that began later than `at`, as the clock was corrected."""
        if not self.begun_at or self.begun_at[-1] <= at:
            return self
        return replace(self, begun_at=tuple(min(one, at) for one in self.begun_at))

    def followed_by(self, data: str, at: str, units: int, n_payments: int) -> Self:
        """With one more, which begins after so much was charged for rows, in so many payments."""
        return replace(
            self,
            data=(*self.data, data),
            begun_at=(*self.begun_at, at),
            units=units,
            n_payments=n_payments,
        )


@dataclass(frozen=True, slots=True)
class LedgerEnd:
    """The end of a ledger: its number of entries, the digest and the time of the last."""

    n_entries: int
    digest: str
    at: str


@dataclass(frozen=True, slots=True)
class RollbackAccepted:
    """The owner continues with a ledger that lacks entries; what these spent is not known.

    Parameters
    ----------
    vouched_entries, vouched_digest : int and str, optional
        The least position that the ledger had reached; None if nothing is left to show it.
    found_entries, found_digest : int and str
        The position at which the remaining ledger ends.
    by : str
        Who accepted the loss.
    """

    vouched_entries: int | None
    vouched_digest: str | None
    found_entries: int
    found_digest: str
    by: str

    def __post_init__(self) -> None:
        if (self.vouched_entries is None) != (self.vouched_digest is None):
            raise ValueError("a position needs both a number of entries and a digest")

    def check_follows(self, end: LedgerEnd) -> None:
        """Raise ValueError unless it states correctly where the ledger ends."""
        if (self.found_entries, self.found_digest) != (end.n_entries, end.digest):
            raise ValueError(
                "the accepted rollback belongs to another ledger: it names another last entry"
            )


@dataclass(frozen=True, slots=True)
class ClockCorrected:
    """The owner confirms that the clock is right now, whatever the times of earlier entries.

    Parameters
    ----------
    was : str
        The time of the entry before.
    by : str
    """

    was: str
    by: str

    def check_follows(self, end: LedgerEnd) -> None:
        """Raise ValueError unless it states correctly the time of the entry before."""
        if self.was != end.at:
            raise ValueError("the clock must be corrected from the time of the entry before")


EventBody: TypeAlias = RollbackAccepted | ClockCorrected
EVENTS: Final = (RollbackAccepted, ClockCorrected)


_DIGEST: Final = re.compile("[0-9a-f]{64}", re.ASCII)
GENESIS: Final = "0" * 64  # the digest before the first entry
NO_TABLE: Final = ""  # of entries that are about no table

# Of the width given as a share of the width promised; the last bin is for broken promises.
# `Tally.widths` counts answers in (0, 1/4], (1/4, 1/2], (1/2, 3/4], (3/4, 1], (1, oo).
WIDTH_BINS: Final = (0.25, 0.5, 0.75, 1.0)


EPSILON_MAX: Final = 10**40  # of a budget or a limit: a number of this length is read at once


def check_epsilon(epsilon: Fraction) -> None:
    """Raise ValueError if a budget or a limit is too long to be computed with."""
    if epsilon > EPSILON_MAX:
        raise ValueError(f"epsilon must be at most {EPSILON_MAX}")


def check_budget_name(name: str) -> None:
    """Raise ValueError unless a shared budget may be called this."""
    if not 1 <= len(name) <= NAME_LENGTH_MAX or not name.isprintable() or name != name.strip():
        raise ValueError(f"a budget's name must have 1 to {NAME_LENGTH_MAX} printable characters")


@dataclass(frozen=True, slots=True)
class TableOpened:
    """A table entered the ledger.

    `data_fingerprint` is the identity of its data, whatever is read from it; `rows_fingerprint` is
    the identity of the rows read: None in an older ledger, until `DataPinned` records it.
    `rows_per_unit` is the most rows of a unit that are among them, and `rows_per_unit_by` the most
    at each level of an axis. Tables with the same `shared_budget` spend from one budget together;
    empty for a budget of its own. `grows` is the axis along which it grows; its rows are then known
    by their periods; `grows_levels` is how many levels it has. Empty if it does not grow. `renews`
    is the window in which the budget may be spent, and after which it is there anew. `holders` is
    the axis of the holders of a federated table: a unit has rows at one level of it, or at each as
    many as `rows_per_unit_by` says. Empty for another table, and for one that grows.
    """

    schema_digest: str
    data_fingerprint: str
    budget: Fraction
    rows_fingerprint: str | None = None
    rows_per_unit: int = 1
    shared_budget: str = ""
    grows: str = ""
    grows_levels: int = 0
    rows_per_unit_by: RowsByLevel | None = None
    renews: Window = Window.NEVER
    holders: str = ""

    def __post_init__(self) -> None:
        check_epsilon(self.budget)
        if not 1 <= self.rows_per_unit <= N_ROWS_PER_UNIT_MAX:
            raise ValueError(f"a unit must have 1 to {N_ROWS_PER_UNIT_MAX} rows")
        if bool(self.grows) != (1 <= self.grows_levels <= N_LEVELS_MAX):
            raise ValueError(
                f"a table that grows must have 1 to {N_LEVELS_MAX} levels to grow along, "
                "and another table none"
            )
        if self.shared_budget:
            check_budget_name(self.shared_budget)


@dataclass(frozen=True, slots=True)
class DataPinned:
    """The rows read from a table's data from now on, if its opening did not record them."""

    rows_fingerprint: str


@dataclass(frozen=True, slots=True)
class Period:
    """Levels of a growing table's axis that became readable together, and what was read of them.

    Parameters
    ----------
    start, end : int
        From the first level to before the second.
    rows_fingerprint : str
        A keyed digest of the rows of these levels.
    """

    start: int
    end: int
    rows_fingerprint: str

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end <= N_LEVELS_MAX:
            raise ValueError(
                f"a period must have at least one level, and end at level {N_LEVELS_MAX} at most"
            )


@dataclass(frozen=True, slots=True)
class HorizonAdvanced:
    """More of a table is readable from now on: the levels of these periods; who said so."""

    periods: tuple[Period, ...]
    by: str

    def __post_init__(self) -> None:
        if not self.periods:
            raise ValueError("a new horizon must add at least one period")


@dataclass(frozen=True, slots=True)
class ChangesAccepted:
    """The rows of some closed periods are others from now on; who said so.

    Parameters
    ----------
    periods : tuple of Period
        Each with the levels of a period of the table, and what is read of them now.
    weight_units : int
        The weight of the row that takes the place of all that was paid for these levels: the count
        of their rows. 0 if nothing was.
    units_before, units_after : int
        The table's spending before and after, in units of 2**-40 epsilon.
    by : str
    """

    periods: tuple[Period, ...]
    weight_units: int
    units_before: int
    units_after: int
    by: str

    def __post_init__(self) -> None:
        if not self.periods:
            raise ValueError("accepted changes must name at least one period")
        if self.weight_units < 0 or self.units_after < self.units_before:
            raise ValueError("accepted changes must not lower the spent total")


@dataclass(frozen=True, slots=True)
class TableDeclared:
    """The public declaration of a table as JSON text (`cube.encoding`); for readers only."""

    declaration: str


@dataclass(frozen=True, slots=True)
class BudgetSet:
    """The owner set another budget, or another window for it; what is spent stays spent."""

    budget: Fraction
    renews: Window = Window.NEVER

    def __post_init__(self) -> None:
        check_epsilon(self.budget)


@dataclass(frozen=True, slots=True)
class BudgetJoined:
    """The table spends from a budget that it shares, from now on; its own spending counts there."""

    shared_budget: str

    def __post_init__(self) -> None:
        check_budget_name(self.shared_budget)


@dataclass(frozen=True, slots=True)
class LimitSet:
    """The limit of a subject from now on, in total; and who set it."""

    limit: Limit
    by: str

    def __post_init__(self) -> None:
        for epsilon in (self.limit.epsilon, self.limit.per_query):
            if epsilon is not None:
                check_epsilon(epsilon)


@dataclass(frozen=True, slots=True)
class Charge:
    """A plan was paid for; it may be measured once.

    `terms` are given if anything has Gaussian noise, and only then. `reference` is the name under
    which another ledger asked for it, on a table that it has in federation; empty otherwise.
    """

    payer: Payer
    blocks: tuple[ChargedBlock, ...]
    units_before: int
    units_after: int
    statistics: tuple[ChargedStatistic, ...] = ()
    terms: GaussianTerms | None = None
    reference: str = ""

    def __post_init__(self) -> None:
        if self.reference:
            check_reference(self.reference)
        if (self.terms is not None) != self._is_gaussian:
            raise ValueError(
                "a charge must have terms if it pays for Gaussian noise, and must not otherwise"
            )

    @property
    def _is_gaussian(self) -> bool:
        return any(one.is_gaussian for one in self.blocks) or any(
            isinstance(one, ChargedGaussian) for one in self.statistics
        )

    @property
    def costing(self) -> tuple[PlannedMeasurement, ...]:
        """Rows with the same cost for every cell as the distances and choices."""
        return tuple(
            one.costing
            for one in self.statistics
            if isinstance(one, ChargedDistance | ChargedChoice)
        )

    @property
    def unit_counts(self) -> tuple[ChargedUnitCount, ...]:
        """The counts of units among the statistics."""
        return tuple(one for one in self.statistics if isinstance(one, ChargedUnitCount))

    @property
    def rhos(self) -> tuple[tuple[QueryBlock, Rho], ...]:
        """The rows and the rho of each of its statistics with Gaussian noise."""
        gaussian = (one for one in self.statistics if isinstance(one, ChargedGaussian))
        return tuple((one.statistic.block, one.rho) for one in gaussian)


REFERENCE_LENGTH_MAX: Final = 100


def check_reference(reference: str) -> None:
    """Raise ValueError unless another ledger may ask for a charge by this name."""
    if len(reference) > REFERENCE_LENGTH_MAX or not reference.isprintable() or not reference:
        raise ValueError(f"a reference must have 1 to {REFERENCE_LENGTH_MAX} printable characters")


@dataclass(frozen=True, slots=True)
class HolderReceipt:
    """Where a holder's ledger records what it charged and measured for another ledger.

    Parameters
    ----------
    entry : int
        The number of the holder's charge.
    head_entry, head : int and str
        The number and the digest of an entry after the measurement: the head when it answered.
    """

    entry: int
    head_entry: int
    head: str

    def __post_init__(self) -> None:
        if not 1 <= self.entry < self.head_entry or _DIGEST.fullmatch(self.head) is None:
            raise ValueError("a receipt must name a charge, and a later entry with its digest")


@dataclass(frozen=True, slots=True)
class TakenOver:
    """A new turn to measure the charge with sequence number `charge`: this entry's number."""

    charge: int


@dataclass(frozen=True, slots=True)
class Measured:
    """The noisy values of the charge with sequence number `charge`, in lattice steps.

    They were drawn in the latest turn: 0 for the process that charged, or the number of a
    `TakenOver`. `released` are the released numbers of the charge's statistics, one after another:
    lattice steps, one for each row where there are rows, or a candidate's place. A holder of a
    federated table drew the values itself, and gave a `receipt`.
    """

    charge: int
    lattice_values: tuple[tuple[int, ...], ...]
    turn: int = 0
    released: tuple[int, ...] = ()
    receipt: HolderReceipt | None = None


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The charge with sequence number `charge` will never be measured; it stays spent.

    A holder of a federated table refused it, and has charged nothing.
    """

    charge: int


@dataclass(frozen=True, slots=True)
class Tally:
    """The answers that one analyst was given in one stretch of time.

    Parameters
    ----------
    analyst : str
    n_free, n_paid : int
        Answers from history alone; answers for which something was charged.
    plain_units_free, plain_units_paid : int
        What plain Laplace noise would have cost for the same accuracy, for free and for paid
        answers, in units of 2**-40 epsilon.
    widths : tuple of int
        The number of answers by their share of the promised width; see `WIDTH_BINS`.
    """

    analyst: str
    n_free: int
    n_paid: int
    plain_units_free: int
    plain_units_paid: int
    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        numbers = (self.n_free, self.n_paid, self.plain_units_free, self.plain_units_paid)
        if min(numbers + self.widths) < 0 or len(self.widths) != len(WIDTH_BINS) + 1:
            raise ValueError(
                "the tally has a negative number of answers or the wrong number of widths"
            )


@dataclass(frozen=True, slots=True)
class Served:
    """The answers given since a moment, for reports. Nothing depends on it."""

    since: str
    tallies: tuple[Tally, ...]


@dataclass(frozen=True, slots=True)
class AccessGranted:
    """A credential was issued."""

    credential: Credential
    by: str


@dataclass(frozen=True, slots=True)
class AccessRevoked:
    """A credential gives no access from now on."""

    credential_id: str
    by: str


AccessBody: TypeAlias = AccessGranted | AccessRevoked
RuleBody: TypeAlias = (
    TableOpened | DataPinned | TableDeclared | BudgetSet | BudgetJoined | HorizonAdvanced | LimitSet
)
SimpleBody: TypeAlias = RuleBody | Charge | TakenOver | Measured | GivenUp | Served
RewritingBody: TypeAlias = ChangesAccepted | GenerationBegun  # see history/changed_rows.py
TableBody: TypeAlias = SimpleBody | RewritingBody
Body: TypeAlias = TableBody | AccessBody | EventBody | CollectionBody | StreamBody


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger.

    Parameters
    ----------
    seq : int
        The entry's number: 1, 2, 3, ... without gaps.
    at : str
        Its time, as UTC text; never earlier than the entry before. Windows of limits use it.
    kind, table, body : str
        Its content, and the table it is about; `body` is canonical JSON.
    digest : str
        The digest of the previous digest and all the fields: a changed entry breaks the chain.
    """

    seq: int
    at: str
    kind: str
    table: str
    body: str
    digest: str

    def follows(self, previous_digest: str) -> bool:
        """Whether the digest is right, after `previous_digest`."""
        fields = (self.seq, self.at, self.kind, self.table, self.body)
        return self.digest == chained_digest(previous_digest, fields)


def chained_digest(previous: str, fields: tuple[int, str, str, str, str]) -> str:
    """SHA-256 over the digest before and an entry's fields in order, as hexadecimal text."""
    text = canonical_json([previous, *fields])
    return hashlib.sha256(text.encode()).hexdigest()
