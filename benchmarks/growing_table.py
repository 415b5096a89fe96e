"""A table without records that grows: cut at its horizon every day, with what was bought before.

Requests are bought as served ones are: history, planner and prices are the shipped ones. There is
no ledger file, no noise and no record: what is bought follows from targets and weights alone. What
was measured when the table had fewer levels is, on the longer axis, the same row with 0 on the new
levels.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from accountant.ledger.charged import ChargedBlock
from accountant.ledger.entries import Charge, Measured, TableBody, TableOpened
from accountant.ledger.limits import Payer
from accountant.ledger.table_history import TableHistory
from accountant.noise.laplace import LatticeNoise
from cube.block import Partition, QueryBlock
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement
from cube.query import Factor, LinearQuery, Term
from cube.schema import Schema
from inference.estimator import Estimator
from inference.posterior import RowEstimate
from planner.measuring.choose import meets
from planner.measuring.hindsight import Hindsight
from planner.measuring.offers import Offer
from planner.measuring.ski_rental import SkiRental
from planner.measuring.strategy import Strategy
from planner.workload import Wanted
from proxy.monitoring.events import UNWATCHED
from proxy.tables.snapshot import KnownHistory, TableSnapshot

PAYER = Payer("benchmark")


@dataclass(frozen=True, slots=True)
class Bought:
    """What one request cost, which offers were chosen, and how long it took in processor time."""

    epsilon: Fraction
    chosen: tuple[Offer, ...]
    seconds: float


class GrowingTable:
    """A table whose horizon moves forward.

    Parameters
    ----------
    schema : Schema
        At the first horizon.
    strategy : Strategy
    budget : Fraction
    """

    def __init__(self, schema: Schema, strategy: Strategy, budget: Fraction) -> None:
        self._strategy = strategy
        self._budget = budget
        self._charges: list[tuple[Charge, int]] = []  # each with the levels that there were
        self.advance(schema)

    def advance(self, schema: Schema) -> None:
        """Go on with a table of more levels: everything that was bought is cut again."""
        self.schema = schema
        opened = TableOpened("", "", self._budget, rows_per_unit=schema.rows_per_unit_max)
        self._n_entries, self.history = 0, TableHistory()
        self._estimator, self._ski_rental = Estimator(schema), SkiRental(schema)
        self._hindsight = Hindsight(schema)
        self._follow(opened)
        for charge, size in self._charges:
            self._charge(self._cut(charge, size))
        self._take_in()

    @property
    def spent(self) -> Fraction:
        """The table's cost so far, for a unit."""
        return Fraction(self.history.units_spent, UNITS_PER_EPSILON)

    def known(self, one: Wanted) -> tuple[RowEstimate, ...]:
        """What the history says of a block."""
        return self._estimator.estimate(*one.asked)

    def acquire(self, wanted: Sequence[Wanted]) -> Bought:
        """Buy what the history does not say well enough."""
        begun, before = time.process_time(), self.spent
        chosen: list[Offer] = []
        while True:
            if all(meets(self.known(one), one.target) for one in wanted):
                break
            if len(chosen) > len(wanted):
                raise RuntimeError("what was bought does not answer what was asked")
            found = KnownHistory(
                self.history, self._estimator.snapshot(), self._ski_rental.copy(), self._hindsight
            )
            snapshot = TableSnapshot(self.schema, self._strategy, found, UNWATCHED)
            plan = snapshot.plan(wanted, snapshot.estimates(wanted))
            self._buy(plan.planned, snapshot.price(plan.planned).units_after)
            chosen += [offer for offers in plan.offers for offer in offers if offer.is_chosen]
        return Bought(self.spent - before, tuple(chosen), time.process_time() - begun)

    def _buy(self, plan: Sequence[PlannedMeasurement], units_after: int) -> None:
        raises = self.history.raises
        blocks = []
        for planned in plan:
            noise = raises.noise_for(planned)
            assert isinstance(noise, LatticeNoise)
            blocks.append(ChargedBlock(planned.block, noise, planned.raised_from))
        charge = Charge(PAYER, tuple(blocks), self.history.units_spent, units_after)
        self._charges.append((charge, self._n_levels))
        self._charge(charge)
        self._take_in()

    def _charge(self, charge: Charge) -> None:
        self._follow(charge)
        nothing = tuple((0,) * one.block.n_rows for one in charge.blocks)
        self._follow(Measured(self._n_entries, nothing))

    def _follow(self, body: TableBody) -> None:
        self._n_entries += 1
        self.history = self.history.after(self._n_entries, "2026-11-23", body)

    def _take_in(self) -> None:
        self._estimator.add(self.history.measurements[self._estimator.n_measurements :])
        new = self.history.payments[self._ski_rental.n_charges :]
        self._ski_rental.add([payment.charge for payment in new])

    @property
    def _n_levels(self) -> int:
        axis = self.schema.grows
        return 0 if axis is None else self.schema.by_name[axis].size

    def _cut(self, charge: Charge, size: int) -> Charge:
        axis = self.schema.grows
        if axis is None or size == self._n_levels:
            return charge
        blocks = tuple(
            replace(one, block=lengthened(one.block, axis, size, self._n_levels))
            for one in charge.blocks
        )
        return replace(charge, blocks=blocks)


def lengthened(block: QueryBlock, axis: str, size: int, n_levels: int) -> QueryBlock:
    """A block over an axis of `size` levels as a block over more, with 0 on the new ones."""
    partition = block.partition
    is_grouped = partition is not None and axis in partition.axes
    if partition is not None and is_grouped:
        labels = _padded(partition.labels, partition.axes, axis, n_levels, -1)
        partition = Partition(partition.axes, labels)
    terms = []
    for term in block.query.terms:
        factors = [
            Factor(one.axes, _padded(one.values, one.axes, axis, n_levels, 0))
            if axis in one.axes
            else one
            for one in term.factors
        ]
        if not is_grouped and all(axis not in one.axes for one in factors):
            factors.append(Factor((axis,), (np.arange(n_levels) < size).astype(np.int64)))
        terms.append(Term(term.scale, tuple(factors)))
    return QueryBlock(LinearQuery(tuple(terms)), partition).primitive[0]


def _padded(
    values: NDArray[np.int64],
    axes: tuple[str, ...],
    axis: str,
    n_levels: int,
    beyond: int,
) -> NDArray[np.int64]:
    """An array over some axes, one of which gets further levels."""
    place = axes.index(axis)
    widths = [
        (0, n_levels - values.shape[place] if one == place else 0) for one in range(values.ndim)
    ]
    return np.pad(values, widths, constant_values=beyond)
