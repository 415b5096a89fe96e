"""Plans a declared batch of queries on few columns: its candidate rows and their weights.

Candidate rows for a batch of queries, as coefficients on the batch's atoms and as blocks to buy.

Four kinds: rows of the history, which may be raised; single atoms; runs of consecutive atoms (the
nodes of a hierarchy); and the queries themselves. A family is the rows of one kind and size: the
first search gives each family one weight.

Where to start, and how far to search, for the cheapest weights of a batch's candidate rows.

First every hierarchy together with the atoms, with one weight for each of its levels, which is
quick at any size. Then, if the batch is small enough, one weight for every row, starting from
several of those results. The best of all is tidied, so that it is bought in few blocks.

Deterministic: the same batch gives the same plan.

A declared batch of queries on few columns: the weight of every row, to meet all targets cheaply.

    plan = plan_batch(queries, schema, gate.measurements())
    gate.measure(plan.measurements, ...)

It is one of the ways in which a batch is planned (`together.py`). Queries are written on their
common atoms, together with the measurements of the history on the same columns, which are paid for
already. Where a batch has too many columns for that, the queries of each set of columns are planned
separately; where even that is too large, each query is bought as it is asked. Each part gets its
share of the time that is left; its plan is the best that was found by then.

The plan depends on queries, targets, weights and the public schema, never on noisy values.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from accountant.noise import may_be_clamped
from cube.encoding import fingerprint
from cube.measurement import (
    UNITS_PER_EPSILON,
    WEIGHT_UNITS_MAX,
    Measurement,
    PlannedMeasurement,
    Weight,
)
from cube.pace import seconds_left, within
from cube.query import N_FACTOR_CELLS_MAX, Partition, QueryBlock, Scope, counting
from cube.refusals import InvalidTarget, TooSlow
from cube.schema import Schema
from inference.blue import Atoms
from planner.batch.weights import N_ROUNDS_MAX, Solution, WeightProblem, improved, scaled_to_meet
from planner.measuring import weight_for
from planner.workload import Wanted

BRANCHINGS = (2, 3, 4, 6, 8, 10, 16)  # of the hierarchies that are tried, each by itself

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EarlierMeasurement:
    """A measurement of the history that a batch may build on, and its place there."""

    measurement: Measurement
    place: int
    may_be_raised: bool


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a candidate row comes from.

    Parameters
    ----------
    kind : str
        "history", "cells", "nodes" or "query".
    source : int
        The number of the history's entry, the branching of the hierarchy, or the query's block.
    row : int
        Its row in that block.
    """

    kind: str
    source: int
    row: int


@dataclass(frozen=True, eq=False)
class CandidateRows:
    """Rows on atoms, (k, n_atoms), where each comes from, and its family, (k,)."""

    rows: Floats
    origins: tuple[Origin, ...]
    families: NDArray[np.int64]

    def of_families(self, chosen: Iterable[tuple[str, int]]) -> NDArray[np.bool_]:
        """Which rows have one of these kinds and sources."""
        wanted = set(chosen)
        return np.array([(origin.kind, origin.source) in wanted for origin in self.origins])

    def of_kind(self, kind: str) -> NDArray[np.bool_]:
        """Which rows are of a kind."""
        return np.array([origin.kind == kind for origin in self.origins])

    def restricted(self, keep: NDArray[np.bool_]) -> "CandidateRows":
        """Some of the rows."""
        places = np.flatnonzero(keep)
        origins = tuple(self.origins[place] for place in places)
        return CandidateRows(self.rows[places], origins, self.families[places])


def candidate_rows(
    history: Sequence[Floats], queries: Sequence[Floats], n_atoms: int, *, with_cells: bool
) -> CandidateRows:
    """All candidate rows, each once.

    Parameters
    ----------
    history, queries : sequence of (n_rows, n_atoms) ndarray of float64
        The rows of each block.
    n_atoms : int
    with_cells : bool
        Whether atoms and runs of atoms can be written as blocks at all.
    """
    found: list[tuple[Floats, Origin, int]] = []
    n_families = 0
    for source, block in enumerate(history):
        found += [(row, Origin("history", source, i), n_families) for i, row in enumerate(block)]
        n_families += 1
    asked = np.concatenate(queries)
    if with_cells:
        touched = np.flatnonzero(np.abs(asked).max(axis=0) > 0)
        for kind, source, rows in _cells_and_nodes(touched, n_atoms):
            found += [(row, Origin(kind, source, i), n_families) for i, row in enumerate(rows)]
            n_families += 1
    for source, block in enumerate(queries):
        found += [(row, Origin("query", source, i), n_families) for i, row in enumerate(block)]
        n_families += 1
    return _distinct(found)


def _cells_and_nodes(
    touched: NDArray[np.int64], n_atoms: int
) -> Iterable[tuple[str, int, list[Floats]]]:
    """Atoms, then the levels of each hierarchy from the leaves up."""
    yield "cells", 1, _runs(touched, 1, n_atoms)
    for branching in BRANCHINGS:
        length = branching
        while length < branching * touched.size and branching < touched.size:
            yield "nodes", branching, _runs(touched, length, n_atoms)
            length *= branching


def _runs(touched: NDArray[np.int64], length: int, n_atoms: int) -> list[Floats]:
    rows = []
    for first in range(0, touched.size, length):
        row = np.zeros(n_atoms)
        row[touched[first : first + length]] = 1.0
        rows.append(row)
    return rows


def _distinct(found: Sequence[tuple[Floats, Origin, int]]) -> CandidateRows:
    """The first of every set of equal rows.

    A hierarchy keeps all its rows, as it is used whole; so does the history, which is given. A row
    of the history also stands for equal candidates, since raising it is cheaper than measuring an
    equal row again.
    """
    n_alike = Counter(origin.source for _, origin, _ in found if origin.kind == "history")
    seen: set[tuple[str, int, bytes]] = set()
    kept = []
    for row, origin, family in found:
        hierarchy = origin.source if origin.kind == "nodes" else 0
        names = [("", 0, row.tobytes()), (origin.kind, hierarchy, row.tobytes())]
        is_known = names[1] in seen or (origin.kind != "nodes" and names[0] in seen)
        if origin.kind != "history" or n_alike[origin.source] == 1:
            seen.update(names)
        if row.any() and (origin.kind == "history" or not is_known):
            kept.append((row, origin, family))
    return CandidateRows(
        rows=np.array([row for row, _, _ in kept]),
        origins=tuple(origin for _, origin, _ in kept),
        families=np.array([family for _, _, family in kept]),
    )


def purchases(
    candidates: CandidateRows,
    weights: Mapping[int, Weight],
    atoms: Atoms,
    history: Sequence[EarlierMeasurement],
    queries: Sequence[QueryBlock],
) -> tuple[PlannedMeasurement, ...]:
    """Rows and their weights as measurements; rows of equal weight are bought together.

    Parameters
    ----------
    candidates : CandidateRows
    weights : mapping of int to Weight
        The weight of each row to buy or raise.
    atoms : Atoms
        The atoms that the rows are on.
    history, queries
        The blocks that the origins of the rows refer to.
    """
    planned: list[PlannedMeasurement] = []
    alike: dict[tuple[int, Weight], list[int]] = {}
    raised: set[int] = set()
    for place, weight in weights.items():
        origin = candidates.origins[place]
        if origin.kind == "history":
            if origin.source not in raised:
                earlier = history[origin.source]
                block = earlier.measurement.block
                planned.append(PlannedMeasurement(block, weight, raised_from=earlier.place))
            raised.add(origin.source)
            continue
        source = origin.source if origin.kind == "query" else -1
        alike.setdefault((source, weight), []).append(place)
    for (source, weight), places in alike.items():
        if source >= 0:
            chosen = [candidates.origins[place].row for place in places]
            planned.append(PlannedMeasurement(_some_rows(queries[source], chosen), weight))
        else:
            blocks = _counting_blocks(candidates.rows[places], atoms)
            planned += [PlannedMeasurement(block, weight) for block in blocks]
    return tuple(planned)


def _some_rows(block: QueryBlock, chosen: Sequence[int]) -> QueryBlock:
    """The block with only the chosen rows."""
    if block.partition is None or len(chosen) == block.n_rows:
        return block
    renamed = np.full(block.n_rows + 1, -1)
    renamed[sorted(chosen)] = np.arange(len(chosen))
    return QueryBlock(block.query, block.partition.renumbered(renamed))


def _counting_blocks(rows: Floats, atoms: Atoms) -> list[QueryBlock]:
    """Sets of atoms as blocks of disjoint groups; greedy packing keeps the blocks few."""
    of_atom: list[NDArray[np.int64]] = []
    for row in rows[np.argsort(-rows.sum(axis=1), kind="stable")]:
        inside = row > 0
        fitting = [labels for labels in of_atom if (labels[inside] < 0).all()]
        if not fitting:
            fitting = [np.full(row.size, -1)]
            of_atom.append(fitting[0])
        fitting[0][inside] = fitting[0].max() + 1
    return [QueryBlock(counting(), _partition(labels, atoms)) for labels in of_atom]


def _partition(of_atom: NDArray[np.int64], atoms: Atoms) -> Partition | None:
    """Groups of atoms as groups of cells, on the axes that tell them apart; None if none does."""
    labels = of_atom[atoms.of_cell].reshape(atoms.grid.shape)
    axes: list[str] = []
    places: list[NDArray[np.int64]] = []
    for name, classes in zip(atoms.grid.axes, atoms.grid.classes, strict=True):
        dimension = len(axes)
        if (labels == labels.take([0], axis=dimension)).all():
            labels = labels.take([0], axis=dimension).squeeze(axis=dimension)
        else:
            axes.append(name)
            places.append(classes.of_level)
    return Partition(tuple(axes), labels[np.ix_(*places)]) if axes else None


N_ENTRIES_SMALL = 15_000  # candidates times queries: up to here every start is followed
N_ENTRIES_LARGE = 60_000  # beyond this, each level of a hierarchy has one weight
N_ENTRIES_HUGE = 400_000  # beyond this, hierarchies are compared but not improved
NOTHING_TO_GAIN = 1e-4  # relative to a lower bound on the cost
ROUGHLY = 0.02  # a gain too small to change which hierarchies are worth following
N_ROUNDS_BEGUN = 3  # rounds after which the most promising starts are known
N_FOLLOWED = 2
TIDYING = 1.002  # the factor by which a plan of fewer blocks may cost more
ROUNDINGS = (1.03, 1.01)  # ratios of the geometric ladders that weights are rounded to
LIGHT = (1e-2, 1e-3)  # relative to the largest weight; dropping lighter rows is tried

Mask = NDArray[np.bool_]


def cheapest(problem: WeightProblem, candidates: CandidateRows) -> Solution | None:
    """The cheapest solution found; None if the candidates do not determine every query.

    It never costs more than the atoms at one common weight, or than the queries each bought alone.
    When time runs out, it is the cheapest found by then.
    """
    simple = [
        found
        for start in _simple(problem, candidates)
        if (found := scaled_to_meet(problem, start)) is not None
    ]
    least = _least_cost(problem)
    if simple and min(found.cost for found in simple) <= least * (1 + NOTHING_TO_GAIN):
        return _best(simple)
    known, further = list(simple), list[Solution]()
    with suppress(TooSlow):
        for solution in _coarse(problem, candidates):
            known.append(solution)  # noqa: PERF402 - keeps what was found before time runs out
        for solution in _fine(problem, candidates, known):
            further.append(solution)
        return _tidied(problem, _best([*known, *further]), _best(known).cost) if known else None
    return _best([*known, *further]) if known else None


def _best(solutions: Sequence[Solution]) -> Solution:
    return min(solutions, key=lambda solution: solution.cost)


def _fine(
    problem: WeightProblem, candidates: CandidateRows, known: Sequence[Solution]
) -> Iterator[Solution]:
    """What becomes of several starts with a weight for every row, the best of them followed."""
    if not known:
        return
    in_order = sorted(known, key=lambda solution: solution.cost)
    begun: list[Solution] = []
    for start in _fine_starts(problem, candidates, in_order):
        solution = improved(problem, start, n_rounds=N_ROUNDS_BEGUN)
        if solution is not None:
            begun.append(solution)
            yield solution
    begun.sort(key=lambda solution: solution.cost)
    for one in begun[:N_FOLLOWED]:
        solution = improved(problem, one.weights, n_rounds=N_ROUNDS_MAX)
        if solution is not None:
            yield solution


def _least_cost(problem: WeightProblem) -> float:
    """A lower bound on any plan's cost: the dearest query bought alone, or what is paid already.

    An estimate with scales ``b`` of a query ``q`` from rows ``H`` of weights ``w`` has
    ``|q_j| <= sum_k b_k w_k |H_kj| <= max(b) * cost``, and is noisier than one Laplace variable of
    scale ``max(b)``; so ``cost >= max|q| log(1 / (1 - confidence)) / half_width``.
    """
    alone = -np.log1p(-problem.confidences) / problem.half_widths
    dearest = float((alone * np.abs(problem.queries).max(axis=1)).max())
    return max(dearest, float(problem.paid.max()))


def _simple(problem: WeightProblem, candidates: CandidateRows) -> Iterator[Floats]:
    """The history raised; the atoms at one weight; each query at the weight it needs alone."""
    if problem.bought.any():
        yield 2.0 * problem.bought
    cells = candidates.of_kind("cells")
    if cells.any():
        yield cells.astype(np.float64)
    alone = -np.log1p(-problem.confidences) / problem.half_widths
    weights = np.zeros(len(candidates.rows))
    for query, weight in zip(problem.queries, alone, strict=True):
        same = (candidates.rows == query).all(axis=1) & (problem.bought == 0)
        weights[np.flatnonzero(same)[:1]] = np.maximum(weights[np.flatnonzero(same)[:1]], weight)
    yield weights


def _coarse(problem: WeightProblem, candidates: CandidateRows) -> Iterator[Solution]:
    """The best common weights of the levels of each hierarchy."""
    tied = problem.tied(candidates.families)
    history, cells = candidates.of_kind("history"), candidates.of_kind("cells")
    n_queries = problem.queries.shape[0]
    for branching in BRANCHINGS:
        nodes = candidates.of_families([("nodes", branching)])
        if not nodes.any():
            continue
        used = history | cells | nodes
        start = np.where(cells | nodes, 1.0, 0.0)
        is_huge = int(used.sum()) * n_queries > N_ENTRIES_HUGE
        found = scaled_to_meet(tied, start) if is_huge else _improved_on(tied, used, start)
        if found is not None:
            yield found


def _improved_on(problem: WeightProblem, used: Mask, start: Floats) -> Solution | None:
    """Improve on the used rows only."""
    found = improved(problem.on(used), start[used], settled=ROUGHLY)
    if found is None:
        return None
    weights = np.zeros(used.size)
    weights[used] = found.weights
    return Solution(weights, found.half_widths, found.cost)


def _fine_starts(
    problem: WeightProblem, candidates: CandidateRows, known: list[Solution]
) -> list[Floats]:
    """Where to begin with a weight for every row."""
    k, m = len(candidates.rows), problem.queries.shape[0]
    best = known[0].weights
    if k * m > N_ENTRIES_SMALL:
        used = int((best > 0).sum())
        return [best] if used * m <= N_ENTRIES_LARGE else []
    cells = candidates.of_kind("cells")
    sizes = np.abs(candidates.rows).sum(axis=1)
    flat = np.ones(k)
    mixed = [np.where(found.weights > 0, found.weights, 0.1 * best.max()) for found in known[:3]]
    return [*mixed, flat, np.where(cells, 1.0, 0.3), 1.0 / np.sqrt(sizes)]


def _tidied(problem: WeightProblem, best: Solution, cost_max: float) -> Solution:
    """About the same weights, on fewer rows and with fewer distinct values."""
    cost_max = min(best.cost * TIDYING, max(cost_max, best.cost))
    for share in LIGHT:
        light = (best.weights < share * best.weights.max()) & (problem.bought == 0)
        found = scaled_to_meet(problem, np.where(light, 0.0, best.weights))
        if found is not None and found.cost <= cost_max:
            best = found
            break
    for ratio in ROUNDINGS:
        found = scaled_to_meet(problem, _on_ladder(best.weights, ratio))
        if found is not None and found.cost <= cost_max:
            return found
    return best


def _on_ladder(weights: Floats, ratio: float) -> Floats:
    rounded = np.zeros_like(weights)
    used = weights > 0
    top = weights.max()
    rounded[used] = top * ratio ** np.round(np.log(weights[used] / top) / np.log(ratio))
    return rounded


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
        raise RuntimeError(
            "the candidates do not determine the queries, although they contain them"
        )
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
                "The targets of the batch together ask for almost no noise.",
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
