"""Statistics: questions to a private table whose answers are not rows of the history.

    Distance          the summed distance of a block's rows from public numbers
    Choice            which of several candidates scores best (the exponential mechanism)
    UnitCount         how many units have a row in each group: COUNT(DISTINCT unit)
    BoundedRows       rows of a block, with a bound on the rows and on the sum of each unit
    UnitSizes         how many units have how many rows of a block
    GaussianCounts    the rows of a block: in older ledgers, where Gaussian rows were no history yet

Each is released with noise and charged at a weight. A distance costs a cell what the rows of its
block would cost; a choice costs every cell the same; a count of units, or of bounded rows, costs a
unit the same wherever its rows are. No query of rows is estimated from their results.

Gaussian counts have Gaussian noise, and a distance may have it instead of Laplace noise. Its price
is a `Rho` of zero-concentrated differential privacy, not a weight of the history. Together with
what is spent in epsilon it makes the guarantee of a table (epsilon, delta)-differential privacy.

Nothing here touches data, noise or budget.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cube.measurement import GaussianTerms, PlannedMeasurement, Rho, Weight
from cube.query import Factor, Partition, QueryBlock, Scope, counting

REFERENCE_MAX: Final = 2**40  # of a number with which a row is compared
N_CANDIDATES_MAX: Final = 20_000
N_PARENTS_MAX: Final = 8
N_CLASSES_OF_F: Final = 2  # the score F is for a child with this many classes
N_GROUPS_OF_UNIT_MAX: Final = 2**20  # as many as a unit may have rows
UNIT_SUM_MAX: Final = 2**60  # so many rows with the largest coefficient
N_RANGES_MAX: Final = 62  # the last begins above UNIT_SUM_MAX


class Rule(NamedTuple):
    """What of each unit counts: the fields of a `UnitCount`, `BoundedRows` or `UnitSizes`."""

    kind: str
    most: int  # groups_max, rows_max or n_ranges
    beside: int  # only_cut, sum_max or by_sum


UNIT_COUNT: Final = "unit_count"
BOUNDED_ROWS: Final = "bounded_rows"
UNIT_SIZES: Final = "unit_sizes"
SIZE: Final = "size of a unit"  # stands for an axis where the ranges are the rows of a block


@dataclass(frozen=True, slots=True, eq=False)
class Distance:
    """``sum over rows of |row . x - reference|``, for the rows of a block.

    Parameters
    ----------
    block : QueryBlock
        The rows; their query has whole coefficients and no constant.
    reference : (n_rows,) tuple of int
        A public number for each row, to which its answer is compared.
    """

    block: QueryBlock
    reference: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.reference) != self.block.n_rows:
            raise ValueError(
                f"there are {len(self.reference)} numbers for {self.block.n_rows} rows"
            )
        for number in self.reference:
            if type(number) is not int or abs(number) > REFERENCE_MAX:
                raise ValueError("a reference must be whole numbers up to 2**40")

    def costing(self, weight: Weight) -> PlannedMeasurement:
        """Rows with the same cost for every cell as the distance."""
        return PlannedMeasurement(self.block, weight)


class Score(StrEnum):
    """How well parents predict a child, after Zhang et al. 2017, "PrivBayes", section 4."""

    DISTANCE = "R"  # from independence, in L1
    INFORMATION = "I"  # mutual information
    FULL_DEPENDENCE = "F"  # how close to a table in which the parents determine a binary child


@dataclass(frozen=True, slots=True, order=True)
class ChoiceCandidate:
    """A child and its parents, by their places among a choice's views; parents ascending."""

    child: int
    parents: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A choice of the candidate whose parents predict its child best.

    Parameters
    ----------
    score : Score
    views : tuple of Partition
        Columns as candidates see them: each a partition of one axis that leaves no level out.
    candidates : tuple of ChoiceCandidate
        Distinct. A candidate's views are of different axes.
    within : Factor, optional
        Of a federated table: 1 at the holder that makes the choice from its own records.
    """

    score: Score
    views: tuple[Partition, ...]
    candidates: tuple[ChoiceCandidate, ...]
    within: Factor | None = None

    def __post_init__(self) -> None:
        for view in self.views:
            if len(view.axes) != 1 or int(view.labels.min()) < 0:
                raise ValueError("a view must be a partition of all levels of one axis")
        if not 1 <= len(self.candidates) <= N_CANDIDATES_MAX:
            raise ValueError(
                f"a choice must have 1 to {N_CANDIDATES_MAX} candidates, not {len(self.candidates)}"
            )
        if len(set(self.candidates)) != len(self.candidates):
            raise ValueError("a candidate is listed twice")
        for candidate in self.candidates:
            self._check(candidate)
        within = self.within
        if within is not None and (len(within.axes) > 1 or within.ends not in {(0, 1), (1, 1)}):
            raise ValueError("a choice must be made within some levels of one axis")

    def _check(self, candidate: ChoiceCandidate) -> None:
        places = (candidate.child, *candidate.parents)
        if any(not 0 <= place < len(self.views) for place in places):
            raise ValueError("a candidate refers to views that do not exist")
        if not 1 <= len(candidate.parents) <= N_PARENTS_MAX:
            raise ValueError(f"a candidate cannot have {len(candidate.parents)} parents")
        if list(candidate.parents) != sorted(set(candidate.parents)):
            raise ValueError("parents must be ascending and distinct")
        if len({self.views[place].axes for place in places}) != len(places):
            raise ValueError("a candidate has two views of one axis")
        n_classes = self.views[candidate.child].n_groups
        if self.score is Score.FULL_DEPENDENCE and n_classes > N_CLASSES_OF_F:
            raise ValueError("this score is defined only for a child of two classes")

    def scope(self, candidate: ChoiceCandidate) -> Scope:
        """The axes that a candidate looks at, sorted."""
        places = (candidate.child, *candidate.parents)
        return tuple(sorted(self.views[place].axes[0] for place in places))

    def costing(self, weight: Weight) -> PlannedMeasurement:
        """A row with the same cost for every cell: the count of all records it is made from."""
        factors = () if self.within is None else (self.within,)
        return PlannedMeasurement(QueryBlock(counting(factors)), weight)


@dataclass(frozen=True, slots=True, eq=False)
class UnitCount:
    """How many units have a row in each group of a block, with at most so many groups of each unit.

    A unit has a row in a group if one of its rows is in a cell of the group where the block's query
    is not 0. Of a unit in more groups, which of them count is decided by its digest
    (`accountant/exact/unit_counts.py`).

    Parameters
    ----------
    block : QueryBlock
        The groups, one for each row. Its query has whole coefficients and no constant.
    groups_max : int
        The most groups in which one unit counts.
    only_cut : bool
        Whether only units with rows left out are counted.
    """

    block: QueryBlock
    groups_max: int
    only_cut: bool = False

    def __post_init__(self) -> None:
        PlannedMeasurement(self.block, Weight(1))  # raises unless the block can be measured
        if type(self.only_cut) is not bool:
            raise TypeError("a count covers either all units or only units with rows left out")
        if type(self.groups_max) is not int or not 1 <= self.groups_max <= N_GROUPS_OF_UNIT_MAX:
            raise ValueError(f"a unit must count in 1 to {N_GROUPS_OF_UNIT_MAX} groups")

    @property
    def numbers(self) -> QueryBlock:
        """A block with a row for each number: what noise and raises follow from."""
        return self.block

    @property
    def rule(self) -> Rule:
        """What of each unit counts."""
        return Rule(UNIT_COUNT, self.groups_max, int(self.only_cut))

    def reach(self, rows_per_unit: int) -> int:
        """In how many groups a unit can count that has at most so many rows."""
        return min(self.block.n_rows, self.groups_max, rows_per_unit)


@dataclass(frozen=True, slots=True, eq=False)
class BoundedRows:
    """The rows of a block, with a bound on how many rows of each unit count, and on their sum.

    A row of a unit is about the block if it is in a cell of some group where the query is not 0. Of
    these the first `rows_max` count, as long as their magnitudes add up to at most `sum_max`; of
    the one that would exceed it, only the rest counts. Their order depends on the unit's own rows
    and the ledger's key (`accountant/exact/unit_counts.py`).

    Parameters
    ----------
    block : QueryBlock
        Its query has whole coefficients and no constant.
    rows_max : int
        The most rows of one unit that count.
    sum_max : int
        The most that one unit adds to all numbers of the block together, signs aside.
    """

    block: QueryBlock
    rows_max: int
    sum_max: int

    def __post_init__(self) -> None:
        PlannedMeasurement(self.block, Weight(1))  # raises unless the block can be measured
        if type(self.rows_max) is not int or not 1 <= self.rows_max <= N_GROUPS_OF_UNIT_MAX:
            raise ValueError(f"1 to {N_GROUPS_OF_UNIT_MAX} rows of a unit must count")
        if type(self.sum_max) is not int or not 1 <= self.sum_max <= UNIT_SUM_MAX:
            raise ValueError(f"a unit must add 1 to {UNIT_SUM_MAX}")

    @property
    def numbers(self) -> QueryBlock:
        """A block with a row for each number: what noise and raises follow from."""
        return self.block

    @property
    def rule(self) -> Rule:
        """What of each unit counts."""
        return Rule(BOUNDED_ROWS, self.rows_max, self.sum_max)

    def reach(self, rows_per_unit: int) -> int:  # noqa: ARG002 - of every statistic of units
        """The most by which one unit moves all numbers together."""
        return self.sum_max


@dataclass(frozen=True, slots=True, eq=False)
class UnitSizes:
    """How many units have how many rows about a block, whichever the group, in ranges that double.

    The ranges are 1, 2, 3 to 4, 5 to 8, and so on; the last has all that is more. A unit without
    such a row counts nowhere. Which rows are about a block, `BoundedRows` says.

    Parameters
    ----------
    block : QueryBlock
        Its query has whole coefficients and no constant.
    n_ranges : int
    by_sum : bool
        Whether the magnitudes of a unit's rows are added up, in place of counting its rows.
    """

    block: QueryBlock
    n_ranges: int
    by_sum: bool = False

    def __post_init__(self) -> None:
        PlannedMeasurement(self.block, Weight(1))  # raises unless the block can be measured
        if type(self.by_sum) is not bool:
            raise TypeError("either rows are counted, or their magnitudes are added up")
        if type(self.n_ranges) is not int or not 1 <= self.n_ranges <= N_RANGES_MAX:
            raise ValueError(f"there must be 1 to {N_RANGES_MAX} ranges")

    @property
    def numbers(self) -> QueryBlock:
        """A block with a row for each range: what noise and raises follow from."""
        ranges = np.arange(self.n_ranges, dtype=np.int64)
        return QueryBlock(counting(), Partition((SIZE,), ranges))

    @property
    def rule(self) -> Rule:
        """What of each unit counts."""
        return Rule(UNIT_SIZES, self.n_ranges, int(self.by_sum))

    def reach(self, rows_per_unit: int) -> int:  # noqa: ARG002 - of every statistic of units
        """A unit is in one range."""
        return 1


# What each unit moves by at most its `reach`, wherever its rows are.
OfUnits: TypeAlias = UnitCount | BoundedRows | UnitSizes


def of_units(block: QueryBlock, rule: Rule) -> OfUnits:
    """The statistic of a block's groups by which so much of each unit counts."""
    if rule.kind == UNIT_COUNT:
        return UnitCount(block, rule.most, bool(rule.beside))
    if rule.kind == UNIT_SIZES:
        return UnitSizes(block, rule.most, bool(rule.beside))
    return BoundedRows(block, rule.most, rule.beside)


@dataclass(frozen=True, slots=True, eq=False)
class PlannedUnitCount:
    """A statistic of units to release, and the weight of each of its numbers once it is.

    Parameters
    ----------
    count : OfUnits
    weight : Weight
    raised_from : int, optional
        The place, among the table's statistics of units in the order of purchase, of an earlier one
        of the same groups and bounds. Its noise is then refined, and only the difference is paid.
    """

    count: OfUnits
    weight: Weight
    raised_from: int | None = None

    @property
    def rows(self) -> PlannedMeasurement:
        """The same groups as rows: what their noise and their raises follow from."""
        return PlannedMeasurement(self.count.numbers, self.weight, self.raised_from)


Statistic: TypeAlias = Distance | Choice


@dataclass(frozen=True, slots=True, eq=False)
class PlannedStatistic:
    """A statistic to release, and the weight that is paid for it."""

    statistic: Statistic
    weight: Weight

    @property
    def costing(self) -> PlannedMeasurement:
        """Rows with the same cost for every cell as the statistic."""
        return self.statistic.costing(self.weight)


@dataclass(frozen=True, slots=True, eq=False)
class GaussianCounts:
    """The rows of a block, each released with independent Gaussian noise.

    Parameters
    ----------
    block : QueryBlock
        The rows; their query has whole coefficients and no constant.
    """

    block: QueryBlock

    def __post_init__(self) -> None:
        PlannedMeasurement(self.block, Weight(1))  # raises unless the block can be measured


@dataclass(frozen=True, slots=True, eq=False)
class GaussianNoisyCounts:
    """The rows of a block with independent Gaussian noise of one standard deviation.

    They are not rows of the history: no SQL query is answered from them.
    """

    block: QueryBlock
    values: NDArray[np.float64]
    deviation: float


GaussianStatistic: TypeAlias = GaussianCounts | Distance


@dataclass(frozen=True, slots=True, eq=False)
class PlannedGaussian:
    """A statistic to release with Gaussian noise.

    Parameters
    ----------
    statistic : GaussianCounts or Distance
    rho : Rho
        The price of the whole statistic.
    terms : GaussianTerms
        The table's terms; for a table without Gaussian noise so far, those that it will have.
    """

    statistic: GaussianStatistic
    rho: Rho
    terms: GaussianTerms


Asked: TypeAlias = PlannedStatistic | PlannedGaussian | PlannedUnitCount
