"""Hindsight: the weight at which a wide purchase would have answered what was rented instead.

A wide purchase is compared with the rows that it would have spared, so it has to be as precise as
they are: precise enough for each of them, and for what is asked now, had nothing else been bought.
All its blocks have one weight, so every half-width falls as one over the weight, or over the square
root of a precision: a row is looked at once for each family of blocks and kind of noise, and the
weight follows in closed form.

Nothing here sees a noisy value, or knows a price.
"""

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TypeAlias

from accountant.ledger.append_only import AppendOnly, GrowingSet
from accountant.ledger.raises import Raises
from cube.block import QueryBlock
from cube.encoding import fingerprint
from cube.gaussian_terms import UNITS_PER_PRECISION
from cube.measurement import UNITS_PER_EPSILON, WEIGHT_UNITS_MAX
from cube.pace import checkpoint
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference.blue.hierarchy_reader import HierarchyReader
from inference.blue.partition_reader import PartitionReader
from inference.posterior import widest
from inference.scaling import Scaling, posteriors_of
from planner.measuring.noise_kinds import NoiseKind
from planner.measuring.ski_rental import RentedRows
from planner.measuring.weights import LATTICE_SHARE, ROUNDING_MARGIN, gaussian_quantile

RATE_MAX = WEIGHT_UNITS_MAX / UNITS_PER_EPSILON
REFERENCE = 1.0  # the rate at which every family of blocks is looked at once
N_FAMILIES_KEPT = 64
N_WIDTHS_KEPT = 2**16
N_DEMANDS_MAX = 64  # the latest rows that are looked back at


@dataclass(frozen=True, slots=True)
class Demand:
    """Rows, and the half-width at which they are asked for."""

    block: QueryBlock
    half_width: float


def demands_of(
    rented: Sequence[RentedRows], block: QueryBlock, target: AccuracyTarget
) -> list[Demand]:
    """What is asked now, and what was rented: as precisely as its own measurement says it."""
    before = [
        Demand(rows.block, _half_width_of(rows, target.confidence))
        for rows in rented[-N_DEMANDS_MAX:]
    ]
    return [Demand(block, target.half_width), *before]


def _half_width_of(rows: RentedRows, confidence: float) -> float:
    """What a measurement alone says of its rows."""
    if rows.terms is None:
        return -math.log1p(-confidence) * UNITS_PER_EPSILON / rows.weight_units
    deviation = math.sqrt(UNITS_PER_PRECISION / (2 * rows.weight_units))
    return gaussian_quantile(confidence) * deviation


_Family: TypeAlias = tuple[bool, tuple[str, ...]]  # whether its noise is Gaussian; fingerprints


class Hindsight:
    """What families of blocks would say of rows, had nothing else been measured. Thread-safe.

    Parameters
    ----------
    schema : Schema
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._lock = Lock()
        self._alone: OrderedDict[_Family, _Alone] = OrderedDict()
        self._widths: OrderedDict[tuple[_Family, str, float], float] = OrderedDict()

    def common_units(
        self,
        blocks: Sequence[QueryBlock],
        demands: Sequence[Demand],
        confidence: float,
        kind: NoiseKind,
    ) -> int | None:
        """The fewest units at which the blocks meet every demand; None if no number does."""
        family = (kind.is_gaussian, tuple(fingerprint(block) for block in blocks))
        needed = 0.0
        with self._lock:
            for demand in demands:
                checkpoint()
                width = self._width(family, blocks, demand.block, confidence, kind)
                needed = max(needed, width / demand.half_width)
        rate = needed * (1 + LATTICE_SHARE + ROUNDING_MARGIN)
        return kind.as_precise_as(rate) if rate < RATE_MAX else None

    def _width(
        self,
        family: _Family,
        blocks: Sequence[QueryBlock],
        block: QueryBlock,
        confidence: float,
        kind: NoiseKind,
    ) -> float:
        """The half-width of a block at the reference rate; infinite if it is not determined."""
        name = (family, fingerprint(block), confidence)
        if name not in self._widths:
            alone = self._alone.get(family)
            if alone is None:
                alone = self._alone[family] = _Alone.of(self._schema, blocks, kind)
            self._alone.move_to_end(family)
            self._widths[name] = alone.width(block, confidence, self._schema)
        while len(self._alone) > N_FAMILIES_KEPT:
            self._alone.popitem(last=False)
        while len(self._widths) > N_WIDTHS_KEPT:
            self._widths.popitem(last=False)
        return self._widths[name]


@dataclass(frozen=True, slots=True, eq=False)
class _Alone:
    """A family of blocks, read as the estimator reads them, of which nothing else is known."""

    levels: HierarchyReader
    groups: PartitionReader

    @classmethod
    def of(cls, schema: Schema, blocks: Sequence[QueryBlock], kind: NoiseKind) -> "_Alone":
        units = kind.as_precise_as(REFERENCE)
        nothing = Raises(AppendOnly(), GrowingSet())
        measured = {
            place: nothing.foreseen(kind.planned(one, units)) for place, one in enumerate(blocks)
        }
        axes = blocks[0].scope
        sizes = schema.sizes(axes)
        return cls(HierarchyReader(axes, measured), PartitionReader(axes, sizes, measured))

    def width(self, block: QueryBlock, confidence: float, schema: Schema) -> float:
        reading = self.levels.read(block) or self.groups.read(block)
        rows = posteriors_of(reading, Scaling(block, schema.n_records_max))
        return widest(rows, confidence)
