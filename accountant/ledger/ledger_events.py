"""What an owner says of a ledger itself: that a loss is accepted, that a clock was corrected.

    rollback_accepted  a ledger that lacks entries goes on; which were vouched for, which found
    clock_corrected    from here on another time holds, earlier or much later than before

Both are about no table. Values only, and the rules that need nothing but the place in the ledger.
Proof: proofs/ledger.md, "What an owner accepts", and proofs/gate.md, "Limits".
"""

from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class LedgerEnd:
    """Where a ledger ends: how many entries, the digest and the time of the last."""

    n_entries: int
    digest: str
    at: str


@dataclass(frozen=True, slots=True)
class RollbackAccepted:
    """The owner goes on with a ledger that lacks entries; what they spent is not known.

    Parameters
    ----------
    vouched_entries, vouched_digest : int and str, optional
        How far the ledger had come at least; None if nothing is left that could tell.
    found_entries, found_digest : int and str
        How far the ledger came that was found.
    by : str
        Who accepted it.
    """

    vouched_entries: int | None
    vouched_digest: str | None
    found_entries: int
    found_digest: str
    by: str

    def __post_init__(self) -> None:
        if (self.vouched_entries is None) != (self.vouched_digest is None):
            raise ValueError("a loss of half a position")

    def check_follows(self, end: LedgerEnd) -> None:
        """Raise ValueError unless it says rightly where the ledger ended."""
        if (self.found_entries, self.found_digest) != (end.n_entries, end.digest):
            raise ValueError("a rollback accepted of another ledger than it stands in")


@dataclass(frozen=True, slots=True)
class ClockCorrected:
    """The owner says that the clock is right now, whatever the entries before were stamped with.

    Parameters
    ----------
    was : str
        The time of the entry before.
    by : str
    """

    was: str
    by: str

    def check_follows(self, end: LedgerEnd) -> None:
        """Raise ValueError unless it says rightly what the time was."""
        if self.was != end.at:
            raise ValueError("a clock corrected from another time than that of the entry before")


EventBody: TypeAlias = RollbackAccepted | ClockCorrected
EVENTS: Final = (RollbackAccepted, ClockCorrected)
