"""An engine with streams and no private table, on a ledger whose day a test turns."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.ledger.ledger import Ledger
from accountant.ledger.opening import open_ledger, open_unmarked
from proxy.api.requests import LOCAL, Caller, QueryRequest, QueryResult
from proxy.engine.engine import Engine
from proxy.streams.feature import Streams
from proxy.streams.service import StreamService
from proxy.workers.crew import ALONE, Crew
from streams.arrivals import Arrivals, Truth
from tests.support.audited import Clock

TODAY, TOMORROW, LATER = "2026-11-24", "2026-11-25", "2026-11-26"
CREATE = "CREATE STREAM visits (user UNIVERSE 1000) WITH (epsilon => 8)"
DAILY = "CREATE STREAM visits (user UNIVERSE 1000) WITH (epsilon => 8, epochs => 'day')"
COUNT = "SELECT COUNT(DISTINCT user) AS n FROM visits"
# With two predicates, each at the same epsilon; and everybody beside the users of each.
WATCHED = (
    "CREATE STREAM visits (user UNIVERSE 1000, paid BOOLEAN, mobile BOOLEAN) WITH (epsilon => 24)"
)
EACH = (
    "SELECT COUNT(DISTINCT user) AS n, COUNT(DISTINCT user) FILTER (WHERE paid) AS n_paid, "
    "COUNT(DISTINCT user) FILTER (WHERE mobile) AS n_mobile FROM visits"
)
BY_EPOCH = "SELECT epoch, COUNT(DISTINCT user) AS n FROM visits GROUP BY epoch ORDER BY epoch"


class Streaming:
    """A server's streams.

    Parameters
    ----------
    ledger : Ledger
    clock : Clock
    folder : Path
        Of the states.
    crew : Crew
    """

    def __init__(self, ledger: Ledger, clock: Clock, folder: Path, crew: Crew = ALONE) -> None:
        self.ledger, self.clock, self.folder = ledger, clock, folder
        self.streams = StreamService(ledger, folder, ["people"], crew)
        self.feature = Streams(self.streams)
        self.engine = Engine({}, features=[self.feature])

    def ask(self, sql: str, caller: Caller = LOCAL) -> QueryResult:
        return self.engine.answer(QueryRequest(sql=sql, caller=caller))

    def rows(self, sql: str, caller: Caller = LOCAL) -> list[dict[str, Any]]:
        return list(self.ask(sql, caller).data.to_pylist())

    def observe(
        self,
        ids: Sequence[int] | NDArray[np.int64],
        caller: Caller = LOCAL,
        where: Mapping[str, Truth] | None = None,
    ) -> None:
        stream = self.streams.observed(caller, "visits")
        stream.observe(Arrivals(np.asarray(ids, dtype=np.int64), where=where or {}))
        stream.sync()

    def turn(self, day: str) -> None:
        """Let it be some day, and do what is due."""
        self.clock.day, self.clock.seconds = day, 0
        for stream in self.streams.served:
            stream.turn()

    def files(self) -> list[str]:
        return sorted(one.name for one in self.folder.iterdir())

    def kinds(self) -> list[str]:
        return [one.kind for one in self.ledger.entries()]


@contextmanager
def streaming(path: Path, day: str = TODAY, crew: Crew = ALONE) -> Iterator[Streaming]:
    """A process that serves streams of a ledger; another one may follow it."""
    if not path.exists():
        open_ledger(path).close()
    store, key, _ = open_unmarked(str(path), None)
    clock = Clock(day)
    folder = path.with_name(f"{path.name}.streams")
    found = Streaming(Ledger(store, key, clock), clock, folder, crew)
    try:
        yield found
    finally:
        found.streams.close()
        found.ledger.close()
