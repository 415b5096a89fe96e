"""A table made for learning a target: one model for each of the target's levels.

The rows of one class and those of another are disjoint, so a budget pays for the tables of every
class alike, and each class has the relations of its columns measured in full. What distinguishes
the classes, which is what a learner looks for, is then in every table, not only in those of the
pairs with the target.

A stratified model as plain JSON values, and back; see `synthesis.model`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cube.query import N_FACTOR_CELLS_MAX
from synthesis.choice import LAPLACE, NoiseCost
from synthesis.drawing import controlled_counts, draw_rows
from synthesis.known import KnownEstimates, Stratum
from synthesis.model import PairwiseModel, model_json, model_of
from synthesis.pairwise import TableMeasurer, Wishes, buy_tables, known_model, known_sketch
from synthesis.tables import Column, Floats, Integers, TableEstimate

N_STRATA_MAX: Final = 10  # with more, classes are too small for tables of their own
VARIANCE_OF_SQUARE: Final = 5.0  # of Laplace noise, over the square of its mean
TOGETHER_MIN: Final = 1.5  # standard deviations: noise alone is above it once in 15, about
ALONE_MIN: Final = 4.0  # of a single column; there may be dozens
N_GROUPS_COMPARED: Final = 6  # of a column's levels
TINY: Final = 1e-6  # the least share of a class, so that no estimate has the variance 0
SCORE_SHARE: Final = 0.1  # of the budget: about what the rule for a whole table comes to


@dataclass(frozen=True, eq=False)
class StratifiedModel:
    """A model for each combination of the target's levels.

    Parameters
    ----------
    columns : tuple of Column
        All columns, in order.
    target : tuple of str
        The columns by whose levels the rows are divided.
    models : mapping of tuple of int to PairwiseModel
        Models of the other columns, by the target's levels in the order of `target`.
    """

    columns: tuple[Column, ...]
    target: tuple[str, ...]
    models: Mapping[tuple[int, ...], PairwiseModel]

    def __post_init__(self) -> None:
        sizes = {column.name: column.size for column in self.columns}
        if not self.target or not sizes.keys() >= set(self.target):
            raise ValueError(f"the target {self.target} is not one of the columns")
        if set(self.models) != set(product(*(range(sizes[name]) for name in self.target))):
            raise ValueError("each class of the target needs one model")
        others = tuple(one for one in self.columns if one.name not in self.target)
        if any(model.columns != others for model in self.models.values()):
            raise ValueError("each model must cover exactly the columns other than the target")

    @property
    def total(self) -> float:
        """The estimated number of rows."""
        return sum(model.total for model in self.models.values())


def strata_of(columns: Sequence[Column], target: Sequence[str]) -> tuple[Stratum, ...]:
    """The classes of a target: empty if they are too many for a model each.

    Parameters
    ----------
    columns : sequence of Column
    target : sequence of str
    """
    sizes = {column.name: column.size for column in columns}
    others = len(columns) - len(target)
    if not target or not others or prod(sizes[name] for name in target) > N_STRATA_MAX:
        return ()
    return tuple(
        tuple(zip(target, levels, strict=True))
        for levels in product(*(range(sizes[name]) for name in target))
    )


def measured_strata(
    columns: Sequence[Column],
    measurers: Mapping[Stratum, TableMeasurer],
    *,
    budget: float,
    wishes: Wishes,
    cost: NoiseCost = LAPLACE,
) -> StratifiedModel:
    """Buy a model for each class; each may cost the whole budget, since their rows are disjoint.

    Parameters
    ----------
    columns : sequence of Column
    measurers : mapping of Stratum to TableMeasurer
        The measurer of the rows of each class of the target.
    budget : float
        The budget of each class.
    wishes : Wishes
    cost : NoiseCost

    Notes
    -----
    All classes spend the same on scores, so that where scores cost every row alike
    (`proxy.synthetic_tables.spending`) each class can pay its part of them.
    """
    wishes = replace(
        wishes,
        n_cells_max=N_FACTOR_CELLS_MAX // len(measurers),
        score_budget=SCORE_SHARE * budget,
    )
    others = _others(columns, measurers)
    for measurer in measurers.values():
        buy_tables(others, measurer, budget=budget, wishes=wishes, cost=cost)
    return _stratified(columns, measurers)


def known_strata(
    columns: Sequence[Column], measurers: Mapping[Stratum, TableMeasurer]
) -> StratifiedModel | None:
    """The model that is known of all classes; None if a column of a class is not known."""
    others = _others(columns, measurers)
    if any(known_sketch(others, one.known()).unknown for one in measurers.values()):
        return None
    return _stratified(columns, measurers)


def without_noise_between(
    columns: Sequence[Column], known: Sequence[KnownEstimates]
) -> list[KnownEstimates]:
    """What is known of each class; where noise hides all that tells classes apart, one law.

    Parameters
    ----------
    columns : sequence of Column
        All columns except the target's.
    known : sequence of KnownEstimates
        Of each class.

    Notes
    -----
    Each column is compared between classes, in a few groups of its levels, because noise has more
    in many small cells than classes differ by there. If all columns together differ by no more than
    noise shows (`hides_all`), and no pair was worth a table, each class gets the law of all classes
    together. Rows are then independent of the target, whose own law they keep: a learner finds
    nothing in them, where it would have learned noise.
    """
    sketches = [known_sketch(columns, one) for one in known]
    totals = np.array([one.total for one in sketches])
    names = [one.name for one in columns]
    is_by_itself = all(
        not own.grouped
        and all(len(table.scope) == 1 for table in own.tables)
        and set(names) <= set(sketch.one_ways)
        for own, sketch in zip(known, sketches, strict=True)
    )
    if not is_by_itself or not totals.sum() > 0:
        return list(known)
    shares = totals / totals.sum()
    compared = [ClassTables.of([one.one_ways[name] for one in sketches], shares) for name in names]
    groups = [
        compared_groups(one.mean.sum(axis=0), column)
        for one, column in zip(compared, columns, strict=True)
    ]
    if not hides_all([one.merged(own) for one, own in zip(compared, groups, strict=True)]):
        return list(known)
    pooled = list(zip(*(one.pooled() for one in compared), strict=True))
    return [
        replace(
            one,
            tables=tuple(
                TableEstimate((name,), values, variance)
                for name, (values, variance) in zip(names, own, strict=True)
            ),
        )
        for one, own in zip(known, pooled, strict=True)
    ]


def compared_groups(counts: Floats, column: Column) -> Integers:
    """The group of every level of a column: a few groups, of about as many rows each.

    Parameters
    ----------
    counts : (size,) ndarray of float64
        Of all classes together; noisy.
    column : Column
        Of its ordered levels, neighbours are together; of others, those after the most frequent.
    """
    if column.size <= N_GROUPS_COMPARED:
        return np.arange(column.size)
    positive = np.maximum(counts, 0.0)
    if column.n_ordered <= N_GROUPS_COMPARED:
        groups = np.empty(column.size, dtype=np.int64)
        order = np.argsort(-positive, kind="stable")
        groups[order] = np.minimum(np.arange(column.size), N_GROUPS_COMPARED - 1)
        return groups
    before = np.cumsum(positive) - positive
    groups = np.floor(before * N_GROUPS_COMPARED / max(float(positive.sum()), TINY))
    return np.minimum(groups, N_GROUPS_COMPARED - 1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ClassTables:
    """One column's counts in each class, beside those of all classes together.

    Parameters
    ----------
    values, variances : (n_classes, n_levels) ndarray of float64
    shares : (n_classes,) ndarray of float64
        The share of each class among all rows, with sum 1.
    """

    values: Floats
    variances: Floats
    shares: Floats

    @classmethod
    def of(cls, tables: Sequence[TableEstimate], shares: Floats) -> "ClassTables":
        """From the estimate of each class."""
        return cls(
            np.stack([one.values for one in tables]),
            np.stack([one.variance for one in tables]),
            shares,
        )

    def merged(self, groups: Integers) -> "ClassTables":
        """The counts of groups of levels, which are numbered from 0."""
        is_in = np.eye(int(groups.max()) + 1)[groups]
        is_in = is_in[:, is_in.any(axis=0)]
        return ClassTables(self.values @ is_in, self.variances @ is_in, self.shares)

    @property
    def mean(self) -> Floats:
        """What each class would have if the column were independent of the class.

        The best fit of one law to all classes: a class tells the more, the larger it is.
        """
        weights = self.shares[:, np.newaxis] / self.variances
        of_all = (weights * self.values).sum(axis=0) / self._precision
        return np.asarray(self.shares[:, np.newaxis] * of_all)

    @property
    def _precision(self) -> Floats:
        """One over the variance of the counts of all classes together, (n_levels,)."""
        return np.asarray((self.shares[:, np.newaxis] ** 2 / self.variances).sum(axis=0))

    @property
    def shown(self) -> float:
        """The squared distance from that, each cell in units of its noise."""
        return float((np.square(self.values - self.mean) / self.variances).sum())

    @property
    def expected(self) -> int:
        """What noise alone adds to it on average: 1 for each cell that is not fitted."""
        return (len(self.shares) - 1) * int(self.values.shape[1])

    @property
    def spread(self) -> float:
        """The standard deviation from noise alone: squares of Laplace noise vary most."""
        return math.sqrt(VARIANCE_OF_SQUARE * self.expected)

    def pooled(self) -> list[tuple[Floats, Floats]]:
        """The counts of each class by the law of all classes, and their variances."""
        variances = np.maximum(self.shares, TINY)[:, np.newaxis] ** 2 / self._precision
        return list(zip(self.mean, variances, strict=True))


def hides_all(columns: Sequence[ClassTables]) -> bool:
    """Whether noise alone would tell classes apart as much as all columns do.

    It does unless all columns together, or one of them, differ by more than noise varies: by
    `TOGETHER_MIN` or `ALONE_MIN` deviations of noise alone.
    """
    if not columns:
        return False
    excess = np.array([one.shown - one.expected for one in columns])
    spread = np.array([one.spread for one in columns])
    together = float(excess.sum() / np.sqrt(np.square(spread).sum()))
    return together <= TOGETHER_MIN and float((excess / spread).max()) <= ALONE_MIN


def draw_stratified_rows(
    model: StratifiedModel, rng: np.random.Generator, *, n_rows: int | None = None
) -> NDArray[np.int32]:
    """Draw rows of every class, in random order; see `synthesis.drawing.draw_rows`."""
    n_rows = round(model.total) if n_rows is None else n_rows
    totals = np.array([one.total for one in model.models.values()])
    shares = totals / totals.sum() if totals.sum() > 0 else np.full(totals.size, 1 / totals.size)
    n_of_class = controlled_counts(shares[np.newaxis], np.array([n_rows]), rng)[0]
    drawn = [
        _with_target(model, levels, draw_rows(one, rng, n_rows=n_of_one))
        for (levels, one), n_of_one in zip(model.models.items(), n_of_class.tolist(), strict=True)
    ]
    return rng.permutation(np.concatenate(drawn))


def _with_target(
    model: StratifiedModel, levels: tuple[int, ...], rows: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Rows of one class, with the target's columns in their places."""
    of_target = dict(zip(model.target, levels, strict=True))
    drawn = iter(rows.T)
    columns = [
        np.full(len(rows), of_target[one.name], dtype=np.int32)
        if one.name in of_target
        else next(drawn)
        for one in model.columns
    ]
    return np.stack(columns, axis=1)


def _stratified(
    columns: Sequence[Column], measurers: Mapping[Stratum, TableMeasurer]
) -> StratifiedModel:
    others = _others(columns, measurers)
    target = tuple(name for name, _ in next(iter(measurers)))
    known = without_noise_between(others, [one.known() for one in measurers.values()])
    models = {
        tuple(level for _, level in stratum): known_model(others, own)
        for stratum, own in zip(measurers, known, strict=True)
    }
    return StratifiedModel(tuple(columns), target, models)


def _others(
    columns: Sequence[Column], measurers: Mapping[Stratum, TableMeasurer]
) -> tuple[Column, ...]:
    target = {name for name, _ in next(iter(measurers))}
    return tuple(column for column in columns if column.name not in target)


def scopes_of(model: StratifiedModel) -> Iterator[tuple[str, ...]]:
    """The columns of every table that the models rest on, the target's among them."""
    found = {
        tuple(sorted((*model.target, *scope)))
        for one in model.models.values()
        for scope in (*one.pairs, *((column.name,) for column in one.columns))
    }
    yield from sorted(found)


KIND: Final = "strata"


def strata_json(model: StratifiedModel) -> dict[str, Any]:
    """A model as JSON values."""
    return {
        "kind": KIND,
        "total": model.total,
        "columns": [
            {"name": one.name, "size": one.size, "n_ordered": one.n_ordered}
            for one in model.columns
        ],
        "target": list(model.target),
        "models": [
            {"levels": list(levels), "model": model_json(one)}
            for levels, one in model.models.items()
        ],
    }


def strata_model_of(encoded: dict[str, Any]) -> StratifiedModel:
    """The model that `strata_json` wrote.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the values are not such a model.
    """
    if encoded["kind"] != KIND:
        raise ValueError(f"the kind of model {encoded['kind']!r} is unknown here")
    return StratifiedModel(
        columns=tuple(
            Column(one["name"], one["size"], one["n_ordered"]) for one in encoded["columns"]
        ),
        target=tuple(encoded["target"]),
        models={tuple(one["levels"]): model_of(one["model"]) for one in encoded["models"]},
    )
