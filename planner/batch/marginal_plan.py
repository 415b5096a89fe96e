"""A batch's queries from marginals on common columns, or from rows of their own if that is cheaper.

Weights are found on a model of the variances (`marginal_model.py`), which knows neither the shapes
of laws nor the limits of the estimator. So what the estimator would promise is forecast, the goals
of the model are corrected by the difference, and the weights are found again.

Plans follow from queries, targets, weights and the public schema, never from noisy values.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from accountant.cost.row_cost import profile_of
from cube.measurement import UNITS_PER_EPSILON, WEIGHT_UNITS_MAX, PlannedMeasurement, Weight
from cube.pace import checkpoint
from cube.query import QueryBlock, Scope
from cube.refusals import TooLarge, TooSlow
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.batch.interactions import interactions, subsets
from planner.batch.marginal_candidates import MarginalCandidates, marginal_candidates
from planner.batch.marginal_model import MarginalModel
from planner.batch.marginal_weights import least_weights
from planner.batch.promise import promised
from planner.measuring.forecast import Forecast
from planner.workload import Wanted

N_FITS_MAX = 5  # of the model to the forecast; it settles in three or four
FITTED = 1e-3  # relative; the worst query is this close to its target
UNIONS = (0.01, 0.3)  # the shares of unions in the starts, relative to the queries' scopes
DUST = 1e-9  # of a query's square; less of an interaction is rounding

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


def planned_on_marginals(
    wanted: Sequence[Wanted], schema: Schema, forecast: Forecast
) -> tuple[PlannedMeasurement, ...]:
    """A plan for all of `wanted` together; it may miss some targets a little.

    When time runs out, it is the best found by then.

    Parameters
    ----------
    wanted : sequence of Wanted
        Queries that need something beyond the history; none is constant.
    schema : Schema
    forecast : Forecast
        Of the present history.

    Raises
    ------
    TooSlow
        If time runs out before there is a plan.
    """
    best: _Fit | None = None
    try:
        for fit in _fits(wanted, schema, forecast):
            best = fit if best is None else min(best, fit, key=lambda one: one.needed)
    except TooSlow:
        if best is None:
            raise
    if best is None:
        raise ValueError("nothing is wanted")
    return best.order(best.plan)


def _fits(wanted: Sequence[Wanted], schema: Schema, forecast: Forecast) -> Iterator["_Fit"]:
    """Plans, each by a model that is fitted to what was forecast of the one before."""
    rows = [one.block.primitive[0] for one in wanted]
    candidates = marginal_candidates(rows, schema, forecast.estimator.history)
    model, query_of = _model(wanted, rows, candidates)
    starts, orders = list(_starts(rows, candidates)), list(_Order)
    for _ in range(N_FITS_MAX):
        weights = least_weights(model, starts)
        plan, cost = _purchases(candidates, weights, forecast), model.cost(weights)
        tried = [
            _Fit(order, plan, cost, _missed(order(plan), wanted, forecast)) for order in orders
        ]
        fit = min(tried, key=lambda one: one.needed)
        yield fit
        if abs(float(fit.missed.max()) - 1) <= FITTED:
            return
        model = model.fitted(model.deviations(weights), fit.missed[query_of])
        paid = (weights - model.bought) * model.loads
        starts, orders = [np.maximum(paid, paid.max() * UNIONS[0] / len(paid))], [fit.order]


class _Order(Enum):
    """The order of purchases: what the estimator combines, within its limits, depends on it."""

    AS_NAMED = 0
    SMALLEST_FIRST = 1
    LARGEST_FIRST = -1

    def __call__(self, plan: Sequence[PlannedMeasurement]) -> tuple[PlannedMeasurement, ...]:
        return tuple(sorted(plan, key=lambda one: self.value * one.block.n_rows))


@dataclass(frozen=True, eq=False)
class _Fit:
    """A plan, what it costs by the model, and each query's half-width relative to its target."""

    order: _Order
    plan: tuple[PlannedMeasurement, ...]
    cost: float
    missed: Floats

    @property
    def needed(self) -> float:
        """What the plan costs once all of it is raised to the targets, or nearly."""
        return self.cost * float(self.missed.max())


def _missed(
    plan: Sequence[PlannedMeasurement], wanted: Sequence[Wanted], forecast: Forecast
) -> Floats:
    widths = np.array(promised(plan, wanted, forecast))
    wanted_widths = np.array([one.target.half_width for one in wanted])
    return np.asarray(widths / wanted_widths, dtype=np.float64)


def _model(
    wanted: Sequence[Wanted], rows: Sequence[QueryBlock], candidates: MarginalCandidates
) -> tuple[MarginalModel, Places]:
    """The batch in numbers, with a line for each kind of row, and the query of each line."""
    read = {row.scope for row, known in zip(rows, candidates.is_read, strict=True) if known}
    known = sorted({chosen for scope in read for chosen in subsets(scope)})
    places = {chosen: place for place, chosen in enumerate(known)}
    parts: list[Floats] = []
    query_of: list[int] = []
    for query, row in enumerate(rows):
        checkpoint()
        is_read = candidates.is_read[query]
        lines = _lines(row, candidates, places) if is_read else np.zeros((1, len(places)))
        parts.append(lines)
        query_of += [query] * len(lines)
    model = MarginalModel(
        parts=np.concatenate(parts),
        is_read=np.array([candidates.is_read[query] for query in query_of], dtype=np.bool_),
        informed=_informed(candidates, places),
        own=np.array([candidates.own[query] for query in query_of], dtype=np.int64),
        loads=np.array([float(profile_of(one.block).bound) for one in candidates.blocks]),
        bought=np.array([one.bought for one in candidates.blocks]),
        goals=np.array([_goal(wanted[query]) for query in query_of]),
    )
    return model, np.array(query_of, dtype=np.int64)


def _lines(row: QueryBlock, candidates: MarginalCandidates, places: dict[Scope, int]) -> Floats:
    """What the rows of a block have of each interaction, every kind of row once."""
    found = interactions(row, candidates.classes(row.scope))
    lines = np.zeros((row.n_rows, len(places)))
    for chosen, squares in found.items():
        lines[:, places[chosen]] = squares
    lines[lines < DUST * lines.sum(axis=1, keepdims=True)] = 0.0
    _, first = np.unique(lines.astype(np.float32), axis=0, return_index=True)
    return lines[first]


def _informed(candidates: MarginalCandidates, places: dict[Scope, int]) -> Floats:
    informed = np.zeros((len(places), len(candidates.scopes)))
    for marginal, scope in enumerate(candidates.scopes):
        of_scope = [places[chosen] for chosen in subsets(scope) if chosen in places]
        informed[of_scope, marginal] = 1 / (2 * candidates.classes(scope).n_cells)
    return informed


def _goal(one: Wanted) -> float:
    """The deviation at which one Laplace variable would meet the target."""
    _, multiplier = one.block.primitive
    return _deviation(one.target) / abs(float(multiplier))


def _deviation(target: AccuracyTarget) -> float:
    return math.sqrt(2) * target.half_width / -math.log1p(-target.confidence)


def _starts(rows: Sequence[QueryBlock], candidates: MarginalCandidates) -> Iterator[Floats]:
    """Shares to begin with: the queries' scopes and rows, and more or less of all other scopes."""
    asked = {row.scope for row in rows}
    n_own = len(candidates.blocks) - len(candidates.scopes)
    is_asked = np.array([scope in asked for scope in candidates.scopes] + [True] * n_own)
    for share in UNIONS:
        yield np.where(is_asked, 1.0, share)


def _purchases(
    candidates: MarginalCandidates, weights: Floats, forecast: Forecast
) -> tuple[PlannedMeasurement, ...]:
    """The blocks that get a larger weight than they have."""
    planned = []
    for candidate, found in zip(candidates.blocks, weights, strict=True):
        if found <= candidate.bought:
            continue
        units = min(math.ceil(found * UNITS_PER_EPSILON), WEIGHT_UNITS_MAX)
        raised = PlannedMeasurement(candidate.block, Weight(units), candidate.place)
        try:
            forecast.foreseen(raised)
        except TooLarge:  # its lattice is too coarse for a weight this large
            raised = PlannedMeasurement(candidate.block, Weight(units))
        planned.append(raised)
    return tuple(planned)
