"""What pairwise models and Bayesian networks ask for, measured through the gate.

The settings of a network in the method's terms, and checks of their combinations.

Reads only the request and the public schema.

Choices are statistics; tables are counts of partitions that enter the history like any others.

The method decides what to measure; the spending decides what it costs and whether it is allowed. If
others exhaust the table's budget meanwhile, buying stops, and the synthetic table is made from what
is known.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np

from cube.holders import Holders
from cube.query import Partition, QueryBlock, Scope, counting
from cube.refusals import BudgetExhausted, LimitReached
from cube.statistic import Choice, Distance
from inference import History
from proxy.synthetic_tables.request import Clip, Grouping, Joining, SynthesisRequest, Votes
from proxy.synthetic_tables.spending import LaplaceSpending, product_partition
from proxy.tables import ServedTable
from synthesis import (
    Candidate,
    Column,
    Floats,
    HolderMargins,
    HoldersSettings,
    Integers,
    KnownEstimates,
    Sketch,
    Stratum,
    known_sketch,
    tables_if_independent,
)
from synthesis.privbayes import (
    Attribute,
    LearningSettings,
    grouped_attribute,
    layered_attribute,
    plain_attribute,
)


def settings_of(request: SynthesisRequest) -> LearningSettings:
    """The method's settings."""
    return LearningSettings(
        score=request.score,
        degree=request.degree,
        theta=request.theta,
        network_share=request.structure_share,
    )


def joined_settings_of(request: SynthesisRequest, joining: Joining) -> HoldersSettings:
    """The same for a network of several holders."""
    return HoldersSettings(
        score=request.score,
        degree=request.degree,
        theta=request.theta,
        network_share=request.structure_share,
        votes_by_size=joining.votes is Votes.BY_SIZE,
        holders_clip=joining.clip is Clip.HOLDERS,
        n_rows=None if joining.public_rows is None else float(joining.public_rows),
        smoothing=joining.smoothing,
    )


def attributes_of(columns: Sequence[Column], request: SynthesisRequest) -> list[Attribute]:
    """Columns as attributes of a network, with the groups of their levels."""
    seen = layered_attribute if request.hierarchies else plain_attribute
    grouped: dict[str, list[Grouping]] = {}
    for one in request.groups:
        grouped.setdefault(one.column, []).append(one)
    return [
        grouped_attribute(column.name, [one.labels for one in grouped[column.name]])
        if column.name in grouped
        else seen(column)
        for column in columns
    ]


CHOSEN: Final = 0.7  # of the whole, once the network is chosen
BEGUN: Final = 0.05


class NetworkMeasurer:
    """Measures for `synthesis.privbayes`, through one table's gate.

    Parameters
    ----------
    n_columns : int
        How many columns there are; at most one choice is made for each.
    level : int, optional
        Of a federated table: the holder that chooses, and whose rows are counted.
    turn : (int, int)
        The place of this network among those that are learned one after the other, and how many.
    """

    def __init__(
        self,
        spending: LaplaceSpending,
        n_columns: int,
        level: int | None = None,
        turn: tuple[int, int] = (0, 1),
    ) -> None:
        self._spending = spending
        self._n_columns = n_columns
        self._level = level
        self._turn = turn
        self._n_chosen = 0

    def choose(self, choice: Choice, budget: Fraction) -> int:
        """The index of the chosen candidate."""
        holders = self._spending.table.extent.holders
        if holders is not None and self._level is not None:
            choice = holders.choice_of(choice, self._level)
        (place,) = self.chosen([choice], budget)
        return place

    def chosen(self, choices: Sequence[Choice], budget: Fraction) -> list[int]:
        """The index of the chosen candidate of each, which all are asked at once."""
        share = self._n_chosen / self._n_columns
        self._step("choosing the network", BEGUN + (CHOSEN - BEGUN) * share)
        self._n_chosen += 1
        return [int(place) for place in self._spending.ask(choices, budget)]

    def tables(self, views: Sequence[tuple[Partition, ...]], budget: Fraction) -> list[Floats]:
        """Noisy counts over the classes of views, with one axis for each view, in its order."""
        self.buy(views, budget, None if self._level is None else (self._level,))
        return self.read(views, self._level)

    def buy(
        self,
        views: Sequence[tuple[Partition, ...]],
        budget: Fraction,
        levels: Collection[int] | None = None,
    ) -> None:
        """Count the classes of views; see `LaplaceSpending.buy`."""
        self._step("measuring tables", CHOSEN)
        self._spending.buy(dict.fromkeys(map(_product, views), budget), levels)

    def read(
        self, views: Sequence[tuple[Partition, ...]], level: int | None = None
    ) -> list[Floats]:
        """Counts that were bought; those of one holder, or of all that are asked."""
        snapshot = self._spending.table.snapshot()
        if level is None:
            history = snapshot.pooled_over(self._spending.levels)
        else:
            history = snapshot.held_by(level)
        return [_counts(history, of_table) for of_table in views]

    def _step(self, name: str, done: float) -> None:
        place, n_networks = self._turn
        self._spending.step(name, CHOSEN * (place + done / CHOSEN) / n_networks)


class HoldersTogether:
    """Asks several holders of a federated table the same at once, when the first of them is asked.

    So all of them are asked, or none if one would refuse, and they work at the same time.
    """

    def __init__(self, spending: LaplaceSpending, n_columns: int, holders: Holders) -> None:
        self._measurer = NetworkMeasurer(spending, n_columns)
        self._levels = spending.levels
        self._holders = holders
        self._question: object = None
        self._answers: dict[int, Any] = {}

    def one(self, level: int) -> "OneOfHolders":
        """What one holder answers."""
        return OneOfHolders(self, level)

    def choices(self, choice: Choice, budget: Fraction) -> list[int]:
        """The candidate that each holder chooses."""
        asked = [self._holders.choice_of(choice, level) for level in self._levels]
        return self._measurer.chosen(asked, budget)

    def tables(
        self, views: Sequence[tuple[Partition, ...]], budget: Fraction
    ) -> list[list[Floats]]:
        """The noisy counts of each holder."""
        self._measurer.buy(views, budget)
        return [self._measurer.read(views, level) for level in self._levels]

    def answer(self, level: int, question: object, ask: Callable[[], Sequence[Any]]) -> Any:
        """What a holder answers; all are asked if it has answered what they were asked before."""
        if level not in self._answers:
            self._answers = dict(zip(self._levels, ask(), strict=True))
            self._question = question
        if self._question is not question:
            raise RuntimeError("a holder is asked something else than the others")
        return self._answers.pop(level)


@dataclass(frozen=True, slots=True, eq=False)
class OneOfHolders:
    """One holder among those that are asked together."""

    together: HoldersTogether
    level: int

    def choose(self, choice: Choice, budget: Fraction) -> int:
        """The index of the candidate that the holder chooses."""
        told = self.together.answer(
            self.level, choice, lambda: self.together.choices(choice, budget)
        )
        return int(told)

    def tables(self, views: Sequence[tuple[Partition, ...]], budget: Fraction) -> list[Floats]:
        """The holder's noisy counts over the classes of views."""
        told: list[Floats] = self.together.answer(
            self.level, views, lambda: self.together.tables(views, budget)
        )
        return told


def _counts(history: History, views: Sequence[Partition]) -> Floats:
    """The most precise counts in a history for a product of views."""
    partition = _product(views)
    place = history.most_precise(QueryBlock(counting(), partition))
    if place is None:
        raise RuntimeError("a table that was measured is not in the history")
    values = history[place].values
    n_groups = {view.axes[0]: view.n_groups for view in views}
    counts = values.reshape([n_groups[name] for name in partition.axes])
    return np.transpose(counts, [partition.axes.index(view.axes[0]) for view in views])


def _product(views: Sequence[Partition]) -> Partition:
    labels = {view.axes[0]: view.labels for view in views}
    return product_partition(tuple(sorted(labels)), labels)


COUNTED: Final = 0.05  # of the whole, once the rows are counted
ONE_WAYS: Final = 0.2
SCORED: Final = 0.5
PAIRS: Final = 0.8


class GateMeasurer:
    """Measures for `synthesis.pairwise`, through one table's gate.

    Parameters
    ----------
    of : Stratified, optional
        The rows that are counted; all by default.
    """

    def __init__(
        self,
        spending: LaplaceSpending,
        columns: Sequence[Column],
        of: "Stratified | None" = None,
    ) -> None:
        self._spending = spending
        self._columns = tuple(columns)
        self._of = of or Stratified()
        self._levels = {c.name: np.arange(c.size) for c in columns}
        self._done = 0.0
        self.stopped: str | None = None

    def known(self) -> KnownEstimates:
        """The estimates from the current history."""
        spending = self._spending
        return known_now(spending.table, self._columns, self._of.stratum, spending.levels)

    def count(self, budget: float) -> None:
        """Count the rows."""
        self._step("counting rows", 0.0)
        self._buy({self._of.everything: budget})

    def one_ways(self, budgets: Mapping[str, float]) -> None:
        """Count the levels of columns."""
        self._step("measuring columns", COUNTED)
        self._buy({self._of.partition((name,), self._levels): one for name, one in budgets.items()})

    def scores(self, sketch: Sketch, budget: float) -> Floats:
        """Noisy distances of tables from independence; zeros once buying has stopped."""
        self._step("scoring pairs", ONE_WAYS)
        candidates = sketch.candidates
        holders = self._spending.table.extent.holders
        if holders is None:
            asked = [self._distance(one, sketch.reference(one)) for one in candidates]
            between = np.zeros(len(candidates))
        else:
            asked, between = self._of_each_holder(holders, sketch)
        # Distances with Gaussian noise cost every cell alike, so those of several strata add up
        n_paid_for = self._of.n_strata if self._spending.distances_cost_all else 1
        share = budget / len(candidates) / n_paid_for
        told: list[tuple[float, ...]] = []
        self._pay(lambda: told.append(self._spending.ask(asked, share)))
        if not told:
            return np.zeros(len(candidates))
        of_each = np.array(told[0]).reshape(-1, len(candidates))  # a row for each holder
        return np.asarray(of_each.sum(axis=0) + between)

    def _of_each_holder(self, holders: Holders, sketch: Sketch) -> tuple[list[Distance], Floats]:
        """What each holder is asked, and what the differences of holders add to each sum."""
        levels = self._spending.levels
        margins = holder_margins(self._spending.table, self._columns, self._of.stratum, levels)
        expected = [tables_if_independent(sketch, one, margins) for one in sketch.candidates]
        asked = [
            holders.distance_of(self._distance(candidate, tables[place]), level)
            for place, level in enumerate(levels)
            for candidate, (tables, _) in zip(sketch.candidates, expected, strict=True)
        ]
        return asked, np.array([between for _, between in expected])

    def _distance(self, candidate: Candidate, reference: Floats) -> Distance:
        block = QueryBlock(counting(), self._counted(candidate))
        return Distance(block, tuple(np.rint(reference).astype(np.int64).ravel().tolist()))

    def pairs(self, budgets: Mapping[Candidate, float]) -> None:
        """Count the cells of tables of pairs."""
        self._step("measuring pairs", SCORED)
        self._buy({self._counted(candidate): one for candidate, one in budgets.items()})
        self._step("fitting", PAIRS)

    def _counted(self, candidate: Candidate) -> Partition:
        named = zip(candidate.scope, candidate.groups, strict=True)
        return self._of.partition(candidate.scope, {name: one.labels for name, one in named})

    def _buy(self, budgets: Mapping[Partition | None, float]) -> None:
        self._pay(lambda: self._spending.buy(budgets))

    def _pay(self, purchase: Callable[[], None]) -> None:
        if self.stopped is not None:
            return
        try:
            purchase()
        except (BudgetExhausted, LimitReached) as refusal:
            if not self._spending.spent:
                raise
            self.stopped = refusal.message  # others have spent the budget meanwhile

    def _step(self, name: str, done: float) -> None:
        self._done = max(self._done, done)  # columns are measured again if no pair is worth a table
        self._spending.step(name, PAIRS * (self._of.place + self._done / PAIRS) / self._of.n_strata)


@dataclass(frozen=True, slots=True)
class Stratified:
    """The rows that are counted: all, or those with some levels of a target's columns.

    Parameters
    ----------
    place : int
        Of the stratum among all, which are measured one after the other.
    n_strata : int
        How many the table is divided into.
    sizes : mapping of str to int
        The levels of each column of the target.
    """

    stratum: Stratum = ()
    place: int = 0
    n_strata: int = 1
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def everything(self) -> Partition | None:
        """All rows counted; or those of every stratum, which cost no more than those of one."""
        labels = {name: np.arange(size) for name, size in self.sizes.items()}
        return product_partition(tuple(sorted(labels)), labels) if labels else None

    def partition(self, scope: Scope, labels: Mapping[str, Integers]) -> Partition:
        """The product of partitions of columns, of the rows that are counted."""
        if not self.stratum:
            return product_partition(scope, labels)
        levels = dict(self.stratum)
        axes = tuple(sorted((*scope, *levels)))
        outside = np.zeros((1,) * len(axes), dtype=np.bool_)
        for place, name in enumerate(axes):
            if name in levels:
                shape = [-1 if one == place else 1 for one in range(len(axes))]
                outside = outside | (np.arange(self.sizes[name]) != levels[name]).reshape(shape)
        whole = {name: np.zeros(size, dtype=np.int64) for name, size in self.sizes.items()}
        return product_partition(axes, {**whole, **labels}, outside)


def known_now(
    table: ServedTable,
    columns: Sequence[Column],
    stratum: Stratum = (),
    levels: Sequence[int] | None = None,
) -> KnownEstimates:
    """The history's estimates for some columns, and the statistics released beside it.

    Of a federated table, those of all rows, or of the rows of the holders with these levels.
    """
    snapshot = table.snapshot()
    told = (counts for one in snapshot.charges.released for counts in one.counts)
    history = snapshot.pooled if levels is None else snapshot.pooled_over(levels)
    return KnownEstimates.from_history(history, columns, told, stratum)


def known_by_holder(table: ServedTable, columns: Sequence[Column], holder: str) -> KnownEstimates:
    """The same of a federated table, with the holder among the columns."""
    others, snapshot = [column for column in columns if column.name != holder], table.snapshot()
    held = [snapshot.held_by(level) for level in range(snapshot.n_holders)]
    return KnownEstimates.from_history(snapshot.pooled, others).by_holder(held, others, holder)


def holder_sizes(
    table: ServedTable, columns: Sequence[Column], levels: Sequence[int] | None = None
) -> list[float | None]:
    """The noisy number of rows of each holder of a federated table; None where there is none."""
    return [one.n_rows for one in holder_margins(table, columns, (), levels)]


def holder_margins(
    table: ServedTable,
    columns: Sequence[Column],
    stratum: Stratum = (),
    levels: Sequence[int] | None = None,
) -> list[HolderMargins]:
    """Each holder's own number of rows and counts of columns, as far as the history has them."""
    snapshot, found = table.snapshot(), []
    for level in range(snapshot.n_holders) if levels is None else levels:
        known = KnownEstimates.from_history(snapshot.held_by(level), columns, (), stratum)
        one_ways = known_sketch(columns, known).one_ways
        found.append(HolderMargins(known.n_rows, one_ways, known.pairs))
    return found
