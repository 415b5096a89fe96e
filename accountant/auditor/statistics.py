"""Paid statistics that are not rows: noisy distances, choices among candidates, counts of units.

Also everything with Gaussian noise, which is paid for in rho and adds to no cell's cost (noise.py),
but on a federated table to the cost of the cells of the holder that it is about.

The cost of one unit of weight for a cell: for a distance, the cost of its rows, since one record
moves a sum of magnitudes by no more than it moves the rows; for a choice, the same for every cell,
since scores are scaled by their sensitivity. That the server samples from the stated law is shown
by its code (proofs/choices.md); no ledger can show it.

Counts of units have a cost of their own, and here is whether a raise of one fits what it raises. A
unit adds at most one to each number, and to no more numbers than it has rows, than there are
groups, and than the count says. Of bounded rows, it moves all numbers together by at most the sum
that the charge names; of sizes of units, one number by one. So it loses at most the weight times
that, wherever its rows are: a cost beside that of rows, which the unit's rows do not multiply
again. Proof: proofs/units.md, "Distinct units" and "Bounded rows".
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from accountant.auditor.fields import Fields, Json, Wrong, fields_of, list_of, one_of, whole
from accountant.auditor.noise import (
    UNCLAMPED_MAX,
    GaussianNoise,
    Noise,
    check_noise,
    gaussian_noise_of,
    noise_of,
    refined_by,
)
from accountant.auditor.rows import Block, BlockReader, LevelArray, Share, Term
from cube.measurement import WEIGHT_UNITS_MAX
from cube.statistic import (
    N_CANDIDATES_MAX,
    N_GROUPS_OF_UNIT_MAX,
    N_PARENTS_MAX,
    N_RANGES_MAX,
    REFERENCE_MAX,
    UNIT_SUM_MAX,
)

OF_LAPLACE: Final = ("lattice_bits", "noise_scale", "weight_units")
OF_NORMAL: Final = ("lattice_bits", "noise_scale", "rho_units")
SCORES: Final = ("R", "I", "F")
EVERYWHERE: Final = Share((Term(1, ()),), None)


@dataclass(frozen=True, slots=True)
class Distance:
    """A noisy distance of rows from public numbers."""

    share: Share
    noise: Noise
    n_released: int = 1

    @property
    def weight_units(self) -> int:
        """The weight that was paid for each unit of its share."""
        return self.noise.weight_units

    @property
    def arrays(self) -> tuple[LevelArray, ...]:
        """All its arrays over levels."""
        return self.share.arrays

    def check(self, released: int) -> None:
        """Accept any released number."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice among candidates."""

    weight_units: int
    n_candidates: int
    views: tuple[LevelArray, ...]
    share: Share  # one unit for every cell; of a holder's choice, for every cell of the holder
    n_released: int = 1

    @property
    def arrays(self) -> tuple[LevelArray, ...]:
        """All its arrays over levels."""
        return (*self.views, *self.share.arrays)

    def check(self, released: int) -> None:
        """Wrong unless there is a candidate in this place."""
        if not 0 <= released < self.n_candidates:
            raise Wrong("the chosen candidate does not exist")


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Rows, or their distance from public numbers, with Gaussian noise.

    One record moves them by at most `sensitivity`, since the groups of a block share no cell.
    """

    block: Block
    noise: GaussianNoise
    n_released: int

    @property
    def share(self) -> Share:
        """What one record moves, in each cell."""
        return self.block.share

    @property
    def sensitivity(self) -> int:
        """The largest coefficient, or an upper bound on it."""
        return max(1, self.share.bound)

    @property
    def arrays(self) -> tuple[LevelArray, ...]:
        """All its arrays over levels."""
        return self.share.arrays

    def check(self, released: int) -> None:
        """Accept any released number."""


@dataclass(frozen=True, slots=True)
class _OfUnits:
    """What of each unit counts in a block, with noise.

    `raised_from` is the place of an earlier statistic of units whose noise this one refines.
    """

    block: Block
    noise: Noise
    raised_from: int | None

    @property
    def n_released(self) -> int:
        """A number for each group."""
        return self.block.n_rows

    @property
    def share(self) -> Share:
        """Where its groups are; no cell pays by it."""
        return self.block.share

    @property
    def arrays(self) -> tuple[LevelArray, ...]:
        """All its arrays over levels."""
        return self.block.share.arrays


@dataclass(frozen=True, slots=True)
class UnitCount(_OfUnits):
    """How many units have a row in each group, with at most so many groups of each unit.

    With `only_cut`, only units with rows left out are counted, at the same cost.
    """

    groups_max: int
    only_cut: bool

    @property
    def rule(self) -> tuple[int, bool]:
        """What of each unit counts."""
        return self.groups_max, self.only_cut

    def reach(self, n_rows: int) -> int:
        """In how many groups a unit with so many rows counts."""
        return min(self.block.n_rows, self.groups_max, n_rows)


@dataclass(frozen=True, slots=True)
class BoundedRows(_OfUnits):
    """The rows of a block, of each unit at most `rows_max` of them and `sum_max` in all."""

    rows_max: int
    sum_max: int

    @property
    def rule(self) -> tuple[int, int]:
        """What of each unit counts."""
        return self.rows_max, self.sum_max

    def reach(self, n_rows: int) -> int:  # noqa: ARG002 - of every statistic of units
        """The most by which a unit moves all numbers together."""
        return self.sum_max


@dataclass(frozen=True, slots=True)
class UnitSizes(_OfUnits):
    """How many units have how many rows of a block, in ranges: a unit is in one of them."""

    n_ranges: int
    by_sum: bool

    @property
    def n_released(self) -> int:
        """A number for each range."""
        return self.n_ranges

    @property
    def rule(self) -> tuple[int, bool]:
        """What of each unit counts."""
        return self.n_ranges, self.by_sum

    def reach(self, n_rows: int) -> int:  # noqa: ARG002 - of every statistic of units
        """A unit counts in one range."""
        return 1


OfUnits: TypeAlias = UnitCount | BoundedRows | UnitSizes
Statistic: TypeAlias = Distance | Choice | Gaussian | OfUnits


def statistic_of(value: Json, blocks: BlockReader) -> Statistic:
    """A statistic as a charge records it; Wrong if it is not valid."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind == "distance":
        return _distance(value, blocks)
    if kind == "choice":
        return _choice(value, blocks)
    if kind == "normal_counts":
        return _gaussian_counts(value, blocks)
    if kind == "unit_count":
        return _unit_count(value, blocks)
    if kind == "bounded_rows":
        return _bounded_rows(value, blocks)
    if kind == "unit_sizes":
        return _unit_sizes(value, blocks)
    raise Wrong(f"the statistic {kind!r} does not exist")


def _gaussian_counts(value: Json, blocks: BlockReader) -> Gaussian:
    fields = fields_of(value, ("kind", "block", *OF_NORMAL))
    block = blocks.block(fields["block"])
    return Gaussian(block, gaussian_noise_of(fields), block.n_rows)


def _unit_count(value: Json, blocks: BlockReader) -> UnitCount:
    optional = ("raised_from", "only_cut")
    fields = fields_of(value, ("kind", "block", "groups_max", *OF_LAPLACE), optional)
    if fields.get("only_cut", True) is not True:
        raise Wrong("only_cut, if given, must be true")
    groups_max = whole(fields, "groups_max", 1)
    if groups_max > N_GROUPS_OF_UNIT_MAX:
        raise Wrong(
            f"a unit counts in {groups_max} groups, but at most {N_GROUPS_OF_UNIT_MAX} are allowed"
        )
    raised_from = whole(fields, "raised_from") if "raised_from" in fields else None
    block, noise = blocks.block(fields["block"]), noise_of(fields)
    return UnitCount(block, noise, raised_from, groups_max, "only_cut" in fields)


def _bounded_rows(value: Json, blocks: BlockReader) -> BoundedRows:
    required = ("kind", "block", "rows_max", "sum_max", *OF_LAPLACE)
    fields = fields_of(value, required, ("raised_from",))
    rows_max, sum_max = whole(fields, "rows_max", 1), whole(fields, "sum_max", 1)
    if rows_max > N_GROUPS_OF_UNIT_MAX or sum_max > UNIT_SUM_MAX:
        raise Wrong("the rows of a unit are bounded by more than is allowed")
    raised_from = whole(fields, "raised_from") if "raised_from" in fields else None
    block, noise = blocks.block(fields["block"]), noise_of(fields)
    return BoundedRows(block, noise, raised_from, rows_max, sum_max)


def _unit_sizes(value: Json, blocks: BlockReader) -> UnitSizes:
    required = ("kind", "block", "n_ranges", "by_sum", *OF_LAPLACE)
    fields = fields_of(value, required, ("raised_from",))
    n_ranges = whole(fields, "n_ranges", 1)
    if n_ranges > N_RANGES_MAX or type(fields["by_sum"]) is not bool:
        raise Wrong("the ranges of sizes of units are none")
    raised_from = whole(fields, "raised_from") if "raised_from" in fields else None
    block, noise = blocks.block(fields["block"]), noise_of(fields)
    return UnitSizes(block, noise, raised_from, n_ranges, fields["by_sum"])


def _distance(value: Json, blocks: BlockReader) -> Distance | Gaussian:
    of_noise = OF_NORMAL if "rho_units" in value else OF_LAPLACE
    fields = fields_of(value, ("kind", "block", "reference", *of_noise))
    block = blocks.block(fields["block"])
    _check_reference(fields, block)
    if "rho_units" in fields:
        return Gaussian(block, gaussian_noise_of(fields), 1)
    return Distance(block.share, noise_of(fields))


def _check_reference(fields: Fields, block: Block) -> None:
    reference = list_of(fields, "reference", int)
    if len(reference) != block.n_rows or any(abs(one) > REFERENCE_MAX for one in reference):
        raise Wrong("a distance needs exactly one reference number up to 2**40 for each row")


def _choice(value: Json, blocks: BlockReader) -> Choice:
    required = ("kind", "score", "views", "candidates", "weight_units")
    fields = fields_of(value, required, ("within",))
    one_of(fields, "score", SCORES)
    units = whole(fields, "weight_units", 1)
    if units > WEIGHT_UNITS_MAX:
        raise Wrong(f"a weight of {units} units is too large")
    views = tuple(blocks.labels(one) for one in list_of(fields, "views", dict))
    if any(len(view.axes) != 1 or view.inside is not None for view in views):
        raise Wrong("a view must cover every level of one axis")
    candidates = list_of(fields, "candidates", list)
    if not 0 < len(candidates) <= N_CANDIDATES_MAX:
        raise Wrong(
            f"a choice has {len(candidates)} candidates, but 1 to {N_CANDIDATES_MAX} are allowed"
        )
    for candidate in candidates:
        _check_candidate(candidate, views)
    if len({tuple(candidate) for candidate in candidates}) != len(candidates):
        raise Wrong("a candidate is listed twice")
    share = blocks.counted_within(fields["within"]) if "within" in fields else EVERYWHERE
    return Choice(units, len(candidates), views, share)


def _check_candidate(candidate: list[Json], views: tuple[LevelArray, ...]) -> None:
    if any(type(place) is not int or not 0 <= place < len(views) for place in candidate):
        raise Wrong("a candidate refers to views that do not exist")
    parents = candidate[1:]
    if not 0 < len(parents) <= N_PARENTS_MAX or parents != sorted(set(parents)):
        raise Wrong(
            f"the parents of a candidate must be sorted and distinct, 1 to {N_PARENTS_MAX} of them"
        )
    if len({views[place].axes for place in candidate}) != len(candidate):
        raise Wrong("a candidate has two views of one axis")


def _only_level(array: LevelArray) -> int | None:
    """The level at which an array of one axis is 1, if it is 0 at all others."""
    numbers = array.at([np.arange(array.shape[0])])
    (places,) = np.nonzero(numbers)
    return int(places[0]) if places.size == 1 and numbers[places[0]] == 1 else None


class UnitCounts:
    """The counts of units of one table.

    Parameters
    ----------
    rows_per_unit : int
        The most rows of one unit.
    holders : str
        The axis of the holders of a federated table, if it has several.
    rows_at_holder : int
        The most rows of one unit at one of them.
    """

    def __init__(self, rows_per_unit: int, holders: str = "", rows_at_holder: int = 1) -> None:
        self._rows_per_unit = rows_per_unit
        self._holders = holders
        self.rows_at_holder = rows_at_holder
        self._shares: dict[LevelArray, Share] = {}
        self._measured: list[tuple[OfUnits, bool]] = []  # and whether it may be clamped
        self._raised: set[int] = set()
        self._steps: list[tuple[int, int]] = [(0, 0)]  # an entry, and the cost from that entry on

    @property
    def units(self) -> int:
        """The present cost, in units of 2**-40 epsilon."""
        return self._steps[-1][1]

    def units_after(self, seq: int) -> int:
        """The cost after an entry."""
        return next(cost for since, cost in reversed(self._steps) if since <= seq)

    def charge(self, seq: int, counts: list[OfUnits]) -> list[tuple[Share, int]]:
        """Add the counts of one charge; Wrong if they are not valid.

        Returns
        -------
        list of (Share, int)
            What counts by one holder cost each row there, in units: a unit with rows there has all
            its rows there, or as many at each holder.
        """
        units, at_holders = self.units, []
        for one in counts:
            added, share = self._weight_added(one), self.share_of_holder(one.block)
            if share is None:
                units += added * one.reach(self._rows_per_unit)
            else:
                cost = added * one.reach(self.rows_at_holder)
                at_holders.append((share, -(-cost // self.rows_at_holder)))
        self._steps.append((seq, units))
        return at_holders

    def measure(self, count: OfUnits, values: tuple[int, ...]) -> None:
        """Note the values of a charged count, in lattice steps."""
        self._measured.append((count, any(abs(value) > UNCLAMPED_MAX for value in values)))

    def forget(self) -> None:
        """Let nothing be raised from what was measured: rows have changed. All stays paid."""
        self._raised.update(range(len(self._measured)))

    def begin_anew(self) -> None:
        """Name counts by their places from the first again, as there is other data."""
        self._measured, self._raised = [], set()

    def share_of_holder(self, block: Block) -> Share | None:
        """The cells of the one holder that a block is about; None if there is no such one."""
        axis = self._holders
        if not axis or (block.labels is not None and axis in block.labels.axes):
            return None
        found = [
            [array for array in term.arrays if axis in array.axes] for term in block.share.terms
        ]
        if any(len(arrays) != 1 or arrays[0].axes != (axis,) for arrays in found):
            return None
        levels = {_only_level(arrays[0]) for arrays in found}
        if None in levels or len(levels) > 1:
            return None
        array = found[0][0]
        if array not in self._shares:
            self._shares[array] = Share((Term(1, (array,)),), None)
        return self._shares[array]

    def _weight_added(self, count: OfUnits) -> int:
        check_noise(count.noise)
        place = count.raised_from
        if place is None:
            return count.noise.weight_units
        if place >= len(self._measured):
            raise Wrong("a count of units that does not exist was raised")
        if place in self._raised:
            raise Wrong("a count of units was raised twice")
        self._raised.add(place)
        earlier, may_be_clamped = self._measured[place]
        if earlier.block is not count.block or (type(earlier), earlier.rule) != (
            type(count),
            count.rule,
        ):
            raise Wrong("a count of units was raised as if it had other groups or bounds")
        return refined_by(count.noise, earlier.noise, may_be_clamped=may_be_clamped)
