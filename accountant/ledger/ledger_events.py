"""An owner's statements about the ledger itself: a loss is accepted, or a clock was corrected.

    rollback_accepted  a ledger that lacks entries continues; how many there were, how many are left
    clock_corrected    from here on another time is valid, earlier or much later than before

Both are about no table. Values only, and the rules that depend only on the place in the ledger.
Proof: proofs/ledger.md, "What an owner accepts", and proofs/gate.md, "Limits".
"""

from dataclasses import dataclass
from typing import Final, TypeAlias


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
        Who accepted it.
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
            raise ValueError("a rollback accepted of another ledger than it stands in")


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
            raise ValueError("a clock corrected from another time than that of the entry before")


EventBody: TypeAlias = RollbackAccepted | ClockCorrected
EVENTS: Final = (RollbackAccepted, ClockCorrected)
