"""The mark of a ledger: how far it had come, in a small file of its own beside its key.

A chain of digests cannot show that entries at its end are missing. The mark can: it is written
behind every commit and before anybody hears of it, so that a ledger that has fewer entries than its
mark, or another entry there, is not the ledger that it was.

The file has two slots, each with a checksum. Only the older one is ever overwritten, in place, so
that a write that is torn leaves the other; the one with the higher serial number counts. Whoever
writes has a lock on the file, so that of several processes none sets back what another wrote.

Nothing here looks into a ledger. Proof: proofs/ledger.md, "The mark".
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

SLOT_BYTES: Final = 512  # one sector: a disk writes it as a whole, and the checksum shows if not
N_SLOTS: Final = 2
_SLOT: Final = re.compile(rb"(tacit-mark-1 (\d+) (\d+) ([0-9a-f]{64})) ([0-9a-f]{64}) *\n")


@dataclass(frozen=True, slots=True)
class Position:
    """How many entries a ledger has, and the digest of the last."""

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
        """The slot, unless it was torn or never written."""
        found = _SLOT.fullmatch(content)
        if found is None or hashlib.sha256(found[1]).hexdigest().encode() != found[5]:
            return None
        return cls(int(found[2]), Position(int(found[3]), found[4].decode()))


def mark_beside(key: Path) -> Path:
    """Where the mark of the ledger with a key lies: beside the key.

    >>> mark_beside(Path("people.ledger.key")).name
    'people.ledger.mark'
    """
    return key.with_name(key.name.removesuffix(".key") + ".mark")


class MarkFile:
    """The mark in a file. Every method may be called by any thread of any process.

    Parameters
    ----------
    path : Path
        It need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        """Whether there is such a file, good or bad."""
        return self.path.exists()

    def make(self, position: Position) -> None:
        """Make the file, durably, unless there is one."""
        first = _Slot(0, position).to_bytes()
        durable_file.write_once(self.path, first.ljust(N_SLOTS * SLOT_BYTES))

    def read(self) -> Position:
        """What the ledger had come to.

        Raises
        ------
        LedgerUnavailable
            If the file cannot be read just now.
        LedgerLost
            If it is gone, or says nothing.
        """
        with self._opened(os.O_RDONLY) as descriptor:
            return self._newest(descriptor).position

    def advance(self, position: Position) -> None:
        """Note, durably, how far the ledger has come; a mark that is further stays as it is.

        Raises
        ------
        LedgerUnavailable
            If it cannot be written; then the commit that it is about does not count as durable.
        LedgerLost
            If another ledger has come as far.
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
        """Write what it says once more, to learn whether that is possible now."""
        with self._locked() as descriptor:
            newest = self._newest(descriptor)
            self._write(descriptor, _Slot(newest.serial + 1, newest.position))

    def give_up(self, position: Position) -> None:
        """Say something else, less perhaps, or make the file anew: its owner accepts the loss."""
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
    """The refusal for a ledger that is not what its mark says."""
    return LedgerLost(
        f"The ledger {why}.",
        hint="The server's owner has to restore the ledger, or to accept that what was spent since "
        "is not known: `tacit audit accept-rollback`.",
    )


def _slots(descriptor: int) -> list[_Slot]:
    content = os.pread(descriptor, N_SLOTS * SLOT_BYTES, 0)
    pieces = (content[at : at + SLOT_BYTES] for at in range(0, len(content), SLOT_BYTES))
    return [slot for piece in pieces if (slot := _Slot.parse(piece)) is not None]
