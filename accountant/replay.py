"""The history of one table: what its ledger entries add up to.

A `TableHistory` is an immutable value; an entry takes it to the next one or is refused. The gate,
the opening of a ledger and its audit all go through `after`, so that what was charged while serving
is what is read back.

Nothing here does input or output. Proof: proofs/gate.md, "The history".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType

from accountant.cost import CostState
from accountant.entries import Body, BudgetSet, Charge, Measured, TableOpened
from cube.measurement import UNITS_PER_EPSILON, Measurement


@dataclass(frozen=True, eq=False)
class TableHistory:
    """Everything the ledger knows of one table.

    Parameters
    ----------
    opened : TableOpened, optional
        How the table began; None before it did.
    budget : Fraction
        The limit, in epsilon.
    measurements : tuple of Measurement
        In the order in which they became durable.
    pending : mapping of int to Charge
        Charges without a measurement, by sequence number.
    units_spent : int
        The table's cost as it was charged, in units of 2**-40 epsilon.
    cost : CostState
        What every cell has paid, computed from the rows of every charge.
    """

    opened: TableOpened | None = None
    budget: Fraction = Fraction(0)
    measurements: tuple[Measurement, ...] = ()
    pending: Mapping[int, Charge] = field(default_factory=lambda: MappingProxyType({}))
    units_spent: int = 0
    cost: CostState = field(default_factory=CostState)

    @property
    def units_max(self) -> int:
        """The limit in whole units, rounded down."""
        return int(self.budget * UNITS_PER_EPSILON)

    def after(self, seq: int, body: Body) -> "TableHistory":
        """The history once entry number `seq` says `body`.

        Raises
        ------
        ValueError
            If the entry cannot follow this history.
        """
        if (self.opened is None) != isinstance(body, TableOpened):
            raise ValueError("a table is opened once, before anything else is said of it")
        match body:
            case TableOpened():
                return replace(self, opened=body, budget=_budget(body.budget))
            case BudgetSet():
                return replace(self, budget=_budget(body.budget))
            case Charge():
                return self._charged(seq, body)
            case Measured():
                return self._measured(body)

    def check_cost(self) -> None:
        """Raise ValueError if the rows cost more than was charged for them."""
        found = self.cost.table_cost()
        if found.exact and found.units > self.units_spent:
            raise ValueError(
                f"the rows cost {found.units} units and {self.units_spent} were charged"
            )

    def _charged(self, seq: int, charge: Charge) -> "TableHistory":
        if not charge.blocks:
            raise ValueError("a charge without rows")
        if charge.units_before != self.units_spent:
            raise ValueError(
                f"charged on top of {charge.units_before} units, but {self.units_spent} were spent"
            )
        if charge.units_after < charge.units_before:
            raise ValueError("a charge that lowers what is spent")
        return replace(
            self,
            pending=MappingProxyType({**self.pending, seq: charge}),
            units_spent=charge.units_after,
            cost=self.cost.charged([charged.planned for charged in charge.blocks]),
        )

    def _measured(self, body: Measured) -> "TableHistory":
        charge = self.pending.get(body.charge)
        if charge is None:
            raise ValueError(
                f"a measurement under {body.charge}, which is no charge waiting for one"
            )
        if len(body.lattice_values) != len(charge.blocks):
            raise ValueError("a measurement of other rows than were charged")
        new = tuple(
            charged.measured(values)
            for charged, values in zip(charge.blocks, body.lattice_values, strict=True)
        )
        waiting = {seq: other for seq, other in self.pending.items() if seq != body.charge}
        return replace(
            self,
            measurements=(*self.measurements, *new),
            pending=MappingProxyType(waiting),
        )


def _budget(value: Fraction) -> Fraction:
    if value < 0:
        raise ValueError("a budget below zero")
    return value
