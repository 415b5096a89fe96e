"""Ski rental: the rent is what was spent on narrow measurements that no wider one has replaced.

Whether to buy every cell of a scope, or only the row that is asked for, is the ski-rental problem.
Without knowing the future, no rule can be sure to pay less than about twice the best choice in
hindsight (Karlin et al. 1988, "Competitive snoopy caching"). The rule here keeps to that factor:
cells are bought once they cost no more than the rent paid on their scope before, plus twice the
rent asked now. So at most twice the rent is ever spent, and the rent paid before a purchase is less
than its price. Rent that a purchase has redeemed no longer counts.

Everything is computed again from the ledger's charges, so a restart forgets nothing.
"""

from collections.abc import Sequence

from accountant.ledger.entries import Charge
from cube.query import Scope
from planner.measuring.candidates import is_every_cell


class SkiRental:
    """The rent of one table, in units of 2**-40 epsilon of table cost, scope by scope."""

    def __init__(self) -> None:
        self._n_charges = 0
        self._paid: dict[tuple[Scope, Scope | None], int] = {}

    def copy(self) -> "SkiRental":
        """A copy that does not change when this one does."""
        other = SkiRental()
        other._n_charges, other._paid = self._n_charges, self._paid.copy()
        return other

    @property
    def n_charges(self) -> int:
        """The number of charges taken in."""
        return self._n_charges

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes on which rent is left, the highest rent first."""
        left: dict[Scope, int] = {}
        for (scope, _), units in self._paid.items():
            left[scope] = left.get(scope, 0) + units
        return tuple(sorted((one for one in left if left[one]), key=lambda one: (-left[one], one)))

    def add(self, charges: Sequence[Charge]) -> None:
        """Take in charges, in order."""
        for charge in charges:
            self._n_charges += 1
            units = charge.units_after - charge.units_before
            if not (units and charge.blocks):  # what statistics cost would not have been saved
                continue
            scope = tuple(sorted({axis for one in charge.blocks for axis in one.block.scope}))
            wide = [one.block.scope for one in charge.blocks if is_every_cell(one.block)]
            widest = max(wide, key=len, default=None)
            if widest is not None:
                self._redeem(widest, units)
            self._paid[scope, widest] = self._paid.get((scope, widest), 0) + units

    def on(self, scope: Scope) -> int:
        """The rent paid within a scope, except what was paid for the scope's own cells."""
        return sum(self._paid[key] for key in self._within(scope))

    def _redeem(self, scope: Scope, units: int) -> None:
        for key in sorted(self._within(scope), key=str):
            redeemed = min(units, self._paid[key])
            self._paid[key] -= redeemed
            units -= redeemed

    def _within(self, scope: Scope) -> list[tuple[Scope, Scope | None]]:
        axes = frozenset(scope)
        return [key for key in self._paid if key[1] != scope and axes.issuperset(key[0])]
