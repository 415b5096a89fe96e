"""The history of one table: what its ledger entries add up to.

A `TableHistory` is an immutable value; an entry takes it to the next one or is refused. The gate,
the opening of a ledger and its audit all go through `after`, so that what was charged while serving
is what is read back.

Nothing here does input or output. Proof: proofs/gate.md, "The history".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType

from accountant.append_only import AppendOnly
from accountant.cost import CostState
from accountant.entries import Body, BudgetSet, Charge, ChargedBlock, Measured, TableOpened
from accountant.noise import LatticeNoise, may_be_clamped
from cube.encoding import fingerprint
from cube.measurement import UNITS_PER_EPSILON, Measurement, PlannedMeasurement, Weight
from cube.refusals import TooLarge


class StalePlan(ValueError):
    """A plan raises a measurement that was raised meanwhile: plan again, nothing was charged."""


@dataclass(frozen=True, eq=False)
class TableHistory:
    """Everything the ledger knows of one table.

    Parameters
    ----------
    opened : TableOpened, optional
        How the table began; None before it did.
    budget : Fraction
        The limit, in epsilon.
    measurements : sequence of Measurement
        In the order in which they became durable.
    pending : mapping of int to Charge
        Charges without a measurement, by sequence number.
    units_spent : int
        The table's cost as it was charged, in units of 2**-40 epsilon.
    cost : CostState
        What every cell has paid, computed from the rows of every charge.
    superseded : frozenset of int
        Places of measurements that a later one was raised from.
    charges : tuple of Charge
        Every charge, measured or waiting, in order.
    """

    opened: TableOpened | None = None
    budget: Fraction = Fraction(0)
    measurements: AppendOnly[Measurement] = field(default_factory=AppendOnly)
    pending: Mapping[int, Charge] = field(default_factory=lambda: MappingProxyType({}))
    units_spent: int = 0
    cost: CostState = field(default_factory=CostState)
    superseded: frozenset[int] = frozenset()
    charges: tuple[Charge, ...] = ()

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

    def added(self, plan: Sequence[PlannedMeasurement]) -> list[PlannedMeasurement]:
        """What a plan adds to what is paid for: a row that is raised adds the difference alone.

        Raises
        ------
        ValueError
            If it raises what it cannot: another block, to no larger weight, or twice.
        StalePlan
            If it raises what has been raised since.
        """
        places = [planned.raised_from for planned in plan if planned.raised_from is not None]
        if len(set(places)) < len(places):
            raise ValueError("one measurement raised twice at once")
        rows = []
        for planned in plan:
            earlier = self._earlier(planned)
            if earlier is None:
                rows.append(planned)
            else:
                difference = Weight(planned.weight.units - earlier.weight.units)
                rows.append(PlannedMeasurement(earlier.block, difference))
        return rows

    def noise_for(self, planned: PlannedMeasurement) -> LatticeNoise:
        """The noise that a planned measurement is to have.

        Raises
        ------
        TooLarge
            If it raises a measurement whose noise cannot be refined. Decided on public things.
        """
        earlier = self._earlier(planned)
        if earlier is None:
            return LatticeNoise.for_weight(planned.weight)
        if may_be_clamped(earlier):
            raise TooLarge(
                "An earlier answer is at the limit of what can be stored, and cannot be raised.",
                hint="Sum a column with smaller values.",
            )
        return LatticeNoise.of(earlier).refined_to(planned.weight)

    def _earlier(self, planned: PlannedMeasurement) -> Measurement | None:
        """The measurement that a planned one raises; None if it raises none."""
        place = planned.raised_from
        if place is None:
            return None
        if place >= len(self.measurements):
            raise ValueError("a measurement raised that was never made")
        earlier = self.measurements[place]
        if fingerprint(earlier.block) != fingerprint(planned.block):
            raise ValueError("a measurement raised for other rows than it is of")
        if planned.weight <= earlier.weight:
            raise ValueError("a measurement raised to a weight that is no larger")
        if place in self.superseded:
            raise StalePlan("a measurement raised that has been raised since")
        return earlier

    def _charged(self, seq: int, charge: Charge) -> "TableHistory":
        if not charge.blocks:
            raise ValueError("a charge without rows")
        if charge.units_before != self.units_spent:
            raise ValueError(
                f"charged on top of {charge.units_before} units, but {self.units_spent} were spent"
            )
        if charge.units_after < charge.units_before:
            raise ValueError("a charge that lowers what is spent")
        added = self.added([charged.planned for charged in charge.blocks])
        checked = replace(charge, blocks=tuple(map(self._checked, charge.blocks)))
        return replace(
            self,
            pending=MappingProxyType({**self.pending, seq: checked}),
            charges=(*self.charges, checked),
            units_spent=charge.units_after,
            cost=self.cost.charged(added),
        )

    def _checked(self, charged: ChargedBlock) -> ChargedBlock:
        """The same charged block; one that is raised shares its arrays with the earlier one."""
        earlier = self._earlier(charged.planned)
        if earlier is None:
            return charged
        raised = {other.raised_from for charge in self.pending.values() for other in charge.blocks}
        if charged.raised_from in raised:
            raise ValueError("a measurement raised while a raise of it waits")
        before = LatticeNoise.of(earlier)
        if (
            may_be_clamped(earlier)
            or charged.noise.lattice_bits != before.lattice_bits
            or charged.noise.scale_in_steps >= before.scale_in_steps
        ):
            raise ValueError("a measurement raised to noise that is no refinement of its own")
        return replace(charged, block=earlier.block)

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
            measurements=self.measurements.followed_by(new),
            pending=MappingProxyType(waiting),
            superseded=self.superseded.union(
                found.supersedes for found in new if found.supersedes is not None
            ),
        )


def _budget(value: Fraction) -> Fraction:
    if value < 0:
        raise ValueError("a budget below zero")
    return value
