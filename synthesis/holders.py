"""Networks of several holders that do not show their rows: three ways, through one port.

Each holder is a `ChoiceMeasurer`: it chooses privately, and counts with noise. So what is learned
here is made of choices and noisy tables alone, each paid for where the rows are. Budgets are per
holder: a record is in one of them, and each holder's records have the whole guarantee.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from itertools import combinations, product
from types import MappingProxyType
from typing import Final

import numpy as np

from cube.query import N_GROUPS_MAX, Partition
from cube.statistic import Choice, Score
from synthesis.choice import noise_of_sum
from synthesis.merging import merged_model
from synthesis.networks import mutual_information
from synthesis.privbayes import (
    DEFAULTS,
    Attribute,
    BayesianNetwork,
    ChoiceMeasurer,
    LearningSettings,
    Node,
    Parent,
    bought_tables,
    check_affords,
    fitted_network,
    learned_network,
    nearest_counts,
)
from synthesis.tables import Floats


class Structure(StrEnum):
    """How a network of several holders is learned."""

    STATISTICS = "statistics"  # from the noisy tables of all sets of columns
    VOTES = "votes"  # every holder votes for each arc
    MODELS = "models"  # every holder learns a network; they are joined


class Smoothing(StrEnum):
    """What is added to a cell on average before shares are taken, spread as a column's own law."""

    NONE = "none"
    ONE = "one"
    DEVIATION = "deviation"  # half the standard deviation of its noise, at least 1


NETWORK_SHARES: Final[Mapping[Structure, Fraction]] = MappingProxyType(
    {Structure.VOTES: Fraction(3, 10), Structure.MODELS: Fraction(3, 10)}
)

# Of statistics, one: there are many times as many tables of three columns as of two, each so noisy.
DEGREES: Final[Mapping[Structure, int]] = MappingProxyType(
    {Structure.STATISTICS: 1, Structure.VOTES: DEFAULTS.degree, Structure.MODELS: DEFAULTS.degree}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldersSettings:
    """How holders' answers are joined.

    Parameters
    ----------
    score : Score
        By which holders choose.
    degree : int, optional
        The most parents of a column; `DEGREES` by default.
    theta : float
        The least usefulness of a table; see `LearningSettings`.
    network_share : Fraction, optional
        The share of the budget for votes, or for the choices of each holder; `NETWORK_SHARES` by
        default. Statistics buy tables only.
    votes_by_size : bool
        Whether a vote weighs as much as its holder has rows, or each holder has one vote.
    holders_clip : bool
        Whether each holder's negative counts become 0 before they are summed, as published: every
        empty cell then gets half the scale of the noise from each holder.
    n_rows : float, optional
        The public number of rows of all holders; by default the noisy one.
    smoothing : Smoothing
        Of joined models at most `ONE`: joining them averages their noise.
    """

    score: Score = DEFAULTS.score
    degree: int | None = None
    theta: float = DEFAULTS.theta
    network_share: Fraction | None = None
    votes_by_size: bool = True
    holders_clip: bool = False
    n_rows: float | None = None
    smoothing: Smoothing = Smoothing.DEVIATION

    def degree_of(self, structure: Structure) -> int:
        """The most parents of a column in this way."""
        return DEGREES[structure] if self.degree is None else self.degree

    def learning(self, structure: Structure) -> LearningSettings:
        """The settings of a network that one measurer learns."""
        share = self.network_share
        return LearningSettings(
            score=self.score,
            degree=self.degree_of(structure),
            theta=self.theta,
            network_share=NETWORK_SHARES[structure] if share is None else share,
        )


FEDERATED: Final = HoldersSettings()


def federated_network(  # noqa: PLR0913 - what to buy, from whom, and how, which is by keyword
    attributes: Sequence[Attribute],
    holders: Sequence[ChoiceMeasurer],
    sizes: Sequence[float],
    rng: np.random.Generator,
    *,
    budget: Fraction,
    structure: Structure,
    settings: HoldersSettings = FEDERATED,
) -> BayesianNetwork:
    """Buy a network of the rows of all holders.

    Parameters
    ----------
    attributes : sequence of Attribute
    holders : sequence of ChoiceMeasurer
    sizes : sequence of float
        The noisy or public number of rows of each holder; what is below 0 counts as 0.
    rng : numpy.random.Generator
        Chooses the first column and breaks ties between votes; protects nothing.
    budget : Fraction
        Of each holder. Never exceeded.
    structure : Structure
    settings : HoldersSettings

    Raises
    ------
    ValueError
        Before anything is bought, if no network can be learned in this way; later, if a holder
        answers with something that is no table or choice of this kind.

    References
    ----------
    .. [1] V. Digalakis, "Data Analytics with Differential Privacy", Technical University of Crete,
       2018, algorithms 3.5 to 3.7.
    """
    check_affords(attributes, budget)
    rows = _sizes(holders, sizes)
    checked = [
        _Holder(place, one, clips=settings.holders_clip) for place, one in enumerate(holders)
    ]
    match structure:
        case Structure.STATISTICS:
            return _from_statistics(attributes, checked, rng, budget, settings)
        case Structure.VOTES:
            return _from_votes(attributes, checked, rows, rng, budget, settings)
        case _:
            return _from_models(attributes, checked, rows, rng, budget, settings)


def _sizes(holders: Sequence[ChoiceMeasurer], sizes: Sequence[float]) -> Floats:
    """The number of rows of each holder; equal ones if noise leaves none any."""
    rows = np.array(sizes, dtype=np.float64)
    if not len(holders) or rows.shape != (len(holders),) or not np.isfinite(rows).all():
        raise ValueError("there must be at least one holder, and a number of rows for each")
    rows = np.maximum(rows, 0.0)
    return rows if rows.sum() > 0 else np.ones_like(rows)


class _Holder:
    """A holder whose answers are checked: what is no answer is refused, and names it.

    Parameters
    ----------
    place : int
    clips : bool
        Whether negative counts become 0 where the rows are.
    """

    def __init__(self, place: int, measurer: ChoiceMeasurer, *, clips: bool) -> None:
        self._place = place
        self._measurer = measurer
        self._clips = clips

    def choose(self, choice: Choice, budget: Fraction) -> int:
        """The place of a candidate."""
        chosen: object = self._measurer.choose(choice, budget)
        if not isinstance(chosen, int | np.integer) or not 0 <= chosen < len(choice.candidates):
            raise ValueError(f"holder {self._place} chose a candidate that does not exist")
        return int(chosen)

    def tables(self, views: Sequence[tuple[Partition, ...]], budget: Fraction) -> list[Floats]:
        """Noisy counts in the shape of the views."""
        found = self._measurer.tables(views, budget)
        if len(found) != len(views):
            raise ValueError(f"holder {self._place} sent {len(found)} tables, not {len(views)}")
        return [self._checked(*one) for one in zip(found, views, strict=True)]

    def _checked(self, table: object, views: tuple[Partition, ...]) -> Floats:
        shape = tuple(view.n_groups for view in views)
        if not isinstance(table, np.ndarray) or table.dtype.kind != "f" or table.shape != shape:
            raise ValueError(f"holder {self._place} sent a table that was not asked for")
        if not np.isfinite(table).all():
            raise ValueError(f"holder {self._place} sent counts that are no numbers")
        return np.maximum(table, 0.0) if self._clips else table


class _Committee:
    """Several holders as one measurer: they vote, and their noisy tables are summed."""

    def __init__(
        self, holders: Sequence[_Holder], weights: Floats, rng: np.random.Generator
    ) -> None:
        self._holders = holders
        self._weights = weights
        self._rng = rng

    def choose(self, choice: Choice, budget: Fraction) -> int:
        """The candidate with the most votes; a coin decides between equals."""
        votes = np.zeros(len(choice.candidates))
        for holder, weight in zip(self._holders, self._weights.tolist(), strict=True):
            votes[holder.choose(choice, budget)] += weight
        best = np.flatnonzero(votes == votes.max())
        return int(best[0] if best.size == 1 else self._rng.choice(best))

    def tables(self, views: Sequence[tuple[Partition, ...]], budget: Fraction) -> list[Floats]:
        """The sum of the holders' noisy counts."""
        summed = [np.zeros([view.n_groups for view in own]) for own in views]
        for holder in self._holders:
            for whole, own in zip(summed, holder.tables(views, budget), strict=True):
                whole += own  # noqa: PLW2901 - in place
        return summed


def _from_votes(  # noqa: PLR0913, PLR0917 - as above
    attributes: Sequence[Attribute],
    holders: Sequence[_Holder],
    rows: Floats,
    rng: np.random.Generator,
    budget: Fraction,
    settings: HoldersSettings,
) -> BayesianNetwork:
    weights = rows if settings.votes_by_size else np.ones_like(rows)
    committee = _Committee(holders, weights, rng)
    nodes, tables = bought_tables(
        attributes,
        committee,
        rng,
        budget=budget,
        n_rows=float(rows.sum()) / noise_of_sum(len(holders)),
        settings=settings.learning(Structure.VOTES),
    )
    price = budget * (1 - settings.learning(Structure.VOTES).network_share) / len(nodes)
    added = _added(settings.smoothing, math.sqrt(2 * len(holders)) / float(price))
    return fitted_network(
        attributes, nodes, tables, total=settings.n_rows, pseudo_counts=[added] * len(nodes)
    )


def _added(smoothing: Smoothing, deviation: float) -> float:
    match smoothing:
        case Smoothing.NONE:
            return 0.0
        case Smoothing.ONE:
            return 1.0
        case _:
            return max(1.0, deviation / 2)


def _from_models(  # noqa: PLR0913, PLR0917 - as above
    attributes: Sequence[Attribute],
    holders: Sequence[_Holder],
    rows: Floats,
    rng: np.random.Generator,
    budget: Fraction,
    settings: HoldersSettings,
) -> BayesianNetwork:
    networks = [
        learned_network(
            attributes,
            holder,
            rng,
            budget=budget,
            n_rows=max(1.0, size),
            settings=settings.learning(Structure.MODELS),
        )
        for holder, size in zip(holders, rows.tolist(), strict=True)
    ]
    added = 0.0 if settings.smoothing is Smoothing.NONE else 1.0
    degree = settings.degree_of(Structure.MODELS)  # as of each: what a mixture adds is diluted
    merged = merged_model(networks, rows.tolist(), rng, degree=degree, pseudo_count=added)
    assert isinstance(merged, BayesianNetwork)  # noqa: S101 - so are those that are joined
    return merged if settings.n_rows is None else replace(merged, total=settings.n_rows)


NOISE_COUNTED: Final = 2.0  # how many times its own noise parents must show
N_SIMULATED: Final = 8  # tables, of what noise alone shows


class _Superset:
    """Noisy tables of all sets of so many columns, and tables of fewer columns from them.

    Parameters
    ----------
    tables : mapping of tuple of str to ndarray of float64
    variance : float
        Of the noise of each cell.
    rng : numpy.random.Generator
        Simulates noise; protects nothing.
    """

    def __init__(
        self,
        attributes: Sequence[Attribute],
        tables: Mapping[tuple[str, ...], Floats],
        variance: float,
        rng: np.random.Generator,
    ) -> None:
        self._attributes = {one.name: one for one in attributes}
        self._tables = tables
        self._variance = variance
        self._rng = rng
        sums = [(float(table.sum()), table.size) for table in tables.values()]
        weight = math.fsum(1 / size for _, size in sums)
        self.total = max(0.0, math.fsum(value / size for value, size in sums) / weight)
        self._averaged: dict[tuple[str, ...], tuple[Floats, float]] = {}

    def counts(self, names: Sequence[str]) -> tuple[Floats, float]:
        """Counts with an axis for each column, and the variance of a cell.

        Notes
        -----
        Every larger table has these counts among its sums, with the noise of as many cells as were
        added up; the mean with the least variance is taken.
        """
        key = tuple(sorted(names))
        if key not in self._averaged:
            n_cells = math.prod(self._attributes[name].size for name in key)
            mean, weight = np.zeros([self._attributes[name].size for name in key]), 0.0
            for scope, table in self._tables.items():
                if set(key) <= set(scope):
                    others = tuple(at for at, name in enumerate(scope) if name not in key)
                    part = n_cells / table.size
                    mean = mean + part * table.sum(axis=others)
                    weight += part
            self._averaged[key] = mean / weight, self._variance / weight
        found, variance = self._averaged[key]
        return found.transpose([key.index(name) for name in names]), variance

    def seen(self, child: str, parents: Sequence[Parent]) -> tuple[Floats, Floats]:
        """The same of a child and its parents at their views; variances of all cells."""
        names = [child, *(one.column for one in parents)]
        counts, variance = self.counts(names)
        levels = [0, *(one.level for one in parents)]
        variances = np.full(counts.shape, variance)
        for axis, (name, level) in enumerate(zip(names, levels, strict=True)):
            if level:
                classes = self._attributes[name].classes[level]
                counts = _merged(counts, classes, axis)
                variances = _merged(variances, classes, axis)
        return counts, variances

    def worth(self, child: str, parents: Sequence[Parent]) -> float:
        """The information of parents about a child, less what noise makes of it, in nats.

        0 unless more rows lie elsewhere than if the child depended on none of them, beyond noise.

        Notes
        -----
        A law is nearer to the truth by its parents' information, and further by the noise of its
        table, which costs as much as it shows where there is nothing: `parents_worth` in
        `synthesis.privbayes.greedy` says why twice its mean is taken off.
        """
        counts, variances = self.seen(child, parents)
        total = max(self.total, 1.0)
        independent = _independent(counts) / total
        noise = np.sqrt(2 / np.pi * (variances + np.maximum(independent, 0.0)))
        if np.abs(counts - independent).sum() <= NOISE_COUNTED * noise.sum():
            return 0.0
        nearest = nearest_counts(counts, total)
        by_chance = _independent(nearest) / total  # its sum is the total, which noise has moved
        deviations = np.sqrt(variances + by_chance)
        drawn = self._rng.normal(by_chance, deviations, (N_SIMULATED, *counts.shape))
        shares = [nearest / total, *(nearest_counts(one, total) / total for one in drawn)]
        found, *of_noise = mutual_information(np.stack(shares), 0)
        return float(found - 2 * np.mean(of_noise))


def _independent(counts: Floats) -> Floats:
    """The product of the child's sums, which come first, and the parents'."""
    own = counts.sum(axis=tuple(range(1, counts.ndim)))
    product_of_sums: Floats = np.multiply.outer(own, counts.sum(axis=0))
    return product_of_sums


def _merged(values: Floats, classes: np.ndarray, axis: int) -> Floats:
    """Sums over the members of each class, along one axis."""
    moved = np.moveaxis(values, axis, 0)
    found = np.zeros((int(classes.max()) + 1, *moved.shape[1:]))
    np.add.at(found, classes, moved)
    return np.moveaxis(found, 0, axis)


def _from_statistics(
    attributes: Sequence[Attribute],
    holders: Sequence[_Holder],
    rng: np.random.Generator,
    budget: Fraction,
    settings: HoldersSettings,
) -> BayesianNetwork:
    by_name = {one.name: one for one in attributes}
    degree = min(settings.degree_of(Structure.STATISTICS), len(attributes) - 1)
    scopes = list(combinations(sorted(by_name), degree + 1))
    for scope in scopes:
        if math.prod(by_name[name].size for name in scope) > N_GROUPS_MAX:
            raise ValueError(
                f"the table of {', '.join(scope)} has more than {N_GROUPS_MAX} cells, which "
                "cannot be measured: fewer parents have smaller tables"
            )
    committee = _Committee(holders, np.ones(len(holders)), rng)
    price = budget / len(scopes)
    views = [tuple(by_name[name].views[0] for name in scope) for scope in scopes]
    tables = dict(zip(scopes, committee.tables(views, price), strict=True))
    merged = _Superset(attributes, tables, 2 * len(holders) / float(price) ** 2, rng)
    nodes = list(_best_nodes(attributes, merged.worth, rng, degree))
    found = [merged.seen(node.child, node.parents) for node in nodes]
    total = merged.total if settings.n_rows is None else settings.n_rows
    return fitted_network(
        attributes,
        nodes,
        [counts for counts, _ in found],
        total=total,
        pseudo_counts=[
            _added(settings.smoothing, math.sqrt(float(variances.mean()))) for _, variances in found
        ],
    )


def _best_nodes(
    attributes: Sequence[Attribute],
    worth: Callable[[str, Sequence[Parent]], float],
    rng: np.random.Generator,
    degree: int,
) -> Iterator[Node]:
    """A column and its parents after another, always those that are worth most."""
    names = [one.name for one in attributes]
    levels = {one.name: range(len(one.parent_sizes)) for one in attributes}
    before = [names[int(rng.integers(len(names)))]]
    yield Node(before[0], (), degree)
    known: dict[tuple[str, tuple[Parent, ...]], float] = {}
    while len(before) < len(names):
        left = [name for name in names if name not in before]
        newest = before[-1]
        for child in left:
            for size in range(degree):
                for others in combinations(before[:-1], size):
                    scope = (newest, *others)
                    for seen in product(*(levels[name] for name in scope)):
                        parents = tuple(map(Parent, scope, seen))
                        known[child, parents] = worth(child, parents)
        open_ = {pair: value for pair, value in known.items() if pair[0] in left and value > 0}
        child, parents = max(open_, key=lambda pair: open_[pair], default=(left[0], ()))
        before.append(child)
        yield Node(child, parents, degree)
