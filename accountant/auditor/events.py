"""What the owner said of the ledger itself: losses that he accepted, and clocks that he corrected.

An accepted loss must say rightly where the ledger ended that was found. What it says of the entries
that are gone is the owner's word, and is told to whoever reads the verdict: no sum has them. A
corrected clock is the one reason for an entry to be earlier than the one before.
Proof: proofs/ledger.md, "What an owner accepts".
"""

import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from accountant.auditor.fields import Json, check_moment, fields_of, optional, text, whole
from accountant.auditor.wrong import Wrong
from accountant.ledger.entries import Entry

_DIGEST: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class RollbackAccepted:
    """A ledger of `found` entries goes on, though `vouched` were vouched for; None: unknown."""

    vouched: int | None
    vouched_digest: str | None
    found: int
    found_digest: str
    by: str

    def covers(self, n_entries: int) -> bool:
        """Whether the owner accepted that an entry with this number may be gone."""
        return self.found < n_entries and (self.vouched is None or n_entries <= self.vouched)


@dataclass(frozen=True, slots=True)
class ClockCorrected:
    """From here on another time holds than that of the entry before."""

    was: str
    by: str


EventBody: TypeAlias = RollbackAccepted | ClockCorrected


def read_rollback(value: Json) -> RollbackAccepted:
    """What the body of a `rollback_accepted` says."""
    names = ("vouched_entries", "vouched_digest", "found_entries", "found_digest", "by")
    fields = fields_of(value, names)
    vouched = optional(fields, "vouched_entries", whole)
    vouched_digest = optional(fields, "vouched_digest", text)
    if (vouched is None) != (vouched_digest is None):
        raise Wrong("entries vouched for without a digest, or the other way round")
    found_digest = text(fields, "found_digest")
    for one in (vouched_digest, found_digest):
        if one is not None and not _DIGEST.fullmatch(one):
            raise Wrong("a digest that is not 64 hexadecimal digits")
    found = whole(fields, "found_entries")
    return RollbackAccepted(vouched, vouched_digest, found, found_digest, text(fields, "by"))


def read_clock(value: Json) -> ClockCorrected:
    """What the body of a `clock_corrected` says."""
    fields = fields_of(value, ("was", "by"))
    was = text(fields, "was")
    if was:  # there was no entry before, else
        check_moment(was, "was")
    return ClockCorrected(was, text(fields, "by"))


@dataclass(slots=True)
class Events:
    """Those of one ledger, each with its entry."""

    rollbacks: list[tuple[Entry, RollbackAccepted]] = field(default_factory=list)
    clocks: list[tuple[Entry, ClockCorrected]] = field(default_factory=list)

    def take(self, entry: Entry, body: EventBody, *, digest: str, at: str) -> None:
        """Take in an entry behind one of a digest and a time; Wrong if it says them otherwise."""
        if entry.table:
            raise Wrong("an entry about the ledger itself that names a table")
        if isinstance(body, ClockCorrected):
            if body.was != at:
                raise Wrong(f"a clock corrected from {body.was!r}, and the entry before has {at!r}")
            self.clocks.append((entry, body))
        else:
            if (body.found, body.found_digest) != (entry.seq - 1, digest):
                raise Wrong("a rollback accepted of another ledger than it stands in")
            self.rollbacks.append((entry, body))

    def covering(self, n_entries: int) -> tuple[Entry, RollbackAccepted] | None:
        """The first accepted loss that entry `n_entries` may have been among."""
        return next((one for one in self.rollbacks if one[1].covers(n_entries)), None)

    def warnings(self, n_good: int) -> list[str]:
        """What every reader of the first entries must know before he believes a sum."""
        told = []
        for entry, body in self.rollbacks:
            if entry.seq <= n_good:
                told.append(
                    f"entry {entry.seq}: the ledger was set back, and {body.by} accepted it on "
                    f"{entry.at}: {_lost(body)}. What was spent in entries that are gone is not "
                    "known, and in no sum here: this ledger does not prove that the budgets were "
                    "kept"
                )
        return told

    def notes(self, n_good: int) -> list[str]:
        """What should be known of the times of entries."""
        return [
            f"entry {entry.seq}: the clock was corrected by {body.by}, from {body.was} to "
            f"{entry.at}; what was charged at later times counts as of then"
            for entry, body in self.clocks
            if entry.seq <= n_good
        ]


def _lost(body: RollbackAccepted) -> str:
    if body.vouched is None:
        return f"{body.found} entries were found, and nothing tells how many there had been"
    return f"{body.vouched} entries were vouched for, and {body.found} found"
