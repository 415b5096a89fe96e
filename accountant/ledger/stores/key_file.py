"""The key of a ledger's data fingerprints: 32 random bytes in a file of their own.

The key exists because a ledger is made to be audited. With a plain hash of the data, any reader of
the ledger could test a guess at the whole table; an HMAC can only be tested with the key.

Every process that serves from one ledger needs the same key. Nothing here knows what a ledger is.
"""

import secrets
from pathlib import Path
from typing import Final

from accountant.ledger.stores import durable_file
from cube.refusals import CannotStart, LedgerCorrupt

KEY_BYTES: Final = 32
MARKED: Final = b"m"  # appended to the key once its ledger has a mark


def key_beside(ledger: Path) -> Path:
    """The path of the key of a ledger in a file."""
    return ledger.with_name(ledger.name + ".key")


def fingerprint_key(path: Path, *, may_create: bool) -> bytes:
    """The key in a file, created when a ledger is opened first.

    Raises
    ------
    LedgerCorrupt
        If there is none and none may be created, or if it is not a key.
    """
    if not path.exists():
        if not may_create:
            raise LedgerCorrupt(
                f"The key file {path} is missing, so Tacit cannot check that the data is the same.",
                hint="Restore it from a backup of the ledger.",
            )
        durable_file.write_once(path, secrets.token_bytes(KEY_BYTES))
    return _content(path)[:KEY_BYTES]


def is_marked(path: Path) -> bool:
    """Whether the ledger of a key has a mark, and so must not be used without it."""
    return _content(path)[KEY_BYTES:] == MARKED


def note_marked(path: Path) -> None:
    """Record in the key's file that its ledger has a mark: no ledger is used without its key."""
    content = _content(path)
    if content[KEY_BYTES:] != MARKED:
        try:
            durable_file.replace(path, content + MARKED)
        except OSError as error:
            raise CannotStart(
                f"The key file {path} cannot be written: {error.strerror}.",
                hint="Make the file writable: it must record that the ledger now has a "
                "mark (a file next to it).",
            ) from None


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CannotStart(f"The key file {path} cannot be read: {error.strerror}.") from None
    if len(content) < KEY_BYTES or content[KEY_BYTES:] not in {b"", MARKED}:
        raise LedgerCorrupt(
            f"The key file {path} must hold {KEY_BYTES} bytes, but does not.",
            hint="Restore it from a backup.",
        )
    return content
