"""Hindsight: the weight at which a wide purchase would have answered what was rented instead.

A wide purchase is compared with the rows that it would have spared, so it has to be as precise as
they are: precise enough for each of them, and for what is asked now, had nothing else been bought.
All its blocks have one weight, so every half-width falls as one over the weight: a row is looked at
once for each family of blocks, and the weight follows in closed form.

Nothing here sees a noisy value, or knows a price.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock

from accountant.noise.laplace import LatticeNoise
from cube.block import QueryBlock
from cube.encoding import fingerprint
from cube.measurement import UNITS_PER_EPSILON, WEIGHT_UNITS_MAX, Measurement, Weight
from cube.pace import checkpoint
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference.blue.hierarchy_reader import HierarchyReader
from inference.blue.partition_reader import PartitionReader
from inference.blue.remainders import Divided
from inference.posterior import widest
from inference.scaling import Scaling, posteriors_of
from planner.measuring.candidates import may_be_whole
from planner.measuring.noise_kinds import NoiseKind
from planner.measuring.ski_rental import RentedRows
from planner.measuring.weights import LATTICE_SHARE, ROUNDING_MARGIN

RATE_MAX = WEIGHT_UNITS_MAX / UNITS_PER_EPSILON
REFERENCE = Weight(
    UNITS_PER_EPSILON
)  # a rate of 1, at which every family of blocks is looked at once
# What intervals leave of rows is measured with less weight than they: it costs few cells, but in
# these the rests of many boxes meet, and it is one noise beside dozens. Measured: of a half, a
# quarter and as much, a half costs boxes on 200x200 least, and ranges.
OF_REST = Weight(REFERENCE.units // 2)
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
    nats = -math.log1p(-target.confidence)
    before = [
        Demand(rows.block, nats * UNITS_PER_EPSILON / rows.weight_units)
        for rows in rented[-N_DEMANDS_MAX:]
    ]
    return [Demand(block, target.half_width), *before]


class Hindsight:
    """What families of blocks would say of rows, had nothing else been measured. Thread-safe.

    Parameters
    ----------
    schema : Schema
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._lock = Lock()
        self._alone: OrderedDict[tuple[str, ...], _Alone] = OrderedDict()
        self._widths: OrderedDict[tuple[tuple[str, ...], str, float], float] = OrderedDict()

    def common_units(
        self,
        blocks: Sequence[QueryBlock],
        demands: Sequence[Demand],
        confidence: float,
        kind: NoiseKind,
    ) -> int | None:
        """The fewest units at which the blocks meet every demand; None if no number does.

        Noise of another kind is taken to be as good as Laplace noise of the same deviation.
        """
        family = tuple(fingerprint(block) for block in blocks)
        needed = 0.0
        with self._lock:
            for demand in demands:
                checkpoint()
                width = self._width(family, blocks, demand.block, confidence)
                needed = max(needed, width / demand.half_width)
        rate = needed * (1 + LATTICE_SHARE + ROUNDING_MARGIN)
        return kind.as_precise_as(rate) if rate < RATE_MAX else None

    def divided(self, blocks: Sequence[QueryBlock], row: QueryBlock) -> Divided | None:
        """A row as whole groups of a family and a rest; None if it is not."""
        with self._lock:
            return self._known(tuple(map(fingerprint, blocks)), blocks).levels.divided(row)

    def _width(
        self,
        family: tuple[str, ...],
        blocks: Sequence[QueryBlock],
        block: QueryBlock,
        confidence: float,
    ) -> float:
        """The half-width of a block at the reference weight; infinite if it is not determined."""
        name = (family, fingerprint(block), confidence)
        if name not in self._widths:
            alone = self._known(family, blocks)
            self._widths[name] = alone.width(block, confidence, self._schema)
        while len(self._alone) > N_FAMILIES_KEPT:
            self._alone.popitem(last=False)
        while len(self._widths) > N_WIDTHS_KEPT:
            self._widths.popitem(last=False)
        return self._widths[name]

    def _known(self, family: tuple[str, ...], blocks: Sequence[QueryBlock]) -> "_Alone":
        alone = self._alone.get(family)
        if alone is None:
            alone = self._alone[family] = _Alone.of(self._schema, blocks)
        self._alone.move_to_end(family)
        return alone


@dataclass(frozen=True, slots=True, eq=False)
class _Alone:
    """A family of blocks, read as the estimator reads them, of which nothing else is known.

    What intervals leave of a row is taken to be measured beside them. Groups are read by cells only
    where these are few.
    """

    levels: HierarchyReader
    groups: PartitionReader | None
    rest: Callable[[QueryBlock], tuple[int, Measurement]]

    @classmethod
    def of(cls, schema: Schema, blocks: Sequence[QueryBlock]) -> "_Alone":
        def measured(one: QueryBlock, weight: Weight = REFERENCE) -> Measurement:
            noise, values = LatticeNoise.for_weight(weight), (0,) * one.n_rows
            return Measurement(one, weight, noise.lattice_bits, noise.noise_scale, values)

        family = {place: measured(one) for place, one in enumerate(blocks)}
        axes = blocks[0].scope
        groups = None
        if may_be_whole(axes, schema):
            groups = PartitionReader(axes, schema.sizes(axes), family)
        return cls(
            HierarchyReader(axes, family), groups, lambda one: (len(family), measured(one, OF_REST))
        )

    def width(self, block: QueryBlock, confidence: float, schema: Schema) -> float:
        reading = self.levels.read_with_rest(block, self.rest)
        if reading is None and self.groups is not None:
            reading = self.groups.read(block)
        if reading is None:
            return math.inf
        rows = posteriors_of(reading, Scaling(block, schema.n_records_max))
        return widest(rows, confidence)
