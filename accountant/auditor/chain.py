"""The chain: numbers without gaps, digests that cover all entries before, times that never go back.

An entry's digest is the SHA-256 of a JSON list: the digest before it (64 zeros before the first),
its number, time, kind, table and body. A change anywhere changes every digest after it.

proofs/ledger.md explains what the chain cannot show, and signed heads can.
"""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Final

from accountant.auditor.fields import check_moment
from accountant.auditor.wrong import Wrong
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
        The time of the last.
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
            raise Wrong(f"number {entry.seq!r} stands in its place")
        texts = (entry.at, entry.kind, entry.table, entry.body, entry.digest)
        if any(type(one) is not str for one in texts):
            raise Wrong("something in it is no text")
        if entry.digest != self._linked(entry):
            raise Wrong("its digest does not match its content and the entries before it")
        check_moment(entry.at, "its time")
        if entry.at < self.at and entry.kind != CLOCK_CORRECTED:
            raise Wrong(f"it is of {entry.at}, earlier than the entry before it")

    def add(self, entry: Entry) -> None:
        """Append the entry, once everything about it is found valid."""
        self.digests.append(entry.digest)
        self.at = entry.at

    def _linked(self, entry: Entry) -> str:
        before = self.digest_after(self.n_entries)
        linked = [before, entry.seq, entry.at, entry.kind, entry.table, entry.body]
        written = json.dumps(linked, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(written.encode("ascii")).hexdigest()
