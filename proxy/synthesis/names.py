"""Names of synthetic tables: which are free, and the one that each table in the making holds.

Whoever asks for a name hears that it is taken, and not by what.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from cube.refusals import InvalidRequest, NameTaken, TooLarge
from planner.synthesis_text import CreateSynthetic, is_synthetic_name
from planner.wording import shortened
from proxy.public_tables import is_public_name
from proxy.synthesis.record import SyntheticRecord
from proxy.synthesis.store import Records

N_OWN_NAMES_TRIED: Final = 1000


class Names:
    """The names of one server. Thread-safe.

    Parameters
    ----------
    declared : iterable of str
        The names of private and public tables.
    """

    def __init__(self, declared: Iterable[str]) -> None:
        self._declared = frozenset(name.casefold() for name in declared)
        self._lock = threading.Lock()
        self._making: set[str] = set()

    def is_declared(self, name: str) -> bool:
        """Whether a private or public table is called so; letter case does not count."""
        return name.casefold() in self._declared

    @contextmanager
    def held(
        self,
        order: CreateSynthetic,
        there: Records,
        gives_way: Callable[[SyntheticRecord], bool],
        n_tables_max: int,
    ) -> Iterator[tuple[str, SyntheticRecord | None]]:
        """A name for a table to come, and the table that it replaces, if any.

        Parameters
        ----------
        order : CreateSynthetic
            Without a name, a free one is found.
        there : mapping
            The synthetic tables that are there.
        gives_way : callable
            Whether one of them may be replaced by whoever orders.
        n_tables_max : int

        Raises
        ------
        NameTaken, InvalidRequest, TooLarge
        """
        with self._lock:
            name = order.name or self._free(order.table, there)
            replaced = self._replaced(name, there, order.is_replacing, gives_way)
            if replaced is None and len(there) + len(self._making) >= n_tables_max:
                raise TooLarge(
                    f"There are {n_tables_max} synthetic tables, and no place for more.",
                    hint="Drop one that nobody needs, or replace it.",
                )
            self._making.add(name.casefold())
        try:
            yield name, replaced
        finally:
            with self._lock:
                self._making.discard(name.casefold())

    def _replaced(
        self,
        name: str,
        there: Mapping[str, SyntheticRecord],
        is_replacing: bool,
        gives_way: Callable[[SyntheticRecord], bool],
    ) -> SyntheticRecord | None:
        """The table that gives way to one of this name; NameTaken if it is not to be had."""
        if not is_synthetic_name(name) or not is_public_name(name):
            raise InvalidRequest(
                f"{shortened(name)!a} is no name for a synthetic table.",
                hint="Take letters, digits and _, beginning with no digit, and no word of SQL.",
            )
        record = there.get(name.casefold())
        is_free = record is None or (is_replacing and gives_way(record))
        if not is_free or name.casefold() in self._declared | self._making:
            raise NameTaken(f"The name {name} is taken.", hint="Choose another.")
        return record

    def _free(self, table: str, there: Mapping[str, SyntheticRecord]) -> str:
        """A name for a table that nobody has named."""
        stem = table if is_synthetic_name(table) else "synthetic"
        taken = self._declared | self._making | there.keys()
        for number in range(1, N_OWN_NAMES_TRIED):
            if f"{stem}_{number}".casefold() not in taken:
                return f"{stem}_{number}"
        raise TooLarge("No name is free.", hint="Name the table.")
