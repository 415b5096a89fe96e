"""Buying counts of whole partitions at given weights, and statistics that are no rows.

Where a target decides what is bought, the planner does (buying.py). Here somebody divides a budget
among tables of counts: each is raised by the weight he gives it, beyond what the history has. What
is being bought already is waited for, and never bought again.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from accountant.ledger.limits import Payer
from accountant.ledger.payments import Payment
from accountant.ledger.table_history import StalePlan
from cube.block import Partition, QueryBlock
from cube.gaussian import Asked
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Weight
from cube.query import counting
from cube.refusals import TooLarge
from planner.measuring.offers import PurchasePlan
from proxy.tables.in_flight import PromisedPurchases
from proxy.tables.private_table import ServedTable
from proxy.tables.snapshot import TableSnapshot

N_OVERTAKEN_MAX: Final = 5  # then the plan is bought whatever other processes do meanwhile


def buy_tables(
    table: ServedTable,
    added: Mapping[Partition | None, Weight],
    payer: Payer,
    *,
    epsilon_cap: Fraction | None,
) -> Fraction:
    """Raise the counts of some partitions, each by a weight; what that cost.

    Parameters
    ----------
    table : ServedTable
    added : mapping
        What to add to the weight of each partition's counts; None for the count of everything.
    payer : Payer
    epsilon_cap : Fraction, optional

    Raises
    ------
    BudgetExhausted, LimitReached, CostAboveCap, TooLarge
        Before anything is charged.
    LedgerUnavailable, SourceUnavailable
        A charge made waits, and is completed for whoever asks next.
    """
    if not added:
        return Fraction(0)
    blocks = [(QueryBlock(counting(), one), weight) for one, weight in added.items()]
    payment = _carried_out(
        table,
        payer,
        epsilon_cap,
        lambda snapshot: [_raised(snapshot, block, one) for block, one in blocks],
    )
    return Fraction(payment.units, UNITS_PER_EPSILON)


def price_of_tables(table: ServedTable, added: Mapping[Partition | None, Weight]) -> Fraction:
    """What `buy_tables` would cost now. Charges nothing."""
    snapshot = table.snapshot()
    blocks = [(QueryBlock(counting(), one), weight) for one, weight in added.items()]
    return snapshot.price([_raised(snapshot, block, weight) for block, weight in blocks]).epsilon


def ask_statistics(
    table: ServedTable,
    statistics: Sequence[Asked],
    payer: Payer,
    *,
    epsilon_cap: Fraction | None,
) -> tuple[tuple[float, ...], Fraction]:
    """What statistics tell, and what they cost: distances and counts, places of candidates.

    Raises
    ------
    BudgetExhausted, LimitReached, CostAboveCap, TooLarge
        Before anything is charged.
    LedgerUnavailable, SourceUnavailable
        A charge made waits, and is completed for whoever asks next.
    """
    payment = _carried_out(table, payer, epsilon_cap, lambda _snapshot: (), statistics)
    told = table.gate.history.released_under(payment.seq)
    if told is None:
        raise RuntimeError("statistics that were measured are not in the history")
    return told.values, Fraction(payment.units, UNITS_PER_EPSILON)


def _carried_out(
    table: ServedTable,
    payer: Payer,
    epsilon_cap: Fraction | None,
    planned: Callable[[TableSnapshot], Sequence[PlannedMeasurement]],
    statistics: Sequence[Asked] = (),
) -> Payment:
    """Charge and measure what `planned` makes of the history, once nobody else is buying."""
    n_overtaken = 0
    while True:
        promises = _quiet(table)
        with table.turns.taken() as turn:
            if table.purchases.promises().rows:
                continue
            plan = PurchasePlan(tuple(planned(table.snapshot())), ())
            n_read = promises.n_read if n_overtaken < N_OVERTAKEN_MAX else None
            with table.turns.kept(turn) as is_kept:
                if not is_kept and table.purchases.promises().rows:
                    continue
                purchase = table.purchases.begin(plan, n_read, statistics)
        try:
            return table.purchases.carry_out(purchase, payer, epsilon_cap=epsilon_cap)
        except StalePlan:
            n_overtaken += 1
            table.gate.refresh()


def _quiet(table: ServedTable) -> PromisedPurchases:
    """Wait until nothing is being bought."""
    table.purchases.complete_overdue()
    while (promises := table.purchases.promises()).rows:
        table.purchases.wait(promises)
        table.purchases.complete_overdue()
    return promises


def _raised(table: TableSnapshot, block: QueryBlock, added: Weight) -> PlannedMeasurement:
    """The block at a weight that is so much larger than what the history has."""
    place = table.history.most_precise(block)
    if place is None:
        return PlannedMeasurement(block, added)
    weight = Weight(table.history[place].weight.units + added.units)
    raised = PlannedMeasurement(block, weight, place)
    try:
        table.prospect.noise_for(raised)
    except TooLarge:  # its lattice is too coarse: a second look costs the same, and tells as much
        return PlannedMeasurement(block, added)
    return raised
