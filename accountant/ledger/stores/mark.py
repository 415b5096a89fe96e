"""The mark of a ledger: the position that it has reached, in a small file next to its key.

A chain of digests cannot show that entries at its end are missing. The mark can: it is written
after every commit and before the commit is reported, so a ledger that has fewer entries than its
mark, or another entry there, has lost or changed entries.

The file has two slots, each with a checksum. Only the older one is ever overwritten, in place, so
that a torn write leaves the other; the slot with the higher serial number counts. The writer holds
a lock on the file, so that no process sets back the mark that another wrote.

Of a store whose ledger has a mark, no commit counts before the mark records it:

    transaction begins -> the mark is found in it -> entries -> commit -> mark -> return to caller

A crash can leave the mark behind the ledger, which is harmless, but never ahead of it. So if the
mark is not found in the ledger, entries were lost: then nothing is written.

Proof: proofs/ledger.md, "The mark".
"""

import contextlib
import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from accountant.ledger.entries import GENESIS, Entry
from accountant.ledger.stores import durable_file
from accountant.ledger.stores.store import Appender, Store
from cube.refusals import LedgerLost, LedgerUnavailable

SLOT_BYTES: Final = 512  # one sector: disks write it as a whole; if not, the checksum shows it
N_SLOTS: Final = 2
_SLOT: Final = re.compile(rb"(tacit-mark-1 (\d+) (\d+) ([0-9a-f]{64})) ([0-9a-f]{64}) *\n")


@dataclass(frozen=True, slots=True)
class Position:
    """The number of entries of a ledger, and the digest of the last."""

    n_entries: int
    digest: str


@dataclass(frozen=True, slots=True)
class _Slot:
    serial: int
    position: Position

    def to_bytes(self) -> bytes:
        where = self.position
        text = f"tacit-mark-1 {self.serial} {where.n_entries} {where.digest}".encode()
        checked = text + b" " + hashlib.sha256(text).hexdigest().encode()
        return checked.ljust(SLOT_BYTES - 1) + b"\n"

    @classmethod
    def parse(cls, content: bytes) -> "_Slot | None":
        """The slot; None if it was torn or never written."""
        found = _SLOT.fullmatch(content)
        if found is None or hashlib.sha256(found[1]).hexdigest().encode() != found[5]:
            return None
        return cls(int(found[2]), Position(int(found[3]), found[4].decode()))


def mark_beside(key: Path) -> Path:
    """The path of the mark of the ledger with a key: next to the key.

    >>> mark_beside(Path("people.ledger.key")).name
    'people.ledger.mark'
    """
    return key.with_name(key.name.removesuffix(".key") + ".mark")


class MarkFile:
    """The mark in a file. Every method may be called by any thread of any process.

    Parameters
    ----------
    path : Path
        The file of the mark, which need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        """Whether the file exists, valid or not."""
        return self.path.exists()

    def make(self, position: Position) -> None:
        """Create the file, durably, unless it exists."""
        first = _Slot(0, position).to_bytes()
        durable_file.write_once(self.path, first.ljust(N_SLOTS * SLOT_BYTES))

    def read(self) -> Position:
        """The position that the mark records.

        Raises
        ------
        LedgerUnavailable
            If the file cannot be read at present.
        LedgerLost
            If it is missing, or damaged.
        """
        with self._opened(os.O_RDONLY) as descriptor:
            return self._newest(descriptor).position

    def advance(self, position: Position) -> None:
        """Record the ledger's position durably; a mark that is further stays as it is.

        Raises
        ------
        LedgerUnavailable
            If it cannot be written; then the commit of this position does not count as durable.
        LedgerLost
            If the mark has another digest for the same number of entries.
        """
        with self._locked() as descriptor:
            newest = self._newest(descriptor)
            if newest.position.n_entries < position.n_entries:
                self._write(descriptor, _Slot(newest.serial + 1, position))
            elif newest.position.n_entries == position.n_entries and newest.position != position:
                raise lost(
                    f"has another entry {position.n_entries} than {self.path.name} vouches for"
                )

    def probe(self) -> None:
        """Write the present position again, to test whether writing is possible."""
        with self._locked() as descriptor:
            newest = self._newest(descriptor)
            self._write(descriptor, _Slot(newest.serial + 1, newest.position))

    def give_up(self, position: Position) -> None:
        """Set another position, perhaps an earlier one, or recreate the file, after a loss."""
        self.make(position)
        with self._locked() as descriptor:
            serials = [slot.serial for slot in _slots(descriptor)]
            self._write(descriptor, _Slot(max(serials, default=0) + 1, position))

    def _newest(self, descriptor: int) -> _Slot:
        slots = _slots(descriptor)
        if not slots:
            raise lost(f"cannot be checked: its mark {self.path.name} is damaged")
        return max(slots, key=lambda slot: slot.serial)

    def _write(self, descriptor: int, slot: _Slot) -> None:
        os.pwrite(descriptor, slot.to_bytes(), slot.serial % N_SLOTS * SLOT_BYTES)
        durable_file.sync_content(descriptor)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        with self._opened(os.O_RDWR) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # until it is closed
            yield descriptor

    @contextlib.contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        try:
            descriptor = os.open(self.path, flags | os.O_CLOEXEC)
        except FileNotFoundError:
            raise lost(f"cannot be checked: its mark {self.path.name} is missing") from None
        except OSError as error:
            raise self._unavailable(error) from None
        try:
            yield descriptor
        except OSError as error:
            raise self._unavailable(error) from None
        finally:
            os.close(descriptor)

    def _unavailable(self, error: OSError) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"The ledger cannot be used at the moment: its mark {self.path.name} "
            f"cannot be written or read ({error.strerror}).",
            hint="Nothing can be charged until the server's owner has repaired its disk. "
            "Queries that the history can answer still work, and are free.",
        )


def lost(why: str) -> LedgerLost:
    """The refusal of a ledger that does not agree with its mark."""
    return LedgerLost(
        f"The ledger {why}.",
        hint="The server's owner has to restore the ledger. If it cannot be restored, "
        "`tacit audit accept-rollback` accepts that later spending is unknown.",
    )


def _slots(descriptor: int) -> list[_Slot]:
    content = os.pread(descriptor, N_SLOTS * SLOT_BYTES, 0)
    pieces = (content[at : at + SLOT_BYTES] for at in range(0, len(content), SLOT_BYTES))
    return [slot for piece in pieces if (slot := _Slot.parse(piece)) is not None]


EntriesAfter = Callable[[int], Iterator[Entry]]


class MarkedStore:
    """A `Store` that keeps a mark of another store.

    Parameters
    ----------
    store : Store
    mark : MarkFile
        The mark, which is updated from `begin` on.
    """

    def __init__(self, store: Store, mark: MarkFile) -> None:
        self.name = store.name
        self._store = store
        self._mark = mark
        self._found: Position | None = None  # the latest mark that is known to be in the ledger
        self._is_kept = False

    def begin(self, position: Position) -> None:
        """Keep the mark from now on; it also covers what was read before.

        Raises
        ------
        LedgerLost
            If the ledger does not hold what its mark vouches for.
        """
        self._check(self._store.entries_after)
        self._is_kept = True
        self._vouch(position)

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """Every durable entry with a higher number, in order. Waits for no writer.

        The iteration ends only once the mark covers the entries, too: another process may have been
        killed between its commit and the mark.
        """
        last = None
        for entry in self._store.entries_after(seq):
            last = entry
            yield entry
        if last is not None and self._is_kept:
            position = Position(last.seq, last.digest)
            if position != self._found:
                self._check(self._store.entries_after)
            self._vouch(position)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Appender]:
        """A transaction; what was inserted is durable, and marked, once it is left."""
        with self._store.writing() as appender:
            self._check(appender.entries_after)
            noted = _Appender(appender)
            yield noted
        if noted.last is not None:
            self._vouch(noted.last)

    def probe(self) -> None:
        """Write something that is not an entry, durably, to test whether writing is possible."""
        self._check(self._store.entries_after)
        self._store.probe()
        self._mark.probe()

    def close(self) -> None:
        """Close everything. Closing twice does no harm."""
        self._store.close()

    def _vouch(self, position: Position) -> None:
        if position != self._found:
            self._mark.advance(position)
            self._found = position

    def _check(self, entries_after: EntriesAfter) -> None:
        marked = self._mark.read()
        if marked == self._found:
            return
        if not holds(entries_after, marked):
            raise lost(
                f"does not hold the {marked.n_entries} entries that {self._mark.path.name} "
                "vouches for: it was set back"
            )
        self._found = marked


class _Appender:
    """An open transaction that tracks the position of its last entry."""

    def __init__(self, appender: Appender) -> None:
        self._appender = appender
        self.last: Position | None = None

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """Entries with a higher number, in order, as this transaction sees them."""
        for entry in self._appender.entries_after(seq):
            self.last = Position(entry.seq, entry.digest)
            yield entry

    def insert(self, entries: Iterable[Entry]) -> None:
        """Append entries; they count once they are committed and marked."""
        added = list(entries)
        self._appender.insert(added)
        if added:
            self.last = Position(added[-1].seq, added[-1].digest)


def holds(entries_after: EntriesAfter, position: Position) -> bool:
    """Whether a ledger contains a position: its digest stands for all the entries before it."""
    if not position.n_entries:
        return position.digest == GENESIS
    entry = next(entries_after(position.n_entries - 1), None)
    return entry is not None and entry.seq == position.n_entries and entry.digest == position.digest
