"""Answers counted for the ledger, and free answers that are given again.

An answer is one linear query of a statement, with all its rows. Its plain price is what Laplace
noise would have cost for the same accuracy without a history: the accuracy of the target that
applied when its search ended. A statement that ends without reaching its target gave no answer. The
counts are written to the ledger periodically; a crash may lose some of them, but no charge and no
answer.

Answers that were free, given again as they are while nothing has changed that they rest on.

A dashboard asks the same all day. An answer that cost nothing is kept with the position of the
ledger that it was given at, and given again to a caller who asks the same in the same words, with
the same settings, and may know of the same, as long as the ledger has no further entry: no
measurement, limit, grant, renewal or growth. What is left of budgets may also change by the clock:
it is looked up each time, and if it differs the answer is made anew.

Not kept is what was paid, what is shown as if it were, what fell back on something else than its
target, and what reads relations beside answers. Nothing here decides what a statement means or
costs.
"""

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from accountant.cost import profile_of, rows_in_block
from accountant.ledger import WIDTH_BINS, Ledger, Served, Tally, utc_now
from cube.encoding import fingerprint
from cube.refusals import InvalidTarget, LedgerUnavailable, TooLarge
from cube.schema import Schema
from cube.statistic import of_units
from inference import widest
from planner.cache import BoundedCache
from planner.measuring import weight_for
from planner.workload import Aggregate, Wanted, Workload
from proxy.api import (
    SOURCE_MEASURED,
    SOURCE_PUBLIC,
    BudgetStatus,
    Caller,
    QueryRequest,
    QueryResult,
)
from proxy.engine.answers import AnsweredAggregate, AnsweredPart
from proxy.monitoring import AnswerKind, Watcher
from proxy.tables import SelfAnswering, ServedTable, shown_budget

N_PRICES_MAX: Final = 4096
PRICE_BYTES: Final = 512  # the size of one remembered price, roughly
NOTHING: Final = (0,) * (len(WIDTH_BINS) + 1)


class UsageTallies:
    """The answer counts since the last write. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since = utc_now()
        self._counts: dict[tuple[str, str], Tally] = {}
        self._prices: BoundedCache[tuple[str, float, float], int] = BoundedCache(
            n_entries_max=N_PRICES_MAX, n_bytes_max=N_PRICES_MAX * PRICE_BYTES
        )

    def add(self, schema: Schema, analyst: str, parts: Iterable[AnsweredPart]) -> Tally:
        """Count the answers of a statement on one table; what they count for."""
        found = Tally(analyst, 0, 0, 0, 0, NOTHING)
        for part in parts:
            for one in part.aggregates:
                if one.source != SOURCE_PUBLIC:
                    found = _sum(found, self._tally(schema, analyst, one))
        if found.n_free or found.n_paid:
            self._merge(schema.table, found, None)
        return found

    def add_again(self, table: str, tally: Tally) -> None:
        """Count the same answers once more."""
        self._merge(table, tally, None)

    def write(self, ledger: Ledger) -> None:
        """Write the counts to the ledger; if that fails, keep them for later."""
        with self._lock:
            counts, since = self._counts, self._since
            self._counts, self._since = {}, utc_now()
        for table in sorted({table for table, _ in counts}):
            tallies = tuple(counts[key] for key in sorted(counts) if key[0] == table)
            body = Served(since, tallies)
            try:
                ledger.append(table, lambda _history, body=body: body)  # type: ignore[misc]  # bound
            except LedgerUnavailable:
                for tally in tallies:
                    self._merge(table, tally, since)

    def _tally(self, schema: Schema, analyst: str, found: AnsweredAggregate) -> Tally:
        """What one answer counts for."""
        units = sum(
            _n_charged(found.aggregate, one, schema) * self._plain_units(one) for one in found.asked
        )
        widths = [0] * len(NOTHING)
        widths[bisect_left(WIDTH_BINS, _share_of_promised(found))] = 1
        paid = int(found.source == SOURCE_MEASURED)
        free = 1 - paid
        return Tally(analyst, free, paid, units * free, units * paid, tuple(widths))

    def _merge(self, table: str, tally: Tally, since: str | None) -> None:
        key = (table, tally.analyst)
        with self._lock:
            before = self._counts.get(key)
            self._counts[key] = tally if before is None else _sum(before, tally)
            if since is not None:
                self._since = min(self._since, since)

    def _plain_units(self, wanted: Wanted) -> int:
        """What plain Laplace noise would cost, in units; 0 for what it could not answer at all."""
        key = (fingerprint(wanted.block), wanted.target.half_width, wanted.target.confidence)
        known = self._prices.get(key)
        if known is None:
            known = _plain_units(wanted)
            self._prices.put(key, known, n_bytes=PRICE_BYTES)
        return known


def _share_of_promised(found: AnsweredAggregate) -> float:
    """The width of the widest row of an answer, as a share of the one that was asked for.

    That is the target that applied in the end: a formula, and a target that is a share of the
    answer, ask for others than the statement began with.
    """
    shares, first = [], 0
    for one in found.asked:
        rows = found.posteriors[first : first + one.block.n_rows]
        shares.append(widest(rows, one.target.confidence) / one.target.half_width)
        first += one.block.n_rows
    return max(shares)


def _sum(one: Tally, other: Tally) -> Tally:
    """What the answers of one analyst count for together."""
    return Tally(
        one.analyst,
        one.n_free + other.n_free,
        one.n_paid + other.n_paid,
        one.plain_units_free + other.plain_units_free,
        one.plain_units_paid + other.plain_units_paid,
        tuple(a + b for a, b in zip(one.widths, other.widths, strict=True)),
    )


def _n_charged(aggregate: Aggregate, wanted: Wanted, schema: Schema) -> int:
    """How often a unit pays for a block: for each of its rows, or for each group it counts in."""
    rule = aggregate.rule
    if rule is None:
        return rows_in_block(wanted.block, schema.rows_per_unit_max_by, schema.rows_per_unit_max)
    return of_units(wanted.block.primitive[0], rule).reach(schema.rows_per_unit_max)


def _plain_units(wanted: Wanted) -> int:
    row, multiplier = wanted.block.primitive
    try:
        return weight_for(wanted.target, multiplier).units * profile_of(row).bound
    except (InvalidTarget, TooLarge):
        return 0


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

    def again(self, request: QueryRequest, opened: Mapping[str, ServedTable]) -> Told | None:
        """The answer to a request, if what it rests on shows without its statement being read.

        So it is where all of its tables are private ones, and no clock is read: what a text means
        then depends on the request and on entries of the ledger.
        """
        told = self._told.get(request)
        if told is None or told.workload.moment is not None:
            return None
        if any(name not in opened for name in told.workload.tables):
            return None
        return self.find(request, told.workload, opened)

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
