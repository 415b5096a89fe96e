"""The file of counts that a ledger's collections have, and why calls about it are refused.

Why calls about collections are refused: texts for people, with no token or answer in them.

The file of counts that a ledger's collections have: there from the first collection on.
"""

import threading
from pathlib import Path

from accountant.ledger.credentials import Role
from cube.refusals import (
    CannotStart,
    InvalidRequest,
    NameTaken,
    NotAllowed,
    StoreUnavailable,
    TooLarge,
    UnknownName,
)
from proxy.api.requests import Caller
from proxy.collections.store import CountStore, Outcome


def check_owner(caller: Caller, name: str) -> None:
    """Raise NotAllowed unless the caller owns what has this name."""
    if caller.role is not Role.OWNER or not caller.opens(name):
        raise NotAllowed(
            f"Only an owner to whom {name} is open may do this.",
            hint="Ask the server's owner for a credential that names it, or every table.",
        )


def name_taken(name: str) -> NameTaken:
    """The refusal of a name that something has."""
    return NameTaken(
        f"{name} is the name of something else here, or this campaign was opened before.",
        hint="Choose another name: that of a collection stays its own, also once it is closed.",
    )


def unknown_collection(name: str) -> UnknownName:
    """The refusal of a collection that is not there, or not open to the caller: the same text."""
    return UnknownName(f"There is no collection {name[:64]!a}.", hint="Ask its owner for the name.")


def unknown_to_respondent(name: str) -> UnknownName:
    """The refusal of a collection that is not there, or takes other tokens: the same text."""
    return UnknownName(
        f"There is no collection {name[:64]!a} that takes this token.",
        hint="Ask who sent you here for the name; a collection by invitation takes the tokens "
        "that its owner hands out.",
    )


def check_taken(name: str, outcome: Outcome | None) -> None:
    """Raise InvalidRequest or TooLarge if an answer comes too late, or is one too many."""
    if outcome is Outcome.CLOSED:
        raise InvalidRequest(f"{name} takes no answers any more.")
    if outcome is Outcome.FULL:
        raise TooLarge(f"{name} has as many answers as its owner asked for.")


def no_place() -> StoreUnavailable:
    """The refusal of a server that was given no place for answers."""
    return StoreUnavailable(
        "This server has no place for answers.",
        hint="Its owner has to say where, in the configuration: collections_file under [server].",
    )


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
