"""Whether a plan that others overtook is still what is to be bought.

Servers of one ledger plan at the same time, and each learns what another bought when it is about to
charge. To plan anew takes as long as before, and may be overtaken again. So it is asked first what
the others' purchases changed: a plan stands if nobody bought or promised the same rows, nothing
that is wanted has become known, and together with what others bought it gives about the half-widths
that it was made for. Were they much narrower, a smaller purchase would do.

What a plan costs is decided when it is charged. Nothing here decides what to buy.
"""

from dataclasses import dataclass
from typing import Final

from accountant.gate.gate import Gate
from accountant.ledger.raises import StalePlan
from cube.encoding import fingerprint
from planner.measuring.choose import meets
from planner.measuring.offers import PurchasePlan
from planner.workload import Wanted
from proxy.tables.in_flight import PromisedPurchases
from proxy.tables.snapshot import Expected
from proxy.tables.table_state import TableState

TOO_NARROW: Final = 1 / 16  # by how much, beyond what it was to be, a plan has become too dear


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
            return now is not None and self._is_as_much_needed(now)
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

    def _is_as_much_needed(self, now: Expected) -> bool:
        """Whether the plan is enough for everything, and gives little more than it was to."""
        missing = [
            (one, rows)
            for one, before, rows in zip(
                self.wanted, self.expected.estimates, now.estimates, strict=True
            )
            if not meets(before, one.target)
        ]
        if any(meets(rows, one.target) for one, rows in missing):
            return False
        before = self.expected.forecast.after(self.plan.planned)
        after = now.forecast.after(self.plan.planned)
        return all(
            before.half_width(one.block, one.target) / (1 + TOO_NARROW)
            <= after.half_width(one.block, one.target)
            <= one.target.half_width
            for one, _ in missing
        )
