"""Joins released models of separate tables into one model of all their rows. Free.

The third way of learning from several holders: each learns a model of its own rows, and the models
are joined without another look at data. Only released numbers are read; nothing is measured.

The joined model is as near as possible to the mixture of the models: what their rows would be, put
together. The published way draws such rows, and fits a model to them without noise. Here a table of
the mixture is computed wherever that is feasible, and rows are drawn only for the others.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import combinations
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cube.query import N_GROUPS_MAX, Partition, Scope
from cube.statistic import N_PARENTS_MAX, Choice, Score
from synthesis.buckets import Buckets, refined
from synthesis.drawing import draw_rows as draw_pairwise_rows
from synthesis.model import PairTable, PairwiseModel
from synthesis.networks import mutual_information
from synthesis.privbayes import (
    Attribute,
    BayesianNetwork,
    LearningSettings,
    chosen_nodes,
    draw_rows,
    exact_law,
    fitted_network,
    views_of,
)
from synthesis.strata import StratifiedModel, draw_stratified_rows
from synthesis.tables import Floats

Model: TypeAlias = PairwiseModel | StratifiedModel | BayesianNetwork
Watch: TypeAlias = Callable[[str, float], None]  # a step, and the share that is done

DEGREE: Final = 3  # the most parents, where no model is a network
DEGREE_MORE: Final = 1  # than the networks have: models differ in what depends on what
ROWS_OF_A_CELL: Final = 16.0  # on average, in the largest table of a joined network
N_CANDIDATES_REFIT: Final = 2_000  # each is a table of its own: more take minutes
N_EXACT_MAX: Final = 2**14  # cells of a table on the way to an exact one, which would take long
N_DRAWN_MAX: Final = 500_000  # rows of one model
N_COMPARED_MAX: Final = 500  # pairs of columns


def merged_model(  # noqa: PLR0913 - what is joined, and how, which is by keyword
    models: Sequence[Model],
    weights: Sequence[float],
    rng: np.random.Generator,
    *,
    degree: int | None = None,
    by_rows: bool = False,
    pseudo_count: float | None = None,
    watch: Watch = lambda _step, _done: None,
) -> Model:
    """The model that is nearest to a mixture of models.

    Parameters
    ----------
    models : sequence of Model
        Of the same columns, with as many levels.
    weights : sequence of float
        The part of each in the mixture: not negative, with a positive sum.
    rng : numpy.random.Generator
        Chooses a network's first column, and draws rows.
    degree : int, optional
        The most parents of a column of a network; by default one more than the networks have.
    by_rows : bool
        Whether the joined model is a network of drawn rows, as published, even where tables of the
        mixture are known.
    pseudo_count : float, optional
        What is added to every count of a network's tables; by default 1 to those of drawn rows, in
        which a cell may be empty by chance.
    watch : callable
        Told of every step.

    Notes
    -----
    Pairwise models are joined into a pairwise one, models by class of the same target into one by
    class, and all others into a network.

    Raises
    ------
    ValueError
        If the models do not have the same columns, or weights are not such numbers.
    """
    shares = _normalised(models, weights)
    first = models[0]
    if any(model_sizes(one) != model_sizes(first) for one in models):
        raise ValueError("only models of the same columns and levels can be joined")
    if not by_rows:
        pairwise = [one for one in models if isinstance(one, PairwiseModel)]
        strata = [one for one in models if isinstance(one, StratifiedModel)]
        if len(pairwise) == len(models) and len({one.columns for one in pairwise}) == 1:
            return _merged_pairwise(pairwise, shares, _total(models), rng, watch)
        alike = {(one.columns, one.target) for one in strata}
        if len(strata) == len(models) and len(alike) == 1:
            return _merged_strata(strata, shares, rng, watch)
    added = float(by_rows) if pseudo_count is None else pseudo_count
    return _merged_network(
        models, shares, rng, degree=degree, by_rows=by_rows, pseudo_count=added, watch=watch
    )


def model_sizes(model: Model) -> dict[str, int]:
    """The number of levels of each column."""
    columns = model.attributes if isinstance(model, BayesianNetwork) else model.columns
    return {one.name: one.size for one in columns}


def drawn_levels(model: Model, rng: np.random.Generator, n_rows: int) -> NDArray[np.int32]:
    """Rows drawn from a model, as positions of levels."""
    match model:
        case PairwiseModel():
            return draw_pairwise_rows(model, rng, n_rows=n_rows)
        case StratifiedModel():
            return draw_stratified_rows(model, rng, n_rows=n_rows)
        case _:
            return draw_rows(model, rng, n_rows=n_rows)


def distances(
    models: Sequence[Model],
    weights: Sequence[float],
    merged: Model,
    rng: np.random.Generator,
    watch: Watch = lambda _step, _done: None,
) -> dict[Scope, float]:
    """How far pairs of columns of a joined model are from the mixture: total variation, 0 to 1.

    At most `N_COMPARED_MAX` pairs, chosen at random. What is drawn adds the noise of its rows.
    """
    shares = _normalised(models, weights)
    names = sorted(model_sizes(merged))
    pairs: list[Scope] = list(combinations(names, 2)) or [(name,) for name in names]
    if len(pairs) > N_COMPARED_MAX:
        pairs = [pairs[at] for at in rng.choice(len(pairs), N_COMPARED_MAX, replace=False)]
    both = [_Mixture(models, shares, rng), _Mixture([merged], np.ones(1), rng)]
    found: dict[Scope, float] = {}
    for place, pair in enumerate(pairs):
        watch("comparing", place / len(pairs))
        one, other = (mixture.shares(mixture.levels(pair)) for mixture in both)
        found[pair] = float(np.abs(one - other).sum() / 2)
    return found


def _normalised(models: Sequence[Model], weights: Sequence[float]) -> Floats:
    shares = np.array(weights, dtype=np.float64)
    if not models or shares.shape != (len(models),) or not (shares >= 0).all():
        raise ValueError("each model needs a weight that is not negative")
    if not 0 < shares.sum() < math.inf:
        raise ValueError("weights must be finite, and at least one must be positive")
    return np.asarray(shares / shares.sum())


def _total(models: Sequence[Model]) -> float:
    return math.fsum(one.total for one in models)


def _merged_network(  # noqa: PLR0913 - as above
    models: Sequence[Model],
    shares: Floats,
    rng: np.random.Generator,
    *,
    degree: int | None,
    by_rows: bool,
    pseudo_count: float,
    watch: Watch,
) -> BayesianNetwork:
    """The network of the mixture: GreedyBayes [1]_ without noise, by mutual information.

    Notes
    -----
    A table has at most as many cells as there are rows for `ROWS_OF_A_CELL` in each, or as the
    largest of the models has: what models of noisy tables say of finer ones is noise.

    References
    ----------
    .. [1] V. Digalakis, "Data Analytics with Differential Privacy", Technical University of Crete,
       2018, algorithms 3.2 and 3.7.
    """
    networks = [one for one in models if isinstance(one, BayesianNetwork)]
    mixture = _Mixture(models, shares, rng, by_rows=by_rows)
    total = _total(models)
    largest = max((law.size for one in networks for law in one.conditionals), default=0)
    if degree is None:
        degree = max((one.degree + DEGREE_MORE for one in networks), default=DEGREE)
        degree = min(degree, N_PARENTS_MAX)
    n_chosen = 0

    def choose(choice: Choice) -> int:
        nonlocal n_chosen
        watch("choosing parents", n_chosen / len(mixture.attributes))
        n_chosen += 1
        return mixture.choose(choice)

    nodes = chosen_nodes(
        mixture.attributes,
        choose,
        rng,
        max(float(largest), total / ROWS_OF_A_CELL),
        LearningSettings(score=Score.INFORMATION, degree=degree),
        N_CANDIDATES_REFIT,
    )
    by_name = {one.name: one for one in mixture.attributes}
    tables = [total * mixture.shares(views_of(by_name, node)) for node in nodes]
    added = [pseudo_count] * len(nodes)
    return fitted_network(mixture.attributes, nodes, tables, total=total, pseudo_counts=added)


class _Mixture:
    """Tables of a mixture of models, and the best candidate by them.

    Parameters
    ----------
    by_rows : bool
        Whether every table is counted among rows, in proportion to the weights.
    """

    def __init__(
        self,
        models: Sequence[Model],
        weights: Floats,
        rng: np.random.Generator,
        *,
        by_rows: bool = False,
    ) -> None:
        self.attributes = _attributes(models)
        self._models = models
        self._weights = weights
        self._rng = rng
        self._by_rows = by_rows
        self._drawn: dict[int, Mapping[str, NDArray[np.int32]]] = {}
        self._information: dict[tuple[bytes, ...], float] = {}

    def choose(self, choice: Choice) -> int:
        """The place of the candidate whose parents tell most about it."""
        told = []
        for candidate in choice.candidates:
            views = [choice.views[place] for place in (candidate.child, *candidate.parents)]
            key = tuple(view.axes[0].encode() + view.labels.tobytes() for view in views)
            if key not in self._information:
                shares = self.shares(views)[np.newaxis]
                self._information[key] = float(mutual_information(shares, 0)[0])
            told.append(self._information[key])
        return int(np.argmax(told))

    def levels(self, names: Sequence[str]) -> list[Partition]:
        """The finest views of columns."""
        by_name = {one.name: one for one in self.attributes}
        return [by_name[name].views[0] for name in names]

    def shares(self, views: Sequence[Partition]) -> Floats:
        """The share of each combination of classes, an axis for each view."""
        found = np.zeros([view.n_groups for view in views])
        for place, weight in enumerate(self._weights.tolist()):
            if weight > 0:
                found += weight * self.of_one(place, views)
        return found

    def of_one(self, place: int, views: Sequence[Partition]) -> Floats:
        """The same of one model."""
        names = [view.axes[0] for view in views]
        model = self._models[place]
        found = np.zeros([view.n_groups for view in views])
        if isinstance(model, BayesianNetwork) and not self._by_rows:
            law = exact_law(model, names, {}, N_EXACT_MAX)
            if law is not None:
                np.add.at(found, np.ix_(*(view.labels for view in views)), law.shares)
                return found
        rows = self._rows(place)
        cells = np.ravel_multi_index(
            tuple(view.labels[rows[name]] for name, view in zip(names, views, strict=True)),
            found.shape,
        )
        counts = np.bincount(cells, minlength=found.size).reshape(found.shape)
        return np.asarray(counts / max(1, cells.size), dtype=np.float64)

    def _rows(self, place: int) -> Mapping[str, NDArray[np.int32]]:
        """Rows of one model: of all together as many as they have, in proportion to the weights."""
        if place not in self._drawn:
            model, n_rows = self._models[place], N_DRAWN_MAX
            if self._by_rows:
                n_rows = min(n_rows, math.ceil(self._weights[place] * _total(self._models)))
            rows = drawn_levels(model, self._rng, n_rows)
            self._drawn[place] = dict(zip(model_sizes(model), rows.T, strict=True))
        return self._drawn[place]


def _attributes(models: Sequence[Model]) -> tuple[Attribute, ...]:
    """The columns, with the coarser views of the first network whose views all networks have."""
    networks = [one for one in models if isinstance(one, BayesianNetwork)]
    found = []
    for name, size in model_sizes(models[0]).items():
        own = [one.attribute(name) for one in networks]
        if own and all(_same_views(one, own[0]) for one in own):
            found.append(own[0])
        else:
            found.append(Attribute.plain(name, size))
    return tuple(found)


def _same_views(one: Attribute, other: Attribute) -> bool:
    return len(one.views) == len(other.views) and all(
        np.array_equal(own.labels, others.labels)
        for own, others in zip(one.views, other.views, strict=True)
    )


def _merged_strata(
    models: Sequence[StratifiedModel], shares: Floats, rng: np.random.Generator, watch: Watch
) -> StratifiedModel:
    """A model by class; a class has of each model the part of its rows that it has there."""
    total, classes = _total(models), {}
    for place, levels in enumerate(models[0].models):
        own = [one.models[levels] for one in models]
        parts = np.array(
            [
                share * one.total / whole.total if whole.total > 0 else 0.0
                for share, one, whole in zip(shares.tolist(), own, models, strict=True)
            ]
        )
        weights = parts / parts.sum() if parts.sum() > 0 else shares
        n_rows = total * float(parts.sum())
        watch("joining classes", place / len(models[0].models))
        classes[levels] = _merged_pairwise(own, weights, n_rows, rng, lambda _step, _done: None)
    return StratifiedModel(models[0].columns, models[0].target, classes)


def _merged_pairwise(
    models: Sequence[PairwiseModel],
    shares: Floats,
    total: float,
    rng: np.random.Generator,
    watch: Watch,
) -> PairwiseModel:
    """The tables of the mixture of columns, and of the pairs that any model has a table of.

    Notes
    -----
    Buckets are the coarsest that all models' are made of, so nothing of a model is lost. A model
    without a table of a pair still has a law of it, by way of other columns: that of its rows.
    """
    names = [column.name for column in models[0].columns]
    levels = [
        {name: one.parts[name] * one.buckets[name].expanded(one.shares[name]) for name in names}
        for one in models
    ]
    buckets = {name: reduce(refined, (one.buckets[name] for one in models)) for name in names}
    mixed = {
        name: np.tensordot(shares, np.stack([own[name] for own in levels]), 1) for name in names
    }
    of_bucket = {name: buckets[name].summed(mixed[name], 0) for name in names}
    mixture = _Mixture(models, shares, rng)
    pairs = {}
    scopes = sorted({scope for one in models for scope in one.pairs})
    for place, scope in enumerate(scopes):
        watch("joining tables", place / len(scopes))
        groups = _groups(models, shares, scope)
        found, noise = np.zeros([one.n_buckets for one in groups]), 0.0
        for number, (one, share) in enumerate(zip(models, shares.tolist(), strict=True)):
            if not share > 0:
                continue
            if scope in one.pairs and one.total > 0:
                own = [_spread(one, scope, axis, levels[number], groups[axis]) for axis in (0, 1)]
                counts = own[0].T @ one.pairs[scope].counts @ own[1]
                noise += (share * one.pairs[scope].noise / one.total) ** 2
            else:
                views = [
                    Partition((name,), own.labels) for name, own in zip(scope, groups, strict=True)
                ]
                counts = mixture.of_one(number, views)
            found += share * counts / max(float(counts.sum()), np.finfo(float).tiny)
        within = tuple(own.within(buckets[name]) for name, own in zip(scope, groups, strict=True))
        pairs[scope] = PairTable((within[0], within[1]), total * found, total * math.sqrt(noise))
    return PairwiseModel(
        columns=models[0].columns,
        buckets=buckets,
        total=total,
        shares=of_bucket,
        pairs=pairs,
        parts={name: _parts(mixed[name], buckets[name]) for name in names},
    )


def _over_levels(model: PairwiseModel, scope: Scope, axis: int) -> Buckets:
    """The groups of a pair's table as groups of levels."""
    groups = model.pairs[scope].groups[axis]
    return Buckets(groups.labels[model.buckets[scope[axis]].labels])


def _groups(models: Sequence[PairwiseModel], shares: Floats, scope: Scope) -> list[Buckets]:
    """The groups of levels for a pair: of all models' tables, or of one if those are too many."""
    having = [place for place, one in enumerate(models) if scope in one.pairs]
    own = {place: [_over_levels(models[place], scope, axis) for axis in (0, 1)] for place in having}
    both = [reduce(refined, (own[place][axis] for place in having)) for axis in (0, 1)]
    if both[0].n_buckets * both[1].n_buckets <= N_GROUPS_MAX:
        return both
    return own[max(having, key=lambda place: float(shares[place]))]


def _spread(
    model: PairwiseModel, scope: Scope, axis: int, levels: Mapping[str, Floats], groups: Buckets
) -> Floats:
    """Which part of each group of a model's table lies in each of other groups of its levels."""
    own = _over_levels(model, scope, axis)
    found = np.zeros((own.n_buckets, groups.n_buckets))
    np.add.at(found, (own.labels, groups.labels), levels[scope[axis]])
    even = np.zeros_like(found)
    np.add.at(even, (own.labels, groups.labels), 1.0)
    sums = found.sum(axis=1, keepdims=True)
    return np.asarray(
        np.where(sums > 0, found / np.where(sums > 0, sums, 1.0), even / even.sum(1, keepdims=True))
    )


def _parts(levels: Floats, buckets: Buckets) -> Floats:
    """The share of each level in its bucket; equal ones in a bucket without any."""
    sums = buckets.expanded(buckets.summed(levels, 0))
    even = 1 / np.bincount(buckets.labels)[buckets.labels]
    return np.asarray(np.where(sums > 0, levels / np.where(sums > 0, sums, 1.0), even))
