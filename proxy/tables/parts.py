"""The parts of a purchase: of a federated table, what each holder is charged for by itself.

A table that one ledger has is bought on in one part. Each holder charges, measures and fails by
itself, so that what one has measured is kept whatever another does.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from accountant.ledger import Charge
from cube.holders import Holders
from cube.measurement import PlannedMeasurement
from cube.schema import Schema
from cube.statistic import (
    Asked,
    BoundedRows,
    Choice,
    Distance,
    PlannedUnitCount,
    UnitCount,
    UnitSizes,
)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows and statistics that are charged together; `level` is their holder, if there is one."""

    planned: tuple[PlannedMeasurement, ...]
    statistics: tuple[Asked, ...]
    level: int | None = None


def parts_of(
    planned: Sequence[PlannedMeasurement], statistics: Sequence[Asked], schema: Schema
) -> list[Part]:
    """The parts of a purchase on a federated table, in the order of the holders."""
    holders = Holders.of(schema)
    if holders is None:
        raise TypeError(f"{schema.table} has no holders")
    rows: dict[int, list[PlannedMeasurement]] = {}
    asked: dict[int, list[Asked]] = {}
    for one in planned:
        rows.setdefault(holders.at_holder(one.block)[0], []).append(one)
    for statistic in statistics:
        asked.setdefault(_holder_of_statistic(statistic, holders), []).append(statistic)
    return [
        Part(tuple(rows.get(level, ())), tuple(asked.get(level, ())), level)
        for level in sorted({*rows, *asked})
    ]


CAP_SECONDS: Final = 30.0  # after which a holder's owner may have allowed more


class HolderCaps:
    """What holders have said that they have left, when they refused for it. Thread-safe."""

    def __init__(self) -> None:
        self._caps: dict[int, tuple[Fraction, float]] = {}
        self._laplace_until = 0.0

    def note(self, level: int, left: Fraction, *, is_gaussian: bool) -> bool:
        """Keep what a holder has left that refused noise of a kind; whether that is news.

        A holder accounts for Gaussian noise on terms of its own, which are not known here. One that
        refuses what was planned within its cap is asked for Laplace noise next.
        """
        until = time.monotonic() + CAP_SECONDS
        is_news = self.now().get(level) != left
        self._caps[level] = left, until
        if is_news or not is_gaussian:
            return is_news
        is_news = not self.only_laplace
        self._laplace_until = until
        return is_news

    @property
    def only_laplace(self) -> bool:
        """Whether plans are made without Gaussian noise now."""
        return time.monotonic() < self._laplace_until

    def now(self) -> dict[int, Fraction]:
        """What the holders have left that refused a moment ago, by their levels."""
        moment = time.monotonic()
        return {level: left for level, (left, until) in list(self._caps.items()) if until > moment}


def holder_of(charge: Charge, holders: Holders) -> int:
    """The holder of the rows of a charge."""
    for one in charge.blocks:
        return holders.at_holder(one.block)[0]
    return _level(charge.statistics[0].statistic, holders)


def _holder_of_statistic(asked: Asked, holders: Holders) -> int:
    return _level(asked.count if isinstance(asked, PlannedUnitCount) else asked.statistic, holders)


def _level(statistic: object, holders: Holders) -> int:
    match statistic:
        case Choice():
            return holders.choice_at(statistic)[0]
        case Distance():
            return holders.distance_at(statistic)[0]
        case UnitCount() | BoundedRows() | UnitSizes():
            return holders.at_holder(statistic.block)[0]
    raise TypeError(f"a holder is not asked for a {type(statistic).__name__}")
