"""The server signs how far its ledger has come, where its owner gave it a key for that.

Each time the ledger has grown, a signed head replaces the one before in a file. Whoever copies that
file elsewhere now and then can show later that no tail is missing. Before it is replaced, what it
vouches for is looked for in the ledger: a head is evidence, and never gives way to a shorter one.

A key that lies on the server protects against accidents and against who has the ledger and not the
key; an owner who wants to prove more keeps the key and runs `tacit audit sign` himself.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from accountant.auditor.signed_head import Head, read_private_key, read_signed_head, sign_head
from accountant.ledger.clock import utc_now
from accountant.ledger.stores import durable_file
from accountant.ledger.stores.mark import Position
from cube.refusals import LedgerCorrupt, LedgerLost, LedgerSetBack


class SignableLedger(Protocol):
    """What is needed of a ledger to sign for it."""

    @property
    def position(self) -> tuple[int, str]:
        """How many entries this process has seen, and the digest of the last."""
        ...

    def holds(self, position: Position) -> bool:
        """Whether it has come so far, by the same entries."""
        ...

    def give_up(self, why: str) -> LedgerLost:
        """Write nothing any more."""
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
        """See at the start that the ledger holds what was signed for.

        Raises
        ------
        LedgerSetBack
            If it does not.
        LedgerCorrupt
            If what lies there was not signed with this key.
        """
        head = self._newest()
        if head is not None and not ledger.holds(head):
            raise LedgerSetBack(
                f"The ledger {self._missing(head)}",
                hint="Restore the newer ledger. If it is truly gone, `tacit audit accept-rollback` "
                "with --signed-head says so in this one; then keep that head under another name.",
            )

    def sign(self, ledger: SignableLedger) -> None:
        """Sign how many entries there are and the last digest, unless that was signed already.

        Raises
        ------
        LedgerLost
            If the ledger does not hold what was signed before; nothing more is written to it then.
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
        """What was signed last, here or by another process; None if nothing was."""
        try:
            written = self._output.read_text(encoding="ascii", errors="replace")
        except FileNotFoundError:
            return None
        head = read_signed_head(written, self._key.public_key(), self._output.name).head
        return Position(head.n_entries, head.digest)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While no other process signs with this key."""
        with self._key_path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed
            yield
