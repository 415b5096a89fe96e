"""A table made for learning a target: one model for each of the target's levels.

The rows of one class and those of another are disjoint, so a budget pays for the tables of every
class alike, and each class has the relations of its columns measured in full. What distinguishes
the classes, which is what a learner looks for, is then in every table, not only in those of the
pairs with the target.

A stratified model as plain JSON values, and back; see `synthesis.model`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cube.query import N_FACTOR_CELLS_MAX
from synthesis.choice import LAPLACE, NoiseCost
from synthesis.drawing import controlled_counts, draw_rows
from synthesis.known import Stratum
from synthesis.model import PairwiseModel, model_json, model_of
from synthesis.pairwise import TableMeasurer, Wishes, known_model, known_sketch, measured_model
from synthesis.tables import Column

N_STRATA_MAX: Final = 10  # with more, classes are too small for tables of their own
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
    return _stratified(
        columns,
        measurers,
        lambda others, measurer: measured_model(
            others, measurer, budget=budget, wishes=wishes, cost=cost
        ),
    )


def known_strata(
    columns: Sequence[Column], measurers: Mapping[Stratum, TableMeasurer]
) -> StratifiedModel | None:
    """The model that is known of all classes; None if a column of a class is not known."""
    others = _others(columns, measurers)
    if any(known_sketch(others, one.known()).unknown for one in measurers.values()):
        return None
    return _stratified(columns, measurers, lambda _, one: known_model(others, one.known()))


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
    columns: Sequence[Column],
    measurers: Mapping[Stratum, TableMeasurer],
    model_of: Callable[[Sequence[Column], TableMeasurer], PairwiseModel],
) -> StratifiedModel:
    others = _others(columns, measurers)
    target = tuple(name for name, _ in next(iter(measurers)))
    models = {
        tuple(level for _, level in stratum): model_of(others, measurer)
        for stratum, measurer in measurers.items()
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
