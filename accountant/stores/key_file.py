"""The key of a ledger's data fingerprints: 32 random bytes in a file of their own.

The key exists because a ledger is made to be audited. A plain hash of the data in it would let any
reader test a guess at the whole table; an HMAC can only be tested by who also holds the key.

Every process that serves from one ledger needs the same key. Nothing here knows what a ledger is.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from cube.refusals import CannotStart, LedgerCorrupt

KEY_BYTES: Final = 32
PRIVATE_MODE: Final = 0o600


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
        _write_once(path, secrets.token_bytes(KEY_BYTES))
    try:
        key = path.read_bytes()
    except OSError as error:
        raise CannotStart(f"The key file {path} cannot be read: {error.strerror}.") from None
    if len(key) != KEY_BYTES:
        raise LedgerCorrupt(
            f"The key file {path} does not hold {KEY_BYTES} bytes.",
            hint="Restore it from a backup.",
        )
    return key


def opened(path: Path, flags: int) -> int:
    """A descriptor of a file that only its owner may read, if it is made now."""
    try:
        return os.open(path, flags | os.O_CLOEXEC, PRIVATE_MODE)
    except FileExistsError:
        raise
    except OSError as error:
        raise CannotStart(
            f"The ledger file {path} cannot be opened for writing: {error.strerror}.",
            hint="It needs an existing directory that this process may write to.",
        ) from None


def _write_once(path: Path, content: bytes) -> None:
    """Create a file that is whole or absent after a crash; of two processes the first wins."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    descriptor = opened(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    try:
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
