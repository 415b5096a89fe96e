"""What collections need of a ledger."""

from collections.abc import Callable
from typing import Protocol

from accountant.ledger.collections import CollectionBody, CollectionBook
from accountant.ledger.streams import StreamBook


class CollectionLedger(Protocol):
    """The part of a ledger that collections need."""

    @property
    def collections(self) -> CollectionBook:
        """Every collection, as far as this process has seen."""
        ...

    @property
    def streams(self) -> StreamBook:
        """Every stream, whose names are taken."""
        ...

    @property
    def key(self) -> bytes:
        """The key that readers of the ledger do not have."""
        ...

    def append_collection(
        self, build: Callable[[CollectionBook], CollectionBody | None]
    ) -> int | None:
        """Make an entry durable; ValueError if it cannot follow those before it."""
        ...

    def refresh(self) -> None:
        """Take in what other processes have appended."""
        ...
