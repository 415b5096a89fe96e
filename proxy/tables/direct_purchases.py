"""Purchases that no target asks for: counts of partitions at given weights, statistics, batches.

Where a target decides what is bought, `acquisition.py` does it. Here somebody has divided a budget
already: each table of counts is raised by the weight it is given, beyond what the history has. What
is being bought already is waited for, and never bought again.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from accountant.ledger.history.payments import Payment
from accountant.ledger.history.raises import StalePlan
from accountant.ledger.limits import Payer
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Precision, Weight
from cube.query import Partition, QueryBlock, counting
from cube.refusals import TooLarge
from cube.statistic import Asked
from planner.measuring.offers import PurchasePlan
from planner.measuring.weights import LAPLACE, NoiseKind
from proxy.tables.purchasing import Purchasing
from proxy.tables.snapshot import TableSnapshot

N_OVERTAKEN_MAX: Final = 5  # then the plan is bought whatever other processes do meanwhile

Added = Mapping[Partition | None, Weight | Precision]
"""What to add to the weight of each partition's counts, all of one kind of noise; None for the
count of everything.
"""


class DirectPurchases:
    """Buys on one table what was decided elsewhere. Thread-safe.

    Parameters
    ----------
    purchasing : Purchasing
    """

    def __init__(self, purchasing: Purchasing) -> None:
        self._table = purchasing

    def price_of_tables(self, added: Added) -> Fraction:
        """What `buy_tables` would cost now. Charges nothing."""
        snapshot = self._table.state.snapshot()
        return snapshot.price(_all_raised(snapshot, added, LAPLACE)).epsilon

    def buy_tables(
        self,
        added: Added,
        payer: Payer,
        epsilon_cap: Fraction | None,
        kind: NoiseKind = LAPLACE,
    ) -> Fraction:
        """Raise the counts of some partitions, each by a weight; what that cost.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge
            Before anything is charged.
        LedgerUnavailable, SourceUnavailable
            A charge already made waits, and is completed for the next request.
        """
        if not added:
            return Fraction(0)
        payment = self._carried_out(
            payer, epsilon_cap, lambda snapshot: _all_raised(snapshot, added, kind)
        )
        return Fraction(payment.units, UNITS_PER_EPSILON)

    def ask_statistics(
        self, statistics: Sequence[Asked], payer: Payer, epsilon_cap: Fraction | None
    ) -> tuple[tuple[float, ...], Fraction]:
        """The released values of statistics, and what they cost.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge
            Before anything is charged.
        LedgerUnavailable, SourceUnavailable
            A charge already made waits, and is completed for the next request.
        """
        payment = self._carried_out(payer, epsilon_cap, lambda _snapshot: (), statistics)
        released = self._table.gate.history.released_under(payment.seq)
        if released is None:
            self._table.state.extent.check_is_of(self._table.gate.history)  # given up
            raise RuntimeError("statistics that were measured are not in the history")
        return released.values, Fraction(payment.units, UNITS_PER_EPSILON)

    def buy_plan(
        self,
        plan: Sequence[PlannedMeasurement],
        n_measurements: int,
        payer: Payer,
        epsilon_cap: Fraction | None,
    ) -> Fraction:
        """Measure a plan that was made for a history of so many measurements; what that cost.

        Raises
        ------
        StalePlan
            If the history has grown meanwhile. Nothing was charged.
        HorizonMoved
            If the table has grown or was renewed meanwhile. Nothing was charged.
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge
            Before anything is charged.
        LedgerUnavailable, SourceUnavailable
            A charge already made waits, and is completed for the next request.
        """
        promises = self._table.wait_until_quiet()
        with self._table.turns.taken():
            self._table.state.extent.check_is_of(self._table.gate.history)
            is_busy = self._table.in_flight.promises().rows
            if is_busy or len(self._table.gate.measurements()) != n_measurements:
                raise StalePlan("something was bought while the batch was planned")
            everything = PurchasePlan(tuple(plan), ())
            purchase = self._table.begin(everything, promises)
        payment = self._table.in_flight.carry_out(purchase, payer, epsilon_cap=epsilon_cap)
        return Fraction(payment.units, UNITS_PER_EPSILON)

    def _carried_out(
        self,
        payer: Payer,
        epsilon_cap: Fraction | None,
        planned: Callable[[TableSnapshot], Sequence[PlannedMeasurement]],
        statistics: Sequence[Asked] = (),
    ) -> Payment:
        """Charge and measure what `planned` makes of the history, once nobody else is buying."""
        in_flight, turns = self._table.in_flight, self._table.turns
        n_overtaken = 0
        while True:
            promises = self._table.wait_until_quiet()
            with turns.taken() as turn:
                if in_flight.promises().rows:
                    continue
                plan = PurchasePlan(tuple(planned(self._table.state.snapshot())), ())
                beside = promises if n_overtaken < N_OVERTAKEN_MAX else None
                with turns.kept(turn) as is_kept:
                    if not is_kept and in_flight.promises().rows:
                        continue
                    purchase = self._table.begin(plan, beside, statistics)
            try:
                return in_flight.carry_out(purchase, payer, epsilon_cap=epsilon_cap)
            except StalePlan:
                n_overtaken += 1
                self._table.gate.refresh()


def _all_raised(snapshot: TableSnapshot, added: Added, kind: NoiseKind) -> list[PlannedMeasurement]:
    return [
        _raised(snapshot, QueryBlock(counting(), partition), more.units, kind)
        for partition, more in added.items()
    ]


def _raised(
    snapshot: TableSnapshot, block: QueryBlock, added: int, kind: NoiseKind
) -> PlannedMeasurement:
    """The block at a weight that is larger, by so many units, than what the history has."""
    place = snapshot.history.raisable(block, is_gaussian=kind.is_gaussian)
    units = added if place is None else snapshot.history[place].weight.units + added
    if place is None or units > kind.units_max:
        return kind.planned(block, added)
    raised = kind.planned(block, units, place)
    try:
        snapshot.forecast.foreseen(raised)
    except TooLarge:  # its lattice is too coarse: a second look costs the same, and tells as much
        return kind.planned(block, added)
    return raised
