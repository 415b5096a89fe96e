"""The mark of a ledger: the position that it has reached, in a small file next to its key.

A chain of digests cannot show that entries at its end are missing. The mark can: it is written
after every commit and before the commit is reported, so a ledger that has fewer entries than its
mark, or another entry there, has lost or changed entries.

The file has two slots, each with a checksum. Only the older one is ever overwritten, in place, so
that a torn write leaves the other; the slot with the higher serial number counts. The writer holds
a lock on the file, so that no process sets back the mark that another wrote.

Nothing here reads a ledger. Proof: proofs/ledger.md, "The mark".
"""

import contextlib
import fcntl
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from accountant.ledger.stores import durable_file
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
        It need not exist yet.
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
            f"The ledger cannot be used just now: its mark {self.path.name} cannot be written or "
            f"read ({error.strerror}).",
            hint="Nothing can be charged until the server's owner has seen to its disk; what the "
            "history can answer stays free.",
        )


def lost(why: str) -> LedgerLost:
    """The refusal of a ledger that does not agree with its mark."""
    return LedgerLost(
        f"The ledger {why}.",
        hint="The server's owner has to restore the ledger, or to accept that what was spent since "
        "is not known: `tacit audit accept-rollback`.",
    )


def _slots(descriptor: int) -> list[_Slot]:
    content = os.pread(descriptor, N_SLOTS * SLOT_BYTES, 0)
    pieces = (content[at : at + SLOT_BYTES] for at in range(0, len(content), SLOT_BYTES))
    return [slot for piece in pieces if (slot := _Slot.parse(piece)) is not None]
