"""Bringing what is wanted of one table to its targets: look, buy what is missing, look again.

Whether a plan that others overtook is still what is to be bought.

Servers of one ledger plan at the same time, and each learns what another bought when it is about to
charge. To plan anew takes as long as before, and may be overtaken again. So it is asked first what
the others' purchases changed: a plan stands if no other bought or promised the same rows, it is
still enough for everything that is wanted, and a new one would not cost much less: few of its rows
have become known, or would become much narrower than it was to be.

What a plan costs is decided when it is charged. Nothing here decides what to buy.

What the history answers does not wait. A request that lacks something joins the queue of its
payer; one request of the queue leads, plans a purchase for all of them, beside what is being bought
already, and carries it out. Then each looks for itself. A plan that others overtook is made again,
and what was refused for all together is bought for each alone, so that no request is refused for
what another wanted.

What to buy is the planner's decision, what may be charged the gate's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from accountant.gate import Gate
from accountant.ledger import Payer
from accountant.ledger.history import StalePlan
from cube.encoding import fingerprint
from cube.pace import checkpoint
from cube.refusals import Refused
from inference import RowEstimates
from planner.measuring import PurchasePlan, meets
from planner.workload import Wanted
from proxy.monitoring import Stage
from proxy.tables.in_flight import (
    ANSWER_SECONDS,
    PendingRequest,
    PromisedPurchases,
    Purchase,
    PurchaseQueue,
    epsilon_of,
)
from proxy.tables.purchasing import Purchasing, Turn
from proxy.tables.snapshot import Expected, TableSnapshot
from proxy.tables.table_state import TableState

SAVED_MAX: Final = 1 / 16  # of the price, by a new plan


@dataclass(frozen=True, slots=True, eq=False)
class SecondLook:
    """A plan, and what was expected when it was made.

    Parameters
    ----------
    expected : Expected
        What is expected without the plan.
    n_payments : int
        How many charges there were.
    """

    plan: PurchasePlan
    wanted: tuple[Wanted, ...]
    expected: Expected
    n_payments: int

    def still_serves(self, gate: Gate, state: TableState, promises: PromisedPurchases) -> bool:
        """Whether it is to be charged as it is, beside what is promised now."""
        if self.plan.counts or self._is_bought_by_others(gate, state):
            return False
        snapshot = state.snapshot()
        try:
            snapshot.price(self.plan.planned)
            now = snapshot.expected(promises.rows, promises.counts, self.wanted)
            return now is not None and self._is_worth_it(now)
        except StalePlan:  # what it raises was raised
            return False

    def _is_bought_by_others(self, gate: Gate, state: TableState) -> bool:
        """Whether others have charged for some of its rows since."""
        own = {fingerprint(one.block) for one in state.extent.kept(self.plan.planned)}
        history = gate.history
        return any(
            fingerprint(block.block) in own
            for payment in history.payments[self.n_payments :]
            if payment.seq in history.read
            for block in payment.charge.blocks
        )

    def _is_worth_it(self, now: Expected) -> bool:
        """Whether the plan is enough for everything, and a new one would not cost much less.

        What something costs falls about as its half-width rises. What is known by now would cost
        nothing.
        """
        before = self.expected.forecast.after(self.plan.planned)
        after = now.forecast.after(self.plan.planned)
        saved, price = 0.0, 0.0
        for place, one in enumerate(self.wanted):
            if meets(self.expected.estimates[place], one.target):
                continue
            width = after.half_width(one.block, one.target)
            if width > one.target.half_width:
                return False
            share = 1.0
            if not meets(now.estimates[place], one.target):
                share = max(0.0, 1 - width / before.half_width(one.block, one.target))
            epsilon = float(self.plan.epsilon(place))
            saved, price = saved + share * epsilon, price + epsilon
        return saved <= SAVED_MAX * price


N_OVERTAKEN_MAX: Final = 3  # times that a plan is made again because others were faster
N_ATTEMPTS_MAX: Final = 64  # of a request; a broken promise must not go on buying


@dataclass(frozen=True, slots=True, eq=False)
class Acquired:
    """What was wanted, known as well as it is wanted, and what that cost.

    Parameters
    ----------
    known : tuple of tuple of RowEstimate
        The rows of each block, in the order in which the blocks were wanted.
    epsilons : tuple of Fraction
        What was paid for each block.
    was_known : tuple of bool
        Whether each block was answered by what was bought before, or for others.
    """

    known: tuple[RowEstimates, ...]
    epsilons: tuple[Fraction, ...]
    was_known: tuple[bool, ...]

    @property
    def epsilon(self) -> Fraction:
        """What was paid for all of it."""
        return sum(self.epsilons, Fraction(0))


class Acquisition:
    """Answers what is wanted of one table, from its history or a purchase. Thread-safe."""

    def __init__(self, purchasing: Purchasing) -> None:
        self._table = purchasing
        self.queue = PurchaseQueue()

    def acquire(
        self, wanted: Sequence[Wanted], payer: Payer, epsilon_cap: Fraction | None
    ) -> Acquired:
        """What is wanted, known as well as it is wanted. May charge.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge, InvalidTarget
            Before anything is charged.
        LedgerUnavailable, SourceUnavailable
            A charge already made waits, and is completed for the next request.
        """
        request = PendingRequest(tuple(wanted), payer, epsilon_cap)
        recalled = self._table.state.recalled(wanted)
        if recalled is not None:
            request.known = recalled
            return _acquired(request)
        self._look(request)
        if not request.is_met:
            self._table.gate.refresh()
        for _ in range(N_ATTEMPTS_MAX):
            if request.is_met:
                break
            checkpoint()
            with self._table.watcher.stage(Stage.WAIT):
                leads = self.queue.leads(request)
            if leads:
                self._lead(request)
            self._look(request)
        if not request.is_met:
            raise RuntimeError("the purchase does not reach the promised half-widths")
        return _acquired(request)

    def _look(self, request: PendingRequest) -> None:
        request.known = self._table.state.look(request.wanted)

    def _lead(self, leader: PendingRequest) -> None:
        """Buy what is missing, for the leader and for those of its queue that it can serve."""
        party = [leader]
        try:
            try:
                purchase = self._begun(party)
            finally:
                self.queue.pass_on(leader)
            if purchase is not None:
                self._carry_out(party, *purchase)
        finally:
            _call(party[1:])

    def _begun(self, party: list[PendingRequest]) -> tuple[Purchase, SecondLook] | None:
        """The purchase that a party needs, begun; None once its leader lacks nothing.

        The party is the leader, and grows by those who come while it waits for others' purchases.
        """
        leader = party[0]
        table = self._table
        while True:
            table.in_flight.complete_overdue()
            table.in_flight.wait_a_moment()
            with table.turns.taken() as turn:
                promises = table.in_flight.promises()
                snapshot = table.state.snapshot()
                party += self.queue.companions(leader)
                for one in party:
                    one.known = snapshot.estimates(one.wanted)
                if leader.is_met:
                    return None
                _call([one for one in party if one.is_met])
                party[:] = [one for one in party if not one.is_met]
                if not (promises.rows or promises.counts):
                    checkpoint(ANSWER_SECONDS)  # as before the charge: no plan is made in vain
                found = _planned(snapshot, party, promises)
                if found is not None:
                    purchase = self._begun_in(turn, found.plan, promises, leader)
                    if purchase is not None:
                        return purchase, found
            if found is None:
                table.in_flight.wait(promises)
            else:
                leader.n_overtaken += 1

    def _begun_in(
        self, turn: Turn, plan: PurchasePlan, promises: PromisedPurchases, leader: PendingRequest
    ) -> Purchase | None:
        """The purchase of a plan, begun; None if it outlasted its turn and others bought.

        A leader that was overtaken too often buys what it planned. Its payer may then pay for what
        others have just bought; no other payer does.
        """
        is_urgent = leader.n_overtaken >= N_OVERTAKEN_MAX
        beside = None if is_urgent else promises
        with self._table.turns.kept(turn) as is_kept:
            if is_kept or is_urgent or self._table.in_flight.are_kept(promises):
                return self._table.begin(plan, beside)
        return None

    def _carry_out(
        self, party: Sequence[PendingRequest], purchase: Purchase, look: SecondLook
    ) -> None:
        """Charge and measure; a request that lacks something afterwards tries again."""
        leader, table = party[0], self._table
        try:
            payments = table.in_flight.carry_out(
                purchase,
                leader.payer,
                epsilon_cap=leader.left,
                still_serves=lambda now: look.still_serves(table.gate, table.state, now),
            )
        except StalePlan:
            for one in party:
                one.n_overtaken += 1
        except Refused:
            if len(party) == 1:
                raise
            _part(party)
        else:
            _share(party, purchase.plan, epsilon_of(payments))


def _acquired(request: PendingRequest) -> Acquired:
    known = tuple(tuple(rows) for rows in request.known)
    return Acquired(known, tuple(request.epsilons), tuple(request.was_known))


def _planned(
    snapshot: TableSnapshot, party: list[PendingRequest], promises: PromisedPurchases
) -> SecondLook | None:
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
    known: Sequence[RowEstimates],
    promises: PromisedPurchases,
) -> SecondLook | None:
    if promises.rows or promises.counts:
        try:
            expected = snapshot.expected(promises.rows, promises.counts, wanted)
        except StalePlan:  # what is promised would raise what is not there yet
            return None
        plan = None if expected is None else snapshot.plan_beside(expected, wanted)
    else:
        expected = Expected(snapshot.forecast, tuple(known))
        plan = snapshot.plan(wanted, known)
    if plan is None or expected is None:
        return None
    return SecondLook(plan, tuple(wanted), expected, promises.n_payments)


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
    """Share what was paid among the requests that needed it, as it was planned.

    Others may have paid for cells meanwhile, so that it came to more or less than was planned. A
    request that needs nothing beyond what the others buy is answered from the history, and pays
    nothing.
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
