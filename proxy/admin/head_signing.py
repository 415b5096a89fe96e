"""The server signs the head of its ledger, if its owner gave it a key for that.

Each time the ledger has grown, a new signed head replaces the previous one in a file. Anyone who
copies that file elsewhere from time to time can show later that no tail of the ledger is missing.
Before a head is replaced, the ledger is checked to contain what it vouches for: a head is evidence,
and is never replaced by a shorter one.

A key on the server protects against accidents and against people who can change the ledger but do
not have the key; owners who want to prove more keep the key elsewhere and run `tacit audit sign`
themselves.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from accountant.auditor import Head, read_private_key, read_signed_head, sign_head
from accountant.ledger import utc_now
from accountant.ledger.stores import Position, durable_file
from cube.refusals import LedgerCorrupt, LedgerLost, LedgerSetBack


class SignableLedger(Protocol):
    """The part of a ledger that signing needs."""

    @property
    def position(self) -> tuple[int, str]:
        """How many entries this process has seen, and the digest of the last."""
        ...

    def holds(self, position: Position) -> bool:
        """Whether the ledger contains this position, with the same entries up to it."""
        ...

    def give_up(self, why: str) -> LedgerLost:
        """Stop writing for good."""
        ...


class HeadSigner:
    """Signs the heads of one ledger.

    Parameters
    ----------
    key : Path
        The private key, as `tacit audit keygen` made it.
    output : Path
        The file of the latest signed head.

    Raises
    ------
    CannotStart
        If the key cannot be read, or others may read it.
    """

    def __init__(self, key: Path, output: Path) -> None:
        self._key_path = key
        self._key = read_private_key(key)
        self._output = output
        self._signed: tuple[int, str] | None = None

    def check(self, ledger: SignableLedger) -> None:
        """Check at the start that the ledger contains what was signed.

        Raises
        ------
        LedgerSetBack
            If it does not.
        LedgerCorrupt
            If the file there was not signed with this key.
        """
        head = self._newest()
        if head is not None and not ledger.holds(head):
            raise LedgerSetBack(
                f"The ledger {self._missing(head)}",
                hint=(
                    "Restore the newer ledger. If it is truly gone, record the loss in this one "
                    "with `tacit audit accept-rollback` and --signed-head; then rename the file "
                    "of that head."
                ),
            )

    def sign(self, ledger: SignableLedger) -> None:
        """Sign the number of entries and the last digest, unless that was signed already.

        Raises
        ------
        LedgerLost
            If the ledger does not contain what was signed before; it is then not written any more.
        """
        position = ledger.position
        if position == self._signed:
            return
        with self._alone():
            try:
                head = self._newest()
            except LedgerCorrupt as error:
                raise ledger.give_up(f"cannot be signed for: {error.message}") from None
            if head is not None and not ledger.holds(head):
                raise ledger.give_up(self._missing(head))
            if head is None or head.n_entries < position[0]:
                signed = sign_head(self._key, Head(*position, utc_now()))
                content = signed.to_json().encode("ascii")
                durable_file.replace(self._output, content, durable_file.PUBLIC_MODE)
        self._signed = position

    def _missing(self, head: Position) -> str:
        return f"does not hold the {head.n_entries} entries that {self._output.name} vouches for"

    def _newest(self) -> Position | None:
        """The position signed last, here or by another process; None if there is none."""
        try:
            written = self._output.read_text(encoding="ascii", errors="replace")
        except FileNotFoundError:
            return None
        head = read_signed_head(written, self._key.public_key(), self._output.name).head
        return Position(head.n_entries, head.digest)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Exclude other processes from signing with this key."""
        with self._key_path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # held until the file is closed
            yield
