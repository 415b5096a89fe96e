"""Answers counted for the ledger: free and paid, and their width as a share of the target.

An answer is one linear query of a statement, with all its rows. Its plain price is what Laplace
noise would have cost for the same accuracy without a history: that of the target that applied when
its search ended. A statement that ends without reaching its target gave no answer. The counts are
written to the ledger periodically; a crash may lose some of them, but no charge and no answer.
"""

import threading
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from accountant.cost.row_cost import profile_of, rows_in_block
from accountant.ledger.clock import utc_now
from accountant.ledger.entries import WIDTH_BINS, Served, Tally
from accountant.ledger.ledger import Ledger
from cube.encoding import fingerprint
from cube.refusals import InvalidTarget, LedgerUnavailable, TooLarge
from cube.schema import Schema
from inference.block_estimates import widest
from planner.cache import BoundedCache
from planner.measuring.weights import weight_for
from planner.workload import Aggregate, Wanted
from proxy.api.requests import SOURCE_MEASURED, SOURCE_PUBLIC
from proxy.engine.results import AnsweredAggregate, AnsweredPart

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
    if aggregate.groups_max is None:
        return rows_in_block(wanted.block, schema.rows_per_unit_max_by, schema.rows_per_unit_max)
    return min(wanted.block.n_rows, aggregate.groups_max, schema.rows_per_unit_max)


def _plain_units(wanted: Wanted) -> int:
    row, multiplier = wanted.block.primitive
    try:
        return weight_for(wanted.target, multiplier).units * profile_of(row).bound
    except (InvalidTarget, TooLarge):
        return 0
