"""The private tables of a server as they are now: one that grew or was renewed is served anew.

A statement works on the tables that it began with; if one of them changes meanwhile, it begins
again (`steadily`). Nothing here knows statements.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final, TypeVar

from cube.axis import NAME_LENGTH_MAX
from cube.pace import is_paid
from proxy.tables.extent import DataReplaced, HorizonMoved
from proxy.tables.private_table import ServedTable

N_TIMES_MAX: Final = 3  # that a statement is begun; a horizon moves once a day

Result = TypeVar("Result")


class LiveTables(Mapping[str, ServedTable]):
    """The tables by their names, each up to its horizon. Thread-safe."""

    def __init__(self, tables: Mapping[str, ServedTable]) -> None:
        self._tables = dict(tables)
        self._earlier: dict[str, dict[str, ServedTable]] = {}
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> ServedTable:
        table = self._tables[name]
        if table.is_current:
            return table
        with self._lock:
            table = self._tables[name]
            if not table.is_current:
                table = self._tables[name] = table.grown()
            return table

    def earlier(self, name: str, table: ServedTable) -> Mapping[str, ServedTable]:
        """The generations before that of a table, in order, by names of their own.

        The table is given as its caller has it: it may be renewed meanwhile.
        """
        n_earlier = table.extent.generation - 1
        known = self._earlier.get(name, {})
        if len(known) < n_earlier:
            names = [self._name_of(name, place + 1) for place in range(n_earlier)]
            known = {
                own: known.get(own) or table.earlier(place, own) for place, own in enumerate(names)
            }
            self._earlier[name] = known  # two threads may both make them; either is fine
        return dict(islice(known.items(), n_earlier))

    def _name_of(self, table: str, number: int) -> str:
        """The name of a generation, which no table has."""
        name = f"{table}, generation {number}"
        if len(name) > NAME_LENGTH_MAX:
            name = f"generation {number} of {hashlib.sha256(table.encode()).hexdigest()[:16]}"
        while name in self._tables:
            name = f"{name}'"
        return name

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


def steadily(work: Callable[[], Result]) -> Result:
    """Do what is done again from its beginning if a table grows or is renewed meanwhile.

    What was measured of a table that grows is in the history, and is not bought again. Of a new
    generation nothing is: it would be bought twice under one cap, so its caller decides.

    Raises
    ------
    HorizonMoved
        If that happens again and again.
    DataReplaced
        If something was paid for before a table was renewed.
    """
    for _ in range(N_TIMES_MAX - 1):
        try:
            return work()
        except DataReplaced:
            if is_paid():
                raise
        except HorizonMoved:
            continue
    return work()
