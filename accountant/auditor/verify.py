"""Checking a ledger from its first entry to its last, or to the first that is wrong.

Everything is computed again from the text of the entries: the chain of digests, every sum, budget
and limit, the noise that each weight allows, and the cost of the rows for the most expensive cell
after every charge. None of the server's code for these is used (a test checks this), so that a
mistake there is not repeated here.

proofs/ledger.md proves what this shows, and says what it does not show. For auditors:
docs/auditing.md.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, TypeAlias

from accountant.auditor.bodies import Access, Body, Granted, Opened, Revoked, body_of
from accountant.auditor.book import Book
from accountant.auditor.chain import Chain, ClockCorrected, EventBody, Events, RollbackAccepted
from accountant.auditor.collections import (
    CollectionBody,
    CollectionClosed,
    CollectionOpened,
    Collections,
)
from accountant.auditor.fields import Wrong, parsed
from accountant.auditor.generations import Begun
from accountant.auditor.rows import BlockReader
from accountant.auditor.signed_head import Head, SignedHead
from accountant.auditor.streams import (
    StreamBody,
    StreamBook,
    StreamOpened,
)
from accountant.auditor.verdict import Verdict
from accountant.ledger.entries import Entry

PROBLEM_LENGTH_MAX: Final = 400  # characters
N_BETWEEN_REPORTS: Final = 256  # entries or charges between two calls of `watch`

Watch: TypeAlias = Callable[[str, int], None]  # called with what is being done, and how far


def verify(
    entries: Iterable[Entry],
    *,
    heads: Sequence[SignedHead] = (),
    watch: Watch | None = None,
    has_columns: bool = False,
) -> Verdict:
    """Check a ledger.

    Parameters
    ----------
    entries : iterable of Entry
        All entries of the ledger, in order.
    heads : sequence of SignedHead
        Heads of this ledger with checked signatures: it must still hold what each states.
    watch : callable, optional
        Called from time to time with what is being checked, and how far.
    has_columns : bool
        Whether to compute the cost along each column of each table, too.
    """
    audit = _Audit(watch or _watch_nothing)
    audit.read(entries)
    audit.compare(heads)
    audit.add_up()
    return audit.verdict(has_columns=has_columns)


class _Audit:
    """An audit in progress. `problem` is the first that is known, with its entry's number."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._chain = Chain()
        self._access = Access()
        self._events = Events()
        self._collections = Collections()
        self._blocks = BlockReader()
        self._books: dict[str, Book] = {}
        self._streams: dict[str, StreamBook] = {}
        self._times: list[str] = []
        self._problem: tuple[int, str] | None = None

    def read(self, entries: Iterable[Entry]) -> None:
        """Apply entries up to the first that cannot follow those before it."""
        for entry in entries:
            try:
                self._chain.check(entry)
                self._take(entry, body_of(entry.kind, parsed(entry.body), self._blocks))
            except Wrong as wrong:
                self._found(self._chain.n_entries + 1, str(wrong))
                return
            self._chain.add(entry)
            self._times.append(entry.at)
            if self._chain.n_entries % N_BETWEEN_REPORTS == 0:
                self._watch("entries", self._chain.n_entries)

    def compare(self, heads: Sequence[SignedHead]) -> None:
        """Compare with what signed heads state."""
        n_entries = self._chain.n_entries
        for head in (signed.head for signed in heads):
            if (accepted := self._lost(head)) is not None:
                gone = (
                    f"this ledger lacks some of the {head.n_entries} entries that were "
                    f"signed on {head.at}"
                )
                self._found(accepted, f"{gone}; its owner accepted the loss in this entry")
            elif head.n_entries > n_entries:
                missing = (
                    f"the end of the ledger is missing: a head with {head.n_entries} "
                    "entries was signed"
                )
                self._found(n_entries + 1, f"{missing} on {head.at}")
            elif head.digest != self._chain.digest_after(head.n_entries):
                rewritten = "the ledger was rewritten here or before: a different digest was signed"
                self._found(max(1, head.n_entries), f"{rewritten} on {head.at}")

    def _lost(self, head: Head) -> int | None:
        """The entry, if any, in which the owner accepted the loss of entries that a head states."""
        n_entries = head.n_entries
        if (
            n_entries <= self._chain.n_entries
            and self._chain.digest_after(n_entries) == head.digest
        ):
            return None
        covering = self._events.covering(n_entries)
        return None if covering is None else covering[0].seq

    def add_up(self) -> None:
        """Add up the cost of the rows, charge by charge; again, if fewer entries are valid now."""
        n_good = self._n_good + 1
        while self._n_good < n_good:
            n_good = self._n_good
            for table, book in sorted(self._books.items()):
                unpaid = book.add_up(n_good, partial(self._tell, table))
                if unpaid is not None:
                    self._found(*unpaid)

    def verdict(self, *, has_columns: bool) -> Verdict:
        """The verdict."""
        n_good = self._n_good
        books = [one for one in sorted(self._books.items()) if one[1].opened_by <= n_good]
        at = self._times[n_good - 1] if n_good else ""
        return Verdict(
            n_entries=n_good,
            head=self._chain.digest_after(n_good),
            at=at,
            tables=tuple(
                book.verdict(table, n_good, at, has_columns=has_columns) for table, book in books
            ),
            problem=None if self._problem is None else "entry {}: {}".format(*self._problem),
            notes=(
                *(note for table, book in books for note in book.notes(table)),
                *self._events.notes(n_good),
            ),
            warnings=tuple(self._events.warnings(n_good)),
            collections=self._collections.verdicts(n_good),
            streams=tuple(
                book.verdict(stream, n_good)
                for stream, book in sorted(self._streams.items())
                if book.opened_by <= n_good
            ),
        )

    @property
    def _n_good(self) -> int:
        """The number of entries before the first that is known to be wrong."""
        return self._chain.n_entries if self._problem is None else self._problem[0] - 1

    def _found(self, seq: int, problem: str) -> None:
        if self._problem is None or seq < self._problem[0]:
            is_long = len(problem) > PROBLEM_LENGTH_MAX  # it quotes what was forged
            self._problem = seq, f"{problem[:PROBLEM_LENGTH_MAX]} ..." if is_long else problem

    def _take(self, entry: Entry, body: Body) -> None:
        if isinstance(body, Granted | Revoked):
            if entry.table:
                raise Wrong("an entry that grants or revokes access must not name a table")
            self._access.take(body)
        elif isinstance(body, RollbackAccepted | ClockCorrected):
            self._take_event(entry, body)
        elif isinstance(body, CollectionOpened | CollectionClosed):
            self._take_collection(entry, body)
        elif isinstance(body, StreamBody):
            self._take_stream(entry, body)
        elif entry.table in self._books:
            if isinstance(body, Begun):
                shared = self._books[entry.table].shared_budget
                self._check_data(entry.table, body.data_fingerprint, shared)
            self._books[entry.table].take(entry, body, self._sharing(entry.table))
        elif not entry.table or not isinstance(body, Opened):
            raise Wrong(
                "a table needs a name, and must be opened once before any other entry about it"
            )
        else:
            self._open(entry, body)

    def _take_collection(self, entry: Entry, body: CollectionBody) -> None:
        if entry.table:
            raise Wrong("an entry about a collection must not name a table")
        taken = self._books.keys() | self._streams.keys()
        if isinstance(body, CollectionOpened) and body.name in taken:
            raise Wrong("the collection has the name of a table or a stream")
        self._collections.take(entry.seq, body)

    def _take_stream(self, entry: Entry, body: StreamBody) -> None:
        if not entry.table or entry.table in self._books:
            raise Wrong("the stream has no name, or has the name of a table")
        if entry.table in self._collections.names():
            raise Wrong("the stream has the name of a collection")
        if entry.table in self._streams:
            self._streams[entry.table].take(entry, body)
        elif isinstance(body, StreamOpened):
            self._streams[entry.table] = StreamBook(entry.seq, body)
        else:
            raise Wrong("a stream must be opened before any other entry about it")

    def _sharing(self, table: str) -> list[Book]:
        """The books of the other tables that spend from the budget that a table shares."""
        shared = self._books[table].shared_budget
        return [
            book
            for name, book in self._books.items()
            if shared and name != table and book.shared_budget == shared
        ]

    def _take_event(self, entry: Entry, body: EventBody) -> None:
        digest = self._chain.digest_after(self._chain.n_entries)
        self._events.take(entry, body, digest=digest, at=self._chain.at)
        if isinstance(body, ClockCorrected):
            for book in self._books.values():
                book.correct_clock(entry)

    def _open(self, entry: Entry, body: Opened) -> None:
        if entry.table in self._collections.names():
            raise Wrong("the table has the name of a collection")
        if entry.table in self._streams:
            raise Wrong("the table has the name of a stream")
        self._check_data(entry.table, body.data_fingerprint, body.shared_budget)
        self._books[entry.table] = Book(entry.seq, body)

    def _check_data(self, name: str, data: str, shared_budget: str) -> None:
        """Wrong if data has been that of another table with another budget, in any generation."""
        for table, book in self._books.items():
            is_shared = shared_budget and shared_budget == book.shared_budget
            if data in book.data_fingerprints and not is_shared and table != name:
                raise Wrong(
                    f"the data already belongs to {table}, a table with another name and budget"
                )

    def _tell(self, table: str, n_charges: int) -> None:
        if n_charges % N_BETWEEN_REPORTS == 0:
            self._watch(f"charges of {table}", n_charges)


def _watch_nothing(_what: str, _how_far: int) -> None:
    """Ignore progress."""
