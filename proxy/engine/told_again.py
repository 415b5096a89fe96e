"""Answers that were free, given again as they are while nothing has changed that they rest on.

A dashboard asks the same all day. An answer that cost nothing is kept with the position of the
ledger that it was given at, and given again to a caller who asks the same in the same words, with
the same settings, and may know of the same, as long as the ledger has no further entry: no
measurement, limit, grant, renewal or growth. What is left of budgets may also change by the clock:
it is looked up each time, and if it differs the answer is made anew.

Not kept is what was paid, what is shown as if it were, what fell back on something else than its
target, and what reads relations beside answers. Nothing here decides what a statement means or
costs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from accountant.ledger.entries import Tally
from planner.cache import BoundedCache
from planner.workload import Workload
from proxy.api.requests import BudgetStatus, Caller, QueryRequest, QueryResult
from proxy.engine.usage import UsageTallies
from proxy.monitoring.events import AnswerKind, Watcher
from proxy.tables.disclosure import shown_budget
from proxy.tables.private_table import ServedTable
from proxy.tables.self_answering import SelfAnswering

N_TOLD_MAX: Final = 4096
TOLD_BYTES_MAX: Final = 32 * 2**20
OWN_BYTES: Final = 4096  # of an answer without its rows, roughly
END_BYTES: Final = 64  # of both ends of one interval

Opened: TypeAlias = Mapping[str, ServedTable | SelfAnswering]
Positions: TypeAlias = tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """An answer that was free.

    Parameters
    ----------
    workload : Workload
        What was asked; the planner's own value, which tells what the text means to its caller, and
        at what moment.
    positions : tuple
        How far the ledger of each private table was read, and where each other table stands.
    budgets : tuple of BudgetStatus
        What the caller was shown to be left, by private table.
    tallies : tuple of Tally
        What the answer counts for, by private table.
    result : QueryResult
    """

    workload: Workload
    positions: Positions
    budgets: tuple[BudgetStatus, ...]
    tallies: tuple[Tally, ...]
    result: QueryResult

    def counted(self, usage: UsageTallies, watcher: Watcher, opened: Opened) -> QueryResult:
        """The answer, once it is counted as if it were made anew."""
        tables = gated(self.workload, opened)
        for table, tally in zip(tables, self.tallies, strict=True):
            usage.add_again(table.counted_as.table, tally)
            watcher.answered(table.counted_as.table, AnswerKind.FREE)
        for name in self.workload.tables:
            if not isinstance(opened[name], ServedTable):
                watcher.answered(name, AnswerKind.FREE)
        return self.result


class ToldAgain:
    """Answers that were free, by their requests. Thread-safe."""

    def __init__(self) -> None:
        self._told: BoundedCache[QueryRequest, Told] = BoundedCache(
            n_entries_max=N_TOLD_MAX, n_bytes_max=TOLD_BYTES_MAX
        )

    def find(self, request: QueryRequest, workload: Workload, opened: Opened) -> Told | None:
        """The answer to a request, if it would be made of the same again."""
        told = self._told.get(request)
        if told is None or told.workload is not workload:
            return None
        if told.positions != positions(workload, opened):
            return None
        return told if told.budgets == budgets(workload, opened, request.caller) else None

    def keep(self, request: QueryRequest, told: Told, opened: Opened) -> None:
        """Keep an answer, if it was free, and nothing has changed while it was made."""
        receipt, outer = told.result.receipt, told.workload.outer
        is_settled = len(told.tallies) == len(gated(told.workload, opened))
        if receipt is None or not is_settled or (outer is not None and outer.public):
            return
        if receipt.epsilon_spent or any(tally.n_paid for tally in told.tallies):
            return
        if told.positions != positions(told.workload, opened):
            return
        n_ends = sum(len(column.low) for column in receipt.columns)
        n_bytes = OWN_BYTES + len(request.sql) + told.result.data.nbytes + END_BYTES * n_ends
        self._told.put(request, told, n_bytes=n_bytes)


def positions(workload: Workload, opened: Opened) -> Positions:
    """Where each table of a statement stands: how far its ledger was read, if it has one."""
    return tuple(opened[name].position for name in workload.tables)


def gated(workload: Workload, opened: Opened) -> list[ServedTable]:
    """The private tables of a statement, which have a gate; no table that answers by itself."""
    found = (opened[name] for name in workload.tables)
    return [table for table in found if isinstance(table, ServedTable)]


def budgets(workload: Workload, opened: Opened, caller: Caller) -> tuple[BudgetStatus, ...]:
    """What a caller is shown to be left of the budgets of these tables, at present."""
    return tuple(shown_budget(table, caller) for table in gated(workload, opened))
