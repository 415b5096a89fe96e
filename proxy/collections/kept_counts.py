"""The file of counts that a ledger's collections have: there from the first collection on."""

import threading
from pathlib import Path

from cube.refusals import CannotStart, StoreUnavailable
from proxy.collections.refused import no_place
from proxy.collections.store import CountStore


class KeptCounts:
    """The file of counts of one ledger. Thread-safe.

    Parameters
    ----------
    path : Path, optional
        None if the server has no place for one.
    has_some : bool
        Whether the ledger has collections: then the file is opened at once.

    Raises
    ------
    CannotStart
        If it is damaged, or is gone while the ledger has collections.
    """

    def __init__(self, path: Path | None, *, has_some: bool) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._store = _existing(path) if has_some and path is not None else None

    @property
    def store(self) -> CountStore:
        """The file, which is there since a collection is.

        Raises
        ------
        StoreUnavailable
        """
        return self._opened(has_some=True)

    def make(self, *, has_some: bool) -> None:
        """Make the file, if there is no collection yet.

        Raises
        ------
        StoreUnavailable
        """
        self._opened(has_some=has_some)

    def close(self) -> None:
        """Close the file. Closing twice does no harm."""
        with self._lock:
            store, self._store = self._store, None
        if store is not None:
            store.close()

    def _opened(self, *, has_some: bool) -> CountStore:
        if self._path is None:
            raise no_place()
        with self._lock:
            if self._store is None:
                try:
                    self._store = _existing(self._path) if has_some else CountStore(self._path)
                except CannotStart as error:
                    raise StoreUnavailable(error.message, hint=error.hint) from None
            return self._store


def _existing(path: Path) -> CountStore:
    """The file that collections have already: a new one would forget all answers."""
    if not path.exists():
        raise CannotStart(
            f"The ledger has collections, and the answers to them, {path}, are gone.",
            hint="Restore the file from a backup.",
        )
    return CountStore(path)
