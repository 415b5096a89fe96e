"""Small files that are whole after a crash: created once or replaced, and synced to the disk.

A name is durable once its directory is synced too. Nothing here knows the content of a file.
"""

import contextlib
import fcntl
import glob
import os
import secrets
import time
from pathlib import Path
from typing import Final

from cube.refusals import CannotStart

PRIVATE_MODE: Final = 0o600
PUBLIC_MODE: Final = 0o666  # less the process's umask
DRAFT: Final = ".new"
DRAFT_SECONDS_MAX: Final = 3600.0  # a draft is written in seconds
# macOS: fsync alone does not reach the disk there.
_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)


def opened(path: Path, flags: int, mode: int = PRIVATE_MODE) -> int:
    """A descriptor of a file that, if it is created now, only its owner may read."""
    try:
        return os.open(path, flags | os.O_CLOEXEC, mode)
    except FileExistsError:
        raise
    except OSError as error:
        raise CannotStart(
            f"The file {path} cannot be opened for writing: {error.strerror}.",
            hint="Name a file in an existing directory that this process may write to.",
        ) from None


def write_once(path: Path, content: bytes) -> None:
    """Create a file that is whole or absent after a crash; of two processes the first wins."""
    draft = _draft(path, content, PRIVATE_MODE)
    try:
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
    sync_folder(path.parent)


def replace(path: Path, content: bytes, mode: int = PRIVATE_MODE) -> None:
    """Replace the content of a file; after a crash it is the old or the new content, whole.

    The file keeps its owner, if this process may set it.
    """
    draft = _draft(path, content, mode)
    try:
        with contextlib.suppress(FileNotFoundError, PermissionError):
            before = path.stat()
            os.chown(draft, before.st_uid, before.st_gid)
        draft.replace(path)
    except BaseException:
        draft.unlink()
        raise
    sync_folder(path.parent)


def sync(descriptor: int) -> None:
    """Return once what was written is on the disk."""
    if _FULL_SYNC is not None:
        fcntl.fcntl(descriptor, _FULL_SYNC)
    else:
        os.fsync(descriptor)


def sync_content(descriptor: int) -> None:
    """The same for content that was overwritten in place: only the content must reach the disk."""
    if _FULL_SYNC is None and hasattr(os, "fdatasync"):  # which not every system has
        os.fdatasync(descriptor)
    else:
        sync(descriptor)


def sync_folder(folder: Path) -> None:
    """Return once the names of the files in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def drop_drafts(path: Path) -> None:
    """Remove what writers of a file left that were killed: drafts that are an hour old."""
    for draft in path.parent.glob(f"{glob.escape(path.name)}.*{DRAFT}"):
        with contextlib.suppress(FileNotFoundError):  # another process removes it, too
            if time.time() - draft.stat().st_mtime > DRAFT_SECONDS_MAX:
                draft.unlink()


def _draft(path: Path, content: bytes, mode: int) -> Path:
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}{DRAFT}")
    descriptor = opened(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        sync(file.fileno())
    return draft
