"""How much of a table is served, and how its rows are written there and in the ledger.

A table that does not grow is served as it is. If a table grows, plans and estimates see it only up
to its horizon (`cube/horizon.py`), and what is charged and kept is about its whole axis. Whatever
passes between the two is written anew here. Nothing here decides anything.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from accountant.ledger import Charge
from accountant.ledger.history import TableHistory
from cube.holders import Holders
from cube.horizon import Horizon
from cube.measurement import Measurement, PlannedMeasurement
from cube.query import QueryBlock
from cube.refusals import InvalidRequest, SourceUnavailable
from cube.schema import Schema
from cube.statistic import (
    Asked,
    Choice,
    OfUnits,
    PlannedGaussian,
    PlannedUnitCount,
    UnitCount,
    UnitSizes,
)
from planner.measuring import CountPart

ExtentName: TypeAlias = tuple[int | None, tuple[int, ...], int]


class HorizonMoved(SourceUnavailable):
    """What was planned is of a table that was renewed, or has grown, since: plan again."""


class DataReplaced(HorizonMoved):
    """What was planned, and perhaps bought, is of an earlier generation of a table."""


@dataclass(frozen=True, slots=True)
class Extent:
    """What is served of a table.

    Parameters
    ----------
    whole_schema : Schema
        The schema of the whole table, as in the ledger.
    schema : Schema
        The schema of the served rows.
    horizon : Horizon, optional
        Where it ends, if the table grows.
    dropped : tuple of int
        Places of measurements that say nothing about what is served: closed rows have changed.
    generation : int
        The number of its generation, which is 1 for ever for a table that grows.
    ended_on : str
        The day on which that generation ended; empty for the present one.
    holders : Holders, optional
        Of a federated table: each charge is for the rows of one of them.
    """

    whole_schema: Schema
    schema: Schema
    horizon: Horizon | None = None
    dropped: tuple[int, ...] = ()
    generation: int = 1
    ended_on: str = ""
    holders: Holders | None = None

    @classmethod
    def of(cls, schema: Schema, charges: TableHistory) -> "Extent":
        """What may be served of a table with this history."""
        growth = charges.growth
        if growth is None:
            generations = charges.generations
            ended_on = generations.ended_at[: len("2026-11-23")]
            holders = Holders.of(schema)
            return cls(schema, schema, None, (), generations.number, ended_on, holders)
        size = schema.by_name[growth.axis].size
        horizon = Horizon(growth.axis, size, growth.horizon)
        cut, holders = horizon.cut_schema(schema), Holders.of(schema)
        return cls(schema, cut, horizon, growth.dropped, holders=holders)

    @property
    def name(self) -> ExtentName:
        """Equal for equal extents of one table."""
        return self.n_readable, self.dropped, self.generation

    @property
    def n_readable(self) -> int | None:
        """The number of readable levels, of a table that grows."""
        return None if self.horizon is None else self.horizon.n_readable

    @property
    def note(self) -> str | None:
        """How far a table that grows is readable, or when data was replaced, for its readers."""
        if self.ended_on:
            return f"{self.schema.table}: its data was replaced on {self.ended_on}."
        if self.horizon is None:
            return None
        last = self.schema.by_name[self.horizon.axis].regular[-1]
        return f"{self.schema.table} has rows through {self.horizon.axis} {last}."

    def is_of(self, charges: TableHistory) -> bool:
        """Whether a history reaches as far as this, and is of the same generation."""
        growth = charges.growth
        if growth is None:
            return self.name == (None, (), charges.generations.number)
        return self.name == (growth.horizon, growth.dropped, 1)

    def check_is_of(self, charges: TableHistory) -> None:
        """Raise HorizonMoved if the history is of something else."""
        if charges.growth is None and charges.generations.number != self.generation:
            raise DataReplaced(
                f"The data of {self.schema.table} was replaced while the request was answered.",
                hint="Ask again. What was measured of the earlier data answers AS OF its days.",
            )
        if not self.is_of(charges):
            raise HorizonMoved(
                f"The readable rows of {self.schema.table} have changed while the request was "
                "answered.",
                hint="Ask again: nothing is lost.",
            )

    def kept(self, plan: Sequence[PlannedMeasurement]) -> tuple[PlannedMeasurement, ...]:
        """A plan as the ledger has it."""
        if self.horizon is None:
            return tuple(plan)
        return _rewritten(plan, self.horizon.whole, self._kept_or_none)

    def kept_count(self, count: OfUnits) -> OfUnits:
        """A count of units as the ledger has it."""
        horizon = self.horizon
        return count if horizon is None else replace(count, block=horizon.whole(count.block))

    def count_parts(self, count: OfUnits) -> tuple[CountPart, ...]:
        """A count of units as the ledger has it: of a federated table, a part for each holder.

        Raises
        ------
        InvalidRequest
            If a unit may be at several of the holders that would count it.
        """
        holders = self.holders
        if holders is None or holders.n_holders == 1:
            return (CountPart(self.kept_count(count), np.arange(count.numbers.n_rows)),)
        if isinstance(count, UnitSizes):
            ranges = np.arange(count.n_ranges)
            held = (replace(count, block=one) for one in holders.split(count.block))
            return tuple(CountPart(self.kept_count(one), ranges) for one in held)
        found = holders.parts(count.block)
        if self.schema.people_overlap and isinstance(count, UnitCount):
            rows = [row for one in found for row in one.rows.tolist()]
            if len(set(rows)) < len(rows):
                raise InvalidRequest(
                    f"A {self.schema.unit} may have rows at several holders of "
                    f"{self.schema.table}, and no holder can tell which: they cannot be counted "
                    "over all holders.",
                    hint="Count the rows with COUNT(*), or ask about one holder.",
                )
        return tuple(
            CountPart(self.kept_count(replace(count, block=one.block)), one.rows) for one in found
        )

    def kept_statistics(self, asked: Sequence[Asked]) -> tuple[Asked, ...]:
        """Statistics as the ledger has them."""
        return tuple(map(self._kept_statistic, asked))

    def served_plan(self, plan: Sequence[PlannedMeasurement]) -> tuple[PlannedMeasurement, ...]:
        """A plan of the ledger, about what is served."""
        if self.horizon is None:
            return tuple(plan)
        return _rewritten(plan, self.horizon.cut, self._served_or_none)

    def n_served(self, n_measurements: int) -> int:
        """How many of the first measurements of the ledger say something about what is served."""
        return n_measurements - bisect_left(self.dropped, n_measurements)

    def served(
        self, measurements: Sequence[Measurement], n_known: int = 0
    ) -> Sequence[Measurement]:
        """Measurements of the ledger, about what is served, but for the first `n_known` of them."""
        horizon = self.horizon
        if horizon is None:
            return measurements[n_known:]
        places = range(self._kept_place(n_known), len(measurements))
        found = [measurements[place] for place in places if place not in self.dropped]
        return [
            replace(
                one, block=horizon.cut(one.block), supersedes=self._served_or_none(one.supersedes)
            )
            for one in found
        ]

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

    def split(self, plan: Sequence[PlannedMeasurement]) -> Sequence[PlannedMeasurement]:
        """A plan with the rows of each holder by themselves."""
        holders = self.holders
        if holders is None:
            return plan
        return [replace(one, block=block) for one in plan for block in holders.split(one.block)]

    def rented(self, charges: Sequence[Charge]) -> Sequence[Charge]:
        """Charges as rent is reckoned: of a federated table, as if one holder had all rows.

        Each holder is charged for its own rows, mostly for the same ones: the first stands for all.
        """
        served, holders = self.served_charges(charges), self.holders
        if holders is None:
            return served
        return [_of_first(one, holders) for one in served]

    def _kept_place(self, place: int) -> int:
        """The place in the ledger of a measurement of the served rows."""
        for dropped in self.dropped:
            if dropped > place:
                break
            place += 1
        return place

    def _kept_or_none(self, place: int | None) -> int | None:
        return None if place is None else self._kept_place(place)

    def _served_or_none(self, place: int | None) -> int | None:
        return None if place is None else self.n_served(place)

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


def _of_first(charge: Charge, holders: Holders) -> Charge:
    """A charge with no other rows than those of the first holder, as it has them."""
    held = ((holders.at_holder(one.block), one) for one in charge.blocks)
    blocks = tuple(replace(one, block=block) for (level, block), one in held if level == 0)
    is_gaussian = bool(charge.rhos) or any(one.is_gaussian for one in blocks)
    return replace(charge, blocks=blocks, terms=charge.terms if is_gaussian else None)


def _rewritten(
    plan: Sequence[PlannedMeasurement],
    written: Callable[[QueryBlock], QueryBlock],
    place: Callable[[int | None], int | None],
) -> tuple[PlannedMeasurement, ...]:
    """A plan with its rows, and the places of the measurements that it raises, written anew."""
    return tuple(
        replace(one, block=written(one.block), raised_from=place(one.raised_from)) for one in plan
    )
