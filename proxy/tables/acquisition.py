"""Bringing what is wanted of one table to its targets: look, buy what is missing, look again.

What history answers waits for nobody. Whoever lacks something meets others who pay from the same
purse at the table's counter; one of them plans a purchase for all, beside what is being bought
already, and carries it out. Then each looks for itself. A plan that others overtook is made again,
and what was refused when many asked together is bought alone, so that nobody is refused for what
another wanted.

What to buy is the planner's, what may be charged the gate's.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from accountant.ledger.limits import Payer
from accountant.ledger.table_history import StalePlan
from cube.measurement import UNITS_PER_EPSILON
from cube.pace import checkpoint
from cube.refusals import Refused
from inference.posterior import RowEstimate
from planner.measuring.choose import meets
from planner.measuring.offers import PurchasePlan
from planner.workload import Wanted
from proxy.monitoring.events import Stage
from proxy.tables.coalescing import PendingRequest
from proxy.tables.in_flight import PromisedPurchases, Purchase
from proxy.tables.private_table import ServedTable
from proxy.tables.snapshot import TableSnapshot
from proxy.tables.turns import Turn

N_OVERTAKEN_MAX: Final = 3  # times that a plan is made again because others were faster


def brought(
    table: ServedTable, wanted: Sequence[Wanted], payer: Payer, cap: Fraction | None
) -> PendingRequest:
    """What is wanted, known as well as it is wanted. May charge.

    Raises
    ------
    BudgetExhausted, LimitReached, CostAboveCap, TooLarge, InvalidTarget
        Before anything is charged.
    LedgerUnavailable, SourceUnavailable
        What was charged waits, and is completed for whoever asks next.
    """
    need = PendingRequest(tuple(wanted), payer, cap)
    recalled = table.recalled(wanted)
    if recalled is not None:
        need.known = recalled
        return need
    _look(table, need)
    if not need.is_met:
        table.gate.refresh()
    while not need.is_met:
        checkpoint()
        with table.watcher.stage(Stage.WAIT):
            leads = table.counter.leads(need)
        if leads:
            _lead(table, need)
        _look(table, need)
    return need


def _look(table: ServedTable, need: PendingRequest) -> None:
    need.known = table.look(need.wanted)


def _lead(table: ServedTable, need: PendingRequest) -> None:
    """Buy what is missing, for oneself and for those who wait and may be served together."""
    party = [need]
    try:
        try:
            purchase = _begun(table, party)
        finally:
            table.counter.pass_on(need)
        if purchase is not None:
            _carry_out(table, party, purchase)
    finally:
        _call(party[1:])


def _begun(table: ServedTable, party: list[PendingRequest]) -> Purchase | None:
    """The purchase that a party needs, begun; None once its leader lacks nothing.

    The party is the leader, and grows by those who come while it waits for others' purchases.
    """
    leader = party[0]
    while True:
        table.purchases.complete_overdue()
        with table.turns.taken() as turn:
            promises = table.purchases.promises()
            snapshot = table.snapshot()
            party += table.counter.companions(leader)
            for one in party:
                one.known = snapshot.estimates(one.wanted)
            if leader.is_met:
                return None
            _call([one for one in party if one.is_met])
            party[:] = [one for one in party if not one.is_met]
            plan = _planned(snapshot, party, promises)
            if plan is not None:
                purchase = _begun_in(table, turn, plan, promises, leader)
                if purchase is not None:
                    return purchase
        if plan is None:
            table.purchases.wait(promises)
        else:
            leader.n_overtaken += 1


def _begun_in(
    table: ServedTable,
    turn: Turn,
    plan: PurchasePlan,
    promises: PromisedPurchases,
    leader: PendingRequest,
) -> Purchase | None:
    """The purchase of a plan, begun; None if it took longer than one's turn and others bought.

    Who was overtaken so often buys what they planned. They may pay for what others have just
    bought; nobody else does.
    """
    is_urgent = leader.n_overtaken >= N_OVERTAKEN_MAX
    n_read = None if is_urgent else promises.n_read
    with table.turns.kept(turn) as is_kept:
        if is_kept or is_urgent or table.purchases.are_as(promises):
            return table.purchases.begin(plan, n_read)
    return None


def _planned(
    snapshot: TableSnapshot, party: list[PendingRequest], promises: PromisedPurchases
) -> PurchasePlan | None:
    """What a party is to buy; its leader alone, if that is refused for all of them.

    None if what is promised is worth waiting for.
    """
    leader = party[0]
    wanted = [wanted for one in party for wanted in one.wanted]
    known = [rows for one in party for rows in one.known]
    try:
        return _plan(snapshot, wanted, known, promises)
    except Refused:
        if len(party) == 1:
            raise
    _part(party)
    _call(party[1:])
    del party[1:]
    return _plan(snapshot, leader.wanted, leader.known, promises)


def _plan(
    snapshot: TableSnapshot,
    wanted: Sequence[Wanted],
    known: Sequence[Sequence[RowEstimate]],
    promises: PromisedPurchases,
) -> PurchasePlan | None:
    if promises.rows:
        return snapshot.plan_beside(promises.rows, wanted)
    return snapshot.plan(wanted, known)


def _carry_out(table: ServedTable, party: Sequence[PendingRequest], purchase: Purchase) -> None:
    """Charge and measure; who lacks something afterwards has to try again."""
    leader = party[0]
    try:
        payment = table.purchases.carry_out(purchase, leader.payer, epsilon_cap=leader.left)
    except StalePlan:
        for one in party:
            one.n_overtaken += 1
    except Refused:
        if len(party) == 1:
            raise
        _part(party)
    else:
        _share(party, purchase.plan, Fraction(payment.units, UNITS_PER_EPSILON))


def _part(party: Sequence[PendingRequest]) -> None:
    """From now on each is served alone."""
    for one in party:
        one.is_alone = True


def _call(party: Sequence[PendingRequest]) -> None:
    """Have them look for themselves."""
    for one in party:
        one.leads = False
        one.called.set()


def _share(party: Sequence[PendingRequest], plan: PurchasePlan, paid: Fraction) -> None:
    """Share what was paid among those who needed it, as it was planned.

    Others may have paid for cells meanwhile, so that it came to more or less than was planned.
    Whoever needed nothing beyond what the others buy is answered from history, and pays nothing.
    """
    left = paid
    places = [(one, place) for one in party for place in range(len(one.wanted))]
    buyers = [number for number, offers in enumerate(plan.offers) if offers]
    paying = {id(places[number][0]) for number in buyers}
    for number, (one, place) in enumerate(places):
        if id(one) in paying and not meets(one.known[place], one.wanted[place].target):
            one.was_known[place] = False
        if number in buyers:
            share = left if number == buyers[-1] else min(left, plan.epsilon(number))
            one.epsilons[place] += share
            left -= share
