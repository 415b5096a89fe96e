"""A declared batch of queries on few columns: the weight of every row, to meet all targets cheaply.

    plan = plan_batch(queries, schema, gate.measurements())
    gate.measure(plan.measurements, ...)

It is one of the ways in which a batch is planned (`together.py`). Queries are written on their
common atoms, together with the measurements of the history on the same columns, which are paid for
already. Where a batch has too many columns for that, the queries of each set of columns are planned
separately; where even that is too large, each query is bought as it is asked. Each part gets its
share of the time that is left; its plan is the best that was found by then.

The plan depends on queries, targets, weights and the public schema, never on noisy values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from accountant.noise.lattice_noise import may_be_clamped
from cube.encoding import fingerprint
from cube.measurement import (
    UNITS_PER_EPSILON,
    WEIGHT_UNITS_MAX,
    Measurement,
    PlannedMeasurement,
    Weight,
)
from cube.pace import seconds_left, within
from cube.query import N_FACTOR_CELLS_MAX, QueryBlock, Scope
from cube.refusals import InvalidTarget
from cube.schema import Schema
from inference.blue.atoms import Atoms
from planner.batch.candidate_rows import (
    CandidateRows,
    EarlierMeasurement,
    candidate_rows,
    purchases,
)
from planner.batch.search import cheapest
from planner.batch.weights import Solution, WeightProblem
from planner.measuring.weights import weight_for
from planner.workload import Wanted

N_ROWS_MAX = 2000  # of queries planned together; certifying takes a millisecond a row
SECONDS_MAX = 60.0  # for a batch, where its caller sets no time
N_ATOMS_MAX = 2000  # the work grows with the cube of this number
N_HISTORY_ROWS_MAX = (
    1000  # the plan builds on the most precise; the others still narrow the answers
)
SAME = 1e-10  # relative; a difference between weights that is only rounding
RAISABLE = Fraction(1, 2**10)  # of the planned weights; buying a lighter row again is cheaper


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """What to buy for a batch, and what that promises.

    Parameters
    ----------
    measurements : tuple of PlannedMeasurement
        Empty if the history suffices.
    half_widths : tuple of (tuple of float)
        For each query, the half-width of each of its rows, at its target's confidence.
    epsilon : float
        What the plan adds to the largest cost of a cell, computed from the part of the history
        that it builds on. What is charged is the gate's price.
    """

    measurements: tuple[PlannedMeasurement, ...]
    half_widths: tuple[tuple[float, ...], ...]
    epsilon: float


def plan_batch(
    queries: Sequence[Wanted], schema: Schema, history: Sequence[Measurement] = ()
) -> BatchPlan:
    """The cheapest plan found for all of `queries` together.

    Parameters
    ----------
    queries : sequence of Wanted
    schema : Schema
    history : sequence of Measurement
        In the order of purchase, as the gate returns them.

    Raises
    ------
    InvalidTarget
        If a target asks for practically no noise.
    """
    for query in queries:
        if not query.block.query.is_constant:
            weight_for(query.target, query.block.primitive[1])  # raises if it cannot be met
    asked = [place for place, query in enumerate(queries) if not query.block.query.is_constant]
    half_widths = [(0.0,) * query.block.n_rows for query in queries]
    measurements: list[PlannedMeasurement] = []
    epsilon = 0.0
    parts = _planned_together([queries[place].block for place in asked], schema)
    for number, places in enumerate(parts):
        chosen = [asked[place] for place in places]
        with within(seconds_left(SECONDS_MAX) / (len(parts) - number)):
            part = _planned([queries[place] for place in chosen], schema, history)
        for place, known in zip(chosen, part.half_widths, strict=True):
            half_widths[place] = known
        measurements += part.measurements
        epsilon += part.epsilon
    return BatchPlan(_without_repeats(measurements), tuple(half_widths), epsilon)


def _planned_together(blocks: Sequence[QueryBlock], schema: Schema) -> list[list[int]]:
    """The places of the queries that are planned together on common cells."""
    everything = tuple(sorted({name for block in blocks for name in block.scope}))
    if blocks and schema.n_cells(everything) <= N_FACTOR_CELLS_MAX:
        rows = [block.primitive[0] for block in blocks]
        atoms = Atoms.undivided(everything, schema.sizes(everything))
        if atoms.refined(rows, N_ATOMS_MAX) is not None:
            return [list(range(len(blocks)))]
    alike: dict[Scope, list[int]] = {}
    for place, block in enumerate(blocks):
        alike.setdefault(block.scope, []).append(place)
    return list(alike.values())


def _planned(
    queries: Sequence[Wanted], schema: Schema, history: Sequence[Measurement]
) -> BatchPlan:
    if sum(query.block.n_rows for query in queries) > N_ROWS_MAX:
        return _bought_alone(queries)
    scope = tuple(sorted({name for query in queries for name in query.block.scope}))
    blocks = [query.block.primitive[0] for query in queries]
    bought = _relevant(history, scope, max(_alone(query) for query in queries))
    sizes = schema.sizes(scope)
    known = [one.measurement.block for one in bought]
    refined = Atoms.undivided(scope, sizes).refined([*known, *blocks])
    if refined is None or refined[0].n_atoms > N_ATOMS_MAX:
        return _bought_alone(queries)
    atoms, _, rows = refined
    ends = np.cumsum([block.n_rows for block in [*known, *blocks]])[:-1]
    on_atoms = np.split(rows, ends)
    history_rows, query_rows = on_atoms[: len(known)], on_atoms[len(known) :]
    # An atom of a power is no set of cells that could be counted.
    with_cells = bool(scope) and schema.n_cells(scope) <= N_FACTOR_CELLS_MAX
    with_cells = with_cells and atoms.grid.n_powers == 1
    candidates = candidate_rows(history_rows, query_rows, atoms.n_atoms, with_cells=with_cells)
    problem, positions = _problem(queries, query_rows, candidates, bought)
    if problem is None:
        return BatchPlan((), tuple((0.0,) * query.block.n_rows for query in queries), 0.0)
    solution = cheapest(problem, candidates)
    if solution is None:
        raise RuntimeError("queries that are among the candidates are not determined")
    planned = purchases(candidates, _weights(problem, solution), atoms, bought, blocks)
    return BatchPlan(
        measurements=planned,
        half_widths=_promised(queries, positions, solution),
        epsilon=max(0.0, solution.cost - float(problem.paid.max())),
    )


def _alone(query: Wanted) -> Weight:
    return weight_for(query.target, query.block.primitive[1])


def _bought_alone(queries: Sequence[Wanted]) -> BatchPlan:
    """Every query bought as it is asked, at the weight that it needs without a history."""
    planned = tuple(
        PlannedMeasurement(query.block.primitive[0], _alone(query)) for query in queries
    )
    return BatchPlan(
        measurements=planned,
        half_widths=tuple((query.target.half_width,) * query.block.n_rows for query in queries),
        epsilon=sum(float(_alone(query).exact) for query in queries),
    )


def _relevant(
    history: Sequence[Measurement], scope: Scope, heaviest: Weight
) -> tuple[EarlierMeasurement, ...]:
    """The measurements on these columns that no later one replaces, the most precise first."""
    replaced = {one.supersedes for one in history}
    within = set(scope)
    places = [
        place
        for place, one in enumerate(history)
        if place not in replaced and within.issuperset(one.block.scope)
    ]
    found: list[EarlierMeasurement] = []
    n_rows = 0
    for place in sorted(places, key=lambda place: history[place].noise_scale):
        one = history[place]
        n_rows += one.block.n_rows
        if n_rows > N_HISTORY_ROWS_MAX:
            break
        found.append(EarlierMeasurement(one, place, _may_be_raised(one, heaviest)))
    return tuple(found)


def _may_be_raised(one: Measurement, heaviest: Weight) -> bool:
    if one.is_gaussian or may_be_clamped(one):
        return False
    return one.laplace_weight.exact >= heaviest.exact * RAISABLE


def _problem(
    queries: Sequence[Wanted],
    query_rows: Sequence[NDArray[np.float64]],
    candidates: CandidateRows,
    bought: Sequence[EarlierMeasurement],
) -> tuple[WeightProblem | None, list[list[int | None]]]:
    """The problem in numbers, and the places in it of each query's rows (None: always 0)."""
    places: dict[tuple[bytes, float, float], int] = {}
    distinct: list[tuple[NDArray[np.float64], float, float]] = []
    positions: list[list[int | None]] = []
    for query, rows in zip(queries, query_rows, strict=True):
        multiplier = abs(float(query.block.primitive[1]))
        half_width, confidence = query.target.half_width / multiplier, query.target.confidence
        positions.append([])
        for row in rows:
            if not row.any():
                positions[-1].append(None)
                continue
            place = places.setdefault((row.tobytes(), half_width, confidence), len(distinct))
            if place == len(distinct):
                distinct.append((row, half_width, confidence))
            positions[-1].append(place)
    if not distinct:
        return None, positions
    sources = [origin.source if origin.kind == "history" else -1 for origin in candidates.origins]
    earlier = [bought[source] if source >= 0 else None for source in sources]
    # Weights from the noise scale that was drawn; rounding never makes it less than 1 / weight.
    weights = np.array([0.0 if one is None else 1 / one.measurement.noise_scale for one in earlier])
    steps = [0.0 if one is None else one.measurement.lattice_step for one in earlier]
    n_sources = len(bought)
    return WeightProblem(
        rows=candidates.rows,
        bought=weights,
        is_fixed=np.array([one is not None and not one.may_be_raised for one in earlier]),
        lattice_steps=np.array(steps),
        ties=np.array([s if s >= 0 else n_sources + k for k, s in enumerate(sources)]),
        queries=np.array([row for row, _, _ in distinct]),
        half_widths=np.array([half_width for _, half_width, _ in distinct]),
        confidences=np.array([confidence for _, _, confidence in distinct]),
        paid=weights @ np.abs(candidates.rows),
    ), positions


def _weights(problem: WeightProblem, solution: Solution) -> dict[int, Weight]:
    """The weights of the rows that are bought or raised, rounded up to the grid."""
    found = {}
    for place in np.flatnonzero(solution.weights > problem.bought * (1 + SAME)):
        weight = float(solution.weights[place])
        if weight * UNITS_PER_EPSILON >= WEIGHT_UNITS_MAX:
            raise InvalidTarget(
                "Together, the batch asks for practically no noise.",
                hint="Ask for wider intervals.",
            )
        found[int(place)] = Weight.at_least(weight)
    return found


def _promised(
    queries: Sequence[Wanted], positions: Sequence[Sequence[int | None]], solution: Solution
) -> tuple[tuple[float, ...], ...]:
    return tuple(
        tuple(
            0.0
            if place is None
            else float(solution.half_widths[place]) * abs(float(query.block.primitive[1]))
            for place in rows
        )
        for query, rows in zip(queries, positions, strict=True)
    )


def _without_repeats(planned: Sequence[PlannedMeasurement]) -> tuple[PlannedMeasurement, ...]:
    """The heavier of two measurements of the same block: parts of a batch may plan it twice."""
    best: dict[tuple[str, int | None], PlannedMeasurement] = {}
    for one in planned:
        name = (fingerprint(one.block), one.raised_from)
        if name not in best or best[name].laplace_weight < one.laplace_weight:
            best[name] = one
    return tuple(best.values())
