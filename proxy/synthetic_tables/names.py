"""Names of synthetic tables: which are free, and the one that each table in the making holds.

A name belongs to the private table that it is of, and a place to whoever made the table. So whoever
asks for a name hears of tables that they may know of, and of nothing else: what is called alike
elsewhere is in nobody's way, and is told apart when it is read (`planner.domain.table_names`).
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from cube.refusals import InvalidRequest, NameTaken, TooLarge
from planner.sql.messages import shortened
from planner.sql.synthetic_statements import CreateSynthetic, is_synthetic_name
from proxy.sources.public_table import is_public_name
from proxy.synthetic_tables.record import Key, SyntheticRecord
from proxy.synthetic_tables.store import Records

N_OWN_NAMES_TRIED: Final = 1000

CheckMayChange: TypeAlias = Callable[[SyntheticRecord], None]


@dataclass(frozen=True, slots=True)
class NamingContext:
    """Who is to make a table of what, and what they may know of.

    Parameters
    ----------
    analyst : str
    source : str
        The private table.
    declared : frozenset of str
        The private and public tables that they may know of, without letter case.
    """

    analyst: str
    source: str
    declared: frozenset[str]


class Names:
    """The names that are held on one server. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._making: dict[Key, str] = {}  # to who makes it

    @contextmanager
    def held(
        self,
        order: CreateSynthetic,
        maker: NamingContext,
        there: Records,
        check: CheckMayChange,
        n_tables_max: int,
    ) -> Iterator[tuple[str, SyntheticRecord | None]]:
        """A name for a table to come, and the table that it replaces, if any.

        Parameters
        ----------
        order : CreateSynthetic
            Without a name, a free one is found.
        maker : NamingContext
        there : mapping
            The synthetic tables that are there.
        check : callable
            Raises unless one of the same source may be replaced by whoever orders.
        n_tables_max : int
            Of one private table, by one analyst.

        Raises
        ------
        NameTaken, InvalidRequest, TooLarge
        """
        with self._lock:
            name = order.name or self._free(maker, there)
            key = (maker.source, name.lower())
            replaced = self._replaced(name, maker, there, is_replacing=order.is_replacing)
            if replaced is not None:
                check(replaced)
            is_more = replaced is None or replaced.made_by != maker.analyst
            if is_more and self._n_places(maker, there) >= n_tables_max:
                raise TooLarge(
                    f"You have {n_tables_max} synthetic tables of {maker.source}, and no place "
                    "for more.",
                    hint="Drop one that nobody needs, or replace it.",
                )
            self._making[key] = maker.analyst
        try:
            yield name, replaced
        finally:
            with self._lock:
                self._making.pop(key, None)

    def _n_places(self, maker: NamingContext, there: Records) -> int:
        """How many tables of the source somebody has made, and is making."""
        own = (maker.source, maker.analyst)
        n_made = sum((one.table, one.made_by) == own for one in there.values())
        return n_made + sum((key[0], by) == own for key, by in self._making.items())

    def _replaced(
        self,
        name: str,
        maker: NamingContext,
        there: Records,
        *,
        is_replacing: bool,
    ) -> SyntheticRecord | None:
        """The table that gives way to one of this name; NameTaken if it is not to be had."""
        if not is_synthetic_name(name) or not is_public_name(name):
            raise InvalidRequest(
                f"{shortened(name)!a} is no name for a synthetic table.",
                hint="Take letters, digits and _, beginning with no digit, and no word of SQL.",
            )
        key = (maker.source, name.lower())
        record = there.get(key)
        is_free = record is None or is_replacing
        if not is_free or key in self._making or name.casefold() in maker.declared:
            raise NameTaken(f"The name {name} is taken.", hint="Choose another.")
        return record

    def _free(self, maker: NamingContext, there: Records) -> str:
        """A name for a table that nobody has named."""
        stem = maker.source if is_synthetic_name(maker.source) else "synthetic"
        for number in range(1, N_OWN_NAMES_TRIED):
            name = f"{stem}_{number}"
            key = (maker.source, name.lower())
            is_known = key in there or key in self._making
            if not is_known and name.casefold() not in maker.declared:
                return name
        raise TooLarge("No name is free.", hint="Name the table.")
