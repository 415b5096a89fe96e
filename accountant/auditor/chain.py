"""Checks the chain of entries: unbroken unless the owner accepted a loss, with times in order.

Numbers have no gaps, and digests cover all entries before. An entry's digest is the SHA-256 of a
JSON list: the digest before it (64 zeros before the first), its number, time, kind, table and body.
A change anywhere changes every digest after it. proofs/ledger.md explains what the chain cannot
show, and signed heads can.

The owner may state two things about the ledger itself. An accepted loss must state correctly where
the remaining ledger ended. What it states about the lost entries cannot be checked, and the verdict
warns of it: they are in no sum. A corrected clock is the only reason for which an entry may be
earlier than the one before. Proof: proofs/ledger.md, "What an owner accepts".
"""

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from accountant.auditor.fields import Json, Wrong, check_moment, fields_of, optional, text, whole
from accountant.ledger.entries import GENESIS, Entry

CLOCK_CORRECTED: Final = "clock_corrected"  # the only kind of entry with which time may go back


@dataclass(slots=True)
class Chain:
    """The entries found valid so far.

    Parameters
    ----------
    digests : list of str
        One for each valid entry, in order.
    at : str
        The time of the last entry.
    """

    digests: list[str] = field(default_factory=list)
    at: str = ""

    @property
    def n_entries(self) -> int:
        """The number of valid entries."""
        return len(self.digests)

    def digest_after(self, n_entries: int) -> str:
        """The digest of the chain when it had this many entries."""
        return self.digests[n_entries - 1] if n_entries else GENESIS

    def check(self, entry: Entry) -> None:
        """Raise Wrong unless the entry is the next of the chain, unchanged."""
        place = self.n_entries + 1
        if type(entry.seq) is not int or entry.seq != place:
            raise Wrong(f"the entry found in its place has number {entry.seq!r}")
        texts = (entry.at, entry.kind, entry.table, entry.body, entry.digest)
        if any(type(one) is not str for one in texts):
            raise Wrong("one of its fields is not text")
        if entry.digest != self._linked(entry):
            raise Wrong("its digest does not match its content and the entries before it")
        check_moment(entry.at, "its time")
        if entry.at < self.at and entry.kind != CLOCK_CORRECTED:
            raise Wrong(f"its time {entry.at} is earlier than the time of the entry before it")

    def add(self, entry: Entry) -> None:
        """Append the entry, once everything about it is found valid."""
        self.digests.append(entry.digest)
        self.at = entry.at

    def _linked(self, entry: Entry) -> str:
        before = self.digest_after(self.n_entries)
        linked = [before, entry.seq, entry.at, entry.kind, entry.table, entry.body]
        written = json.dumps(linked, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(written.encode("ascii")).hexdigest()


_DIGEST: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class RollbackAccepted:
    """A ledger of `found` entries continues, of the `vouched` it had; None if that is unknown."""

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
    """From here on the time is not the time of the entry before."""

    was: str
    by: str


EventBody: TypeAlias = RollbackAccepted | ClockCorrected


def read_rollback(value: Json) -> RollbackAccepted:
    """The body of a `rollback_accepted`."""
    names = ("vouched_entries", "vouched_digest", "found_entries", "found_digest", "by")
    fields = fields_of(value, names)
    vouched = optional(fields, "vouched_entries", whole)
    vouched_digest = optional(fields, "vouched_digest", text)
    if (vouched is None) != (vouched_digest is None):
        raise Wrong("vouched entries and their digest must be given together")
    found_digest = text(fields, "found_digest")
    for one in (vouched_digest, found_digest):
        if one is not None and not _DIGEST.fullmatch(one):
            raise Wrong("a digest is not 64 hexadecimal digits")
    found = whole(fields, "found_entries")
    return RollbackAccepted(vouched, vouched_digest, found, found_digest, text(fields, "by"))


def read_clock(value: Json) -> ClockCorrected:
    """The body of a `clock_corrected`."""
    fields = fields_of(value, ("was", "by"))
    was = text(fields, "was")
    if was:  # empty if there was no entry before
        check_moment(was, "was")
    return ClockCorrected(was, text(fields, "by"))


@dataclass(slots=True)
class Events:
    """The events of one ledger, each with its entry."""

    rollbacks: list[tuple[Entry, RollbackAccepted]] = field(default_factory=list)
    clocks: list[tuple[Entry, ClockCorrected]] = field(default_factory=list)

    def take(self, entry: Entry, body: EventBody, *, digest: str, at: str) -> None:
        """Apply an entry that follows a digest and a time; Wrong if it states them differently."""
        if entry.table:
            raise Wrong("an entry about the ledger itself must not name a table")
        if isinstance(body, ClockCorrected):
            if body.was != at:
                raise Wrong(
                    f"the clock was corrected from {body.was!r}, but the entry before has "
                    f"the time {at!r}"
                )
            self.clocks.append((entry, body))
        else:
            if (body.found, body.found_digest) != (entry.seq - 1, digest):
                raise Wrong(
                    "the accepted rollback belongs to another ledger: it names another last entry"
                )
            self.rollbacks.append((entry, body))

    def covering(self, n_entries: int) -> tuple[Entry, RollbackAccepted] | None:
        """The first accepted loss that may include entry `n_entries`."""
        return next((one for one in self.rollbacks if one[1].covers(n_entries)), None)

    def warnings(self, n_good: int) -> list[str]:
        """Warnings that every reader of the first entries must know before they rely on a sum."""
        warnings = []
        for entry, body in self.rollbacks:
            if entry.seq <= n_good:
                warnings.append(
                    f"entry {entry.seq}: the ledger was set back, and {body.by} "
                    f"accepted this on {entry.at}: {_lost(body)}. Spending in the lost "
                    "entries is unknown and missing from every sum here, so this "
                    "ledger does not prove that the budgets were kept"
                )
        return warnings

    def notes(self, n_good: int) -> list[str]:
        """Notes on the times of entries, for readers."""
        return [
            f"entry {entry.seq}: {body.by} corrected the clock from {body.was} to "
            f"{entry.at}; charges made at later times count at that time"
            for entry, body in self.clocks
            if entry.seq <= n_good
        ]


def _lost(body: RollbackAccepted) -> str:
    if body.vouched is None:
        return f"{body.found} entries were found; how many there were before is unknown"
    return f"{body.vouched} entries were vouched for, but {body.found} were found"
