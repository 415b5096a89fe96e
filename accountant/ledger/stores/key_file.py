"""The key of a ledger's data fingerprints: 32 random bytes in a file of their own.

The key exists because a ledger is made to be audited. A plain hash of the data in it would let any
reader test a guess at the whole table; an HMAC can only be tested by who also holds the key.

Every process that serves from one ledger needs the same key. Nothing here knows what a ledger is.
"""

import secrets
from pathlib import Path
from typing import Final

from accountant.ledger.stores import durable_file
from cube.refusals import CannotStart, LedgerCorrupt

KEY_BYTES: Final = 32
MARKED: Final = b"m"  # behind the key of a ledger that has a mark, from then on


def key_beside(ledger: Path) -> Path:
    """Where the key of a ledger in a file lies."""
    return ledger.with_name(ledger.name + ".key")


def fingerprint_key(path: Path, *, may_create: bool) -> bytes:
    """The key in a file, made at the first opening of a ledger.

    Raises
    ------
    LedgerCorrupt
        If there is none and none may be made, or if it is not a key.
    """
    if not path.exists():
        if not may_create:
            raise LedgerCorrupt(
                f"The key file {path} is missing, so the data cannot be recognised.",
                hint="Restore it from a backup; it belongs to the ledger.",
            )
        durable_file.write_once(path, secrets.token_bytes(KEY_BYTES))
    return _content(path)[:KEY_BYTES]


def is_marked(path: Path) -> bool:
    """Whether the ledger of a key has a mark, and so is not used without one."""
    return _content(path)[KEY_BYTES:] == MARKED


def note_marked(path: Path) -> None:
    """Say in the key's own file that its ledger has a mark: nobody can lose that and go on."""
    content = _content(path)
    if content[KEY_BYTES:] != MARKED:
        try:
            durable_file.replace(path, content + MARKED)
        except OSError as error:
            raise CannotStart(
                f"The key file {path} cannot be written: {error.strerror}.",
                hint="It has to say that the ledger has a mark now, which lies beside it.",
            ) from None


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CannotStart(f"The key file {path} cannot be read: {error.strerror}.") from None
    if len(content) < KEY_BYTES or content[KEY_BYTES:] not in {b"", MARKED}:
        raise LedgerCorrupt(
            f"The key file {path} does not hold {KEY_BYTES} bytes.",
            hint="Restore it from a backup.",
        )
    return content
