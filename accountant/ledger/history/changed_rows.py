"""Updates a table's history when its rows change: accepted changes and new generations.

Changes are accepted of closed rows of a growing table:

    history   measurements that touch the changed levels say nothing about the new rows
    cost      what was paid at the unsettled levels stays paid: every one of their cells is taken to
              have cost as much as the dearest of them, for ever
    charges   those that wait for rows that are gone are given up; they stay paid
    units     what was counted is forgotten, and stays paid wherever a unit's rows are

Unsettled are the levels that have changed now or before, and those that were not readable yet when
rows first changed. A person's row may have moved from any of these cells to any other, so that no
cell may keep less than the dearest has cost. Elsewhere nothing has ever changed. Proof:
proofs/growth.md, "Accepted changes".

A new generation is other data of a table that does not grow:

    history   nothing that was measured says anything about the new rows, or is raised from there
    cost      of the cells, begins anew; what rows had cost until then stays beside it, for ever
    Gaussian  its account goes on: one order and one constant for the whole table
    units     what was counted is forgotten, and stays paid
    charges   those that wait for rows that are gone are given up; they stay paid

A unit's rows may be others in each generation, so its loss is at most the sum, over generations,
of the largest loss of a unit. Proof: proofs/generations.md.

Nothing here does input or output.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from accountant.cost import CostState, TableCost
from accountant.ledger.entries import ChangesAccepted, Charge, GenerationBegun, Period
from accountant.ledger.history.table_history import TableHistory
from accountant.ledger.values import AppendOnly, GrowingSet
from cube.measurement import PlannedMeasurement, Weight
from cube.query import Factor, Indicator, QueryBlock, counting, restricted, touches


def acceptance(history: TableHistory, periods: Sequence[Period], by: str) -> ChangesAccepted:
    """The entry that accepts changed periods of a table.

    Parameters
    ----------
    history : TableHistory
    periods : sequence of Period
        The changed periods, with the digests of the rows read now.
    by : str
        Who asked for it; recorded in the ledger.

    Raises
    ------
    ValueError
        If Gaussian noise was bought on a table whose units have bounded rows at each level.
    """
    changed = _Changed.of(history, periods)
    flat = changed.flat_cost().units
    weight_units = -(-flat // changed.times)
    cost = _fresh(history).charged(changed.paid_with(weight_units)).table_cost()
    beside = history.units_spent - history.units_of_rows
    units_after = max(history.units_spent, cost.units + beside)
    return ChangesAccepted(tuple(periods), weight_units, history.units_spent, units_after, by)


def after_acceptance(history: TableHistory, body: ChangesAccepted) -> TableHistory:
    """The history after changes were accepted; ValueError if they cannot follow it."""
    changed, growth = _Changed.of(history, body.periods), history.growth
    if body.units_before != history.units_spent:
        raise ValueError(
            f"the accepted changes start from {body.units_before} spent units, but "
            f"{history.units_spent} were spent"
        )
    found = changed.flat_cost()
    if found.exact and changed.times * body.weight_units < found.units:
        raise ValueError(
            "the accepted changes do not cover what was already paid for the changed rows"
        )
    paid = changed.paid_with(body.weight_units)
    dropped = changed.dropped()
    after = replace(
        history,
        growth=None if growth is None else growth.accepted(body.periods, dropped),
        superseded=history.superseded.joined_by(dropped),
        pending=MappingProxyType(changed.still_pending()),
        paid=AppendOnly(paid),
        cost=_fresh(history).charged(paid),
        spending=history.spending.raised(history.now, body.units_after - body.units_before),
        unit_counts=history.unit_counts.forgotten(),
    )
    after.check_cost()
    return after


def levels_of(spans: Iterable[tuple[int, int]], n_levels: int) -> Indicator:
    """1 for each level of an axis in one of some spans, from a level to before another; else 0."""
    levels = np.zeros(n_levels, dtype=np.int64)
    for start, end in spans:
        levels[start:end] = 1
    return levels


def is_given_up(charge: Charge, axis: str, levels: Indicator) -> bool:
    """Whether a charge waits for rows of some levels, which are gone; statistics are of all."""
    return bool(charge.statistics) or any(touches(one.block, axis, levels) for one in charge.blocks)


@dataclass(frozen=True, slots=True)
class _Changed:
    """The changed levels of a table.

    Parameters
    ----------
    history : TableHistory
    axis : str
    levels : (n_levels,) ndarray of int64
        1 for a changed level, 0 for others.
    unsettled : (n_levels,) ndarray of int64
        1 for an unsettled level, as the changed ones are.
    """

    history: TableHistory
    axis: str
    levels: Indicator
    unsettled: Indicator

    @classmethod
    def of(cls, history: TableHistory, periods: Sequence[Period]) -> "_Changed":
        """The levels of some periods; ValueError if the table does not grow."""
        growth = history.growth
        if growth is None:
            raise ValueError("the entry accepts changed rows, but the table does not grow")
        spans = [(one.start, one.end) for one in periods]
        unsettled = levels_of(growth.unsettled_with(periods), growth.n_levels)
        return cls(history, growth.axis, levels_of(spans, growth.n_levels), unsettled)

    @property
    def times(self) -> int:
        """For how many rows of a unit a cell counts: for one, if they are bounded by level."""
        return self.history.cost.rows_per_unit if self.history.cost.by is None else 1

    def flat_cost(self) -> TableCost:
        """The cost of the most expensive cell of the unsettled levels.

        Notes
        -----
        Where a unit's rows are bounded by level, a row with Gaussian noise costs a cell as much as
        the unit has rows in all of it: its parts would cost less than it does, and it is refused.
        """
        inside = self._parts(self.unsettled)
        if self.history.cost.by is not None and any(one.is_gaussian for one in inside):
            raise ValueError(
                "rows measured with Gaussian noise changed, and the bounds on a unit's "
                "rows are by level: their cost is not defined"
            )
        return CostState(rows_per_unit=self.times).charged(inside).table_cost()

    def paid_with(self, weight_units: int) -> list[PlannedMeasurement]:
        """The rows paid for at other levels, and one row for all of the unsettled levels."""
        outside = self._parts(1 - self.unsettled)
        if not weight_units:
            return outside
        block = QueryBlock(counting([Factor((self.axis,), self.unsettled)]))
        return [*outside, PlannedMeasurement(block, Weight(weight_units))]

    def are_of(self, block: QueryBlock) -> bool:
        """Whether rows have a coefficient at some changed level."""
        return touches(block, self.axis, self.levels)

    def dropped(self) -> list[int]:
        """The places of measurements that say nothing about the new rows."""
        measured = enumerate(self.history.measurements)
        return [place for place, one in measured if self.are_of(one.block)]

    def still_pending(self) -> dict[int, Charge]:
        """Charges that wait for rows that are there; others, and statistics, are given up."""
        return {
            seq: charge
            for seq, charge in self.history.pending.items()
            if not is_given_up(charge, self.axis, self.levels)
        }

    def _parts(self, levels: Indicator) -> list[PlannedMeasurement]:
        """The rows paid for, restricted to some levels."""
        parts = []
        for one in self.history.paid:
            block = restricted(one.block, self.axis, levels)
            if not block.query.is_constant:
                parts.append(replace(one, block=block))
        return parts


def _fresh(history: TableHistory) -> CostState:
    """The cost of an empty history of the same table."""
    return CostState(rows_per_unit=history.cost.rows_per_unit, by=history.cost.by)


def next_generation(history: TableHistory, data: str, rows: str, by: str) -> GenerationBegun | None:
    """The entry that begins a generation with this data; None if it is what there is.

    Parameters
    ----------
    history : TableHistory
    data, rows : str
        The fingerprints of the data, and of the rows read from it.
    by : str
        Who asked for it; recorded in the ledger.

    Raises
    ------
    ValueError
        If the table grows.
    """
    if history.growth is not None:
        raise ValueError("a table that grows cannot begin a generation")
    if history.generations.data[-1:] == (data,) and history.rows_fingerprint in (None, rows):
        return None
    return GenerationBegun(data, rows, history.units_spent, by)


def with_next_generation(history: TableHistory, body: GenerationBegun) -> TableHistory:
    """The history after a generation began; ValueError if it cannot follow it."""
    begun = next_generation(history, body.data_fingerprint, body.rows_fingerprint, body.by)
    if begun is None:
        raise ValueError("the generation has the same data as the one before")
    if begun != body:
        raise ValueError(
            f"the generation starts from {body.units_before} spent units, but "
            f"{history.units_spent} were spent"
        )
    generations = history.generations
    units = generations.units + history.units_of_rows
    return replace(
        history,
        rows_fingerprint=body.rows_fingerprint,
        generations=generations.followed_by(
            body.data_fingerprint, history.now, units, len(history.payments)
        ),
        earlier=(*history.earlier, _ended(history)),
        measurements=AppendOnly(),
        paid_by=AppendOnly(),
        pending=MappingProxyType({}),
        turns=MappingProxyType({}),
        cost=CostState(rows_per_unit=history.cost.rows_per_unit, by=history.cost.by),
        unit_counts=history.unit_counts.begun_anew(),
        superseded=GrowingSet(),
        released=AppendOnly(),
    )


def _ended(history: TableHistory) -> TableHistory:
    """The history of the generation that ends, for questions about it."""
    return replace(
        history,
        generations=replace(history.generations, ended_at=history.now),
        sharing=(),
        earlier=(),
        pending=MappingProxyType({}),
        turns=MappingProxyType({}),
        read=GrowingSet(),  # no pending charge of another process was read
    )
