"""Whether a plan that others overtook is still what is to be bought.

Servers of one ledger plan at the same time, and each learns what another bought when it is about to
charge. To plan anew takes as long as before, and may be overtaken again. So it is asked first what
the others' purchases changed: a plan stands if nobody bought or promised the same rows, it is still
enough for everything that is wanted, and a new one would not cost much less: little of what it pays
for has become known, or would become much narrower than it was to be.

What a plan costs is decided when it is charged. Nothing here decides what to buy.
"""

from dataclasses import dataclass
from typing import Final

from accountant.gate.gate import Gate
from accountant.ledger.history.raises import StalePlan
from cube.encoding import fingerprint
from planner.measuring.choose import meets
from planner.measuring.offers import PurchasePlan
from planner.workload import Wanted
from proxy.tables.in_flight import PromisedPurchases
from proxy.tables.snapshot import Expected
from proxy.tables.table_state import TableState

SAVED_MAX: Final = 1 / 16  # of the price, by a new plan


@dataclass(frozen=True, slots=True, eq=False)
class SecondLook:
    """A plan, and what was expected when it was made.

    Parameters
    ----------
    plan : PurchasePlan
    wanted : tuple of Wanted
    expected : Expected
        Without the plan.
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
