"""Everything on a server that answers by itself: its streams, and its collections as they stand.

A collection is a table of what its answers say at one moment; it is made anew once more of them
have come. One whose counts cannot be read just now, or whose attributes are no columns, is not
among the tables: other statements go on, and its own service says what is wrong.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from threading import Lock
from typing import TypeAlias

from cube.refusals import Refused
from proxy.api.requests import LOCAL
from proxy.collections.service import CollectionService
from proxy.tables.collected import CollectedTable
from proxy.tables.self_answering import SelfAnswering

Moment: TypeAlias = tuple[int, bool]  # how many answered, and whether it is closed


class CollectedTables(Mapping[str, CollectedTable]):
    """The collections of a service, by name, as tables. Thread-safe.

    Parameters
    ----------
    service : CollectionService
    """

    def __init__(self, service: CollectionService) -> None:
        self._service = service
        self._lock = Lock()
        self._made: dict[str, tuple[Moment, CollectedTable]] = {}

    def __getitem__(self, name: str) -> CollectedTable:
        try:
            return self._table(name)
        except (Refused, ValueError):
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._service.names() if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _table(self, name: str) -> CollectedTable:
        status = self._service.status(LOCAL, name)
        moment = status.n_respondents, status.is_closed
        with self._lock:
            known = self._made.get(name)
        if known is not None and known[0] == moment:
            return known[1]
        estimates = self._service.estimates(LOCAL, name)
        made = CollectedTable(estimates, is_open=not status.is_closed)
        with self._lock:
            self._made[name] = (estimates.n_respondents, status.is_closed), made
        return made


class OwnTables(Mapping[str, SelfAnswering]):
    """Several kinds of tables that answer by themselves; no two have one name.

    Parameters
    ----------
    kinds : mapping
        Each by name.
    """

    def __init__(self, *kinds: Mapping[str, SelfAnswering]) -> None:
        self._kinds = kinds

    def __getitem__(self, name: str) -> SelfAnswering:
        for kind in self._kinds:
            if name in kind:
                return kind[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return chain(*self._kinds)

    def __len__(self) -> int:
        return sum(map(len, self._kinds))
