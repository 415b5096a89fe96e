"""Computes which rented rows a wide purchase would have answered, with bounds.

Hindsight is the weight at which a wide purchase would have answered what was rented instead.
A wide purchase is compared with the rows that it would have spared, so it has to be as precise as
they are: precise enough for each of them, and for what is asked now, had nothing else been bought.
All its blocks have one weight, so every half-width falls as one over the weight, or over the square
root of a precision: a row is looked at once for each family of blocks and kind of noise, and the
weight follows in closed form.

Before rows are read, `least_widths` bounds from below the half-widths that a family of counted
groups can give them. An unbiased sum of noisy counts gives every cell its coefficient: along the
levels of a family the shares of a cell add up to it. A group's coefficient is the share of each of
its cells, so its square is at least the sum of their squared shares over the size of the group; and
the shares of one cell are cheapest in proportion to the sizes of its groups. So the variance, in
units of that of one count, is at least

    sum over cells of coefficient**2  /  sum over levels of the largest group's size

That takes no algebra of groups, and shows that most wide purchases cost too much. Where the family
has intervals in place of cells, only those cells count that lie in whole intervals.

`Reach` sees without reading a row which wide purchases cannot be worth their price. At a given
weight a family of counts answers at most the rows for which their least width leaves it that
weight. What these rows are worth bounds what the purchase may cost, which bounds its weight, and
that again the rows that it answers. So the bound comes down step by step, until no weight is left,
or until it stays: then rows have to be read to know more.

Proved: let a weight be worth its price. It is at most the first bound, that of all rows; and if it
is at most one bound it is at most the next, since it answers no row beyond that bound, and worth
never falls as rows are added. So it is never passed over.

Both are bounds only; what rows need says `Hindsight`. Nothing here sees a noisy value.
"""

import math
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import accumulate
from threading import Lock
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from accountant.ledger import AppendOnly, GrowingSet
from accountant.ledger.history import Raises
from cube.classes import Tiles
from cube.encoding import fingerprint
from cube.measurement import UNITS_PER_EPSILON, UNITS_PER_PRECISION, WEIGHT_UNITS_MAX, Measurement
from cube.pace import checkpoint
from cube.query import Factor, Partition, QueryBlock
from cube.schema import Schema
from inference import Scaling, posteriors_of, widest
from inference.blue import Divided, HierarchyReader, PartitionReader, finest_groups, is_divided_at
from planner.measuring.candidates import Candidate, may_be_whole
from planner.measuring.ski_rental import Evidence, RentedRows
from planner.measuring.weights import (
    LAPLACE,
    LATTICE_SHARE,
    ROUNDING_MARGIN,
    NoiseKind,
    gaussian_quantile,
)

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
    """The half-width of rows from their own measurement alone."""
    if rows.terms is None:
        scale: float = UNITS_PER_EPSILON / rows.weight_units
        return -math.log1p(-confidence) * scale
    deviation: float = math.sqrt(UNITS_PER_PRECISION / (2 * rows.weight_units))
    return gaussian_quantile(confidence) * deviation


_Family: TypeAlias = tuple[bool, tuple[str, ...]]  # whether its noise is Gaussian; fingerprints


def _family_of(blocks: Sequence[QueryBlock], kind: NoiseKind) -> _Family:
    return kind.is_gaussian, tuple(map(fingerprint, blocks))


class Hindsight:
    """What families of blocks would say about rows, had nothing else been measured. Thread-safe.

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
    """A family of blocks, read as the estimator reads them without any other measurement.

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


# The quantile of a sum of Laplace variables is about between those of one of them and of a Gaussian
# variable, beyond both by less than a hundredth.
OF_QUANTILE = 0.95

_LARGEST: WeakKeyDictionary[QueryBlock, int] = WeakKeyDictionary()
# Of a row: the same rented rows are looked at with every family on a scope, at every purchase.
_MEAN_SQUARES: WeakKeyDictionary[QueryBlock, WeakKeyDictionary[QueryBlock, float]] = (
    WeakKeyDictionary()
)


def least_widths(
    family: Sequence[QueryBlock], blocks: Sequence[QueryBlock], confidence: float, schema: Schema
) -> list[float]:
    """At most the half-width of the widest row of each block, with the variance of every count 2.

    That is, with Laplace noise of scale 1, or as much Gaussian noise.

    Parameters
    ----------
    family : sequence of QueryBlock
        Counts of the products of nested partitions, the finest first.
    blocks : sequence of QueryBlock
        Rows within their scope.
    confidence : float
    schema : Schema
    """
    n_largest = sum(map(_largest_group, family))
    of_laplace = -math.log1p(-confidence) / math.sqrt(2)
    quantile = OF_QUANTILE * min(of_laplace, gaussian_quantile(confidence))
    squares = [_kept_mean_squares(family[0], block, schema) for block in blocks]
    return [quantile * math.sqrt(2 * of_row / n_largest) for of_row in squares]


def _kept_mean_squares(finest: QueryBlock, block: QueryBlock, schema: Schema) -> float:
    """The same as `_mean_squares`, once for a row; the finest groups have the schema's sizes."""
    kept = _MEAN_SQUARES.get(block)
    if kept is None:
        kept = _MEAN_SQUARES[block] = WeakKeyDictionary()
    found = kept.get(finest)
    if found is None:
        found = kept[finest] = _mean_squares(finest, block, schema)
    return found


def _mean_squares(finest: QueryBlock, block: QueryBlock, schema: Schema) -> float:
    """The sum of squared coefficients over the cells of whole groups, of the mean row.

    0 where it does not follow from single factors, so that nothing is said about the rows.
    """
    if len(block.query.terms) != 1 or finest.partition is None:
        return 0.0
    if block.partition is not None and not block.partition.covers_all:
        return 0.0  # factors and groups may leave out the same cells
    (term,) = block.query.terms
    held = {name for factor in term.factors for name in factor.axes}
    n_free = schema.n_cells(tuple(name for name in finest.scope if name not in held))
    squares = math.prod(_squares(factor, finest.partition) for factor in term.factors)
    return float(term.scale) ** 2 * squares * n_free / block.n_rows


def _squares(factor: Factor, finest: Partition) -> float:
    """The sum of squares of a factor within the groups that it does not cut."""
    values = np.square(factor.values, dtype=np.float64)
    if finest.n_groups == finest.n_cells:
        return float(values.sum())
    if len(factor.axes) > 1:
        return 0.0
    (starts,) = np.nonzero(np.diff(_along(finest, factor.axes[0]), prepend=-1))
    is_whole = np.minimum.reduceat(values, starts) == np.maximum.reduceat(values, starts)
    return float(np.add.reduceat(values, starts)[is_whole].sum())


def _along(partition: Partition, axis: str) -> NDArray[np.int64]:
    """A number for each level of an axis, the same within one group."""
    place = partition.axes.index(axis)
    if isinstance(partition.groups, Tiles):
        return partition.groups.along[place].dense()
    return np.moveaxis(partition.labels, place, 0).reshape(partition.shape[place], -1)[:, 0]


def _largest_group(counted: QueryBlock) -> int:
    """The number of cells in the largest group."""
    if counted not in _LARGEST:
        _LARGEST[counted] = _largest(counted.partition)
    return _LARGEST[counted]


def _largest(partition: Partition | None) -> int:
    if partition is None:
        raise ValueError("a family must have a partition")
    groups = partition.groups
    if not isinstance(groups, Tiles):
        return int(np.bincount(partition.labels.ravel()).max())
    lengths = reduce(np.multiply.outer, [np.bincount(one.dense()) for one in groups.along])
    return int(np.bincount(groups.values.ravel(), lengths.ravel()).max())


@dataclass(frozen=True, slots=True)
class Reach:
    """Rented rows in the order of the weight at which a candidate may answer them.

    Parameters
    ----------
    units : tuple of int
        At most the common weight that the candidate needs for each, ascending.
    rents : tuple of Fraction
        One more: at least what none of them, the first, the first two, and so on have added to the
        table's cost.
    """

    units: tuple[int, ...]
    rents: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if len(self.rents) != len(self.units) + 1:
            raise ValueError("there must be one more rent than units")

    @classmethod
    def of(
        cls,
        candidate: Candidate,
        kind: NoiseKind,
        rented: Sequence[RentedRows],
        confidence: float,
        schema: Schema,
    ) -> "Reach":
        """What a candidate may answer of the rows rented on its scope."""
        blocks = [rows.block for rows in rented]
        widths = least_widths(candidate.blocks, blocks, confidence, schema)
        found = sorted(
            (kind.as_precise_as(width / demand_of(rows, confidence).half_width), rows.most_units)
            for rows, width in zip(rented, widths, strict=True)
        )
        rents = accumulate((most for _, most in found), initial=0)
        return cls(
            tuple(units for units, _ in found),
            tuple(Fraction(rent, UNITS_PER_EPSILON) for rent in rents),
        )

    def worth_at_most(
        self,
        first: int,
        added: Callable[[int], Fraction],
        evidence: Evidence,
        limit: Fraction,
        rent: Fraction,
    ) -> Fraction | None:
        """At least what any weight costs that is worth its price; None if no weight is.

        Parameters
        ----------
        first : int
            The smallest weight to consider, in units.
        added : callable
            What a weight adds to the table's cost.
        evidence : Evidence
            At least what speaks for the scope.
        limit : Fraction
            The largest epsilon that may be spent.
        rent : Fraction
            At least what all of the rows have added to the table's cost.
        """
        n_rows = n_answered = len(self.units)
        while True:
            of_answered = min(rent, self.rents[n_answered])
            worth = min(limit, evidence.worth(of_answered, is_all=n_answered == n_rows))
            if added(first) > worth:
                return None
            n_affordable = bisect_right(self.units, worth, hi=n_answered, key=added)
            if n_affordable == n_answered:
                return worth
            n_answered = n_affordable
