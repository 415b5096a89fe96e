"""How much of a table is served, and how its rows are written there and in the ledger.

A table that does not grow is served as it is. Of one that grows, what plans and estimates see ends
at its horizon (`cube/horizon.py`), and what is charged and kept is about its whole axis. Whatever
passes between the two is written anew here. Nothing here decides anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from accountant.ledger.entries import Charge
from accountant.ledger.table_history import TableHistory
from cube.gaussian import Asked, PlannedGaussian
from cube.horizon import Horizon
from cube.measurement import Measurement, PlannedMeasurement
from cube.refusals import SourceUnavailable
from cube.schema import Schema
from cube.statistic import Choice, PlannedUnitCount, UnitCount


class HorizonMoved(SourceUnavailable):
    """What was planned is of a table that has grown since: plan again, nothing is lost."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f"More of {table} has become readable meanwhile.", hint="Ask again: nothing is lost."
        )


@dataclass(frozen=True, slots=True)
class Extent:
    """What is served of a table.

    Parameters
    ----------
    whole_schema : Schema
        Of the ledger.
    schema : Schema
        Of what is served.
    horizon : Horizon, optional
        Where it ends, if the table grows.
    """

    whole_schema: Schema
    schema: Schema
    horizon: Horizon | None = None

    @classmethod
    def of(cls, schema: Schema, charges: TableHistory) -> "Extent":
        """What may be served of a table with this history."""
        growth = charges.growth
        if growth is None:
            return cls(schema, schema)
        size = schema.by_name[growth.axis].size
        horizon = Horizon(growth.axis, size, growth.horizon)
        return cls(schema, horizon.cut_schema(schema), horizon)

    @property
    def n_readable(self) -> int | None:
        """The number of readable levels, of a table that grows."""
        return None if self.horizon is None else self.horizon.n_readable

    @property
    def note(self) -> str | None:
        """How far a table that grows is readable, for its readers."""
        if self.horizon is None:
            return None
        last = self.schema.by_name[self.horizon.axis].regular[-1]
        return f"{self.schema.table} has rows through {self.horizon.axis} {last}."

    def is_of(self, charges: TableHistory) -> bool:
        """Whether a history reaches as far as this."""
        growth = charges.growth
        return self.n_readable == (None if growth is None else growth.horizon)

    def check_is_of(self, charges: TableHistory) -> None:
        """Raise HorizonMoved if the history reaches further."""
        if not self.is_of(charges):
            raise HorizonMoved(self.schema.table)

    def kept(self, plan: Sequence[PlannedMeasurement]) -> tuple[PlannedMeasurement, ...]:
        """A plan as the ledger has it."""
        horizon = self.horizon
        if horizon is None:
            return tuple(plan)
        return tuple(replace(one, block=horizon.whole(one.block)) for one in plan)

    def kept_count(self, count: UnitCount) -> UnitCount:
        """A count of units as the ledger has it."""
        horizon = self.horizon
        return count if horizon is None else replace(count, block=horizon.whole(count.block))

    def kept_statistics(self, asked: Sequence[Asked]) -> tuple[Asked, ...]:
        """Statistics as the ledger has them."""
        return tuple(map(self._kept_statistic, asked))

    def served_plan(self, plan: Sequence[PlannedMeasurement]) -> tuple[PlannedMeasurement, ...]:
        """A plan of the ledger, about what is served."""
        horizon = self.horizon
        if horizon is None:
            return tuple(plan)
        return tuple(replace(one, block=horizon.cut(one.block)) for one in plan)

    def served(self, measurements: Sequence[Measurement]) -> Sequence[Measurement]:
        """Measurements of the ledger, about what is served."""
        horizon = self.horizon
        if horizon is None:
            return measurements
        return [replace(one, block=horizon.cut(one.block)) for one in measurements]

    def served_charges(self, charges: Sequence[Charge]) -> Sequence[Charge]:
        """Charges of the ledger, with the rows they are for about what is served."""
        horizon = self.horizon
        if horizon is None:
            return charges
        return [
            replace(
                charge,
                blocks=tuple(replace(one, block=horizon.cut(one.block)) for one in charge.blocks),
            )
            for charge in charges
        ]

    def _kept_statistic(self, asked: Asked) -> Asked:
        horizon = self.horizon
        if horizon is None:
            return asked
        if isinstance(asked, PlannedGaussian):
            statistic = asked.statistic
            return replace(
                asked, statistic=replace(statistic, block=horizon.whole(statistic.block))
            )
        if isinstance(asked, PlannedUnitCount):
            return replace(asked, count=self.kept_count(asked.count))
        if isinstance(asked.statistic, Choice):
            return asked
        distance = replace(asked.statistic, block=horizon.whole(asked.statistic.block))
        return replace(asked, statistic=distance)
