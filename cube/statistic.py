"""Statistics: questions to a private table whose answers are not rows of the history.

    Distance          the summed distance of a block's rows from public numbers
    Choice            which of several candidates scores best (the exponential mechanism)
    UnitCount         how many units have a row in each group: COUNT(DISTINCT unit)
    GaussianCounts    the rows of a block: in older ledgers, where Gaussian rows were no history yet

Each is released with noise and charged at a weight. A distance costs a cell what the rows of its
block would cost; a choice costs every cell the same; a count of units costs a unit the same
wherever its rows are. No query of rows is estimated from their results.

Gaussian counts have Gaussian noise, and a distance may have it instead of Laplace noise. Its price
is a `Rho` of zero-concentrated differential privacy, not a weight of the history. Together with
what is spent in epsilon it makes the guarantee of a table (epsilon, delta)-differential privacy.

Nothing here touches data, noise or budget.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cube.measurement import GaussianTerms, PlannedMeasurement, Rho, Weight
from cube.query import Factor, Partition, QueryBlock, Scope, counting

REFERENCE_MAX: Final = 2**40  # of a number with which a row is compared
N_CANDIDATES_MAX: Final = 20_000
N_PARENTS_MAX: Final = 8
N_CLASSES_OF_F: Final = 2  # the score F is for a child with this many classes
N_GROUPS_OF_UNIT_MAX: Final = 2**20  # as many as a unit may have rows


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

    def reach(self, rows_per_unit: int) -> int:
        """In how many groups a unit can count that has at most so many rows."""
        return min(self.block.n_rows, self.groups_max, rows_per_unit)


@dataclass(frozen=True, slots=True, eq=False)
class PlannedUnitCount:
    """A count of units to release, and the weight of each of its numbers once it is.

    Parameters
    ----------
    count : UnitCount
    weight : Weight
    raised_from : int, optional
        The place, among the table's counts of units in the order of purchase, of an earlier one of
        the same groups. Its noise is then refined, and only the difference is paid.
    """

    count: UnitCount
    weight: Weight
    raised_from: int | None = None

    @property
    def rows(self) -> PlannedMeasurement:
        """The same groups as rows: what their noise and their raises follow from."""
        return PlannedMeasurement(self.count.block, self.weight, self.raised_from)


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
