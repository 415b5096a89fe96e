"""Names of synthetic tables: which are free, and which are held for tables being made.

A name is taken within its private table, and a table counts towards the limit of the analyst who
made it. So choosing a name reveals only tables that the caller may know of: a table with the same
name elsewhere does not conflict, and is told apart when it is read (`planner.domain.relations`).
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from cube.refusals import InvalidRequest, NameTaken, TooLarge
from planner.sql.messages import shortened
from planner.sql.synthetic_statements import CreateSynthetic
from planner.sql.words import is_new_name
from proxy.sources.public.table import is_public_name
from proxy.synthetic_tables.record import Key, SyntheticRecord
from proxy.synthetic_tables.store import Records

N_OWN_NAMES_TRIED: Final = 1000

CheckMayChange: TypeAlias = Callable[[SyntheticRecord], None]


@dataclass(frozen=True, slots=True)
class NamingContext:
    """The maker of a new table, its source, and the names that the maker may know of.

    Parameters
    ----------
    analyst : str
    source : str
        The private table.
    declared : frozenset of str
        The private and public tables that the maker may know of, in lower case.
    """

    analyst: str
    source: str
    declared: frozenset[str]


class Names:
    """The names that are held for tables being made on one server. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._making: dict[Key, str] = {}  # to the analyst who makes the table

    @contextmanager
    def held(
        self,
        order: CreateSynthetic,
        maker: NamingContext,
        there: Records,
        check: CheckMayChange,
        n_tables_max: int,
    ) -> Iterator[tuple[str, SyntheticRecord | None]]:
        """Hold a name for a new table; yields it, and the table that it replaces, if any.

        Parameters
        ----------
        order : CreateSynthetic
            If it gives no name, a free one is chosen.
        maker : NamingContext
        there : mapping
            The existing synthetic tables.
        check : callable
            Raises unless the maker may replace the given table of the same source.
        n_tables_max : int
            How many tables one analyst may have of one private table.

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
                    f"You have {n_tables_max} synthetic tables of {maker.source}, the most "
                    "allowed.",
                    hint="Drop one that is no longer needed, or replace it.",
                )
            self._making[key] = maker.analyst
        try:
            yield name, replaced
        finally:
            with self._lock:
                self._making.pop(key, None)

    def _n_places(self, maker: NamingContext, there: Records) -> int:
        """How many tables of the source the maker has, including those being made."""
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
        """The table to be replaced by one of this name; NameTaken if the name is not available."""
        if not is_new_name(name) or not is_public_name(name):
            raise InvalidRequest(
                f"{shortened(name)!a} cannot be the name of a synthetic table.",
                hint="Use letters, digits and _, not starting with a digit, and not an SQL "
                "keyword.",
            )
        key = (maker.source, name.lower())
        record = there.get(key)
        is_free = record is None or is_replacing
        of_source = f"{maker.source}.{name}".casefold()  # which is the table of its units, or none
        is_declared = not maker.declared.isdisjoint({name.casefold(), of_source})
        if not is_free or key in self._making or is_declared:
            raise NameTaken(f"The name {name} is taken.", hint="Choose another.")
        return record

    def _free(self, maker: NamingContext, there: Records) -> str:
        """A free name for a table without one."""
        stem = maker.source if is_new_name(maker.source) else "synthetic"
        for number in range(1, N_OWN_NAMES_TRIED):
            name = f"{stem}_{number}"
            key = (maker.source, name.lower())
            is_known = key in there or key in self._making
            if not is_known and name.casefold() not in maker.declared:
                return name
        raise TooLarge("No name is free.", hint="Name the table.")
