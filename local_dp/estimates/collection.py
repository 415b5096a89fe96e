"""Estimates queries from all combinations of a campaign together.

The values of a combination are made when they are first asked for: a wide campaign has thousands of
combinations, and a question touches a few of them.

Linear queries on groups as coefficients over the cells of a combination.

Tables of overlapping combinations are made to agree by the weighted projection that marginals have,
with weights that depend on channels and numbers of answers alone. So every combination that shares
attributes with a query makes its answer better, and it stays unbiased. The variance of the
projected answer follows from each table's own covariance.

A query that no combination covers has a model, of greatest entropy, and no interval.

The argument is in `proofs/estimates.md`.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TypeVar

import numpy as np

from cube.query import LinearQuery, QueryBlock, Scope
from cube.refusals import TooLarge
from cube.runtime import cached_property
from inference.marginals import NoisyTable, maximum_entropy, nonnegative, projected, spread
from local_dp.campaign import Campaign
from local_dp.channels import Floats
from local_dp.estimates.laws import (
    CollectedAnswer,
    IntervalMethod,
    answers,
    are_enough,
    known,
    normal_law,
)
from local_dp.estimates.shares import TableEstimate, Tally, estimated
from local_dp.estimates.simulated import AnsweredTable, CellsOfTable
from local_dp.estimates.together import Overlaps, ScopedTable, TablesTogether

Value = TypeVar("Value")


class ByPlace(Mapping[int, Value]):
    """A value for each of some places. Thread-safe, if the function is.

    It takes no lock: two threads that ask at the same time may both make a value, so it is only for
    values that come out the same.

    Parameters
    ----------
    places : collection of int
    make : callable
        Makes the value of a place.
    is_kept : bool
        Whether a value is kept once it is made.
    """

    def __init__(
        self, places: Collection[int], make: Callable[[int], Value], *, is_kept: bool = True
    ) -> None:
        self._places = dict.fromkeys(sorted(places))
        self._make = make
        self._is_kept = is_kept
        self._made: dict[int, Value] = {}

    def __getitem__(self, place: int) -> Value:
        if place in self._made:
            return self._made[place]
        if place not in self._places:
            raise KeyError(place)
        value = self._make(place)
        if self._is_kept:
            self._made[place] = value
        return value

    def __contains__(self, place: object) -> bool:
        return place in self._places

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


N_COEFFICIENTS_MAX = 2**23  # cells times rows: 64 MB


def coefficients_of(block: QueryBlock, sizes: Mapping[str, int]) -> tuple[Floats, Floats]:
    """What each row of a block sums, over the cells of the block's scope.

    Parameters
    ----------
    block : QueryBlock
    sizes : mapping
        The number of levels of each axis.

    Returns
    -------
    coefficients : (n_cells of the scope, n_rows) ndarray
        The coefficient of each cell's count in each row.
    constants : (n_rows,) ndarray

    Raises
    ------
    TooLarge
        If there are too many of them.
    """
    scope = block.scope
    n_cells = math.prod(sizes[name] for name in scope)
    if n_cells * block.n_rows > N_COEFFICIENTS_MAX:
        raise TooLarge(f"{block.n_rows} rows over {n_cells} cells are too many for one query.")
    whole = _dense(block.query, scope, sizes)
    constants = np.full(block.n_rows, float(block.query.constant))
    if block.partition is None:
        return whole[:, np.newaxis], constants
    shape = [sizes[name] for name in scope]
    labels = spread(block.partition.labels.astype(np.float64), block.partition.axes, scope)
    labels = np.broadcast_to(labels, shape).ravel()
    return whole[:, np.newaxis] * (labels[:, np.newaxis] == np.arange(block.n_rows)), constants


def _dense(query: LinearQuery, scope: Scope, sizes: Mapping[str, int]) -> Floats:
    found = np.zeros([sizes[name] for name in scope])
    for term in query.terms:
        product: Floats = np.array(float(term.scale))
        for factor in term.factors:
            product = product * spread(factor.values.astype(np.float64), factor.axes, scope)
        found += product
    return found.ravel()


VARIANCE_MIN = 0.01  # of that at equal shares


class NotCovered(LookupError):
    """No combination with answers has all attributes of a query.

    Parameters
    ----------
    scope : tuple of str
        The attributes of the query.
    covered : tuple of tuple of str
        Those of every combination that has answers.
    """

    def __init__(self, scope: Scope, covered: tuple[Scope, ...]) -> None:
        super().__init__(f"no combination has all of the attributes {', '.join(scope)}")
        self.scope = scope
        self.covered = covered


@dataclass(frozen=True, eq=False)
class ModelledAnswers:
    """Values that a model supplies; there is no interval, since no answer shows its error.

    Parameters
    ----------
    values : (n_rows,) ndarray
    residual : float
        How far, in respondents, the model is from the tables that it was made of.
    """

    values: Floats
    residual: float


@dataclass(frozen=True, eq=False)
class AgreeingTable:
    """What a combination's table has become once all of them were made to agree.

    Parameters
    ----------
    scope : tuple of str
        The attributes of the combination that were asked for.
    counts : ndarray of float64
        Of respondents, an axis for each attribute; unbiased, so some may be negative.
    variances : ndarray of float64
        Positive; of each count by the combination's own answers. What the others know makes counts
        better than these say.
    """

    scope: Scope
    counts: Floats
    variances: Floats


@dataclass(frozen=True, eq=False)
class CollectionEstimates:
    """What the answers to a campaign say.

    Parameters
    ----------
    campaign : Campaign
    tallies : mapping of int to sequence of Tally
        Of each combination, by its place: one for each block.
    n_respondents : int
        How many answered. Counts are of these. Intervals hold for them, and for the population
        that they were drawn from, scaled to their number.
    n_answers : mapping of int to int, optional
        How many answers each combination has, by its place. With it, tallies may be made when they
        are asked for, and each is checked then; without it, all of them are looked at now.
    """

    campaign: Campaign
    tallies: Mapping[int, Sequence[Tally]]
    n_respondents: int
    n_answers: Mapping[int, int] | None = None

    def __post_init__(self) -> None:
        for place in self.tallies:
            if not 0 <= place < len(self.campaign.combinations):
                raise ValueError(f"there is no combination {place}")
        if self.n_answers is None:
            for place, blocks in self.tallies.items():
                _check_cells(self.campaign, place, blocks)
        n_answers = sum(self._n_answers.values())
        if n_answers != self.n_respondents * self.campaign.n_answered:
            raise ValueError(f"{n_answers} answers do not fit {self.n_respondents} respondents")

    @cached_property
    def estimates(self) -> Mapping[int, TableEstimate]:
        """The shares of each combination that has answers, by its place; made when asked for."""
        answered = [place for place, n_answers in self._n_answers.items() if n_answers]
        return ByPlace(answered, partial(_estimate, self.campaign, self.tallies, self._n_answers))

    @cached_property
    def tables(self) -> Mapping[int, ScopedTable]:
        """Each combination that has answers, by its place; made when asked for."""
        return ByPlace(list(self.estimates), partial(_table, self.campaign, self.estimates))

    @property
    def covered(self) -> tuple[Scope, ...]:
        """The attributes of each combination that has answers."""
        return tuple(self.campaign.combinations[place].scope for place in self.estimates)

    def answer(self, block: QueryBlock) -> list[CollectedAnswer]:
        """The rows of a block, in counts of respondents.

        Raises
        ------
        NotCovered
            If no combination with answers has all attributes of the block.
        """
        coefficients, constants = coefficients_of(block, self._sizes)
        if not block.scope:
            counts = self.n_respondents * coefficients[0]
            return [known(value) for value in (counts + constants).tolist()]
        found = self._of_cells(block.scope, coefficients)
        return [
            CollectedAnswer(one.value + constant, one.law, one.method)
            for one, constant in zip(found, constants.tolist(), strict=True)
        ]

    def modelled(self, block: QueryBlock) -> ModelledAnswers:
        """The rows of a block over attributes that no combination has together.

        Raises
        ------
        NotCovered
            If some attribute is in no combination with answers.
        """
        coefficients, constants = coefficients_of(block, self._sizes)
        if set(block.scope) - {name for scope in self.covered for name in scope}:
            raise NotCovered(block.scope, self.covered)
        places = self._touching(block.scope)
        # Without the quadratic programme, whose solver is not installed everywhere.
        agreeing = nonnegative(
            [self._noisy(place) for place in places],
            total=float(self.n_respondents),
            n_programme_cells_max=0,
        )
        model = maximum_entropy(block.scope, agreeing.tables)
        return ModelledAnswers(model.values.ravel() @ coefficients + constants, model.residual)

    def tabled(self, block: QueryBlock, shape: tuple[int, ...]) -> AnsweredTable:
        """A block of counts as a table, with the law of tables that are collected in the same way.

        It uses the answers of all combinations that have all of its columns. Combinations that
        share only some of them are left out: they would add noise of other respondents.

        Parameters
        ----------
        block : QueryBlock
            A block of counts of respondents.
        shape : tuple of int
            The table's; its last axis varies fastest among the rows of the block.

        Raises
        ------
        NotCovered
            If no combination with answers has all attributes of the block.
        """
        coefficients, _ = coefficients_of(block, self._sizes)
        parts = tuple(
            CellsOfTable(
                self.estimates[place], self.tables[place].widened(block.scope, coefficients)
            )
            for place in self._holding(block.scope)
        )
        return AnsweredTable(parts, shape)

    def n_places(self, scope: Scope) -> int:
        """At how many places answers are counted that are about all of some attributes.

        What `tabled` takes of time and of memory is this by cells, or by tables that are simulated.

        Raises
        ------
        NotCovered
            If there are none.
        """
        blocks = (block for place in self._holding(scope) for block in self.estimates[place].blocks)
        return sum(block.channel.n_tallies for block in blocks)

    def agreeing(self, names: Collection[str]) -> list[AgreeingTable]:
        """The tables of the combinations, made to agree; summed over attributes without a name.

        Of combinations with answers that have some of the names.
        """
        found: list[AgreeingTable] = []
        places = self._touching(names)
        if not places:
            return found
        noisy = [self._noisy(place) for place in places]
        for place, values in zip(places, projected(noisy, total=self._scale), strict=True):
            wide = self.campaign.combinations[place].scope
            others = tuple(axis for axis, name in enumerate(wide) if name not in names)
            counts = values.sum(axis=others)
            scope = tuple(name for name in wide if name in names)
            found.append(AgreeingTable(scope, counts, self._variances(place, scope)))
        return found

    def _variances(self, place: int, scope: Scope) -> Floats:
        """Of the counts of a combination's table on a scope, by its own answers.

        At the likely shares; where that takes more time than it is worth, at equal ones. Never
        far below the latter: a count that is 0 is not known to be 0.
        """
        shape, typical = self.campaign.sizes(scope), self._variance_of_margin(place, scope)
        n_kept = self.campaign.n_cells(scope)
        variances = np.full(n_kept, typical)
        estimate = self.estimates[place]
        if n_kept * estimate.n_places <= N_COEFFICIENTS_MAX:
            own = estimate.variances(self.tables[place].widened(scope, np.eye(n_kept)))
            variances = np.maximum(own, VARIANCE_MIN * typical)
        return self._scale**2 * variances.reshape(shape)

    def most_precise(self, scope: Scope) -> int:
        """Of the combinations that have all attributes of a scope, the one that says most of it.

        Raises
        ------
        NotCovered
            If there is none with answers.
        """
        return min(self._holding(scope), key=lambda place: self._variance_of_margin(place, scope))

    @cached_property
    def _n_answers(self) -> Mapping[int, int]:
        if self.n_answers is not None:
            return self.n_answers
        return {place: _total(blocks) for place, blocks in self.tallies.items()}

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return {one.name: len(one.levels) for one in self.campaign.attributes}

    def _of_cells(self, scope: Scope, coefficients: Floats) -> list[CollectedAnswer]:
        best = self.most_precise(scope)
        alone = self._alone(self.tables[best], scope, coefficients)
        places = self._touching(scope)
        if len(places) == 1:
            return alone
        together = self._together(places, scope, coefficients)
        # Where answers are too few for a normal law, one table has an exact one.
        return [one if other is None else other for one, other in zip(alone, together, strict=True)]

    def _alone(
        self, table: ScopedTable, scope: Scope, coefficients: Floats
    ) -> list[CollectedAnswer]:
        """Answers from one table."""
        found: list[CollectedAnswer] = []
        for some in table.batches(coefficients.shape[1]):
            own = table.widened(scope, coefficients[:, some])
            found.extend(answers(table.estimate, own, scale=self._scale))
        return found

    def _together(
        self, places: list[int], scope: Scope, coefficients: Floats
    ) -> list[CollectedAnswer | None]:
        """Answers from all tables that share attributes; None where a normal law is not near."""
        together = TablesTogether(
            scope, [self.tables[place] for place in places], self._overlaps(places)
        )
        values = self._scale * together.values(coefficients)
        variances, thirds = together.moments(coefficients)
        deviations = self._scale * np.sqrt(variances)
        return [
            CollectedAnswer(value, normal_law(deviation), IntervalMethod.NORMAL)
            if is_enough and deviation > 0
            else None
            for value, deviation, is_enough in zip(
                values.tolist(),
                deviations.tolist(),
                are_enough(variances, thirds).tolist(),
                strict=True,
            )
        ]

    def _overlaps(self, places: list[int]) -> Overlaps | None:
        """The expected number of respondents who answer two of these combinations."""
        if self.campaign.n_answered == 1:
            return None
        n_answers = np.array([self.estimates[place].n_answers for place in places])
        expected = np.zeros((len(places), len(places)))
        for one, other in combinations(range(len(places)), 2):
            share = self.campaign.expected_share_of_both(places[one], places[other])
            expected[one, other] = expected[other, one] = share * self.n_respondents
        n_both = np.minimum(expected, np.minimum.outer(n_answers, n_answers))
        return Overlaps(n_both / np.outer(n_answers, n_answers), self.campaign.n_answered)

    @property
    def _scale(self) -> float:
        return float(self.n_respondents)

    def _holding(self, scope: Scope) -> list[int]:
        """The combinations with answers that have all attributes of a scope."""
        found = [place for place in self.campaign.covering(scope) if place in self.estimates]
        if not found:
            raise NotCovered(scope, self.covered)
        return found

    def _touching(self, scope: Collection[str]) -> list[int]:
        """The combinations that share an attribute: no other changes an answer, as totals agree."""
        asked = set(scope)
        return [
            place
            for place in self.estimates
            if asked.intersection(self.campaign.combinations[place].scope)
        ]

    def _noisy(self, place: int) -> NoisyTable:
        estimate, combination = self.estimates[place], self.campaign.combinations[place]
        shape = self.campaign.sizes(combination.scope)
        variance = self._scale**2 * estimate.typical_variance
        return NoisyTable(combination.scope, self._scale * estimate.shares.reshape(shape), variance)

    def _variance_of_margin(self, place: int, scope: Scope) -> float:
        """Of a cell of the scope in one table, as channels and numbers of answers say."""
        n_summed = self.estimates[place].n_cells / self.campaign.n_cells(scope)
        return self.estimates[place].typical_variance * n_summed


# Of these, nothing refers to the estimates that they are for: large values go when those do.
def _estimate(
    campaign: Campaign,
    tallies: Mapping[int, Sequence[Tally]],
    n_answers: Mapping[int, int],
    place: int,
) -> TableEstimate:
    blocks = tallies[place]
    _check_cells(campaign, place, blocks)
    if _total(blocks) != n_answers[place]:
        scope = campaign.combinations[place].scope
        raise ValueError(f"{scope} has {_total(blocks)} answers instead of {n_answers[place]}")
    return estimated(blocks)


def _table(campaign: Campaign, estimates: Mapping[int, TableEstimate], place: int) -> ScopedTable:
    scope = campaign.combinations[place].scope
    return ScopedTable(scope, campaign.sizes(scope), estimates[place])


def _check_cells(campaign: Campaign, place: int, blocks: Sequence[Tally]) -> None:
    combination = campaign.combinations[place]
    if any(one.channel.n_cells != combination.channel.n_cells for one in blocks):
        raise ValueError(f"a tally of {combination.scope} has the wrong number of cells")


def _total(blocks: Sequence[Tally]) -> int:
    return sum(one.n_answers for one in blocks)
