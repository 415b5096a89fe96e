"""Plans a batch's queries from marginals on common columns: candidates, variances, weights.

How much of a query lies in each interaction of columns; its variance from marginals follows.

Functions of a table's cells fall into orthogonal parts, one for each set of columns: what is said
by these columns together and by no fewer of them. A marginal measured with independent noise says
equally much about every function of such a part (McKenna et al. 2018, "Optimizing error of
high-dimensional statistical queries"; Xiao et al. 2023, "An optimal and scalable matrix mechanism
for noisy marginals"). So with ``w_S`` the weight of the marginal on the columns ``S``, which has
``n_S`` cells, the best linear unbiased estimate of a query ``q`` on the columns ``A`` has the
variance

    sum over R within A of  (|part of q in R|**2 / n_A) / (sum over S around R of w_S**2 / (2 n_S))

Levels that no query of a batch distinguishes are one level, so that all of this is small.

What could be measured for queries on many scopes: marginals on unions of them, and the queries.

Levels that none of the queries distinguishes are one level, a class: a marginal counts every
product of classes of its columns. A query along whose columns coefficients rise like polynomials,
or which has too many products of classes, is not read from marginals.

A candidate is only a block.

A batch in numbers: the variance of each query, and the cost, as functions of blocks' weights.

Two kinds of blocks may be measured: marginals, on the scopes of the queries and on unions of them;
and queries themselves. The estimate of a query from all marginals has a variance in closed form. It
is combined with the estimate from the query's own rows as two independent estimates are. So the
variance is never less than the variance of the best estimate from everything. The two are equal
where only marginals are measured.

The model is numbers only, and knows neither SQL nor budgets.

Weights of marginals and queries that meet all goals of a batch, at little cost.

For a given cost, the weights are sought at which the worst query is closest to its goal; then the
cost at which the worst query just meets it. The shares of the cost are the exponentials of free
numbers, so that nothing is constrained; the maximum over the queries is smoothed, less and less.

The problem is not convex, as noise is Laplace: a marginal's weight counts by its square and is paid
by itself, so weights tend to be large or nothing. Several starts are followed; the best is kept.
Deterministic: the same batch gives the same weights.

Weights are found on a model of the variances, which knows neither the shapes
of laws nor the limits of the estimator. So what the estimator would promise is forecast, the goals
of the model are corrected by the difference, and the weights are found again.

Plans follow from queries, targets, weights and the public schema, never from noisy values.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from accountant.cost import profile_of
from cube.encoding import fingerprint
from cube.grid import Grid
from cube.measurement import UNITS_PER_EPSILON, WEIGHT_UNITS_MAX, PlannedMeasurement, Weight
from cube.pace import checkpoint
from cube.query import Partition, QueryBlock, Scope, counting
from cube.refusals import TooLarge, TooSlow
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference import History, counts_groups
from inference.blue import row_signature
from planner.batch.promise import promised
from planner.measuring import Forecast
from planner.workload import Wanted

Floats = NDArray[np.float64]


def subsets(scope: Scope) -> list[Scope]:
    """Every set of the columns, the smaller ones first."""
    return [chosen for size in range(len(scope) + 1) for chosen in combinations(scope, size)]


def interactions(block: QueryBlock, grid: Grid) -> dict[Scope, Floats]:
    """For each set of the block's columns, ``|part of a row|**2 / n_A`` for every row, (n_rows,).

    Parameters
    ----------
    block : QueryBlock
    grid : Grid
        On the block's columns, its rows constant on each cell.
    """
    coefficient, group = row_signature(grid, block)
    (touched,) = np.nonzero(group >= 0)
    places = np.unravel_index(touched, grid.shape) if grid.axes else ()
    coefficient, group = coefficient[touched], group[touched]
    within: dict[Scope, Floats] = {}
    for chosen in subsets(grid.axes):
        cell, n_cells = group, 1
        for place in (grid.position[name] for name in chosen):
            size = grid.shape[place]
            cell, n_cells = cell * size + places[place], n_cells * size
        cells, where = np.unique(cell, return_inverse=True)
        sums = np.bincount(where, coefficient, cells.size)
        squares = np.bincount(cells // n_cells, np.square(sums), block.n_rows)
        within[chosen] = squares * n_cells / grid.n_cells**2
    return {chosen: _own_part(within, chosen) for chosen in within}


def _own_part(within: dict[Scope, Floats], chosen: Scope) -> Floats:
    """The squared effect of exactly these columns, from the squares of averages."""
    signs = {fewer: (-1.0) ** (len(chosen) - len(fewer)) for fewer in subsets(chosen)}
    found = sum(sign * within[fewer] for fewer, sign in signs.items())
    return np.maximum(found, 0.0)


N_MARGINALS_MAX = 256
N_COLUMNS_MAX = 8  # of a marginal; an interaction of any of them is a part of a query's variance
N_CLASSES_MAX = 4096  # products of classes; as many as the cells of one candidate of a statement
N_LEVELS_MAX = 2**20  # products of levels, which a block of several columns lists


@dataclass(frozen=True, slots=True)
class BlockCandidate:
    """A block that may be bought, and how much of it was.

    Parameters
    ----------
    block : QueryBlock
    place : int, optional
        Of the earlier measurement that would be raised.
    bought : float
        Its weight; 0 if there is none.
    """

    block: QueryBlock
    place: int | None
    bought: float


@dataclass(frozen=True, eq=False)
class MarginalCandidates:
    """The candidates for some queries, and what each query is among them.

    Parameters
    ----------
    grid : Grid
        The classes of all columns of the queries that can be read from marginals.
    scopes : tuple of tuple of str
        The scopes of the marginals.
    blocks : tuple of BlockCandidate
        The marginals, then the queries that are none of them.
    is_read : tuple of bool
        Whether each query can be read from marginals.
    own : tuple of int
        The place among the blocks of each query itself.
    """

    grid: Grid
    scopes: tuple[Scope, ...]
    blocks: tuple[BlockCandidate, ...]
    is_read: tuple[bool, ...]
    own: tuple[int, ...]

    def classes(self, scope: Scope) -> Grid:
        """The products of classes of a scope."""
        return _restricted(self.grid, scope)


def marginal_candidates(
    rows: Sequence[QueryBlock], schema: Schema, history: History
) -> MarginalCandidates:
    """The candidates for queries, given as blocks of whole-number rows."""
    grid = _common_classes(rows, schema)
    is_read = tuple(
        set(row.scope) <= set(grid.axes)
        and _restricted(grid, row.scope).n_cells <= N_CLASSES_MAX
        and _is_on_classes(row, schema)
        for row in rows
    )
    asked = {row.scope for row, known in zip(rows, is_read, strict=True) if known}
    scopes = _scopes(asked, grid, schema)
    blocks = [_marginal(_restricted(grid, scope), rows, history) for scope in scopes]
    places = {fingerprint(block): place for place, block in enumerate(blocks)}
    own = []
    for row in rows:
        own.append(places.setdefault(fingerprint(row), len(blocks)))
        if own[-1] == len(blocks):
            blocks.append(row)
    candidates = tuple(_candidate(block, history) for block in blocks)
    return MarginalCandidates(grid, tuple(scopes), candidates, is_read, tuple(own))


def _common_classes(rows: Sequence[QueryBlock], schema: Schema) -> Grid:
    """The classes that the readable queries distinguish, on the columns of these queries."""
    read = [row for row in rows if _is_on_classes(row, schema)]
    axes = tuple(sorted({name for row in read for name in row.scope}))
    return Grid.undivided(axes, schema.sizes(axes)).refined(read)


def _is_on_classes(row: QueryBlock, schema: Schema) -> bool:
    if len(row.scope) > N_COLUMNS_MAX or schema.n_cells(row.scope) > N_LEVELS_MAX:
        return False
    grid = Grid.undivided(row.scope, schema.sizes(row.scope)).refined([row])
    return grid.n_powers == 1 and grid.n_cells <= N_CLASSES_MAX


def _restricted(grid: Grid, scope: Scope) -> Grid:
    return Grid(scope, tuple(grid.classes[grid.position[name]] for name in scope))


def _scopes(asked: set[Scope], grid: Grid, schema: Schema) -> list[Scope]:
    """The scopes that are asked for, and unions of them that are not too large."""
    found, latest = set(asked), set(asked)
    while latest and len(found) < N_MARGINALS_MAX:
        unions = {tuple(sorted({*a, *b})) for a in latest for b in asked} - found
        sizes = {scope: _restricted(grid, scope).n_cells for scope in unions}
        fitting = [
            scope
            for scope in unions
            if len(scope) <= N_COLUMNS_MAX
            and sizes[scope] <= N_CLASSES_MAX
            and schema.n_cells(scope) <= N_LEVELS_MAX
        ]
        fitting.sort(key=lambda scope: (sizes[scope], scope))
        latest = set(fitting[: N_MARGINALS_MAX - len(found)])
        found |= latest
    return sorted(found, key=lambda scope: (len(scope), scope))


def _marginal(grid: Grid, rows: Sequence[QueryBlock], history: History) -> QueryBlock:
    """The counts of all products of classes, as they are asked for or were bought, if they were."""
    for block in (*rows, *_measured_on(grid.axes, history)):
        if block.scope == grid.axes and _counts_all(block, grid.n_cells):
            return block
    if not grid.axes:
        return QueryBlock(counting())
    classes = np.arange(grid.n_cells, dtype=np.int64).reshape(grid.shape)
    of_level = np.ix_(*(along.of_level for along in grid.classes))
    return QueryBlock(counting(), Partition(grid.axes, classes[of_level]))


def _measured_on(scope: Scope, history: History) -> Iterator[QueryBlock]:
    if scope in history.partition_scopes:
        yield from (one.block for one in history.partitions_on(scope))


def _counts_all(block: QueryBlock, n_cells: int) -> bool:
    """Whether a block counts every product of classes; its groups are unions of them."""
    if not counts_groups(block) or block.n_rows != n_cells:
        return False
    return block.partition is None or block.partition.covers_all


def _candidate(block: QueryBlock, history: History) -> BlockCandidate:
    place = history.raisable(block, is_gaussian=False)
    if place is None:
        return BlockCandidate(block, None, 0.0)
    return BlockCandidate(block, place, float(history[place].laplace_weight.exact))


LEAST = 1e-100  # in place of nothing, under logarithms and fractions; its square is a number


@dataclass(frozen=True, eq=False)
class MarginalModel:
    """The numbers.

    Parameters
    ----------
    parts : (m, n_interactions) ndarray of float64
        What each query has of each interaction; see `interactions`.
    is_read : (m,) ndarray of bool
        Whether marginals say anything of the query at all.
    informed : (n_interactions, n_marginals) ndarray of float64
        What the squared weight of a marginal adds to the precision of an interaction.
    own : (m,) ndarray of int64
        The block that is the query itself; it may be a marginal.
    loads : (n_blocks,) ndarray of float64
        What a unit of a block's weight costs a cell, at most.
    bought : (n_blocks,) ndarray of float64
        The weight that each block has already.
    goals : (m,) ndarray of float64
        The standard deviation that each query may have.
    """

    parts: Floats
    is_read: NDArray[np.bool_]
    informed: Floats
    own: NDArray[np.int64]
    loads: Floats
    bought: Floats
    goals: Floats

    @property
    def n_marginals(self) -> int:
        """The number of blocks that are marginals; they come first."""
        return int(self.informed.shape[1])

    def fitted(self, deviations: Floats, missed: Floats) -> "MarginalModel":
        """The model whose goals are those at which each query would have met its target.

        Parameters
        ----------
        deviations : (m,) ndarray of float64
            The standard deviation of each query by this model.
        missed : (m,) ndarray of float64
            The half-width that was forecast then, relative to the target. A query for which it is
            infinite is not read from marginals, whatever the model says.
        """
        is_lost = ~np.isfinite(missed)
        goals = np.where(is_lost, self.goals, deviations / np.where(is_lost, 1.0, missed))
        return replace(self, goals=goals, is_read=self.is_read & ~is_lost)

    def cost(self, weights: Floats) -> float:
        """What raising every block to its weight adds to any cell, at most."""
        return float((np.maximum(weights - self.bought, 0.0) * self.loads).sum())

    def deviations(self, weights: Floats) -> Floats:
        """The standard deviation of each query, (m,); enormous where nothing is known."""
        precision, _ = self._precision(weights)
        return np.asarray(1.0 / np.sqrt(np.maximum(precision, LEAST)), dtype=np.float64)

    def logs(self, weights: Floats) -> tuple[Floats, Floats]:
        """The logarithm of each query's deviation over its goal, (m,), and its derivatives.

        The derivatives, (m, n_blocks), are by the weights.
        """
        precision, by_square = self._precision(weights)
        precision = np.maximum(precision, LEAST)
        logs = -0.5 * np.log(precision) - np.log(self.goals)
        return logs, -by_square * weights / precision[:, np.newaxis]

    def _precision(self, weights: Floats) -> tuple[Floats, Floats]:
        """One over each query's variance, and its derivatives by the squares of the weights."""
        squares = np.square(weights)
        known = np.maximum(self.informed @ squares[: self.n_marginals], LEAST)
        by_square = np.zeros((self.goals.size, weights.size))
        variance = np.maximum(self.parts @ (1.0 / known), LEAST)
        precision = np.where(self.is_read, 1.0 / variance, 0.0)
        slopes = (self.parts / np.square(known)) @ self.informed
        by_square[:, : self.n_marginals] = np.square(precision)[:, np.newaxis] * slopes
        (rows,) = np.nonzero((self.own >= self.n_marginals) | ~self.is_read)
        blocks = self.own[rows]
        precision[rows] += squares[blocks] / 2
        by_square[rows, blocks] += 0.5
        return precision, by_square


SHARPNESS = (10.0, 100.0, 1000.0, 10_000.0)  # of the smoothed maximum, one after the other
N_STEPS_MAX = 300  # of each descent
N_COSTS_MAX = 12  # that are tried; without a history the second is right
CLOSE = 1e-4  # the worst query is this close to its goal, relative
FADED = (2e-3, 2e-4, 2e-5)  # relative to the largest weight; lighter blocks are not bought ..
MISSED_MAX = 1.02  # .. if the goals are met, or nearly, without them
STEEPEST = 4.0  # the largest power of the missed factor in the guessed change of the cost


def least_weights(model: MarginalModel, starts: Iterable[Floats]) -> Floats:
    """The weights, (n_blocks,), of least cost that were found.

    Parameters
    ----------
    model : MarginalModel
    starts : iterable of (n_blocks,) ndarray of float64
        Positive shares of the cost, one start or more.
    """
    return min((_meeting(model, start) for start in starts), key=model.cost)


def _meeting(model: MarginalModel, start: Floats) -> Floats:
    """Weights at which every goal is met, from one start."""
    logits = np.log(start / start.sum())
    cost = model.cost(model.bought + start / start.sum() / model.loads)
    tried: list[tuple[float, float]] = []
    for _ in range(N_COSTS_MAX):
        checkpoint()
        logits = _closest(model, cost, logits)
        missed = float(model.logs(_at(model, cost, logits))[0].max())
        if abs(missed) <= CLOSE:
            break
        tried.append((math.log(cost), missed))
        cost *= math.exp(min(max(_correction(tried), -STEEPEST), STEEPEST))
    return _cleared(model, _at(model, cost, logits))


def _correction(tried: list[tuple[float, float]]) -> float:
    """The change of the cost's logarithm that should meet the goals: by the last two costs."""
    cost, missed = tried[-1]
    slope = 1.0  # without a history, the deviations fall as the cost grows
    if len(tried) > 1 and tried[-2][0] != cost:
        slope = (tried[-2][1] - missed) / (cost - tried[-2][0])
    return missed / min(max(slope, 1 / STEEPEST), STEEPEST)


def _closest(model: MarginalModel, cost: float, logits: Floats) -> Floats:
    """The shares of a cost at which the worst query is closest to its goal."""
    for sharpness in SHARPNESS:
        from scipy.optimize import minimize  # noqa: PLC0415 - a tenth of a second of every start

        found = minimize(
            _smoothed,
            logits,
            args=(model, cost, sharpness),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": N_STEPS_MAX, "maxcor": 30},
        )
        logits = np.asarray(found.x, dtype=np.float64)
    return logits


def _smoothed(
    logits: Floats, model: MarginalModel, cost: float, sharpness: float
) -> tuple[float, Floats]:
    """The smoothed maximum of the logarithms, and its gradient by the logits."""
    weights = _at(model, cost, logits)
    logs, slopes = model.logs(weights)
    value = float(logsumexp(sharpness * logs))
    by_weight = np.exp(sharpness * logs - value) @ slopes
    by_share = by_weight * (weights - model.bought)
    share = (weights - model.bought) * model.loads / cost
    return value / sharpness, by_share - share * by_share.sum()


def _at(model: MarginalModel, cost: float, logits: Floats) -> Floats:
    """The weights when a cost is shared like this."""
    shares = np.exp(logits - logsumexp(logits))
    return np.asarray(model.bought + cost * shares / model.loads, dtype=np.float64)


def _cleared(model: MarginalModel, weights: Floats) -> Floats:
    """The weights without blocks that hardly matter, the others raised to meet the goals again."""
    for share in FADED:
        kept = np.where(weights > share * weights.max(), weights, model.bought)
        missed = float((model.deviations(kept) / model.goals).max())
        if missed <= MISSED_MAX:
            added = (kept - model.bought) * max(1.0, missed)
            return np.asarray(model.bought + added, dtype=np.float64)
    return weights


N_FITS_MAX = 5  # of the model to the forecast; it settles in three or four
FITTED = 1e-3  # relative; the worst query is this close to its target
UNIONS = (0.01, 0.3)  # the shares of unions in the starts, relative to the queries' scopes
DUST = 1e-9  # of a query's square; less of an interaction is rounding
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
        The half-widths from the present history.

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
        raise ValueError("no query is given to plan for")
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
