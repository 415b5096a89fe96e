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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TypeAlias

from accountant.ledger.history.raises import Raises
from accountant.ledger.values import AppendOnly, GrowingSet
from cube.encoding import fingerprint
from cube.measurement import UNITS_PER_EPSILON, UNITS_PER_PRECISION, WEIGHT_UNITS_MAX, Measurement
from cube.pace import checkpoint
from cube.query import QueryBlock
from cube.schema import Schema
from inference.block_estimates import widest
from inference.blue.hierarchy_reader import Divided, HierarchyReader, finest_groups, is_divided_at
from inference.blue.partition_reader import PartitionReader
from inference.scaling import Scaling, posteriors_of
from planner.measuring.candidates import may_be_whole
from planner.measuring.noise_kinds import LAPLACE, NoiseKind
from planner.measuring.ski_rental import RentedRows
from planner.measuring.weights import LATTICE_SHARE, ROUNDING_MARGIN, gaussian_quantile

RATE_MAX = WEIGHT_UNITS_MAX / UNITS_PER_EPSILON
REFERENCE = 1.0  # the rate at which every family of blocks is looked at once
# What intervals leave of rows is measured with less weight than they: it costs few cells, but in
# these the rests of many boxes meet, and it is one noise beside dozens. Measured: of a half, a
# quarter and as much, a half costs boxes on 200x200 least, and ranges.
OF_REST = REFERENCE / 2
N_FAMILIES_KEPT = 64
N_WIDTHS_KEPT = 2**16


@dataclass(frozen=True, slots=True)
class Demand:
    """Rows, and the half-width at which they are asked for."""

    block: QueryBlock
    half_width: float


def demand_of(rows: RentedRows, confidence: float) -> Demand:
    """Rented rows, as precisely as their own measurement says them."""
    return Demand(rows.block, _half_width_of(rows, confidence))


def _half_width_of(rows: RentedRows, confidence: float) -> float:
    """What a measurement alone says of its rows."""
    if rows.terms is None:
        scale: float = UNITS_PER_EPSILON / rows.weight_units
        return -math.log1p(-confidence) * scale
    deviation: float = math.sqrt(UNITS_PER_PRECISION / (2 * rows.weight_units))
    return gaussian_quantile(confidence) * deviation


_Family: TypeAlias = tuple[bool, tuple[str, ...]]  # whether its noise is Gaussian; fingerprints


def _family_of(blocks: Sequence[QueryBlock], kind: NoiseKind) -> _Family:
    return kind.is_gaussian, tuple(map(fingerprint, blocks))


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
        self._divides: OrderedDict[tuple[_Family, str], bool] = OrderedDict()

    def needed_units(
        self,
        blocks: Sequence[QueryBlock],
        demand: Demand,
        confidence: float,
        kind: NoiseKind,
    ) -> int | None:
        """The fewest common units at which the blocks meet a demand; None if no number does."""
        with self._lock:
            checkpoint()
            family = _family_of(blocks, kind)
            width = self._width(family, blocks, demand.block, confidence, kind)
        rate = width / demand.half_width * (1 + LATTICE_SHARE + ROUNDING_MARGIN)
        return kind.as_precise_as(rate) if rate < RATE_MAX else None

    def divided(self, blocks: Sequence[QueryBlock], row: QueryBlock) -> Divided | None:
        """A row as whole groups of a family and a rest; None if it is not."""
        with self._lock:
            return self._known(_family_of(blocks, LAPLACE), blocks, LAPLACE).levels.divided(row)

    def divides(self, blocks: Sequence[QueryBlock], row: QueryBlock) -> bool:
        """Whether a row is whole groups of a family and a rest: kept, as it is asked often."""
        with self._lock:
            checkpoint()
            family = _family_of(blocks, LAPLACE)
            name = (family, fingerprint(row))
            if name not in self._divides:
                leaves = finest_groups(blocks)
                self._divides[name] = leaves is not None and is_divided_at(leaves, row)
            self._forget()
            return self._divides[name]

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
            alone = self._known(family, blocks, kind)
            self._widths[name] = alone.width(block, confidence, self._schema)
        self._forget()
        return self._widths[name]

    def _forget(self) -> None:
        """Drop the earliest beyond what is kept."""
        while len(self._alone) > N_FAMILIES_KEPT:
            self._alone.popitem(last=False)
        for known in (self._widths, self._divides):
            while len(known) > N_WIDTHS_KEPT:
                known.popitem(last=False)

    def _known(self, family: _Family, blocks: Sequence[QueryBlock], kind: NoiseKind) -> "_Alone":
        alone = self._alone.get(family)
        if alone is None:
            alone = self._alone[family] = _Alone.of(self._schema, blocks, kind)
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
    def of(cls, schema: Schema, blocks: Sequence[QueryBlock], kind: NoiseKind) -> "_Alone":
        nothing = Raises(AppendOnly(), GrowingSet())

        def measured(one: QueryBlock, rate: float = REFERENCE) -> Measurement:
            return nothing.foreseen(kind.planned(one, kind.as_precise_as(rate)))

        family = {place: measured(one) for place, one in enumerate(blocks)}
        axes = blocks[0].scope
        groups = None
        if may_be_whole(axes, schema):
            groups = PartitionReader(axes, schema.sizes(axes), family)
        return cls(
            HierarchyReader(axes, family), groups, lambda one: (len(family), measured(one, OF_REST))
        )

    def width(self, block: QueryBlock, confidence: float, schema: Schema) -> float:
        row, _ = block.primitive  # the scaling multiplies what is read
        reading = self.levels.read_with_rest(row, self.rest)
        if reading is None and self.groups is not None:
            reading = self.groups.read(row)
        if reading is None:
            return math.inf
        rows = posteriors_of(reading, Scaling(block, schema.n_records_max))
        return widest(rows, confidence)
